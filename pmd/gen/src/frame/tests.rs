//! Frames are valid, what was done to them shows, and nothing that comes in does harm.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wire::vlan;

use super::*;
use crate::run::Run;

const SEED: u64 = 0xfeed_beef_0123_4567;
const NONE: Flags = Flags(0);

fn profile(sizes: &str, addresses: Addresses) -> Profile {
    Profile { flows: 5, sizes: sizes.parse().unwrap(), addresses, ..Profile::default() }
}

fn run(sizes: &str, addresses: Addresses) -> std::sync::Arc<Run> {
    Run::new(&profile(sizes, addresses), 1, SEED).unwrap()
}

fn mark(flow: u32, number: u64) -> Mark {
    Mark { flow, number, time: 0x12_3456_789a }
}

/// The frame of `mark`, as long as its number says.
fn made(run: &Run, sizes: &str, mark: Mark) -> Vec<u8> {
    let size = sizes.parse::<Sizes>().unwrap().of(mark.flow, mark.number);
    let mut frame = vec![0xaa; run.lens[size].bytes.into()];
    match &run.family {
        crate::run::Family::V4(f) => f.write(&mut frame, mark, size),
        crate::run::Family::V6(f) => f.write(&mut frame, mark, size),
    }
    frame
}

const V4_SIZES: [&str; 6] = ["64", "65", "66", "127", "1518", "imix"];
const V6_SIZES: [&str; 4] = ["84", "85", "1518", "84:3,594:2,1501:1"];

fn all() -> impl Iterator<Item = (&'static str, Addresses)> {
    V4_SIZES.map(|s| (s, Addresses::V4)).into_iter().chain(V6_SIZES.map(|s| (s, Addresses::V6)))
}

