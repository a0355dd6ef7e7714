//! What a worker does between two breaths when there is nothing to do.

use std::time::Duration;

use meter::WorkerMeter;

use crate::Idle;

/// Empty breaths before a worker that may sleep does: some ten microseconds.
const PATIENCE: u32 = 128;
/// Empty breaths before a worker that pauses does.
const SHORT_PATIENCE: u32 = 16;
/// Most pause instructions in a row: about three microseconds on what pauses longest.
const MOST_PAUSES: u32 = 64;
/// The first sleep; each after it without work is twice as long, up to the bound.
const FIRST_SLEEP: Duration = Duration::from_micros(1);

/// The time, and ways to let it pass.
pub(crate) trait Clock {
    /// Ticks of [`hw::cycles`].
    fn now(&mut self) -> u64;
    /// A pause instruction.
    fn pause(&mut self);
    /// Sleeps for about `time`, or until a message comes.
    fn sleep(&mut self, time: Duration);
}

/// The machine's.
pub(crate) struct Machine;

impl Clock for Machine {
    fn now(&mut self) -> u64 {
        hw::cycles()
    }
    fn pause(&mut self) {
        core::hint::spin_loop();
    }
    fn sleep(&mut self, time: Duration) {
        std::thread::park_timeout(time);
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Busy,
    Pause,
    Sleep { bound: Duration },
}

/// One worker's way to idle.
pub(crate) struct Idler {
    kind: Kind,
    hz: f64,
    /// Empty breaths in a row.
    empty: u32,
    /// How much later than asked for sleeps end, nearly always: what is asked for is shorter by that.
    late: Duration,
}

impl Idler {
    pub fn new(idle: Idle, hz: u64) -> Self {
        let kind = match idle {
            Idle::Busy => Kind::Busy,
            Idle::Pause => Kind::Pause,
            Idle::Sleep { bound } => Kind::Sleep { bound: bound.max(FIRST_SLEEP) },
        };
        Self { kind, hz: hz as f64, empty: 0, late: Duration::ZERO }
    }

    /// To be called after each breath, with the time that it ended. Returns the time for the next.
    #[inline]
    pub fn rest(&mut self, worked: bool, now: u64, clock: &mut impl Clock, m: &mut WorkerMeter) -> u64 {
        if worked {
            self.empty = 0;
            return now;
        }
        match self.kind {
            Kind::Busy => now,
            Kind::Pause => self.pause(clock),
            Kind::Sleep { bound } => self.sleep(bound, now, clock, m),
        }
    }

    fn pause(&mut self, clock: &mut impl Clock) -> u64 {
        self.empty = self.empty.saturating_add(1);
        if let Some(n) = self.empty.checked_sub(SHORT_PATIENCE) {
            for _ in 0..1 << n.min(MOST_PAUSES.ilog2()) {
                clock.pause();
            }
        }
        clock.now()
    }

    fn sleep(&mut self, bound: Duration, now: u64, clock: &mut impl Clock, m: &mut WorkerMeter) -> u64 {
        self.empty = self.empty.saturating_add(1);
        let Some(n) = self.empty.checked_sub(PATIENCE) else {
            clock.pause();
            return clock.now();
        };
        let asked = (FIRST_SLEEP * (1 << n.min(20))).min(bound - self.late).max(FIRST_SLEEP);
        clock.sleep(asked);
        let woke = clock.now();
        let gap = Duration::from_secs_f64(woke.wrapping_sub(now) as f64 / self.hz);
        self.learn(gap.saturating_sub(asked), bound);
        let us = gap.as_micros() as u64;
        m.sleeps += 1;
        m.over_bound += u64::from(gap > bound);
        m.longest_sleep = m.longest_sleep.max(us);
        m.sleep_gaps.add(us, 1);
        woke
    }

