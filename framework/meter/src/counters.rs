//! The meters: one writer each, plain integers, fixed layout.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{DropCounts, Meter};

/// A histogram over `u64` with four buckets to the octave (values within 12.5 % of a bucket's middle), up to 2^20.
///
/// Bucket 0 to 3 hold the values 0 to 3; what is larger than the last bound falls into the last bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Histogram([u64; Self::BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; Self::BUCKETS])
    }
}

impl Histogram {
    /// Buckets.
    pub const BUCKETS: usize = 76;

    /// The bucket of `value`.
    #[inline]
    pub const fn bucket(value: u64) -> usize {
        if value < 4 {
            return value as usize;
        }
        let octave = 63 - value.leading_zeros() as usize;
        let b = (octave - 1) * 4 + ((value >> (octave - 2)) & 3) as usize;
        if b < Self::BUCKETS { b } else { Self::BUCKETS - 1 }
    }

    /// The smallest value of bucket `b`.
    pub const fn lower(b: usize) -> u64 {
        if b < 4 { b as u64 } else { (4 + (b as u64 & 3)) << (b / 4 - 1) }
    }

    /// Counts `weight` events of `value`.
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        self.0[Self::bucket(value)] += weight;
    }

    /// Events in each bucket.
    pub const fn counts(&self) -> &[u64; Self::BUCKETS] {
        &self.0
    }

    /// Events.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The middle of the bucket that holds the `q` quantile (0 to 1); `None` without events.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.total();
        let mut left = (total as f64 * q).ceil().max(1.0) as u64;
        for (b, &n) in self.0.iter().enumerate() {
            if n >= left {
                return (total > 0).then(|| (Self::lower(b) as f64 + (Self::lower(b + 1) - 1) as f64) / 2.0);
            }
            left -= n;
        }
        None
    }

    /// Adds all events of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a += b;
        }
    }
}

/// What one queue did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct QueueMeter {
    /// Calls.
    pub polls: u64,
    /// Calls that moved nothing.
    pub empty_polls: u64,
    /// Packets moved.
    pub packets: u64,
    /// Their bytes, without the frame check sequence.
    pub bytes: u64,
    /// Bursts by size: 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64.
    pub bursts: [u64; 7],
    /// Tail writes.
    pub doorbells: u64,
    /// Calls that left packets behind.
    pub full: u64,
    /// Ticks of the cycle counter that tail writes were held back.
    pub hold: Histogram,
    /// Packets dropped at the queue.
    pub drops: DropCounts,
}

impl QueueMeter {
    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.polls += other.polls;
        self.empty_polls += other.empty_polls;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.bursts.iter_mut().zip(other.bursts).for_each(|(a, b)| *a += b);
        self.doorbells += other.doorbells;
        self.full += other.full;
        self.hold.merge(&other.hold);
        self.drops.merge(&other.drops);
    }
}

impl Meter for QueueMeter {
    const ON: bool = true;
    #[inline]
    fn burst(&mut self, packets: usize, bytes: u64) {
        self.polls += 1;
        self.bytes += bytes;
        if packets == 0 {
            self.empty_polls += 1;
            return;
        }
        self.packets += packets as u64;
        self.bursts[(packets.ilog2() as usize).min(6)] += 1;
    }
    fn add_to(&self, sum: &mut QueueMeter) {
        sum.merge(self);
    }
}

/// What one stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StageMeter {
    /// Batches.
    pub calls: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that the stage made.
    pub created: u64,
    /// Packets that ended inside it on purpose (reassembled, answered).
    pub consumed: u64,
    /// Calls that were timed: those of a random one breath in sixteen.
    pub timed_calls: u64,
    /// Their packets.
    pub timed_packets: u64,
    /// Their ticks.
    pub timed_cycles: u64,
    /// Packets dropped at the stage's exits or by it.
    pub drops: DropCounts,
}

/// What one worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WorkerMeter {
    /// Breaths.
    pub polls: u64,
    /// Breaths that received nothing.
    pub empty_polls: u64,
    /// Packets received.
    pub packets: u64,
    /// Ticks in breaths that moved nothing.
    pub idle_cycles: u64,
    /// Ticks in breaths that did.
    pub useful_cycles: u64,
    /// Buffers taken from and put into the worker's magazines.
    pub cache_hits: u64,
    /// Trips to the depot.
    pub cache_misses: u64,
    /// Buffers in the worker's magazines.
    pub cached: u64,
    /// Buffers posted to devices.
    pub posted: u64,
    /// Buffers in flight to devices.
    pub inflight: u64,
    /// Packets in the worker's batches.
    pub batched: u64,
    /// Packets parked outside any batch.
    pub parked: u64,
    /// Packets that were freed without a reason or a destination: always a fault.
    pub lost: u64,
    /// Times it slept for want of work.
    pub sleeps: u64,
    /// Times that was longer than it may be.
    pub over_bound: u64,
    /// Microseconds of the longest.
    pub longest_sleep: u64,
    /// Microseconds between the breath before a sleep and the one after it.
    pub sleep_gaps: Histogram,
    /// Ticks per packet of the useful breaths, weighted by packets.
    pub cycles_per_packet: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_bounds_and_buckets_agree() {
        for b in 0..Histogram::BUCKETS - 1 {
            let (lo, hi) = (Histogram::lower(b), Histogram::lower(b + 1));
            assert!(lo < hi);
            assert_eq!((Histogram::bucket(lo), Histogram::bucket(hi - 1)), (b, b));
        }
        assert_eq!(Histogram::bucket(u64::MAX), Histogram::BUCKETS - 1);
        assert!(Histogram::lower(Histogram::BUCKETS - 1) >= 900_000);
    }

    #[test]
    fn quantiles_come_from_the_right_bucket() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(0.5), None);
        h.add(2, 98);
        h.add(1000, 2);
        assert_eq!(h.quantile(0.5), Some(2.0));
        let p99 = h.quantile(0.99).unwrap();
        assert!((896.0..1024.0).contains(&p99), "{p99}");
    }

    #[test]
    fn bursts_are_counted_by_size_and_empty_polls_apart() {
        let mut m = QueueMeter::default();
        for n in [0, 1, 3, 32, 64] {
            m.burst(n, 60 * n as u64);
        }
        assert_eq!((m.polls, m.empty_polls, m.packets, m.bytes), (5, 1, 100, 6000));
        assert_eq!(m.bursts, [1, 1, 0, 0, 0, 1, 1]);
    }
}
