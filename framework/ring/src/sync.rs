//! Atomics, or loom's model of them, and the names of the orderings that a check can weaken.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
mod loom;
#[cfg(loom)]
pub use self::loom::weaken;
#[cfg(loom)]
pub(crate) use self::loom::{AtomicU32, AtomicU64, Ordering, edge, wait};

/// Alone on its cache line, and on the line that the adjacent-line prefetcher would bring along.
#[repr(align(128))]
pub(crate) struct Line<T>(pub(crate) T);

/// One step of a wait for another thread: pauses at first, then lets others run on this core, perhaps that one.
#[cfg(not(loom))]
#[cold]
pub(crate) fn wait(steps: &mut u32) {
    *steps = steps.saturating_add(1);
    if *steps < 256 { core::hint::spin_loop() } else { std::thread::yield_now() }
}

/// An ordering that a ring between cores depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// SPSC: the producer makes items visible (Release).
    SpscPublish,
    /// SPSC: the consumer sees items (Acquire).
    SpscObserve,
    /// SPSC: the consumer gives slots back (Release).
    SpscFree,
    /// SPSC: the producer sees free slots (Acquire).
    SpscRoom,
    /// MPMC: a claim passes on what the claimer knew of the other side (Release).
    MpmcClaim,
    /// MPMC: the next claimer learns it (Acquire).
    MpmcHead,
    /// MPMC: a claimer sees what the other side published (Acquire).
    MpmcOther,
    /// MPMC: a claimer takes over what those before it wrote or read (Acquire).
    MpmcTurn,
    /// MPMC: and publishes it with its own (Release).
    MpmcPublish,
}

/// The ordering of `edge`, which is `is` unless a model check has weakened that edge.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn edge(_edge: Edge, is: Ordering) -> Ordering {
    is
}
