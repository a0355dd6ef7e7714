//! Workers and stages.

use super::ports::DROPS;
use super::sheet::{Number, Sheet, Title, exact, labels};
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
        let c = &w.cycles;
        for (state, n) in [("idle", Some(c.idle)), ("useful", Some(c.useful)), ("stall", c.stall)] {
            if let Some(n) = n {
                s.count(CYCLES, of(&[("state", state)]), n);
            }
        }
    }
    for (id, m) in &o.meters.workers {
        s.histogram(PER_PACKET, labels! { worker: id }, exact(&m.cycles_per_packet, m.useful_cycles as f64));
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
    stages(o, s);
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
