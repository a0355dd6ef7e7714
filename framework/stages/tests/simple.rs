//! Forward, macswap, drop, count and tee, each in a graph, without devices.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;
mod spy;

use graph::{self, AnyStage, Graph, GraphBuilder, OnFull, To};
use mem::{Batch, Ext, Flags, Meta};
use meter::DropReason;
use rig::{Rig, frame, numbered, numbers};
use ringwright_stages::{Count, Drop, Forward, MacSwap, PortMap, Tee};
use spy::Spy;

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

/// One stage, its exits joined, and ports.
fn bed(stage: impl FnOnce(&Rig) -> Box<dyn AnyStage>, exits: &[(&str, To)], ports: &[u16]) -> (Rig, Graph) {
    let mut rig = Rig::new(256);
    let mut b = GraphBuilder::new(&rig.local);
    let s = b.add("s", stage(&rig));
    exits.iter().for_each(|&(exit, to)| b.join(s, exit, to).unwrap());
    let mut g = b.build(To::Node(s)).unwrap();
    rig.add_ports(&mut g, ports, OnFull::Drop);
    (rig, g)
}
fn drops(g: &Graph, reason: DropReason) -> u64 {
    g.stages().next().unwrap().2.drops.of(reason)
}
#[test]
fn forward_sends_every_packet_to_its_ports_partner() {
    let map = PortMap::new([(0, 1), (1, 0), (2, 2), (3, 0)]).unwrap();
    let (mut rig, mut g) = bed(|_| Box::new(Forward::new(map)), &[], &[0, 1, 2, 3, 4]);
    for port in 0..5 {
        rig.arrive(port, numbered(10 * u32::from(port)..10 * u32::from(port) + 3));
    }
    rig.run(&mut g);
    let mut out = [0, 1, 2, 3, 4].map(|p| numbers(&rig.sent(p)));
    out[0].sort_unstable();
    assert_eq!(out, [vec![10, 11, 12, 30, 31, 32], vec![0, 1, 2], vec![20, 21, 22], vec![], vec![]]);
    assert_eq!(drops(&g, DropReason::NoRoute), 3, "port 4 has no partner");
    g.stage_mut::<Forward>("s").unwrap().set_map(PortMap::pairs(&[(0, 4)]).unwrap());
    rig.arrive(0, numbered(0..2));
    rig.run(&mut g);
    assert_eq!(rig.sent(4).len(), 2, "partners change between two breaths");
    rig.finish(g);
}

#[test]
fn forward_takes_batches_of_many_ports_apart() {
    let (rig, mut g) = bed(|_| Box::new(Forward::new(PortMap::pairs(&[(0, 1)]).unwrap())), &[], &[0, 1]);
    let mut batch = Batch::new(&rig.local);
    for (slot, (f, port)) in
        rig.local.take_bulk(rig.pool, 9).zip(numbered(0..9).zip([0, 1, 2].into_iter().cycle()))
    {
        batch.push(slot, 60, Meta { port, ..Meta::default() }).map_err(|s| rig.local.put(s)).unwrap();
        batch.pkt(batch.len() - 1).unwrap().bytes_mut().copy_from_slice(&f);
    }
    g.inject(&mut batch, 1);
    assert_eq!((numbers(&rig.sent(0)), numbers(&rig.sent(1))), (vec![1, 4, 7], vec![0, 3, 6]));
    assert_eq!(drops(&g, DropReason::NoRoute), 3);
    g.breathe(1, false);
    drop((g, batch));
    assert_eq!((rig.home(), rig.local.lost()), (256, 0));
}

