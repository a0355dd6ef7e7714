//! Counting around a queue.

use mem::Batch;
use meter::{Meter, QueueMeter};

use crate::{RxQueue, RxSetup, TxQueue, TxSetup};

/// A queue with a meter around it. `Metered<Q, ()>` is `Q`.
pub struct Metered<Q, M> {
    /// The queue.
    pub queue: Q,
    /// Its counts.
    pub meter: M,
}

impl<Q: RxQueue, M: Meter> RxQueue for Metered<Q, M> {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let had = out.len();
        let n = self.queue.rx_burst(out);
        if M::ON {
            self.meter.burst(n, out.bytes_from(had));
        }
        n
    }
    fn posted(&self) -> usize {
        self.queue.posted()
    }
    fn counts(&self, sum: &mut QueueMeter) {
        self.meter.add_to(sum);
        self.queue.counts(sum);
    }
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.queue).detach()
    }
}

impl<Q: TxQueue, M: Meter> TxQueue for Metered<Q, M> {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, now: u64) -> usize {
        let before = if M::ON { from.bytes_from(0) } else { 0 };
        let n = self.queue.tx_burst(from, now);
        if M::ON {
            self.meter.burst(n, before - from.bytes_from(0));
        }
        n
    }
    #[inline]
    fn flush(&mut self, now: u64, idle: bool) {
        self.queue.flush(now, idle);
    }
    fn set_doorbell(&mut self, packets: u16, delay: u64) {
        self.queue.set_doorbell(packets, delay);
    }
    #[inline]
    fn reap(&mut self) -> usize {
        self.queue.reap()
    }
    fn inflight(&self) -> usize {
        self.queue.inflight()
    }
    fn counts(&self, sum: &mut QueueMeter) {
        self.meter.add_to(sum);
        self.queue.counts(sum);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(self.queue).detach()
    }
}
