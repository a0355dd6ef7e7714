//! Packet memory, and what is of the runtime as a whole.

use super::sheet::{Number, Sheet, Title, labels};
use crate::control::Observation;

const POOL: Title = Title::of("pool", "buffers", "Packet buffers by where they are.");
const CAPACITY: Title = Title::of("pool_capacity", "buffers", "Packet buffers that a pool has in all.");
const CACHE: Title = Title::plain(
    "pool_cache",
    "Buffers that passed through a worker's magazines (hit), and trips to the depot (miss).",
);
const UNEXPLAINED: Title =
    Title::plain("packets_unexplained", "Packets that nothing accounts for; absent while that is not known.");
const HELD: Title = Title::plain("packets_held", "Packets in workers' batches and in rings between workers.");
const LINT: Title =
    Title::plain("lint", "Something that is not as it should be: see the log and /api/v1/status.");
const BUILD: Title = Title::plain("build_info", "The version that runs.");
const UPTIME: Title = Title::of("uptime", "seconds", "Time since the start.");
const TSC: Title =
    Title::of("tsc", "hertz", "Ticks of the time stamp counter in a second, in which cycles are.");

pub(super) fn fill(o: &Observation, s: &mut Sheet) {
    let status = &o.status;
    s.gauge(BUILD, labels! { version: status.version }, Number::Whole(1));
    s.gauge(UPTIME, labels! {}, Number::Real(status.elapsed_s));
    if status.tsc_hz > 0 {
        s.gauge(TSC, labels! {}, Number::Whole(status.tsc_hz));
    }
    pools(o, s);
    let c = &status.conservation;
    s.gauge(HELD, labels! {}, Number::Whole(c.held));
    if let Some(n) = c.unexplained {
        s.gauge(UNEXPLAINED, labels! {}, Number::Whole(n));
    }
    for l in &status.lints {
        s.gauge(LINT, labels! { lint: l.lint, object: l.object }, Number::Whole(1));
    }
}

fn pools(o: &Observation, s: &mut Sheet) {
    let (mut cached, mut places) = (0, [("cached", 0), ("posted", 0), ("inflight", 0), ("other", 0)]);
    for (id, m) in &o.meters.workers {
        s.count(CACHE, labels! { worker: id, result: "hit" }, m.cache_hits);
        s.count(CACHE, labels! { worker: id, result: "miss" }, m.cache_misses);
        cached += m.cached;
        let here = [m.cached, m.posted, m.inflight, m.batched + m.parked];
        places.iter_mut().zip(here).for_each(|(p, n)| p.1 += n);
    }
    // Packets in rings between workers are in nobody's batches.
    places[3].1 += o.status.handoffs.iter().map(|h| h.occupancy).sum::<u64>();
    let pools = &o.status.pools;
    for p in pools {
        let of = |state: Option<&str>| {
            let mut labels: Vec<_> = p.node.map(|n| ("node", n.to_string())).into_iter().collect();
            labels.extend(state.map(|s| ("state", s.to_owned())));
            labels
        };
        s.gauge(CAPACITY, of(None), Number::Whole(p.capacity as u64));
        if pools.len() > 1 {
            // Which pool's buffers the workers have is not known then; what is available is in the depot.
            s.gauge(POOL, of(Some("free")), Number::Whole(p.available as u64));
            continue;
        }
        let free = (p.available as u64).saturating_sub(cached);
        for (state, n) in [("free", free)].into_iter().chain(places) {
            s.gauge(POOL, of(Some(state)), Number::Whole(n));
        }
    }
}
