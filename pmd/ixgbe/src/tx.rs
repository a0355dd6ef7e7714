//! Transmit queues (7.2): descriptors, tail writes, reports, reaping.

use hw::Doorbell;
use ixgbe_defs::{Context, TxData, TxDesc, regs, tx_cmd};
use mem::{Batch, Flags, Local, Outgoing};
use meter::{DropCounts, DropReason, Histogram, QueueMeter};
use port::{PortConfig, PortError, TxQueue, TxSetup, WorkerEnv};
use ring::Pos;

use crate::guard::Guarded;

/// Shortest frame that may be given to the device, which pads it (7.2.3.2.4, PAYLEN; HLREG0.TXPADEN).
pub const SHORTEST: u32 = 17;
/// Most buffers of a frame: with a context before them they fit on the die (7.2.3.4).
pub const MAX_SEGMENTS: u32 = regs::TX_ON_DIE_DESCRIPTORS - 1;
/// A report is asked for after this many descriptors at the latest.
const REPORT: u32 = 32;
/// What takes more than one plain descriptor.
const SLOW: Flags =
    Flags(Flags::CHAIN.0 | Flags::VLAN.0 | Flags::TX_L3.0 | Flags::TX_L4.0 | Flags::TSO.0 | Flags::USO.0);
/// In every data descriptor of ours.
pub const ALWAYS: u8 = tx_cmd::IFCS | tx_cmd::DEXT;

/// A transmit queue between workers: its ring, the buffers in flight, its positions.
pub struct TxState {
    pub held: Guarded<TxDesc>,
    tail: Doorbell,
    /// The entry that is reaped next.
    head: Pos,
    /// The entry that is written next.
    pub next: Pos,
    /// Entries below are the device's.
    rung: Pos,
    /// Entries that ask for a report, in order: those between `marks_head` and `marks_tail`.
    marks: Box<[Pos]>,
    marks_head: u32,
    marks_tail: u32,
    /// Entries since the last that asks for one.
    unmarked: u32,
    /// The last entry of the last packet, as long as it does not ask for a report.
    last: Option<(Pos, TxDesc)>,
    /// The context that the device has, or will have by then.
    pub context: Option<Context>,
    /// Buffers in flight.
    pub inflight: usize,
    /// Packets that wait for a tail write, and the time stamp of the first.
    waiting: u32,
    waiting_since: u64,
    doorbell_packets: u32,
    doorbell_delay: u64,
    pub longest: u32,
}

impl TxState {
    pub fn new(held: Guarded<TxDesc>, tail: Doorbell, cfg: &PortConfig, start: Pos) -> Self {
        let start = start & !(cfg.tx_ring.get() - 1);
        Self {
            held,
            tail,
            head: start,
            next: start,
            rung: start,
            marks: vec![0; cfg.tx_ring.entries()].into(),
            marks_head: 0,
            marks_tail: 0,
            unmarked: 0,
            last: None,
            context: None,
            inflight: 0,
            waiting: 0,
            waiting_since: 0,
            doorbell_packets: cfg.doorbell_packets.into(),
            doorbell_delay: cfg.doorbell_delay,
            longest: cfg.max_frame.into(),
        }
    }

    /// Entries that can be written: the ring is never full, as an empty one looks the same (7.2.3.3).
    #[inline]
    pub fn room(&self) -> u32 {
        self.held.slots.len() as u32 - 1 - self.next.wrapping_sub(self.head)
    }

    /// Writes the next entry. `end`: it ends a packet.
    #[inline]
    pub fn store(&mut self, d: TxDesc, slot: Option<mem::Slot>, end: bool) {
        let Some(ring) = &mut self.held.ring else { return };
        ring.store(self.next, d);
        self.held.slots[ring.size().index(self.next)] = slot;
        self.unmarked += 1;
        if end {
            self.last = Some((self.next, d));
        }
        self.next = self.next.wrapping_add(1);
        if end && self.unmarked >= REPORT {
            self.mark();
        }
    }

    /// Has the last packet report: RS belongs into the last descriptor of a packet (7.2.3.5.1).
    #[inline]
    fn mark(&mut self) {
        let (Some((pos, d)), Some(ring)) = (self.last.take(), &mut self.held.ring) else { return };
        let data = d.as_data();
        ring.store(pos, TxDesc::data(TxData { cmd: data.cmd | tx_cmd::RS, ..data }));
        self.marks[ring.size().index(self.marks_tail)] = pos;
        self.marks_tail = self.marks_tail.wrapping_add(1);
        self.unmarked = 0;
    }

    /// The tail write. Returns how long its first packet has waited at `now`; `None` if there was nothing to tell.
    #[inline]
    fn ring_bell(&mut self, now: u64) -> Option<u64> {
        if self.rung == self.next {
            return None;
        }
        self.mark();
        let size = self.held.ring.as_ref()?.size();
        self.tail.ring(size.index(self.next) as u32);
        self.rung = self.next;
        self.waiting = 0;
        Some(now.saturating_sub(self.waiting_since))
    }

