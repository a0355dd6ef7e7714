//! The receive side against descriptors written by hand.

mod rig;

use ixgbe_defs::{PacketType, RssType, RxDesc, regs, rx_error, rx_status, stats};
use rig::{DESCRIPTORS, Rig, frame, parameters, queue};
use ring::DescRing;
use ringwright_ixgbe_model::{Cause, Count, Direction, Parameters};

fn count(rig: &Rig, c: Count) -> u64 {
    rig.model.device().count(c)
}

/// A frame from `etherparse`, UDP over IPv4.
fn udp(source: [u8; 4], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1])
        .ipv4(source, [161, 142, 100, 80], 64)
        .udp(ports[0], ports[1])
        .write(&mut out, payload)
        .expect("a frame");
    out
}

#[test]
fn a_frame_lands_in_the_posted_buffer_and_the_next_in_the_next() {
    let mut rig = Rig::new(parameters());
    rig.post(3);
    rig.model.wire(|w| (1..=2).for_each(|n| w.push(frame(n, 60 + usize::from(n)))));
    rig.model.step();
    for n in [1, 2] {
        let (d, bytes) = rig.received(n - 1).expect("done");
        assert_eq!(
            (d.status(), d.errors(), bytes),
            (rx_status::DD | rx_status::EOP, 0, frame(n as u8, 60 + n as usize))
        );
    }
    assert!(rig.rx.poll(2).is_none());
    assert_eq!(rig.bar.read32(regs::rdh(queue(0))), 2);
}

#[test]
fn many_laps_keep_order_and_every_frame() {
    let mut rig = Rig::new(Parameters { rx_fetch: 5, rx_write_back: 3, ..parameters() });
    let (mut next, mut sent) = (0, 0u32);
    rig.post(DESCRIPTORS - 1);
    for round in 0..60 {
        for _ in 0..1 + round % 7 {
            rig.model.wire(|w| w.push(frame(sent as u8, 60 + (sent as usize * 37) % 1400)));
            sent += 1;
        }
        rig.model.step();
        while let Some((_, bytes)) = rig.received(next) {
            assert_eq!(bytes, frame(next as u8, 60 + (next as usize * 37) % 1400));
            next += 1;
            rig.post(1);
        }
    }
    assert_eq!((next, count(&rig, Count::RxToHost)), (sent, sent.into()));
}

#[test]
fn a_long_frame_takes_several_descriptors_and_only_the_last_says_end() {
    let mut rig = Rig::new(parameters());
    rig.bar.modify32(regs::HLREG0, regs::hlreg0::JUMBOEN, regs::hlreg0::JUMBOEN);
    rig.bar.write32(regs::MAXFRS, 9728 << regs::maxfrs::MFS_SHIFT);
    rig.post(8);
    rig.model.wire(|w| w.push(frame(7, 9600)));
    rig.model.step();
    let pieces: Vec<_> = (0..5).map(|p| rig.received(p).expect("done")).collect();
    let ends: Vec<_> = pieces.iter().map(|(d, _)| d.status() & rx_status::EOP != 0).collect();
    assert_eq!(ends, [false, false, false, false, true]);
    assert_eq!(pieces.iter().flat_map(|(_, b)| b.clone()).collect::<Vec<_>>(), frame(7, 9600));
    assert!(rig.rx.poll(5).is_none());
    assert_eq!(rig.bar.read32(stats::PRC1522), 1);
}