#[test]
fn macswap_swaps_and_sends_back_or_to_the_partner() {
    let pair = PortMap::pairs(&[(0, 1)]).unwrap();
    for (pair, back) in [(None, 0), (Some(pair), 1)] {
        let (mut rig, mut g) = bed(|_| Box::new(MacSwap::new(pair)), &[], &[0, 1]);
        rig.arrive(0, [frame(A, B, 5), frame(B, A, 6), vec![1; 13], frame(A, B, 7)[..14].to_vec()]);
        rig.run(&mut g);
        let swapped = [frame(B, A, 5), frame(A, B, 6), frame(B, A, 7)[..14].to_vec()];
        assert_eq!((rig.sent(back), rig.sent(1 - back).len()), (swapped.to_vec(), 0));
        assert_eq!(drops(&g, DropReason::TooShort), 1);
        rig.finish(g);
    }
}

#[test]
fn macswap_with_pairs_drops_what_has_no_partner() {
    let (mut rig, mut g) =
        bed(|_| Box::new(MacSwap::new(Some(PortMap::pairs(&[(0, 1)]).unwrap()))), &[], &[0, 1, 2]);
    rig.arrive(2, numbered(0..4));
    rig.run(&mut g);
    assert_eq!(drops(&g, DropReason::NoRoute), 4);
    rig.finish(g);
}

#[test]
fn drop_drops_for_the_reason_it_was_told() {
    for stage in [Drop::default(), Drop::new(DropReason::Policed)] {
        let (mut rig, mut g) = bed(|_| Box::new(stage), &[], &[0]);
        rig.arrive(0, numbered(0..40));
        rig.run(&mut g);
        let counts = *g.stages().next().unwrap().2;
        let [(reason, 40)] = counts.drops.iter().collect::<Vec<_>>()[..] else {
            panic!("{:?}", counts.drops)
        };
        assert!(matches!(reason, DropReason::Filtered | DropReason::Policed));
        rig.finish(g);
    }
    let (_, g) = bed(|_| Box::new(Drop::new(DropReason::Policed)), &[("policed", To::Tx(0))], &[]);
    assert_eq!(g.stages().count(), 1, "an exit of its name can be joined elsewhere");
}

#[test]
fn count_tells_kinds_apart_and_lets_all_pass() {
    let (mut rig, mut g) = bed(|_| Box::new(Count::new()), &[("out", To::Tx(1))], &[0, 1]);
    let typed = |dst, kind: [u8; 2]| {
        let mut f = frame(dst, A, 0);
        f[12..14].copy_from_slice(&kind);
        f
    };
    let frames = [
        typed(B, [0x08, 0x00]),
        typed(B, [0x86, 0xdd]),
        typed([0xff; 6], [0x08, 0x06]),
        typed([0x01, 0, 0x5e, 0, 0, 1], [0x81, 0x00]),
        typed([0x33, 0x33, 0, 0, 0, 1], [0x88, 0xa8]),
        typed(B, [0x88, 0xcc]),
        vec![0xff; 13],
    ];
    rig.arrive(0, frames.clone());
    rig.run(&mut g);
    assert_eq!(rig.sent(1), frames);
    let c = g.stage_mut::<Count>("s").unwrap().counts();
    assert_eq!((c.packets, c.bytes, c.too_short), (7, 6 * 60 + 13, 1));
    assert_eq!((c.unicast, c.multicast, c.broadcast), (3, 2, 1));
    assert_eq!((c.ipv4, c.ipv6, c.arp, c.vlan, c.other), (1, 1, 1, 2, 1));
    let notes = g.stages().next().unwrap().3;
    assert_eq!((notes[0], notes[1], notes[9]), (("packets", 7), ("bytes", 373), ("other", 1)));
    rig.finish(g);
}

#[test]
fn a_tag_that_the_device_took_out_is_a_tag() {
    let (rig, mut g) = bed(|_| Box::new(Count::new()), &[("out", To::Tx(0))], &[0]);
    let mut batch = Batch::new(&rig.local);
    spy::push(
        &mut batch,
        rig.pool,
        &[&frame(B, A, 1)],
        Meta { flags: Flags::VLAN, ..Meta::default() },
        Ext::tagged(5),
    );
    g.inject(&mut batch, 1);
    let c = g.stage_mut::<Count>("s").unwrap().counts();
    assert_eq!((c.vlan, c.ipv4, c.other, c.unicast), (1, 0, 0, 1));
}

