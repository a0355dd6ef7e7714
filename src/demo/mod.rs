//! `ringwright demo`: two software 82599s with a generator and a checker on their wires, joined by a switch.
//!
//! The driver, rings, pools, graph and worker are those that a real card gets; only the card and what is behind it are
//! software, on a thread of their own.

mod pattern;
mod show;
mod traffic;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use graph::{GraphBuilder, GraphError, OnFull, To};
use hw::{PageSize, Pages, Window};
use ixgbe::{Ixgbe, PciId};
use ixgbe_model::{Device, Engine, ModelThread, Parameters, spawn};
use mem::{Layout, Memory};
use port::{OpenEnv, PortConfig};
use ring::RingSize;
use rt::{Lint, MemorySum, RtError, Runtime, Status, WorkerPlan};
use stages::{L2Switch, L2SwitchConfig};

pub use pattern::Frames;
use pattern::Pattern;
pub use show::Report;
use traffic::{Counts, Tester};

/// The longest ring that the devices have (82599 data sheet, 8.2.3.8.3).
pub const LONGEST_RING: u32 = 8192;
/// The switch's name in status.
const SWITCH: &str = "sw";
/// Ports, and so devices, of the demo.
const PORTS: usize = 2;
/// What the configuration space of an 82599 with SFP+ says (82599 data sheet, 9.3.2 and 9.3.3).
const IDENTITY: PciId = PciId { vendor: 0x8086, device: 0x10fb };
/// How long frames may take from one generator to the other's checker once both have stopped.
const SETTLE: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long.
    pub duration: Duration,
    /// Sizes of frames.
    pub frames: Frames,
    /// Flows each way.
    pub flows: u16,
    /// The link that PCIe figures are for.
    pub link: pcie::Link,
    /// Pages of packet memory.
    pub pages: Pages,
    /// The node of packet memory; `None` for that of the first worker's core.
    pub node: Option<hw::Node>,
    /// Buffers.
    pub buffers: usize,
    /// Descriptors of each ring.
    pub ring: RingSize,
    /// A core for each worker; empty for the last core this process may use.
    pub worker_cores: Vec<usize>,
    /// The core of the devices and their wires; `None` for the first core this process may use.
    pub device_core: Option<usize>,
}

/// Why the demo did not run.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Memory.
    #[error(transparent)]
    Hw(#[from] hw::HwError),
    /// Packet memory.
    #[error(transparent)]
    Mem(#[from] mem::MemError),
    /// A port.
    #[error(transparent)]
    Port(#[from] port::PortError),
    /// Start or stop.
    #[error(transparent)]
    Rt(RtError),
    /// The pool is smaller than what can hold buffers.
    #[error(
        "rx rings {} + tx rings {} + magazines {} + inboxes {} = {need} buffers; the pool has {}: \
         use --buffers {need} or more, or a smaller --ring",
        .0.rx_rings, .0.tx_rings, .0.magazines, .0.inboxes, .0.buffers, need = .0.need()
    )]
    Buffers(MemorySum),
    /// A core that this process may not use, or that is not there.
    #[error("{what}: this process may not use core {core}; it may use {}", list(there))]
    Core {
        /// Whose it was to be.
        what: &'static str,
        /// The core asked for.
        core: usize,
        /// The cores there are.
        there: Vec<usize>,
    },
    /// More workers than a device has queues.
    #[error(
        "{asked} workers asked, each takes a queue of each port, and ixgbe has 1 to {}",
        ixgbe::MAX_QUEUES
    )]
    Workers {
        /// Asked for.
        asked: usize,
    },
    /// The devices' thread.
    #[error("starting the devices' thread: {0}")]
    Thread(std::io::Error),
}

impl DemoError {
    /// Whether what was asked for can never be on this machine, rather than not now.
    pub const fn is_usage(&self) -> bool {
        use hw::HwError::NoSuchNode;
        use mem::MemError;
        matches!(
            self,
            Self::Buffers(_)
                | Self::Core { .. }
                | Self::Hw(NoSuchNode { .. })
                | Self::Mem(MemError::BadCapacity { .. } | MemError::Hw(NoSuchNode { .. }))
                | Self::Workers { .. }
        )
    }
}

impl From<RtError> for DemoError {
    fn from(e: RtError) -> Self {
        match e {
            RtError::PoolTooSmall(sum) => Self::Buffers(sum),
            e => Self::Rt(e),
        }
    }
}

