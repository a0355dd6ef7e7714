//! The one list of everything that counts.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Published, QueueMeter, StageMeter, WorkerMeter};

/// Which way a queue goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the device.
    Rx,
    /// To the device.
    Tx,
}

impl Direction {
    /// As in status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
        }
    }
}

struct Entry<K, M> {
    key: K,
    block: Arc<Published<M>>,
}

type Table<K, M> = Mutex<Vec<Entry<K, M>>>;

fn add<K, M>(table: &Table<K, M>, key: K) -> Arc<Published<M>>
where
    Published<M>: Default,
{
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    let block = Arc::new(Published::default());
    table.push(Entry { key, block: Arc::clone(&block) });
    block
}

fn rows<K, M>(table: &Table<K, M>) -> Vec<(K, M)>
where
    K: Clone,
    M: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable,
{
    let table = table.lock().unwrap_or_else(PoisonError::into_inner);
    table.iter().map(|e| (e.key.clone(), e.block.read())).collect()
}

/// A queue's name and counts.
pub type QueueRow = ((Arc<str>, u16, Direction), QueueMeter);
/// A worker's number and counts.
pub type WorkerRow = (usize, WorkerMeter);
/// A stage's worker, name and kind, and its counts.
pub type StageRow = ((usize, Arc<str>, &'static str), StageMeter);

/// Everything that counts in one runtime.
#[derive(Default)]
pub struct Registry {
    queues: Table<(Arc<str>, u16, Direction), QueueMeter>,
    workers: Table<usize, WorkerMeter>,
    stages: Table<(usize, Arc<str>, &'static str), StageMeter>,
}

/// What all meters said when they were last published.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Queues, in the order they were added.
    pub queues: Vec<QueueRow>,
    /// Workers.
    pub workers: Vec<WorkerRow>,
    /// Stages.
    pub stages: Vec<StageRow>,
}

impl Registry {
    /// A place for the counts of one queue of `port`.
    pub fn queue(&self, port: Arc<str>, queue: u16, direction: Direction) -> Arc<Published<QueueMeter>> {
        add(&self.queues, (port, queue, direction))
    }
    /// A place for the counts of worker `id`.
    pub fn worker(&self, id: usize) -> Arc<Published<WorkerMeter>> {
        add(&self.workers, id)
    }
    /// A place for the counts of a stage on worker `id`.
    pub fn stage(&self, id: usize, name: Arc<str>, kind: &'static str) -> Arc<Published<StageMeter>> {
        add(&self.stages, (id, name, kind))
    }
    /// All counts.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { queues: rows(&self.queues), workers: rows(&self.workers), stages: rows(&self.stages) }
    }
}

impl Snapshot {
    /// Sums of a port's queues in one direction.
    pub fn port(&self, name: &str, direction: Direction) -> QueueMeter {
        let mut sum = QueueMeter::default();
        for (_, m) in self.queues.iter().filter(|((p, _, d), _)| &**p == name && *d == direction) {
            sum.merge(m);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Meter;

    #[test]
    fn every_view_reads_the_same_blocks() {
        let r = Registry::default();
        let (p0, p1): (Arc<str>, Arc<str>) = ("p0".into(), "p1".into());
        let a = r.queue(Arc::clone(&p0), 0, Direction::Rx);
        let b = r.queue(p0, 1, Direction::Rx);
        r.queue(p1, 0, Direction::Rx);
        let mut m = QueueMeter::default();
        m.burst(5, 300);
        a.publish(&m);
        b.publish(&m);
        let s = r.snapshot();
        assert_eq!(s.queues.len(), 3);
        assert_eq!((s.port("p0", Direction::Rx).packets, s.port("p1", Direction::Rx).packets), (10, 0));
        assert_eq!(s.port("p0", Direction::Tx).packets, 0);
    }
}
