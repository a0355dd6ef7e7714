//! The same packets through the same stage, in each mode.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwright::graph::OnFull;
use ringwright::rt::{HANDOFF_RING, Idle, Role, WorkerPlan};

use super::device::Numbered;
use super::rig::{MODES, Mode, Rig, config, forward};

#[test]
fn every_mode_delivers_everything_in_order() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(10_000);
        rig.spend();
        rig.until("all came out", |r| r.wires.seen().frames == 20_000);
        let (status, wires) = rig.stop();
        let c = status.conservation;
        assert_eq!((c.received, c.sent, c.dropped), (20_000, 20_000, 0), "{mode:?}: {c:?}");
        let seen = wires.seen();
        assert_eq!((seen.gaps, seen.last.len()), (0, 24), "{mode:?}");
    }
}

#[test]
fn a_pipeline_says_who_does_what_and_what_passes_between() {
    let mut rig = Rig::new(2, OnFull::Wait).start(Mode::Pipeline);
    rig.make(5_000);
    rig.until("all came out", |r| r.wires.seen().frames == 10_000);
    let (status, _) = rig.stop();
    let roles: Vec<_> = status.workers.iter().map(|w| w.role).collect();
    assert_eq!(roles, ["rx", "rx", "process", "process", "tx"]);
    let ways: Vec<_> = status.handoffs.iter().map(|h| (h.from, h.to, h.port.as_deref())).collect();
    let wanted = [
        (0, 2, None),
        (0, 3, None),
        (1, 2, None),
        (1, 3, None),
        (2, 4, Some("p0")),
        (3, 4, Some("p0")),
        (2, 4, Some("p1")),
        (3, 4, Some("p1")),
    ];
    assert_eq!(ways, wanted);
    let sum = |port: Option<&str>| {
        let mine = status.handoffs.iter().filter(|h| h.port.as_deref() == port);
        mine.map(|h| h.packets).collect::<Vec<_>>()
    };
    assert_eq!(sum(None).iter().sum::<u64>(), 10_000);
    assert!(sum(None).iter().all(|n| *n > 0), "flows are spread: {:?}", sum(None));
    assert_eq!((sum(Some("p0")).iter().sum(), sum(Some("p1")).iter().sum()), (5_000u64, 5_000u64));
    let empty = |h: &ringwright::rt::HandoffStatus| {
        h.occupancy == 0 && h.drops.is_empty() && h.capacity == HANDOFF_RING as usize
    };
    assert!(status.handoffs.iter().all(empty), "{:?}", status.handoffs);
    // Each packet is each worker's once.
    let packets = |role| status.workers.iter().filter(|w| w.role == role).map(|w| w.packets).sum::<u64>();
    assert_eq!((packets("rx"), packets("process"), packets("tx")), (10_000, 10_000, 10_000));
    assert_eq!(status.stages.iter().map(|s| s.packets).sum::<u64>(), 10_000);
}

/// An output that nobody empties: what finds no room is dropped where the room is missing, and named.
#[test]
fn a_full_ring_drops_and_counts_unless_told_to_wait() {
    let mut rig = Rig::new(2, OnFull::Drop).start(Mode::Pipeline);
    rig.knobs[0].stuck.store(true, Ordering::Relaxed);
    rig.make(3_000);
    rig.spend();
    rig.knobs[0].stuck.store(false, Ordering::Relaxed);
    let (status, _) = rig.stop();
    let c = status.conservation;
    let full: u64 = status.handoffs.iter().filter_map(|h| h.drops.get("handoff_full")).sum();
    let tx_full = status.ports[0].drops.get("tx_full").copied().unwrap_or(0);
    assert!(tx_full > 0, "{status:#?}");
    assert_eq!(
        (c.received, c.dropped),
        (6_000, full + tx_full + status.ports[1].drops.values().sum::<u64>())
    );
}

#[test]
fn packets_that_wait_in_rings_are_held_and_nothing_is_lost() {
    let mut rig = Rig::new(2, OnFull::Wait).start(Mode::Pipeline);
    rig.knobs.iter().for_each(|k| k.stuck.store(true, Ordering::Relaxed));
    rig.make(20_000);
    let full = |s: &ringwright::rt::Status| s.handoffs.iter().any(|h| h.occupancy == h.capacity as u64);
    rig.until("a ring is full", |r| full(&r.runtime.status()));
    let c = rig.runtime.status().conservation;
    assert!(c.held >= u64::from(HANDOFF_RING), "{c:?}");
    assert_eq!(c.dropped, 0);
    rig.knobs.iter().for_each(|k| k.stuck.store(false, Ordering::Relaxed));
    rig.until("all came out", |r| r.wires.seen().frames == 40_000);
    let (status, wires) = rig.stop();
    assert_eq!((status.conservation.dropped, wires.seen().gaps), (0, 0));
}

