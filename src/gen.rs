//! `ringwright gen`: traffic over any port, and a check of what comes back.
//!
//! A generator port's receive queue makes frames, a worker forwards them to the port under test, and what that or another port
//! receives goes back to the generator port, which checks it. Before the run the generator's own ceiling is measured, on the
//! same core, without a device: a result near it says nothing about the port.

mod ceiling;
mod error;
mod show;
mod spec;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use generator::{Addresses, GenPort, Handle, IpNet, MOST_FLOWS, Pace, Profile, Sizes, Throughput};
use graph::{GraphBuilder, GraphError, OnFull, To};
use mem::{Layout, Memory};
use port::{Driver, Input, OpenEnv, OpenPort, PortConfig};
use rt::{BuildGraph, Runtime, WorkerPlan};
use stages::{Forward, PortMap};
use wire::MacAddr;

use ceiling::Ceiling;
pub use error::GenError;
pub use show::Report;
use show::{Basis, Progress};
use spec::{Back, PortSpec};

/// How long a run is if neither its time nor its frames are given.
const USUAL: Duration = Duration::from_secs(10);
/// How often links are looked at and signals are heard.
const WATCH: Duration = Duration::from_millis(50);
/// How long frames may take back once no more are sent, and how long nothing may come before they are given up.
const SETTLE: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_millis(500);
/// How long links may take to come up.
const LINK: Duration = Duration::from_secs(2);
/// Room of a buffer: the usual, and as much as the longest frames may ask for.
const ROOM: usize = 2048;
const MOST_ROOM: usize = 16_128;

/// What `ringwright gen` is told.
#[derive(clap::Args)]
pub struct GenArgs {
    /// The port that frames leave by: DRIVER[:KEY=VALUE,KEY=VALUE], as packet:interface=eth1, null:peer=rx or pcap:write=FILE.
    /// Its name is tx.
    #[arg(long, value_name = "PORT")]
    tx: PortSpec,
    /// The port that they come back by, or none; without it the same port. Its name is rx.
    #[arg(long, value_name = "PORT")]
    rx: Option<Back>,
    /// Flows that take turns, 1 to 65536.
    #[arg(long, value_name = "N", default_value = "64", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_FLOWS)))]
    flows: u32,
    /// Frame size in bytes with the check sequence, 64 or more: a number, sizes with weights (64:7,594:4), or imix.
    #[arg(long, value_name = "SIZE", default_value = "64", allow_negative_numbers = true)]
    size: Sizes,
    /// How fast: packets a second (1M, 200K), bits a second on the wire (10Gbps), or max.
    #[arg(long, value_name = "RATE", default_value = "max", allow_negative_numbers = true)]
    rate: Pace,
    /// How many frames; without it as many as the time allows.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    count: Option<u64>,
    /// How long to run: 10s, 5m, 500ms; without it until all frames are sent, or 10s.
    #[arg(long = "for", value_name = "TIME", value_parser = crate::duration)]
    duration: Option<Duration>,
    /// Put one JSON object (status and figures) on stdout instead of the summary.
    #[arg(long)]
    json: bool,
    /// Core of the worker; by default the last core that may be used.
    #[arg(long, value_name = "CORE", allow_negative_numbers = true)]
    worker_core: Option<usize>,
    /// Packet buffers, 64 or more.
    #[arg(long, value_name = "N", default_value = "8192", allow_negative_numbers = true)]
    buffers: usize,
    /// Pages of packet memory: 1G, 2M, 4K, or any: the largest that is there and that it fills at least half.
    #[arg(long, value_name = "SIZE", default_value = "any")]
    pages: hw::Pages,
    /// Memory node of packets; by default that of the worker's core.
    #[arg(long, value_name = "NODE", allow_negative_numbers = true)]
    node: Option<u16>,
    /// Prefix or address that frames come from, each flow from another station; by default 198.18.0.0/16, or
    /// 2001:2:0:1::/64 with an IPv6 --dst.
    #[arg(long, value_name = "PREFIX", value_parser = generator::prefix)]
    src: Option<IpNet>,
    /// Prefix or address that frames go to; by default 198.19.0.0/16, or 2001:2:0:2::/64 with an IPv6 --src.
    #[arg(long, value_name = "PREFIX", value_parser = generator::prefix)]
    dst: Option<IpNet>,
    /// Ethernet address that frames come from; by default the port's own, or 02:00:00:00:00:01.
    #[arg(long, value_name = "MAC")]
    src_mac: Option<MacAddr>,
    /// Ethernet address that frames go to; by default that of the port that they come back by, or 02:00:00:00:00:02.
    #[arg(long, value_name = "MAC")]
    dst_mac: Option<MacAddr>,
}

