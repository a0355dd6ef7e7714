//! Every packet is accounted for, and one that is not shows as exactly one: a stage that forgets it, a driver that loses
//! it, a device that swallows it (rule 7 of the design). In both modes: on one worker, and handed from worker to worker.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringwright::drivers::ixgbe::{Ixgbe, PciId};
use ringwright::drivers::ixgbe_model::{Cable, Device, Direction, ModelThread, Parameters, Wire, spawn};
use ringwright::drivers::null::Null;
use ringwright::graph::{Exit, ExitInfo, Exits, Graph, GraphBuilder, GraphError, Leads, OnFull, Stage, To};
use ringwright::hw::{Pages, Window};
use ringwright::mem::{Batch, Layout, Local, Memory};
use ringwright::meter::QueueMeter;
use ringwright::port::{
    DeviceCounts, Driver, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues, RxQueue, RxSetup,
    WorkerEnv,
};
use ringwright::rt::{BuildGraph, Idle, Role, Runtime, Status, WorkerPlan};
use ringwright::stages::{Forward, PortMap};

const FRAMES: u64 = 1000;
const PATIENCE: Duration = Duration::from_secs(20);

/// How one frame of a thousand goes astray.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    StageForgets,
    StageLetsGo,
    DriverLosesBuffer,
    DriverFreesUncounted,
    DeviceSwallows(Direction),
}

/// Sends every packet to the other port; at the 500th it does what `fault` says.
struct Careless {
    fault: Fault,
    /// Packets that this stage has seen, on all workers.
    seen: Arc<AtomicU64>,
}
#[derive(Clone, Copy)]
struct Out;
impl From<Out> for u8 {
    fn from(_: Out) -> Self {
        0
    }
}
impl Exit for Out {
    const EXITS: &'static [ExitInfo] = &[ExitInfo { name: "out", leads: Leads::Marked }];
}
impl Stage for Careless {
    type Exit = Out;
    const KIND: &'static str = "careless";
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, Out>) {
        let n = batch.len() as u64;
        let before = self.seen.fetch_add(n, Ordering::Relaxed);
        if before < 500 && before + n >= 500 {
            match self.fault {
                Fault::StageForgets => std::mem::forget(batch.pop()),
                Fault::StageLetsGo => drop(batch.pop()),
                _ => {}
            }
        }
        for mut p in batch.iter_mut() {
            let port = p.port();
            p.set_port(1 - port);
        }
        exits.set_all(Out);
    }
}

/// A port whose first receive queue loses its 500th packet, between the device and its own count.
struct Lossy {
    port: Ixgbe<ringwright::drivers::ixgbe_model::ModelBus>,
    fault: Fault,
}
struct LossySetup(Box<dyn RxSetup>, Fault);
struct LossyRx {
    queue: Box<dyn RxQueue>,
    fault: Fault,
    seen: usize,
    lost: u64,
}

impl RxSetup for LossySetup {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        let queue = self.0.attach(env)?;
        Ok(Box::new(LossyRx { queue, fault: self.1, seen: 0, lost: 0 }))
    }
    fn reclaim(self: Box<Self>, local: &Local) {
        self.0.reclaim(local);
    }
}
impl RxQueue for LossyRx {
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let n = self.queue.rx_burst(out);
        let before = self.seen;
        self.seen += n;
        if before < 500 && self.seen >= 500 {
            let packet = out.pop().expect("at least one was received");
            self.lost = 1;
            if self.fault == Fault::DriverLosesBuffer {
                std::mem::forget(packet);
            } else {
                packet.consume();
            }
            return n - 1;
        }
        n
    }
    fn posted(&self) -> usize {
        self.queue.posted()
    }
    fn counts(&self, sum: &mut QueueMeter) {
        self.queue.counts(sum);
        sum.packets -= self.lost;
    }
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        self.queue.detach()
    }
}
impl OpenPort for Lossy {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }
    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        let mut queues = self.port.start(cfg)?;
        if matches!(self.fault, Fault::DriverLosesBuffer | Fault::DriverFreesUncounted) {
            let first = queues.rx.remove(0);
            queues.rx.insert(0, Box::new(LossySetup(first, self.fault)));
        }
        Ok(queues)
    }
    fn link(&mut self) -> Link {
        self.port.link()
    }
    fn device_counts(&mut self) -> DeviceCounts {
        self.port.device_counts()
    }
    fn set_promiscuous(&mut self, on: bool) -> Result<(), PortError> {
        self.port.set_promiscuous(on)
    }
    fn rx_off(&mut self) -> Result<(), PortError> {
        self.port.rx_off()
    }
    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.port.stop(queues, local)
    }
}

