//! Which of two things known about a station is the newer.

use super::stations::Learned;
use super::word::Since;

/// Time as entries keep it, in a unit so long that what they hold never goes round.
///
/// It goes on with the cycle counter, and never falls behind what it has had to follow: of two moves of a station the one that was made knowing
/// of the other is the newer, even if two cores' counters differ a little (L. Lamport, "Time, clocks, and the ordering of events in a distributed
/// system", 1978).
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    now: u64,
    shift: u32,
    /// Others are told of a station that is heard here when the last news of it are so old.
    refresh: u64,
}

impl Clock {
    /// For stations that are forgotten after `ageing` ticks, and told of again after `refresh`.
    pub fn new(ageing: u64, refresh: u64) -> Self {
        // Half a turn is four times what any station may be silent, at least.
        let shift = (u64::BITS - ageing.leading_zeros()).saturating_sub(Since::MASK.count_ones() - 4);
        Self { now: 0, shift, refresh: refresh >> shift }
    }

    /// Goes on to `now` ticks, never back.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now >> self.shift);
    }
    /// The present, as entries keep it.
    pub const fn since(&self, told: bool) -> Since {
        Since { time: self.now & Since::MASK, told }
    }
    /// The present, in ticks.
    pub const fn ticks(&self) -> u64 {
        self.now << self.shift
    }
    /// A time of `ticks`, as entries keep it.
    pub const fn kept(&self, ticks: u64) -> u64 {
        ticks >> self.shift & Since::MASK
    }
    /// When an entry's time was, in ticks.
    pub const fn ticks_of(&self, kept: u64) -> u64 {
        self.now.saturating_sub(self.now.wrapping_sub(kept) & Since::MASK) << self.shift
    }

    /// Whether the first time and port are to be believed rather than the second: one of the two, whoever asks.
    pub const fn newer(a: (u64, u8), b: (u64, u8)) -> bool {
        let after = a.0.wrapping_sub(b.0) & Since::MASK;
        if after == 0 { a.1 > b.1 } else { after <= Since::MASK / 2 }
    }

    /// A station with the last news of `old` is heard here: since when that is known now, and whether others shall be told.
    pub const fn heard(&mut self, old: Since, moved: bool) -> (Since, Learned) {
        let ahead = old.time.wrapping_sub(self.now) & Since::MASK;
        let ahead = if ahead <= Since::MASK / 2 { Some(ahead) } else { None };
        if moved {
            if let Some(ahead) = ahead {
                self.now += ahead + 1;
            }
            return (self.since(false), Learned::Moved);
        }
        let age = self.now.wrapping_sub(old.time) & Since::MASK;
        if ahead.is_none() && age >= self.refresh {
            return (self.since(false), Learned::Due);
        }
        (Since { told: false, ..old }, Learned::Known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_is_newer_across_the_turn_and_one_of_two_always() {
        assert!(Clock::newer((5, 0), (4, 9)) && !Clock::newer((4, 9), (5, 0)));
        assert!(Clock::newer((2, 0), (Since::MASK - 3, 0)) && !Clock::newer((Since::MASK - 3, 0), (2, 0)));
        assert!(
            Clock::newer((7, 2), (7, 1)) && !Clock::newer((7, 1), (7, 2)) && !Clock::newer((7, 1), (7, 1))
        );
    }

    #[test]
    fn a_unit_is_long_enough_for_any_ageing() {
        // 300 s at 2.6 GHz need none, 12 days do.
        assert_eq!(Clock::new(780_000_000_000, 1).shift, 0);
        for ageing in [1, 1 << 40, 1 << 43, 1 << 44, 1 << 51, 1 << 63, u64::MAX] {
            let c = Clock::new(ageing, ageing / 16);
            assert!((ageing >> c.shift) <= Since::MASK / 8, "{ageing}");
        }
        let mut c = Clock::new(1 << 51, 1);
        c.advance((1 << 60) + 12345);
        for back in [0, 1 << 20, 1 << 50] {
            let then = c.ticks() - back;
            assert_eq!(c.ticks_of(c.kept(then)), then, "{back} back");
        }
    }

    #[test]
    fn what_is_heard_knowing_of_news_is_newer_than_they_are() {
        let mut c = Clock::new(6400, 400);
        c.advance(1000);
        let news = Since { time: 1010, told: true };
        assert_eq!(c.heard(news, false), (Since { time: 1010, told: false }, Learned::Known));
        assert_eq!(c.heard(news, true), (Since { time: 1011, told: false }, Learned::Moved));
        c.advance(1005);
        assert_eq!(c.ticks(), 1011, "never back");
        assert_eq!(c.heard(Since { time: 612, told: true }, false).1, Learned::Known);
        assert_eq!(c.heard(Since { time: 611, told: true }, false), (c.since(false), Learned::Due));
    }
}
