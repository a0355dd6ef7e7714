//! How long frames took.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets to an octave: a value is within 1.6 % of its bucket's middle.
const SUB: u64 = 32;
const SUB_BITS: u32 = SUB.trailing_zeros();
/// Values are below 2^40 ticks: minutes.
const VALUE_BITS: u32 = 40;
const BUCKETS: usize = (VALUE_BITS - SUB_BITS + 1) as usize * SUB as usize;

#[inline]
const fn bucket(ticks: u64) -> usize {
    if ticks < SUB {
        return ticks as usize;
    }
    let shift = 63 - SUB_BITS - ticks.leading_zeros();
    let b = (shift as u64 * SUB + (ticks >> shift)) as usize;
    if b < BUCKETS { b } else { BUCKETS - 1 }
}

/// The smallest value of bucket `b`.
const fn lower(b: usize) -> u64 {
    let (octave, sub) = (b as u64 / SUB, b as u64 % SUB);
    if octave == 0 { sub } else { (SUB + sub) << (octave - 1) }
}

/// A histogram with one writer, that others may read at any time.
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
    /// One more than the least; 0 before the first.
    least: AtomicU64,
    most: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        let zero = AtomicU64::default;
        let buckets = (0..BUCKETS).map(|_| zero()).collect();
        Self { buckets, sum: zero(), least: zero(), most: zero() }
    }
}

impl Histogram {
    /// Counts one value. To be called by one thread at a time.
    #[inline]
    pub fn add(&self, ticks: u64) {
        if let Some(b) = self.buckets.get(bucket(ticks)) {
            crate::add(b, 1);
        }
        crate::add(&self.sum, ticks);
        let least = self.least.load(Ordering::Relaxed);
        if ticks < least.wrapping_sub(1) {
            self.least.store(ticks + 1, Ordering::Relaxed);
        }
        if ticks > self.most.load(Ordering::Relaxed) {
            self.most.store(ticks, Ordering::Relaxed);
        }
    }
}

/// What several histograms hold together.
#[derive(Clone, Debug)]
pub struct Latencies {
    buckets: Vec<u64>,
    sum: u64,
    least: Option<u64>,
    most: u64,
}

/// Nanoseconds from when a frame was made until it was checked. Quantiles are within 1.6 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The least, exactly.
    pub min: u64,
    /// The mean, exactly.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// 99 % are below.
    pub p99: u64,
    /// 99.9 % are below.
    pub p999: u64,
    /// The most, exactly.
    pub max: u64,
}

impl Latencies {
    /// Adds up `all`.
    pub fn of<'h>(all: impl IntoIterator<Item = &'h Histogram>) -> Self {
        let mut sum = Self { buckets: vec![0; BUCKETS], sum: 0, least: None, most: 0 };
        for h in all {
            for (to, from) in sum.buckets.iter_mut().zip(&h.buckets) {
                *to += from.load(Ordering::Relaxed);
            }
            sum.sum += h.sum.load(Ordering::Relaxed);
            let least = h.least.load(Ordering::Relaxed).checked_sub(1);
            sum.least = [sum.least, least].into_iter().flatten().min();
            sum.most = sum.most.max(h.most.load(Ordering::Relaxed));
        }
        sum
    }

    /// In nanoseconds, on a clock of `hz` ticks a second; `None` if nothing was counted.
    pub fn summary(&self, hz: u64) -> Option<Latency> {
        let total: u64 = self.buckets.iter().sum();
        let least = self.least.filter(|_| total > 0)?;
        let ns = |ticks: f64| (ticks * 1e9 / hz as f64).round() as u64;
        // A bucket's middle may lie outside of what was seen.
        let quantile = |q: f64| ns(self.quantile(total, q).clamp(least as f64, self.most as f64));
        Some(Latency {
            min: ns(least as f64),
            mean: ns(self.sum as f64 / total as f64),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: ns(self.most as f64),
        })
    }

    fn quantile(&self, total: u64, q: f64) -> f64 {
        let mut left = (total as f64 * q).ceil().max(1.0) as u64;
        for (b, &n) in self.buckets.iter().enumerate() {
            if n >= left {
                return (lower(b) + lower(b + 1) - 1) as f64 / 2.0;
            }
            left -= n;
        }
        self.most as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_bounds_agree_and_are_narrow() {
        for b in 0..BUCKETS - 1 {
            let (lo, hi) = (lower(b), lower(b + 1));
            assert!(lo < hi);
            assert_eq!((bucket(lo), bucket(hi - 1)), (b, b));
            assert!(lo < SUB || (hi - lo) * SUB <= lo, "{lo} to {hi}");
        }
        assert_eq!(bucket((1 << VALUE_BITS) - 1), BUCKETS - 1);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_summary_is_of_all_histograms() {
        let (a, b) = (Histogram::default(), Histogram::default());
        assert_eq!(Latencies::of([&a, &b]).summary(1_000_000_000), None, "unknown, not zero");
        (1..=999).for_each(|n| a.add(n * 1000));
        b.add(5_000_000);
        let s = Latencies::of([&a, &b]).summary(1_000_000_000).unwrap();
        assert_eq!((s.min, s.max, s.mean), (1000, 5_000_000, 504_500));
        let near = |got: u64, want: u64| got.abs_diff(want) * 60 <= want;
        assert!(near(s.p50, 500_000) && near(s.p99, 990_000) && near(s.p999, 999_000), "{s:?}");
        let half = Latencies::of([&a]).summary(2_000_000_000).unwrap();
        assert_eq!((half.min, half.max), (500, 499_500), "ticks of half a nanosecond");
    }

    #[test]
    fn one_value_is_every_quantile() {
        let h = Histogram::default();
        h.add(0);
        let s = Latencies::of([&h]).summary(1_000_000_000).unwrap();
        assert_eq!(s, Latency::default());
        let h = Histogram::default();
        h.add(12_345);
        let s = Latencies::of([&h]).summary(1_000_000_000).unwrap();
        assert_eq!([s.min, s.mean, s.p50, s.p99, s.p999, s.max], [12_345; 6]);
    }
}
