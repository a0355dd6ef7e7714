//! What null ports deliver, count and give back.

use std::sync::Arc;

use hw::{Pages, Window};
use mem::{Batch, Flags, Layout, Local, Memory, Meta};
use meter::{DropReason, QueueMeter};
use port::{DeviceCounts, Driver, OpenEnv, OpenPort, PortConfig, PortError, Queues, WorkerEnv};
use ringwright_null::Null;

const BUFFERS: usize = 512;

fn memory() -> Arc<Memory> {
    let memory = Memory::new(Window::on_heap(8 << 20), Layout::for_frame_room(2048).unwrap());
    memory.add_pool(BUFFERS, None, Pages::Any).unwrap();
    memory
}

fn worker(memory: &Arc<Memory>) -> WorkerEnv {
    WorkerEnv { local: Local::new(memory), node: None, metered: true }
}

fn open(driver: &Null, memory: &Arc<Memory>, name: &str, keys: &str) -> Result<Box<dyn OpenPort>, PortError> {
    let env = OpenEnv { memory: Arc::clone(memory), name: name.into() };
    driver.open(&keys.parse().unwrap(), &env)
}

fn config(port: u16, queues: u16) -> PortConfig {
    PortConfig { queues, rx_ring: 64.try_into().unwrap(), ..PortConfig::new(port) }
}

fn cycle(
    queues: Queues,
    env: &WorkerEnv,
    mut f: impl FnMut(&mut dyn port::RxQueue, &mut dyn port::TxQueue),
) -> Queues {
    let mut back = Queues::default();
    for (rx, tx) in queues.rx.into_iter().zip(queues.tx) {
        let mut rx = rx.attach(env).map_err(|e| e.0).unwrap();
        let mut tx = tx.attach(env).map_err(|e| e.0).unwrap();
        f(&mut *rx, &mut *tx);
        back.rx.push(rx.detach());
        back.tx.push(tx.detach());
    }
    back
}

fn home(memory: &Memory, env: &WorkerEnv) -> bool {
    memory.depot() + env.local.cached() == BUFFERS && env.local.lost() == 0
}

fn wrong_key(keys: &str) -> String {
    open(&Null::new(), &memory(), "p0", keys).err().expect("refused").to_string()
}

#[test]
fn wrong_keys_say_what_would_be_right() {
    assert_eq!(wrong_key("size = 63"), "null: size: 63 is not a whole number from 64 to 2116");
    assert!(wrong_key("zzz = 64").contains("there are frames, size, flows, burst, count, peer"));
    assert!(wrong_key("frames = \"tcp\"").contains("neither \"length\" nor \"udp\""));
    assert!(wrong_key("flows = 2").contains("only frames = \"udp\""));
    assert!(wrong_key("burst = 65").contains("1 to 64"));
    assert!(wrong_key("peer = \"p0\"").contains("its own peer"));
    assert!(wrong_key("peer = \"p1\"\nsize = 64").contains("goes without \"size\""));
    let mut jumbo = open(&Null::new(), &memory(), "p0", "size = 2000").unwrap();
    let refused = jumbo.start(&config(0, 1)).err().unwrap().to_string();
    assert!(refused.contains("2000 is more than the port's longest frame, 1518"), "{refused}");
}

#[test]
fn a_source_delivers_lengths_up_to_its_count_and_a_sink_frees_them() {
    let memory = memory();
    let env = worker(&memory);
    let mut port = open(&Null::new(), &memory, "p0", "size = 128\ncount = 101\nburst = 40").unwrap();
    assert!(!port.link().up);
    let queues = port.start(&config(4, 2)).unwrap();
    assert!(port.link().up);
    let mut batch = Batch::new(&env.local);
    let mut sizes = Vec::new();
    let queues = cycle(queues, &env, |rx, tx| {
        loop {
            let n = rx.rx_burst(&mut batch);
            sizes.push(n);
            if n == 0 {
                break;
            }
            assert_eq!((batch.one_port(), batch.bytes_from(0)), (Some(4), 124 * n as u64));
            assert_eq!(tx.tx_burst(&mut batch, 0), n);
        }
        let (mut r, mut t) = (QueueMeter::default(), QueueMeter::default());
        rx.counts(&mut r);
        tx.counts(&mut t);
        assert_eq!((r.packets, r.bytes, r.empty_polls), (t.packets, t.bytes, 1));
    });
    assert_eq!(sizes, [40, 11, 0, 40, 10, 0], "101 frames over two queues");
    let counted = DeviceCounts {
        rx_good: None,
        rx_delivered: Some(101),
        tx_sent: Some(101),
        rx_missed: Some(0),
        rx_errors: Some(0),
    };
    assert_eq!(port.device_counts(), counted);
    port.stop(queues, &env.local).unwrap();
    assert!(home(&memory, &env));
}