impl GenArgs {
    /// Whether the result is to be JSON.
    pub const fn json(&self) -> bool {
        self.json
    }

    fn profile(&self, tx: &dyn OpenPort, rx: Option<&dyn OpenPort>) -> Result<Profile, GenError> {
        let usual = Profile::default();
        let own = |port: Option<&dyn OpenPort>| port.and_then(|p| p.info().mac).map(MacAddr::new);
        Ok(Profile {
            flows: self.flows,
            sizes: self.size.clone(),
            pace: self.rate,
            count: self.count,
            addresses: Addresses::new(self.src, self.dst)
                .map_err(|e| GenError::Usage(format!("--src and --dst: {e}")))?,
            src_mac: self.src_mac.or_else(|| own(Some(tx))).unwrap_or(usual.src_mac),
            dst_mac: self.dst_mac.or_else(|| own(rx)).unwrap_or(usual.dst_mac),
            ..usual
        })
    }

    fn core(&self) -> Result<Option<usize>, GenError> {
        let all = topology::cores();
        match self.worker_core {
            Some(core) if !all.is_empty() && !all.contains(&core) => {
                let list: Vec<_> = all.iter().map(ToString::to_string).collect();
                let list = list.join(", ");
                Err(GenError::Usage(format!(
                    "--worker-core: this process may not use core {core}; it may use core {list}"
                )))
            }
            core => Ok(core.or_else(|| all.last().copied())),
        }
    }

    fn memory(&self, core: Option<usize>) -> Result<Arc<Memory>, GenError> {
        let room = self.size.longest().clamp(ROOM, MOST_ROOM);
        let memory = Memory::new(hw::Window::reserve(hw::Window::LEN)?, Layout::for_frame_room(room)?);
        let node = self.node.map(hw::Node::new).or_else(|| core.and_then(topology::node_of_core));
        memory.add_pool(self.buffers, node, self.pages)?;
        Ok(memory)
    }
}

/// How a run ended.
pub struct Outcome {
    /// All that was counted.
    pub report: Report,
    /// What went wrong for good while it ran.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Whether the run was done, and every packet is accounted for. What was lost on the way is a result, no failure.
    pub fn is_done(&self) -> bool {
        self.faults.is_empty() && self.report.status.conservation.unexplained == Some(0)
    }
}

/// Makes and checks traffic until the time is up, all frames are sent, or `stop` is set. `drivers` open the ports. `say` is told the
/// ceiling first, and how it goes once a second.
///
/// # Errors
/// What kept it from starting.
pub fn run(
    args: &GenArgs,
    drivers: &[Box<dyn Driver>],
    stop: &AtomicBool,
    mut say: impl FnMut(&dyn Display),
) -> Result<Outcome, GenError> {
    let core = args.core()?;
    let memory = args.memory(core)?;
    let ports = Ports::open(args, drivers, &memory)?;
    let profile = args.profile(ports.tx.as_ref(), ports.rx.as_deref())?;
    let env = OpenEnv { memory: Arc::clone(&memory), name: generator::NAME.into() };
    let made = GenPort::new(profile.clone(), &env).map_err(GenError::port("--size"))?;
    let ceiling = ceiling::measure(&profile, &memory, core, ports.back.is_some())?;
    say(&ceiling.line());

    let (handle, back) = (made.handle(), ports.back);
    handle.hold();
    let basis = ports.basis(profile, ceiling);
    let mut runtime = Runtime::new(memory);
    let cfg = port_config(&made);
    runtime.add_port(generator::NAME, Box::new(made), cfg, OnFull::Drop);
    let others = ports.add_to(&mut runtime, longest(&args.size));
    runtime.start(vec![plan(core, 1 + others, back)])?;
    let progress = Progress::new(back.is_some());
    Run { args, runtime, handle, back }.until_over(stop, progress, basis, &mut say)
}

