//! Queues of a port that does not read, or does not write.

use mem::{Batch, Local};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, RxQueue, RxSetup, TxQueue, TxSetup, WorkerEnv};

/// A receive queue by which nothing comes: all frames of a capture come by the first.
pub struct Nothing;

impl RxSetup for Nothing {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        Ok(env.boxed_rx(Self))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

impl RxQueue for Nothing {
    fn rx_burst(&mut self, _: &mut Batch) -> usize {
        0
    }
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        self
    }
}

/// The transmit queue of a port that only reads: there is no way out.
pub struct Nowhere;

impl TxSetup for Nowhere {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(NowhereTx { drops: DropCounts::default(), bytes: 0 }))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct NowhereTx {
    drops: DropCounts,
    bytes: u64,
}

impl TxQueue for NowhereTx {
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        self.bytes += from.bytes_from(0);
        from.drop_all(DropReason::NoRoute, &mut self.drops);
        0
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        sum.drops.merge(&self.drops);
        sum.bytes = sum.bytes.saturating_sub(self.bytes);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(Nowhere)
    }
}
