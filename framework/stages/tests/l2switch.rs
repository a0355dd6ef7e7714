//! A bridge of four ports, in a graph, without devices.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;

use std::time::Duration;

use graph::{self, Graph, GraphBuilder, OnFull, To};
use meter::{DropReason, StageMeter};
use rig::{Frame, Rig, frame, numbers};
use ringwright_stages::{L2Switch, L2SwitchConfig, StageError, TableFull};
use wire::MacAddr;

/// Ticks in a second.
const HZ: u64 = 1000;
const PORTS: [u16; 4] = [0, 1, 2, 3];
const ALL: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0, 0, 1];

/// Station `n`.
fn st(n: u16) -> [u8; 6] {
    [2, 0, 0, 0, (n >> 8) as u8, n as u8]
}

struct Bed {
    rig: Rig,
    graph: Graph,
}

impl Bed {
    fn new(change: impl FnOnce(&mut L2SwitchConfig)) -> Self {
        Self::with_buffers(512, change)
    }
    fn with_buffers(buffers: usize, change: impl FnOnce(&mut L2SwitchConfig)) -> Self {
        let mut rig = Rig::new(buffers);
        let mut config = L2SwitchConfig::new(&PORTS);
        // Miri takes its time over a large table.
        config.table = if cfg!(miri) { 32 } else { config.table };
        change(&mut config);
        let mut b = GraphBuilder::new(&rig.local);
        let sw = b.add("sw", Box::new(L2Switch::new(&config, rig.pool, HZ, 42).unwrap()));
        let mut graph = b.build(To::Node(sw)).unwrap();
        rig.add_ports(&mut graph, &PORTS, OnFull::Drop);
        Self { rig, graph }
    }

    /// One frame arrives; returns the ports it leaves by.
    fn say(&mut self, port: u16, dst: [u8; 6], src: [u8; 6]) -> Vec<u16> {
        let one = frame(dst, src, 7);
        self.rig.arrive(port, [one.clone()]);
        self.rig.run(&mut self.graph);
        let out: Vec<Vec<Frame>> = PORTS.map(|p| self.rig.sent(p)).into();
        assert!(out.iter().flatten().all(|f| *f == one), "unchanged");
        (0..4).filter(|&p| !out[usize::from(p)].is_empty()).collect()
    }
    fn meter(&self) -> StageMeter {
        *self.graph.stages().next().unwrap().2
    }
    fn drops(&self, reason: DropReason) -> u64 {
        self.meter().drops.of(reason)
    }
    fn note(&self, name: &str) -> u64 {
        let notes = self.graph.stages().next().unwrap().3;
        notes.iter().find(|n| n.0 == name).unwrap_or_else(|| panic!("a note {name:?}")).1
    }
    fn switch(&mut self) -> &mut L2Switch {
        self.graph.stage_mut("sw").unwrap()
    }
    fn port_of(&mut self, n: u16) -> Option<u16> {
        let now = self.rig.now;
        self.switch().port_of(MacAddr::new(st(n)), now)
    }
    fn wait(&mut self, seconds: u64) {
        for _ in 0..8 * seconds {
            self.rig.now += HZ / 8;
            self.graph.tick(self.rig.now);
        }
    }
    fn finish(self) {
        self.rig.finish(self.graph);
    }
}

#[test]
fn unknown_stations_are_flooded_and_known_ones_are_not() {
    let mut b = Bed::new(|_| ());
    assert_eq!(b.say(0, st(2), st(1)), [1, 2, 3]);
    assert_eq!((b.meter().created, b.note("flooded"), b.note("learned")), (2, 1, 1));
    assert_eq!(b.say(2, st(1), st(2)), [0], "where it spoke from");
    assert_eq!(b.say(0, st(2), st(1)), [2]);
    assert_eq!((b.meter().created, b.note("stations"), b.note("learned")), (2, 2, 2));
    assert_eq!((b.port_of(1), b.port_of(2), b.port_of(3)), (Some(0), Some(2), None));
    b.finish();
}

