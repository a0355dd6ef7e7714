//! When the next frame is due.

use config::Rate;
use std::time::Duration;

use crate::sizes::{Sizes, wire_bits};

/// Moments are in ticks of the cycle counter, times 2^32: what rounding leaves out of a frame's share is less than
/// a tick in a billion frames.
const FRACTION: u32 = 32;
type Moment = u128;

/// A clock that says how many frames are due. It never drifts: each frame is due one share of time after the one before,
/// whenever it was really made.
///
/// What falls behind is made up for, but only for [`Pacer::new`]'s `catch_up`; what is later than that is let go and counted in
/// [`Pacer::skipped`]. So a stall never ends in a flood, and a rate that was not reached is known.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// By size: how long a frame takes at the rate.
    shares: Vec<Moment>,
    /// The mean of a share.
    mean: Moment,
    catch_up: Moment,
    /// When the next frame is due; `None` while at rest.
    due: Option<Moment>,
    skipped: u64,
}

impl Pacer {
    /// For frames of `sizes` at `rate`, of which this is the part `part` (1 for all), on a clock of `hz` ticks a second.
    pub fn new(rate: Rate, part: f64, sizes: &Sizes, hz: u64, catch_up: Duration) -> Self {
        let ticks = |seconds: f64| (seconds * hz as f64 * (1u64 << FRACTION) as f64).max(1.0) as Moment;
        let share = |bits: f64| match rate {
            Rate::Packets(per_second) => ticks(1.0 / (per_second * part)),
            Rate::Bits(per_second) => ticks(bits / (per_second * part)),
        };
        Self {
            shares: sizes.iter().map(|s| share(wire_bits(s) as f64)).collect(),
            mean: share(sizes.mean_wire_bits()),
            catch_up: ticks(catch_up.as_secs_f64()),
            due: None,
            skipped: 0,
        }
    }

    /// Stops the clock: what is not made from now on is not late.
    pub const fn rest(&mut self) {
        self.due = None;
    }

    /// Frames that were let go because they were too late to be made up for.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many of the next frames, whose sizes `sizes` names by index, are due at `now`. Starts the clock if it rests.
    pub fn due(&mut self, now: u64, sizes: impl Iterator<Item = usize>) -> usize {
        let now = Moment::from(now) << FRACTION;
        let mut due = *self.due.get_or_insert(now);
        let late = now.saturating_sub(due);
        if late > self.catch_up + self.mean {
            // Whole frames only, so that the rest are due when they would have been.
            let frames = (late - self.catch_up) / self.mean;
            due += frames * self.mean;
            self.due = Some(due);
            self.skipped += frames as u64;
        }
        let mut n = 0;
        for size in sizes {
            if due > now {
                break;
            }
            due += self.share(size);
            n += 1;
        }
        n
    }

    /// A frame of this size was made.
    #[inline]
    pub fn charge(&mut self, size: usize) {
        let share = self.share(size);
        if let Some(due) = &mut self.due {
            *due += share;
        }
    }

    #[inline]
    fn share(&self, size: usize) -> Moment {
        self.shares.get(size).copied().unwrap_or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 2_596_139_800;
    const MS: u64 = HZ / 1000;

    fn one_size(rate: Rate) -> Pacer {
        Pacer::new(rate, 1.0, &Sizes::one(64).unwrap(), HZ, Duration::from_millis(1))
    }

    /// Asks at `now` for at most `most`, and makes what is due.
    fn step(p: &mut Pacer, now: u64, most: usize) -> u64 {
        let n = p.due(now, std::iter::repeat_n(0, most));
        (0..n).for_each(|_| p.charge(0));
        n as u64
    }

    #[test]
    fn the_rate_is_kept_without_drift_however_often_it_is_asked() {
        // Rates and steps that divide nothing evenly, over ten minutes of clock.
        for (rate, step_ticks) in [(1_000_003.0, 51_234), (14_880_952.4, 3_001), (7.0, 111_111_111)] {
            let mut p = one_size(Rate::Packets(rate));
            let (start, seconds) = (u64::from(u32::MAX), if rate > 1e6 { 2 } else { 600 });
            let (mut now, mut made) = (start, 0);
            while now < start + seconds * HZ {
                made += step(&mut p, now, 64);
                now += step_ticks;
            }
            let elapsed = (now - step_ticks - start) as f64 / HZ as f64;
            let expected = (elapsed * rate).floor() + 1.0;
            assert!((made as f64 - expected).abs() <= 1.0, "{rate}: {made} of {expected}");
            assert_eq!(p.skipped(), 0);
        }
    }

    #[test]
    fn a_frame_is_never_made_before_it_is_due() {
        let mut p = one_size(Rate::Packets(1000.0));
        assert_eq!(step(&mut p, 0, 64), 1, "the first at once");
        assert_eq!(step(&mut p, MS - 1000, 64), 0);
        assert_eq!(step(&mut p, MS + 1, 64), 1);
        assert_eq!(step(&mut p, MS + 2, 64), 0);
    }

    #[test]
    fn a_short_stall_is_made_up_for_in_bounded_bursts() {
        let mut p = one_size(Rate::Packets(1e6));
        assert_eq!(step(&mut p, 0, 32), 1);
        let after = MS / 10 + 10;
        let bursts: Vec<_> = (0..5).map(|_| step(&mut p, after, 32)).collect();
        assert_eq!((bursts.iter().sum::<u64>(), bursts[0], bursts[4]), (100, 32, 0));
        assert_eq!(p.skipped(), 0);
    }

    #[test]
    fn what_is_too_late_is_let_go_and_counted() {
        let mut p = one_size(Rate::Packets(1e6));
        assert_eq!(step(&mut p, 0, 64), 1);
        let made: u64 = std::iter::repeat_with(|| step(&mut p, 100 * MS, 64)).take_while(|n| *n > 0).sum();
        assert!((1000..=1002).contains(&made), "a millisecond's worth: {made}");
        assert!((98_998..=99_000).contains(&p.skipped()), "{}", p.skipped());
        let later: u64 = (0..2000).map(|i| step(&mut p, 100 * MS + i * MS / 20, 64)).sum();
        let in_all = 1 + made + later + p.skipped();
        let due = (100.0 + 99.95) * 1000.0;
        assert!(
            (in_all as f64 - due).abs() <= 2.0,
            "made and let go are all that were due: {in_all} of {due}"
        );
    }

    #[test]
    fn rest_is_not_lateness() {
        let mut p = one_size(Rate::Packets(1e6));
        step(&mut p, 0, 64);
        p.rest();
        assert_eq!(step(&mut p, 50 * MS, 64), 1, "the clock starts anew");
        assert_eq!(p.skipped(), 0);
    }

    #[test]
    fn bits_a_second_are_those_of_the_sizes_that_were_made() {
        let sizes: Sizes = "imix".parse().unwrap();
        let mut p = Pacer::new(Rate::Bits(1e9), 0.5, &sizes, HZ, Duration::from_millis(1));
        let (mut turn, mut bits) = (0, 0);
        let lens: Vec<_> = sizes.iter().map(wire_bits).collect();
        for now in (0..HZ).step_by(100_000) {
            let n = p.due(now, (turn..turn + 64).map(|t| sizes.at_turn(t % 12)));
            for _ in 0..n {
                let size = sizes.at_turn(turn % 12);
                p.charge(size);
                bits += lens[size];
                turn += 1;
            }
        }
        assert!((bits as f64 / 5e8 - 1.0).abs() < 1e-4, "half of a gigabit: {bits}");
    }
}