#[test]
fn copies_have_all_that_is_known_of_a_packet() {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let s = b.add("s", Box::new(Tee::new(rig.pool)));
    let spy = b.add("spy", Box::new(Spy::default()));
    b.join(s, "out", To::Node(spy)).unwrap();
    b.join(s, "copy", To::Node(spy)).unwrap();
    let mut g = b.build(To::Node(s)).unwrap();
    let mut ext = Ext::tagged(77);
    (ext.csum_start, ext.csum_offset, ext.mss, ext.l2_len, ext.time) = (34, 16, 1460, 14, 9);
    let flags = Flags::VLAN.with(Flags::TSO).with(Flags::TX_L4).with(Flags::TIME).with(Flags::HASH);
    for pieces in [&[&[1; 60][..]][..], &[&[1; 100], &[2; 150], &[3; 7]]] {
        let mut batch = Batch::new(&rig.local);
        spy::push(&mut batch, rig.pool, pieces, Meta { hash: 6, flags, port: 3 }, ext);
        g.inject(&mut batch, 1);
        let seen = std::mem::take(&mut g.stage_mut::<Spy>("spy").unwrap().0);
        let [original, copy] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((&copy.bytes, copy.port, copy.flags), (&pieces.concat(), 3, original.flags));
        for s in [original, copy] {
            assert_eq!((s.ext.vlan, s.ext.mss, s.ext.l2_len, s.ext.time), (77, 1460, 14, 9));
            assert_eq!((s.ext.csum_start, s.ext.csum_offset), (34, 16));
        }
    }
    drop(g);
    assert_eq!((rig.home(), rig.local.lost()), (64, 0));
}

#[test]
fn tee_copies_every_packet_with_its_mark() {
    let (mut rig, mut g) =
        bed(|rig| Box::new(Tee::new(rig.pool)), &[("out", To::Marked), ("copy", To::Tx(9))], &[0, 1, 9]);
    rig.arrive(0, numbered(0..5));
    rig.arrive(1, numbered(5..8));
    rig.run(&mut g);
    assert_eq!((numbers(&rig.sent(0)), numbers(&rig.sent(1))), ((0..5).collect(), (5..8).collect()));
    let mut copies = numbers(&rig.sent(9));
    // Which port is asked first is the graph's business.
    copies.sort_unstable();
    assert_eq!(copies, (0..8).collect::<Vec<_>>());
    assert_eq!(g.stages().next().unwrap().2.created, 8);
    rig.finish(g);
    let (mut rig, mut g) =
        bed(|rig| Box::new(Tee::new(rig.pool)), &[("out", To::Tx(9)), ("copy", To::Marked)], &[0, 1, 9]);
    rig.arrive(1, numbered(0..3));
    rig.run(&mut g);
    assert_eq!((numbers(&rig.sent(1)), numbers(&rig.sent(9))), (vec![0, 1, 2], vec![0, 1, 2]));
    rig.finish(g);
}

#[test]
fn a_header_in_two_buffers_is_a_header() {
    let whole = &frame(A, B, 5)[..14];
    let (rig, mut g) = bed(|_| Box::new(MacSwap::new(None)), &[], &[0]);
    for cut in [0, 5, 13] {
        g.inject(&mut rig.in_two(whole, cut, 0), 1);
        assert_eq!(rig.sent(0), [&frame(B, A, 5)[..14]], "cut at {cut}");
    }
    g.breathe(1, false);
    drop(g);
    assert_eq!((rig.home(), rig.local.lost()), (256, 0));
    let (rig, mut g) = bed(|_| Box::new(Count::new()), &[("out", To::Tx(0))], &[0]);
    g.inject(&mut rig.in_two(whole, 6, 0), 1);
    let c = g.stage_mut::<Count>("s").unwrap().counts();
    assert_eq!((c.bytes, c.too_short, c.ipv4), (14, 0, 1));
    g.breathe(1, false);
    drop(g);
    assert_eq!((rig.home(), rig.local.lost()), (256, 0));
}
