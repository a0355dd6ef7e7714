//! What the driver is given leaves by the model's wire, once, unchanged or changed as asked.

mod rig;

use etherparse::PacketBuilder;
use ixgbe_defs::Queue;
use ixgbe_model::{Cause, Direction, Mode, Parameters, Stall};
use mem::{Batch, Ext, Flags};
use meter::DropReason;
use port::{OpenPort, PortConfig};
use rig::{BUFFERS, MAC, Rig, config, frame, free};

/// As it leaves: padded to 60 bytes.
fn padded(mut f: Vec<u8>) -> Vec<u8> {
    f.resize(f.len().max(60), 0);
    f
}

fn desc_reads(rig: &Rig) -> u64 {
    rig.device().tally(Direction::Tx, Queue::new(0).unwrap()).bytes(Cause::DescRead) / 16
}

#[test]
fn frames_of_all_sizes_and_offsets_leave_whole_and_in_order_over_many_laps() {
    let sizes: &[usize] =
        if cfg!(miri) { &[17, 2112, 2113] } else { &[17, 59, 60, 61, 1514, 2112, 2113, 4224, 4225, 9600] };
    for start in [u32::MAX - 40, 0].into_iter().take(if cfg!(miri) { 1 } else { 2 }) {
        let mut rig = Rig::new();
        rig.port.start_positions_at(start);
        let mut live = rig.start(&config());
        let (mut batch, mut n) = (rig.batch(), 0);
        for round in 0..if cfg!(miri) { 5 } else { 80 } {
            let mut want = Vec::new();
            for _ in 0..1 + round % 4 {
                n += 1;
                let mut f = frame(sizes[n % sizes.len()], n as u32);
                rig.write(&mut batch, &f);
                let mut p = batch.pkt(batch.len() - 1).unwrap();
                // The frame starts elsewhere in its buffer.
                match n % 3 {
                    1 if f.len() < 9000 => {
                        p.prepend(6).unwrap().copy_from_slice(&[4; 6]);
                        f.splice(0..0, [4; 6]);
                    }
                    2 if f.len() > 40 => {
                        p.trim(13).unwrap();
                        f.drain(..13);
                    }
                    _ => {}
                }
                want.push(padded(f));
            }
            let sent = want.len();
            assert_eq!(live.tx[0].tx_burst(&mut batch, 0), sent);
            rig.check_census(&live, 0);
            rig.model.settle(4);
            assert!(rig.sent() == want, "round {round} from {start}");
            live.tx[0].reap();
            assert_eq!(live.tx[0].inflight(), 0);
        }
        let m = live.tx_counts();
        assert_eq!((m.packets, m.drops.total(), m.full), (n as u64, 0, 0));
        assert_eq!(rig.port.device_counts().tx_sent, Some(n as u64));
        rig.stop(live);
    }
}

fn plain(rig: &Rig, batch: &mut Batch, n: u32) {
    (0..n).for_each(|i| rig.write(batch, &frame(60, i)));
}

#[test]
fn a_stalled_device_pushes_back_and_loses_nothing() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    rig.device().set_mode(Mode::Stalled(Stall { tx: true, ..Stall::default() }));
    let mut batch = rig.batch();
    plain(&rig, &mut batch, 40);
    assert_eq!((live.tx[0].tx_burst(&mut batch, 0), batch.len()), (31, 9), "one entry stays free");
    rig.model.settle(4);
    assert_eq!((live.tx[0].reap(), live.tx[0].tx_burst(&mut batch, 0), batch.len()), (0, 0, 9));
    assert_eq!((live.tx[0].inflight(), live.tx_counts().full), (31, 2));
    rig.check_census(&live, 9);
    rig.device().set_mode(Mode::Normal);
    rig.model.step();
    rig.model.step();
    assert_eq!((live.tx[0].tx_burst(&mut batch, 0), batch.len()), (9, 0), "reaped on the way");
    rig.model.settle(4);
    assert_eq!(live.tx[0].reap(), 9);
    assert_eq!(rig.sent().len(), 40);
    rig.stop(live);
}

