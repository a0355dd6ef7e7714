//! The two halves of VLANs, each alone, and both with a bridge between them against a plain reading of the rules.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;
mod spy;

use std::collections::BTreeMap;

use graph::{self, GraphBuilder, OnFull, To};
use mem::{Batch, Ext, Flags, Meta};
use meter::DropReason;
use rig::{Frame, Rig, frame};
use ringwright_stages::{L2Switch, L2SwitchConfig, PortNames, Side, Vlan, VlanConfig, VlanPorts};
use spy::{Seen, Spy};
use wire::{EtherType, MacAddr, Tci, VlanId, vlan};

/// Port 0 is an access port of VLAN 10, port 1 a trunk of 10, 20 and 100 to 102, port 2 one of 20 with 1 native; port 3 is in none.
fn ports() -> VlanPorts {
    VlanPorts::new(&[(0, 10)], &[(1, vec![10..=10, 20..=20, 100..=102]), (2, vec![20..=20])], &[(2, 1)])
        .unwrap()
}

fn tci(pcp: u8, dei: bool, vid: u16) -> Tci {
    Tci::new(pcp, dei, VlanId::new(vid).unwrap())
}
fn plain() -> Frame {
    frame([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1], 7)
}
fn tagged_as(kind: EtherType, tci: Tci, frame: &[u8]) -> Frame {
    let mut room = [&[0; 4], frame].concat();
    assert!(vlan::insert(&mut room, kind, tci));
    room
}
fn tagged(vid: u16) -> Frame {
    tagged_as(EtherType::VLAN, tci(0, false, vid), &plain())
}

/// Sends one packet through one half; what came out, or why not.
fn through(side: Side, pieces: &[&[u8]], port: u16, flags: Flags, ext: Ext) -> Result<Seen, DropReason> {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let v = b.add("v", Box::new(Vlan::new(VlanConfig { ports: ports(), side })));
    let spy = b.add("spy", Box::new(Spy::default()));
    b.join(v, "out", To::Node(spy)).unwrap();
    let mut g = b.build(To::Node(v)).unwrap();
    let mut batch = Batch::new(&rig.local);
    spy::push(&mut batch, rig.pool, pieces, Meta { port, flags, ..Meta::default() }, ext);
    g.inject(&mut batch, 1);
    let seen = g.stage_mut::<Spy>("spy").unwrap().0.pop();
    let drops = g.stages().next().unwrap().2.drops;
    let reason = drops.iter().find(|d| d.1 > 0).map(|d| d.0);
    drop((g, batch));
    assert_eq!((rig.home(), rig.local.lost()), (64, 0));
    seen.ok_or_else(|| reason.unwrap())
}
fn bytes(side: Side, frame: &[u8], port: u16) -> Result<Frame, DropReason> {
    through(side, &[frame], port, Flags::default(), Ext::default()).map(|s| {
        assert_eq!((s.port, s.flags), (port, Flags::default()));
        s.bytes
    })
}
const FILTERED: Result<Frame, DropReason> = Err(DropReason::Filtered);

#[test]
fn what_comes_in_by_an_access_port() {
    assert_eq!(bytes(Side::In, &plain(), 0), Ok(tagged(10)));
    let priority = tagged_as(EtherType::VLAN, tci(5, true, 0), &plain());
    assert_eq!(bytes(Side::In, &priority, 0), Ok(tagged_as(EtherType::VLAN, tci(5, true, 10), &plain())));
    assert_eq!(bytes(Side::In, &tagged(10), 0), FILTERED, "even of its own");
    assert_eq!(bytes(Side::In, &tagged(20), 0), FILTERED);
    for service in [EtherType::QINQ, EtherType::QINQ_OLD] {
        let other = tagged_as(service, tci(0, false, 20), &plain());
        assert_eq!(bytes(Side::In, &other, 0), Ok(tagged_as(EtherType::VLAN, tci(0, false, 10), &other)));
    }
}

#[test]
fn what_comes_in_by_a_trunk_port() {
    for vid in [10, 20, 100, 101, 102] {
        assert_eq!(bytes(Side::In, &tagged(vid), 1), Ok(tagged(vid)));
    }
    for vid in [1, 11, 99, 103, 4095] {
        assert_eq!(bytes(Side::In, &tagged(vid), 1), FILTERED, "{vid}");
    }
    assert_eq!(bytes(Side::In, &plain(), 1), FILTERED, "no native VLAN");
    assert_eq!(bytes(Side::In, &tagged(0), 1), FILTERED);
    assert_eq!(bytes(Side::In, &plain(), 2), Ok(tagged(1)));
    assert_eq!(bytes(Side::In, &tagged(0), 2), Ok(tagged(1)));
    assert_eq!(bytes(Side::In, &tagged(1), 2), Ok(tagged(1)), "native with its tag");
    let inner = tagged_as(EtherType::VLAN, tci(0, false, 20), &tagged(7));
    assert_eq!(bytes(Side::In, &inner, 1), Ok(inner.clone()), "the outermost tag counts");
}

