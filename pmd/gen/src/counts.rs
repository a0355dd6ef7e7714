//! What queues count for the control side: each place has one writer, and anyone may read it at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::add;
use crate::latency::{Histogram, Latencies, Latency};

fn read(from: &AtomicU64) -> u64 {
    from.load(Ordering::Relaxed)
}

/// Frames that passed, how many bits they take on the wire, and when.
#[derive(Default)]
pub struct Pulse {
    frames: AtomicU64,
    bits: AtomicU64,
    /// Ticks of the first burst plus one (0: there was none), and of the last.
    first: AtomicU64,
    last: AtomicU64,
    /// Frames and bits before the last burst: those that took from the first to the last.
    frames_before: AtomicU64,
    bits_before: AtomicU64,
}

impl Pulse {
    /// A burst passed at `now`.
    #[inline]
    pub fn beat(&self, frames: usize, bits: u64, now: u64) {
        let (had, had_bits) = (read(&self.frames), read(&self.bits));
        if read(&self.first) == 0 {
            self.first.store(now.max(1), Ordering::Relaxed);
        }
        let stores = [
            (&self.frames_before, had),
            (&self.bits_before, had_bits),
            (&self.last, now),
            (&self.frames, had + frames as u64),
            (&self.bits, had_bits + bits),
        ];
        stores.into_iter().for_each(|(to, n)| to.store(n, Ordering::Relaxed));
    }

    fn rate(&self, hz: u64) -> Option<Throughput> {
        let ticks = read(&self.last).checked_sub(read(&self.first)).filter(|t| *t > 0)?;
        let per_second = |n: &AtomicU64| read(n) as f64 * hz as f64 / ticks as f64;
        Some(Throughput {
            packets_per_second: per_second(&self.frames_before),
            wire_bits_per_second: per_second(&self.bits_before),
        })
    }
}

/// How fast frames passed, from the first to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Frames a second.
    pub packets_per_second: f64,
    /// Bits a second on the wire, with check sequences, preambles and gaps.
    pub wire_bits_per_second: f64,
}

/// What one receive queue has made.
#[derive(Default)]
#[repr(align(128))]
pub struct Made {
    pub pulse: Pulse,
    /// Frames that were let go because they were too late.
    pub skipped: AtomicU64,
}

/// What one transmit queue has checked.
#[derive(Default)]
#[repr(align(128))]
pub struct Checked {
    /// All frames, also those that are none of this run's.
    pub frames: AtomicU64,
    /// Those of this run.
    pub pulse: Pulse,
    pub ordered: AtomicU64,
    pub reordered: AtomicU64,
    pub repeated: AtomicU64,
    pub too_late: AtomicU64,
    pub changed: AtomicU64,
    /// Of those changed: not a repetition, as far as can be told.
    pub changed_new: AtomicU64,
    pub foreign: AtomicU64,
    pub extents: AtomicU64,
    pub extent_max: AtomicU64,
    pub latency: Histogram,
}

/// What one burst comes to.
#[derive(Default)]
pub struct Tally {
    pub ours: usize,
    pub bits: u64,
    pub ordered: usize,
    pub reordered: usize,
    pub repeated: usize,
    pub too_late: usize,
    pub changed: usize,
    pub changed_new: usize,
    pub foreign: usize,
    pub extents: u64,
    pub extent_max: u64,
}

impl Checked {
    /// Adds a burst's counts.
    #[inline]
    pub fn publish(&self, t: &Tally, now: u64) {
        add(&self.frames, t.ours + t.foreign);
        add(&self.ordered, t.ordered);
        if t.ours > 0 {
            self.pulse.beat(t.ours, t.bits, now);
        }
        if t.ordered != t.ours + t.foreign {
            self.publish_rest(t);
        }
    }

    #[cold]
    fn publish_rest(&self, t: &Tally) {
        add(&self.reordered, t.reordered);
        add(&self.repeated, t.repeated);
        add(&self.too_late, t.too_late);
        add(&self.changed, t.changed);
        add(&self.changed_new, t.changed_new);
        add(&self.foreign, t.foreign);
        add(&self.extents, t.extents as usize);
        let most = read(&self.extent_max).max(t.extent_max);
        self.extent_max.store(most, Ordering::Relaxed);
    }
}

