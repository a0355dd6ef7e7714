//! When frames may come in.

use config::Rate;
use hw::tsc_hz;

use crate::keys::PaceKey;

/// How far behind a rate may fall, as one part of a second: what is older than that is not made up for.
const CATCH_UP: u64 = 10;
/// Bytes around a frame on the wire that are not in a file (IEEE 802.3): check sequence; preamble, delimiter and gap.
const CHECK: usize = 4;
const AROUND: usize = 20;
/// The shortest frame on the wire, with its check sequence.
const SHORTEST: usize = 64;

/// Decides when the next frame is due. Times are ticks of [`hw::cycles`]; sums are exact, so that no error adds up.
pub enum Pace {
    /// At once.
    Full,
    /// At the distance from the first that the file says.
    Recorded {
        /// When the first was delivered, and its stamp.
        first: Option<(u64, u64)>,
        /// Ticks in a nanosecond, in 2^-32.
        ticks: u128,
    },
    /// At a rate.
    Rate {
        /// When the next is due, in 2^-64 ticks.
        due: Option<u128>,
        /// Ticks for one unit, in 2^-64.
        unit: u128,
        /// Whether a unit is a bit on the wire or a frame.
        bits: bool,
    },
}

impl Pace {
    pub fn new(key: PaceKey) -> Self {
        let unit = |per_second: f64| (tsc_hz() as f64 / per_second * 2f64.powi(64)) as u128;
        match key {
            PaceKey::Full => Self::Full,
            PaceKey::Recorded => {
                Self::Recorded { first: None, ticks: (u128::from(tsc_hz()) << 32) / 1_000_000_000 }
            }
            PaceKey::Rate(Rate::Packets(n)) => Self::Rate { due: None, unit: unit(n), bits: false },
            PaceKey::Rate(Rate::Bits(n)) => Self::Rate { due: None, unit: unit(n), bits: true },
        }
    }
    /// Whether the clock need not be read.
    #[inline]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }

    /// Whether a frame with this stamp (nanoseconds) is due at `now`.
    #[inline]
    pub fn is_due(&self, time: Option<u64>, now: u64) -> bool {
        match *self {
            Self::Full | Self::Recorded { first: None, .. } | Self::Rate { due: None, .. } => true,
            Self::Recorded { first: Some((then, stamp)), ticks } => {
                // A frame without a stamp, or with one before the first, does not wait.
                let after = time.map_or(0, |t| t.saturating_sub(stamp));
                now.wrapping_sub(then) >= u64::try_from((u128::from(after) * ticks) >> 32).unwrap_or(u64::MAX)
            }
            Self::Rate { due: Some(due), .. } => u128::from(now) << 64 >= due,
        }
    }

    /// A frame with this stamp and length was delivered at `now`.
    #[inline]
    pub fn delivered(&mut self, time: Option<u64>, len: usize, now: u64) {
        match self {
            Self::Recorded { first: first @ None, .. } => *first = time.map(|t| (now, t)),
            Self::Full | Self::Recorded { .. } => {}
            Self::Rate { due, unit, bits } => {
                let units = if *bits { ((len + CHECK).max(SHORTEST) + AROUND) * 8 } else { 1 };
                let now = u128::from(now) << 64;
                let late = u128::from(tsc_hz() / CATCH_UP) << 64;
                let from = due.unwrap_or(now).max(now.saturating_sub(late));
                *due = Some(from.saturating_add(units as u128 * *unit));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers frames as soon as they are due, with the clock going on by `tick`; returns when each was.
    fn run(pace: &mut Pace, frames: &[(u64, usize)], start: u64, tick: u64) -> Vec<u64> {
        let mut now = start;
        let one = |&(time, len): &(u64, usize)| {
            while !pace.is_due(Some(time), now) {
                now += tick;
            }
            pace.delivered(Some(time), len, now);
            now - start
        };
        frames.iter().map(one).collect()
    }

    #[test]
    fn recorded_gaps_are_kept_and_stamps_that_go_back_do_not_wait() {
        let hz = tsc_hz();
        let stamps = [5_000_000_000, 5_500_000_000, 5_400_000_000, 4_000_000_000, 6_000_000_000];
        let frames = stamps.map(|t| (t, 60));
        let tick = hz / 1_000_000;
        let at = run(&mut Pace::new(PaceKey::Recorded), &frames, 77, tick);
        let late = |at: u64, part: u64| at.checked_sub(hz / part).expect("not early") <= tick;
        assert!(at[0] == 0 && late(at[1], 2) && at[2] == at[1] && at[3] == at[1] && late(at[4], 1), "{at:?}");
        let mut pace = Pace::new(PaceKey::Recorded);
        pace.delivered(None, 60, 0);
        assert!(pace.is_due(Some(1 << 60), 1), "what has no stamp sets no clock");
    }

    #[test]
    fn a_rate_does_not_drift() {
        // A third of a packet for each tick, as near as that goes: a million of them take exactly their time.
        let hz = tsc_hz();
        let mut pace = Pace::new(PaceKey::Rate(Rate::Packets(hz as f64 / 3.0)));
        let frames = vec![(0, 60); 1_000_001];
        let last = *run(&mut pace, &frames, 1 << 50, 1).last().unwrap();
        assert!(last.abs_diff(3_000_000) <= 1, "{last}");
        let mut pace = Pace::new(PaceKey::Rate(Rate::Packets(hz as f64 / 2.5)));
        let at = run(&mut pace, &frames[..5], 0, 1);
        assert_eq!(at, [0, 3, 5, 8, 10]);
    }

    #[test]
    fn bits_are_those_on_the_wire() {
        let hz = tsc_hz() as f64;
        let mut pace = Pace::new(PaceKey::Rate(Rate::Bits(hz)));
        // 64 + 20 bytes for the shortest frame; 1514 + 4 + 20 for the longest without a tag.
        let at = run(&mut pace, &[(0, 42), (0, 60), (0, 1514), (0, 60)], 0, 1);
        assert_eq!(at, [0, 84 * 8, 2 * 84 * 8, 2 * 84 * 8 + 1538 * 8]);
    }

    #[test]
    fn what_was_missed_for_long_is_not_made_up_for() {
        let hz = tsc_hz();
        let mut pace = Pace::new(PaceKey::Rate(Rate::Packets(1000.0)));
        pace.delivered(None, 60, 0);
        let now = 10 * hz;
        let burst = (0..100_000)
            .take_while(|_| pace.is_due(None, now).then(|| pace.delivered(None, 60, now)).is_some());
        assert!((99..=102).contains(&burst.count()), "a tenth of a second's worth");
    }
}
