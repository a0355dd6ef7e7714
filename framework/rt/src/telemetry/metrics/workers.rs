//! Workers, the rings between them, and stages.

use super::ports::DROPS;
use super::sheet::{Number, Sheet, Title, exact, labels, rebucket};
use crate::control::Observation;

const POLLS: Title = Title::plain("worker_polls", "Breaths, by whether they received anything.");
const PACKETS: Title = Title::of("worker", "packets", "Packets that a worker received.");
const CYCLES: Title =
    Title::of("worker", "cycles", "Ticks of the time stamp counter, by what they went into.");
const PER_PACKET: Title = Title::plain(
    "cycles_per_packet",
    "Ticks of breaths that received packets, by packet; weighted by packets.",
);
const BUFFERS: Title = Title::of("worker", "buffers", "Packet buffers that a worker has, by where they are.");
const INFO: Title = Title::plain("worker_info", "What a worker does, and what when there is nothing to do.");
const SLEEPS: Title = Title::plain("worker_sleeps", "Times that a worker slept for want of work.");
const OVER: Title = Title::plain("worker_sleeps_over_bound", "Sleeps that took longer than they may.");
const SLEEP: Title =
    Title::of("worker_sleep", "seconds", "Time from the breath before a sleep to the one after it.");
const LONGEST: Title = Title::of("worker_longest_sleep", "seconds", "The longest of these times so far.");
const BOUND: Title = Title::of("worker_sleep_bound", "seconds", "The longest that a sleep may take.");
/// Bounds of sleeps.
const SLEEP_BOUNDS: [f64; 12] = [5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1];
const HANDED: Title = Title::of("handoff", "packets", "Packets that went into a ring between two workers.");
const RING: Title =
    Title::of("handoff_occupancy", "ratio", "How full a ring between two workers is, from 0 to 1.");
const STAGE_PACKETS: Title = Title::of("stage", "packets", "Packets that a stage was given.");
const STAGE_CALLS: Title = Title::plain("stage_calls", "Batches that a stage was given.");
pub(super) const STAGE: &str = "stage";
const STAGE_CYCLES: Title = Title::of(
    STAGE,
    "cycles",
    "Ticks that a stage took, estimated from those of its calls that were timed (1 breath in 16).",
);
const CREATED: Title = Title::of("stage_created", "packets", "Packets that a stage made.");
const CONSUMED: Title = Title::of("stage_consumed", "packets", "Packets that ended in a stage on purpose.");

pub(super) fn fill(o: &Observation, s: &mut Sheet) {
    for w in &o.status.workers {
        let of = |more: &[(&'static str, &str)]| {
            let mut labels = labels! { worker: w.id };
            labels.extend(w.core.map(|c| ("core", c.to_string())));
            labels.extend(more.iter().map(|(k, v)| (*k, (*v).to_owned())));
            labels
        };
        s.count(POLLS, of(&[("result", "work")]), w.polls - w.empty_polls);
        s.count(POLLS, of(&[("result", "empty")]), w.empty_polls);
        s.count(PACKETS, of(&[]), w.packets);
        let mut info = of(&[("role", w.role)]);
        info.extend((!w.idle.strategy.is_empty()).then(|| ("idle", w.idle.strategy.to_owned())));
        s.gauge(INFO, info, Number::Whole(1));
        s.count(SLEEPS, of(&[]), w.idle.sleeps);
        s.count(OVER, of(&[]), w.idle.over_bound);
        if let Some(us) = w.idle.bound_us {
            s.gauge(BOUND, of(&[]), Number::Real(us / 1e6));
        }
        if let Some(us) = w.idle.longest_us {
            s.gauge(LONGEST, of(&[]), Number::Real(us as f64 / 1e6));
        }
        let c = &w.cycles;
        for (state, n) in [("idle", Some(c.idle)), ("useful", Some(c.useful)), ("stall", c.stall)] {
            if let Some(n) = n {
                s.count(CYCLES, of(&[("state", state)]), n);
            }
        }
    }
    for (id, m) in &o.meters.workers {
        s.histogram(PER_PACKET, labels! { worker: id }, exact(&m.cycles_per_packet, m.useful_cycles as f64));
        if m.sleeps > 0 {
            s.histogram(SLEEP, labels! { worker: id }, rebucket(&m.sleep_gaps, &SLEEP_BOUNDS, 1e-6, None));
        }
        let places = [
            ("cached", m.cached),
            ("posted", m.posted),
            ("inflight", m.inflight),
            ("other", m.batched + m.parked),
        ];
        for (state, n) in places {
            s.gauge(BUFFERS, labels! { worker: id, state: state }, Number::Whole(n));
        }
    }
    handoffs(o, s);
    stages(o, s);
}

fn handoffs(o: &Observation, s: &mut Sheet) {
    for h in &o.status.handoffs {
        let mut way = labels! { from: h.from, to: h.to };
        way.extend(h.port.iter().map(|p| ("port", p.clone())));
        s.count(HANDED, way.clone(), h.packets);
        if h.capacity > 0 {
            s.gauge(RING, way.clone(), Number::Real(h.occupancy as f64 / h.capacity as f64));
        }
        for (reason, n) in &h.drops {
            let mut why = way.clone();
            why.push(("reason", (*reason).to_owned()));
            s.count(DROPS, why, *n);
        }
    }
}

fn stages(o: &Observation, s: &mut Sheet) {
    for stage in &o.status.stages {
        let of = || labels! { worker: stage.worker, stage: stage.name };
        s.count(STAGE_PACKETS, of(), stage.packets);
        s.count(STAGE_CALLS, of(), stage.calls);
        if let Some(cycles) = stage.cycles {
            s.count(STAGE_CYCLES, of(), cycles);
        }
        s.count(CREATED, of(), stage.created);
        s.count(CONSUMED, of(), stage.consumed);
        for (reason, n) in &stage.drops {
            s.count(DROPS, labels! { stage: stage.name, reason: reason }, *n);
        }
    }
}