#[test]
fn what_goes_out() {
    assert_eq!(bytes(Side::Out, &tagged(10), 0), Ok(plain()));
    assert_eq!(bytes(Side::Out, &tagged(10), 1), Ok(tagged(10)));
    assert_eq!(bytes(Side::Out, &tagged(1), 2), Ok(plain()), "native");
    assert_eq!(bytes(Side::Out, &tagged(20), 2), Ok(tagged(20)));
    for (frame, port) in
        [(tagged(20), 0), (tagged(1), 1), (tagged(10), 2), (plain(), 0), (plain(), 2), (tagged(0), 0)]
    {
        assert_eq!(bytes(Side::Out, &frame, port), FILTERED, "out of {port}");
    }
}

#[test]
fn a_port_in_no_vlan_and_frames_that_are_cut_off() {
    for side in [Side::In, Side::Out] {
        assert_eq!(bytes(side, &plain(), 3), FILTERED);
        assert_eq!(bytes(side, &plain(), 900), FILTERED);
        for cut in 0..14 {
            assert_eq!(bytes(side, &plain()[..cut], 0), Err(DropReason::TooShort));
        }
        for cut in 14..18 {
            assert_eq!(bytes(side, &tagged(10)[..cut], 1), Err(DropReason::TooShort));
        }
    }
    assert_eq!(bytes(Side::In, &plain()[..14], 0), Ok(tagged(10)[..18].to_vec()));
    assert_eq!(bytes(Side::Out, &tagged(10)[..18], 0), Ok(plain()[..14].to_vec()));
}

#[test]
fn a_tag_beside_the_bytes_stays_there_until_it_goes() {
    let flags = Flags::VLAN.with(Flags::L4_GOOD);
    let beside = |side, port, tag: Tci| through(side, &[&plain()], port, flags, Ext::tagged(tag.raw()));
    let seen = beside(Side::In, 1, tci(3, false, 20)).unwrap();
    assert_eq!((&seen.bytes, seen.flags, seen.ext.vlan), (&plain(), flags, tci(3, false, 20).raw()));
    assert_eq!(beside(Side::In, 0, tci(3, false, 20)).unwrap_err(), DropReason::Filtered);
    let seen = beside(Side::In, 0, tci(3, true, 0)).unwrap();
    assert_eq!((&seen.bytes, seen.flags, seen.ext.vlan), (&plain(), flags, tci(3, true, 10).raw()));
    let seen = beside(Side::Out, 0, tci(3, false, 10)).unwrap();
    assert_eq!((&seen.bytes, seen.flags), (&plain(), Flags::L4_GOOD));
    let seen = beside(Side::Out, 2, tci(3, false, 20)).unwrap();
    assert_eq!((&seen.bytes, seen.flags, seen.ext.vlan), (&plain(), flags, tci(3, false, 20).raw()));
}

#[test]
fn without_room_in_front_the_tag_is_kept_beside() {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let v = b.add("v", Box::new(Vlan::new(VlanConfig { ports: ports(), side: Side::In })));
    let spy = b.add("spy", Box::new(Spy::default()));
    b.join(v, "out", To::Node(spy)).unwrap();
    let mut g = b.build(To::Node(v)).unwrap();
    let mut batch = Batch::new(&rig.local);
    spy::push(&mut batch, rig.pool, &[&plain()], Meta::default(), Ext::default());
    let mut p = batch.pkt(0).unwrap();
    let room = rig.local.layout().headroom();
    p.prepend(room - 3).unwrap().fill(0xee);
    let front = p.bytes().to_vec();
    g.inject(&mut batch, 1);
    let seen = g.stage_mut::<Spy>("spy").unwrap().0.pop().unwrap();
    assert_eq!((seen.bytes, seen.flags, seen.ext.vlan), (front, Flags::VLAN, 10));
}

