//! `all`, and no command at all: every benchmark in turn, then the instruction counts.
//!
//! Each is this program again, so that none finds what another left in memory, and one that cannot run does not keep the
//! others from it.

use std::io;
use std::process::{Command, ExitCode, Stdio};

use serde::Serialize;
use serde_json::Value;

use super::Timing;
use crate::BenchError;

/// In this order: what is quick to tell comes first.
const ORDER: [&str; 8] = ["distance", "null", "pool", "ring", "demo", "packet", "scrape", "instructions"];

/// Options.
#[derive(clap::Args, Debug, Default)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
}

#[derive(Serialize)]
struct All {
    benchmark: &'static str,
    /// What each printed.
    results: Vec<Value>,
    /// Those that did not end well; their words are on stderr.
    failed: Vec<&'static str>,
}

/// Runs them.
///
/// # Errors
/// If this program cannot be started again.
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let mut all = All { benchmark: "all", results: Vec::new(), failed: Vec::new() };
    for name in ORDER {
        let is_ok = if args.timing.json {
            let (ok, result) = silent(name, &args.timing)?;
            all.results.extend(result);
            ok
        } else {
            println!("\n=== {name} ===");
            command(name, &args.timing)?.status().map_err(|e| error(&e))?.success()
        };
        if !is_ok {
            all.failed.push(name);
        }
    }
    if args.timing.json {
        println!("{}", serde_json::to_string(&all).expect("numbers and words always serialise"));
    } else if !all.failed.is_empty() {
        println!("\nfailed: {}", all.failed.join(", "));
    }
    Ok(if all.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one for its JSON object.
fn silent(name: &str, timing: &Timing) -> Result<(bool, Option<Value>), BenchError> {
    let out = command(name, timing)?.stderr(Stdio::inherit()).output().map_err(|e| error(&e))?;
    Ok((out.status.success(), serde_json::from_slice(&out.stdout).ok()))
}

fn command(name: &str, timing: &Timing) -> Result<Command, BenchError> {
    let mut command = Command::new(std::env::current_exe().map_err(|e| error(&e))?);
    command.arg(name).stdin(Stdio::null());
    if name == "instructions" {
        command.args(timing.json.then_some("--json"));
    } else {
        command.args(timing.arguments());
    }
    Ok(command)
}

fn error(e: &io::Error) -> BenchError {
    BenchError::Tool { tool: "ringwright-bench", what: format!("cannot start itself again: {e}") }
}