#[test]
fn tail_writes_wait_for_company_and_reports_come_with_them() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { doorbell_packets: 8, doorbell_delay: 1000, ..config() });
    let mut batch = rig.batch();
    let mut one = |rig: &Rig, live: &mut rig::Live, now| {
        plain(rig, &mut batch, 1);
        assert_eq!(live.tx[0].tx_burst(&mut batch, now), 1);
        rig.model.settle(3);
        rig.sent().len()
    };
    let left: Vec<_> = (0..8).map(|i| one(&rig, &mut live, 100 + i)).collect();
    assert_eq!(left, [0, 0, 0, 0, 0, 0, 0, 8], "the eighth rings");
    assert_eq!(live.tx[0].reap(), 8, "one report for all");
    let done = rig.device().tally(Direction::Tx, Queue::new(0).unwrap()).ops(Cause::CompletionWrite);
    assert_eq!(done, 1);
    assert_eq!(one(&rig, &mut live, 5000), 0);
    live.tx[0].flush(5999, false);
    rig.model.settle(3);
    assert_eq!(rig.sent().len(), 0, "not yet");
    live.tx[0].flush(6000, false);
    rig.model.settle(3);
    assert_eq!(rig.sent().len(), 1, "it has waited long enough");
    assert_eq!(one(&rig, &mut live, 7000), 0);
    live.tx[0].flush(7001, true);
    rig.model.settle(3);
    assert_eq!(rig.sent().len(), 1, "idle queues do not wait");
    assert_eq!(one(&rig, &mut live, 8000), 0);
    assert_eq!(one(&rig, &mut live, 9500), 2, "the first of them has waited long enough");
    let m = live.tx_counts();
    assert_eq!((m.doorbells, m.hold.total()), (4, 4));
    assert_eq!(m.hold.quantile(0.01), Some(1.0), "7001 - 7000");
    rig.stop(live);
}

#[test]
fn what_waits_is_told_when_the_queue_leaves_its_worker() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { doorbell_packets: 64, doorbell_delay: u64::MAX, ..config() });
    let mut batch = rig.batch();
    plain(&rig, &mut batch, 3);
    assert_eq!(live.tx[0].tx_burst(&mut batch, 7), 3);
    let queues = live.detach();
    rig.model.settle(3);
    assert_eq!(rig.sent().len(), 3);
    let mut live = rig::Live::attach(queues, &rig.env);
    assert_eq!((live.tx[0].inflight(), live.tx[0].reap()), (3, 3));
    rig.stop(live);
}

#[test]
fn a_full_ring_is_told_at_once() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { doorbell_packets: 64, doorbell_delay: u64::MAX, ..config() });
    let mut batch = rig.batch();
    plain(&rig, &mut batch, 33);
    assert_eq!((live.tx[0].tx_burst(&mut batch, 0), batch.len()), (31, 2));
    rig.model.settle(3);
    assert_eq!(rig.sent().len(), 31);
    free(&mut batch);
    rig.stop(live);
}

#[test]
fn a_report_is_asked_for_every_32_descriptors() {
    let mut rig = Rig::new();
    let ring = 256.try_into().unwrap();
    let mut live = rig.start(&PortConfig { tx_ring: ring, doorbell_packets: 64, ..config() });
    let mut batch = rig.batch();
    plain(&rig, &mut batch, 50);
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 50);
    rig.model.settle(4);
    let t = rig.device().tally(Direction::Tx, Queue::new(0).unwrap());
    assert_eq!((t.ops(Cause::CompletionWrite), t.bytes(Cause::CompletionWrite)), (2, 32));
    assert_eq!(live.tx[0].reap(), 50);
    rig.stop(live);
}

