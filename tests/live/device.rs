//! A port that makes numbered frames of its flows, and a device behind its transmit queues that takes its time, so that
//! whoever overtakes is seen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringwright::mem::{Batch, Local, Meta, Slot};
use ringwright::meter::QueueMeter;
use ringwright::port::{
    DeviceCounts, Input, Link, OpenPort, PortConfig, PortError, PortInfo, Queues, RxQueue, RxSetup, TxQueue,
    TxSetup, WorkerEnv,
};

/// A flow: of which port, and which of its flows.
pub type Flow = (u16, u16);

/// What came out at the ends of all ports.
#[derive(Default)]
pub struct Seen {
    /// The last number of each flow.
    pub last: BTreeMap<Flow, u64>,
    /// Frames in all.
    pub frames: u64,
    /// Numbers left out.
    pub gaps: u64,
    /// The first frames out of order, in words.
    pub wrong: Vec<String>,
}

impl Seen {
    fn see(&mut self, flow: Flow, number: u64, port: &str) {
        self.frames += 1;
        let last = self.last.entry(flow).or_default();
        if number <= *last && self.wrong.len() < 10 {
            self.wrong.push(format!("{number} of flow {flow:?} came out of {port} after {last}"));
        }
        self.gaps += number.saturating_sub(*last + 1);
        *last = number.max(*last);
    }
}

/// What a test and its ports share.
#[derive(Clone, Default)]
pub struct Wires(Arc<Mutex<Seen>>);

impl Wires {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The knobs of a port.
#[derive(Default)]
pub struct Knobs {
    /// Frames that it may still make.
    pub budget: AtomicU64,
    /// Its device sends nothing.
    pub stuck: AtomicBool,
    pub link_down: AtomicBool,
    /// Whoever polls this receive queue, counted from 1, does not come back.
    pub hold: AtomicU64,
    /// It has polled it.
    pub held: AtomicBool,
    pub fault: AtomicBool,
    /// The last doorbell that was set: packets.
    pub doorbell: AtomicU64,
    rx_off: AtomicBool,
    delivered: AtomicU64,
    sent: AtomicU64,
}

/// A port of `flows` flows.
pub struct Numbered {
    name: String,
    flows: u16,
    wires: Wires,
    pub knobs: Arc<Knobs>,
    info: PortInfo,
}

impl Numbered {
    pub fn new(name: &str, flows: u16, wires: &Wires) -> Self {
        let info = PortInfo {
            driver: "numbered",
            node: None,
            mac: None,
            max_queues: 8,
            max_frame: 1518,
            max_segments: 1,
        };
        Self { name: name.into(), flows, wires: wires.clone(), knobs: Arc::default(), info }
    }
}

impl OpenPort for Numbered {
    fn info(&self) -> &PortInfo {
        &self.info
    }
    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        let mut queues = Queues::default();
        for q in 0..cfg.queues {
            let flows = (0..self.flows).filter(|f| f % cfg.queues == q).map(|f| (f, 0)).collect();
            let knobs = Arc::clone(&self.knobs);
            queues.rx.push(Box::new(Source { port: cfg.port, queue: q, flows, knobs }));
            let device = Device {
                name: self.name.clone(),
                ring: VecDeque::new(),
                random: 0x9e37_79b9 + u64::from(q),
                knobs: Arc::clone(&self.knobs),
                wires: self.wires.clone(),
            };
            queues.tx.push(Box::new(device));
        }
        Ok(queues)
    }
    fn link(&mut self) -> Link {
        Link { up: !self.knobs.link_down.load(Ordering::Relaxed), speed_bps: None }
    }
    fn device_counts(&mut self) -> DeviceCounts {
        DeviceCounts {
            rx_delivered: Some(self.knobs.delivered.load(Ordering::Relaxed)),
            tx_sent: Some(self.knobs.sent.load(Ordering::Relaxed)),
            ..DeviceCounts::default()
        }
    }
    fn input(&mut self) -> Input {
        match (self.flows, self.knobs.budget.load(Ordering::Relaxed)) {
            (0, _) => Input::None,
            (_, 0) => Input::Exhausted,
            _ => Input::More,
        }
    }
    fn fault(&mut self) -> Option<String> {
        self.knobs.fault.load(Ordering::Relaxed).then(|| "out of paper; add some".to_owned())
    }
    fn set_promiscuous(&mut self, _: bool) -> Result<(), PortError> {
        Ok(())
    }
    fn rx_off(&mut self) -> Result<(), PortError> {
        self.knobs.rx_off.store(true, Ordering::Relaxed);
        Ok(())
    }
    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        queues.rx.into_iter().for_each(|q| q.reclaim(local));
        queues.tx.into_iter().for_each(|q| q.reclaim(local));
        Ok(())
    }
}

