//! When a station is forgotten.

use core::time::Duration;

use super::clock::Clock;
use super::stations::Stations;
use super::word::{Place, Word};
use crate::StageError;

/// Units of time after which a station is forgotten; stamps count them modulo 256.
const AGE: u64 = 64;
/// Units in which every line becomes due once.
const ROUND: usize = 8;
/// Cache lines of the table that one tick looks at.
const SLICE: usize = 64;

/// Units after which others are told again of a station that is heard: at the first frame of the unit that begins then or after.
const REFRESH: u64 = 3;
/// Units for which a table of which others are told keeps stations longer: who was told may not have been told yet that it was heard since.
const GRACE: u64 = REFRESH + 1;

/// A clock in 64ths of the ageing time, and a hand that goes round the table.
#[derive(Clone)]
pub(super) struct Ageing {
    unit: u64,
    next: u64,
    now: u8,
    /// Units after which a station is forgotten.
    age: u8,
    /// The line to look at first, and how many the hand is behind.
    hand: usize,
    due: usize,
}

impl Ageing {
    /// For stations that may be silent for `time`, with time stamps at `hz`.
    pub fn new(time: Duration, hz: u64) -> Result<Self, StageError> {
        let ticks = time.as_nanos().saturating_mul(hz.into()) / 1_000_000_000;
        let unit = u64::try_from(ticks.div_ceil(AGE.into())).ok();
        let unit = unit.filter(|&u| u > 0 && time >= Duration::from_micros(1));
        let unit = unit.ok_or(StageError::Ageing(time))?;
        Ok(Self { unit, next: 0, now: 0, age: AGE as u8, hand: 0, due: 0 })
    }

    /// For a table of which others are told as well.
    pub const fn shared(mut self) -> Self {
        self.age = (AGE + GRACE) as u8;
        self
    }
    /// The clock for such a table.
    pub fn clock(&self) -> Clock {
        Clock::new(self.unit.saturating_mul(AGE + GRACE), self.unit.saturating_mul(REFRESH))
    }
    /// The stamp for what was heard at `then`; `None` if that is too long ago.
    pub fn stamp_of(&self, then: u64) -> Option<u8> {
        let units = self.next.saturating_sub(1).saturating_sub(then) / self.unit;
        (units <= self.age.into()).then(|| self.now.wrapping_sub(units as u8))
    }

    /// The stamp for what is heard now.
    #[inline(always)]
    pub const fn stamp(&self) -> u8 {
        self.now
    }
    /// Whether a station is not to be forgotten yet.
    #[inline(always)]
    pub const fn fresh(&self, place: Place) -> bool {
        self.now.wrapping_sub(place.seen) <= self.age
    }

    /// Goes on to `now`, never back. Returns how many stations were forgotten.
    #[inline(always)]
    pub fn advance<W: Word>(&mut self, now: u64, stations: &mut Stations<W>) -> u64 {
        if now < self.next { 0 } else { self.next_unit(now, stations) }
    }

    #[cold]
    fn next_unit<W: Word>(&mut self, now: u64, stations: &mut Stations<W>) -> u64 {
        let units = (now - self.next) / self.unit + 1;
        self.next = self.next.saturating_add(units.saturating_mul(self.unit));
        self.now = self.now.wrapping_add(units as u8);
        let all = stations.lines();
        if units > self.age.into() {
            self.due = 0;
            return stations.sweep(0, all, |_| false);
        }
        self.due += all.div_ceil(ROUND) * units as usize;
        // A stamp must go before the clock has been round: after 256 units. Without ticks the hand is moved from here.
        if self.due > all * AGE as usize / ROUND { self.sweep(all, stations) } else { 0 }
    }

    /// Moves the hand on by one slice, if it is behind. Returns how many stations were forgotten.
    pub fn tick<W: Word>(&mut self, stations: &mut Stations<W>) -> u64 {
        self.sweep(self.due.min(SLICE).min(stations.lines()), stations)
    }