/// What has been made and checked so far. While frames are under way, what has not arrived yet is not lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Frames made.
    pub made: u64,
    /// Frames that were not made because they were too late to be made up for: what the rate asked for fell short by.
    pub skipped: u64,
    /// How fast they were made; `None` before the second burst.
    pub made_rate: Option<Throughput>,
    /// Frames that arrived: those of this run, in whatever state.
    pub arrived: u64,
    /// How fast they arrived; `None` before the second burst.
    pub arrived_rate: Option<Throughput>,
    /// Arrived once, unchanged and in the order of their flow.
    pub ordered: u64,
    /// Arrived unchanged for the first time, but after a later one of their flow (RFC 4737, 3.3).
    pub reordered: u64,
    /// The largest extent of a reordered frame: how many arrived from the first later one up to it (RFC 4737, 4.2.1).
    pub extent_max: Option<u64>,
    /// The mean extent of reordered frames.
    pub extent_mean: Option<f64>,
    /// Arrived unchanged, and had arrived before.
    pub repeated: u64,
    /// Arrived unchanged, but so late that nobody can tell whether for the first time.
    pub too_late: u64,
    /// Arrived changed.
    pub changed: u64,
    /// Of those changed: not repeated, as far as can be told.
    pub changed_new: u64,
    /// Came in and are none of this run's.
    pub foreign: u64,
    /// How long those that arrived unchanged for the first time took.
    pub latency: Option<Latency>,
}

impl Counts {
    /// Adds up all queues, on a clock of `hz` ticks a second.
    pub(crate) fn of(made: &[Arc<Made>], checked: &[Arc<Checked>], hz: u64) -> Self {
        // Arrivals first: a frame between the two sums must not look like one too many.
        let sum = |f: fn(&Checked) -> &AtomicU64| checked.iter().map(|c| read(f(c))).sum::<u64>();
        let (reordered, extents) = (sum(|c| &c.reordered), sum(|c| &c.extents));
        let counts = Self {
            arrived: sum(|c| &c.pulse.frames),
            arrived_rate: total(checked.iter().map(|c| &c.pulse), hz),
            ordered: sum(|c| &c.ordered),
            reordered,
            extent_max: checked.iter().map(|c| read(&c.extent_max)).max().filter(|_| reordered > 0),
            extent_mean: (reordered > 0).then(|| extents as f64 / reordered as f64),
            repeated: sum(|c| &c.repeated),
            too_late: sum(|c| &c.too_late),
            changed: sum(|c| &c.changed),
            changed_new: sum(|c| &c.changed_new),
            foreign: sum(|c| &c.foreign),
            latency: Latencies::of(checked.iter().map(|c| &c.latency)).summary(hz),
            ..Self::default()
        };
        Self {
            made: made.iter().map(|m| read(&m.pulse.frames)).sum(),
            skipped: made.iter().map(|m| read(&m.skipped)).sum(),
            made_rate: total(made.iter().map(|m| &m.pulse), hz),
            ..counts
        }
    }

    /// Frames made that have not arrived in any state: lost, or under way. Of those too late to tell ([`Counts::too_late`]) each
    /// may be one that is counted here.
    pub const fn missing(&self) -> u64 {
        self.made.saturating_sub(self.ordered + self.reordered + self.changed_new)
    }
}

/// Queues beside each other.
fn total<'p>(all: impl Iterator<Item = &'p Pulse>, hz: u64) -> Option<Throughput> {
    all.filter_map(|p| p.rate(hz)).reduce(|a, b| Throughput {
        packets_per_second: a.packets_per_second + b.packets_per_second,
        wire_bits_per_second: a.wire_bits_per_second + b.wire_bits_per_second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_time_from_the_first_to_the_last() {
        let p = Pulse::default();
        assert_eq!(p.rate(1000), None, "unknown, not zero");
        p.beat(1, 672, 5000);
        assert_eq!(p.rate(1000), None);
        // Ten a second: the eleventh marks the end of the second, and is not in it.
        (1..=10).for_each(|i| p.beat(1, 672, 5000 + i * 100));
        let rate = p.rate(1000).unwrap();
        assert_eq!((rate.packets_per_second, rate.wire_bits_per_second), (10.0, 6720.0));
    }
}
