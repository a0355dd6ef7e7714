//! The transmit side: packets go to the thread that writes, and come back to be freed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mem::{Batch, Flags, Local, Outgoing};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, TxQueue, TxSetup, WorkerEnv};

use crate::finish::{WISHES, check};
use crate::read::MAX_FRAME;
use crate::writer::{Fate, Lane, TxShared};

/// Packets, with their buffers and bytes.
#[derive(Clone, Copy, Default)]
struct Amount {
    packets: u64,
    buffers: usize,
    bytes: u64,
}

/// The queue on its way.
pub struct TxState {
    lane: Arc<Lane>,
    shared: Arc<TxShared>,
    /// With the writer, or back from it and not yet reaped.
    inflight: Amount,
    /// Most buffers in flight.
    entries: usize,
}

impl TxState {
    pub fn new(lane: Arc<Lane>, shared: Arc<TxShared>) -> Self {
        let entries = lane.to_write.capacity();
        Self { lane, shared, inflight: Amount::default(), entries }
    }
}

impl TxSetup for TxState {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(Tx {
            carried: self.inflight,
            state: *self,
            local: env.local.clone(),
            metered: env.metered,
            lost: Amount::default(),
            drops: DropCounts::default(),
            refused_bytes: 0,
            full: 0,
        }))
    }
    /// The writer has ended.
    fn reclaim(self: Box<Self>, local: &Local) {
        while let Some(parcel) = self.lane.to_write.pop() {
            parcel.free(local);
        }
        while let Some((parcel, _)) = self.lane.done.pop() {
            parcel.free(local);
        }
    }
}

struct Tx {
    state: TxState,
    local: Local,
    metered: bool,
    /// In flight when the queue was attached.
    carried: Amount,
    /// Handed over, and not written.
    lost: Amount,
    drops: DropCounts,
    /// Bytes of packets that were not handed over.
    refused_bytes: u64,
    full: u64,
}

/// What a packet takes.
#[inline]
fn amount(p: &Outgoing, local: &Local) -> Amount {
    Amount { packets: 1, buffers: p.segments(local), bytes: p.total_len(local).into() }
}

impl Tx {
    /// Why a packet cannot be written, if it cannot.
    #[inline]
    fn wrong(p: &Outgoing, local: &Local, bytes: u64) -> Option<DropReason> {
        if bytes > MAX_FRAME.into() {
            return Some(DropReason::TooLong);
        }
        if !p.flags().has(WISHES) {
            return None;
        }
        check(p.flags(), &p.ext(local), bytes as u32).err()
    }

    #[cold]
    fn refuse_all(&mut self, from: &mut Batch) -> usize {
        self.refused_bytes += from.bytes_from(0);
        from.drop_all(DropReason::LinkDown, &mut self.drops);
        0
    }
}

impl TxQueue for Tx {
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        if self.state.shared.failed.load(Ordering::Relaxed) {
            return self.refuse_all(from);
        }
        let Self { state, local, drops, refused_bytes, .. } = self;
        let TxState { lane, inflight, entries, .. } = state;
        let mut refused = 0;
        let n = from.drain_while(|p| {
            let a = amount(&p, local);
            if let Some(reason) = Self::wrong(&p, local, a.bytes) {
                drops.add(reason, 1);
                (*refused_bytes, refused) = (*refused_bytes + a.bytes, refused + 1);
                p.free(local);
                return Ok(());
            }
            // A frame of more buffers than the ring has places goes when it is alone.
            if inflight.buffers > 0 && inflight.buffers + a.buffers > *entries {
                return Err(p);
            }
            lane.to_write.push(p.into()).map_err(Outgoing::from)?;
            inflight.packets += 1;
            inflight.buffers += a.buffers;
            inflight.bytes += a.bytes;
            Ok(())
        });
        self.full += u64::from(!from.is_empty());
        n - refused
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}

    fn reap(&mut self) -> usize {
        let Self { state, local, lost, drops, .. } = self;
        let inflight = &mut state.inflight;
        let before = inflight.buffers;
        while let Some((parcel, fate)) = state.lane.done.pop() {
            let p = Outgoing::from(parcel);
            let a = amount(&p, local);
            p.free(local);
            inflight.packets -= 1;
            inflight.buffers -= a.buffers;
            inflight.bytes -= a.bytes;
            if let Fate::Lost(reason) = fate {
                drops.add(reason, 1);
                (lost.packets, lost.bytes) = (lost.packets + 1, lost.bytes + a.bytes);
            }
        }
        before - inflight.buffers
    }
    fn inflight(&self) -> usize {
        self.state.inflight.buffers
    }
    /// Packets are counted when they are in the file, so that a full disk takes none back.
    fn counts(&self, sum: &mut QueueMeter) {
        sum.full += self.full;
        sum.drops.merge(&self.drops);
        if !self.metered {
            return;
        }
        // The meter around this queue counted what was handed over, less what went already into its packets, since it
        // was attached; its bytes are those of refused packets as well.
        let (now, was, lost) = (&self.state.inflight, &self.carried, &self.lost);
        sum.packets = sum.packets.wrapping_add(was.packets).wrapping_sub(now.packets + lost.packets);
        sum.bytes =
            sum.bytes.wrapping_add(was.bytes).wrapping_sub(now.bytes + lost.bytes + self.refused_bytes);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        self.state.lane.held.store(self.state.inflight.buffers, Ordering::Relaxed);
        Box::new(self.state)
    }
}

const _: () = assert!(Flags::CHAIN.0 & WISHES.0 == 0, "a long frame alone is written as it is");
