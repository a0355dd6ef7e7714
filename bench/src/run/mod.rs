//! The benchmarks, one file each, and what they share.

pub mod all;
pub mod demo;
pub mod distance;
pub mod null;
pub mod packet;
pub mod pool;
pub mod ring;
pub mod scrape;

use std::time::Duration;

use serde::Serialize;

use crate::BenchError;
use crate::cpu::{self, Core};
use crate::harness::report::Report;
use crate::harness::{Blocks, Candidate, Plan, interleave};
use crate::manifest::Manifest;

/// Blocks to keep, and how long one lasts, unless a benchmark or the user has other wishes.
const ROUNDS: u32 = 15;
const BLOCK: Duration = Duration::from_millis(100);

/// Options of every timed benchmark.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Timing {
    /// Blocks to keep of each candidate [default: 15, demo: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Wall time of a block [default: 100ms, demo: 2s]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    block: Option<Duration>,
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

    /// The same, with a benchmark's own numbers where none were given.
    fn or(&self, rounds: u32, block: Duration) -> Self {
        let (rounds, block) = (self.rounds.or(Some(rounds)), self.block.or(Some(block)));
        Self { rounds, block, ..self.clone() }
    }

    /// The command line that says this.
    fn arguments(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.rounds.map(|n| format!("--rounds={n}")));
        all.extend(self.block.map(|t| format!("--block={}us", t.as_micros())));
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        all.extend((!cores.is_empty()).then(|| format!("--cores={}", cores.join(","))));
        all.extend(self.no_peers.then(|| "--no-peers".to_owned()));
        all.extend(self.json.then(|| "--json".to_owned()));
        all
    }

    fn plan(&self, pair: Option<(Core, Core)>) -> Plan {
        let (rounds, window) = (self.rounds.unwrap_or(ROUNDS) as usize, self.block.unwrap_or(BLOCK));
        Plan { rounds, window, pair }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    demo: Option<demo::Clean>,
}

impl Output {
    /// Starts the output: the manifest goes out first.
    fn new(benchmark: &'static str, manifest: Manifest, json: bool) -> Self {
        if !json {
            print!("{}", manifest.text());
        }
        Self { benchmark, manifest, reports: Vec::new(), demo: None }
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

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        timing: Timing,
    }

    fn read(words: &[String]) -> Timing {
        let all = std::iter::once("bench".to_owned()).chain(words.iter().cloned());
        <Alone as clap::Parser>::try_parse_from(all).unwrap().timing
    }

    #[test]
    fn arguments_read_back() {
        let words =
            ["--rounds=3", "--block=5000us", "--cores=1,0", "--no-peers", "--json"].map(str::to_owned);
        assert_eq!(read(&words).arguments(), words);
        assert!(read(&[]).arguments().is_empty(), "a benchmark's own defaults stay its own");
    }

    #[test]
    fn what_was_asked_for_comes_before_a_benchmarks_default_and_that_before_the_common_one() {
        let plan = |t: &Timing| (t.plan(None).rounds, t.plan(None).window);
        let (asked, own) = (read(&["--rounds=3".to_owned()]), Duration::from_secs(2));
        assert_eq!(plan(&asked.or(5, own)), (3, own));
        assert_eq!(plan(&asked), (3, BLOCK));
    }

    #[test]
    fn times() {
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for bad in ["", "5", "ms", "5h", "10us", "0s", "99999999999999999999s", "-1s", "1.5s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
