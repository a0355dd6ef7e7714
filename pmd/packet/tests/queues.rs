//! Queues: several of them, moved, held back, brought to an end.

mod rig;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use meter::QueueMeter;
use port::PortConfig;
use rig::peer::Peer;
use rig::{Bench, cable, config, frame, isolated};

/// An IPv4 and UDP frame of flow `flow`, with a number.
fn flow(flow: u16, number: u64) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1000 + flow, 9);
    let mut f = Vec::new();
    builder.write(&mut f, &number.to_be_bytes()).unwrap();
    f.resize(60, 0);
    f
}

fn spread(how: &str) {
    let keys = format!("interface = \"va\"\nfanout = {how:?}");
    isolated(move || {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let mut b = Bench::with(rig::memory(), &keys, &config(4));
        let sent: Vec<_> = (0..800u64).map(|i| flow((i % 40) as u16, i)).collect();
        sent.iter().for_each(|f| peer.send(f));
        let mut got = b.receive(800);
        for _ in 0..5 {
            got.extend(b.poll());
        }
        got.sort_by_key(|f| f[42..50].to_vec());
        assert_eq!(got, sent, "every frame once");
        if keys.contains("hash") || keys.contains("lb") {
            for q in &b.rx {
                let mut m = QueueMeter::default();
                q.counts(&mut m);
                assert!(m.packets > 0, "each queue has its share");
            }
        }
        let (device, _) = b.stop();
        assert_eq!(device.rx_good, Some(800));
    });
}

#[test]
fn queues_share_frames_out_by_flow() {
    spread("hash");
}
#[test]
fn queues_share_frames_out_in_turn() {
    spread("lb");
}
#[test]
fn queues_share_frames_out_by_core() {
    spread("cpu");
}
#[test]
fn queues_share_frames_out_as_the_device_does() {
    spread("qm");
}

#[test]
fn a_flow_stays_in_its_queue_and_in_order_both_ways() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let mut b = Bench::with(rig::memory(), "interface = \"va\"", &config(4));
        for i in 0..100 {
            peer.send(&flow(3, i));
            let mut back = flow(3, i);
            back[26..34].rotate_left(4);
            back[34..38].rotate_left(2);
            peer.send(&back);
        }
        let mut by_queue = vec![0; 4];
        let mut got = Vec::new();
        rig::wait_for("200 frames", || {
            for (n, q) in by_queue.iter_mut().zip(&mut b.rx) {
                *n += q.rx_burst(&mut b.batch);
                got.extend(b.batch.iter_mut().map(|p| p.bytes().to_vec()));
                b.batch.free_sent();
            }
            got.len() == 200
        });
        by_queue.sort_unstable();
        assert_eq!(by_queue, [0, 0, 0, 200]);
        let numbers: Vec<_> = got.iter().map(|f| u64::from_be_bytes(f[42..50].try_into().unwrap())).collect();
        assert!(numbers.is_sorted());
        b.stop();
    });
}

#[test]
fn two_ports_with_several_queues_do_not_share_a_group() {
    isolated(|| {
        cable("va", "vb");
        cable("vc", "vd");
        let (first, second) = (Peer::new("vb"), Peer::new("vd"));
        let mut a = Bench::with(rig::memory(), "interface = \"va\"", &config(2));
        let mut c = Bench::with(rig::memory(), "interface = \"vc\"", &config(2));
        for i in 0..50 {
            first.send(&flow(i as u16, i));
            second.send(&flow(i as u16, i + 50));
        }
        let of = |mut got: Vec<Vec<u8>>| {
            got.sort_by_key(|f| f[42..50].to_vec());
            got
        };
        assert_eq!(of(a.receive(50)), (0..50).map(|i| flow(i as u16, i)).collect::<Vec<_>>());
        assert_eq!(of(c.receive(50)), (0..50).map(|i| flow(i as u16, i + 50)).collect::<Vec<_>>());
        a.stop();
        c.stop();
    });
}

#[test]
fn nothing_is_lost_when_receiving_ends() {
    isolated(|| {
        for round in 0..20u64 {
            cable("va", "vb");
            let mut b = Bench::with(rig::memory(), "interface = \"va\"\nretire = \"20ms\"", &config(2));
            let (stop, ready) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
            let peer = Peer::new("vb");
            let (stopped, go) = (Arc::clone(&stop), Arc::clone(&ready));
            let sender = std::thread::spawn(move || {
                go.wait();
                for i in 0.. {
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    peer.send(&flow((i % 7) as u16, i));
                }
            });
            ready.wait();
            let mut got = 0;
            while got < 50 + 10 * round as usize {
                got += b.poll().len();
            }
            // Under fire; the block that is open now is handed over only later, if nobody waits for it.
            b.port.rx_off().unwrap();
            // A worker leaves after one poll that brought nothing.
            while !b.poll().is_empty() {}
            let counted = b.port.device_counts();
            let m = b.counts_rx();
            assert_eq!(counted.rx_delivered, Some(m.packets + m.drops.total()), "round {round}");
            assert!(m.packets >= 50, "{m:?}");
            stop.store(true, Ordering::Relaxed);
            sender.join().unwrap();
            let (device, _) = b.stop();
            assert_eq!(device, counted, "nothing came after the end");
            rig::ip("link del va");
        }
    });
}

