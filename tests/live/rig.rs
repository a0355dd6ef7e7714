//! A runtime over numbered ports, in either mode.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ringwright::graph::{GraphBuilder, OnFull, To};
use ringwright::hw::{Pages, Window};
use ringwright::mem::{Layout, Memory};
use ringwright::port::PortConfig;
use ringwright::rt::{BuildGraph, Idle, Role, Runtime, Status, WorkerPlan};
use ringwright::stages::{Forward, PortMap};

use super::device::{Knobs, Numbered, Wires};

/// How long anything may take on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const FLOWS: u16 = 12;

/// Which workers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Two that run to completion.
    Complete,
    /// Two that receive, two that process, one that sends.
    Pipeline,
    /// Two that receive, two that process and send themselves.
    Short,
}
pub const MODES: [Mode; 3] = [Mode::Complete, Mode::Pipeline, Mode::Short];

pub struct Rig {
    pub runtime: Runtime,
    pub wires: Wires,
    /// Of each port, by number.
    pub knobs: Vec<Arc<Knobs>>,
}

/// Packets of each pair of ports go to the other of it.
pub fn pairs(ports: u16) -> PortMap {
    let pairs: Vec<_> = (0..ports / 2).map(|i| (2 * i, 2 * i + 1)).collect();
    PortMap::pairs(&pairs).expect("each port once")
}

pub fn forward(ports: u16) -> BuildGraph {
    Box::new(move |local| {
        let mut g = GraphBuilder::new(local);
        let stage = g.add("fwd", Box::new(Forward::new(pairs(ports))));
        g.build(To::Node(stage))
    })
}

pub fn config() -> PortConfig {
    let ring = 64.try_into().expect("a power of two");
    PortConfig { queues: 2, rx_ring: ring, tx_ring: ring, ..PortConfig::new(0) }
}

fn memory() -> Arc<Memory> {
    let layout = Layout::for_frame_room(2048).expect("a usual buffer");
    let memory = Memory::new(Window::reserve(Window::LEN).expect("addresses"), layout);
    memory.add_pool(16_384, None, Pages::Any).expect("buffers");
    memory
}

impl Rig {
    /// A runtime with `ports` ports, not started.
    pub fn new(ports: u16, on_full: OnFull) -> Self {
        let mut rig = Self { runtime: Runtime::new(memory()), wires: Wires::default(), knobs: Vec::new() };
        for i in 0..ports {
            let port = rig.port(&format!("p{i}"));
            rig.runtime.add_port(&format!("p{i}"), Box::new(port), config(), on_full);
        }
        rig
    }

    /// One more port.
    pub fn port(&mut self, name: &str) -> Numbered {
        let port = Numbered::new(name, FLOWS, &self.wires);
        self.knobs.push(Arc::clone(&port.knobs));
        port
    }

    /// Starts workers for two ports of two queues.
    pub fn start(mut self, mode: Mode) -> Self {
        let worker = |role, rx: &[(u16, u16)], tx: &[(u16, u16)]| {
            let stages = matches!(role, Role::RunToCompletion | Role::Process);
            WorkerPlan {
                role,
                // The machine has fewer cores than there are workers.
                idle: Idle::Sleep { bound: Duration::from_micros(200) },
                rx: rx.to_vec(),
                tx: tx.to_vec(),
                stages: stages.into(),
                graph: stages.then(|| forward(2)),
                core: None,
            }
        };
        let (left, right) = ([(0, 0), (1, 0)], [(0, 1), (1, 1)]);
        let plans = match mode {
            Mode::Complete => vec![
                worker(Role::RunToCompletion, &left, &left),
                worker(Role::RunToCompletion, &right, &right),
            ],
            Mode::Pipeline => vec![
                worker(Role::Rx, &left, &[]),
                worker(Role::Rx, &right, &[]),
                worker(Role::Process, &[], &[]),
                worker(Role::Process, &[], &[]),
                worker(Role::Tx, &[], &left),
            ],
            Mode::Short => vec![
                worker(Role::Rx, &left, &[]),
                worker(Role::Process, &[], &left),
                worker(Role::Process, &[], &right),
                worker(Role::Rx, &right, &[]),
            ],
        };
        self.runtime.start(plans).expect("it starts");
        self
    }

    /// Lets every port make so many frames more.
    pub fn make(&self, frames: u64) {
        self.knobs.iter().for_each(|k| {
            k.budget.fetch_add(frames, Ordering::Relaxed);
        });
    }

    /// Waits until `done`.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let since = Instant::now();
        while !done(self) {
            if since.elapsed() > PATIENCE {
                panic!("{what}: not after {PATIENCE:?}: {:#?}", self.runtime.status());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until all ports have made what they may.
    #[track_caller]
    pub fn spend(&mut self) {
        self.until("frames are made", |r| r.knobs.iter().all(|k| k.budget.load(Ordering::Relaxed) == 0));
    }

    /// Waits until so many frames more have come out.
    #[track_caller]
    pub fn flow(&mut self, frames: u64) {
        let target = self.wires.seen().frames + frames;
        self.until("packets flow", |r| r.wires.seen().frames >= target);
    }

    /// Stops, and checks what must hold in any case: order, and that all packets are accounted for.
    #[track_caller]
    pub fn stop(mut self) -> (Status, Wires) {
        let status = self.runtime.stop();
        let c = status.conservation;
        assert_eq!(c.unexplained, Some(0), "{status:#?}");
        assert_eq!((c.held, c.received + c.created), (0, c.sent + c.consumed + c.dropped), "{c:?}");
        assert!(status.pools.iter().all(|p| p.available == p.capacity), "every buffer came home");
        let seen = self.wires.seen();
        assert_eq!(seen.wrong, [""; 0], "out of order");
        assert_eq!(seen.frames, c.sent, "what was sent came out");
        drop(seen);
        (status, self.wires.clone())
    }
}
