//! What the port is as a port: queues and their shares, holding, moving, refusing.

mod rig;

use std::collections::BTreeSet;
use std::sync::Arc;

use mem::Batch;
use meter::QueueMeter;
use port::{DeviceCounts, Driver, Input, OpenPort, PortConfig, Queues};
use rig::{config, home, memory, open_env, worker};
use ringwright_gen::{Gen, GenPort, Pace, Profile};

fn driver(keys: &str) -> Result<Box<dyn OpenPort>, String> {
    Gen.open(&keys.parse().unwrap(), &open_env(&memory(), "g")).map_err(|e| e.to_string())
}

#[test]
fn what_cannot_be_is_refused_with_what_could() {
    let refused = |keys: &str| driver(keys).err().unwrap_or_else(|| panic!("{keys} was taken"));
    assert!(refused("size = 9000").contains("gen: size: 9000 is more than a buffer takes, 2116"));
    assert!(refused("size = 64\nsrc = \"2001:2::/64\"").contains("64 is too short: headers and tag take 84"));
    assert!(refused("colour = 1").contains("gen: colour: is not known; there are flows, size, rate"));
    let mut jumbo = driver("size = 2000").unwrap();
    let e = jumbo.start(&config(0, 1)).err().unwrap().to_string();
    assert!(e.contains("2000 is more than the port's longest frame, 1522"), "{e}");
    let mut few = driver("flows = 2").unwrap();
    let e = few.start(&config(0, 3)).err().unwrap().to_string();
    assert!(e.contains("flows: 2 for 3 queues"), "{e}");
    assert!(driver("").unwrap().start(&PortConfig { queues: 17, ..config(0, 1) }).is_err());
    assert_eq!((Gen.name(), Gen.keys().len()), ("gen", 10));
}

/// Source and destination address and ports of each frame of a batch.
fn tuples(batch: &mut Batch) -> Vec<Vec<u8>> {
    batch.iter_mut().map(|p| p.bytes()[26..38].to_vec()).collect()
}

#[test]
fn each_queue_has_its_own_flows_and_its_share_of_the_frames() {
    let memory = memory();
    let env = worker(&memory);
    let profile = Profile { flows: 10, count: Some(100), ..Profile::default() };
    let mut port = GenPort::new(profile, &open_env(&memory, "g")).unwrap();
    assert!(!port.link().up);
    let queues = port.start(&config(3, 3)).unwrap();
    assert!(port.link().up);
    assert_eq!(port.input(), Input::More);
    let mut seen: Vec<BTreeSet<_>> = Vec::new();
    let mut back = Queues::default();
    let mut made = Vec::new();
    for (rx, tx) in queues.rx.into_iter().zip(queues.tx) {
        let mut rx = rx.attach(&env).map_err(|e| e.0).unwrap();
        let mut tx = tx.attach(&env).map_err(|e| e.0).unwrap();
        let (mut flows, mut sum) = (BTreeSet::new(), 0);
        let mut batch = Batch::new(&env.local);
        while rx.rx_burst(&mut batch) > 0 {
            assert_eq!(batch.one_port(), Some(3));
            sum += batch.len();
            flows.extend(tuples(&mut batch));
            tx.tx_burst(&mut batch, 0);
        }
        let (mut r, mut t) = (QueueMeter::default(), QueueMeter::default());
        rx.counts(&mut r);
        tx.counts(&mut t);
        assert_eq!((r.packets, r.bytes), (t.packets, t.bytes));
        made.push(sum);
        seen.push(flows);
        back.rx.push(rx.detach());
        back.tx.push(tx.detach());
    }
    assert_eq!((made.iter().sum::<usize>(), made), (100, vec![34, 33, 33]));
    assert_eq!(seen.iter().map(BTreeSet::len).collect::<Vec<_>>(), [3, 3, 4]);
    let all: BTreeSet<_> = seen.iter().flatten().collect();
    assert_eq!(all.len(), 10, "no flow belongs to two queues");
    let want = DeviceCounts {
        rx_good: None,
        rx_delivered: Some(100),
        tx_sent: Some(100),
        rx_missed: Some(0),
        rx_errors: Some(0),
    };
    assert_eq!((port.device_counts(), port.input()), (want, Input::Exhausted));
    port.stop(back, &env.local).unwrap();
    assert!(home(&memory, &env));
}

