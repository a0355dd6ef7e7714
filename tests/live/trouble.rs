//! Changes that meet a device that does not send, or a worker that does not answer: nothing is lost, and it can be tried
//! again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwright::graph::OnFull;

use super::changes::{PLENTY, receivers};
use super::rig::{MODES, Mode, Rig, config};

#[test]
fn a_queue_whose_packets_do_not_leave_stays_where_it_was() {
    for mode in [Mode::Complete, Mode::Pipeline] {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(PLENTY);
        rig.flow(500);
        // What port 0 received waits for port 1, before its ring or in it.
        rig.knobs[1].stuck.store(true, Ordering::Relaxed);
        let full = |r: &mut Rig| {
            let a = r.runtime.status().ports[0].queues[0].rx.packets;
            std::thread::sleep(Duration::from_millis(50));
            r.runtime.status().ports[0].queues[0].rx.packets == a
        };
        rig.until("port 0 is held up", full);
        let [a, b] = receivers(mode);
        let e = rig.runtime.move_queue(0, 0, b).unwrap_err().to_string();
        assert!(e.contains("still under way on worker 0"), "{mode:?}: {e}");
        assert_eq!(rig.runtime.status().ports[0].queues[0].worker, Some(a));
        rig.knobs[1].stuck.store(false, Ordering::Relaxed);
        rig.flow(500);
        rig.runtime.move_queue(0, 0, b).expect("now it moves");
        rig.flow(500);
        let (status, wires) = rig.stop();
        assert_eq!((wires.seen().gaps, status.conservation.dropped), (0, 0), "{mode:?}");
    }
}

/// A port whose device sends nothing any more can still be removed: what it has is dropped as `stopping`.
#[test]
fn a_port_that_does_not_send_goes_all_the_same() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Drop).start(mode);
        rig.make(PLENTY);
        rig.flow(500);
        rig.knobs[1].stuck.store(true, Ordering::Relaxed);
        rig.until("its ring is full", |r| r.runtime.status().ports[1].drops.contains_key("tx_full"));
        let before = rig.runtime.status().conservation;
        rig.runtime.remove_port(1).expect("it goes");
        let after = rig.runtime.status().conservation;
        assert!(after.dropped >= before.dropped + 64, "{mode:?}: {before:?} {after:?}");
        rig.stop();
    }
}

#[test]
fn a_worker_that_does_not_answer_is_named_and_nothing_is_lost() {
    let mut rig = Rig::new(2, OnFull::Wait).start(Mode::Complete);
    rig.make(PLENTY);
    rig.flow(500);
    rig.knobs[1].hold.store(2, Ordering::Relaxed);
    rig.until("worker 1 stands", |r| r.knobs[1].held.load(Ordering::Relaxed));
    let e = rig.runtime.with_graph(Some(1), |_| ()).unwrap_err().to_string();
    assert!(e.contains("worker 1 did not answer within"), "{e}");
    // A queue on its way to such a worker goes back to the one it came from.
    let e = rig.runtime.move_queue(0, 0, 1).unwrap_err().to_string();
    assert!(e.contains("worker 1 did not answer within"), "{e}");
    assert_eq!(rig.runtime.status().ports[0].queues[0].worker, Some(0));
    // A port that would need it is not left half there.
    let port = rig.port("p2");
    let e = rig.runtime.add_port_live("p2", Box::new(port), config(), OnFull::Drop, Some(0)).unwrap_err();
    assert!(e.to_string().contains("worker 1 did not answer within"), "{e}");
    assert_eq!(rig.runtime.status().ports.len(), 2);
    // Its own queues it cannot give: what is under way there stays with it, and it can be tried again.
    let e = rig.runtime.remove_port(1).unwrap_err().to_string();
    assert!(e.contains("worker 1 did not answer within"), "{e}");
    rig.knobs[1].hold.store(0, Ordering::Relaxed);
    rig.runtime.move_queue(0, 0, 1).expect("now it moves");
    rig.runtime.remove_port(1).expect("now it goes");
    // What worker 0 had for the port meanwhile had no route any more, and is counted so; nothing is unexplained.
    rig.stop();
}