#[test]
fn groups_and_all_go_to_all_others() {
    let mut b = Bed::new(|_| ());
    assert_eq!(b.say(1, ALL, st(1)), [0, 2, 3]);
    assert_eq!(b.say(1, GROUP, st(1)), [0, 2, 3]);
    assert_eq!((b.note("group"), b.note("flooded"), b.meter().created), (2, 0, 4));
    b.finish();
}

#[test]
fn address_zero_is_no_station_not_even_as_a_destination() {
    let mut b = Bed::new(|_| ());
    assert_eq!((b.say(3, [0; 6], st(1)), b.note("flooded")), (vec![0, 1, 2], 1));
    b.finish();
}

#[test]
fn a_station_that_moves_is_followed() {
    let mut b = Bed::new(|_| ());
    b.say(0, ALL, st(1));
    b.say(3, ALL, st(1));
    assert_eq!((b.say(2, st(1), st(2)), b.note("moved"), b.note("learned")), (vec![3], 1, 2));
    // The same in one burst: heard last is where it is, for all frames of the burst.
    b.rig.arrive(0, [frame(st(2), st(9), 1), frame(st(1), st(8), 2)]);
    b.rig.arrive(1, [frame(st(2), st(9), 3)]);
    b.rig.run(&mut b.graph);
    assert_eq!((numbers(&b.rig.sent(2)), numbers(&b.rig.sent(3))), (vec![1, 3], vec![2]));
    assert_eq!((b.port_of(9), b.note("moved"), b.note("stations")), (Some(1), 2, 4));
    b.finish();
}

#[test]
fn a_silent_station_is_forgotten_after_the_ageing_time_and_not_before() {
    for ageing in [64, 300] {
        let mut b = Bed::new(|c| c.ageing = Duration::from_secs(ageing));
        b.say(0, ALL, st(1));
        b.say(1, ALL, st(2));
        b.wait(ageing / 2);
        b.say(1, ALL, st(2));
        b.wait(ageing / 2);
        assert_eq!(b.say(2, st(1), st(3)), [0], "{ageing} s are not too long");
        b.wait(ageing / 64 + 1);
        assert_eq!(b.say(2, st(1), st(3)), [0, 1, 3], "a 64th more is");
        assert_eq!(b.say(2, st(2), st(3)), [1], "it spoke in between");
        b.wait(ageing / 8);
        assert_eq!((b.note("aged"), b.note("stations")), (1, 2), "its slot is free at most an eighth later");
        b.finish();
    }
}

#[test]
fn time_that_jumps_makes_no_old_station_young() {
    let mut b = Bed::new(|c| c.ageing = Duration::from_secs(64));
    b.say(0, ALL, st(1));
    b.rig.now += 256 * HZ;
    assert_eq!((b.say(1, st(1), st(2)), b.note("aged")), (vec![0, 2, 3], 1));
    b.rig.now -= 100 * HZ;
    assert_eq!(b.say(0, st(2), st(1)), [1], "time that goes back forgets nobody");
    b.finish();
}

#[test]
fn isolated_ports_reach_only_those_that_are_not() {
    let isolated = [1, 3];
    let mut b = Bed::new(|c| c.isolated = isolated.to_vec());
    for p in PORTS {
        let flooded = b.say(p, ALL, st(p));
        let reach = |q: &u16| *q != p && !(isolated.contains(&p) && isolated.contains(q));
        assert_eq!(flooded, PORTS.iter().copied().filter(reach).collect::<Vec<_>>(), "all, from {p}");
    }
    for p in PORTS {
        for q in PORTS {
            let expected =
                if p == q || (isolated.contains(&p) && isolated.contains(&q)) { vec![] } else { vec![q] };
            assert_eq!(b.say(p, st(q), st(p)), expected, "from {p} to {q}");
        }
    }
    assert_eq!((b.drops(DropReason::Filtered), b.note("hairpin"), b.note("unreachable")), (6, 4, 2));
    b.finish();
}