/// Which workers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// One that does everything.
    Complete,
    /// One that receives, two that process, one that sends.
    Pipeline,
    /// One that receives, two that process and send.
    Short,
}
const MODES: [Mode; 3] = [Mode::Complete, Mode::Pipeline, Mode::Short];

impl Mode {
    fn plans(self, graph: impl Fn() -> BuildGraph) -> Vec<WorkerPlan> {
        let worker = |role, rx: &[(u16, u16)], tx: &[(u16, u16)]| {
            let stages = matches!(role, Role::RunToCompletion | Role::Process);
            WorkerPlan {
                role,
                // The machine has fewer cores than there are threads.
                idle: Idle::Sleep { bound: Duration::from_micros(200) },
                rx: rx.to_vec(),
                tx: tx.to_vec(),
                stages: stages.into(),
                graph: stages.then(&graph),
                core: None,
            }
        };
        let (all, other) = ([(0, 0), (1, 0)], [(0, 1), (1, 1)]);
        match self {
            Self::Complete => vec![worker(Role::RunToCompletion, &all, &all)],
            Self::Pipeline => vec![
                worker(Role::Rx, &all, &[]),
                worker(Role::Process, &[], &[]),
                worker(Role::Process, &[], &[]),
                worker(Role::Tx, &[], &all),
            ],
            Self::Short => vec![
                worker(Role::Rx, &[all, other].concat(), &[]),
                worker(Role::Process, &[], &all),
                worker(Role::Process, &[], &other),
            ],
        }
    }
    const fn queues(self) -> u16 {
        if matches!(self, Self::Short) { 2 } else { 1 }
    }
}

struct Bench {
    runtime: Runtime,
    devices: Vec<Device>,
    far_ends: Vec<Cable>,
    thread: ModelThread<Cable>,
}

/// Two software NICs on one thread, their drivers, and workers that join them.
fn bench(
    mode: Mode,
    fault: Fault,
    graph: impl Fn(&Local) -> Result<Graph, GraphError> + Clone + Send + 'static,
) -> Bench {
    let window = Window::reserve(Window::LEN).unwrap();
    let memory = Memory::new(Arc::clone(&window), Layout::for_frame_room(2048).unwrap());
    memory.add_pool(8192, None, Pages::Any).unwrap();
    let mut runtime = Runtime::new(memory);
    let (mut devices, mut far_ends, mut engines) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        let rings = window.arena(1 << 20, None, Pages::Any).unwrap();
        let (near, far) = Cable::pair(4096, 2048);
        let params = Parameters { pause: true, ..Parameters::default() };
        let (device, engine) = Device::new(params, rings, near).unwrap();
        devices.push(device);
        far_ends.push(far);
        engines.push(engine);
    }
    let thread = spawn("devices", engines, || ()).unwrap();
    for (i, device) in devices.iter().enumerate() {
        let env = OpenEnv { memory: Arc::clone(runtime.memory()), name: format!("p{i}").into() };
        let port = Ixgbe::open(device.bus(), PciId { vendor: 0x8086, device: 0x10fb }, &env).unwrap();
        let fault = if i == 0 { fault } else { Fault::None };
        let ring = 256.try_into().unwrap();
        let cfg = PortConfig {
            rx_ring: ring,
            tx_ring: ring,
            queues: mode.queues(),
            rx_wait: true,
            ..PortConfig::new(0)
        };
        runtime.add_port(&env.name, Box::new(Lossy { port, fault }), cfg, OnFull::Wait);
    }
    runtime.start(mode.plans(|| Box::new(graph.clone()))).unwrap();
    Bench { runtime, devices, far_ends, thread }
}

fn frame(n: u64) -> [u8; 60] {
    let mut f = [0; 60];
    f[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    // Several flows, for several workers.
    f[6..12].copy_from_slice(&[2, 0, 0, 0, 1, (n % 16) as u8]);
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f[14..22].copy_from_slice(&n.to_be_bytes());
    f
}

impl Bench {
    /// Sends a thousand frames into port 0 and waits until `expected` have come out of port 1.
    fn pass(&mut self, expected: u64) {
        let (mut room, since) = (vec![0; 16_384], Instant::now());
        let (mut sent, mut came) = (0, 0);
        while came < expected {
            if sent < FRAMES && sent - came < 1000 {
                self.far_ends[0].tx_frame(&frame(sent));
                sent += 1;
            }
            while self.far_ends[1].rx_next(&mut room).is_some() {
                came += 1;
            }
            assert!(since.elapsed() < PATIENCE, "{came} of {expected} frames came out");
        }
        // A frame too many would come now.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(self.far_ends[1].rx_next(&mut room), None);
        assert_eq!(self.far_ends[0].lost(), 0);
    }

    fn stop(mut self) -> Status {
        let status = self.runtime.stop();
        self.thread.stop();
        status
    }
}

fn forward(local: &Local) -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new(local);
    let map = PortMap::pairs(&[(0, 1)]).expect("two ports");
    let stage = g.add("fwd", Box::new(Forward::new(map)));
    g.build(To::Node(stage))
}

