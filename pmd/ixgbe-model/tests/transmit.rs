//! The transmit side against descriptors written by hand.

mod rig;

use ixgbe_defs::{Context, L4Type, TxData, TxDesc, regs, stats, tx_cmd, tx_popts};
use rig::{DESCRIPTORS, Rig, TX_BUFFERS, WHOLE, data, frame, parameters, queue};
use ringwright_ixgbe_model::{Cause, Count, Direction, Malformed, Parameters};

fn sent(rig: &Rig) -> Vec<Vec<u8>> {
    rig.model.settle(9);
    rig.model.wire(|w| w.take_sent())
}

fn tx_memory(rig: &Rig) -> u64 {
    rig.packets.iova().to_bits() + TX_BUFFERS
}

#[test]
fn frames_leave_in_order_after_the_doorbell_and_are_reported() {
    let mut rig = Rig::new(parameters());
    (0..3).for_each(|n| rig.put_frame(&frame(n, 60 + usize::from(n))));
    assert_eq!(sent(&rig).len(), 0, "no doorbell, no frame");
    assert!(rig.tx.poll(0).is_none());
    rig.ring_tx();
    assert_eq!(sent(&rig), [frame(0, 60), frame(1, 61), frame(2, 62)]);
    assert!((0..3).all(|p| rig.tx.poll(p).is_some()) && rig.tx.poll(3).is_none());
    assert_eq!(rig.bar.read32(regs::tdh(queue(0))), 3);
    assert_eq!((rig.bar.read32(stats::GPTC), rig.bar.read32(stats::GOTCL)), (3, 64 + 65 + 66));
    assert_eq!((rig.bar.read32(stats::PTC64), rig.bar.read32(stats::PTC127)), (1, 2));
    assert_eq!(rig.bar.read32(stats::TXDGPC), 3);
}

#[test]
fn many_laps_lose_nothing() {
    let mut rig = Rig::new(Parameters { tx_fetch: 7, ..parameters() });
    let (mut n, mut reaped) = (0u32, 0u32);
    while n < 500 {
        for _ in 0..1 + n % 9 {
            if n - reaped < DESCRIPTORS - 1 {
                rig.put_frame(&frame(n as u8, 60 + n as usize));
                n += 1;
            }
        }
        rig.ring_tx();
        rig.model.step();
        while reaped < n && rig.tx.poll(reaped).is_some() {
            reaped += 1;
        }
    }
    let all = sent(&rig);
    assert_eq!(all.len() as u32, n);
    assert!(all.iter().enumerate().all(|(i, f)| *f == frame(i as u8, 60 + i)));
}

#[test]
fn only_what_asks_for_a_report_gets_one() {
    let mut rig = Rig::new(parameters());
    let at = tx_memory(&rig);
    rig.write(at, &frame(1, 60));
    for n in 0..4 {
        rig.put(data(at, 60, if n == 3 { WHOLE } else { WHOLE & !tx_cmd::RS }));
    }
    rig.ring_tx();
    assert_eq!(sent(&rig).len(), 4);
    assert!(rig.tx.poll(0).is_none() && rig.tx.poll(3).is_some());
    assert_eq!(rig.model.device().tally(Direction::Tx, queue(0)).ops(Cause::CompletionWrite), 1);
}

#[test]
fn reports_are_grouped_by_the_threshold_and_the_rest_follows_when_idle() {
    for (threshold, ops) in [(0, 10), (1, 10), (4, 3), (16, 1)] {
        let mut rig = Rig::new(parameters());
        rig.bar.write32(regs::txdctl(queue(0)), 0);
        rig.model.step();
        rig.tx_queue(queue(0), &rig.tx, threshold);
        rig.model.step();
        (0..10).for_each(|n| rig.put_frame(&frame(n, 60)));
        rig.ring_tx();
        rig.model.step();
        let before = (0..10).filter(|p| rig.tx.poll(*p).is_some()).count();
        assert_eq!(
            before,
            [10, 10, 8, 0][[0, 1, 4, 16].iter().position(|t| *t == threshold).expect("listed")]
        );
        rig.model.step();
        assert!((0..10).all(|p| rig.tx.poll(p).is_some()));
        let tally = rig.model.device().tally(Direction::Tx, queue(0));
        assert_eq!((tally.ops(Cause::CompletionWrite), tally.bytes(Cause::CompletionWrite)), (ops, 160));
        assert_eq!((tally.ops(Cause::DescRead), tally.bytes(Cause::DescRead)), (1, 160));
        assert_eq!((tally.ops(Cause::PayloadRead), tally.bytes(Cause::PayloadRead)), (10, 600));
    }
}