    /// A step up is as large as 64 steps down, so that about one sleep in 65 ends later than allowed for.
    fn learn(&mut self, late: Duration, bound: Duration) {
        let down = bound / 1024;
        self.late = if late > self.late { self.late + 64 * down } else { self.late.saturating_sub(down) };
        self.late = self.late.min(bound - bound / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks are nanoseconds. Sleeps end `late` after what was asked for.
    #[derive(Default)]
    struct Fake {
        now: u64,
        pauses: u64,
        asked: Vec<Duration>,
        late: Vec<Duration>,
    }
    impl Clock for Fake {
        fn now(&mut self) -> u64 {
            self.now
        }
        fn pause(&mut self) {
            self.pauses += 1;
            self.now += 40;
        }
        fn sleep(&mut self, time: Duration) {
            let late = self.late[self.asked.len() % self.late.len()];
            self.asked.push(time);
            self.now += (time + late).as_nanos() as u64;
        }
    }
    const NS: u64 = 1_000_000_000;
    const US: Duration = Duration::from_micros(1);

    fn breaths(idler: &mut Idler, n: u32, clock: &mut Fake, m: &mut WorkerMeter) {
        for _ in 0..n {
            let now = clock.now;
            let next = idler.rest(false, now, clock, m);
            assert_eq!(next, clock.now, "the next breath begins when the rest ends");
        }
    }

    #[test]
    fn busy_never_rests() {
        let (mut clock, mut m) = (Fake::default(), WorkerMeter::default());
        breaths(&mut Idler::new(Idle::Busy, NS), 1000, &mut clock, &mut m);
        assert_eq!((clock.now, m), (0, WorkerMeter::default()));
    }

    #[test]
    fn pauses_grow_up_to_a_bound_and_work_ends_them() {
        let (mut clock, mut m) = (Fake::default(), WorkerMeter::default());
        let mut idler = Idler::new(Idle::Pause, NS);
        breaths(&mut idler, SHORT_PATIENCE - 1, &mut clock, &mut m);
        assert_eq!(clock.pauses, 0);
        breaths(&mut idler, 8, &mut clock, &mut m);
        assert_eq!(clock.pauses, 1 + 2 + 4 + 8 + 16 + 32 + 64 + 64);
        assert_eq!(idler.rest(true, 7, &mut clock, &mut m), 7);
        breaths(&mut idler, SHORT_PATIENCE - 1, &mut clock, &mut m);
        assert_eq!(clock.pauses, 191, "patience begins again");
        assert_eq!(m, WorkerMeter::default(), "a pause is no sleep");
    }

    #[test]
    fn sleeps_grow_up_to_the_bound_and_never_over_it() {
        let (mut clock, mut m) =
            (Fake { late: vec![Duration::ZERO], ..Fake::default() }, WorkerMeter::default());
        let mut idler = Idler::new(Idle::Sleep { bound: 50 * US }, NS);
        breaths(&mut idler, PATIENCE - 1, &mut clock, &mut m);
        assert!(clock.asked.is_empty());
        breaths(&mut idler, 40, &mut clock, &mut m);
        assert_eq!(clock.asked[..8], [1, 2, 4, 8, 16, 32, 50, 50].map(|n| n * US));
        assert_eq!((m.sleeps, m.over_bound, m.longest_sleep, m.sleep_gaps.total()), (40, 0, 50, 40));
        assert_eq!(idler.rest(true, clock.now, &mut clock, &mut m), clock.now);
        breaths(&mut idler, PATIENCE, &mut clock, &mut m);
        assert_eq!(clock.asked[40..], [US], "after work it begins with short ones again");
    }

    #[test]
    fn a_clock_that_is_always_late_is_allowed_for() {
        let (mut clock, mut m) = (Fake { late: vec![6 * US], ..Fake::default() }, WorkerMeter::default());
        let mut idler = Idler::new(Idle::Sleep { bound: 50 * US }, NS);
        breaths(&mut idler, 10_000, &mut clock, &mut m);
        let (early, late) = (m.over_bound, m.sleeps);
        assert!(early < 300 && late > 9000, "{early} of {late} over the bound");
        let last = clock.asked.last().unwrap();
        assert!((39 * US..=45 * US).contains(last), "{last:?} is asked for");
    }

    #[test]
    fn a_rare_long_sleep_is_counted_and_does_not_make_it_busy() {
        let mut late = vec![Duration::ZERO; 200];
        late[100] = Duration::from_millis(3);
        let (mut clock, mut m) = (Fake { late, ..Fake::default() }, WorkerMeter::default());
        let mut idler = Idler::new(Idle::Sleep { bound: 50 * US }, NS);
        breaths(&mut idler, 2_000, &mut clock, &mut m);
        assert_eq!((m.over_bound, m.longest_sleep), (9, 3050), "{m:?}");
        let last = clock.asked.last().unwrap();
        assert!(*last > 40 * US, "{last:?} is asked for");
    }

    #[test]
    fn a_bound_of_nothing_still_sleeps_a_little() {
        let (mut clock, mut m) = (Fake { late: vec![10 * US], ..Fake::default() }, WorkerMeter::default());
        let mut idler = Idler::new(Idle::Sleep { bound: Duration::ZERO }, NS);
        breaths(&mut idler, 1000, &mut clock, &mut m);
        assert!(clock.asked.iter().all(|a| *a == US));
        assert_eq!(m.over_bound, m.sleeps);
    }
}
