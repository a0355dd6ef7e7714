//! `instructions`: what each hot path costs in instructions per unit, compared with stored values.
//!
//! 1. For each path of [`paths::PATHS`] this program runs itself under callgrind with that path's small, fixed workload.
//! 2. Collection is on only inside [`paths::collect`]; instructions divided by the units the workload reports are the
//!    path's figure. Nothing depends on time or chance: two runs agree to the last digits.
//! 3. The figures are compared with `bench/instructions.toml`: a rise over the tolerance is a regression.
//!
//! It does not see cache misses, branch misses or anything about time. Another compiler makes other code: with another
//! minor version the tolerance is wider, and that is said.

mod callgrind;
mod nic;
mod paths;
mod stages;
mod store;
mod switch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::BenchError;
use paths::{HotPath, PATHS};
use store::{Store, Verdict};

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Exit with 1 if a path got dearer, or is not stored
    #[arg(long, conflicts_with = "update")]
    check: bool,
    /// Store what is measured now
    #[arg(long)]
    update: bool,
    /// Only paths whose name contains this
    #[arg(long, value_name = "PART", conflicts_with = "update")]
    path: Option<String>,
    /// The stored values
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.toml"))]
    file: PathBuf,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Run one path's workload here and print its units: what runs under valgrind
    #[arg(long, hide = true, value_name = "NAME")]
    workload: Option<String>,
}

/// One line of the result.
#[derive(Debug, Serialize)]
pub struct Line {
    path: &'static str,
    unit: &'static str,
    stored: Option<f64>,
    now: f64,
    verdict: Verdict,
}

/// Measures, prints, and compares or stores.
///
/// # Errors
/// [`BenchError::Tool`] without valgrind, [`BenchError::Usage`] in a debug build or for a path that is not there,
/// [`BenchError::File`] for a store that cannot be used.
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    if let Some(name) = &args.workload {
        return workload(name);
    }
    if cfg!(debug_assertions) {
        let what = "a debug build says nothing about instructions: cargo run --release -p ringwright-bench";
        return Err(BenchError::Usage(what.into()));
    }
    let chosen: Vec<&HotPath> = PATHS
        .iter()
        .filter(|p| args.path.as_ref().is_none_or(|part| p.name.contains(part.as_str())))
        .collect();
    if chosen.is_empty() {
        return Err(no_path(args.path.as_deref().unwrap_or_default()));
    }
    let store = if args.update { Store::default() } else { Store::read(&args.file)? };
    let counts = count_all(&chosen)?;
    if args.update {
        Store::of(chosen.iter().zip(&counts).map(|(p, &n)| (p.name, n))).write(&args.file)?;
    }
    let lines: Vec<Line> = chosen.iter().zip(counts).map(|(p, now)| line(p, &store, now)).collect();
    let stale = if args.path.is_some() { Vec::new() } else { store.stale(PATHS.iter().map(|p| p.name)) };
    print(args, &store, &lines, &stale);
    let bad = !stale.is_empty() || lines.iter().any(|l| l.verdict.fails());
    Ok(if args.check && bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn workload(name: &str) -> Result<ExitCode, BenchError> {
    let path = PATHS.iter().find(|p| p.name == name).ok_or_else(|| no_path(name))?;
    println!("{}", (path.run)());
    Ok(ExitCode::SUCCESS)
}

fn no_path(name: &str) -> BenchError {
    let all: Vec<&str> = PATHS.iter().map(|p| p.name).collect();
    BenchError::Usage(format!("no hot path `{name}` among {}", all.join(", ")))
}

fn line(path: &HotPath, store: &Store, now: f64) -> Line {
    let stored = store.value(path.name);
    Line { path: path.name, unit: path.unit, stored, now, verdict: store.judge(path.name, now) }
}

/// Instructions per unit of each of `chosen`, as many at a time as there are cores.
fn count_all(chosen: &[&HotPath]) -> Result<Vec<f64>, BenchError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(chosen.len()));
    std::thread::scope(|s| {
        for _ in 0..topology::cores().len().min(chosen.len()) {
            s.spawn(|| {
                while let Some(path) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = callgrind::count(path.name);
                    results.lock().expect("no holder panics").push((path.name, count));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no holder panics");
    let place = |name| chosen.iter().position(|p| p.name == name);
    results.sort_by_key(|(name, _)| place(*name));
    results.into_iter().map(|(_, count)| count).collect()
}

#[derive(Serialize)]
struct Output<'a> {
    rustc: &'a str,
    stored_rustc: &'a str,
    tolerance: f64,
    paths: &'a [Line],
    stale: &'a [String],
}

fn print(args: &Args, store: &Store, lines: &[Line], stale: &[String]) {
    let rustc = env!("BENCH_RUSTC");
    if args.json {
        let out =
            Output { rustc, stored_rustc: &store.rustc, tolerance: store.tolerance(), paths: lines, stale };
        println!("{}", serde_json::to_string(&out).expect("numbers and words always serialise"));
        return;
    }
    if !args.update && !store.rustc.is_empty() && !store.same_compiler() {
        let (stored, percent) = (&store.rustc, store.tolerance() * 100.0);
        println!("warning: stored with rustc {stored}, built with {rustc}: {percent} % tolerance");
    }
    let wide = lines.iter().map(|l| l.path.len()).max().unwrap_or(0).max(4);
    println!("{:<wide$} {:>8} {:>9} {:>8}  instructions per", "path", "stored", "now", "diff");
    for l in lines {
        let stored = l.stored.map_or("-".into(), |s| format!("{s:.3}"));
        let diff = l.stored.map_or("-".into(), |s| format!("{:+.2} %", (l.now / s - 1.0) * 100.0));
        let Line { path, unit, now, .. } = l;
        println!(
            "{path:<wide$} {stored:>8} {now:>9.3} {diff:>8}  {unit}{}",
            if args.update { "" } else { l.verdict.words() }
        );
    }
    for name in stale {
        println!("{name}: stored, but there is no such path; --update removes it");
    }
}