#[test]
fn a_full_table_floods() {
    let mut b = Bed::new(|c| c.table = 3);
    for n in 0..3 {
        b.say(0, ALL, st(n));
    }
    assert_eq!((b.say(1, st(0), st(3)), b.note("table_full")), (vec![0], 1), "it goes all the same");
    assert_eq!((b.say(0, st(3), st(0)), b.note("stations")), (vec![1, 2, 3], 3), "nobody knows where it is");
    assert_eq!(
        (b.say(2, ALL, st(1)), b.port_of(1), b.note("moved")),
        (vec![0, 1, 3], Some(2), 1),
        "known ones move"
    );
    assert_eq!((b.note("table_full"), b.meter().drops.total()), (1, 0));
    b.finish();
}

#[test]
fn a_full_table_drops_if_told_so_until_there_is_room() {
    let mut b = Bed::new(|c| {
        c.table = 3;
        c.table_full = TableFull::Drop;
        c.ageing = Duration::from_secs(64);
    });
    for n in 0..3 {
        b.say(0, ALL, st(n));
    }
    assert!(b.say(1, st(0), st(3)).is_empty() && b.say(1, ALL, st(3)).is_empty());
    assert_eq!((b.drops(DropReason::TableFull), b.note("table_full"), b.meter().created), (2, 2, 6));
    b.rig.arrive(1, [frame(st(0), st(3), 1), frame(st(1), st(0), 2), frame(st(0), st(4), 3)]);
    b.rig.run(&mut b.graph);
    assert_eq!(
        (numbers(&b.rig.sent(0)), b.drops(DropReason::TableFull)),
        (vec![2], 4),
        "those who are known may speak"
    );
    b.wait(80);
    assert_eq!((b.say(1, ALL, st(3)), b.note("stations")), (vec![0, 2, 3], 1));
    b.finish();
}

#[test]
fn addresses_reserved_for_bridges_are_not_relayed_and_their_sources_learned() {
    let mut b = Bed::new(|_| ());
    for last in 0..16 {
        assert!(b.say(0, [0x01, 0x80, 0xc2, 0, 0, last], st(1)).is_empty(), "{last:x}");
    }
    assert_eq!((b.drops(DropReason::Filtered), b.port_of(1)), (16, Some(0)));
    assert_eq!(b.say(0, [0x01, 0x80, 0xc2, 0, 0, 0x10], st(1)), [1, 2, 3], "one further is a group as any");
    b.finish();
}

#[test]
fn reserved_frames_can_go_to_who_wants_them() {
    let mut rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let sw = b.add("sw", Box::new(L2Switch::new(&L2SwitchConfig::new(&[0, 1]), rig.pool, HZ, 1).unwrap()));
    b.join(sw, "reserved", To::Tx(9)).unwrap();
    let mut g = b.build(To::Node(sw)).unwrap();
    rig.add_ports(&mut g, &[0, 1, 9], OnFull::Drop);
    rig.arrive(0, [frame([0x01, 0x80, 0xc2, 0, 0, 0x0e], st(1), 5), frame(ALL, st(1), 6)]);
    rig.run(&mut g);
    assert_eq!((numbers(&rig.sent(9)), numbers(&rig.sent(1))), (vec![5], vec![6]));
    rig.finish(g);
}

#[test]
fn a_source_that_is_no_station_is_neither_learned_nor_relayed() {
    let mut b = Bed::new(|_| ());
    for source in [GROUP, ALL, [0; 6], [0x01, 0x80, 0xc2, 0, 0, 0]] {
        assert!(b.say(0, st(1), source).is_empty());
    }
    assert_eq!((b.drops(DropReason::Filtered), b.note("bad_source"), b.note("stations")), (4, 4, 0));
    b.finish();
}

#[test]
fn frames_without_a_header_are_too_short() {
    let mut b = Bed::new(|_| ());
    b.say(1, ALL, st(2));
    let whole = frame(st(2), st(1), 0);
    b.rig.arrive(0, [whole[..13].to_vec(), whole[..14].to_vec(), vec![], whole[..15].to_vec()]);
    b.rig.run(&mut b.graph);
    let lengths: Vec<usize> = b.rig.sent(1).iter().map(Vec::len).collect();
    assert_eq!((lengths, b.drops(DropReason::TooShort)), (vec![14, 15], 2));
    b.finish();
}

