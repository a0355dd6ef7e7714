//! Interleaved blocks of several candidates in one run.
//!
//! 1. A candidate runs one block at a time, pinned, for a window of wall time, and states what share of a core each of
//!    its polling threads had.
//! 2. A round runs one block of each candidate; the order turns round each time, so that drift cancels in pairs.
//! 3. A block in which a thread had less than [`MIN_SHARE`] of its core is discarded, and so is one of a two-core
//!    benchmark whose core distance changed class from before to after.
//! 4. Figures are medians over the kept blocks, near and far apart. Ratios come from pairs of the same round and class.
//!
//! It does not detect a peer that miscounts, nor frequency changes that are slower than a round yet hit one side only.

pub mod one_core;
pub mod report;
pub mod stats;

use std::time::Duration;

use serde::Serialize;

use crate::BenchError;
use crate::cpu::Core;
use crate::distance::{self, Class};

/// Polling threads lose rate out of proportion when they lose their core: below this share a block does not count.
pub const MIN_SHARE: f64 = 0.95;
/// Rounds may repeat up to this often to reach the wanted number of kept blocks.
const MAX_STRETCH: usize = 3;

/// One polling thread's share of its core during a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The thread's part in the benchmark.
    pub thread: &'static str,
    /// CPU time over the time it wanted to run.
    pub share: f64,
}

/// What one block gave.
#[derive(Clone, Debug, Serialize)]
pub struct Reading {
    /// Packets, items or pairs.
    pub items: u64,
    /// Seconds of the window.
    pub seconds: f64,
    /// Every polling thread.
    pub shares: Vec<Share>,
}

impl Reading {
    /// Items per second.
    pub fn rate(&self) -> f64 {
        self.items as f64 / self.seconds
    }
}

/// Something that can be measured in blocks.
pub trait Candidate {
    /// Its name in tables.
    fn name(&self) -> &str;
    /// Runs for `window`, not counting warm-up, and says what it did.
    ///
    /// # Errors
    /// As the candidate sees fit; an error ends the run.
    fn block(&mut self, window: Duration) -> Result<Reading, BenchError>;
}

/// How a benchmark is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Kept blocks wanted of each candidate.
    pub rounds: usize,
    /// Wall time of a block.
    pub window: Duration,
    /// The pair whose distance is watched; `None` for a one-core benchmark.
    pub pair: Option<(Core, Core)>,
}

/// Why a block does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Discard {
    /// A polling thread had less than [`MIN_SHARE`] of its core.
    LowShare,
    /// The core distance was not the same class before and after, or could not be measured.
    ClassChanged,
}

/// A block's verdict.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// It counts.
    Kept {
        /// Items per second.
        rate: f64,
        /// The class of its two cores.
        class: Option<Class>,
    },
    /// It does not.
    Discarded {
        /// Why.
        reason: Discard,
        /// The smallest share of any of its threads.
        share: f64,
    },
}

impl Block {
    fn judge(reading: &Reading, before: Option<Class>, after: Option<Class>) -> Self {
        let share = reading.shares.iter().map(|s| s.share).fold(1.0, f64::min);
        if share < MIN_SHARE {
            return Self::Discarded { reason: Discard::LowShare, share };
        }
        if before != after || before == Some(Class::Contended) {
            return Self::Discarded { reason: Discard::ClassChanged, share };
        }
        Self::Kept { rate: reading.rate(), class: before }
    }

    /// Rate and class of a kept block.
    pub fn kept(&self) -> Option<(f64, Option<Class>)> {
        match self {
            Self::Kept { rate, class } => Some((*rate, *class)),
            Self::Discarded { .. } => None,
        }
    }
}

/// All blocks of a run: `rounds[r][c]` is candidate `c` in round `r`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Blocks {
    /// Candidates' names.
    pub names: Vec<String>,
    /// Rounds of one block per candidate.
    pub rounds: Vec<Vec<Block>>,
    /// Median round trips of the core pair seen between blocks, in ns.
    pub round_trips_ns: Vec<f64>,
}

impl Blocks {
    /// Kept rates of candidate `c` in `class`.
    pub fn rates(&self, c: usize, class: Option<Class>) -> Vec<f64> {
        let of = |round: &Vec<Block>| round[c].kept().filter(|k| k.1 == class).map(|k| k.0);
        self.rounds.iter().filter_map(of).collect()
    }

    /// Rates of `a` and `b` in the rounds in which both count and were of `class`.
    pub fn pairs(&self, a: usize, b: usize, class: Option<Class>) -> Vec<(f64, f64)> {
        let of = |round: &Vec<Block>| {
            let (x, y) = (round[a].kept()?, round[b].kept()?);
            (x.1 == class && y.1 == class).then_some((x.0, y.0))
        };
        self.rounds.iter().filter_map(of).collect()
    }

    /// Blocks of candidate `c` discarded for `reason`.
    pub fn discarded(&self, c: usize, reason: Discard) -> usize {
        self.rounds
            .iter()
            .filter(|r| matches!(r[c], Block::Discarded { reason: why, .. } if why == reason))
            .count()
    }

    /// True if any block counts.
    pub fn has_kept(&self) -> bool {
        self.rounds.iter().flatten().any(|b| b.kept().is_some())
    }