#[test]
fn a_count_is_kept_to_the_frame() {
    for count in [0, 1, 31, 32, 33, 1000] {
        let profile = Profile { count: Some(count), burst: 64, ..Profile::default() };
        let way = rig::Loop::new(profile, |_| rig::Fault::Pass);
        let handle = way.handle.clone();
        way.run(|ends| ends.settle());
        let c = handle.counts();
        assert_eq!((c.made, c.ordered), (count, count));
    }
}

#[test]
fn a_port_that_is_held_makes_nothing_and_checks_on() {
    let profile = Profile { pace: Pace::Max, ..Profile::default() };
    let way = rig::Loop::new(profile, |_| rig::Fault::Pass);
    let handle = way.handle.clone();
    handle.hold();
    way.run(|ends| {
        assert!(!ends.breathe());
        assert_eq!(handle.counts().made, 0);
        handle.go();
        assert!(ends.breathe());
        handle.hold();
        ends.settle();
        let c = handle.counts();
        assert_eq!((c.made, c.ordered), (32, 32));
        handle.go();
        assert!(ends.breathe());
    });
}

#[test]
fn a_queue_goes_on_where_it_was_on_another_worker() {
    let memory = memory();
    let profile = Profile { flows: 3, sizes: "imix".parse().unwrap(), ..Profile::default() };
    let mut port = GenPort::new(profile, &open_env(&memory, "g")).unwrap();
    let handle = port.handle();
    let mut queues = port.start(&config(0, 1)).unwrap();
    for round in 1..=4 {
        let memory = Arc::clone(&memory);
        let moved = std::thread::spawn(move || {
            let env = worker(&memory);
            let mut rx = queues.rx.remove(0).attach(&env).map_err(|e| e.0).unwrap();
            let mut tx = queues.tx.remove(0).attach(&env).map_err(|e| e.0).unwrap();
            let mut batch = Batch::new(&env.local);
            for _ in 0..3 {
                rx.rx_burst(&mut batch);
                tx.tx_burst(&mut batch, 0);
            }
            Queues { rx: vec![rx.detach()], tx: vec![tx.detach()] }
        });
        queues = moved.join().unwrap();
        let c = handle.counts();
        assert_eq!((c.made, c.ordered, c.missing()), (96 * round, 96 * round, 0));
    }
    let env = worker(&memory);
    port.stop(queues, &env.local).unwrap();
    assert!(home(&memory, &env));
}

#[test]
fn a_port_that_starts_again_does_not_know_its_former_frames() {
    let memory = memory();
    let env = worker(&memory);
    let mut port = GenPort::new(Profile::default(), &open_env(&memory, "g")).unwrap();
    let handle = port.handle();
    let mut batch = Batch::new(&env.local);
    for round in 0..2 {
        let mut queues = port.start(&config(0, 1)).unwrap();
        let mut rx = queues.rx.remove(0).attach(&env).map_err(|e| e.0).unwrap();
        let mut tx = queues.tx.remove(0).attach(&env).map_err(|e| e.0).unwrap();
        if round == 0 {
            assert_eq!(rx.rx_burst(&mut batch), 32);
        } else {
            tx.tx_burst(&mut batch, 0);
            let c = handle.counts();
            assert_eq!((c.made, c.arrived, c.foreign), (0, 0, 32));
        }
        queues.rx.push(rx.detach());
        queues.tx.push(tx.detach());
        port.stop(queues, &env.local).unwrap();
    }
    assert!(home(&memory, &env));
}

#[test]
fn an_empty_pool_makes_fewer_frames_and_loses_none() {
    let memory = memory();
    let env = worker(&memory);
    let mut port =
        GenPort::new(Profile { burst: 64, ..Profile::default() }, &open_env(&memory, "g")).unwrap();
    let mut queues = port.start(&config(0, 1)).unwrap();
    let mut rx = queues.rx.remove(0).attach(&env).map_err(|e| e.0).unwrap();
    let mut tx = queues.tx.remove(0).attach(&env).map_err(|e| e.0).unwrap();
    let mut batches: Vec<_> = (0..20).map(|_| Batch::new(&env.local)).collect();
    let made: usize = batches.iter_mut().map(|b| rx.rx_burst(b)).sum();
    assert_eq!(made, rig::BUFFERS);
    for b in &mut batches {
        tx.tx_burst(b, 0);
    }
    let c = port.handle().counts();
    assert_eq!((c.made, c.ordered), (made as u64, made as u64));
    queues.rx.push(rx.detach());
    queues.tx.push(tx.detach());
    port.stop(queues, &env.local).unwrap();
    assert!(home(&memory, &env));
}