    fn sweep<W: Word>(&mut self, n: usize, stations: &mut Stations<W>) -> u64 {
        let all = stations.lines();
        let gone = stations.sweep(self.hand, n, |e| self.fresh(e.place()));
        self.hand = (self.hand + n) % all;
        self.due = if n == all { 0 } else { self.due - n };
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l2switch::stations::Learned;
    use crate::l2switch::word::Key;

    /// 64 ticks of ageing: a unit is one tick.
    fn ageing() -> Ageing {
        Ageing::new(Duration::from_secs(64), 1).unwrap()
    }
    fn key(address: u64) -> Key {
        Key::of(address << 16)
    }
    fn learn(stations: &mut Stations<u64>, a: &Ageing, address: u64) -> Learned {
        let key = key(address);
        stations.learn(key, stations.slot(key), Place { port: 0, seen: a.stamp() })
    }

    #[test]
    fn never_early_and_at_most_one_unit_late_whether_ticks_come_or_not() {
        for ticks in [0, 1, 9] {
            let mut s = Stations::<u64>::new(if cfg!(miri) { 10 } else { 1000 }, 3);
            let mut a = ageing();
            a.advance(1000, &mut s);
            learn(&mut s, &a, 0x0200_0000_0001);
            for now in 1001..if cfg!(miri) { 1300 } else { 2000 } {
                a.advance(now, &mut s);
                (0..ticks).for_each(|_| {
                    a.tick(&mut s);
                });
                let place =
                    s.find(key(0x0200_0000_0001), s.slot(key(0x0200_0000_0001))).filter(|&p| a.fresh(p));
                assert_eq!(place.is_some(), now <= 1064, "{ticks} ticks a unit, at {now}");
            }
            assert_eq!(s.len(), 0, "{ticks} ticks a unit");
        }
    }

    #[test]
    fn a_tick_looks_at_a_slice_only() {
        let mut s = Stations::<u64>::new(if cfg!(miri) { 1000 } else { 40_000 }, 3);
        let mut a = ageing();
        a.advance(1000, &mut s);
        let some = if cfg!(miri) { 500 } else { 20_000 };
        for n in 0..some {
            learn(&mut s, &a, 0x0200_0000_0000 + n);
        }
        // Ticks enough for every bucket to be looked at before the next unit.
        let ticks = s.lines() / ROUND / SLICE;
        let mut gone = 0;
        for now in 1001..=1072 {
            assert_eq!(a.advance(now, &mut s), 0);
            assert!(now > 1065 || gone == 0, "{gone} too early");
            for _ in 0..ticks {
                let n = a.tick(&mut s);
                assert!(n <= 8 * SLICE as u64, "{n} at once");
                gone += n;
            }
        }
        assert_eq!((gone, s.len()), (some, 0), "a round after the first was old enough");
    }

    #[test]
    fn a_clock_that_jumps_forgets_all_and_one_that_goes_back_nobody() {
        let mut s = Stations::<u64>::new(100, 3);
        let mut a = ageing();
        a.advance(1000, &mut s);
        learn(&mut s, &a, 0x0200_0000_0001);
        assert_eq!((a.advance(1, &mut s), s.len()), (0, 1));
        assert_eq!((a.advance(1000 + 256, &mut s), s.len()), (1, 0), "256 units would look like none");
        learn(&mut s, &a, 0x0200_0000_0001);
        assert_eq!(a.advance(u64::MAX, &mut s), 1);
        assert_eq!(a.advance(u64::MAX, &mut s), 0, "the end of time is one unit");
    }

    #[test]
    fn times_that_cannot_be_told_are_refused() {
        let e = Ageing::new(Duration::ZERO, 1_000_000_000).err().unwrap();
        assert!(e.to_string().starts_with("stations forgotten after 0ns: use at least a microsecond"), "{e}");
        assert!(Ageing::new(Duration::MAX, u64::MAX).is_err());
        assert!(Ageing::new(Duration::from_secs(1_000_000), 3_000_000_000).is_ok());
    }
}