#[test]
fn a_source_stops_with_rx_off_and_makes_do_with_what_the_pool_has() {
    let memory = memory();
    let env = worker(&memory);
    let mut port = open(&Null::new(), &memory, "p0", "burst = 64").unwrap();
    let queues = port.start(&config(0, 1)).unwrap();
    let queues = cycle(queues, &env, |rx, _| {
        let mut batches: Vec<_> = (0..9).map(|_| Batch::new(&env.local)).collect();
        assert_eq!(batches.iter_mut().map(|b| rx.rx_burst(b)).sum::<usize>(), BUFFERS);
        for b in &mut batches {
            b.free_sent();
        }
        port.rx_off().unwrap();
        assert_eq!(rx.rx_burst(&mut batches[0]), 0);
    });
    port.stop(queues, &env.local).unwrap();
    assert!(home(&memory, &env));
}

#[test]
fn written_frames_are_whole_and_number_their_flows() {
    let memory = memory();
    let env = worker(&memory);
    for size in [64, 65, 1518] {
        let keys = format!("frames = \"udp\"\nflows = 3\nsize = {size}");
        let mut port = open(&Null::new(), &memory, "p0", &keys).unwrap();
        let mut batch = Batch::new(&env.local);
        let queues = port.start(&config(0, 1)).unwrap();
        let mut at = 0u64;
        let queues = cycle(queues, &env, |rx, tx| {
            for _ in 0..3 {
                assert_eq!(rx.rx_burst(&mut batch), 32);
                for mut p in batch.iter_mut() {
                    check_udp(p.bytes_mut(), size - 4, at % 3, at / 3);
                    at += 1;
                }
                tx.tx_burst(&mut batch, 0);
            }
        });
        port.stop(queues, &env.local).unwrap();
    }
    assert!(home(&memory, &env));
}

fn check_udp(frame: &[u8], len: usize, flow: u64, number: u64) {
    assert_eq!(frame.len(), len);
    let p = etherparse::PacketHeaders::from_ethernet_slice(frame).unwrap();
    let Some(etherparse::NetHeaders::Ipv4(ip, _)) = p.net else { panic!("no IPv4") };
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!(ip.source, [10, 0, 0, flow as u8]);
    assert_eq!((usize::from(ip.total_len), ip.destination), (len - 14, [198, 18, 0, 1]));
    let Some(etherparse::TransportHeader::Udp(udp)) = p.transport else { panic!("no UDP") };
    assert_eq!(u64::from(udp.source_port), 1024 + flow);
    assert_eq!((udp.destination_port, usize::from(udp.length), udp.checksum), (9, len - 34, 0));
    assert_eq!(frame[42..46], (flow as u32).to_be_bytes());
    assert_eq!(frame[46..54], number.to_be_bytes());
}

fn numbered(batch: &mut Batch, env: &WorkerEnv, n: usize, next: &mut u64) {
    let from = batch.len();
    batch.fill(env.pool().unwrap(), n, 60, Meta::default());
    for mut p in batch.iter_mut().skip(from) {
        p.bytes_mut()[..8].copy_from_slice(&next.to_be_bytes());
        *next += 1;
    }
}

#[test]
fn a_pair_pushes_back_when_its_ring_is_full_and_loses_nothing() {
    let memory = memory();
    let env = worker(&memory);
    let driver = Null::new();
    let mut a = open(&driver, &memory, "a", "peer = \"b\"").unwrap();
    let mut b = open(&driver, &memory, "b", "peer = \"a\"").unwrap();
    let qa = a.start(&config(0, 1)).unwrap();
    let mut batch = Batch::new(&env.local);
    let mut next = 0;
    assert!(!a.link().up);
    let qa = cycle(qa, &env, |_, tx| {
        numbered(&mut batch, &env, 5, &mut next);
        assert_eq!(tx.tx_burst(&mut batch, 0), 5, "a wire without a receiver takes frames and loses them");
    });
    assert_eq!(b.device_counts().rx_missed, Some(5));
    let qb = b.start(&config(1, 1)).unwrap();
    assert!(a.link().up && b.link().up);
    let (mut qa, mut qb) = (Some(qa), Some(qb));
    qa = Some(cycle(qa.take().unwrap(), &env, |_, tx| {
        numbered(&mut batch, &env, 64, &mut next);
        batch.pkt(3).unwrap().set_flags(Flags::TX_L4);
        assert_eq!(tx.tx_burst(&mut batch, 0), 63);
        numbered(&mut batch, &env, 10, &mut next);
        assert_eq!((tx.tx_burst(&mut batch, 0), batch.len()), (1, 9), "63 + 1 fill the ring of 64");
        let mut m = QueueMeter::default();
        tx.counts(&mut m);
        assert_eq!(
            (m.packets, m.bytes, m.full, m.drops.of(DropReason::UnsupportedOffload)),
            (64, 3840, 1, 1)
        );
        batch.drop_all(DropReason::TxFull, &mut m.drops);
    }));
    qb = Some(cycle(qb.take().unwrap(), &env, |rx, _| {
        assert_eq!((rx.posted(), rx.rx_burst(&mut batch), rx.posted()), (64, 64, 0));
        let got: Vec<_> =
            batch.iter_mut().map(|p| u64::from_be_bytes(p.bytes()[..8].try_into().unwrap())).collect();
        assert_eq!(got, (5..70).filter(|n| *n != 8).collect::<Vec<_>>());
        assert_eq!(batch.one_port(), Some(1));
        batch.free_sent();
    }));
    assert_eq!((a.device_counts().tx_sent, b.device_counts().rx_delivered), (Some(69), Some(64)));
    a.stop(qa.unwrap(), &env.local).unwrap();
    b.stop(qb.unwrap(), &env.local).unwrap();
    assert!(home(&memory, &env));
}