fn list(cores: &[usize]) -> String {
    let cores: Vec<_> = cores.iter().map(ToString::to_string).collect();
    format!("core {}", cores.join(", "))
}

/// The devices with what is behind them.
struct Bench {
    devices: Vec<Device>,
    thread: ModelThread<Tester>,
    running: Arc<AtomicBool>,
    counts: Vec<Arc<Counts>>,
}

/// Runs the demo until its time is up or `stop` is set. `progress` gets a report once a second.
///
/// # Errors
/// What kept it from starting.
pub fn run(
    options: &Options,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Report),
) -> Result<Report, DemoError> {
    let (worker_cores, device_core) = cores(options)?;
    let node = options.node.or_else(|| worker_cores.first().copied().and_then(topology::node_of_core));
    let window = Window::reserve(Window::LEN)?;
    let memory = Memory::new(Arc::clone(&window), Layout::for_frame_room(2048)?);
    memory.add_pool(options.buffers, node, options.pages)?;
    let bench = Bench::new(options, &window, node, device_core)?;
    let mut runtime = Runtime::new(memory);
    add_ports(options, &mut runtime, &bench.devices, worker_cores.len() as u16)?;
    runtime.start(worker_cores.iter().enumerate().map(|(i, core)| plan(i as u16, *core)).collect())?;
    let shared = lint_devices(&worker_cores, device_core);
    shared.iter().for_each(Lint::log);
    let mut show = show::Show::new(options, &worker_cores, device_core);
    bench.running.store(true, Ordering::Relaxed);
    let start = Instant::now();
    let mut next = Duration::from_secs(1);
    while start.elapsed() < options.duration && !stop.load(Ordering::Relaxed) {
        if start.elapsed() >= next {
            // Seconds in which this process stood still are not made up for.
            next = Duration::from_secs(start.elapsed().as_secs() + 1);
            progress(&show.report(runtime.status(), &bench.counts, &bench.devices));
        }
        let left = options.duration.saturating_sub(start.elapsed()).min(next.saturating_sub(start.elapsed()));
        thread::sleep(left.min(Duration::from_millis(50)));
    }
    let ran = start.elapsed();
    let mut status = bench.quiesce(&mut runtime);
    status.lints.extend(shared);
    let report = show.finish(status, &bench.counts, &bench.devices, ran);
    // The devices go last: until the ports were reset they could still write to memory.
    bench.thread.stop();
    Ok(report)
}

/// Worker and device cores: as asked, or the last and the first this process may use.
fn cores(options: &Options) -> Result<(Vec<usize>, Option<usize>), DemoError> {
    let all = topology::cores();
    let asked = options.worker_cores.iter().map(|c| ("--worker-core", *c));
    let mut asked = asked.chain(options.device_core.map(|c| ("--device-core", c)));
    if let Some((what, core)) = asked.find(|(_, c)| !all.is_empty() && !all.contains(c)) {
        return Err(DemoError::Core { what, core, there: all });
    }
    if options.worker_cores.len() > usize::from(ixgbe::MAX_QUEUES) {
        return Err(DemoError::Workers { asked: options.worker_cores.len() });
    }
    let mut workers = options.worker_cores.clone();
    if workers.is_empty() {
        workers.extend(all.last());
    }
    Ok((workers, options.device_core.or_else(|| all.first().copied())))
}

/// A worker on the devices' core gets what they leave of it: worth a warning, as it is for two workers.
fn lint_devices(workers: &[usize], device_core: Option<usize>) -> Option<Lint> {
    let core = device_core?;
    let worker = workers.iter().position(|c| *c == core)?;
    let message = format!(
        "worker {worker} and the devices share core {core}: each gets half of it at best; give each its own"
    );
    Some(Lint { lint: "core_shared", object: format!("core {core}"), message })
}

/// A port on each device, with a queue pair for each worker.
fn add_ports(
    options: &Options,
    runtime: &mut Runtime,
    devices: &[Device],
    queues: u16,
) -> Result<(), DemoError> {
    for (i, device) in devices.iter().enumerate() {
        let name = format!("p{i}");
        let env = OpenEnv { memory: Arc::clone(runtime.memory()), name: name.as_str().into() };
        let open = Ixgbe::open(device.bus(), IDENTITY, &env)?;
        let mut cfg = PortConfig::new(0);
        cfg.queues = queues;
        (cfg.rx_ring, cfg.tx_ring) = (options.ring, options.ring);
        cfg.max_frame = options.frames.longest().max(usize::from(cfg.max_frame)) as u16;
        // The wires wait rather than lose frames, so the ports do as well: what is missing at the end is a fault.
        cfg.rx_wait = true;
        runtime.add_port(&name, Box::new(open), cfg, OnFull::Wait);
    }
    Ok(())
}