fn refused(f: impl FnOnce(&Rig, &mut Batch)) -> (Vec<(DropReason, u64)>, usize) {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { max_frame: 1518, ..config() });
    let mut batch = rig.batch();
    rig.write(&mut batch, &frame(100, 1));
    f(&rig, &mut batch);
    rig.write(&mut batch, &frame(100, 2));
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 2, "those before and after");
    rig.check_census(&live, 0);
    rig.model.settle(4);
    assert_eq!(rig.sent(), [frame(100, 1), frame(100, 2)]);
    let m = live.tx_counts();
    assert_eq!((m.packets, m.bytes), (2, 200), "what was dropped was not sent");
    let drops = (m.drops.iter().collect(), m.drops.total() as usize);
    rig.stop(live);
    drops
}

#[test]
#[cfg_attr(miri, ignore = "five starts of a device, and what is refused touches no memory")]
fn what_the_device_cannot_send_is_dropped_with_a_reason() {
    assert_eq!(refused(|rig, b| rig.write(b, &frame(16, 0))).0, [(DropReason::TooShort, 1)]);
    assert_eq!(refused(|rig, b| rig.write(b, &frame(1519, 0))).0, [(DropReason::TooLong, 1)]);
    assert_eq!(refused(|rig, b| rig.write(b, &frame(9000, 0))).0, [(DropReason::TooLong, 1)]);
    let wish = |flags| {
        refused(move |rig: &Rig, b: &mut Batch| {
            rig.write(b, &frame(60, 0));
            b.pkt(1).unwrap().set_flags(flags);
        })
        .0
    };
    assert_eq!(wish(Flags::TSO), [(DropReason::UnsupportedOffload, 1)]);
    assert_eq!(wish(Flags::TX_L4), [(DropReason::UnsupportedOffload, 1)], "no header lengths given");
}

#[test]
fn a_chain_longer_than_the_ring_is_dropped_not_waited_for() {
    let mut rig = Rig::new();
    let tx_ring = 8.try_into().unwrap();
    let mut live = rig.start(&PortConfig { tx_ring, ..config() });
    let (mut batch, local) = (rig.batch(), rig.env.local.clone());
    let take = || local.take(rig.env.pool().unwrap()).unwrap();
    let mut chain = mem::Chain::new(&local, take(), 10).unwrap();
    (0..6).for_each(|_| chain.push(take(), 10).unwrap());
    assert!(chain.finish(&mut batch, mem::Meta::default()).is_ok());
    assert_eq!((live.tx[0].tx_burst(&mut batch, 0), batch.len()), (0, 0));
    assert_eq!(live.tx_counts().drops.of(DropReason::TooLong), 1);
    let mut chain = mem::Chain::new(&local, take(), 10).unwrap();
    (0..5).for_each(|i| chain.push(take(), 10 * (i % 2)).unwrap());
    assert!(chain.finish(&mut batch, mem::Meta::default()).is_ok());
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 1);
    rig.model.settle(4);
    assert_eq!(rig.sent()[0].len(), 60, "30 bytes of three buffers, padded; the empty ones are left out");
    assert_eq!((live.tx[0].reap(), rig.device().malformed().len()), (3, 0));
    rig.stop(live);
}

fn datagram(n: u8) -> Vec<u8> {
    let mut f = Vec::new();
    let b = PacketBuilder::ethernet2([2; 6], MAC).ipv4([10, 0, 0, n], [10, 9, 9, 9], 64).udp(5, 7);
    b.write(&mut f, &[n; 77]).unwrap();
    f
}

fn segment6(n: u8) -> Vec<u8> {
    let mut f = Vec::new();
    let b = PacketBuilder::ethernet2([2; 6], MAC).ipv6([n; 16], [9; 16], 64).tcp(5, 7, 1, 100);
    b.write(&mut f, &[n; 33]).unwrap();
    f
}

