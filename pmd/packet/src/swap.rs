//! How the control side hands new rings to a queue that is on its worker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// A mailbox from the control side to one queue. Looking into an empty one is a load of a line that nobody writes.
pub struct Swap<T> {
    waiting: AtomicBool,
    next: Mutex<VecDeque<T>>,
}

impl<T> Swap<T> {
    /// Empty.
    pub fn new() -> Self {
        Self { waiting: AtomicBool::new(false), next: Mutex::default() }
    }

    /// Leaves something for the queue.
    pub fn post(&self, item: T) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).push_back(item);
        self.waiting.store(true, Ordering::Relaxed);
    }

    /// Takes what was left, the oldest first. What is seen a breath later is early enough.
    #[inline]
    pub fn take(&self) -> Option<T> {
        if self.waiting.load(Ordering::Relaxed) { self.fetch() } else { None }
    }

    #[cold]
    fn fetch(&self) -> Option<T> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let item = next.pop_front();
        self.waiting.store(!next.is_empty(), Ordering::Relaxed);
        item
    }
}

/// What the control side knows of the interface, for the queues: each load is of a line that is hardly ever written.
pub struct Known {
    /// Frames can pass.
    pub up: AtomicBool,
    /// Longest network packet in bytes.
    pub mtu: AtomicU32,
    /// Receiving has ended: what is there is all there will be.
    pub off: AtomicBool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_come_out_in_the_order_they_were_left_in() {
        let swap = Swap::new();
        assert_eq!(swap.take(), None);
        swap.post(1);
        swap.post(2);
        assert_eq!([swap.take(), swap.take(), swap.take()], [Some(1), Some(2), None]);
    }
}