#[test]
fn lengths_are_judged_with_crc_and_tags_have_four_bytes_more() {
    let mut rig = Rig::new(parameters());
    rig.post(8);
    let tagged = |len| {
        let mut f = frame(3, len);
        f[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
        f
    };
    rig.model.wire(|w| {
        w.push(frame(1, 59));
        w.push_bad_crc(frame(1, 59));
        w.push(frame(2, 1514));
        w.push(frame(2, 1515));
        w.push(tagged(1518));
        w.push(tagged(1519));
        w.push_bad_crc(frame(2, 1515));
        w.push_bad_crc(frame(2, 100));
    });
    rig.model.step();
    let counted = [stats::RUC, stats::RFC, stats::ROC, stats::RJC, stats::CRCERRS, stats::GPRC];
    assert_eq!(counted.map(|r| rig.bar.read32(r)), [1, 1, 2, 1, 1, 2]);
    assert_eq!(
        (rig.received(0).expect("done").0.len(), rig.received(1).expect("done").0.len()),
        (1514, 1518)
    );
}

#[test]
fn a_bad_frame_is_stored_when_asked_and_the_crc_is_kept_when_asked() {
    let mut rig = Rig::new(parameters());
    rig.bar.modify32(regs::FCTRL, regs::fctrl::SBP, regs::fctrl::SBP);
    rig.bar.modify32(regs::HLREG0, regs::hlreg0::RXCRCSTRP, 0);
    rig.post(4);
    rig.model.wire(|w| {
        w.push_bad_crc(frame(1, 60));
        w.push(b"123456789".repeat(7));
    });
    rig.model.step();
    assert_eq!(rig.received(0).expect("done").0.errors(), rx_error::RXE);
    let (d, bytes) = rig.received(1).expect("done");
    assert_eq!((d.len(), d.errors(), bytes.len()), (67, 0, 67));
    assert_eq!((rig.bar.read32(stats::GPRC), rig.bar.read32(stats::CRCERRS)), (1, 1));
}

#[test]
fn address_filters_let_through_what_they_should() {
    let mut rig = Rig::new(parameters());
    rig.bar.write32(regs::FCTRL, 0);
    rig.post(16);
    let to = |a: [u8; 6]| {
        let mut f = frame(0, 60);
        f[..6].copy_from_slice(&a);
        f
    };
    let (own, other) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let (group, all) = ([1, 0, 0x5E, 0, 0, 0x12], [0xFF; 6]);
    let offer = |rig: &Rig| {
        rig.model.wire(|w| [own, other, group, all].iter().for_each(|a| w.push(to(*a))));
        let before = count(rig, Count::RxGood);
        rig.model.step();
        count(rig, Count::RxGood) - before
    };
    assert_eq!(offer(&rig), 1, "its own address");
    rig.bar.write32(regs::FCTRL, regs::fctrl::BAM);
    assert_eq!(offer(&rig), 2, "and broadcasts");
    rig.bar.write32(regs::FCTRL, regs::fctrl::MPE | regs::fctrl::UPE);
    assert_eq!(offer(&rig), 3, "promiscuous, but for broadcasts");
    rig.bar.write32(regs::FCTRL, 0);
    rig.bar.write32(regs::ral(1), 0x0000_0002);
    rig.bar.write32(regs::rah(1), 0x0200 | regs::rah_bits::AV);
    assert_eq!(offer(&rig), 2, "a second address");
    // Bits 47:36 of 01:00:5E:00:00:12 are those of its last 12 bits: 0x120.
    rig.bar.write32(regs::mta(0x120 >> 5), 1 << (0x120 & 31));
    rig.bar.write32(regs::MCSTCTRL, regs::mcstctrl::MFE);
    assert_eq!(offer(&rig), 3, "and the multicast hash");
    let last = rig.received(10).expect("done").0;
    assert_eq!(last.status() & rx_status::PIF, rx_status::PIF, "which may be wrong, and says so");
    assert_eq!(count(&rig, Count::RxFiltered), 3 + 2 + 1 + 2 + 1);
}

#[test]
fn vlan_tags_are_filtered_and_stripped() {
    let mut rig = Rig::new(parameters());
    rig.bar.modify32(regs::rxdctl(queue(0)), regs::rxdctl_bits::ENABLE, 0);
    rig.model.step();
    rig.bar.write32(regs::rxdctl(queue(0)), regs::rxdctl_bits::ENABLE | regs::rxdctl_bits::VME);
    rig.bar.modify32(regs::VLNCTRL, regs::vlnctrl::VFE, regs::vlnctrl::VFE);
    rig.bar.write32(regs::vfta(100 >> 5), 1 << (100 & 31));
    rig.post(4);
    let tagged = |vid: u16| {
        let mut f = frame(9, 64);
        f.splice(12..12, [0x81, 0, 0x60 | (vid >> 8) as u8, vid as u8]);
        f
    };
    rig.model.wire(|w| {
        w.push(tagged(101));
        w.push(tagged(100));
        w.push(frame(8, 64));
    });
    rig.model.settle(4);
    let (d, bytes) = rig.received(0).expect("done");
    assert_eq!((d.vlan(), d.status() & rx_status::VP, bytes), (0x6000 | 100, rx_status::VP, frame(9, 64)));
    let (d, bytes) = rig.received(1).expect("done");
    assert_eq!((d.status() & rx_status::VP, bytes), (0, frame(8, 64)));
    assert_eq!(count(&rig, Count::RxFiltered), 1);
}

#[test]
fn checksums_and_packet_type_are_reported() {
    let mut rig = Rig::new(parameters());
    rig.post(4);
    let good = udp([10, 0, 0, 1], [7, 9], &[1; 30]);
    let mut bad = good.clone();
    bad[50] ^= 1;
    rig.model.wire(|w| {
        w.push(good);
        w.push(bad);
    });
    rig.model.step();
    let checked = rx_status::IPCS | rx_status::L4CS | rx_status::UDPCS | rx_status::UDPV;
    for (pos, errors) in [(0, 0), (1, rx_error::L4E)] {
        let d = rig.received(pos).expect("done").0;
        assert_eq!((d.status() & checked, d.errors()), (checked, errors));
        assert!(d.packet_type().has(PacketType::IPV4 | PacketType::UDP));
    }
    assert_eq!(rig.bar.read32(stats::XEC), 1);
}

#[test]
fn rss_hashes_and_spreads() {
    let mut rig = Rig::new(parameters());
    let mut other: DescRing<RxDesc> =
        DescRing::new(rig.bus.dma(DESCRIPTORS as usize * 16, None).expect("memory"), rig.rx.size())
            .expect("fits");
    rig.rx_queue(queue(3), &other, 2);
    let key: Vec<u8> = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
        .as_bytes()
        .chunks(2)
        .map(|h| u8::from_str_radix(core::str::from_utf8(h).expect("ascii"), 16).expect("hex"))
        .collect();
    for (n, w) in key.as_chunks::<4>().0.iter().enumerate() {
        rig.bar.write32(regs::rssrk(n as u32), u32::from_le_bytes(*w));
    }
    // The suite's first case: 66.9.149.187:2794 to 161.142.100.80:1766. UDP by addresses: 0x323e8fc2, entry 0x42.
    rig.bar.write32(regs::reta(0x42 / 4), 3 << (0x42 % 4 * 8));
    rig.bar.write32(regs::MRQC_ALIAS, regs::mrqc::MRQE_RSS | regs::mrqc::IPV4);
    rig.bar.write32(regs::RXCSUM, regs::rxcsum::PCSD);
    other.store(0, RxDesc::post(rig.buffer(16), 0));
    rig.bar.write32(regs::rdt(queue(3)), 1);
    rig.post(4);
    rig.model.wire(|w| {
        w.push(udp([66, 9, 149, 187], [2794, 1766], &[5; 20]));
        w.push(frame(4, 60));
    });
    rig.model.settle(4);
    let d = other.poll(0).expect("in queue 3");
    assert_eq!((d.rss_hash(), d.rss_type()), (0x323e_8fc2, RssType::IPV4));
    let d = rig.received(0).expect("what is not IP goes to queue 0").0;
    assert_eq!((d.rss_hash(), d.rss_type()), (0, RssType::NONE));
    rig.bar.write32(regs::MRQC, regs::mrqc::MRQE_RSS | regs::mrqc::IPV4 | regs::mrqc::UDP_IPV4);
    rig.model.wire(|w| w.push(udp([66, 9, 149, 187], [2794, 1766], &[5; 20])));
    rig.model.settle(4);
    let d = rig.received(1).expect("entry 0x78 is of queue 0").0;
    assert_eq!((d.rss_hash(), d.rss_type()), (0x51cc_c178, RssType::UDP_IPV4));
}

#[test]
fn without_descriptors_frames_wait_and_then_are_missed() {
    let mut rig = Rig::new(parameters());
    rig.bar.write32(regs::rxpbsize(0), 1 << regs::PBSIZE_SHIFT);
    rig.model.wire(|w| (0..20).for_each(|n| w.push(frame(n, 100))));
    rig.model.settle(4);
    assert_eq!((count(&rig, Count::RxMissed), rig.bar.read32(stats::mpc(0))), (10, 10));
    assert_ne!(rig.bar.read32(regs::EICR) & regs::eicr::RX_MISS, 0);
    rig.post(20);
    rig.model.settle(4);
    for n in 0..10 {
        assert_eq!(rig.received(n).expect("it waited").1, frame(n as u8, 100));
    }
    assert!(rig.rx.poll(10).is_none());
    assert_eq!(count(&rig, Count::RxGood), count(&rig, Count::RxToHost) + count(&rig, Count::RxMissed));
}

#[test]
fn with_drop_enabled_they_are_dropped_at_once_and_counted() {
    let mut rig = Rig::new(parameters());
    rig.bar.modify32(regs::rxdctl(queue(0)), regs::rxdctl_bits::ENABLE, 0);
    rig.model.step();
    rig.rx_queue(queue(0), &rig.rx, 2 | regs::srrctl_bits::DROP_EN);
    rig.post(2);
    rig.model.wire(|w| (0..5).for_each(|n| w.push(frame(n, 100))));
    rig.model.settle(4);
    assert_eq!((rig.bar.read32(stats::qprdc(0)), rig.bar.read32(stats::mpc(0))), (3, 0));
    assert_eq!((rig.bar.read32(stats::qprc(0)), rig.bar.read32(stats::GPRC)), (2, 5));
}

#[test]
fn with_pause_they_stay_on_the_wire() {
    let mut rig = Rig::new(Parameters { pause: true, ..parameters() });
    rig.model.wire(|w| (0..20).for_each(|n| w.push(frame(n, 100))));
    rig.model.settle(9);
    assert_eq!(rig.model.wire(|w| w.waiting()), 19);
    rig.post(21);
    rig.model.settle(9);
    assert_eq!((rig.model.wire(|w| w.waiting()), count(&rig, Count::RxToHost)), (0, 20));
}

#[test]
fn fetches_and_write_backs_are_grouped_as_set() {
    for (fetch, group) in [(1, 1), (4, 2), (8, 8), (32, 16)] {
        let mut rig = Rig::new(Parameters { rx_fetch: fetch, rx_write_back: group, ..parameters() });
        rig.post(16);
        rig.model.wire(|w| (0..16).for_each(|n| w.push(frame(n, 60))));
        rig.model.settle(4);
        let tally = rig.model.device().tally(Direction::Rx, queue(0));
        let ops = [Cause::DescRead, Cause::CompletionWrite, Cause::PayloadWrite, Cause::MmioWrite]
            .map(|c| tally.ops(c));
        assert_eq!(ops[..3], [16u64.div_ceil(fetch as u64), 16 / group as u64, 16]);
        assert_eq!((tally.bytes(Cause::DescRead), tally.bytes(Cause::CompletionWrite)), (256, 256));
        let log = rig.model.device().take_log();
        for cause in Cause::ALL.into_iter().skip(2) {
            let logged = log.iter().filter(|e| e.cause == cause).count() as u64;
            assert_eq!(logged, tally.ops(cause), "{}", cause.name());
        }
        let tails = log
            .iter()
            .filter(|e| e.cause == Cause::MmioWrite && e.address == u64::from(regs::rdt(queue(0)).0));
        assert_eq!(tails.count(), 1);
    }
}

#[test]
fn an_access_to_what_is_not_mapped_is_recorded_and_stops_the_queue() {
    let mut rig = Rig::new(parameters());
    rig.post(1);
    rig.rx.store(1, RxDesc::post(0xDEAD_0000, 0));
    rig.rx_tail = 2;
    rig.post(2);
    rig.model.wire(|w| (0..3).for_each(|n| w.push(frame(n, 60))));
    rig.model.settle(4);
    let faults = rig.model.device().faults();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].cause, faults[0].address, faults[0].bytes), (Cause::PayloadWrite, 0xDEAD_0000, 60));
    assert_eq!(faults[0].queue, (Direction::Rx, queue(0)));
    assert!(rig.rx.poll(1).is_none() && rig.rx.poll(2).is_none());
    assert_eq!((count(&rig, Count::Faults), count(&rig, Count::RxNoQueue)), (1, 1));
    // Off and on again brings it back.
    rig.bar.write32(regs::rxdctl(queue(0)), 0);
    rig.model.step();
    rig.bar.write32(regs::rdt(queue(0)), 0);
    rig.bar.write32(regs::rdh(queue(0)), 0);
    rig.bar.write32(regs::rxdctl(queue(0)), regs::rxdctl_bits::ENABLE);
    rig.model.step();
    rig.rx_tail = 0;
    rig.post(4);
    rig.model.wire(|w| w.push(frame(9, 60)));
    rig.model.settle(4);
    assert_eq!(rig.received(0).expect("it works again").1, frame(9, 60));
}

#[test]
fn after_a_reset_memory_is_left_alone() {
    let mut rig = Rig::new(parameters());
    rig.post(8);
    rig.model.step();
    rig.bar.write32(regs::CTRL, regs::ctrl::RST);
    rig.model.step();
    rig.model.device().take_log();
    rig.model.wire(|w| w.push(frame(1, 60)));
    rig.model.settle(9);
    assert!(rig.rx.poll(0).is_none());
    assert!(rig.model.device().take_log().is_empty());
    assert_eq!(rig.model.wire(|w| w.waiting()), 1, "reception is off");
}

#[test]
fn a_swallowed_frame_is_missing_by_exactly_one() {
    let mut rig = Rig::new(parameters());
    rig.post(8);
    rig.model.device().swallow(Direction::Rx, 1);
    rig.model.wire(|w| (0..5).for_each(|n| w.push(frame(n, 60))));
    rig.model.settle(4);
    assert_eq!(rig.bar.read32(stats::GPRC) - rig.bar.read32(stats::qprc(0)), 1);
    assert_eq!((count(&rig, Count::RxSwallowed), rig.received(0).expect("the second").1), (1, frame(1, 60)));
}