#[test]
fn what_is_known_for_the_device_goes_along() {
    let known = |flags: Flags, l2| {
        let mut ext = Ext::tagged(0);
        (ext.csum_start, ext.csum_offset, ext.mss) = (34, 16, 1460);
        (ext.l2_len, ext.l3_len, ext.l4_len) = (l2, 20, 20);
        let seen = through(Side::In, &[&plain()], 0, flags, ext).unwrap();
        let there = (seen.ext.csum_start, seen.ext.l2_len);
        assert_eq!((seen.ext.csum_offset, seen.ext.mss, seen.ext.l3_len, seen.flags), (16, 1460, 20, flags));
        let back = through(Side::Out, &[&seen.bytes], 0, seen.flags, seen.ext).unwrap();
        assert_eq!((back.bytes, back.ext.csum_start, back.ext.l2_len), (plain(), 34, l2));
        there
    };
    for sums in [Flags::TX_L4, Flags::TX_L4.with(Flags::TSO), Flags::USO, Flags::TSO] {
        assert_eq!(known(sums, 14), (38, 18));
    }
    assert_eq!(known(Flags::TX_L3, 14), (34, 18));
    assert_eq!(known(Flags::TX_L4, 0), (38, 0), "what is not known stays so");
    assert_eq!(known(Flags::default(), 14), (34, 14), "and what nobody reads");
}

#[test]
fn a_long_frame_is_tagged_in_its_first_buffer() {
    let whole: Vec<u8> = [&plain()[..], &[7; 300]].concat();
    for (first, second) in [(60, 190), (14, 100), (13, 100), (3, 5), (0, 17)] {
        let pieces =
            [&whole[..first], &whole[first..second], &whole[second..second + 100], &whole[second + 100..]];
        // Buffers of 192 bytes.
        let pieces: Vec<&[u8]> = pieces.iter().flat_map(|p| p.chunks(192)).collect();
        let pieces = if first == 0 { [&[&whole[..0]], &pieces[..]].concat() } else { pieces };
        let mut ext = Ext::tagged(0);
        ext.csum_start = 34;
        let seen = through(Side::In, &pieces, 0, Flags::TX_L4.with(Flags::TSO), ext).unwrap();
        assert_eq!(seen.bytes, tagged_as(EtherType::VLAN, tci(0, false, 10), &whole), "{first}, {second}");
        assert_eq!((seen.ext.csum_start, seen.ext.total_len()), (38, 364));
        let parts: Vec<&[u8]> = seen.bytes.chunks(17).collect();
        let back = through(Side::Out, &parts, 0, Flags::TX_L4, seen.ext).unwrap();
        assert_eq!((back.bytes, back.ext.csum_start), (whole.clone(), 34));
    }
}

#[test]
fn configuration_is_read_or_refused() {
    let names = PortNames(&[("p0", 0), ("p1", 1)]);
    let read = |text: &str| VlanConfig::read(&text.parse().unwrap(), &names).map_err(|e| e.to_string());
    let config = read("side = \"out\"\naccess = { p0 = 10 }\ntrunk = { p1 = [\"10-12\"] }").unwrap();
    assert_eq!(config.side, Side::Out);
    assert_eq!(config.ports, VlanPorts::new(&[(0, 10)], &[(1, vec![10..=12])], &[]).unwrap());
    assert!(
        read("access = { p0 = 10 }").unwrap_err().starts_with("side: is missing: \"in\" before the bridge")
    );
    assert_eq!(
        read("side = \"up\"\naccess = { p0 = 1 }").unwrap_err(),
        "side: \"up\" is not one of \"in\", \"out\""
    );
    assert_eq!(
        read("side = \"in\"\nacces = { p0 = 1 }").unwrap_err(),
        "acces: is not known; did you mean access?"
    );
    let sw = |text: &str| {
        L2SwitchConfig::read(&text.parse().unwrap(), &names, Some(&config.ports)).map_err(|e| e.to_string())
    };
    assert_eq!(sw("vlans = true").unwrap().vlans, Some(config.ports.clone()));
    assert_eq!(sw("").unwrap(), L2SwitchConfig::new(&[0, 1]));
    let full =
        sw("ports = [\"p1\"]\nisolated = [\"p1\"]\ntable = 7\ntable_full = \"drop\"\nageing = \"10s\"")
            .unwrap();
    assert_eq!((full.ports, full.isolated, full.table, full.ageing.as_secs()), (vec![1], vec![1], 7, 10));
    assert!(sw("ports = [\"p2\"]").unwrap_err().starts_with("ports: there is no port p2; did you mean p"));
    assert!(
        sw("table = 0").is_err()
            && sw("table_full = \"x\"").is_err()
            && sw("vlan = true").unwrap_err().contains("vlans?")
    );
    let without = L2SwitchConfig::read(&"vlans = true".parse().unwrap(), &names, None).unwrap();
    assert_eq!(without.vlans, Some(VlanPorts::everywhere(&[0, 1])));
}

