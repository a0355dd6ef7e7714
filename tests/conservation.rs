//! Every packet is accounted for, and one that is not shows as exactly one: a stage that forgets it, a driver that loses
//! it, a device that swallows it (rule 7 of the design).
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringwright::drivers::ixgbe::{Ixgbe, PciId};
use ringwright::drivers::ixgbe_model::{Cable, Device, Direction, ModelThread, Parameters, Wire, spawn};
use ringwright::graph::{Exit, ExitInfo, Exits, Graph, GraphBuilder, GraphError, Leads, OnFull, Stage, To};
use ringwright::hw::{Pages, Window};
use ringwright::mem::{Batch, Layout, Local, Memory};
use ringwright::meter::QueueMeter;
use ringwright::port::{
    DeviceCounts, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues, RxQueue, RxSetup,
    WorkerEnv,
};
use ringwright::rt::{Runtime, Status, WorkerPlan};
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
    seen: u64,
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
        let before = self.seen;
        self.seen += batch.len() as u64;
        if before < 500 && self.seen >= 500 {
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

struct Bench {
    runtime: Runtime,
    devices: Vec<Device>,
    far_ends: Vec<Cable>,
    thread: ModelThread<Cable>,
}

/// Two software NICs on one thread, their drivers, and one worker that joins them.
fn bench(fault: Fault, graph: impl FnOnce(&Local) -> Result<Graph, GraphError> + Send + 'static) -> Bench {
    let window = Window::reserve(Window::LEN).unwrap();
    let memory = Memory::new(Arc::clone(&window), Layout::for_frame_room(2048).unwrap());
    memory.add_pool(2048, None, Pages::Any).unwrap();
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
        let cfg = PortConfig { rx_ring: ring, tx_ring: ring, ..PortConfig::new(0) };
        runtime.add_port(&env.name, Box::new(Lossy { port, fault }), cfg, OnFull::Wait);
    }
    let queues = vec![(0, 0), (1, 0)];
    runtime
        .start(vec![WorkerPlan {
            core: None,
            rx: queues.clone(),
            tx: queues,
            stages: 1,
            graph: Some(Box::new(graph)),
            ..WorkerPlan::default()
        }])
        .unwrap();
    Bench { runtime, devices, far_ends, thread }
}

fn frame(n: u64) -> [u8; 60] {
    let mut f = [0; 60];
    f[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    f[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
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

fn run(fault: Fault) -> Status {
    let mut b = bench(fault, move |local| {
        let mut g = GraphBuilder::new(local);
        let stage = g.add("careless", Box::new(Careless { fault, seen: 0 }));
        g.build(To::Node(stage))
    });
    if let Fault::DeviceSwallows(direction) = fault {
        let device = if direction == Direction::Rx { 0 } else { 1 };
        b.devices[device].swallow(direction, 1);
    }
    b.pass(if fault == Fault::None { FRAMES } else { FRAMES - 1 });
    b.stop()
}

#[test]
fn without_a_fault_every_packet_is_accounted_for() {
    let s = run(Fault::None);
    let c = s.conservation;
    assert_eq!(
        (c.received, c.sent, c.dropped, c.held, c.unexplained),
        (FRAMES, FRAMES, 0, 0, Some(0)),
        "{c:?}"
    );
    assert_eq!((s.ports[0].device.rx_delivered, s.ports[1].device.tx_sent), (Some(FRAMES), Some(FRAMES)));
    assert_eq!(s.pools[0].available, s.pools[0].capacity, "every buffer came home");
}

#[test]
fn a_stage_that_forgets_a_packet_shows_one() {
    assert_eq!(run(Fault::StageForgets).conservation.unexplained, Some(1));
}

#[test]
fn a_stage_that_lets_a_packet_go_shows_one() {
    assert_eq!(run(Fault::StageLetsGo).conservation.unexplained, Some(1));
}

#[test]
fn a_driver_that_loses_a_packet_shows_one() {
    assert_eq!(run(Fault::DriverLosesBuffer).conservation.unexplained, Some(1));
}

#[test]
fn a_driver_that_frees_a_packet_uncounted_shows_one() {
    assert_eq!(run(Fault::DriverFreesUncounted).conservation.unexplained, Some(1));
}

#[test]
fn a_device_that_swallows_a_packet_shows_one() {
    assert_eq!(run(Fault::DeviceSwallows(Direction::Rx)).conservation.unexplained, Some(1), "on its way in");
    assert_eq!(run(Fault::DeviceSwallows(Direction::Tx)).conservation.unexplained, Some(1), "on its way out");
}

/// A device that can no longer send keeps what it was given: those packets were not sent, and they have a reason.
#[test]
fn packets_that_a_device_could_not_send_are_dropped_as_stopping() {
    let mut b = bench(Fault::None, |local| {
        let mut g = GraphBuilder::new(local);
        let map = PortMap::pairs(&[(0, 1)]).expect("two ports");
        let stage = g.add("fwd", Box::new(Forward::new(map)));
        g.build(To::Node(stage))
    });
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
    assert_eq!((c.received, c.sent, c.dropped, c.unexplained), (100, 0, 100, Some(0)), "{c:?}");
    assert_eq!(s.ports[1].drops.get("stopping"), Some(&100));
}

#[test]
fn a_runtime_starts_once_and_stops_twice_without_harm() {
    let mut b = bench(Fault::None, |local| GraphBuilder::new(local).build(To::Tx(1)));
    let e = b.runtime.start(Vec::new()).unwrap_err().to_string();
    assert!(e.starts_with("the runtime has been started already"), "{e}");
    b.runtime.stop();
    assert_eq!(b.stop().conservation.unexplained, Some(0));
}

/// Traffic goes on while the runtime stops: what the device still delivers is drained, and all of it is explained.
#[test]
fn a_stop_under_load_explains_every_packet() {
    for _ in 0..5 {
        let mut b = bench(Fault::None, |local| {
            let mut g = GraphBuilder::new(local);
            let map = PortMap::pairs(&[(0, 1)]).expect("two ports");
            let stage = g.add("fwd", Box::new(Forward::new(map)));
            g.build(To::Node(stage))
        });
        let done = std::sync::atomic::AtomicBool::new(false);
        let mut ends = std::mem::take(&mut b.far_ends);
        let status = std::thread::scope(|s| {
            s.spawn(|| {
                let (mut n, mut room) = (0, vec![0; 16_384]);
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for end in &mut ends {
                        end.tx_frame(&frame(n));
                        while end.rx_next(&mut room).is_some() {}
                    }
                    n += 1;
                }
            });
            std::thread::sleep(Duration::from_millis(50));
            let status = b.runtime.stop();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            status
        });
        b.thread.stop();
        let c = status.conservation;
        assert!(c.received > 0);
        assert_eq!((c.unexplained, c.received), (Some(0), c.sent + c.dropped), "{status:#?}");
    }
}
