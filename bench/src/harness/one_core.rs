//! A candidate that is a closure on one core.

use std::time::{Duration, Instant};

use super::{Candidate, Reading, Share};
use crate::BenchError;
use crate::cpu::{self, Core};

/// Steps between two looks at the clock.
const CLOCK_EVERY: usize = 64;
/// Before the window starts to count.
const WARMUP: Duration = Duration::from_millis(3);

/// Calls `step` over and over; each call says how many items it did.
pub struct OneCore<F> {
    name: String,
    worker: Core,
    home: Core,
    step: F,
}

impl<F: FnMut() -> u64> OneCore<F> {
    /// Runs `step` on `worker`. Between its blocks the thread lives on `home`, out of the way of other candidates.
    pub fn new(name: impl Into<String>, (worker, home): (Core, Core), step: F) -> Self {
        Self { name: name.into(), worker, home, step }
    }

    #[inline(never)]
    fn steps(&mut self, time: Duration) -> (u64, Duration) {
        let start = Instant::now();
        let mut items = 0;
        loop {
            for _ in 0..CLOCK_EVERY {
                items += (self.step)();
            }
            let elapsed = start.elapsed();
            if elapsed >= time {
                return (items, elapsed);
            }
        }
    }
}

impl<F: FnMut() -> u64> Candidate for OneCore<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        cpu::pin(self.worker)?;
        self.steps(WARMUP);
        let ran = cpu::thread_time();
        let (items, time) = self.steps(window);
        let share = (cpu::thread_time() - ran).as_secs_f64() / time.as_secs_f64();
        cpu::pin(self.home)?;
        let share = Share { thread: "worker", share };
        Ok(Reading { items, seconds: time.as_secs_f64(), shares: vec![share] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_the_steps_items_of_the_window_only() {
        let cores = cpu::allowed();
        let mut calls = 0u64;
        let mut c = OneCore::new("three", (cores[0], cores[0]), || {
            calls += 1;
            3
        });
        let r = c.block(Duration::from_millis(5)).unwrap();
        assert!(r.seconds >= 0.005 && r.items > 0);
        assert!(
            r.items.is_multiple_of(3 * CLOCK_EVERY as u64) && r.items < calls * 3,
            "warm-up is not counted"
        );
    }
}