    /// Whether the packets that wait have waited long enough.
    #[inline]
    const fn due(&self, now: u64) -> bool {
        self.waiting >= self.doorbell_packets || now.saturating_sub(self.waiting_since) >= self.doorbell_delay
    }

    /// Frees what has been reported sent; returns how many buffers.
    #[inline]
    fn reap(&mut self, local: &Local) -> usize {
        let Some(ring) = &self.held.ring else { return 0 };
        let (size, mut freed) = (ring.size(), 0);
        while self.marks_head != self.marks_tail {
            let end = self.marks[size.index(self.marks_head)];
            if ring.poll(end).is_none() {
                break;
            }
            let n = end.wrapping_sub(self.head).wrapping_add(1);
            // At most two parts of the ring: up to its end, and from its start.
            let (at, n) = (size.index(self.head), n as usize);
            let first = n.min(size.entries() - at);
            for part in [at..at + first, 0..n - first] {
                let part = &mut self.held.slots[part];
                freed += part.iter().filter(|s| s.is_some()).count();
                local.put_all(part);
            }
            self.head = end.wrapping_add(1);
            self.marks_head = self.marks_head.wrapping_add(1);
        }
        self.inflight -= freed;
        freed
    }
}

impl TxSetup for TxState {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(Tx {
            state: *self,
            local: env.local.clone(),
            drops: DropCounts::default(),
            dropped: 0,
            dropped_bytes: 0,
            doorbells: 0,
            full: 0,
            hold: Histogram::default(),
        }))
    }

    fn reclaim(self: Box<Self>, local: &Local) {
        self.held.give_back(local);
    }
}

/// A transmit queue on its worker.
pub struct Tx {
    pub state: TxState,
    pub local: Local,
    drops: DropCounts,
    /// Packets dropped.
    dropped: u64,
    dropped_bytes: u64,
    doorbells: u64,
    full: u64,
    hold: Histogram,
}

impl Tx {
    /// Drops a packet that the device cannot send.
    #[cold]
    pub fn refuse(&mut self, p: Outgoing, reason: DropReason) {
        self.drops.add(reason, 1);
        self.dropped += 1;
        self.dropped_bytes += u64::from(p.total_len(&self.local));
        p.free(&self.local);
    }

    /// Writes a packet's descriptors, or drops it. Gives it back if the ring has no room for it.
    #[inline]
    fn send(&mut self, p: Outgoing) -> Result<(), Outgoing> {
        if p.flags().has(SLOW) {
            return self.send_slow(p);
        }
        if self.state.room() == 0 {
            return Err(p);
        }
        let len = p.len();
        if !(SHORTEST..=self.state.longest).contains(&u32::from(len)) {
            self.refuse_length(p);
            return Ok(());
        }
        let buffer = p.iova(&self.local).to_bits();
        let cmd = ALWAYS | tx_cmd::EOP;
        let d = TxDesc::data(TxData { buffer, len, cmd, payload_len: len.into(), ..TxData::default() });
        self.state.store(d, Some(p.into_slot()), true);
        self.state.inflight += 1;
        Ok(())
    }

    #[cold]
    fn refuse_length(&mut self, p: Outgoing) {
        let short = u32::from(p.len()) < SHORTEST;
        self.refuse(p, if short { DropReason::TooShort } else { DropReason::TooLong });
    }

    #[inline]
    fn tell(&mut self, now: u64) {
        if let Some(held) = self.state.ring_bell(now) {
            self.doorbells += 1;
            self.hold.add(held, 1);
        }
    }
}

impl TxQueue for Tx {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, now: u64) -> usize {
        if from.is_empty() {
            return 0;
        }
        let dropped = self.dropped;
        if (self.state.room() as usize) < from.len() {
            self.state.reap(&self.local);
        }
        let n = from.drain_while(|p| self.send(p)) - (self.dropped - dropped) as usize;
        let s = &mut self.state;
        if s.waiting == 0 {
            s.waiting_since = now;
        }
        s.waiting += n as u32;
        let full = !from.is_empty();
        self.full += u64::from(full);
        // A full ring must not wait for more packets than it can take.
        if s.waiting > 0 && (full || s.due(now)) {
            self.tell(now);
        }
        n
    }

    #[inline]
    fn flush(&mut self, now: u64, idle: bool) {
        if self.state.waiting > 0 && (idle || self.state.due(now)) {
            self.tell(now);
        }
    }

    fn set_doorbell(&mut self, packets: u16, delay: u64) {
        self.state.doorbell_packets = packets.into();
        self.state.doorbell_delay = delay;
    }

    #[inline]
    fn reap(&mut self) -> usize {
        self.state.reap(&self.local)
    }

    fn inflight(&self) -> usize {
        self.state.inflight
    }

    fn counts(&self, sum: &mut QueueMeter) {
        sum.doorbells += self.doorbells;
        sum.full += self.full;
        sum.hold.merge(&self.hold);
        sum.drops.merge(&self.drops);
        sum.bytes = sum.bytes.saturating_sub(self.dropped_bytes);
    }

    fn detach(mut self: Box<Self>) -> Box<dyn TxSetup> {
        // Nobody will ring for them until the queue has a worker again.
        self.tell(self.state.waiting_since);
        Box::new(self.state)
    }
}