/// The ports under test. The generator's own has number 0.
struct Ports {
    tx: Box<dyn OpenPort>,
    rx: Option<Box<dyn OpenPort>>,
    /// The number of the port that frames come back by, if they can.
    back: Option<u16>,
}

impl Ports {
    fn open(args: &GenArgs, drivers: &[Box<dyn Driver>], memory: &Arc<Memory>) -> Result<Self, GenError> {
        let mut tx = open(&args.tx, "--tx", show::TX, drivers, memory)?;
        let mut rx = match &args.rx {
            Some(Back::Port(spec)) => Some(open(spec, "--rx", "rx", drivers, memory)?),
            _ => None,
        };
        let back = match (&args.rx, &mut rx) {
            (Some(Back::None), _) => None,
            (_, Some(rx)) => hears(rx.as_mut()).then_some(2),
            (_, None) => hears(tx.as_mut()).then_some(1),
        };
        Ok(Self { tx, rx, back })
    }

    fn basis(&self, profile: Profile, ceiling: Ceiling) -> Basis {
        let by = |port: &dyn OpenPort| port.info().driver.to_owned();
        let rx = self.rx.as_deref().unwrap_or(self.tx.as_ref());
        let rx = self.back.map(|_| by(rx));
        Basis { tx: by(self.tx.as_ref()), rx, asked: asked(&profile), profile, ceiling }
    }

    /// Returns how many there are.
    fn add_to(self, runtime: &mut Runtime, longest: u16) -> u16 {
        let mut n = 0;
        for (name, port) in [(show::TX, Some(self.tx)), ("rx", self.rx)] {
            let Some(port) = port else { continue };
            let max_frame = longest.max(port.info().max_frame.min(1518));
            let cfg = PortConfig { max_frame, ..PortConfig::new(0) };
            // What the port has no room for holds the generator up: it is sent late, not lost.
            runtime.add_port(name, port, cfg, OnFull::Wait);
            n += 1;
        }
        n
    }
}

/// Bytes of the longest frame, without check sequence.
fn longest(sizes: &Sizes) -> u16 {
    u16::try_from(sizes.longest().saturating_sub(4)).unwrap_or(u16::MAX)
}

/// For the generator's own port, which has no rings.
fn port_config(port: &GenPort) -> PortConfig {
    let smallest = ring::RingSize::try_from(8).expect("a power of two");
    let max_frame = port.info().max_frame;
    PortConfig { rx_ring: smallest, tx_ring: smallest, max_frame, ..PortConfig::new(0) }
}

/// Whether anything can ever come in by a port.
fn hears(port: &mut dyn OpenPort) -> bool {
    matches!(port.input(), Input::Endless | Input::More)
}

fn asked(profile: &Profile) -> Option<Throughput> {
    let Pace::At(rate) = profile.pace else { return None };
    let bits = profile.sizes.mean_wire_bits();
    let packets_per_second = rate.packets_per_second(bits / 8.0);
    Some(Throughput { packets_per_second, wire_bits_per_second: packets_per_second * bits })
}

fn open(
    spec: &PortSpec,
    option: &'static str,
    name: &str,
    drivers: &[Box<dyn Driver>],
    memory: &Arc<Memory>,
) -> Result<Box<dyn OpenPort>, GenError> {
    let names = || drivers.iter().map(|d| d.name());
    let driver = drivers.iter().find(|d| d.name() == spec.driver).ok_or_else(|| {
        let there = names().collect::<Vec<_>>().join(", ");
        let hint = match config::suggest(&spec.driver, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {there}"),
        };
        GenError::Usage(format!("{option}: there is no driver {:?}; {hint}", spec.driver))
    })?;
    let mut keys = spec.keys.clone();
    if spec.driver == "null" && !keys.contains_key("peer") {
        // Of itself it would make frames, and they would be taken for what came back.
        keys.entry("count").or_insert(toml::Value::Integer(0));
    }
    let env = OpenEnv { memory: Arc::clone(memory), name: name.into() };
    driver.open(&keys, &env).map_err(GenError::port(option))
}