#[test]
fn the_head_is_written_to_memory_instead_when_asked() {
    let mut rig = Rig::new(parameters());
    rig.bar.write32(regs::txdctl(queue(0)), 0);
    rig.model.step();
    let at = tx_memory(&rig) + 0x4000;
    rig.bar.write32(regs::tdwbal(queue(0)), at as u32 | regs::tdwbal_bits::HEAD_WB_EN);
    rig.bar.write32(regs::tdwbah(queue(0)), (at >> 32) as u32);
    rig.tx_queue(queue(0), &rig.tx, 0);
    rig.model.step();
    (0..5).for_each(|n| rig.put_frame(&frame(n, 60)));
    rig.ring_tx();
    assert_eq!(sent(&rig).len(), 5);
    assert_eq!(rig.read(at, 4), [5, 0, 0, 0]);
    assert!(rig.tx.poll(0).is_none());
    assert_eq!(rig.model.device().tally(Direction::Tx, queue(0)).ops(Cause::IndexWrite), 5);
}

#[test]
fn a_packet_of_several_buffers_leaves_whole_once_its_end_is_there() {
    let mut rig = Rig::new(parameters());
    let (at, whole) = (tx_memory(&rig), frame(5, 9600));
    rig.write(at, &whole);
    let cuts = [0, 14, 1000, 1001, 9600];
    for (i, c) in cuts.windows(2).enumerate() {
        let cmd = if i == 3 { WHOLE } else { tx_cmd::IFCS };
        let payload_len = if i == 0 { 9600 } else { 0 };
        let buffer = at + c[0] as u64;
        rig.put(TxDesc::data(TxData {
            buffer,
            len: (c[1] - c[0]) as u16,
            cmd,
            payload_len,
            ..TxData::default()
        }));
        if i == 2 {
            rig.ring_tx();
            assert_eq!(sent(&rig).len(), 0, "no end yet");
        }
    }
    rig.ring_tx();
    assert_eq!(sent(&rig), [whole]);
    assert_eq!((rig.bar.read32(stats::PTC1522), rig.bar.read32(stats::GOTCL)), (1, 9604));
}

#[test]
fn short_frames_are_padded_when_asked() {
    let mut rig = Rig::new(parameters());
    rig.put_frame(&frame(6, 20));
    rig.ring_tx();
    let mut padded = frame(6, 20);
    padded.resize(60, 0);
    assert_eq!(sent(&rig), [padded]);
    rig.bar.modify32(regs::HLREG0, regs::hlreg0::TXPADEN, 0);
    rig.put_frame(&frame(6, 20));
    rig.ring_tx();
    assert_eq!(sent(&rig), [frame(6, 20)]);
}

#[test]
fn a_context_inserts_tag_and_checksums() {
    let mut rig = Rig::new(parameters());
    let mut right = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(80, 81, 1, 2)
        .write(&mut right, &[7; 31])
        .expect("a frame");
    let mut f = right.clone();
    f[24..26].fill(0);
    // The pseudo header's sum (RFC 9293 3.1): addresses, protocol, length.
    let seed = [0x0A00, 0x0001, 0x0A00, 0x0002, 6, 20 + 31].iter().sum::<u32>();
    f[50..52].copy_from_slice(&(seed as u16).to_be_bytes());
    let at = tx_memory(&rig);
    rig.write(at, &f);
    let c = Context {
        mac_len: 14,
        ip_len: 20,
        vlan: 0x2005,
        ipv4: true,
        l4: L4Type::TCP,
        index: 1,
        ..Context::default()
    };
    rig.put(TxDesc::context(c));
    rig.put(TxDesc::data(TxData {
        buffer: at,
        len: f.len() as u16,
        cmd: WHOLE | tx_cmd::VLE,
        index: 1,
        popts: tx_popts::IXSM | tx_popts::TXSM,
        payload_len: f.len() as u32,
        ..TxData::default()
    }));
    rig.ring_tx();
    right.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
    assert_eq!(sent(&rig), [right]);
    assert_eq!(rig.read(at, f.len()), f, "the buffer in memory is as it was");
}

