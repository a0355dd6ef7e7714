//! Rings and buffers that a device may still reach: nothing goes back before it has been reset.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mem::{Local, Slot};
use ring::DescRing;

/// Whether a device can still reach what it was given, and what it keeps for ever.
#[derive(Default)]
pub struct Reach {
    /// It has been reset: it has forgotten all rings and buffers.
    reset: AtomicBool,
    /// Bytes of rings that it keeps.
    pub rings: AtomicUsize,
    /// Buffers that it keeps.
    pub buffers: AtomicUsize,
}

impl Reach {
    /// The device has been reset.
    pub fn end(&self) {
        self.reset.store(true, Ordering::Release);
    }
    fn ended(&self) -> bool {
        self.reset.load(Ordering::Acquire)
    }
}

/// A ring, and for each entry the buffer that it gives to the device: the BD shadow ring, 4 bytes an entry.
pub struct Guarded<D: Copy> {
    /// There until dropped.
    pub ring: Option<DescRing<D>>,
    /// By place in the ring.
    pub slots: Box<[Option<Slot>]>,
    reach: Arc<Reach>,
}

impl<D: Copy> Guarded<D> {
    pub fn new(ring: DescRing<D>, reach: &Arc<Reach>) -> Self {
        let slots = (0..ring.size().entries()).map(|_| None).collect();
        Self { ring: Some(ring), slots, reach: Arc::clone(reach) }
    }

    /// Gives the buffers back if the device has been reset; the ring goes the same way when this is dropped.
    pub fn give_back(mut self, local: &Local) {
        if self.reach.ended() {
            local.put_bulk(self.slots.iter_mut().filter_map(Option::take));
        }
    }
}

impl<D: Copy> Drop for Guarded<D> {
    fn drop(&mut self) {
        let buffers = self.slots.iter().filter(|s| s.is_some()).count();
        self.reach.buffers.fetch_add(buffers, Ordering::Relaxed);
        if let Some(ring) = self.ring.take().filter(|_| !self.reach.ended()) {
            let memory = ring.into_memory();
            self.reach.rings.fetch_add(memory.len(), Ordering::Relaxed);
            memory.quarantine();
        }
    }
}