/// A receive queue, detached or not: its flows, with the last number of each.
struct Source {
    port: u16,
    queue: u16,
    flows: VecDeque<(u16, u64)>,
    knobs: Arc<Knobs>,
}

impl RxSetup for Source {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        Ok(env.boxed_rx(SourceRx(*self)))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct SourceRx(Source);

impl RxQueue for SourceRx {
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let Source { port, queue, flows, knobs } = &mut self.0;
        while knobs.hold.load(Ordering::Relaxed) == u64::from(*queue) + 1 {
            knobs.held.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        if knobs.rx_off.load(Ordering::Relaxed) || flows.is_empty() {
            return 0;
        }
        let local = out.local().clone();
        let pool = local.memory().pools().next().expect("a pool").id();
        // What was taken from the budget is made.
        let want = out.room().min(16) as u64;
        let take = |b: u64| Some(b.saturating_sub(want));
        let had = knobs.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).expect("always some");
        let mut left = had.min(want) as usize;
        let mut n = 0;
        for slot in local.take_bulk(pool, left) {
            let Some((flow, number)) = flows.pop_front() else { break };
            flows.push_back((flow, number + 1));
            out.push(slot, 60, Meta { port: *port, ..Meta::default() }).expect("there is room");
            write(out, (*port, flow), number + 1);
            n += 1;
            left -= 1;
        }
        knobs.budget.fetch_add(left as u64, Ordering::Relaxed);
        knobs.delivered.fetch_add(n, Ordering::Relaxed);
        n as usize
    }
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.0)
    }
}

fn write(batch: &mut Batch, flow: Flow, number: u64) {
    let last = batch.len() - 1;
    let mut packet = batch.pkt(last).expect("just pushed");
    let f = packet.bytes_mut();
    f.fill(0);
    f[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    f[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    f[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    f[16..18].copy_from_slice(&46u16.to_be_bytes());
    f[22..24].copy_from_slice(&[64, 17]);
    f[26..28].copy_from_slice(&[10, 0]);
    f[28..30].copy_from_slice(&flow.0.to_be_bytes());
    f[30..34].copy_from_slice(&[198, 18, 0, 1]);
    f[34..36].copy_from_slice(&flow.1.to_be_bytes());
    f[42..50].copy_from_slice(&number.to_be_bytes());
}

fn read(f: &[u8]) -> (Flow, u64) {
    let half = |at: usize| u16::from_be_bytes([f[at], f[at + 1]]);
    ((half(28), half(34)), u64::from_be_bytes(f[42..50].try_into().expect("eight")))
}

/// A transmit ring of 64 frames, and the device that sends some of them whenever it is looked at.
struct Device {
    name: String,
    ring: VecDeque<(Slot, Flow, u64)>,
    random: u64,
    knobs: Arc<Knobs>,
    wires: Wires,
}
const RING: usize = 64;

impl TxSetup for Device {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(DeviceTx { device: *self, local: env.local.clone() }))
    }
    fn reclaim(self: Box<Self>, local: &Local) {
        local.put_bulk(self.ring.into_iter().map(|r| r.0));
    }
}

struct DeviceTx {
    device: Device,
    local: Local,
}

impl TxQueue for DeviceTx {
    fn tx_burst(&mut self, from: &mut Batch, _: u64) -> usize {
        let ring = &mut self.device.ring;
        let n = from.len().min(RING - ring.len());
        let mut frames: VecDeque<_> = (0..n).filter_map(|i| Some(read(from.pkt(i)?.bytes()))).collect();
        from.drain_while(|p| {
            let Some((flow, number)) = frames.pop_front() else { return Err(p) };
            ring.push_back((p.into_slot(), flow, number));
            Ok(())
        })
    }
    fn flush(&mut self, _: u64, _: bool) {}
    fn set_doorbell(&mut self, packets: u16, _: u64) {
        self.device.knobs.doorbell.store(packets.into(), Ordering::Relaxed);
    }
    fn reap(&mut self) -> usize {
        let Device { name, ring, random, knobs, wires } = &mut self.device;
        if ring.is_empty() || knobs.stuck.load(Ordering::Relaxed) {
            return 0;
        }
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        // Often nothing: what one queue has had for long, another may send at once.
        let n = if *random & 3 == 0 { ring.len().min((*random >> 8) as usize % 24) } else { 0 };
        let mut seen = wires.seen();
        for (slot, flow, number) in ring.drain(..n) {
            seen.see(flow, number, name);
            self.local.put(slot);
        }
        knobs.sent.fetch_add(n as u64, Ordering::Relaxed);
        n
    }
    fn inflight(&self) -> usize {
        self.device.ring.len()
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(self.device)
    }
}
