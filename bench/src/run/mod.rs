//! The benchmarks, one file each, and what they share.

pub mod distance;
pub mod null;
pub mod pool;
pub mod ring;

use std::time::Duration;

use serde::Serialize;

use crate::BenchError;
use crate::cpu::{self, Core};
use crate::harness::report::Report;
use crate::harness::{Blocks, Candidate, Plan, interleave};
use crate::manifest::Manifest;

/// Options of every timed benchmark.
#[derive(clap::Args, Clone, Debug)]
pub struct Timing {
    /// Blocks to keep of each candidate
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Wall time of a block
    #[arg(long, default_value = "100ms", value_parser = duration)]
    block: Duration,
    /// Cores to use, the first for a one-core benchmark; by default the last two that this process may use
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "A,B")]
    cores: Vec<usize>,
    /// Leave other projects' programs out
    #[arg(long)]
    no_peers: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

impl Timing {
    /// Two different cores: the first works in one-core benchmarks and produces in two-core ones.
    ///
    /// # Errors
    /// [`BenchError::Cores`] if there are no two, [`BenchError::Usage`] if those asked for cannot be used.
    fn pair(&self) -> Result<(Core, Core), BenchError> {
        let allowed = cpu::allowed();
        if let Some(bad) = self.cores.iter().find(|&&c| !allowed.contains(&Core(c))) {
            let list: Vec<String> = allowed.iter().map(Core::to_string).collect();
            return Err(BenchError::Usage(format!("core {bad} is not one of {}", list.join(", "))));
        }
        let mut cores: Vec<Core> = self.cores.iter().copied().map(Core).collect();
        cores.extend(allowed.iter().rev().filter(|c| !self.cores.contains(&c.0)));
        match cores[..] {
            [a, b, ..] if a != b => Ok((a, b)),
            [a, b, ..] if a == b => {
                Err(BenchError::Usage(format!("--cores {a},{b}: two different cores, please")))
            }
            _ => Err(BenchError::Cores(allowed.len())),
        }
    }

    fn plan(&self, pair: Option<(Core, Core)>) -> Plan {
        Plan { rounds: self.rounds as usize, window: self.block, pair }
    }

    /// Runs `candidates` and prints one dot a round on stderr.
    fn measure(
        &self,
        title: &str,
        pair: Option<(Core, Core)>,
        candidates: &mut [Box<dyn Candidate>],
    ) -> Result<Blocks, BenchError> {
        eprint!("{title} ");
        let blocks = interleave(&self.plan(pair), candidates, |_| eprint!("."))?;
        eprintln!();
        Ok(blocks)
    }
}

/// Everything a benchmark says.
#[derive(Serialize)]
struct Output {
    benchmark: &'static str,
    manifest: Manifest,
    reports: Vec<Report>,
}

impl Output {
    /// Starts the output: the manifest goes out first.
    fn new(benchmark: &'static str, manifest: Manifest, json: bool) -> Self {
        if !json {
            print!("{}", manifest.text());
        }
        Self { benchmark, manifest, reports: Vec::new() }
    }

    fn add(&mut self, report: Report, json: bool) {
        if !json {
            print!("{}", report.text());
        }
        self.reports.push(report);
    }

    fn finish(self, json: bool) {
        if json {
            println!("{}", serde_json::to_string(&self).expect("numbers and words always serialise"));
        }
    }
}

/// A time such as `50us`, `100ms`, `5s` or `2m`, from 1 ms to 10 minutes.
fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or("a time needs a unit: us, ms, s or m")?;
    let n: u64 = text[..at].parse().map_err(|_| format!("`{text}` is not a time such as 100ms"))?;
    let time = match &text[at..] {
        "us" => Duration::from_micros(n),
        "ms" => Duration::from_millis(n),
        "s" => Duration::from_secs(n),
        "m" => Duration::from_secs(n.saturating_mul(60)),
        unit => return Err(format!("unknown unit `{unit}`: use us, ms, s or m")),
    };
    let range = Duration::from_millis(1)..=Duration::from_secs(600);
    if range.contains(&time) { Ok(time) } else { Err("use 1ms to 10m".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for bad in ["", "5", "ms", "5h", "10us", "0s", "99999999999999999999s", "-1s", "1.5s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
