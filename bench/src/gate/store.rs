//! `instructions.toml`: the stored figures, and the verdict over new ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::BenchError;

/// A path may get this much dearer under the compiler it was stored with.
const TOLERANCE: f64 = 0.02;
/// The same under another minor version of the compiler.
const OTHER_COMPILER: f64 = 0.10;

/// The file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The compiler that built what was stored.
    pub rustc: String,
    instructions: BTreeMap<String, f64>,
}

/// What a new figure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the tolerance.
    Same,
    /// Cheaper than the tolerance: worth storing.
    Better,
    /// Dearer than the tolerance.
    Worse,
    /// Nothing is stored for the path.
    New,
}

impl Verdict {
    /// True if the gate is shut.
    pub const fn fails(self) -> bool {
        matches!(self, Self::Worse | Self::New)
    }

    /// What follows in the table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Better => "  cheaper: keep it with --update",
            Self::Worse => "  REGRESSION",
            Self::New => "  not stored: --update",
        }
    }
}

impl Store {
    /// Figures of this build.
    pub fn of<'a>(counts: impl Iterator<Item = (&'a str, f64)>) -> Self {
        let instructions = counts.map(|(name, n)| (name.to_owned(), n)).collect();
        Self { rustc: env!("BENCH_RUSTC").to_owned(), instructions }
    }

    /// Reads `path`; a missing file stores nothing.
    ///
    /// # Errors
    /// [`BenchError::File`] if it is there but cannot be understood.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let error = |what| BenchError::File { path: path.display().to_string(), what };
        match fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).map_err(|e| error(format!("{e}; --update writes it anew"))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(error(e.to_string())),
        }
    }

    /// Writes `path`.
    ///
    /// # Errors
    /// [`BenchError::File`].
    pub fn write(&self, path: &Path) -> Result<(), BenchError> {
        fs::write(path, self.text())
            .map_err(|e| BenchError::File { path: path.display().to_string(), what: e.to_string() })
    }

    fn text(&self) -> String {
        let mut out = String::from(
            "# Instructions per unit of the hot paths, under callgrind, release profile, baseline x86-64.\n\
             # Written by `ringwright-bench instructions --update`; compared by `--check`.\n",
        );
        let _ = write!(out, "rustc = \"{}\"\n\n[instructions]\n", self.rustc);
        for (name, n) in &self.instructions {
            let _ = writeln!(out, "{name} = {n:.3}");
        }
        out
    }

    /// What is stored for a path.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.instructions.get(name).copied()
    }

    /// Stored names that are none of `paths`.
    pub fn stale<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
        let known: Vec<&str> = paths.collect();
        self.instructions.keys().filter(|n| !known.contains(&n.as_str())).cloned().collect()
    }

    /// True if this build's compiler has the major and minor version of the stored one.
    pub fn same_compiler(&self) -> bool {
        let minor = |v: &str| v.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
        minor(&self.rustc) == minor(env!("BENCH_RUSTC"))
    }

    /// The relative rise that is allowed.
    pub fn tolerance(&self) -> f64 {
        if self.same_compiler() { TOLERANCE } else { OTHER_COMPILER }
    }

    /// The verdict over `now` for a path.
    pub fn judge(&self, name: &str, now: f64) -> Verdict {
        match self.value(name).map(|stored| now / stored - 1.0) {
            None => Verdict::New,
            Some(rise) if rise > self.tolerance() => Verdict::Worse,
            Some(rise) if rise < -self.tolerance() => Verdict::Better,
            Some(_) => Verdict::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(rustc: &str) -> Store {
        Store { rustc: rustc.into(), instructions: [("a".to_owned(), 10.0)].into() }
    }

    #[test]
    fn a_rise_over_two_percent_shuts_the_gate() {
        let s = store(env!("BENCH_RUSTC"));
        assert_eq!(s.judge("a", 10.19), Verdict::Same);
        assert_eq!(s.judge("a", 10.21), Verdict::Worse);
        assert_eq!(s.judge("a", 9.7), Verdict::Better);
        assert_eq!(s.judge("b", 1.0), Verdict::New);
        assert!(Verdict::Worse.fails() && Verdict::New.fails() && !Verdict::Better.fails());
    }

    #[test]
    fn another_compiler_gets_ten_percent() {
        let s = store("0.1.0");
        assert!(!s.same_compiler());
        assert_eq!(s.judge("a", 10.9), Verdict::Same);
        assert_eq!(s.judge("a", 11.1), Verdict::Worse);
    }

    #[test]
    fn the_file_reads_back_and_stale_names_are_found() {
        let s = store("1.95.0");
        assert_eq!(toml::from_str::<Store>(&s.text()).unwrap(), s);
        assert_eq!(s.stale(["b"].into_iter()), ["a"]);
        assert!(
            toml::from_str::<Store>("rustc = \"1\"\n[instruction]\n").is_err(),
            "unknown keys are errors"
        );
    }
}