#[test]
fn frames_are_valid_to_somebody_else() {
    for (sizes, addresses) in all() {
        let run = run(sizes, addresses);
        for m in (0..5).flat_map(|flow| [0, 1, 2, 77, (1 << 40) - 1].map(|n| mark(flow, n))) {
            let frame = made(&run, sizes, m);
            let p = SlicedPacket::from_ethernet(&frame).unwrap();
            let Some(TransportSlice::Udp(udp)) = p.transport else { panic!("no UDP") };
            assert_eq!((u32::from(udp.source_port()), udp.destination_port()), (1024 + m.flow, 9));
            let (payload, header) = (udp.payload(), udp.to_header());
            match p.net {
                Some(NetSlice::Ipv4(ip)) => {
                    let ip = ip.header().to_header();
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    assert_eq!(usize::from(ip.total_len), frame.len() - 14);
                    assert_eq!(
                        (ip.source, ip.destination[3]),
                        ([198, 18, 0, m.flow as u8 + 1], m.flow as u8 + 1)
                    );
                    assert_eq!(header.checksum, header.calc_checksum_ipv4(&ip, payload).unwrap());
                }
                Some(NetSlice::Ipv6(ip)) => {
                    let ip = ip.header().to_header();
                    assert_eq!(usize::from(ip.payload_length), frame.len() - 54);
                    assert_eq!(header.checksum, header.calc_checksum_ipv6(&ip, payload).unwrap());
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(run.read(&frame, NONE), Seen::Intact(m), "{sizes}");
        }
    }
}

#[test]
fn any_changed_byte_shows() {
    for (sizes, addresses) in all() {
        let run = run(sizes, addresses);
        // What a bridge or router may change without a checksum over it: Ethernet addresses; IPv6's class, label, hops.
        let free: &[usize] = if matches!(addresses, Addresses::V6 { .. }) { &[15, 16, 17, 21] } else { &[] };
        let frame = made(&run, sizes, mark(3, 8));
        for i in (12..frame.len()).filter(|i| !free.contains(i)) {
            for change in [0x01, 0x10, 0x80, 0xff] {
                if i == 14 && !free.is_empty() && change < 0x10 {
                    continue; // the upper half of the class
                }
                let mut bad = frame.clone();
                bad[i] ^= change;
                let seen = run.read(&bad, NONE);
                assert!(matches!(seen, Seen::Changed(_)), "{sizes}: byte {i} ^ {change:#x}: {seen:?}");
            }
        }
    }
}

#[test]
fn what_is_cut_off_shows_as_long_as_it_can_be_told_whose_it_is() {
    for (sizes, addresses) in all() {
        let run = run(sizes, addresses);
        let frame = made(&run, sizes, mark(1, 3));
        let tag = head_len(&addresses) - Tag::LEN;
        for len in 0..frame.len() {
            let seen = run.read(&frame[..len], NONE);
            if len >= tag + 4 {
                assert!(matches!(seen, Seen::Changed(_)), "{sizes}: {len} bytes: {seen:?}");
            } else {
                assert_eq!(seen, Seen::Foreign);
            }
        }
    }
}

#[test]
fn a_part_of_another_frame_shows() {
    let run = run("1518", Addresses::V4);
    let [mut a, b] = [mark(1, 3), mark(1, 4)].map(|m| made(&run, "1518", m));
    a[700..].copy_from_slice(&b[700..]);
    assert_eq!(run.read(&a, NONE), Seen::Changed(Some(mark(1, 3))));
}

#[test]
fn bridges_and_routers_may_do_their_work() {
    for (sizes, addresses) in [("64", Addresses::V4), ("imix", Addresses::V4), ("84", Addresses::V6)] {
        let run = run(sizes, addresses);
        let m = mark(4, 5);
        let frame = made(&run, sizes, m);
        let mut routed = frame.clone();
        routed[..12].copy_from_slice(&[7; 12]);
        match Layers::parse(&frame).ipv4_in(&mut routed[..]) {
            Some(mut ip) => {
                ip.ttl -= 1;
                ip.dscp_ecn = 0x2e << 2;
                ip.src = [10, 0, 0, 1];
                ip.fill_checksum();
            }
            None => routed[21] -= 1,
        }
        assert!(wire::checksum::fill_l4(&mut routed, &Layers::parse(&frame)));
        assert_eq!(run.read(&routed, NONE), Seen::Intact(m), "addresses translated: {sizes}");

        let mut tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert_eq!(Layers::parse(&tagged).vlans().len(), 1);
        assert_eq!(run.read(&tagged, NONE), Seen::Intact(m), "a VLAN tag: {sizes}");
        let last = tagged.len() - 1;
        tagged[last] ^= 1;
        assert!(matches!(run.read(&tagged, NONE), Seen::Changed(_)));

        let padded = [&frame[..], &[0; 9]].concat();
        assert_eq!(run.read(&padded, NONE), Seen::Intact(m), "padding: {sizes}");
    }
    // The view that inserts tags agrees that these are tags.
    assert_eq!(vlan::TAG_LEN, 4);
}

#[test]
fn checksums_that_are_still_to_be_put_in_are_not_missed() {
    let run = run("100", Addresses::V4);
    let mut frame = made(&run, "100", mark(0, 0));
    frame[40..42].copy_from_slice(&[0, 0]);
    assert_eq!(run.read(&frame, NONE), Seen::Changed(Some(mark(0, 0))), "there was one");
    assert_eq!(run.read(&frame, Flags::TX_L4), Seen::Intact(mark(0, 0)));
    frame[24] ^= 1;
    assert_eq!(run.read(&frame, Flags::TX_L4), Seen::Changed(Some(mark(0, 0))));
    assert_eq!(run.read(&frame, Flags::TX_L4.with(Flags::TX_L3)), Seen::Intact(mark(0, 0)));
}

#[test]
fn frames_of_other_runs_are_foreign() {
    let [run, other] = [SEED, !SEED].map(|s| Run::new(&profile("imix", Addresses::V4), 1, s).unwrap());
    for n in 0..100 {
        assert_eq!(run.read(&made(&other, "imix", mark(2, n)), NONE), Seen::Foreign);
    }
    let v6 = Run::new(&profile("84", Addresses::V6), 1, !SEED).unwrap();
    assert_eq!(run.read(&made(&v6, "84", mark(2, 0)), NONE), Seen::Foreign);
}

#[test]
fn a_flow_that_there_is_not_is_not_believed() {
    let many = Profile { flows: 100, ..profile("64", Addresses::V4) };
    let more = Run::new(&many, 1, SEED).unwrap();
    let run = run("64", Addresses::V4);
    assert_eq!(run.read(&made(&more, "64", mark(99, 0)), NONE), Seen::Changed(None));
}

fn seeded() -> ProptestConfig {
    let cases = if cfg!(miri) { 8 } else { 2000 };
    ProptestConfig {
        rng_seed: RngSeed::Fixed(791),
        failure_persistence: None,
        cases,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn bytes_from_anywhere_are_foreign(bytes in prop::collection::vec(any::<u8>(), 0..2000), flags: u16) {
        for addresses in [Addresses::V4, Addresses::V6] {
            let run = run(if matches!(addresses, Addresses::V4 { .. }) { "imix" } else { "84" }, addresses);
            prop_assert_eq!(run.read(&bytes, Flags(flags)), Seen::Foreign);
        }
    }

    #[test]
    fn frames_that_somebody_tampered_with_do_no_harm(
        flow in 0u32..5, number in 0u64..1000, len in 0usize..1600, flags: u16,
        changes in prop::collection::vec((0usize..1600, any::<u8>()), 0..12),
    ) {
        for (sizes, addresses) in [("imix", Addresses::V4), ("84:1,1518:1", Addresses::V6)] {
            let run = run(sizes, addresses);
            let m = mark(flow, number);
            let whole = made(&run, sizes, m);
            let mut frame = whole.clone();
            frame.resize(len, 0x55);
            for (at, byte) in &changes {
                if let Some(b) = frame.get_mut(*at) {
                    *b = *byte;
                }
            }
            if let Seen::Intact(seen) = run.read(&frame, Flags(flags)) {
                prop_assert_eq!(seen, m);
                let start = head_len(&addresses) - Tag::LEN;
                prop_assert_eq!(&frame[start..whole.len()], &whole[start..], "intact is intact");
            }
        }
    }
}
