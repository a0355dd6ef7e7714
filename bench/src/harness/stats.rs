//! Medians, spreads, and bootstrap intervals of paired comparisons.

use serde::Serialize;

/// Resamples of one bootstrap. The interval's ends move by less than a percent of its width beyond this.
const RESAMPLES: usize = 4000;

/// What is reported of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Values in the sample.
    pub n: usize,
    /// The middle value.
    pub median: f64,
    /// First quartile.
    pub q1: f64,
    /// Third quartile.
    pub q3: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Summary {
    /// Summary of `values`; `None` of an empty sample.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut v = values.to_vec();
        v.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (v.first()?, v.last()?);
        Some(Self {
            n: v.len(),
            median: quantile(&v, 0.5),
            q1: quantile(&v, 0.25),
            q3: quantile(&v, 0.75),
            min,
            max,
        })
    }
}

/// Median of paired comparisons and its bootstrap 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Pairs of neighbouring blocks.
    pub pairs: usize,
    /// Median of the comparisons.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Median and interval of `values`, one per pair; `None` without pairs. The same values give the same interval: the
    /// resampler is seeded by a constant.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = Summary::of(values)?.median;
        let mut rng = SplitMix(0x5EED);
        let mut draw = vec![0.0; values.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                draw.fill_with(|| values[rng.below(values.len())]);
                draw.sort_unstable_by(f64::total_cmp);
                quantile(&draw, 0.5)
            })
            .collect();
        medians.sort_unstable_by(f64::total_cmp);
        Some(Self {
            pairs: values.len(),
            median,
            low: quantile(&medians, 0.025),
            high: quantile(&medians, 0.975),
        })
    }
}

/// Quantile `q` of an ascending, non-empty sample, linear between neighbours.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_linear_between_neighbours() {
        let s = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((s.min, s.q1, s.median, s.q3, s.max), (1.0, 1.75, 2.5, 3.25, 4.0));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_quartiles_far() {
        let calm: Vec<f64> = (0..21).map(f64::from).collect();
        let mut wild = calm.clone();
        wild[20] = 1e9;
        let (a, b) = (Summary::of(&calm).unwrap(), Summary::of(&wild).unwrap());
        assert_eq!((a.median, a.q1, a.q3), (b.median, b.q1, b.q3));
    }

    #[test]
    fn interval_holds_the_median_and_narrows_with_more_pairs() {
        let noisy = |n: usize| -> Vec<f64> { (0..n).map(|i| 2.0 + ((i * 7) % 10) as f64 / 100.0).collect() };
        let (few, many) = (Interval::of(&noisy(10)).unwrap(), Interval::of(&noisy(200)).unwrap());
        assert!(few.low <= few.median && few.median <= few.high);
        assert!(many.high - many.low < few.high - few.low, "{many:?} {few:?}");
        assert_eq!(Interval::of(&noisy(10)), Interval::of(&noisy(10)), "seeded");
    }
}
