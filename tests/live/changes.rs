//! Ports that come and go and queues that move, one change at a time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwright::graph::OnFull;
use ringwright::rt::Role;
use ringwright::stages::Forward;

use super::rig::{MODES, Mode, Rig, config, pairs};

/// Workers that receive, in each mode.
pub fn receivers(mode: Mode) -> [usize; 2] {
    if mode == Mode::Short { [0, 3] } else { [0, 1] }
}

/// More than anyone sends.
pub const PLENTY: u64 = u32::MAX as u64;

#[test]
fn a_queue_moves_and_its_flows_stay_in_order() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(PLENTY);
        let [a, b] = receivers(mode);
        for round in 0..12 {
            rig.flow(200);
            let (from, to) = if round % 2 == 0 { (a, b) } else { (b, a) };
            rig.runtime.move_queue(0, 0, to).expect("it moves");
            let queue = &rig.runtime.status().ports[0].queues[0];
            assert_eq!((queue.worker, from == to), (Some(to), false), "{mode:?}");
        }
        rig.flow(200);
        let before = rig.runtime.status().ports[0].queues[0].rx.packets;
        rig.runtime.move_queue(0, 0, a).expect("where it is already is fine");
        rig.flow(200);
        let after = rig.runtime.status().ports[0].queues[0].rx.packets;
        assert!(after >= before, "its counts go on: {before}, {after}");
        let (status, wires) = rig.stop();
        assert_eq!((wires.seen().gaps, status.conservation.dropped), (0, 0), "{mode:?}");
    }
}

#[test]
fn a_port_comes_sends_receives_and_goes() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(PLENTY);
        rig.flow(200);
        let before = rig.runtime.status().handoffs.len();
        for name in ["p2", "p3"] {
            let port = rig.port(name);
            let number = rig.runtime.add_port_live(name, Box::new(port), config(), OnFull::Wait, None);
            assert_eq!(number.expect("it comes"), if name == "p2" { 2 } else { 3 });
        }
        // Its queues are with those that receive.
        let status = rig.runtime.status();
        let workers: Vec<_> = status.ports[2].queues.iter().map(|q| q.worker.expect("has one")).collect();
        assert!(
            workers.iter().all(|w| receivers(mode).contains(w)) && workers[0] != workers[1],
            "{workers:?}"
        );
        assert_eq!(status.handoffs.len(), before + if mode == Mode::Pipeline { 4 } else { 0 });
        let told = rig
            .runtime
            .with_graph(None, |g| g.stage_mut::<Forward>("fwd").map(|f| f.set_map(pairs(4))).is_some());
        let told = told.expect("they answer");
        assert_eq!(told.len(), 2, "two workers run stages");
        assert!(told.iter().all(|t| t.1));
        rig.knobs[2].budget.fetch_add(1_000, Ordering::Relaxed);
        rig.knobs[3].budget.fetch_add(1_000, Ordering::Relaxed);
        let whole = |r: &mut Rig| {
            let seen = r.wires.seen();
            let sum = |port| seen.last.iter().filter(|(f, _)| f.0 == port).map(|(_, n)| n).sum::<u64>();
            (sum(2), sum(3)) == (1_000, 1_000)
        };
        rig.until("both ways between the new ports", whole);
        for number in [2, 3] {
            rig.runtime.remove_port(number).expect("it goes");
        }
        let status = rig.runtime.status();
        let names: Vec<_> = status.ports.iter().map(|p| p.name.as_str()).collect();
        assert_eq!((names, status.handoffs.len()), (vec!["p0", "p1"], before));
        rig.flow(200);
        let (status, wires) = rig.stop();
        assert_eq!((wires.seen().gaps, status.conservation.dropped), (0, 0), "{mode:?}");
        assert!(status.conservation.received >= 2_000 + 600, "what is gone still counts");
    }
}

#[test]
fn a_port_that_has_traffic_goes_and_what_is_for_it_then_has_no_route() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(PLENTY);
        rig.flow(1_000);
        rig.runtime.remove_port(1).expect("it goes");
        let gone = rig.wires.seen().frames;
        let no_route = |r: &mut Rig| {
            let s = r.runtime.status();
            let of = |d: &ringwright::rt::DropMap| d.get("no_route").copied().unwrap_or(0);
            s.stages.iter().map(|s| of(&s.drops)).sum::<u64>()
        };
        rig.until("packets for it are dropped", |r| no_route(r) > 100);
        assert_eq!(rig.wires.seen().frames, gone, "nothing comes out of it, and nothing from it");
        // The name may be used again, the number is not.
        let port = rig.port("p1");
        let again = rig.runtime.add_port_live("p1", Box::new(port), config(), OnFull::Drop, None);
        assert_eq!(again.expect("it comes"), 2);
        assert_eq!(rig.runtime.port("p1").expect("there"), 2);
        assert!(rig.runtime.remove_port(1).unwrap_err().to_string().contains("there are p0, p1"));
        let (status, wires) = rig.stop();
        assert_eq!(wires.seen().gaps, 0, "{mode:?}");
        let c = status.conservation;
        let dropped: u64 = status.stages.iter().map(|s| s.drops.values().sum::<u64>()).sum();
        assert_eq!(c.dropped, dropped, "no_route and nothing else: {c:?}");
    }
}

#[test]
fn a_named_worker_gets_the_queues() {
    let mut rig = Rig::new(2, OnFull::Drop).start(Mode::Pipeline);
    let port = rig.port("p2");
    rig.runtime.add_port_live("p2", Box::new(port), config(), OnFull::Drop, Some(1)).expect("it comes");
    let workers =
        |r: &mut Rig| r.runtime.status().ports[2].queues.iter().map(|q| q.worker).collect::<Vec<_>>();
    assert_eq!(workers(&mut rig), [Some(1), Some(1)]);
    rig.runtime.move_queue(2, 1, 0).expect("it moves");
    assert_eq!(workers(&mut rig), [Some(1), Some(0)]);
    rig.stop();
}

