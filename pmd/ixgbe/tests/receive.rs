//! What comes in by the model's wire comes out of the driver, whole and described; the rest is counted.

mod rig;

use etherparse::PacketBuilder;
use ixgbe_model::Parameters;
use mem::Flags;
use port::{OpenPort, PortConfig};
use rig::{BUFFERS, Live, MAC, Rig, bytes, config, frame, free};

const SIZES: [usize; 14] = [60, 61, 64, 127, 128, 1024, 1514, 2047, 2048, 2049, 4096, 4097, 9599, 9600];

fn sizes() -> &'static [usize] {
    if cfg!(miri) { &[60, 2049, 4097] } else { &SIZES }
}

/// Takes everything there is, in the order it came.
fn take_all(rig: &Rig, live: &mut Live) -> Vec<Vec<u8>> {
    let (mut batch, mut got) = (rig.batch(), Vec::new());
    loop {
        rig.model.step();
        let n: usize = live.rx.iter_mut().map(|q| q.rx_burst(&mut batch)).sum();
        assert_eq!(n, batch.len());
        for p in batch.iter_mut() {
            assert_eq!(p.port(), 5);
            got.push(bytes(&p));
        }
        rig.check_census(live, batch.iter_mut().map(|p| p.segments().count()).sum());
        free(&mut batch);
        if n == 0 {
            return got;
        }
    }
}

#[test]
fn frames_of_all_sizes_come_in_whole_and_in_order_over_many_laps() {
    let runs = [(u32::MAX - 40, 4, 8), (0, 0, 1), (u32::MAX, 64, 64)];
    for (start, prefetch, write_back) in runs.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let params = Parameters { rx_write_back: write_back, logged: true, ..Parameters::default() };
        let mut rig = Rig::with(params, BUFFERS);
        rig.port.start_positions_at(start);
        let mut live = rig.start(&PortConfig { prefetch, ..config() });
        let mut n = 0;
        for round in 0..if cfg!(miri) { 6 } else { 60 } {
            let sent: Vec<_> = (0..1 + round % 7)
                .map(|i| {
                    n += 1;
                    frame(sizes()[(n + i) % sizes().len()], n as u32)
                })
                .collect();
            sent.iter().for_each(|f| rig.arrive(f.clone()));
            assert!(take_all(&rig, &mut live) == sent, "round {round} from {start}");
        }
        let meter = live.rx_counts();
        assert_eq!((meter.packets, meter.drops.total()), (n as u64, 0));
        let counts = rig.port.device_counts();
        assert_eq!((counts.rx_delivered, counts.rx_good), (Some(n as u64), Some(n as u64)));
        assert_eq!((counts.rx_missed, counts.rx_errors), (Some(0), Some(0)));
        rig.stop(live);
    }
}

#[test]
fn a_batch_takes_what_it_has_room_for() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { rx_ring: 128.try_into().unwrap(), ..config() });
    (0..100).for_each(|n| rig.arrive(frame(60, n)));
    rig.model.settle(8);
    let mut batch = rig.batch();
    assert_eq!(live.rx[0].rx_burst(&mut batch), 64);
    assert_eq!((live.rx[0].rx_burst(&mut batch), batch.len()), (0, 64), "no room, nothing taken");
    free(&mut batch);
    assert_eq!(live.rx[0].rx_burst(&mut batch), 36);
    free(&mut batch);
    let m = live.rx_counts();
    assert_eq!((m.packets, m.bytes, m.bursts[5], m.bursts[6]), (100, 6000, 1, 1));
    rig.stop(live);
}

#[test]
fn buffers_are_posted_in_bulk_with_one_tail_write() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { rx_ring: 128.try_into().unwrap(), ..config() });
    assert_eq!((live.rx[0].posted(), live.rx_counts().doorbells), (127, 1));
    let mut batch = rig.batch();
    for n in 0..96 {
        rig.arrive(frame(60, n));
        rig.model.step();
        live.rx[0].rx_burst(&mut batch);
        free(&mut batch);
    }
    assert_eq!((live.rx[0].posted(), live.rx_counts().doorbells), (127, 4), "once in 32 buffers");
    let q = ixgbe_defs::Queue::new(0).unwrap();
    let tally = rig.device().tally(ixgbe_model::Direction::Rx, q);
    assert_eq!(tally.bytes(ixgbe_model::Cause::PayloadWrite), 96 * 60);
    rig.stop(live);
}

#[test]
fn faults_of_frames_are_counted_by_the_device() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { max_frame: 1518, ..config() });
    rig.arrive(frame(59, 0));
    rig.arrive(frame(1, 1));
    rig.arrive(frame(1519, 2));
    rig.model.wire(|w| w.push_bad_crc(frame(60, 3)));
    rig.arrive(frame(1518, 4));
    assert_eq!(take_all(&rig, &mut live), [frame(1518, 4)]);
    let c = rig.port.device_counts();
    assert_eq!((c.rx_good, c.rx_delivered, c.rx_errors, c.rx_missed), (Some(1), Some(1), Some(4), Some(0)));
    rig.stop(live);
}