fn run(mode: Mode, fault: Fault) -> Status {
    let seen = Arc::new(AtomicU64::new(0));
    let mut b = bench(mode, fault, move |local| {
        let mut g = GraphBuilder::new(local);
        let stage = g.add("careless", Box::new(Careless { fault, seen: Arc::clone(&seen) }));
        g.build(To::Node(stage))
    });
    if let Fault::DeviceSwallows(direction) = fault {
        let device = if direction == Direction::Rx { 0 } else { 1 };
        b.devices[device].swallow(direction, 1);
    }
    b.pass(if fault == Fault::None { FRAMES } else { FRAMES - 1 });
    b.stop()
}

/// What is unexplained after `fault`, in each mode.
fn unexplained(fault: Fault) -> [Option<u64>; MODES.len()] {
    MODES.map(|mode| run(mode, fault).conservation.unexplained)
}
const ONE: [Option<u64>; MODES.len()] = [Some(1); MODES.len()];

#[test]
fn without_a_fault_every_packet_is_accounted_for() {
    for mode in MODES {
        let s = run(mode, Fault::None);
        let c = s.conservation;
        assert_eq!(
            (c.received, c.sent, c.dropped, c.held, c.unexplained),
            (FRAMES, FRAMES, 0, 0, Some(0)),
            "{mode:?}: {c:?}"
        );
        let devices = (s.ports[0].device.rx_delivered, s.ports[1].device.tx_sent);
        assert_eq!(devices, (Some(FRAMES), Some(FRAMES)), "{mode:?}");
        assert_eq!(s.pools[0].available, s.pools[0].capacity, "{mode:?}: every buffer came home");
        let passed: u64 = s.handoffs.iter().map(|h| h.packets).sum();
        let passes = match mode {
            Mode::Complete => 0,
            Mode::Pipeline => 2,
            Mode::Short => 1,
        };
        assert_eq!(
            passed,
            passes * FRAMES,
            "{mode:?}: to pass from worker to worker is neither to be received nor sent"
        );
        let busy = s.stages.iter().filter(|s| s.name == "careless" && s.packets > 0).count();
        assert_eq!(busy, if mode == Mode::Complete { 1 } else { 2 }, "{mode:?}: workers that had packets");
    }
}

#[test]
fn a_stage_that_forgets_a_packet_shows_one() {
    assert_eq!(unexplained(Fault::StageForgets), ONE);
}

#[test]
fn a_stage_that_lets_a_packet_go_shows_one() {
    assert_eq!(unexplained(Fault::StageLetsGo), ONE);
}

#[test]
fn a_driver_that_loses_a_packet_shows_one() {
    assert_eq!(unexplained(Fault::DriverLosesBuffer), ONE);
}

#[test]
fn a_driver_that_frees_a_packet_uncounted_shows_one() {
    assert_eq!(unexplained(Fault::DriverFreesUncounted), ONE);
}

#[test]
fn a_device_that_swallows_a_packet_shows_one() {
    assert_eq!(unexplained(Fault::DeviceSwallows(Direction::Rx)), ONE, "on its way in");
    assert_eq!(unexplained(Fault::DeviceSwallows(Direction::Tx)), ONE, "on its way out");
}