#[test]
fn batching_reaches_every_queue_of_the_port_and_no_other() {
    for mode in MODES {
        let mut rig = Rig::new(2, OnFull::Drop).start(mode);
        rig.runtime.set_batching(1, 48, Duration::from_micros(5)).expect("they answer");
        let set = |r: &Rig, port: usize| r.knobs[port].doorbell.load(Ordering::Relaxed);
        assert_eq!((set(&rig, 0), set(&rig, 1)), (0, 48), "{mode:?}");
        rig.stop();
    }
}

#[test]
fn a_change_of_the_graph_reaches_one_worker_or_all_that_have_stages() {
    let mut rig = Rig::new(2, OnFull::Drop).start(Mode::Pipeline);
    let count = |r: &mut Rig, worker| {
        let answers = r.runtime.with_graph(worker, |g| g.stages().count()).expect("they answer");
        answers.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(count(&mut rig, None), [(2, 1), (3, 1)]);
    assert_eq!(count(&mut rig, Some(3)), [(3, 1)]);
    assert_eq!(count(&mut rig, Some(4)), [(4, 0)], "asked by name, one without stages answers too");
    rig.stop();
}

#[test]
fn links_are_watched_and_faults_are_kept() {
    let mut rig = Rig::new(2, OnFull::Drop).start(Mode::Pipeline);
    rig.runtime.watch();
    assert!(rig.runtime.faults().is_empty() && rig.runtime.status().ports[1].link.up);
    rig.knobs[1].link_down.store(true, Ordering::Relaxed);
    rig.knobs[1].fault.store(true, Ordering::Relaxed);
    rig.runtime.watch();
    rig.runtime.watch();
    assert!(!rig.runtime.status().ports[1].link.up);
    assert_eq!(rig.runtime.faults(), ["port p1: out of paper; add some"], "once");
    // One that shows only at the end is not missed.
    rig.knobs[0].fault.store(true, Ordering::Relaxed);
    let status = rig.runtime.stop();
    assert_eq!((status.conservation.unexplained, rig.runtime.faults().len()), (Some(0), 2));
}

#[test]
fn changes_that_cannot_be_say_what_can() {
    let mut rig = Rig::new(2, OnFull::Drop);
    let port = rig.port("p9");
    let early = rig.runtime.add_port_live("p9", Box::new(port), config(), OnFull::Drop, None).unwrap_err();
    assert_eq!(early.to_string(), "the runtime does not run: start it first");
    let mut rig = rig.start(Mode::Pipeline);
    let said = |r: Result<(), ringwright::rt::RtError>| r.unwrap_err().to_string();
    let r = &mut rig.runtime;
    assert_eq!(said(r.move_queue(0, 0, 9)), "there is no worker 9; there are workers 0 to 4");
    assert!(said(r.move_queue(0, 0, 2)).contains("worker 2 (process): does not receive from ports"));
    assert!(said(r.move_queue(0, 7, 1)).contains("port p0 has no free queue 7"));
    assert_eq!(said(r.move_queue(5, 0, 1)), "there is no port 5; there are p0, p1");
    assert_eq!(said(r.remove_port(5)), "there is no port 5; there are p0, p1");
    assert_eq!(said(r.set_batching(5, 1, Duration::ZERO)), "there is no port 5; there are p0, p1");
    assert_eq!(said(r.port("p7").map(|_| ())), "there is no port p7; there are p0, p1");
    assert!(said(r.with_graph(Some(5), |_| ()).map(|_| ())).contains("there is no worker 5"));
    let port = rig.port("p0");
    let twice = rig.runtime.add_port_live("p0", Box::new(port), config(), OnFull::Drop, None);
    assert!(said(twice.map(|_| ())).contains("there is a port p0 already"));
    let port = rig.port("p2");
    let wrong = rig.runtime.add_port_live("p2", Box::new(port), config(), OnFull::Drop, Some(4));
    assert!(said(wrong.map(|_| ())).contains("worker 4 (tx)"));
    // A port that the memory has no room for, or that does not start, is gone again.
    for (cfg, why) in [
        (
            ringwright::port::PortConfig { rx_ring: 32_768.try_into().expect("a power of two"), ..config() },
            "set [memory] buffers",
        ),
        (ringwright::port::PortConfig { queues: 9, ..config() }, "9 queues asked"),
    ] {
        let port = rig.port("p2");
        let refused = rig.runtime.add_port_live("p2", Box::new(port), cfg, OnFull::Drop, None);
        assert!(said(refused.map(|_| ())).contains(why));
        assert_eq!(rig.runtime.status().ports.len(), 2);
    }
    rig.runtime.stop();
    assert_eq!(said(rig.runtime.move_queue(0, 0, 1)), "the runtime does not run: start it first");
}

/// Two workers that run to completion send by a queue each.
#[test]
fn a_port_with_too_few_queues_says_how_many_it_takes() {
    let mut rig = Rig::new(2, OnFull::Drop).start(Mode::Complete);
    let port = rig.port("p2");
    let cfg = ringwright::port::PortConfig { queues: 1, ..config() };
    let refused = rig.runtime.add_port_live("p2", Box::new(port), cfg, OnFull::Drop, None).unwrap_err();
    assert!(refused.to_string().contains("set queues = 2"), "{refused}");
    assert_eq!(rig.runtime.status().workers[0].role, Role::RunToCompletion.name());
    rig.stop();
}
