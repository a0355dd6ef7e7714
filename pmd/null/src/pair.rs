//! A loopback pair: what is sent on one port comes in on the other.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crossbeam_queue::ArrayQueue;
use mem::{Batch, Flags, Local, Memory, Outgoing, Parcel};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{
    DeviceCounts, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues, RxQueue, RxSetup,
    TxQueue, TxSetup, WorkerEnv,
};

use crate::{Counts, MAX_QUEUES, NAME, add};

/// What takes a device to do.
const WISHES: Flags = Flags(Flags::TX_L3.0 | Flags::TX_L4.0 | Flags::TSO.0 | Flags::USO.0);

/// One way of a pair: the rings that its receiving port polls.
#[derive(Default)]
struct Wire {
    /// One per receive queue, made when the receiving port first starts with that many.
    rings: [OnceLock<ArrayQueue<Parcel>>; MAX_QUEUES as usize],
    /// Receive queues; 0 while the receiving port is not receiving.
    queues: AtomicU16,
    /// Frames sent while nobody received, or left when the receiving port stopped.
    missed: AtomicU64,
}

impl Wire {
    fn drain(&self, local: &Local) {
        let mut n = 0;
        for parcel in self.rings.iter().filter_map(OnceLock::get).flat_map(|r| std::iter::from_fn(|| r.pop()))
        {
            parcel.free(local);
            n += 1;
        }
        self.missed.fetch_add(n, Ordering::Relaxed);
    }
}

/// Two ports and the wires between them. `wires[i]` ends at port `i`.
pub struct Pair {
    names: [Arc<str>; 2],
    taken: [AtomicBool; 2],
    started: [AtomicBool; 2],
    memory: Weak<Memory>,
    wires: [Wire; 2],
}

fn wrong(problem: String) -> PortError {
    PortError::Config { driver: NAME, key: "peer".into(), problem }
}

/// Opens the port `env.name` as the peer of `peer`: of a pair that waits for it, or of a new one.
pub fn open(pairs: &mut Vec<Weak<Pair>>, peer: &str, env: &OpenEnv) -> Result<PairPort, PortError> {
    pairs.retain(|p| p.strong_count() > 0);
    let same_memory = |p: &Arc<Pair>| p.memory.ptr_eq(&Arc::downgrade(&env.memory));
    for pair in pairs.iter().filter_map(Weak::upgrade).filter(same_memory) {
        let Some(me) = pair.names.iter().position(|n| **n == *env.name) else {
            if let Some(i) = pair.names.iter().position(|n| **n == *peer) {
                let whose = &pair.names[1 - i];
                return Err(wrong(format!("{peer:?} has the peer {whose:?} already; a pair has two ports")));
            }
            continue;
        };
        let other = &pair.names[1 - me];
        if **other != *peer {
            return Err(wrong(format!("{other:?} names this port as its peer, this port names {peer:?}")));
        }
        if pair.taken[me].swap(true, Ordering::AcqRel) {
            return Err(wrong(format!("the port {:?} is open already", env.name)));
        }
        return Ok(PairPort::new(pair, me));
    }
    let pair = Arc::new(Pair {
        names: [Arc::clone(&env.name), peer.into()],
        taken: [AtomicBool::new(true), AtomicBool::new(false)],
        started: Default::default(),
        memory: Arc::downgrade(&env.memory),
        wires: Default::default(),
    });
    pairs.push(Arc::downgrade(&pair));
    Ok(PairPort::new(pair, 0))
}

/// The control side of one port of a pair.
pub struct PairPort {
    pair: Arc<Pair>,
    me: usize,
    info: PortInfo,
    counts: Vec<Arc<Counts>>,
    missed_before: u64,
}

impl PairPort {
    fn new(pair: Arc<Pair>, me: usize) -> Self {
        let info = PortInfo {
            driver: NAME,
            node: None,
            mac: None,
            max_queues: MAX_QUEUES,
            max_frame: u16::MAX,
            max_segments: mem::MAX_SEGMENTS as u16,
        };
        Self { pair, me, info, counts: Vec::new(), missed_before: 0 }
    }
    fn wire_in(&self) -> &Wire {
        &self.pair.wires[self.me]
    }
}

impl Drop for PairPort {
    fn drop(&mut self) {
        self.wire_in().queues.store(0, Ordering::Release);
        self.pair.taken[self.me].store(false, Ordering::Release);
    }
}

