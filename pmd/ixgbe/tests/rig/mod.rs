//! A driver on a stepped model, with the packet memory and the worker of a test.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::sync::Arc;

use hw::{GRANULE, Pages, Window};
use ixgbe_model::{Device, Parameters, Script, Stepped, SteppedBus};
use mem::{Batch, Chain, Layout, Local, Memory, Meta};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{OpenEnv, OpenPort, PortConfig, Queues, RxQueue, TxQueue, WorkerEnv};
use ringwright_ixgbe::{Ixgbe, PciId};

pub const BUFFERS: usize = 256;
/// An 82599 with SFP+.
pub const ID: PciId = PciId { vendor: 0x8086, device: 0x10FB };
pub const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

pub struct Rig {
    pub model: Stepped<Script>,
    pub memory: Arc<Memory>,
    pub env: WorkerEnv,
    pub port: Ixgbe<SteppedBus<Script>>,
}

/// Packet memory of `buffers`, and the arena for rings, in one window.
pub fn memory(buffers: usize) -> (Arc<Memory>, Arc<hw::Arena>) {
    let window = Window::on_heap(4 * GRANULE);
    let rings = window.arena(GRANULE, None, Pages::Any).unwrap();
    let memory = Memory::new(window, Layout::for_frame_room(2048).unwrap());
    memory.add_pool(buffers, None, Pages::Any).unwrap();
    (memory, rings)
}

pub fn worker(memory: &Arc<Memory>) -> WorkerEnv {
    WorkerEnv { local: Local::new(memory), node: None, metered: true }
}

pub fn open_env(memory: &Arc<Memory>) -> OpenEnv {
    OpenEnv { memory: Arc::clone(memory), name: "p0".into() }
}

/// A frame that says which it is: addresses, an ether type nobody parses, then bytes of `seed`.
pub fn frame(len: usize, seed: u32) -> Vec<u8> {
    let mut f: Vec<u8> = (0..len as u32).map(|i| (i.wrapping_mul(7) ^ seed ^ (seed >> 8)) as u8).collect();
    let head = [0x02, 0, 0, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0x09, 0x88, 0xB5];
    let n = len.min(head.len());
    f[..n].copy_from_slice(&head[..n]);
    f
}

pub fn config() -> PortConfig {
    let ring = 32.try_into().unwrap();
    PortConfig { rx_ring: ring, tx_ring: ring, max_frame: 9_600, ..PortConfig::new(5) }
}

impl Rig {
    pub fn new() -> Self {
        Self::with(Parameters { logged: true, ..Parameters::default() }, BUFFERS)
    }

    pub fn with(params: Parameters, buffers: usize) -> Self {
        let (memory, rings) = memory(buffers);
        let model = Stepped::new(params, rings, Script::default()).unwrap();
        let port = Ixgbe::open(model.bus(), ID, &open_env(&memory)).unwrap();
        let env = worker(&memory);
        Self { model, memory, env, port }
    }

    pub fn device(&self) -> &Device {
        self.model.device()
    }

    pub fn start(&mut self, cfg: &PortConfig) -> Live {
        let queues = self.port.start(cfg).unwrap();
        let live = Live::attach(queues, &self.env);
        self.model.settle(8);
        self.model.step();
        self.model.step();
        assert!(self.port.link().up);
        live
    }

    pub fn batch(&self) -> Batch {
        Batch::new(&self.env.local)
    }

    pub fn arrive(&self, frame: Vec<u8>) {
        self.model.wire(|w| w.push(frame));
    }

    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.model.wire(Script::take_sent)
    }

    /// Fills `batch` with packets of these frames, over as many buffers as they take.
    pub fn write(&self, batch: &mut Batch, frame: &[u8]) {
        let local = &self.env.local;
        let pool = self.env.pool().unwrap();
        let mut pieces = frame.chunks(local.layout().room().into());
        let first = pieces.next().unwrap_or_default();
        let mut chain = Chain::new(local, local.take(pool).unwrap(), first.len() as u16).unwrap();
        for p in pieces {
            chain.push(local.take(pool).unwrap(), p.len() as u16).unwrap();
        }
        assert!(chain.finish(batch, Meta::default()).is_ok());
        let at = batch.len() - 1;
        fill(batch, at, frame);
    }

    /// All buffers that are not with a device.
    pub fn home(&self) -> usize {
        self.memory.depot() + self.env.local.cached()
    }

    /// Stops the port; every buffer must come back.
    pub fn stop(&mut self, live: Live) {
        self.port.stop(live.detach(), &self.env.local).unwrap();
        assert_eq!(self.home(), self.memory.capacity(), "every buffer came home");
        assert_eq!(self.env.local.lost(), 0);
        assert_eq!(self.device().faults(), [], "nothing was reached that was not mapped");
        assert_eq!(self.device().stray(), 0, "only registers of the data sheet");
    }

    pub fn check_census(&self, live: &Live, batched: usize) {
        let held: usize = live.rx.iter().map(|q| q.posted()).sum::<usize>()
            + live.tx.iter().map(|q| q.inflight()).sum::<usize>();
        assert_eq!(self.home() + held + batched, self.memory.capacity(), "census");
    }
}

/// Writes a frame's bytes into packet `i`, buffer by buffer, by pulling nothing: through a copy of its layout.
fn fill(batch: &mut Batch, i: usize, frame: &[u8]) {
    let mut p = batch.pkt(i).unwrap();
    assert_eq!(p.total_len(), frame.len());
    let n = p.len();
    p.bytes_mut().copy_from_slice(&frame[..n]);
    let mut at = n;
    for s in 1.. {
        let Some(len) = p.segments().nth(s).map(<[u8]>::len) else { break };
        p.segment_mut(s).unwrap().copy_from_slice(&frame[at..at + len]);
        at += len;
    }
    assert_eq!(at, frame.len());
}

/// The frame's bytes.
pub fn bytes(p: &mem::Pkt<'_>) -> Vec<u8> {
    p.segments().flatten().copied().collect()
}

pub fn free(batch: &mut Batch) {
    batch.drop_all(DropReason::Stopping, &mut DropCounts::default());
}

/// Queues on this worker.
pub struct Live {
    pub rx: Vec<Box<dyn RxQueue>>,
    pub tx: Vec<Box<dyn TxQueue>>,
}

impl Live {
    pub fn attach(queues: Queues, env: &WorkerEnv) -> Self {
        Self {
            rx: queues.rx.into_iter().map(|q| q.attach(env).map_err(|e| e.0).unwrap()).collect(),
            tx: queues.tx.into_iter().map(|q| q.attach(env).map_err(|e| e.0).unwrap()).collect(),
        }
    }
    pub fn detach(self) -> Queues {
        Queues {
            rx: self.rx.into_iter().map(|q| q.detach()).collect(),
            tx: self.tx.into_iter().map(|q| q.detach()).collect(),
        }
    }
    pub fn rx_counts(&self) -> QueueMeter {
        let mut m = QueueMeter::default();
        self.rx.iter().for_each(|q| q.counts(&mut m));
        m
    }
    pub fn tx_counts(&self) -> QueueMeter {
        let mut m = QueueMeter::default();
        self.tx.iter().for_each(|q| q.counts(&mut m));
        m
    }
}