#[test]
fn what_the_data_sheet_forbids_hangs_the_queue() {
    let good = TxData { len: 60, cmd: WHOLE, payload_len: 60, ..TxData::default() };
    let vle = tx_cmd::VLE;
    let cases: [(&str, Vec<TxDesc>, Malformed); 9] = [
        ("legacy", vec![TxDesc::default()], Malformed::Kind),
        ("empty", vec![TxDesc::data(TxData { len: 0, ..good })], Malformed::NoBytes),
        ("tiny", vec![TxDesc::data(TxData { len: 13, payload_len: 13, ..good })], Malformed::TooShort),
        (
            "wrong payload length",
            vec![TxDesc::data(TxData { payload_len: 61, ..good })],
            Malformed::PayloadLength,
        ),
        ("no crc", vec![TxDesc::data(TxData { cmd: WHOLE & !tx_cmd::IFCS, ..good })], Malformed::NoCrc),
        ("no context", vec![TxDesc::data(TxData { cmd: WHOLE | vle, ..good })], Malformed::NoContext),
        (
            "segmentation",
            vec![TxDesc::data(TxData { cmd: WHOLE | tx_cmd::TSE, ..good })],
            Malformed::Segmentation,
        ),
        (
            "long",
            vec![TxDesc::data(TxData { len: 8000, cmd: tx_cmd::IFCS, payload_len: 16000, ..good }); 2],
            Malformed::TooLong,
        ),
        (
            "offload beyond the frame",
            vec![
                TxDesc::context(Context { mac_len: 40, ip_len: 60, l4: L4Type::TCP, ..Context::default() }),
                TxDesc::data(TxData { popts: tx_popts::TXSM, ..good }),
            ],
            Malformed::Offload,
        ),
    ];
    for (what, descriptors, expected) in cases {
        let mut rig = Rig::new(parameters());
        let at = tx_memory(&rig);
        for d in descriptors {
            let mut t = d.as_data();
            t.buffer = at;
            rig.put(if what == "legacy" || d.kind() == ixgbe_defs::TxKind::Context {
                d
            } else {
                TxDesc::data(t)
            });
        }
        let position = rig.tx_tail;
        rig.put_frame(&frame(1, 60));
        rig.ring_tx();
        assert_eq!(sent(&rig).len(), 0, "{what}");
        assert_eq!(rig.model.device().malformed(), [(queue(0), expected)], "{what}");
        assert_eq!(rig.model.device().count(Count::TxMalformed), 1, "{what}");
        assert!((0..=position).all(|p| rig.tx.poll(p).is_none()), "{what}: nothing is reported");
    }
}

#[test]
fn an_end_that_never_comes_is_waited_for_up_to_forty_buffers() {
    let mut rig = Rig::new(parameters());
    let at = tx_memory(&rig);
    for round in 0..2 {
        for _ in 0..20 {
            rig.put(TxDesc::data(TxData { buffer: at, len: 10, cmd: tx_cmd::IFCS, ..TxData::default() }));
        }
        rig.ring_tx();
        rig.model.settle(4);
        assert!(rig.model.device().malformed().is_empty(), "round {round}");
    }
    rig.put(TxDesc::data(TxData { buffer: at, len: 10, cmd: WHOLE, ..TxData::default() }));
    rig.ring_tx();
    rig.model.settle(4);
    assert_eq!(rig.model.device().malformed(), [(queue(0), Malformed::TooManyBuffers)]);
}

#[test]
fn an_unmapped_buffer_or_ring_is_recorded_and_stops_the_queue() {
    let mut rig = Rig::new(parameters());
    rig.put(data(0xDEAD_0000, 60, WHOLE));
    rig.put_frame(&frame(1, 60));
    rig.ring_tx();
    assert_eq!(sent(&rig).len(), 0);
    let faults = rig.model.device().faults();
    assert_eq!((faults.len(), faults[0].cause, faults[0].address), (1, Cause::PayloadRead, 0xDEAD_0000));
    rig.bar.write32(regs::tdlen(queue(2)), 512);
    rig.bar.write32(regs::tdbal(queue(2)), 0x7000_0000);
    rig.bar.write32(regs::txdctl(queue(2)), regs::txdctl_bits::ENABLE);
    rig.bar.write32(regs::tdt(queue(2)), 4);
    rig.model.settle(4);
    let fault = rig.model.device().faults()[1];
    assert_eq!(
        (fault.cause, fault.address, fault.queue),
        (Cause::DescRead, 0x7000_0000, (Direction::Tx, queue(2)))
    );
}

#[test]
fn without_a_link_nothing_leaves_and_nothing_is_lost() {
    let mut rig = Rig::new(parameters());
    rig.model.device().set_link(false);
    rig.put_frame(&frame(1, 60));
    rig.ring_tx();
    assert_eq!(sent(&rig).len(), 0);
    rig.model.device().set_link(true);
    rig.model.step();
    assert_eq!(sent(&rig), [frame(1, 60)]);
}

#[test]
fn a_swallowed_frame_is_reported_but_missing_by_exactly_one() {
    let mut rig = Rig::new(parameters());
    rig.model.device().swallow(Direction::Tx, 1);
    (0..4).for_each(|n| rig.put_frame(&frame(n, 60)));
    rig.ring_tx();
    assert_eq!(sent(&rig), [frame(1, 60), frame(2, 60), frame(3, 60)]);
    assert!((0..4).all(|p| rig.tx.poll(p).is_some()));
    assert_eq!((rig.bar.read32(stats::TXDGPC), rig.bar.read32(stats::GPTC)), (4, 3));
}
