//! `ringwright run`, `check` and `ports`: a configuration, from its file to packets.

mod error;
mod host;
mod show;
mod system;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringwright::{drivers, kinds};
use rt::Status;
use rt::config::{Config, Kinds, TelemetrySection};
use rt::control::{Control, SharedHost};
use rt::telemetry::Exporter;

pub use error::RunError;
use host::Running;
pub use show::{Progress, Summary};
use system::System;

use crate::log::Log;

/// How often links are looked at and signals are heard.
const WATCH: Duration = Duration::from_millis(100);

/// How a run ended.
pub struct Outcome {
    /// All that was counted.
    pub status: Status,
    /// What went wrong for good while it ran.
    pub faults: Vec<String>,
}

/// Runs a configuration until its time is up, its inputs are exhausted, or `stop` is set: by a signal or over the control
/// socket. `progress` is told once a second.
///
/// # Errors
/// What kept it from starting.
pub fn run(
    file: &Path,
    duration: Option<Duration>,
    stop: &Arc<AtomicBool>,
    log: Log,
    mut progress: impl FnMut(&Progress),
) -> Result<Outcome, RunError> {
    let system = System::open(file)?;
    let telemetry = system.config.telemetry.clone();
    // What serves and watches is to cost the workers nothing, if there is any other core.
    let busy: Vec<usize> = system.config.workers.iter().filter_map(|w| w.core).collect();
    topology::keep_off(&busy);
    let host = Arc::new(Mutex::new(Running { system, log, stop: Arc::clone(stop) }));
    let services = Services::start(&telemetry, &host)?;
    tracing::info!("running");
    let start = Instant::now();
    let mut show = Progress::new();
    let mut next = Duration::from_secs(1);
    while !stop.load(Ordering::Relaxed) {
        let ran = start.elapsed();
        if duration.is_some_and(|d| ran >= d) || look(&host, |s| s.is_over()) {
            break;
        }
        if ran >= next {
            // Seconds in which this process stood still are not made up for.
            next = Duration::from_secs(ran.as_secs() + 1);
            show.update(look(&host, System::status));
            progress(&show);
        }
        let left = duration.map_or(WATCH, |d| d.saturating_sub(start.elapsed()).min(WATCH));
        thread::sleep(left);
        look(&host, System::watch);
    }
    stop.store(true, Ordering::SeqCst);
    // Whoever asks until the end is answered; then the ports go.
    services.stop();
    Ok(look(&host, System::stop))
}

/// Does something with the system, which the control socket and the exporter share.
fn look<T>(host: &Mutex<Running>, f: impl FnOnce(&mut System) -> T) -> T {
    f(&mut host.lock().unwrap_or_else(PoisonError::into_inner).system)
}

/// What others reach the run by.
struct Services {
    control: Option<Control>,
    exporter: Option<Exporter>,
}

impl Services {
    fn start(telemetry: &TelemetrySection, host: &Arc<Mutex<Running>>) -> Result<Self, RunError> {
        let shared = || Arc::clone(host) as SharedHost;
        let control =
            telemetry.control.as_deref().map(|path| Control::start(path, shared(), Default::default()));
        let control = control.transpose().map_err(|e| RunError::service("control", e))?;
        let listen = |address| Exporter::start(address, telemetry.allow_remote, shared(), Default::default());
        let exporter =
            telemetry.listen.map(listen).transpose().map_err(|e| RunError::service("listen", e))?;
        Ok(Self { control, exporter })
    }

    fn stop(self) {
        self.control.into_iter().for_each(Control::stop);
        self.exporter.into_iter().for_each(Exporter::stop);
    }
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