impl OpenPort for PairPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    /// A ring's length is `rx_ring` of the first start.
    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        cfg.check(&self.info)?;
        self.missed_before = self.wire_in().missed.load(Ordering::Relaxed);
        self.counts = (0..cfg.queues).map(|_| Arc::default()).collect();
        let mut queues = Queues::default();
        for (i, counts) in self.counts.iter().enumerate() {
            self.wire_in().rings[i].get_or_init(|| ArrayQueue::new(cfg.rx_ring.entries()));
            let end = End { pair: Arc::clone(&self.pair), me: self.me, queue: i, counts: Arc::clone(counts) };
            queues.rx.push(Box::new(PairRx { end: end.clone(), port: cfg.port }));
            queues.tx.push(Box::new(PairTxSetup { end }));
        }
        self.pair.started[self.me].store(true, Ordering::Release);
        self.wire_in().queues.store(cfg.queues, Ordering::Release);
        Ok(queues)
    }

    fn link(&mut self) -> Link {
        let up = self.pair.wires.iter().all(|w| w.queues.load(Ordering::Relaxed) > 0);
        Link { up, speed_bps: None }
    }

    fn device_counts(&mut self) -> DeviceCounts {
        DeviceCounts {
            rx_good: None,
            rx_delivered: Counts::sum(&self.counts, |c| &c.rx),
            tx_sent: Counts::sum(&self.counts, |c| &c.tx),
            rx_missed: Some(self.wire_in().missed.load(Ordering::Relaxed) - self.missed_before),
            rx_errors: Some(0),
        }
    }

    fn set_promiscuous(&mut self, _on: bool) -> Result<(), PortError> {
        Ok(())
    }

    fn rx_off(&mut self) -> Result<(), PortError> {
        self.wire_in().queues.store(0, Ordering::Release);
        Ok(())
    }

    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.rx_off()?;
        drop(queues);
        self.pair.started[self.me].store(false, Ordering::Release);
        self.wire_in().drain(local);
        if !self.pair.started[1 - self.me].load(Ordering::Acquire) {
            // A sender that had seen the other port receive may have put frames in after that port had stopped.
            self.pair.wires[1 - self.me].drain(local);
        }
        Ok(())
    }
}

/// What both queues of a pair of queues know.
#[derive(Clone)]
struct End {
    pair: Arc<Pair>,
    me: usize,
    queue: usize,
    counts: Arc<Counts>,
}

struct PairRx {
    end: End,
    port: u16,
}

impl PairRx {
    #[inline]
    fn ring(&self) -> Option<&ArrayQueue<Parcel>> {
        self.end.pair.wires[self.end.me].rings[self.end.queue].get()
    }
}

impl RxSetup for PairRx {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        Ok(env.boxed_rx(*self))
    }
    fn reclaim(self: Box<Self>, local: &Local) {
        self.end.pair.wires[self.end.me].drain(local);
    }
}

impl RxQueue for PairRx {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let Some(ring) = self.ring() else { return 0 };
        let mut n = 0;
        while out.room() > 0 {
            let Some(mut p) = ring.pop() else { break };
            p.set_port(self.port);
            if let Err(p) = out.push_parcel(p) {
                p.free(out.local());
                break;
            }
            n += 1;
        }
        add(&self.end.counts.rx, n);
        n
    }
    fn posted(&self) -> usize {
        self.ring().map_or(0, ArrayQueue::len)
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        self
    }
}

struct PairTxSetup {
    end: End,
}

impl TxSetup for PairTxSetup {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        let drops = DropCounts::default();
        Ok(env.boxed_tx(PairTx { end: self.end, local: env.local.clone(), full: 0, drops, dropped_bytes: 0 }))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct PairTx {
    end: End,
    local: Local,
    full: u64,
    drops: DropCounts,
    dropped_bytes: u64,
}

impl TxQueue for PairTx {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        let Self { end, local, full, drops, dropped_bytes } = self;
        let wire = &end.pair.wires[1 - end.me];
        let queues = usize::from(wire.queues.load(Ordering::Acquire));
        let ring = wire.rings[end.queue % queues.max(1)].get().filter(|_| queues > 0);
        let (mut dropped, mut missed) = (0, 0);
        let n = from.drain_while(|p| {
            if p.flags().has(WISHES) {
                dropped += 1;
                *dropped_bytes += u64::from(p.total_len(local));
                p.free(local);
                return Ok(());
            }
            let Some(ring) = ring else {
                missed += 1;
                p.free(local);
                return Ok(());
            };
            ring.push(p.into()).map_err(|back: Parcel| Outgoing::from(back))
        });
        drops.add(DropReason::UnsupportedOffload, dropped);
        if missed > 0 {
            wire.missed.fetch_add(missed, Ordering::Relaxed);
        }
        *full += u64::from(!from.is_empty());
        let sent = n - dropped as usize;
        add(&end.counts.tx, sent);
        sent
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        sum.full += self.full;
        sum.bytes = sum.bytes.saturating_sub(self.dropped_bytes);
        sum.drops.merge(&self.drops);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(PairTxSetup { end: self.end })
    }
}