    fn fewest_kept(&self) -> usize {
        let kept = |c: usize| self.rounds.iter().filter(|r| r[c].kept().is_some()).count();
        (0..self.names.len()).map(kept).min().unwrap_or(0)
    }
}

/// Runs `candidates` in turn until each has `plan.rounds` kept blocks, or three times as many rounds are over.
/// `progress` is told after every round.
///
/// # Errors
/// The first error of a candidate, or of the distance measurement.
pub fn interleave(
    plan: &Plan,
    candidates: &mut [Box<dyn Candidate>],
    mut progress: impl FnMut(&Blocks),
) -> Result<Blocks, BenchError> {
    let names = candidates.iter().map(|c| c.name().to_owned()).collect();
    let mut blocks = Blocks { names, ..Blocks::default() };
    let mut before = watch(plan, &mut blocks)?;
    while blocks.fewest_kept() < plan.rounds && blocks.rounds.len() < plan.rounds * MAX_STRETCH {
        let mut round = vec![None; candidates.len()];
        for c in turn(blocks.rounds.len(), candidates.len()) {
            let reading = candidates[c].block(plan.window)?;
            let after = watch(plan, &mut blocks)?;
            round[c] = Some(Block::judge(&reading, before, after));
            before = after;
        }
        blocks.rounds.push(round.into_iter().flatten().collect());
        progress(&blocks);
    }
    Ok(blocks)
}

/// The order of round `r`: forwards, then backwards, starting one candidate later every second round.
fn turn(r: usize, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).map(|i| (i + r / 2) % n).collect();
    if r % 2 == 1 {
        order.reverse();
    }
    order
}

fn watch(plan: &Plan, blocks: &mut Blocks) -> Result<Option<Class>, BenchError> {
    let Some((a, b)) = plan.pair else { return Ok(None) };
    let seen = distance::measure(a, b)?;
    if seen.class != Class::Contended {
        blocks.round_trips_ns.push(seen.round_trip_ns.median);
    }
    Ok(Some(seen.class))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake {
        name: &'static str,
        rate: u64,
        shares: Vec<f64>,
        at: usize,
    }

    impl Candidate for Fake {
        fn name(&self) -> &str {
            self.name
        }
        fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
            let share = self.shares[self.at % self.shares.len()];
            self.at += 1;
            let shares = vec![Share { thread: "worker", share }];
            Ok(Reading { items: self.rate, seconds: window.as_secs_f64(), shares })
        }
    }

    fn run(rounds: usize, shares: [&[f64]; 2]) -> Blocks {
        let fake = |name, rate, s: &[f64]| -> Box<dyn Candidate> {
            Box::new(Fake { name, rate, shares: s.to_vec(), at: 0 })
        };
        let plan = Plan { rounds, window: Duration::from_secs(1), pair: None };
        interleave(&plan, &mut [fake("a", 300, shares[0]), fake("b", 100, shares[1])], |_| ()).unwrap()
    }

    #[test]
    fn blocks_that_lost_their_core_are_replaced_and_counted() {
        let blocks = run(4, [&[1.0, 0.94], &[1.0]]);
        assert_eq!(blocks.rates(0, None).len(), 4);
        assert_eq!(blocks.discarded(0, Discard::LowShare), 3, "every second block of a");
        assert_eq!(blocks.pairs(0, 1, None), [(300.0, 100.0); 4], "only rounds with both blocks make a pair");
    }

    #[test]
    fn a_hopeless_candidate_ends_the_run() {
        let blocks = run(4, [&[0.5], &[1.0]]);
        assert_eq!((blocks.rounds.len(), blocks.rates(0, None).len()), (4 * MAX_STRETCH, 0));
    }

    #[test]
    fn a_changed_or_contended_class_does_not_count() {
        let r = Reading { items: 1, seconds: 1.0, shares: Vec::new() };
        let kept = |a, b| Block::judge(&r, Some(a), Some(b)).kept().is_some();
        assert!(kept(Class::Far, Class::Far));
        assert!(!kept(Class::Near, Class::Far));
        assert!(!kept(Class::Contended, Class::Contended));
    }

    #[test]
    fn classes_do_not_mix_in_rates_or_ratios() {
        let kept = |rate, class| Block::Kept { rate, class: Some(class) };
        let blocks = Blocks {
            names: vec!["a".into(), "b".into()],
            rounds: vec![
                vec![kept(8.0, Class::Near), kept(4.0, Class::Near)],
                vec![kept(3.0, Class::Far), kept(1.0, Class::Far)],
                vec![kept(8.0, Class::Near), kept(1.0, Class::Far)],
            ],
            round_trips_ns: Vec::new(),
        };
        assert_eq!(blocks.rates(0, Some(Class::Near)), [8.0, 8.0]);
        assert_eq!(blocks.pairs(0, 1, Some(Class::Near)), [(8.0, 4.0)]);
        assert_eq!(blocks.pairs(0, 1, Some(Class::Far)), [(3.0, 1.0)]);
    }

    #[test]
    fn the_order_turns_and_every_candidate_runs_once_a_round() {
        assert_eq!(turn(0, 3), [0, 1, 2]);
        assert_eq!(turn(1, 3), [2, 1, 0]);
        assert_eq!(turn(2, 3), [1, 2, 0]);
        for r in 0..8 {
            let mut order = turn(r, 5);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
    }
}