/// A whole bridge with its two halves, and the rules as one would write them down.
struct Bed {
    rig: Rig,
    graph: graph::Graph,
    /// By VLAN and address.
    stations: BTreeMap<(u16, [u8; 6]), u16>,
}

const PORTS: [u16; 5] = [0, 1, 2, 3, 4];
/// Two access ports of VLAN 10, one of 20, a trunk of both, and a trunk of 20 with 10 native.
fn office() -> VlanPorts {
    VlanPorts::new(&[(0, 10), (1, 10), (2, 20)], &[(3, vec![10..=20]), (4, vec![20..=20])], &[(4, 10)])
        .unwrap()
}
const fn untagged(port: u16) -> u16 {
    [10, 10, 20, 0, 10][port as usize]
}
fn may_be_tagged(port: u16, vid: u16) -> bool {
    port == 3 && (10..=20).contains(&vid) || port == 4 && vid == 20
}
fn inside(port: u16, vid: u16) -> bool {
    untagged(port) == vid || may_be_tagged(port, vid)
}

impl Bed {
    fn new() -> Self {
        let mut rig = Rig::new(1024);
        let mut b = GraphBuilder::new(&rig.local);
        let half = |side| Box::new(Vlan::new(VlanConfig { ports: office(), side }));
        let mut config = L2SwitchConfig::new(&PORTS);
        config.vlans = Some(office());
        let enter = b.add("enter", half(Side::In));
        let sw = b.add("sw", Box::new(L2Switch::new(&config, rig.pool, 1000, 5).unwrap()));
        let leave = b.add("leave", half(Side::Out));
        b.join(enter, "out", To::Node(sw)).unwrap();
        b.join(sw, "out", To::Node(leave)).unwrap();
        b.join(leave, "out", To::Marked).unwrap();
        let mut graph = b.build(To::Node(enter)).unwrap();
        rig.add_ports(&mut graph, &PORTS, OnFull::Drop);
        Self { rig, graph, stations: BTreeMap::new() }
    }
    /// A frame goes in; checks what comes out against the rules.
    fn say(&mut self, port: u16, tag: Option<Tci>, dst: [u8; 6], src: [u8; 6]) {
        let bare = frame(dst, src, 9);
        let sent = tag.map_or(bare.clone(), |t| tagged_as(EtherType::VLAN, t, &bare));
        self.rig.arrive(port, [sent]);
        self.rig.run(&mut self.graph);
        let vid = match tag.map_or(0, |t| t.id().value()) {
            0 => untagged(port),
            vid if may_be_tagged(port, vid) || (port == 4 && vid == 10) => vid,
            _ => 0,
        };
        let mut ways = Vec::new();
        if vid != 0 {
            self.stations.insert((vid, src), port);
            ways = match self.stations.get(&(vid, dst)) {
                Some(&to) => vec![to],
                None => PORTS.to_vec(),
            };
            ways.retain(|&p| p != port && inside(p, vid));
        }
        for p in PORTS {
            let expected = if !ways.contains(&p) {
                vec![]
            } else if untagged(p) == vid {
                vec![bare.clone()]
            } else {
                let (pcp, dei) = tag.map_or((0, false), |t| (t.priority(), t.drop_eligible()));
                vec![tagged_as(EtherType::VLAN, tci(pcp, dei, vid), &bare)]
            };
            assert_eq!(self.rig.sent(p), expected, "from {port} in {tag:?}, out of {p}");
        }
    }
    fn note(&self, stage: usize, name: &str) -> u64 {
        let notes = self.graph.stages().nth(stage).unwrap().3;
        notes.iter().find(|n| n.0 == name).unwrap_or_else(|| panic!("a note {name:?}")).1
    }
}

#[test]
fn a_bridge_with_its_halves_keeps_vlans_apart() {
    let mut b = Bed::new();
    let (all, st) = ([0xff; 6], |n| [2, 0, 0, 0, 0, n]);
    b.say(0, None, all, st(1));
    assert_eq!(
        b.graph.stages().nth(1).unwrap().2.created,
        2,
        "to the three others in the VLAN, and no copy for anyone else"
    );
    b.say(2, None, all, st(1)); // the same address in another VLAN is another station
    let now = b.rig.now;
    let switch = b.graph.stage_mut::<L2Switch>("sw").unwrap();
    let mut at = |vid| switch.port_in(VlanId::new(vid).unwrap(), MacAddr::new(st(1)), now);
    assert_eq!((at(10), at(20), at(30)), (Some(0), Some(2), None));
    b.say(3, Some(tci(6, false, 10)), st(1), st(2));
    b.say(3, Some(tci(0, true, 20)), st(1), st(2));
    b.say(4, None, st(1), st(3));
    b.say(4, Some(tci(0, false, 10)), st(1), st(3));
    b.say(3, Some(tci(0, false, 15)), all, st(4)); // in a VLAN alone
    b.say(0, Some(tci(0, false, 20)), all, st(5));
    assert_eq!((b.note(0, "not_member"), b.note(0, "tagged"), b.note(2, "not_member")), (1, 3, 0));
    b.rig.finish(b.graph);
}

