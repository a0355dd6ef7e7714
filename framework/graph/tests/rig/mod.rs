//! A worker without devices: ports that receive what a test says and keep what was sent.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::graph::{Graph, OnFull, RxLane, TxLane};
use hw::{Pages, Window};
use mem::{Batch, Chain, Layout, Local, Memory, Meta, PoolId, Slot};
use meter::{DropCounts, QueueMeter, StageMeter};
use port::{PortError, RxQueue, RxSetup, TxQueue, TxSetup, WorkerEnv};

pub type Frame = Vec<u8>;

/// What lies on both sides of a port.
#[derive(Default)]
pub struct Wire {
    /// To be received, next first.
    pub rx: std::collections::VecDeque<Frame>,
    /// Sent, in order.
    pub tx: Vec<Frame>,
    /// Packets the transmit ring holds.
    pub ring: usize,
    /// The device does not send: nothing can be reaped.
    pub stuck: bool,
    /// Tail writes asked for.
    pub flushes: usize,
    inflight: Vec<Slot>,
}

pub type Shared = Arc<Mutex<Wire>>;

fn lock(wire: &Shared) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap()
}

struct ScriptRx {
    wire: Shared,
    port: u16,
    pool: PoolId,
    local: Local,
}

impl RxQueue for ScriptRx {
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let mut wire = lock(&self.wire);
        let (n, had) = (out.room().min(wire.rx.len()), out.len());
        for slot in self.local.take_bulk(self.pool, n) {
            let frame = wire.rx.pop_front().unwrap();
            let meta = Meta { port: self.port, ..Meta::default() };
            out.push(slot, frame.len() as u16, meta).map_err(|s| self.local.put(s)).unwrap();
            out.pkt(out.len() - 1).unwrap().bytes_mut().copy_from_slice(&frame);
        }
        out.len() - had
    }
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(Parked { wire: self.wire, port: self.port })
    }
}

struct ScriptTx {
    wire: Shared,
    port: u16,
    local: Local,
}

impl TxQueue for ScriptTx {
    fn tx_burst(&mut self, from: &mut Batch, _: u64) -> usize {
        let mut wire = lock(&self.wire);
        let n = from.len().min(wire.ring - wire.inflight.len());
        for i in 0..n {
            wire.tx.push(from.pkt(i).unwrap().bytes().to_vec());
        }
        let mut left = n;
        from.drain_while(|packet| {
            if left == 0 {
                return Err(packet);
            }
            left -= 1;
            wire.inflight.push(packet.into_slot());
            Ok(())
        })
    }
    fn flush(&mut self, _: u64, _: bool) {
        lock(&self.wire).flushes += 1;
    }
    fn reap(&mut self) -> usize {
        let mut wire = lock(&self.wire);
        if wire.stuck {
            return 0;
        }
        let n = wire.inflight.len();
        self.local.put_bulk(wire.inflight.drain(..));
        n
    }
    fn inflight(&self) -> usize {
        lock(&self.wire).inflight.len()
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(Parked { wire: self.wire, port: self.port })
    }
}

/// Either queue on its way to a worker.
struct Parked {
    wire: Shared,
    port: u16,
}

impl RxSetup for Parked {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        let pool = env.pool().unwrap();
        Ok(env.boxed_rx(ScriptRx { wire: self.wire, port: self.port, pool, local: env.local.clone() }))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}
impl TxSetup for Parked {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(ScriptTx { wire: self.wire, port: self.port, local: env.local.clone() }))
    }
    fn reclaim(self: Box<Self>, local: &Local) {
        local.put_bulk(lock(&self.wire).inflight.drain(..));
    }
}

/// All counts of a graph, to hold against each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub received: u64,
    pub created: u64,
    pub sent: u64,
    pub consumed: u64,
    pub dropped: u64,
    pub held: u64,
}

impl Totals {
    pub const fn unexplained(&self) -> i64 {
        (self.received + self.created) as i64 - (self.sent + self.consumed + self.dropped + self.held) as i64
    }
}

/// Memory and wires.
pub struct Rig {
    pub memory: Arc<Memory>,
    pub local: Local,
    pub pool: PoolId,
    wires: BTreeMap<u16, Shared>,
    pub now: u64,
}

impl Rig {
    /// A pool of `buffers`.
    pub fn new(buffers: usize) -> Self {
        let memory = Memory::new(Window::on_heap(2 << 20), Layout::for_frame_room(128).unwrap());
        let pool = memory.add_pool(buffers, None, Pages::Any).unwrap().id();
        let local = Local::new(&memory);
        Self { memory, local, pool, wires: BTreeMap::new(), now: 1 }
    }
    pub fn env(&self) -> WorkerEnv {
        WorkerEnv { local: self.local.clone(), node: None, metered: true }
    }

