//! A worker's queues, with what the graph keeps beside each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::{Batch, Local};
use meter::{DropCounts, DropReason, Published, QueueMeter};
use port::{RxQueue, TxQueue};

/// What happens to packets that a transmit queue has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// They are dropped, with reason `tx_full`.
    #[default]
    Drop,
    /// They wait, and the worker receives nothing meanwhile. Not for a queue that only this worker's own receiving can
    /// empty, as both ends of a loopback pair: it would wait for itself.
    Wait,
}

/// A receive queue on its worker.
pub struct RxLane {
    /// The port's number.
    pub port: u16,
    /// The queue's number.
    pub id: u16,
    /// The queue.
    pub queue: Box<dyn RxQueue>,
    /// What it counted on workers before this one.
    pub base: QueueMeter,
    /// Where others read its counts.
    pub published: Arc<Published<QueueMeter>>,
}

impl RxLane {
    /// All counts of the queue.
    pub fn counts(&self) -> QueueMeter {
        let mut m = self.base;
        self.queue.counts(&mut m);
        m
    }
}

/// A transmit queue on its worker.
pub struct TxLane {
    /// The port's number.
    pub port: u16,
    /// The queue's number.
    pub id: u16,
    /// The queue.
    pub queue: Box<dyn TxQueue>,
    /// What happens when it is full.
    pub on_full: OnFull,
    /// What it counted on workers before this one.
    pub base: QueueMeter,
    /// Where others read its counts.
    pub published: Arc<Published<QueueMeter>>,
    pending: Batch,
    drops: DropCounts,
    /// Packets that the queue took.
    sent: u64,
    /// Packets that waited and no longer do.
    waited: u64,
}

impl TxLane {
    /// A lane for `queue`.
    pub fn new(
        local: &Local,
        (port, id): (u16, u16),
        queue: Box<dyn TxQueue>,
        on_full: OnFull,
        published: Arc<Published<QueueMeter>>,
    ) -> Self {
        let (base, drops) = (QueueMeter::default(), DropCounts::default());
        Self {
            port,
            id,
            queue,
            on_full,
            base,
            published,
            pending: Batch::new(local),
            drops,
            sent: 0,
            waited: 0,
        }
    }

    /// All counts of the queue and of what was dropped before it.
    pub fn counts(&self) -> QueueMeter {
        let mut m = self.base;
        self.queue.counts(&mut m);
        m.drops.merge(&self.drops);
        m
    }

    /// Packets that wait for room.
    pub const fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Packets that the queue took since it came here, and packets that had to wait before and no longer do: whoever
    /// follows a packet through the lane knows by them how far it is.
    pub const fn progress(&self) -> (u64, u64) {
        (self.sent, self.waited)
    }

    /// Sends a batch; what does not fit is dropped or waits. The batch is empty afterwards.
    #[inline]
    pub(crate) fn send(&mut self, batch: &mut Batch, now: u64, abort: &AtomicBool) {
        if self.pending.is_empty() {
            self.sent += self.queue.tx_burst(batch, now) as u64;
        }
        if !batch.is_empty() {
            self.full(batch, now, abort);
        }
    }

    #[cold]
    fn full(&mut self, batch: &mut Batch, now: u64, abort: &AtomicBool) {
        // Sent packets may only wait to be reaped.
        if self.pending.is_empty() && self.queue.reap() > 0 {
            self.sent += self.queue.tx_burst(batch, now) as u64;
        }
        match self.on_full {
            OnFull::Drop => {
                batch.drop_all(DropReason::TxFull, &mut self.drops);
            }
            OnFull::Wait => {
                while batch.append_to(&mut self.pending) > 0 && !batch.is_empty() {
                    self.retry(now);
                }
                if !batch.is_empty() {
                    // 64 wait already and more come: a stage multiplied them. Only here does the worker itself wait.
                    self.wait_for_room(batch, now, abort);
                }
            }
        }
    }

    #[cold]
    fn wait_for_room(&mut self, batch: &mut Batch, now: u64, abort: &AtomicBool) {
        while !batch.is_empty() {
            self.retry(now);
            self.queue.flush(now, true);
            batch.append_to(&mut self.pending);
            if abort.load(Ordering::Relaxed) {
                batch.drop_all(DropReason::Stopping, &mut self.drops);
            }
            core::hint::spin_loop();
        }
    }

    /// Tries to send what waits. True if nothing waits any more.
    #[inline]
    pub fn retry(&mut self, now: u64) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        let waiting = self.pending.len();
        self.queue.reap();
        self.sent += self.queue.tx_burst(&mut self.pending, now) as u64;
        self.waited += (waiting - self.pending.len()) as u64;
        self.pending.is_empty()
    }

    /// Drops what waits: the runtime stops, or the queue leaves.
    pub fn give_up(&mut self, reason: DropReason) -> usize {
        let n = self.pending.drop_all(reason, &mut self.drops);
        self.waited += n as u64;
        n
    }
}