#[test]
fn random_frames_go_as_the_rules_say() {
    let mut seed = 3u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut b = Bed::new();
    for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
        let port = PORTS[below(5) as usize];
        let tag =
            (below(3) > 0).then(|| tci(below(8) as u8, below(2) > 0, [0, 10, 15, 20, 30][below(5) as usize]));
        let station = |n| [2, 0, 0, 0, 0, n as u8];
        let dst = if below(4) == 0 { [0xff; 6] } else { station(below(12)) };
        b.say(port, tag, dst, station(below(12)));
    }
    assert!(
        b.note(1, "flooded") > 10
            && b.note(1, "group") > 10
            && b.note(2, "untagged") > 10
            && b.note(0, "not_member") > 10
    );
    b.rig.finish(b.graph);
}

#[test]
fn a_bridge_alone_filters_what_is_in_no_vlan_or_not_in_its_ports() {
    let mut rig = Rig::new(256);
    let mut config = L2SwitchConfig::new(&PORTS);
    config.vlans = Some(office());
    let mut b = GraphBuilder::new(&rig.local);
    let sw = b.add("sw", Box::new(L2Switch::new(&config, rig.pool, 1000, 5).unwrap()));
    let mut g = b.build(To::Node(sw)).unwrap();
    rig.add_ports(&mut g, &PORTS, OnFull::Drop);
    // No tag, a priority only, a VLAN that the port is not in, a tag cut off.
    rig.arrive(0, [plain(), tagged(0), tagged(20), tagged(10)[..17].to_vec()]);
    rig.run(&mut g);
    let (_, _, meter, notes) = g.stages().next().unwrap();
    assert_eq!((meter.drops.of(DropReason::Filtered), meter.drops.of(DropReason::TooShort)), (3, 1));
    assert!(
        notes.contains(&("no_vlan", 2))
            && notes.contains(&("not_member", 1))
            && notes.contains(&("stations", 0))
    );
    // A tag that the device took out will do, and so will one in the second buffer.
    let mut batch = Batch::new(&rig.local);
    spy::push(
        &mut batch,
        rig.pool,
        &[&plain()],
        Meta { flags: Flags::VLAN, ..Meta::default() },
        Ext::tagged(10),
    );
    g.inject(&mut batch, 1);
    assert_eq!(PORTS.map(|p| rig.sent(p).len()), [0, 1, 0, 1, 1]);
    g.inject(&mut rig.in_two(&tagged(10)[..18], 14, 1), 1);
    assert_eq!(
        PORTS.map(|p| rig.sent(p).len()),
        [1, 0, 0, 1, 1],
        "flooded: the station that it is for was not heard"
    );
    let switch = g.stage_mut::<L2Switch>("sw").unwrap();
    let at = |s: &mut L2Switch| s.port_in(VlanId::new(10).unwrap(), MacAddr::new([2, 0, 0, 0, 0, 1]), 1);
    assert_eq!(at(switch), Some(1));
    // Its port leaves the VLAN, then comes back.
    switch.set_vlans(VlanPorts::new(&[(0, 10), (1, 20)], &[], &[]).unwrap()).unwrap();
    assert_eq!((at(switch), switch.stations()), (None, 0));
    switch.set_vlans(office()).unwrap();
    switch.set_ports(&[0, 3], &[]).unwrap();
    let mut batch = Batch::new(&rig.local);
    spy::push(&mut batch, rig.pool, &[&tagged(10)], Meta::default(), Ext::default());
    g.inject(&mut batch, 1);
    assert_eq!(PORTS.map(|p| rig.sent(p).len()), [0, 0, 0, 1, 0]);
    let mut plain_bridge = L2Switch::new(&L2SwitchConfig::new(&[0]), rig.pool, 1000, 1).unwrap();
    assert!(plain_bridge.set_vlans(office()).unwrap_err().to_string().contains("vlans = true"));
    g.breathe(1, false);
    drop((g, batch));
    assert_eq!((rig.home(), rig.local.lost()), (256, 0));
}
