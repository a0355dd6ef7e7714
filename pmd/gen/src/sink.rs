//! The transmit side: what comes here is checked and freed.

use mem::{Batch, Local};
use meter::QueueMeter;
use port::{PortError, TxQueue, TxSetup, WorkerEnv};

use crate::check::Checker;

/// A transmit queue, on its worker or on its way to one.
pub struct Sink(pub Checker);

impl TxSetup for Sink {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        Ok(env.boxed_tx(*self))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

impl TxQueue for Sink {
    /// Time is looked up anew: the breath's is from before frames were made in it.
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        if from.is_empty() {
            return 0;
        }
        self.0.check(from, hw::cycles());
        from.free_sent()
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        self
    }
}