/// A worker that sends what port 0 makes by port 1, and what comes back by port `back` to port 0. All `ports` are listened to: what
/// comes in by one from which nothing is expected is dropped and counted, not left in its ring.
fn plan(core: Option<usize>, ports: u16, back: Option<u16>) -> WorkerPlan {
    let mut routes = vec![(0, 1)];
    routes.extend(back.map(|b| (b, 0)));
    WorkerPlan {
        core,
        rx: (0..ports).map(|port| (port, 0)).collect(),
        tx: routes.iter().map(|(_, to)| (*to, 0)).collect(),
        stages: 1,
        graph: Some(forwarder(routes)),
        ..WorkerPlan::default()
    }
}

/// A graph that sends what comes in by one port out by another.
fn forwarder(routes: Vec<(u16, u16)>) -> BuildGraph {
    Box::new(move |local| {
        let failed = |e: &dyn Display| GraphError::Stage { stage: "forward".into(), problem: e.to_string() };
        let map = PortMap::new(routes).map_err(|e| failed(&e))?;
        let mut b = GraphBuilder::new(local);
        let forward = b.add("forward", Box::new(Forward::new(map)));
        b.build(To::Node(forward))
    })
}

/// A run under way.
struct Run<'a> {
    args: &'a GenArgs,
    runtime: Runtime,
    handle: Handle,
    back: Option<u16>,
}

impl Run<'_> {
    fn until_over(
        mut self,
        stop: &AtomicBool,
        mut progress: Progress,
        basis: Basis,
        say: &mut impl FnMut(&dyn Display),
    ) -> Result<Outcome, GenError> {
        self.await_links(stop);
        let duration = self.args.duration.or_else(|| self.args.count.is_none().then_some(USUAL));
        let start = Instant::now();
        let mut next = Duration::from_secs(1);
        self.handle.go();
        while !stop.load(Ordering::Relaxed) && self.runtime.faults().is_empty() {
            let (ran, counts) = (start.elapsed(), self.handle.counts());
            if duration.is_some_and(|d| ran >= d) || self.args.count.is_some_and(|c| counts.made >= c) {
                break;
            }
            self.runtime.watch();
            if ran >= next {
                // Seconds in which this process stood still are not made up for.
                next = Duration::from_secs(ran.as_secs() + 1);
                progress.update(ran.as_secs_f64(), counts);
                say(&progress);
            }
            let left = duration.map_or(WATCH, |d| d.saturating_sub(start.elapsed()));
            thread::sleep(left.min(WATCH));
        }
        self.handle.hold();
        // Between two breaths, so that none that began before makes one more frame while those under way are waited for.
        if let Err(e) = self.runtime.with_graph(None, |_| ()) {
            tracing::warn!("{e}");
        }
        self.settle();
        let status = self.runtime.stop();
        let report = Report::new(basis, &self.handle.counts(), status);
        Ok(Outcome { report, faults: self.runtime.faults() })
    }

    /// Waits until all links are up, or for a while.
    fn await_links(&mut self, stop: &AtomicBool) {
        let since = Instant::now();
        loop {
            let status = self.runtime.status();
            let down: Vec<_> = status.ports.iter().filter(|p| !p.link.up).map(|p| p.name.as_str()).collect();
            if down.is_empty() || stop.load(Ordering::Relaxed) {
                return;
            }
            if since.elapsed() > LINK {
                return tracing::warn!("the link of {} is down", down.join(" and "));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until what is under way has come back.
    fn settle(&mut self) {
        if self.back.is_none() {
            return;
        }
        let since = Instant::now();
        let mut last = (self.handle.counts().arrived, since);
        while since.elapsed() < SETTLE && last.1.elapsed() < SILENCE {
            let counts = self.handle.counts();
            if counts.missing() == 0 {
                return;
            }
            if counts.arrived != last.0 {
                last = (counts.arrived, Instant::now());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}