fn tagged(len: usize, tci: u16, seed: u32) -> Vec<u8> {
    let mut f = frame(len - 4, seed);
    f.splice(12..12, [0x81, 0x00, (tci >> 8) as u8, tci as u8]);
    f
}

#[test]
fn tags_are_taken_out_when_asked() {
    for strip in [true, false] {
        let mut rig = Rig::new();
        let mut live = rig.start(&PortConfig { vlan_strip: strip, ..config() });
        for len in [64, 9604] {
            rig.arrive(tagged(len, 0x6ABC, 9));
            rig.arrive(frame(60, 1));
            rig.model.settle(4);
            let mut batch = rig.batch();
            assert_eq!(live.rx[0].rx_burst(&mut batch), 2);
            let p = batch.pkt(0).unwrap();
            if strip {
                assert_eq!((bytes(&p), p.ext().vlan), (frame(len - 4, 9), 0x6ABC));
            } else {
                assert_eq!(bytes(&p), tagged(len, 0x6ABC, 9));
            }
            assert_eq!(p.flags().has(Flags::VLAN), strip);
            assert_eq!(bytes(&batch.pkt(1).unwrap()), frame(60, 1));
            assert!(!batch.pkt(1).unwrap().flags().has(Flags::VLAN));
            free(&mut batch);
        }
        rig.stop(live);
    }
}

fn udp(from: [u8; 4], port: u16, payload: usize) -> Vec<u8> {
    let mut f = Vec::new();
    let b = PacketBuilder::ethernet2([2; 6], MAC).ipv4(from, [10, 9, 9, 9], 64).udp(port, 7);
    b.write(&mut f, &vec![0xA5; payload]).unwrap();
    f
}

fn tcp(from: [u8; 4], port: u16) -> Vec<u8> {
    let mut f = Vec::new();
    let b = PacketBuilder::ethernet2([2; 6], MAC).ipv4(from, [10, 9, 9, 9], 64).tcp(port, 7, 1, 100);
    b.write(&mut f, &[1; 10]).unwrap();
    f
}

#[test]
fn checksums_the_device_checked_are_flags_not_drops() {
    let mut rig = Rig::new();
    let mut live = rig.start(&config());
    let good = udp([10, 0, 0, 1], 5, 30);
    let mut bad_ip = good.clone();
    bad_ip[24] ^= 1;
    let mut bad_udp = good.clone();
    bad_udp[60] ^= 1;
    [good, bad_ip, bad_udp, tcp([10, 0, 0, 2], 9), frame(60, 0)].into_iter().for_each(|f| rig.arrive(f));
    rig.model.settle(4);
    let mut batch = rig.batch();
    assert_eq!(live.rx[0].rx_burst(&mut batch), 5);
    let checks = Flags(Flags::L3_GOOD.0 | Flags::L3_BAD.0 | Flags::L4_GOOD.0 | Flags::L4_BAD.0);
    let got: Vec<_> = batch.iter_mut().map(|p| p.flags().0 & checks.0).collect();
    let (g3, b3, g4, b4) = (Flags::L3_GOOD.0, Flags::L3_BAD.0, Flags::L4_GOOD.0, Flags::L4_BAD.0);
    assert_eq!(got, [g3 | g4, b3 | g4, g3 | b4, g3 | g4, 0]);
    free(&mut batch);
    assert_eq!(live.rx_counts().drops.total(), 0);
    rig.stop(live);
}

#[test]
fn flows_spread_over_queues_and_stay_on_theirs() {
    let mut rig = Rig::with(Parameters::default(), 512);
    let mut live = rig.start(&PortConfig { queues: 4, ..config() });
    let toeplitz = wire::rss::Toeplitz::new(&wire::rss::RssKey::MICROSOFT);
    let mut home = std::collections::HashMap::new();
    let (mut batch, mut by_queue) = (rig.batch(), [0; 4]);
    let flows = if cfg!(miri) { 12 } else { 200 };
    for n in 0..3 * flows {
        let flow = (n % flows) as u8;
        rig.arrive(tcp([10, 0, 0, flow], 1000 + u16::from(flow)));
        rig.model.step();
        for (q, rx) in live.rx.iter_mut().enumerate() {
            if rx.rx_burst(&mut batch) == 1 {
                by_queue[q] += 1;
                let p = batch.pkt(0).unwrap();
                assert!(p.flags().has(Flags::HASH));
                assert_eq!(p.hash(), toeplitz.hash(&[&p.bytes()[26..34], &p.bytes()[34..38]].concat()));
                assert_eq!(*home.entry(flow).or_insert(q), q, "a flow has one queue");
                free(&mut batch);
            }
        }
    }
    assert_eq!(by_queue.iter().sum::<usize>(), 3 * flows);
    assert!(by_queue.iter().all(|&n| n * 8 > 3 * flows || cfg!(miri)), "{by_queue:?}");
    rig.model.step();
    let counted = rig.port.statistics().rx_queue;
    assert_eq!(counted[..5], [by_queue[0], by_queue[1], by_queue[2], by_queue[3], 0].map(|n| n as u64));
    rig.stop(live);
}

