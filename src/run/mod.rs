//! `ringwright run`, `check` and `ports`: a configuration, from its file to packets.

mod error;
mod show;
mod system;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringwright::{drivers, kinds};
use rt::Status;
use rt::config::{Config, Kinds};

pub use error::RunError;
pub use show::{Progress, Summary};
use system::System;

/// How often links are looked at and signals are heard.
const WATCH: Duration = Duration::from_millis(100);

/// How a run ended.
pub struct Outcome {
    /// All that was counted.
    pub status: Status,
    /// What went wrong for good while it ran.
    pub faults: Vec<String>,
}

/// Runs a configuration until its time is up, its inputs are exhausted or `stop` is set. `progress` is told once a second.
///
/// # Errors
/// What kept it from starting.
pub fn run(
    file: &Path,
    duration: Option<Duration>,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Progress),
) -> Result<Outcome, RunError> {
    let mut system = System::open(file)?;
    let start = Instant::now();
    let mut show = Progress::new();
    let mut next = Duration::from_secs(1);
    while !stop.load(Ordering::Relaxed) && !system.is_over() {
        let ran = start.elapsed();
        if duration.is_some_and(|d| ran >= d) {
            break;
        }
        system.watch();
        if ran >= next {
            // Seconds in which this process stood still are not made up for.
            next = Duration::from_secs(ran.as_secs() + 1);
            show.update(system.status());
            progress(&show);
        }
        let left = duration.map_or(WATCH, |d| d.saturating_sub(start.elapsed()).min(WATCH));
        thread::sleep(left);
    }
    Ok(system.stop())
}

/// Reads and checks a configuration, and says what it would take.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check(file: &Path) -> Result<String, RunError> {
    let (drivers, stages) = (drivers::all(), kinds::all());
    let kinds = Kinds { drivers: &drivers, stages: &stages };
    let config = Config::load(file, kinds)?;
    system::check(&config, kinds)
}
