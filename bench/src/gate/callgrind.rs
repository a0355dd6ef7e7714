//! Runs one workload under callgrind.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::BenchError;

const TOOL: &str = "valgrind";
/// The C library picks its copies by the processor: told to use those that every x86-64 has, counts agree across machines.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2,-AVX512VL,-ERMS,-FSRM";

/// Instructions per unit of the workload `name`.
///
/// # Errors
/// [`BenchError::Tool`] if valgrind is missing, fails, or collected nothing.
pub fn count(name: &str) -> Result<f64, BenchError> {
    let exe = env::current_exe().map_err(|e| error(e.to_string()))?;
    let out = env::temp_dir().join(format!("ringwright-bench.{}.{name}.callgrind", std::process::id()));
    let counted = run(&exe, name, &out);
    let profile = fs::read_to_string(&out).unwrap_or_default();
    let _ = fs::remove_file(&out);
    let units = counted?;
    match total(&profile) {
        Some(n) if n > 0 => Ok(n as f64 / units as f64),
        _ => Err(error(format!("{name}: nothing was collected; is `collect` still a function of its own?"))),
    }
}

/// Runs the workload; its units.
fn run(exe: &Path, name: &str, out: &Path) -> Result<u64, BenchError> {
    let mut command = Command::new(TOOL);
    // A bare environment: what does not reach the workload cannot change its counts.
    command.env_clear().env("GLIBC_TUNABLES", TUNABLES);
    for key in ["PATH", "LD_LIBRARY_PATH", "VALGRIND_LIB", "TMPDIR"] {
        if let Some(value) = env::var_os(key) {
            command.env(key, value);
        }
    }
    command.args(["--tool=callgrind", "--quiet", "--toggle-collect=*ringwright_bench*gate*paths*collect*"]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(exe);
    let done = command.args(["instructions", "--workload", name]).output();
    let done = done.map_err(|e| error(format!("{e}; apt-get install valgrind")))?;
    let words = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return Err(error(format!("{name}: {}: {}", done.status, words.trim())));
    }
    let units = String::from_utf8_lossy(&done.stdout).trim().parse();
    units.map_err(|_| error(format!("{name}: the workload printed no units: {}", words.trim())))
}

/// Instructions in a callgrind profile: its `totals` line.
fn total(profile: &str) -> Option<u64> {
    let value =
        profile.lines().find_map(|l| l.strip_prefix("totals:").or_else(|| l.strip_prefix("summary:")))?;
    value.split_whitespace().next()?.parse().ok()
}

const fn error(what: String) -> BenchError {
    BenchError::Tool { tool: TOOL, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_a_profile() {
        assert_eq!(total("events: Ir\nfn=(1) x\n3 4\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }
}
