//! How many buffers a configuration can hold at once.

use core::fmt;

use port::PortConfig;

use crate::plan::{HANDOFF_RING, Shape, ways};
use crate::{Role, WorkerPlan};

/// Places in batches that one stage or one queue of a worker can fill.
const INBOX: usize = mem::BURST;

/// The most buffers that rings, hand-offs, magazines and inboxes can hold, against what the pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySum {
    /// Receive descriptors of all queues.
    pub rx_rings: usize,
    /// Transmit descriptors of all queues.
    pub tx_rings: usize,
    /// Places in rings between workers.
    pub handoffs: usize,
    /// Slots in all workers' magazines.
    pub magazines: usize,
    /// Places in all workers' batches.
    pub inboxes: usize,
    /// Buffers in the pool.
    pub buffers: usize,
}

impl MemorySum {
    /// What `plans` over `ports` can hold, against `buffers` in so many `pools`.
    pub fn of(ports: &[PortConfig], plans: &[WorkerPlan], pools: usize, buffers: usize) -> Self {
        let shapes: Vec<Shape> = plans.iter().map(Shape::from).collect();
        Self::of_shapes(ports.iter(), &shapes, pools, buffers)
    }

    pub(crate) fn of_shapes<'c>(
        ports: impl Iterator<Item = &'c PortConfig> + Clone,
        shapes: &[Shape],
        pools: usize,
        buffers: usize,
    ) -> Self {
        let rings = |entries: fn(&PortConfig) -> usize| {
            ports.clone().map(|c| usize::from(c.queues) * entries(c)).sum()
        };
        let ways = ways(shapes);
        // A stage holds at most one copy of each packet for each transmit queue, and each queue those that wait.
        let inbox = |(i, s): (usize, &Shape)| {
            let links = ways.iter().filter(|w| w.from == i && w.port.is_some()).count();
            let tx = if s.role == Role::Rx { 1 } else { s.tx.len() + links };
            INBOX * (1 + s.stages * (1 + tx) + tx)
        };
        Self {
            rx_rings: rings(|c| c.rx_ring.entries()),
            tx_rings: rings(|c| c.tx_ring.entries()),
            handoffs: ways.len() * HANDOFF_RING as usize,
            magazines: shapes.len() * pools * 2 * mem::BURST,
            inboxes: shapes.iter().enumerate().map(inbox).sum(),
            buffers,
        }
    }

    /// Buffers that are needed.
    pub const fn need(&self) -> usize {
        self.rx_rings + self.tx_rings + self.handoffs + self.magazines + self.inboxes
    }
    /// Whether the pool has them.
    pub const fn fits(&self) -> bool {
        self.need() <= self.buffers
    }
}

impl fmt::Display for MemorySum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rx_rings, tx_rings, handoffs, magazines, inboxes, buffers } = self;
        let need = self.need();
        write!(f, "rx rings {rx_rings} + tx rings {tx_rings}")?;
        if *handoffs > 0 {
            write!(f, " + hand-offs {handoffs}")?;
        }
        write!(f, " + magazines {magazines} + inboxes {inboxes} = {need} buffers; the pool has {buffers}")?;
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
        let s = MemorySum {
            rx_rings: 2048,
            tx_rings: 2048,
            handoffs: 0,
            magazines: 128,
            inboxes: 256,
            buffers: 1024,
        };
        assert_eq!(
            s.to_string(),
            "rx rings 2048 + tx rings 2048 + magazines 128 + inboxes 256 = 4480 buffers; the pool has 1024: \
             set [memory] buffers = 4480 or more, or use smaller rings"
        );
        assert!(MemorySum { buffers: 4480, ..s }.fits());
        let s = MemorySum { handoffs: 512, ..s }.to_string();
        assert!(s.starts_with("rx rings 2048 + tx rings 2048 + hand-offs 512 + magazines 128"), "{s}");
    }

    #[test]
    fn a_pipeline_counts_its_rings_and_what_waits_before_them() {
        let plan = |role, tx: &[(u16, u16)], stages| WorkerPlan {
            role,
            tx: tx.to_vec(),
            stages,
            ..WorkerPlan::default()
        };
        let plans = [
            plan(Role::Rx, &[], 0),
            plan(Role::Process, &[], 2),
            plan(Role::Process, &[], 2),
            plan(Role::Tx, &[(0, 0), (1, 0)], 0),
        ];
        let ports = [PortConfig::new(0), PortConfig::new(1)];
        let s = MemorySum::of(&ports, &plans, 1, 16_384);
        assert_eq!((s.rx_rings, s.tx_rings, s.handoffs), (2048, 2048, (2 + 4) * 512));
        assert_eq!(s.magazines, 4 * 128);
        assert_eq!(s.inboxes, 64 * (2 + 2 * (1 + 2 * 3 + 2) + 3));
        assert!(s.fits() && !MemorySum::of(&ports, &plans, 1, s.need() - 1).fits());
    }
}