/// A device that can no longer send keeps what it was given: those packets were not sent, and they have a reason.
#[test]
fn packets_that_a_device_could_not_send_are_dropped_as_stopping() {
    for mode in MODES {
        let mut b = bench(mode, Fault::None, forward);
        b.devices[1].set_link(false);
        for n in 0..100 {
            b.far_ends[0].tx_frame(&frame(n));
        }
        let since = Instant::now();
        while b.runtime.status().conservation.sent < 100 {
            assert!(since.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
        let s = b.stop();
        let c = s.conservation;
        assert_eq!((c.received, c.sent, c.dropped, c.unexplained), (100, 0, 100, Some(0)), "{mode:?}: {c:?}");
        assert_eq!(s.ports[1].drops.get("stopping"), Some(&100), "{mode:?}");
    }
}

#[test]
fn a_runtime_starts_once_and_stops_twice_without_harm() {
    let mut b = bench(Mode::Complete, Fault::None, |local| GraphBuilder::new(local).build(To::Tx(1)));
    let e = b.runtime.start(Vec::new()).unwrap_err().to_string();
    assert!(e.starts_with("the runtime has been started already"), "{e}");
    b.pass(FRAMES);
    let first = b.runtime.stop().conservation;
    assert_eq!((first.unexplained, first.sent), (Some(0), FRAMES));
    assert_eq!(b.stop().conservation, first, "a second stop says the same");
}

/// Traffic goes on while the runtime stops: what the device still delivers is drained, and all of it is explained.
#[test]
fn a_stop_under_load_explains_every_packet() {
    for mode in [MODES, MODES].concat() {
        let mut b = bench(mode, Fault::None, forward);
        let done = std::sync::atomic::AtomicBool::new(false);
        let mut ends = std::mem::take(&mut b.far_ends);
        let status = std::thread::scope(|s| {
            s.spawn(|| {
                let (mut n, mut room) = (0, vec![0; 16_384]);
                while !done.load(Ordering::Relaxed) {
                    for end in &mut ends {
                        end.tx_frame(&frame(n));
                        while end.rx_next(&mut room).is_some() {}
                    }
                    n += 1;
                }
            });
            std::thread::sleep(Duration::from_millis(50));
            let status = b.runtime.stop();
            done.store(true, Ordering::Relaxed);
            status
        });
        b.thread.stop();
        let c = status.conservation;
        assert!(c.received > 0);
        assert_eq!((c.unexplained, c.received), (Some(0), c.sent + c.dropped), "{mode:?}: {status:#?}");
    }
}

/// Ports without a device, through a pipeline: a source's frames to the end of a pair and back.
#[test]
fn null_ports_in_a_pipeline_account_for_everything() {
    let window = Window::reserve(Window::LEN).unwrap();
    let memory = Memory::new(window, Layout::for_frame_room(2048).unwrap());
    memory.add_pool(16_384, None, Pages::Any).unwrap();
    let mut runtime = Runtime::new(memory);
    let driver = Null::new();
    const COUNT: u64 = 30_000;
    for (name, keys) in [
        ("p0", format!("frames = \"udp\"\nflows = 32\ncount = {COUNT}")),
        ("p1", "peer = \"p2\"".to_owned()),
        ("p2", "peer = \"p1\"".to_owned()),
        ("p3", "count = 0".to_owned()),
    ] {
        let env = OpenEnv { memory: Arc::clone(runtime.memory()), name: name.into() };
        let open = driver.open(&keys.parse().unwrap(), &env).unwrap();
        runtime.add_port(name, open, PortConfig::new(0), OnFull::Wait);
    }
    let queues: Vec<_> = (0..4).map(|port| (port, 0)).collect();
    let graph = || -> BuildGraph {
        Box::new(|local| {
            let mut g = GraphBuilder::new(local);
            // Out by the pair, in by its other end, and out.
            let map = PortMap::new([(0, 1), (2, 3)]).expect("each once");
            let stage = g.add("fwd", Box::new(Forward::new(map)));
            g.build(To::Node(stage))
        })
    };
    let idle = Idle::Sleep { bound: Duration::from_micros(200) };
    let stage =
        || WorkerPlan { role: Role::Process, idle, stages: 1, graph: Some(graph()), ..WorkerPlan::default() };
    let rx = WorkerPlan { role: Role::Rx, idle, rx: queues.clone(), ..WorkerPlan::default() };
    let tx = WorkerPlan { role: Role::Tx, idle, tx: queues, ..WorkerPlan::default() };
    runtime.start(vec![rx, stage(), stage(), tx]).unwrap();
    let since = Instant::now();
    while runtime.status().ports[3].tx.packets < COUNT {
        assert!(since.elapsed() < PATIENCE, "{:#?}", runtime.status());
        std::thread::sleep(Duration::from_millis(5));
    }
    let s = runtime.stop();
    let c = s.conservation;
    assert_eq!((c.received, c.sent, c.dropped, c.unexplained), (2 * COUNT, 2 * COUNT, 0, Some(0)), "{c:?}");
    assert_eq!(s.pools[0].available, s.pools[0].capacity, "every buffer came home");
}