#[test]
fn a_header_in_two_buffers_is_a_header() {
    let mut b = Bed::new(|_| ());
    b.say(1, ALL, st(2));
    let mut batch = b.rig.in_two(&frame(st(2), st(1), 0)[..14], 9, 0);
    b.graph.inject(&mut batch, b.rig.now);
    assert_eq!((b.rig.sent(1), b.port_of(1)), (vec![frame(st(2), st(1), 0)[..14].to_vec()], Some(0)));
    b.graph.breathe(b.rig.now, false);
    drop((b.graph, batch));
    assert_eq!((b.rig.home(), b.rig.local.lost()), (512, 0));
}

#[test]
fn a_flood_without_buffers_loses_copies_only() {
    let mut b = Bed::with_buffers(64, |_| ());
    b.rig.arrive(0, (0..20).map(|n| frame(ALL, st(1), n)));
    b.rig.run(&mut b.graph);
    let out = PORTS.map(|p| numbers(&b.rig.sent(p)));
    // 44 buffers for 40 copies; then 24 for 80.
    assert_eq!(out.each_ref().map(Vec::len), [0, 20, 20, 20]);
    b.rig.arrive(0, (0..40).map(|n| frame(ALL, st(1), n)));
    b.rig.run(&mut b.graph);
    let out = PORTS.map(|p| numbers(&b.rig.sent(p)));
    assert_eq!(out[1], (0..40).collect::<Vec<_>>(), "the originals");
    assert_eq!(
        (&out[2], &out[3]),
        (&(0..12).collect(), &(0..12).collect()),
        "the copies of the first twelve"
    );
    assert_eq!((b.meter().created, b.drops(DropReason::NoBuffer)), (120, 56));
    b.finish();
}

#[test]
fn ports_come_and_go() {
    let mut b = Bed::new(|_| ());
    for p in PORTS {
        b.say(p, ALL, st(p));
    }
    b.switch().set_ports(&[3, 1, 0], &[]).unwrap();
    assert_eq!((b.port_of(2), b.note("flushed"), b.note("stations")), (None, 1, 3));
    assert_eq!(b.say(0, st(2), st(0)), [1, 3], "no longer known, and its port is none of the bridge's");
    assert_eq!(b.say(0, st(3), st(0)), [3], "others are known as before");
    assert!(b.say(2, st(0), st(2)).is_empty());
    assert_eq!((b.drops(DropReason::Filtered), b.note("unknown_port"), b.port_of(2)), (1, 1, None));
    assert_eq!(b.switch().set_ports(&[0, 0], &[]), Err(StageError::PortTwice(0)));
    assert_eq!(b.say(0, st(3), st(0)), [3], "what cannot be changes nothing");
    b.switch().set_ports(&PORTS, &[0, 2]).unwrap();
    assert_eq!(b.say(2, ALL, st(2)), [1, 3]);
    b.switch().set_ports(&[0], &[]).unwrap();
    assert!(b.say(0, ALL, st(0)).is_empty(), "alone");
    assert_eq!(b.drops(DropReason::Filtered), 2);
    b.finish();
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let rig = Rig::new(64);
    let refuse = |change: &dyn Fn(&mut L2SwitchConfig)| {
        let mut c = L2SwitchConfig::new(&PORTS);
        change(&mut c);
        L2Switch::new(&c, rig.pool, HZ, 1).err().unwrap().to_string()
    };
    assert_eq!(refuse(&|c| c.table = 0), "a table of 0 stations: use 1 to 1048576");
    assert_eq!(refuse(&|c| c.table = 2 << 20), "a table of 2097152 stations: use 1 to 1048576");
    assert!(refuse(&|c| c.ageing = Duration::ZERO).starts_with("stations forgotten after 0ns"));
    assert!(refuse(&|c| c.isolated = vec![4]).starts_with("port 4 is to be isolated"));
    assert_eq!(refuse(&|c| c.ports = vec![1, 1]), "port 1 is named twice: name each port once");
}