#[test]
#[cfg_attr(miri, ignore = "registers, not memory")]
fn addresses_groups_and_promiscuity_decide_who_a_frame_is_for() {
    let mut rig = Rig::new();
    let mut live = rig.start(&PortConfig { promiscuous: false, ..config() });
    let group = [0x01, 0x00, 0x5e, 0x00, 0x00, 0x42];
    let to = |a: [u8; 6]| {
        let mut f = frame(60, 7);
        f[..6].copy_from_slice(&a);
        f
    };
    let all = [to(MAC), to([0xFF; 6]), to([2, 0, 0, 0, 0, 0x77]), to(group), to([1, 0, 0x5e, 0, 0x10, 0x42])];
    let mut accepted = |rig: &mut Rig| {
        all.iter().for_each(|f| rig.arrive(f.clone()));
        let got = take_all(rig, &mut live);
        all.iter().map(|f| u8::from(got.contains(f))).collect::<Vec<_>>()
    };
    assert_eq!(accepted(&mut rig), [1, 1, 0, 0, 0]);
    rig.port.add_address([2, 0, 0, 0, 0, 0x77]).unwrap();
    rig.port.set_groups(&[group]);
    assert_eq!(accepted(&mut rig), [1, 1, 1, 1, 0]);
    assert!(rig.port.add_address(group).unwrap_err().to_string().contains("join its group"));
    assert!(rig.port.remove_address([2, 0, 0, 0, 0, 0x77]));
    assert!(!rig.port.remove_address(MAC), "the device's own stays");
    rig.port.set_groups(&[]);
    assert_eq!(accepted(&mut rig), [1, 1, 0, 0, 0]);
    rig.port.set_promiscuous(true).unwrap();
    assert_eq!(accepted(&mut rig), [1; 5]);
    rig.port.set_promiscuous(false).unwrap();
    assert_eq!(accepted(&mut rig), [1, 1, 0, 0, 0]);
    rig.stop(live);
}

#[test]
#[cfg_attr(miri, ignore = "thousands of registers, none of them shared memory")]
fn there_are_places_for_127_more_addresses() {
    let mut rig = Rig::new();
    let live = rig.start(&config());
    for n in 0..127 {
        rig.port.add_address([2, 1, 0, 0, 0, n]).unwrap();
    }
    rig.port.add_address([2, 1, 0, 0, 0, 5]).unwrap();
    assert!(rig.port.add_address([2, 2, 0, 0, 0, 0]).unwrap_err().to_string().contains("all 127 places"));
    rig.stop(live);
}

#[test]
fn an_empty_pool_costs_frames_that_the_device_counts_and_is_got_over() {
    // 64 buffers: 31 posted, 33 for the test to hold.
    for (queues, rx_wait) in [(1, false), (2, false), (2, true)] {
        let mut rig = Rig::with(Parameters { logged: true, ..Parameters::default() }, 96);
        let mut live = rig.start(&PortConfig { queues, rx_wait, ..config() });
        let waits = queues == 1 || rx_wait;
        let hoard: Vec<_> = std::iter::from_fn(|| rig.env.local.take(rig.env.pool().unwrap())).collect();
        let mut held: Vec<_> = (0..3).map(|_| rig.batch()).collect();
        (0..100).for_each(|n| rig.arrive(frame(60, n)));
        rig.model.settle(20);
        let got: usize = held.iter_mut().map(|b| live.rx[0].rx_burst(b)).sum();
        assert_eq!(got, 31, "what was posted, and no more");
        let c = rig.port.device_counts();
        // One queue holds frames back in the packet buffer; several drop, lest one hold up the others, unless told to wait.
        assert_eq!(c.rx_missed, Some(if waits { 0 } else { 69 }));
        assert_eq!(live.rx_counts().drops.total(), 0, "nothing was lost at the driver");
        held.iter_mut().for_each(free);
        rig.env.local.put_bulk(hoard);
        assert_eq!((live.rx[0].rx_burst(&mut rig.batch()), live.rx[0].posted()), (0, 31), "posted again");
        let after = take_all(&rig, &mut live);
        assert_eq!(after.len(), if waits { 69 } else { 0 });
        rig.stop(live);
    }
}

#[test]
fn a_pool_that_cannot_fill_the_ring_is_refused_and_keeps_its_buffers() {
    let mut rig = Rig::new();
    let queues = rig.port.start(&PortConfig { rx_ring: 512.try_into().unwrap(), ..config() }).unwrap();
    let mut setups = queues.rx;
    let (error, setup) = setups.pop().unwrap().attach(&rig.env).err().unwrap();
    assert!(error.to_string().contains("256 free buffers, the receive ring posts 511"), "{error}");
    assert_eq!(rig.home(), BUFFERS);
    rig.port.stop(port::Queues { rx: vec![setup], tx: queues.tx }, &rig.env.local).unwrap();
}