/// The one's complement sum that software leaves for the device: addresses, protocol, length (7.2.5.2).
fn seed(addresses: &[u8], protocol: u8, len: usize) -> [u8; 2] {
    let sum: u32 = addresses.as_chunks::<2>().0.iter().map(|w| u32::from(u16::from_be_bytes(*w))).sum();
    let mut sum = sum + u32::from(protocol) + len as u32;
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (sum as u16).to_be_bytes()
}

fn offload(p: &mut mem::Pkt<'_>, flags: Flags, l3_len: u8, csum_offset: u16) {
    let mut e = Ext::tagged(0x2123);
    (e.l2_len, e.l3_len, e.csum_start, e.csum_offset) = (14, l3_len, 14 + u16::from(l3_len), csum_offset);
    p.set_ext(e);
    p.set_flags(flags);
}

#[test]
fn checksums_are_put_in_where_asked() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    let mut batch = rig.batch();
    let (right4, right6) = (datagram(3), segment6(4));
    let mut f = right4.clone();
    f[24..26].fill(0);
    f[40..42].copy_from_slice(&seed(&right4[26..34], 17, right4.len() - 34));
    rig.write(&mut batch, &f);
    offload(&mut batch.pkt(0).unwrap(), Flags::TX_L3.with(Flags::TX_L4), 20, 6);
    let mut f = right6.clone();
    f[70..72].copy_from_slice(&seed(&right6[22..54], 6, right6.len() - 54));
    rig.write(&mut batch, &f);
    offload(&mut batch.pkt(1).unwrap(), Flags::TX_L4, 40, 16);
    let mut f = right4.clone();
    f[24..26].fill(0);
    rig.write(&mut batch, &f);
    offload(&mut batch.pkt(2).unwrap(), Flags::TX_L3, 20, 0);
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 3);
    rig.model.settle(4);
    assert_eq!(rig.sent(), [right4.clone(), right6, right4]);
    assert_eq!((live.tx[0].reap(), rig.device().malformed()), (3, vec![]));
    rig.stop(live);
}

#[test]
fn tags_are_put_in_and_a_context_is_sent_only_when_it_changes() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    let mut batch = rig.batch();
    let mut want = Vec::new();
    for (n, tag) in [(0, Some(7)), (1, Some(7)), (2, None), (3, Some(7)), (4, Some(8)), (5, Some(8))] {
        let mut f = frame(if n == 1 { 5000 } else { 80 }, n);
        rig.write(&mut batch, &f);
        if let Some(tag) = tag {
            let mut p = batch.pkt(batch.len() - 1).unwrap();
            p.set_ext(Ext::tagged(tag));
            p.set_flags(p.flags().with(Flags::VLAN));
            f.splice(12..12, [0x81, 0, 0, tag as u8]);
        }
        want.push(f);
    }
    assert_eq!(live.tx[0].tx_burst(&mut batch, 0), 6);
    rig.model.settle(4);
    assert!(rig.sent() == want);
    assert_eq!(desc_reads(&rig), 5 + 3 + 2, "five frames, one of three buffers, two contexts");
    assert_eq!((live.tx[0].reap(), live.tx[0].inflight()), (8, 0));
    rig.stop(live);
}

#[test]
fn every_queue_sends_and_is_counted_by_itself() {
    let mut rig = Rig::with(Parameters::default(), 512);
    let mut live = rig.start(&PortConfig { queues: 3, ..config() });
    let mut batch = rig.batch();
    for (i, n) in [3, 0, 5].into_iter().enumerate() {
        plain(&rig, &mut batch, n);
        assert_eq!(live.tx[i].tx_burst(&mut batch, 0), n as usize);
    }
    rig.model.settle(4);
    assert_eq!((rig.sent().len(), live.tx.iter_mut().map(|q| q.reap()).sum::<usize>()), (8, 8));
    rig.stop(live);
    assert_eq!(rig.memory.capacity(), 2 * BUFFERS);
}
