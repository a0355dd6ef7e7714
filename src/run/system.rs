//! A running configuration: memory, ports and workers made of it.

use std::path::Path;
use std::sync::Arc;

use graph::{GraphError, OnFull};
use mem::{Layout, Memory};
use port::{Driver, OpenEnv, OpenPort, PortConfig, PortError};
use ringwright::{drivers, kinds};
use rt::config::{
    Assignment, BuildEnv, Config, ConfigError, Kinds, PortNames, PortSection, Recipe, StageKind, Wiring,
    WorkerSection, assign,
};
use rt::{BuildGraph, MemorySum, Runtime, Status, WorkerPlan};

use super::{Outcome, RunError};

/// A stage's name, and how it is made.
type Stages = Arc<Vec<(Arc<str>, Arc<dyn Recipe>)>>;

/// A configuration that runs.
pub struct System {
    pub runtime: Runtime,
    pub names: PortNames,
    pub stages: Stages,
    pub drivers: Vec<Box<dyn Driver>>,
    pub kinds: Vec<Box<dyn StageKind>>,
    pub config: Config,
}

/// A configuration that was checked, and what comes of it.
struct Checked {
    queues: Vec<Assignment>,
    wiring: Vec<Option<Wiring>>,
    stages: Stages,
}

impl Checked {
    fn new(config: &Config, kinds: Kinds<'_>) -> Result<Self, ConfigError> {
        let queues = assign(config)?;
        let recipes = config.recipes(kinds)?;
        let wiring = config.wire(&recipes)?;
        check_cores(config)?;
        let names = config.stages.iter().map(|s| Arc::clone(&s.name));
        Ok(Self { queues, wiring, stages: Arc::new(names.zip(recipes).collect()) })
    }
}

fn check_cores(config: &Config) -> Result<(), ConfigError> {
    let there = topology::cores();
    let wrong = |(i, w): (usize, &rt::config::WorkerSection)| {
        let core = w.core.filter(|c| !there.is_empty() && !there.contains(c))?;
        let list: Vec<_> = there.iter().map(ToString::to_string).collect();
        let message = format!("core: this process may not use core {core}; it may use {}", list.join(", "));
        Some(config.text.problem(&format!("worker[{i}].core"), message))
    };
    let problems: Vec<_> = config.workers.iter().enumerate().filter_map(wrong).collect();
    if problems.is_empty() { Ok(()) } else { Err(config.text.error(problems)) }
}

/// Pools on the nodes of all workers' cores.
fn memory(config: &Config) -> Result<Arc<Memory>, RunError> {
    let memory = Memory::new(
        hw::Window::reserve(hw::Window::LEN)?,
        Layout::for_frame_room(config.memory.frame_room.into())?,
    );
    for node in nodes(config) {
        memory.add_pool(config.memory.buffers, node, config.memory.pages)?;
    }
    Ok(memory)
}

