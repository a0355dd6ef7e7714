//! Transmit queues on their workers: what goes at once, what is held back, what is counted.
//!
//! The kernel copies each frame into a packet of its own during the call, so that buffers are free as soon as it returns:
//! nothing is ever in flight here but what is held back for a later call.

use std::sync::Arc;

use mem::{Batch, Flags, Local, Parcel};
use meter::{DropCounts, DropReason, Histogram, QueueMeter};
use port::{PortConfig, PortError, TxQueue, TxSetup, WorkerEnv};

use crate::send::Sender;
use crate::swap::{Known, Swap};
use crate::tx_ring::TxRing;

/// A transmit queue between workers.
pub struct TxState {
    /// None until the interface has been there.
    pub ring: Option<TxRing>,
    pub swap: Arc<Swap<TxRing>>,
    pub known: Arc<Known>,
    doorbell_packets: usize,
    doorbell_delay: u64,
    /// Packets that were held when the queue left its worker.
    parcels: Vec<Parcel>,
}

impl TxState {
    /// A queue that takes its ring from `swap`.
    pub fn new(swap: Arc<Swap<TxRing>>, known: Arc<Known>, cfg: &PortConfig) -> Self {
        let (doorbell_packets, doorbell_delay) = (cfg.doorbell_packets.into(), cfg.doorbell_delay);
        Self { ring: None, swap, known, doorbell_packets, doorbell_delay, parcels: Vec::new() }
    }
}

impl TxSetup for TxState {
    fn attach(
        mut self: Box<Self>,
        env: &WorkerEnv,
    ) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        let mut held = Batch::new(&env.local);
        for parcel in self.parcels.drain(..) {
            // There is room: they come out of a batch.
            if let Err(parcel) = held.push_parcel(parcel) {
                parcel.free(&env.local);
            }
        }
        let sender = Sender { state: *self, local: env.local.clone(), tally: Tally::default() };
        let mut tx = Tx { sender, held, held_since: 0, held_buffers: 0 };
        tx.count_held();
        Ok(env.boxed_tx(tx))
    }

    fn reclaim(mut self: Box<Self>, local: &Local) {
        self.parcels.drain(..).for_each(|p| p.free(local));
    }
}

/// What a queue counts beside its meter.
#[derive(Default)]
pub struct Tally {
    drops: DropCounts,
    /// Packets dropped so far, and their bytes.
    pub dropped: u64,
    dropped_bytes: u64,
    /// What is to be added to the packets and bytes that were given to the queue: those held back are not sent yet, and
    /// those dropped are not sent at all.
    packets: i64,
    bytes: i64,
    pub doorbells: u64,
    full: u64,
    pub hold: Histogram,
}

impl Tally {
    /// Counts a packet that is not sent.
    #[cold]
    pub fn refuse(&mut self, bytes: u64, reason: DropReason) {
        self.drops.add(reason, 1);
        self.dropped += 1;
        self.dropped_bytes += bytes;
    }
}

/// A transmit queue on its worker.
struct Tx {
    sender: Sender,
    /// Packets held back for a later call.
    held: Batch,
    held_since: u64,
    held_buffers: usize,
}

impl Tx {
    /// Whether what is held has waited long enough.
    fn due(&self, now: u64) -> bool {
        let s = &self.sender.state;
        self.held.len() >= s.doorbell_packets
            || self.held.room() == 0
            || now.saturating_sub(self.held_since) >= s.doorbell_delay
    }

    /// Adds packets to those held back, and sends them if it is time. Returns how many were taken.
    #[inline(never)]
    fn hold_back(&mut self, from: &mut Batch, now: u64) -> usize {
        let had = from.len();
        loop {
            if self.held.is_empty() {
                self.held_since = now;
            }
            let bytes = from.bytes_from(0);
            let moved = from.append_to(&mut self.held);
            let tally = &mut self.sender.tally;
            tally.packets -= moved as i64;
            tally.bytes -= (bytes - from.bytes_from(0)) as i64;
            if !self.due(now) {
                break;
            }
            self.release(now);
            if from.is_empty() || !self.held.is_empty() {
                break;
            }
        }
        self.count_held();
        had - from.len()
    }

    /// Sends what is held.
    fn release(&mut self, now: u64) {
        let (held, sender) = (&mut self.held, &mut self.sender);
        let (bytes, dropped) = (held.bytes_from(0), sender.tally.dropped_bytes);
        let sent = sender.push(held, now.saturating_sub(self.held_since));
        let tally = &mut sender.tally;
        tally.packets += sent as i64;
        tally.bytes += (bytes - held.bytes_from(0)) as i64 - (tally.dropped_bytes - dropped) as i64;
        self.count_held();
    }

    fn count_held(&mut self) {
        let buffers = |p: mem::Pkt<'_>| match p.flags().has(Flags::CHAIN) {
            true => usize::from(p.ext().segments()),
            false => 1,
        };
        self.held_buffers = self.held.iter_mut().map(buffers).sum();
    }
}

impl TxQueue for Tx {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, now: u64) -> usize {
        if from.is_empty() {
            return 0;
        }
        let s = &self.sender.state;
        let at_once = s.doorbell_delay == 0 || from.len() >= s.doorbell_packets;
        let n = if at_once && self.held.is_empty() {
            let dropped = self.sender.tally.dropped_bytes;
            let n = self.sender.push(from, 0);
            let tally = &mut self.sender.tally;
            tally.bytes -= (tally.dropped_bytes - dropped) as i64;
            n
        } else {
            self.hold_back(from, now)
        };
        self.sender.tally.full += u64::from(!from.is_empty());
        n
    }

    #[inline]
    fn flush(&mut self, now: u64, idle: bool) {
        // Also for a queue that sends nothing: sockets of an interface that is gone are not kept.
        self.sender.renew();
        if !self.held.is_empty() && (idle || self.due(now)) {
            self.release(now);
        }
    }

    fn set_doorbell(&mut self, packets: u16, delay: u64) {
        self.sender.state.doorbell_packets = packets.into();
        self.sender.state.doorbell_delay = delay;
    }

    #[inline]
    fn reap(&mut self) -> usize {
        0
    }

    fn inflight(&self) -> usize {
        self.held_buffers
    }

    fn counts(&self, sum: &mut QueueMeter) {
        let t = &self.sender.tally;
        sum.doorbells += t.doorbells;
        sum.full += t.full;
        sum.hold.merge(&t.hold);
        sum.drops.merge(&t.drops);
        sum.packets = sum.packets.saturating_add_signed(t.packets);
        sum.bytes = sum.bytes.saturating_add_signed(t.bytes);
    }

    fn detach(mut self: Box<Self>) -> Box<dyn TxSetup> {
        // Not sent now: this worker's counts were taken, and the next one counts them when they are sent.
        let parcels = &mut self.sender.state.parcels;
        self.held.drain_while(|p| {
            parcels.push(Parcel::from(p));
            Ok(())
        });
        Box::new(self.sender.state)
    }
}
