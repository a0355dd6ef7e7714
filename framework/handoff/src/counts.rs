//! What passes through one ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use meter::{DropCounts, DropReason};
use ring::RingSize;

/// Written by the sender only.
#[derive(Default)]
#[repr(align(128))]
struct SentLine {
    packets: AtomicU64,
    full: AtomicU64,
}

/// Written by the receiver only.
#[derive(Default)]
#[repr(align(128))]
struct TakenLine {
    packets: AtomicU64,
    stopping: AtomicU64,
}

/// Each count has one writer, on a line of its own, and is stored once per burst.
#[derive(Default)]
pub struct Counts {
    sent: SentLine,
    taken: TakenLine,
}

/// How a hand-off goes, for the control side.
#[derive(Clone)]
pub struct View {
    counts: Arc<Counts>,
    size: RingSize,
}

impl View {
    pub(crate) const fn new(counts: Arc<Counts>, size: RingSize) -> Self {
        Self { counts, size }
    }
    /// Packets that went in.
    pub fn sent(&self) -> u64 {
        self.counts.sent.packets.load(Ordering::Relaxed)
    }
    /// Packets that came out, or were freed when the ring ended.
    pub fn taken(&self) -> u64 {
        let taken = &self.counts.taken;
        // With the store in `Taken::add`: whoever sees a packet come out sees that it went in.
        taken.packets.load(Ordering::Acquire) + taken.stopping.load(Ordering::Acquire)
    }
    /// Packets in the ring. Exact while neither end moves.
    pub fn held(&self) -> u64 {
        let taken = self.taken();
        self.sent() - taken
    }
    /// Packets that the ring holds when full.
    pub const fn capacity(&self) -> usize {
        self.size.entries()
    }
    /// Packets dropped: for want of room, and those that were left when the ring ended.
    pub fn drops(&self) -> DropCounts {
        let mut drops = DropCounts::default();
        drops.add(DropReason::HandoffFull, self.counts.sent.full.load(Ordering::Relaxed));
        drops.add(DropReason::Stopping, self.counts.taken.stopping.load(Ordering::Relaxed));
        drops
    }
}

/// The sender's own counts, and where others read them.
pub struct Sent {
    packets: u64,
    full: u64,
    counts: Arc<Counts>,
}

impl Sent {
    pub fn new(counts: &Arc<Counts>) -> Self {
        Self { packets: 0, full: 0, counts: Arc::clone(counts) }
    }
    /// `n` packets go in: to be said before they can come out.
    #[inline]
    pub fn add(&mut self, n: usize) {
        self.packets += n as u64;
        self.counts.sent.packets.store(self.packets, Ordering::Relaxed);
    }
    /// `n` packets found no room and were dropped.
    #[cold]
    pub fn refuse(&mut self, n: usize) {
        self.full += n as u64;
        self.counts.sent.full.store(self.full, Ordering::Relaxed);
    }
    /// All so far: sent, dropped.
    pub const fn so_far(&self) -> (u64, u64) {
        (self.packets, self.full)
    }
}

/// The receiver's own count, and where others read it.
pub struct Taken {
    packets: u64,
    counts: Arc<Counts>,
}

impl Taken {
    pub fn new(counts: &Arc<Counts>) -> Self {
        Self { packets: 0, counts: Arc::clone(counts) }
    }
    /// `n` packets came out.
    #[inline]
    pub fn add(&mut self, n: usize) {
        self.packets += n as u64;
        self.counts.taken.packets.store(self.packets, Ordering::Release);
    }
    /// `n` packets were left when the ring ended.
    pub fn stop(&self, n: u64) {
        let stopping = &self.counts.taken.stopping;
        stopping.store(stopping.load(Ordering::Relaxed) + n, Ordering::Release);
    }
    pub const fn so_far(&self) -> u64 {
        self.packets
    }
}
