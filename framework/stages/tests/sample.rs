//! A sampler in a graph, without devices.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;
mod spy;

use graph::{self, Graph, GraphBuilder, OnFull, To};
use mem::{Batch, Ext, Flags, Meta};
use meter::DropReason;
use rig::{Rig, numbered, numbers};
use ringwright_stages::{Choice, Sample, SampleConfig, StageError};
use spy::{Seen, Spy};

fn bed(buffers: usize, config: SampleConfig) -> (Rig, Graph) {
    let mut rig = Rig::new(buffers);
    let mut b = GraphBuilder::new(&rig.local);
    let s = b.add("s", Box::new(Sample::new(&config, rig.pool, 1).unwrap()));
    b.join(s, "out", To::Tx(0)).unwrap();
    b.join(s, "sample", To::Tx(1)).unwrap();
    let mut g = b.build(To::Node(s)).unwrap();
    rig.add_ports(&mut g, &[0, 1], OnFull::Drop);
    (rig, g)
}
const fn every(n: u32, length: Option<u16>) -> SampleConfig {
    SampleConfig { choice: Choice::Every(n), length, seed: None }
}

#[test]
fn every_seventh_over_bursts_of_any_size() {
    let (mut rig, mut g) = bed(256, every(7, None));
    let (mut from, mut copies) = (0, Vec::new());
    for n in [1, 6, 1, 64, 3, 20] {
        rig.arrive(0, numbered(from..from + n));
        rig.run(&mut g);
        from += n;
        assert_eq!(rig.sent(0).len(), n as usize, "all pass");
        copies.extend(numbers(&rig.sent(1)));
    }
    assert_eq!(copies, (0..from).step_by(7).collect::<Vec<_>>());
    let (_, kind, meter, notes) = g.stages().next().unwrap();
    assert_eq!((kind, meter.created, notes), ("sample", 14, vec![("sampled", 14)]));
    rig.finish(g);
}

#[test]
fn the_same_seed_chooses_the_same_packets_and_another_does_not() {
    let chosen = |seed| {
        let (mut rig, mut g) =
            bed(256, SampleConfig { choice: Choice::OneIn(10), length: None, seed: Some(seed) });
        let mut copies = Vec::new();
        for n in 0..30 {
            rig.arrive(0, numbered(64 * n..64 * n + 64));
            rig.run(&mut g);
            copies.extend(numbers(&rig.sent(1)));
        }
        rig.finish(g);
        copies
    };
    let first = chosen(5);
    assert_eq!(first, chosen(5));
    assert_ne!(first, chosen(6));
    // 192 of 1920, with a standard deviation of 13.
    assert!((127..=257).contains(&first.len()), "{}", first.len());
}

#[test]
fn without_buffers_the_originals_still_go() {
    for length in [None, Some(20)] {
        let (mut rig, mut g) = bed(64, every(1, length));
        rig.arrive(0, numbered(0..60));
        rig.run(&mut g);
        assert_eq!((rig.sent(0).len(), rig.sent(1).len()), (60, 4));
        let meter = *g.stages().next().unwrap().2;
        assert_eq!((meter.created, meter.drops.of(DropReason::NoBuffer)), (60, 56));
        rig.finish(g);
    }
}

/// Sends one frame through; returns the original and the copy as they left.
fn one(length: Option<u16>, pieces: &[&[u8]], flags: Flags, ext: Ext) -> (Seen, Seen) {
    let rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let s = b.add("s", Box::new(Sample::new(&every(1, length), rig.pool, 1).unwrap()));
    let (out, sample) = (b.add("out", Box::new(Spy::default())), b.add("sample", Box::new(Spy::default())));
    b.join(s, "out", To::Node(out)).unwrap();
    b.join(s, "sample", To::Node(sample)).unwrap();
    let mut g = b.build(To::Node(s)).unwrap();
    let mut batch = Batch::new(&rig.local);
    spy::push(&mut batch, rig.pool, pieces, Meta { port: 3, flags, ..Meta::default() }, ext);
    g.inject(&mut batch, 1);
    let mut seen = |name: &str| g.stage_mut::<Spy>(name).unwrap().0.pop().unwrap();
    let both = (seen("out"), seen("sample"));
    drop((g, batch));
    assert_eq!((rig.home(), rig.local.lost()), (64, 0));
    both
}
fn known() -> (Flags, Ext) {
    let mut ext = Ext::tagged(77);
    (ext.csum_start, ext.csum_offset, ext.mss, ext.time) = (14, 6, 100, 5);
    (Flags::VLAN.with(Flags::TIME).with(Flags::TSO).with(Flags::TX_L4).with(Flags::L4_GOOD), ext)
}

#[test]
fn whole_copies_have_all_that_is_known() {
    let (flags, ext) = known();
    for pieces in [&[&[1; 60][..]][..], &[&[1; 60], &[2; 100], &[3; 7]]] {
        for length in [None, Some(167)] {
            let (out, sample) = one(length, pieces, flags, ext);
            assert_eq!((out.bytes, out.port, out.flags), (pieces.concat(), 3, sample.flags));
            assert_eq!((sample.bytes, sample.port), (pieces.concat(), 3));
            assert_eq!((sample.ext.vlan, sample.ext.mss, sample.ext.csum_offset), (77, 100, 6));
            assert!(sample.flags.has(Flags::TSO));
        }
    }
}

#[test]
fn copies_that_are_cut_ask_nothing_of_a_device() {
    let (flags, ext) = known();
    for (pieces, length, left) in [
        (&[&[1; 60][..]][..], 20, 20),
        (&[&[1; 10], &[2; 4], &[3; 70]], 20, 20),
        // Never more than a buffer.
        (&[&[1; 100], &[2; 100], &[3; 100]], 299, 192),
    ] {
        let (out, sample) = one(Some(length), pieces, flags, ext);
        assert_eq!((out.bytes, out.ext.mss), (pieces.concat(), 100));
        assert_eq!((&sample.bytes[..], sample.first), (&pieces.concat()[..left], left));
        assert_eq!((sample.port, sample.flags), (3, Flags::VLAN.with(Flags::TIME).with(Flags::L4_GOOD)));
        assert_eq!((sample.ext.vlan, sample.ext.time), (77, 5));
    }
}

#[test]
fn one_in_none_cannot_be() {
    let rig = Rig::new(64);
    let refused = |c| Sample::new(&c, rig.pool, 1).err();
    assert_eq!(refused(every(0, None)), Some(StageError::Sample));
    assert_eq!(refused(every(1, Some(0))), Some(StageError::Sample));
    assert!(StageError::Sample.to_string().contains("at least 1"));
}