#[test]
fn a_queue_moves_to_another_worker_with_what_is_in_it() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let delay = hw::tsc_hz() * 3600;
        let cfg = PortConfig { doorbell_packets: 8, doorbell_delay: delay, ..config(1) };
        let mut b = Bench::with(rig::memory(), "interface = \"va\"", &cfg);
        (0..100).for_each(|i| peer.send(&frame(60, i)));
        let mut got = Vec::new();
        rig::wait_for("some frames", || {
            b.rx[0].rx_burst(&mut b.batch);
            got.extend(b.batch.iter_mut().map(|p| p.bytes().to_vec()));
            b.batch.free_sent();
            !got.is_empty()
        });
        assert!(got.len() < 100, "a burst is not all");
        // Five packets are held back: they are not sent yet, and nobody says so.
        for i in 0..5 {
            b.put(&frame(70, i));
        }
        assert_eq!(b.tx[0].tx_burst(&mut b.batch, 1), 5);
        let sent = |b: &Bench| (b.counts_tx().packets, b.counts_tx().bytes, b.tx[0].inflight());
        assert_eq!(sent(&b), (0, 0, 5));
        peer.quiet();
        let memory = Arc::clone(&b.memory);
        let (rx, tx) = (b.rx.remove(0).detach(), b.tx.remove(0).detach());
        let moved = std::thread::spawn(move || {
            let env = rig::worker(&memory);
            let mut rx = rx.attach(&env).map_err(|e| e.0).unwrap();
            let mut tx = tx.attach(&env).map_err(|e| e.0).unwrap();
            let mut batch = mem::Batch::new(&env.local);
            let mut got = Vec::new();
            rig::wait_for("the rest", || {
                rx.rx_burst(&mut batch);
                got.extend(batch.iter_mut().map(|p| p.bytes().to_vec()));
                batch.free_sent();
                got.last() == Some(&frame(60, 99))
            });
            assert_eq!(tx.inflight(), 5);
            tx.flush(2, true);
            let mut m = QueueMeter::default();
            tx.counts(&mut m);
            assert_eq!((m.packets, m.bytes, tx.inflight()), (5, 350, 0), "counted by who sent them");
            (got, rx.detach(), tx.detach())
        });
        let (rest, rx, tx) = moved.join().unwrap();
        got.extend(rest);
        assert_eq!(got, (0..100).map(|i| frame(60, i)).collect::<Vec<_>>());
        (0..5).for_each(|i| assert_eq!(peer.receive(), frame(70, i)));
        let queues = port::Queues { rx: vec![rx], tx: vec![tx] };
        b.port.stop(queues, &b.env.local).unwrap();
        assert_eq!(b.memory.depot() + b.env.local.cached(), rig::BUFFERS);
    });
}

#[test]
fn packets_wait_for_the_doorbell_no_longer_than_said() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let cfg = PortConfig { doorbell_packets: 8, doorbell_delay: 1000, ..config(1) };
        let mut b = Bench::with(rig::memory(), "interface = \"va\"", &cfg);
        let burst = |b: &mut Bench, n: u64, at| {
            (0..n).for_each(|i| b.put(&frame(60, i)));
            assert_eq!(b.tx[0].tx_burst(&mut b.batch, at), n as usize);
        };
        let receive = |n| (0..n).for_each(|_| assert_eq!(peer.receive().len(), 60));
        let state = |b: &Bench| (b.counts_tx().packets, b.tx[0].inflight(), b.counts_tx().doorbells);
        burst(&mut b, 3, 10_000);
        b.tx[0].flush(10_999, false);
        assert_eq!(state(&b), (0, 3, 0), "not yet");
        b.tx[0].flush(11_000, false);
        assert_eq!(state(&b), (3, 0, 1), "the first has waited long enough");
        receive(3);
        burst(&mut b, 3, 20_000);
        burst(&mut b, 3, 20_001);
        assert_eq!(state(&b), (3, 6, 1));
        burst(&mut b, 2, 20_002);
        assert_eq!(state(&b), (11, 0, 2), "eight are enough");
        receive(8);
        burst(&mut b, 2, 30_000);
        b.tx[0].flush(30_001, true);
        assert_eq!(state(&b), (13, 0, 3), "nothing else to do");
        receive(2);
        burst(&mut b, 20, 40_000);
        assert_eq!(state(&b), (33, 0, 4), "a large burst goes at once");
        receive(20);
        b.tx[0].set_doorbell(2, 0);
        burst(&mut b, 1, 50_000);
        assert_eq!(state(&b), (34, 0, 5), "no delay any more");
        assert_eq!(b.counts_tx().bytes, 34 * 60);
        receive(1);
        b.stop();
    });
}

#[test]
fn a_port_starts_again_after_a_stop() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let memory = rig::memory();
        let env = rig::worker(&memory);
        let mut port = rig::open(&memory, "interface = \"va\"").unwrap();
        assert_eq!(port.info().max_frame, 1518);
        assert!(port.info().mac.is_some() && port.info().node.is_none(), "a virtual device has no node");
        for round in 0..3 {
            let queues = port.start(&config(2)).unwrap();
            assert!(port.start(&config(2)).is_err(), "twice");
            let link = port.link();
            assert_eq!((link.up, link.speed_bps), (true, None));
            peer.send(&frame(60, round));
            port.rx_off().unwrap();
            assert_eq!(port.device_counts().rx_delivered, Some(1), "counts begin anew");
            port.stop(queues, &env.local).unwrap();
            assert_eq!(rig::promiscuity("va"), 0);
        }
        assert!(port.start(&config(17)).is_err());
    });
}
