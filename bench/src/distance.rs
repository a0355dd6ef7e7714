//! How far two cores are apart: the round trip of one cache line between two pinned threads.
//!
//! On real machines near cores share a last-level cache and far ones do not; in a virtual machine the hypervisor
//! moves the cores, so that the class changes under a running process. A two-core figure without its class means
//! little. Thread start is not counted: the clock starts after the partner's first answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::BenchError;
use crate::cpu::{self, Core};
use crate::harness::stats::Summary;

/// Near below this round trip, far from it on: between what was seen of near pairs (50 to 60 ns on an AMD Zen 4 machine,
/// 115 to 130 ns on an Intel Sapphire Rapids one) and of far ones (315 to 340 ns on the former), both virtual.
pub const BOUNDARY_NS: f64 = 200.0;
/// Round trips in one sample; the result is the median over the samples, so that a few preempted ones do not count.
const TRIPS: u64 = 200;
const SAMPLES: usize = 41;
/// A partner that does not answer for so long is not running at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// The class of a core pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Round trip below [`BOUNDARY_NS`].
    Near,
    /// Round trip of [`BOUNDARY_NS`] or more.
    Far,
    /// A thread lost its core while the trip was measured: the figure says nothing about distance.
    Contended,
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Contended => "contended",
        })
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Distance {
    /// Round trip in ns over the samples; the median decides the class.
    pub round_trip_ns: Summary,
    /// The smaller share of CPU of the two threads while they played.
    pub share: f64,
    /// What it means.
    pub class: Class,
}

impl Distance {
    fn of(samples: &[f64], share: f64) -> Self {
        let round_trip_ns = Summary::of(samples).expect("at least one sample is always taken");
        Self { round_trip_ns, share, class: classify(round_trip_ns.median, share) }
    }
}

/// The class of a median round trip that was played at `share` of a core.
fn classify(median_ns: f64, share: f64) -> Class {
    match median_ns {
        _ if share < crate::harness::MIN_SHARE => Class::Contended,
        ns if ns < BOUNDARY_NS => Class::Near,
        _ => Class::Far,
    }
}

#[repr(align(128))]
struct Line(AtomicU64);

/// Measures the round trip between `here` and `there`. Takes 1 to 5 ms on idle cores.
///
/// # Errors
/// [`BenchError::Core`] if a core may not be used; [`BenchError::Cores`] if both are the same.
pub fn measure(here: Core, there: Core) -> Result<Distance, BenchError> {
    if here == there {
        return Err(BenchError::Cores(1));
    }
    let (line, over) = (Line(AtomicU64::new(0)), AtomicBool::new(false));
    std::thread::scope(|s| {
        let echo = s.spawn(|| cpu::pin(there).map(|()| echo(&line, &over)));
        let serve = s.spawn(|| {
            let played = cpu::pin(here).map(|()| serve(&line));
            over.store(true, Ordering::Release);
            played
        });
        let (samples, mine) = serve.join().expect("the server does not panic")?;
        let theirs = echo.join().expect("the echo does not panic")?;
        Ok(Distance::of(&samples, mine.min(theirs)))
    })
}

/// Answers odd numbers with the next even one until `over`; its share of CPU from the first ball on.
fn echo(line: &Line, over: &AtomicBool) -> f64 {
    let mut started = None;
    loop {
        let ball = line.0.load(Ordering::Acquire);
        if ball % 2 == 1 {
            started.get_or_insert_with(|| (Instant::now(), cpu::thread_time()));
            line.0.store(ball + 1, Ordering::Release);
        } else if over.load(Ordering::Relaxed) {
            return started.map_or(0.0, |(wall, ran)| share(wall, ran));
        }
    }
}

/// Plays the samples; ns per round trip of each, and this thread's share of CPU.
fn serve(line: &Line) -> (Vec<f64>, f64) {
    let mut ball = 1;
    if !trip(line, ball) {
        return (vec![f64::INFINITY], 0.0);
    }
    let (wall, ran) = (Instant::now(), cpu::thread_time());
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..TRIPS {
            ball += 2;
            if !trip(line, ball) {
                return (vec![f64::INFINITY], 0.0);
            }
        }
        samples.push(start.elapsed().as_nanos() as f64 / TRIPS as f64);
    }
    (samples, share(wall, ran))
}

/// Sends `ball` and waits for the next even number; false if the partner never answers.
fn trip(line: &Line, ball: u64) -> bool {
    line.0.store(ball, Ordering::Release);
    let mut spins = 0u32;
    let mut since = None;
    while line.0.load(Ordering::Acquire) != ball + 1 {
        spins = spins.wrapping_add(1);
        // Far beyond any round trip: only a partner without a core gets here.
        if spins.is_multiple_of(1 << 20) && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return false;
        }
    }
    true
}

fn share(wall: Instant, ran: Duration) -> f64 {
    (cpu::thread_time() - ran).as_secs_f64() / wall.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_divides_and_a_lost_core_overrides() {
        assert_eq!(classify(55.0, 1.0), Class::Near);
        assert_eq!(classify(BOUNDARY_NS, 1.0), Class::Far);
        assert_eq!(classify(55.0, 0.6), Class::Contended);
    }

    #[test]
    fn two_cores_play() {
        let cores = cpu::allowed();
        if let [a, b, ..] = cores[..] {
            let d = measure(a, b).unwrap();
            assert!(d.round_trip_ns.min > 1.0, "a line cannot cross in {} ns", d.round_trip_ns.min);
        }
        assert!(matches!(measure(cores[0], cores[0]), Err(BenchError::Cores(1))));
    }
}