#[test]
fn whoever_stops_last_frees_what_is_left_on_the_wire() {
    let memory = memory();
    let env = worker(&memory);
    let driver = Null::new();
    let mut a = open(&driver, &memory, "a", "peer = \"b\"").unwrap();
    let mut b = open(&driver, &memory, "b", "peer = \"a\"").unwrap();
    let (qa, qb) = (a.start(&config(0, 1)).unwrap(), b.start(&config(1, 1)).unwrap());
    let mut batch = Batch::new(&env.local);
    let send = |tx: &mut dyn port::TxQueue, batch: &mut Batch| {
        batch.fill(env.pool().unwrap(), 7, 60, Meta::default());
        assert_eq!(tx.tx_burst(batch, 0), 7);
    };
    let qa = cycle(qa, &env, |_, tx| send(tx, &mut batch));
    let qb = cycle(qb, &env, |_, tx| send(tx, &mut batch));
    a.stop(qa, &env.local).unwrap();
    assert_eq!((a.device_counts().rx_missed, env.local.cached() + memory.depot()), (Some(7), BUFFERS - 7));
    b.stop(qb, &env.local).unwrap();
    assert_eq!(b.device_counts().rx_missed, Some(7));
    assert!(home(&memory, &env));
}

#[test]
fn a_pair_joins_two_workers_in_order() {
    let memory = memory();
    let driver = Null::new();
    let mut a = open(&driver, &memory, "a", "peer = \"b\"").unwrap();
    let mut b = open(&driver, &memory, "b", "peer = \"a\"").unwrap();
    let (qa, qb) = (a.start(&config(0, 1)).unwrap(), b.start(&config(1, 1)).unwrap());
    let total = if cfg!(miri) { 200 } else { 20_000 };
    let (qa, qb) = std::thread::scope(|s| {
        let m = &memory;
        let sender = s.spawn(move || {
            let env = worker(m);
            let mut batch = Batch::new(&env.local);
            let mut next = 0;
            cycle(qa, &env, |_, tx| {
                while next < total || !batch.is_empty() {
                    let n = (32 - batch.len().min(32)).min((total - next) as usize);
                    numbered(&mut batch, &env, n, &mut next);
                    if tx.tx_burst(&mut batch, 0) == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        });
        let receiver = s.spawn(move || {
            let env = worker(m);
            let mut batch = Batch::new(&env.local);
            let mut expected = 0;
            cycle(qb, &env, |rx, _| {
                while expected < total {
                    if rx.rx_burst(&mut batch) == 0 {
                        std::thread::yield_now();
                    }
                    for p in batch.iter_mut() {
                        assert_eq!(p.bytes()[..8], expected.to_be_bytes());
                        expected += 1;
                    }
                    batch.free_sent();
                }
            })
        });
        (sender.join().unwrap(), receiver.join().unwrap())
    });
    let env = worker(&memory);
    a.stop(qa, &env.local).unwrap();
    b.stop(qb, &env.local).unwrap();
    assert!(home(&memory, &env));
}

#[test]
fn a_pair_has_two_ports_that_name_each_other() {
    let memory = memory();
    let driver = Null::new();
    let a = open(&driver, &memory, "a", "peer = \"b\"").unwrap();
    let refuse =
        |name, peer| open(&driver, &memory, name, &format!("peer = {peer:?}")).err().unwrap().to_string();
    assert!(refuse("c", "a").contains("\"a\" has the peer \"b\" already"));
    assert!(refuse("b", "c").contains("\"a\" names this port as its peer"));
    assert!(refuse("a", "b").contains("open already"));
    drop(a);
    let again = [open(&driver, &memory, "b", "peer = \"a\""), open(&driver, &memory, "a", "peer = \"b\"")];
    assert!(again.iter().all(Result::is_ok), "a port that was closed can be opened again");
}