/// Worker `i` has queue `i` of both ports and a switch of its own.
fn plan(i: u16, core: usize) -> WorkerPlan {
    let queues: Vec<_> = (0..PORTS as u16).map(|port| (port, i)).collect();
    WorkerPlan {
        core: Some(core),
        rx: queues.clone(),
        tx: queues,
        stages: 1,
        graph: Some(Box::new(move |local| {
            let stage = |e: &dyn std::fmt::Display| GraphError::Stage {
                stage: SWITCH.into(),
                problem: e.to_string(),
            };
            let node = topology::node_of_core(core);
            let pool = local.memory().pool_on(node).ok_or_else(|| stage(&port::PortError::NoPool))?.id();
            let seed = RandomState::new().hash_one(i);
            let config = L2SwitchConfig::new(&[0, 1]);
            let switch = L2Switch::new(&config, pool, hw::tsc_hz(), seed).map_err(|e| stage(&e))?;
            let mut b = GraphBuilder::new(local);
            let sw = b.add(SWITCH, Box::new(switch));
            b.build(To::Node(sw))
        })),
        ..WorkerPlan::default()
    }
}

impl Bench {
    fn new(
        options: &Options,
        window: &Arc<Window>,
        node: Option<hw::Node>,
        core: Option<usize>,
    ) -> Result<Self, DemoError> {
        let patterns: Vec<_> =
            (0..PORTS as u8).map(|side| Pattern::new(side, options.frames, options.flows)).collect();
        let running = Arc::new(AtomicBool::new(false));
        let counts: Vec<Arc<Counts>> = (0..PORTS).map(|_| Arc::default()).collect();
        let (mut devices, mut engines): (Vec<_>, Vec<Engine<Tester>>) = (Vec::new(), Vec::new());
        let workers = options.worker_cores.len().max(1);
        // A few KiB: a page of 1 GiB would be wasted on them.
        let pages = if options.pages == Pages::Only(PageSize::Huge1G) { Pages::Any } else { options.pages };
        let bytes = workers * 2 * (options.ring.entries() * 16).next_multiple_of(4096);
        for i in 0..PORTS {
            let rings = window.arena(bytes, node, pages)?;
            let tester = Tester::new(&patterns[i], &patterns[1 - i], &running, &counts[i]);
            let address = [0x02, 0, 0, 0xff, 0, i as u8];
            let (device, engine) =
                Device::new(Parameters { address, pause: true, ..Parameters::default() }, rings, tester)?;
            devices.push(device);
            engines.push(engine);
        }
        let pin = move || {
            if let Some(Err(e)) = core.map(topology::pin) {
                tracing::warn!("the devices run on any core: {e}");
            }
        };
        let thread = spawn("devices", engines, pin).map_err(DemoError::Thread)?;
        Ok(Self { devices, thread, running, counts })
    }

    /// Stops the generators, waits until what is under way has arrived, then stops the runtime.
    fn quiesce(&self, runtime: &mut Runtime) -> Status {
        self.running.store(false, Ordering::Relaxed);
        let since = Instant::now();
        let sum = |f: fn(&Counts) -> u64| self.counts.iter().map(|c| f(c)).sum::<u64>();
        let mut last = (0, Instant::now());
        while since.elapsed() < SETTLE {
            let arrived = sum(Counts::arrived);
            if arrived == sum(|c| c.generated.load(Ordering::Relaxed)) {
                break;
            }
            if arrived != last.0 {
                last = (arrived, Instant::now());
            } else if last.1.elapsed() > SETTLE / 4 {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        runtime.stop()
    }
}

impl Counts {
    /// Frames that came out at the end, in whatever state.
    pub fn arrived(&self) -> u64 {
        [&self.verified, &self.reordered, &self.duplicated, &self.changed]
            .map(|c| c.load(Ordering::Relaxed))
            .iter()
            .sum()
    }
}
