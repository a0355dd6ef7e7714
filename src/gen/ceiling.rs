//! How fast this generator is where nothing holds it up.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use generator::{Addresses, GenPort, Handle, Pace, Profile};
use graph::{GraphBuilder, OnFull, To};
use mem::Memory;
use meter::DropReason;
use port::{OpenEnv, PortConfig};
use rt::{Runtime, WorkerPlan};
use serde::Serialize;

use super::{GenError, forwarder, port_config};
use crate::units::rate;

/// Until caches are warm.
const WARM: Duration = Duration::from_millis(60);
/// The best of several windows counts: whatever else the machine does, the generator is no slower than that.
const WINDOW: Duration = Duration::from_millis(80);
const WINDOWS: usize = 3;

/// What the generator can do at most.
#[derive(Clone, Debug, Serialize)]
pub struct Ceiling {
    /// Packets a second.
    pub packets_per_second: f64,
    /// What was measured: `gen to gen` (made and checked, no device between), or `gen alone` (made and dropped).
    pub how: &'static str,
    /// The core it was measured on; null if it was not bound to one.
    pub core: Option<usize>,
    /// Of which frames.
    #[serde(skip)]
    frames: String,
}

impl Ceiling {
    /// Measured in some way.
    pub const fn of(packets_per_second: f64, how: &'static str, core: Option<usize>, frames: String) -> Self {
        Self { packets_per_second, how, core, frames }
    }
    /// As it is said before a run.
    pub fn line(&self) -> String {
        let core = self.core.map_or_else(|| "any core".to_owned(), |c| format!("core {c}"));
        let speed = rate(self.packets_per_second);
        format!("ceiling of this generator on {core}: {speed} packets ({}; {})", self.frames, self.how)
    }
}

/// Measures it: the same flows and sizes, made as fast as can be, on the worker's core, over `memory`. With `checked` they
/// are checked on the same core, as in a run in which frames come back.
pub fn measure(
    profile: &Profile,
    memory: &Arc<Memory>,
    core: Option<usize>,
    checked: bool,
) -> Result<Ceiling, GenError> {
    let name = generator::NAME;
    let profile = Profile { pace: Pace::Max, count: None, ..profile.clone() };
    let frames = frames(&profile);
    let env = OpenEnv { memory: Arc::clone(memory), name: name.into() };
    let port = GenPort::new(profile, &env).map_err(GenError::port("--size"))?;
    let handle = port.handle();
    let mut runtime = Runtime::new(Arc::clone(memory));
    let cfg: PortConfig = port_config(&port);
    runtime.add_port(name, Box::new(port), cfg, OnFull::Drop);
    let drop = |local: &mem::Local| GraphBuilder::new(local).build(To::Drop(DropReason::Filtered));
    let plan = WorkerPlan {
        core,
        rx: vec![(0, 0)],
        tx: if checked { vec![(0, 0)] } else { Vec::new() },
        stages: 1,
        graph: Some(if checked { forwarder(vec![(0, 0)]) } else { Box::new(drop) }),
        ..WorkerPlan::default()
    };
    // What there is to warn about is said once, by the run itself.
    let silent = tracing::subscriber::NoSubscriber::new();
    tracing::subscriber::with_default(silent, || runtime.start(vec![plan]))?;
    thread::sleep(WARM);
    let best = (0..WINDOWS).map(|_| window(&handle)).fold(0.0, f64::max);
    handle.hold();
    tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || runtime.stop());
    let how = if checked { "gen to gen" } else { "gen alone" };
    Ok(Ceiling::of(best, how, core, frames))
}

/// Packets a second over one window.
fn window(handle: &Handle) -> f64 {
    let (start, before) = (Instant::now(), handle.counts().made);
    thread::sleep(WINDOW);
    let made = handle.counts().made - before;
    made as f64 / start.elapsed().as_secs_f64()
}

/// What the frames of a profile are, in a few words.
pub fn frames(profile: &Profile) -> String {
    let ip = if matches!(profile.addresses, Addresses::V6 { .. }) { " IPv6," } else { "" };
    let flows = profile.flows;
    format!("{},{ip} {flows} flow{}", profile.sizes, if flows == 1 { "" } else { "s" })
}
