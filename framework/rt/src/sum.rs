//! How many buffers a configuration can hold at once.

use core::fmt;

use port::PortConfig;

use crate::WorkerPlan;

/// Places in batches that one stage or one queue of a worker can fill.
const INBOX: usize = mem::BURST;

/// The most buffers that rings, magazines and inboxes can hold, against what the pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySum {
    /// Receive descriptors of all queues.
    pub rx_rings: usize,
    /// Transmit descriptors of all queues.
    pub tx_rings: usize,
    /// Slots in all workers' magazines.
    pub magazines: usize,
    /// Places in all workers' batches.
    pub inboxes: usize,
    /// Buffers in the pool.
    pub buffers: usize,
}

impl MemorySum {
    /// The most buffers that `ports` and workers can hold, of `buffers` in `pools`. A stage holds at most one copy of each
    /// packet for each transmit queue.
    pub fn of(ports: &[PortConfig], plans: &[WorkerPlan], pools: usize, buffers: usize) -> Self {
        let rings = |entries: fn(&PortConfig) -> usize| {
            ports.iter().map(|p| usize::from(p.queues) * entries(p)).sum()
        };
        Self {
            rx_rings: rings(|c| c.rx_ring.entries()),
            tx_rings: rings(|c| c.tx_ring.entries()),
            magazines: plans.len() * pools * 2 * mem::BURST,
            inboxes: plans.iter().map(|p| INBOX * (1 + p.stages * (1 + p.tx.len()) + p.tx.len())).sum(),
            buffers,
        }
    }
    /// Buffers that are needed.
    pub const fn need(&self) -> usize {
        self.rx_rings + self.tx_rings + self.magazines + self.inboxes
    }
    /// Whether the pool has them.
    pub const fn fits(&self) -> bool {
        self.need() <= self.buffers
    }
}

impl fmt::Display for MemorySum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rx_rings, tx_rings, magazines, inboxes, buffers } = self;
        let need = self.need();
        write!(
            f,
            "rx rings {rx_rings} + tx rings {tx_rings} + magazines {magazines} + inboxes {inboxes} = {need} buffers; \
             the pool has {buffers}"
        )?;
        if !self.fits() {
            write!(f, ": set [memory] buffers = {need} or more, or use smaller rings")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_shown_and_says_what_would_do() {
        let s = MemorySum { rx_rings: 2048, tx_rings: 2048, magazines: 128, inboxes: 256, buffers: 1024 };
        assert_eq!(
            s.to_string(),
            "rx rings 2048 + tx rings 2048 + magazines 128 + inboxes 256 = 4480 buffers; the pool has 1024: \
             set [memory] buffers = 4480 or more, or use smaller rings"
        );
        assert!(MemorySum { buffers: 4480, ..s }.fits());
    }
}