    pub fn add_rx(&mut self, graph: &mut Graph, port: u16) {
        let wire = self
            .wires
            .entry(port)
            .or_insert_with(|| Arc::new(Mutex::new(Wire { ring: 512, ..Wire::default() })));
        let setup = Box::new(Parked { wire: Arc::clone(wire), port });
        let queue = RxSetup::attach(setup, &self.env()).map_err(|e| e.0).unwrap();
        let (base, published) = (QueueMeter::default(), Arc::default());
        graph.add_rx(RxLane { port, id: 0, queue, base, published });
    }
    pub fn add_tx(&mut self, graph: &mut Graph, port: u16, on_full: OnFull) {
        let wire = self
            .wires
            .entry(port)
            .or_insert_with(|| Arc::new(Mutex::new(Wire { ring: 512, ..Wire::default() })));
        let setup = Box::new(Parked { wire: Arc::clone(wire), port });
        let queue = TxSetup::attach(setup, &self.env()).map_err(|e| e.0).unwrap();
        graph.add_tx(TxLane::new(&self.local, (port, 0), queue, on_full, Arc::default()));
    }
    /// Both queues of each port.
    pub fn add_ports(&mut self, graph: &mut Graph, ports: &[u16], on_full: OnFull) {
        for &port in ports {
            self.add_rx(graph, port);
            self.add_tx(graph, port, on_full);
        }
    }

    pub fn wire(&self, port: u16) -> MutexGuard<'_, Wire> {
        lock(&self.wires[&port])
    }
    /// For the device's own thread.
    pub fn shared(&self, port: u16) -> Shared {
        Arc::clone(&self.wires[&port])
    }
    /// Frames arrive at a port.
    pub fn arrive(&self, port: u16, frames: impl IntoIterator<Item = Frame>) {
        self.wire(port).rx.extend(frames);
    }
    /// What a port has sent since last asked.
    pub fn sent(&self, port: u16) -> Vec<Frame> {
        std::mem::take(&mut self.wire(port).tx)
    }
    /// Breathes until a breath receives nothing.
    pub fn run(&mut self, graph: &mut Graph) -> usize {
        let mut received = 0;
        loop {
            let breath = graph.breathe(self.now, false);
            received += breath.received;
            if breath.received == 0 {
                return received;
            }
        }
    }

    /// The sum of all counts of `graph`, apart from edges that start at no stage.
    pub fn totals(&self, graph: &Graph) -> Totals {
        let stages = graph.stages().fold(StageMeter::default(), |mut sum, (_, _, m, _)| {
            sum.created += m.created;
            sum.consumed += m.consumed;
            sum.drops.merge(&m.drops);
            sum
        });
        let mut drops: DropCounts = stages.drops;
        let mut sent = 0;
        for lane in graph.tx() {
            let counts = lane.counts();
            sent += counts.packets;
            drops.merge(&counts.drops);
        }
        Totals {
            received: graph.rx().iter().map(|l| l.counts().packets).sum(),
            created: stages.created,
            consumed: stages.consumed,
            sent,
            dropped: drops.total(),
            held: (graph.batched() + self.local.parked()) as u64,
        }
    }

    /// A buffer with `bytes` in it.
    fn buffer(&self, bytes: &[u8]) -> Slot {
        let mut batch = Batch::new(&self.local);
        let slot = self.local.take(self.pool).unwrap();
        batch.push(slot, bytes.len() as u16, Meta::default()).map_err(|s| self.local.put(s)).unwrap();
        batch.pkt(0).unwrap().bytes_mut().copy_from_slice(bytes);
        let mut filled = None;
        batch.drain_while(|packet| {
            filled = Some(packet.into_slot());
            Ok(())
        });
        filled.unwrap()
    }
    /// A batch of one frame in two buffers, `cut` bytes in the first.
    pub fn in_two(&self, frame: &[u8], cut: usize, port: u16) -> Batch {
        let (first, second) = frame.split_at(cut);
        let mut chain = Chain::new(&self.local, self.buffer(first), first.len() as u16).unwrap();
        chain.push(self.buffer(second), second.len() as u16).unwrap();
        let mut batch = Batch::new(&self.local);
        chain.finish(&mut batch, Meta { port, ..Meta::default() }).map_err(Chain::free).unwrap();
        batch
    }

    /// Buffers that are in their pool.
    pub fn home(&self) -> usize {
        self.memory.depot() + self.local.cached()
    }
    /// Ends the graph: the device sends what it has, and every buffer must be home and every packet explained.
    pub fn finish(self, mut graph: Graph) {
        for wire in self.wires.values() {
            lock(wire).stuck = false;
        }
        graph.breathe(self.now, false);
        graph.breathe(self.now, false);
        let totals = self.totals(&graph);
        assert_eq!(totals.unexplained(), 0, "{totals:?}");
        assert_eq!((totals.held, graph.inflight(), graph.posted()), (0, 0, 0));
        drop(graph);
        assert_eq!(self.home(), self.memory.capacity(), "every buffer is home");
        assert_eq!((self.local.lost(), self.local.parked()), (0, 0));
    }
}

/// A frame of 60 bytes from station `src` to `dst` with a number in it.
pub fn frame(dst: [u8; 6], src: [u8; 6], number: u32) -> Frame {
    let mut f = vec![0; 60];
    f[..6].copy_from_slice(&dst);
    f[6..12].copy_from_slice(&src);
    f[12..14].copy_from_slice(&[0x08, 0x00]);
    f[14..18].copy_from_slice(&number.to_be_bytes());
    f
}
/// The number in a frame.
pub fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}
/// The numbers in frames.
pub fn numbers(frames: &[Frame]) -> Vec<u32> {
    frames.iter().map(|f| number(f)).collect()
}
/// Frames with the numbers of `range`.
pub fn numbered(range: std::ops::Range<u32>) -> impl Iterator<Item = Frame> {
    range.map(|n| frame([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1], n))
}