/// The nodes of all workers' cores.
fn nodes(config: &Config) -> Vec<Option<hw::Node>> {
    let mut nodes: Vec<_> = config.workers.iter().map(|w| w.core.and_then(topology::node_of_core)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// How to run a port of which the configuration says `p`.
pub fn port_config(p: &PortSection, max_frame: u16) -> PortConfig {
    PortConfig {
        queues: p.queues,
        rx_ring: p.rx_ring,
        tx_ring: p.tx_ring,
        doorbell_packets: p.doorbell_packets,
        doorbell_delay: ticks(p.doorbell_delay),
        prefetch: p.prefetch,
        max_frame: p.max_frame.unwrap_or(max_frame),
        ..PortConfig::new(0)
    }
}

/// In ticks of the cycle counter.
pub fn ticks(time: core::time::Duration) -> u64 {
    (time.as_secs_f64() * hw::tsc_hz() as f64) as u64
}

/// Says what a configuration would take, without opening anything.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check(config: &Config, kinds: Kinds<'_>) -> Result<String, RunError> {
    let checked = Checked::new(config, kinds)?;
    let ports: Vec<_> = config.ports.iter().map(|p| port_config(p, PortConfig::new(0).max_frame)).collect();
    let plans = plans(config, &checked, &Arc::new(config.names()));
    let nodes = nodes(config).len();
    let sum = MemorySum::of(&ports, &plans, nodes, nodes * config.memory.buffers);
    if !sum.fits() {
        return Err(RunError::Rt(rt::RtError::PoolTooSmall(sum)));
    }
    Ok(format!(
        "{}: {} ports, {} workers, {} stages, {} edges: good\nmemory: {sum}",
        config.text.file(),
        config.ports.len(),
        config.workers.len(),
        config.stages.len(),
        config.edges.len(),
    ))
}

impl System {
    /// Opens and starts everything that the configuration in `file` names.
    ///
    /// # Errors
    /// What is wrong with it, or with the machine.
    pub fn open(file: &Path) -> Result<Self, RunError> {
        let (drivers, kinds) = (drivers::all(), kinds::all());
        let known = Kinds { drivers: &drivers, stages: &kinds };
        let config = Config::load(file, known)?;
        let checked = Checked::new(&config, known)?;
        let mut runtime = Runtime::new(memory(&config)?);
        for (i, p) in config.ports.iter().enumerate() {
            let open = open_port(&runtime, known, p).map_err(|e| RunError::port(&config, i, e))?;
            let cfg = port_config(p, open.info().max_frame);
            runtime.add_port(&p.name, open, cfg, on_full(p));
        }
        let names = Arc::new(config.names());
        runtime.start(plans(&config, &checked, &names))?;
        Ok(Self { runtime, names: config.names(), stages: checked.stages, drivers, kinds, config })
    }

    /// Looks at links, faults and counts; about every 100 ms.
    pub fn watch(&mut self) {
        self.runtime.watch();
    }
    /// Whether all that could come in has come in, and gone its way.
    pub fn is_over(&mut self) -> bool {
        self.runtime.is_exhausted()
    }
    /// All that was counted.
    pub fn status(&mut self) -> Status {
        self.runtime.status()
    }
    /// Stops everything.
    pub fn stop(&mut self) -> Outcome {
        let status = self.runtime.stop();
        Outcome { status, faults: self.runtime.faults() }
    }
}

/// Opens the device of a port.
pub fn open_port(
    runtime: &Runtime,
    kinds: Kinds<'_>,
    p: &PortSection,
) -> Result<Box<dyn OpenPort>, PortError> {
    let env = OpenEnv { memory: Arc::clone(runtime.memory()), name: Arc::clone(&p.name) };
    let driver = kinds.driver(&p.driver).ok_or_else(|| PortError::Config {
        driver: "ringwright",
        key: "driver".to_owned(),
        problem: format!("there is no driver {:?}", p.driver),
    })?;
    driver.open(&p.own, &env)
}

/// What happens when a transmit queue is full: files wait, others drop.
pub fn on_full(p: &PortSection) -> OnFull {
    let usual = if p.driver == "pcap" { OnFull::Wait } else { OnFull::Drop };
    p.on_full.unwrap_or(usual)
}

fn plans(config: &Config, checked: &Checked, names: &Arc<PortNames>) -> Vec<WorkerPlan> {
    let all = config.workers.iter().zip(&checked.queues).zip(&checked.wiring);
    let plan = |((w, queues), wiring): ((&WorkerSection, &Assignment), &Option<Wiring>)| WorkerPlan {
        core: w.core,
        role: w.role,
        idle: w.idle,
        rx: queues.rx.clone(),
        tx: queues.tx.clone(),
        stages: wiring.as_ref().map_or(0, Wiring::stages),
        graph: wiring.clone().map(|wiring| builder(wiring, w, &checked.stages, names)),
    };
    all.map(plan).collect()
}

fn builder(wiring: Wiring, w: &WorkerSection, stages: &Stages, names: &Arc<PortNames>) -> BuildGraph {
    let (stages, names) = (Arc::clone(stages), Arc::clone(names));
    let node = w.core.and_then(topology::node_of_core);
    Box::new(move |local| {
        let failed =
            || GraphError::Stage { stage: "memory".into(), problem: "there is no packet pool".to_owned() };
        let pool = local.memory().pool_on(node).ok_or_else(failed)?.id();
        wiring.build(&stages, &BuildEnv { local, pool, place: 0, ports: &names })
    })
}