/// What is still in rings at the deadline is dropped as `stopping`, and that is all that is.
#[test]
fn a_stop_that_cannot_drain_names_what_it_drops() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.knobs.iter().for_each(|k| k.stuck.store(true, Ordering::Relaxed));
        rig.make(3_000);
        let mut last = 0;
        rig.until("it stands", |r| {
            std::thread::sleep(Duration::from_millis(50));
            std::mem::replace(&mut last, r.runtime.status().conservation.received) == last && last > 0
        });
        let (status, _) = rig.stop();
        let c = status.conservation;
        let ports: u64 = status.ports.iter().filter_map(|p| p.drops.get("stopping")).sum();
        let rings: u64 = status.handoffs.iter().filter_map(|h| h.drops.get("stopping")).sum();
        assert_eq!((c.sent, c.dropped), (0, ports + rings), "{mode:?}: {status:#?}");
        assert_eq!(c.received, c.dropped, "{mode:?}");
    }
}

#[test]
fn a_stop_under_load_explains_every_packet() {
    for mode in MODES {
        for on_full in [OnFull::Drop, OnFull::Wait] {
            let mut rig = Rig::new(2, on_full).start(mode);
            rig.make(u64::from(u32::MAX));
            rig.flow(2_000);
            let (status, wires) = rig.stop();
            assert!(on_full == OnFull::Drop || wires.seen().gaps == 0, "{mode:?}");
            assert!(status.conservation.received >= 2_000);
        }
    }
}

#[test]
fn a_run_is_over_once_its_inputs_are_and_all_has_left() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(2_000);
        rig.until("all came out", |r| r.wires.seen().frames == 4_000);
        rig.knobs[0].stuck.store(true, Ordering::Relaxed);
        rig.make(30);
        rig.spend();
        assert!(!rig.runtime.is_exhausted(), "{mode:?}: packets wait");
        rig.knobs[0].stuck.store(false, Ordering::Relaxed);
        rig.until("it is over", |r| r.runtime.is_exhausted());
        assert_eq!(rig.wires.seen().frames, 4_060, "{mode:?}: over means that all came out");
        rig.make(1);
        assert!(!rig.runtime.is_exhausted());
        rig.stop();
    }
}

/// A port that only takes packets has no say in when a run is over; a run of such ports alone is never over.
#[test]
fn outputs_do_not_end_a_run() {
    let mut rig = Rig::new(0, OnFull::Wait);
    for name in ["p0", "p1"] {
        let port = Numbered::new(name, if name == "p0" { 4 } else { 0 }, &rig.wires);
        rig.knobs.push(port.knobs.clone());
        rig.runtime.add_port(name, Box::new(port), config(), OnFull::Wait);
    }
    assert!(!rig.runtime.is_exhausted(), "nobody receives from it yet");
    let mut rig = rig.start(Mode::Pipeline);
    rig.make(500);
    assert!(!rig.runtime.is_exhausted());
    rig.until("it is over", |r| r.runtime.is_exhausted());
    assert_eq!(rig.wires.seen().frames, 500);
    rig.stop();
    let mut outputs = Rig::new(0, OnFull::Wait);
    let port = Numbered::new("p0", 0, &outputs.wires);
    outputs.runtime.add_port("p0", Box::new(port), config(), OnFull::Wait);
    assert!(!outputs.runtime.is_exhausted());
}

/// Sleeps are counted, and a message ends one: with this bound, anything else would take a minute.
#[test]
fn a_worker_that_sleeps_still_hears() {
    let mut rig = Rig::new(2, OnFull::Drop);
    let queues = vec![(0, 0), (1, 0)];
    let plan = WorkerPlan {
        idle: Idle::Sleep { bound: Duration::from_secs(60) },
        rx: queues.clone(),
        tx: queues,
        stages: 1,
        graph: Some(forward(2)),
        ..WorkerPlan::default()
    };
    rig.runtime.start(vec![plan]).expect("it starts");
    let asleep = |r: &mut Rig| r.runtime.status().workers[0].polls > 0;
    rig.until("it runs", asleep);
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(1));
        rig.runtime.set_batching(0, 8, Duration::ZERO).expect("it wakes");
    }
    let (status, _) = rig.stop();
    let idle = &status.workers[0].idle;
    assert_eq!((idle.strategy, idle.bound_us, idle.over_bound), ("sleep", Some(6e7), 0));
    assert!(idle.sleeps > 100, "{idle:?}");
    assert!(idle.longest_us.is_some() && idle.p99_us.is_some());
}

#[test]
fn pause_and_busy_say_so_and_do_not_sleep() {
    for (idle, name) in [(Idle::Busy, "busy"), (Idle::Pause, "pause")] {
        let mut rig = Rig::new(2, OnFull::Wait);
        let queues = vec![(0, 0), (1, 0), (0, 1), (1, 1)];
        let plan = WorkerPlan {
            idle,
            rx: queues.clone(),
            tx: queues[..2].to_vec(),
            stages: 1,
            graph: Some(forward(2)),
            ..WorkerPlan::default()
        };
        rig.runtime.start(vec![plan]).expect("it starts");
        rig.make(500);
        rig.until("all came out", |r| r.wires.seen().frames == 1_000);
        let (status, _) = rig.stop();
        let idle = &status.workers[0].idle;
        assert_eq!((idle.strategy, idle.bound_us, idle.sleeps, idle.longest_us), (name, None, 0, None));
        assert_eq!(status.workers[0].role, Role::RunToCompletion.name());
    }
}
