//! From many threads to many, in bulk.

use core::mem::MaybeUninit;
use std::sync::Arc;

use crate::slots::Slots;
use crate::sync::{AtomicU64, Edge, Line, Ordering, edge, wait};
use crate::{Pos, RingSize};

/// The positions of one side. Slots between `tail` and `head` are claimed by a thread that still copies.
///
/// 64 bits wide, so that they never come round: a thread that sleeps between its look and its claim cannot take an old
/// position for a new one.
///
/// A line each: the other side looks at `tail` all the time, and would take `head` away from the next claim with it.
#[repr(C)]
struct Side {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
}

#[repr(C)]
struct Shared<T> {
    producers: Side,
    consumers: Side,
    slots: Line<Slots<T>>,
}
const _: () = assert!(align_of::<Shared<u64>>() == 128 && size_of::<Shared<u64>>() == 5 * 128);

/// A handle to a ring that any number of threads fill and empty; all its entries can be used.
///
/// A thread claims a run of slots by one compare-and-swap, copies, and publishes when those that claimed before it have:
/// items of one `push` stay together and in order, and one `pop` takes a run of them.
///
/// Limits:
/// - **Not lock-free.** A thread that is preempted between claim and publication holds back all that claimed after it on
///   its side (and the other side sees nothing newer) until it runs again. They pause, then yield their core; with
///   real-time priorities on one core that may not be enough. Give each thread its own core.
/// - Each bulk costs an atomic read-modify-write and reads the other side's line: with one producer and one consumer,
///   [`spsc()`](crate::spsc()) is the faster ring.
/// - Items in the ring when the last handle goes are forgotten.
pub struct Mpmc<T> {
    shared: Arc<Shared<T>>,
    size: RingSize,
}

impl<T> Clone for Mpmc<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), size: self.size }
    }
}

/// A run of slots that one thread owns until it publishes.
struct Claim {
    at: u64,
    n: usize,
}

impl Side {
    fn at(start: u64) -> Self {
        Self { head: Line(AtomicU64::new(start)), tail: Line(AtomicU64::new(start)) }
    }

    /// Claims up to `want` slots of those that `other` has published, which is `lead` ahead of its tail.
    #[inline]
    fn claim(&self, other: &Self, lead: u64, want: usize) -> Option<Claim> {
        let mut at = self.head.0.load(edge(Edge::MpmcHead, Ordering::Acquire));
        loop {
            // Whoever moved `head` to `at` had seen the tail that allowed it, and so do we: its claim released, our
            // look acquired. An older tail would make this difference negative, that is, huge. A newer tail than
            // `at` can belong to makes it too large, but then `head` has moved and the claim fails.
            let limit = other.tail.0.load(edge(Edge::MpmcOther, Ordering::Acquire)).wrapping_add(lead);
            let n = want.min(limit.wrapping_sub(at) as usize);
            if n == 0 {
                return None;
            }
            let next = at.wrapping_add(n as u64);
            let claim = edge(Edge::MpmcClaim, Ordering::Release);
            let again = edge(Edge::MpmcHead, Ordering::Acquire);
            match self.head.0.compare_exchange_weak(at, next, claim, again) {
                Ok(_) => return Some(Claim { at, n }),
                Err(moved) => at = moved,
            }
        }
    }

    /// Publishes `claim`, after all that were made before it.
    #[inline]
    fn publish(&self, claim: Claim) {
        let mut spins = 0;
        // Acquire: our store takes over the place of theirs, so it must hand on what they did as well.
        while self.tail.0.load(edge(Edge::MpmcTurn, Ordering::Acquire)) != claim.at {
            wait(&mut spins);
        }
        let next = claim.at.wrapping_add(claim.n as u64);
        self.tail.0.store(next, edge(Edge::MpmcPublish, Ordering::Release));
    }
}

impl<T: Copy + Send> Mpmc<T> {
    /// An empty ring of `size` items.
    pub fn new(size: RingSize) -> Self {
        Self::new_at(size, 0)
    }

    /// As [`new`](Self::new), with all positions at `start`: to test what happens late in a ring's life.
    #[doc(hidden)]
    pub fn new_at(size: RingSize, start: u64) -> Self {
        let (producers, consumers) = (Side::at(start), Side::at(start));
        Self { shared: Arc::new(Shared { producers, consumers, slots: Line(Slots::new(size)) }), size }
    }

    /// Copies in as many of `items` as fit, from the front and side by side. Returns how many.
    #[inline]
    pub fn push(&self, items: &[T]) -> usize {
        let Shared { producers, consumers, slots } = &*self.shared;
        let Some(claim) = producers.claim(consumers, self.size.get().into(), items.len()) else {
            return 0;
        };
        let n = claim.n;
        // SAFETY: consumers have left these slots (Acquire of their tail), and no other producer can claim them
        // before consumers have passed them again.
        unsafe { slots.0.write(claim.at as Pos, &items[..n]) };
        producers.publish(claim);
        n
    }

    /// Moves the oldest items to the front of `out`, as many as there are and fit. Returns how many: that many
    /// elements of `out` are initialised.
    #[inline]
    pub fn pop(&self, out: &mut [MaybeUninit<T>]) -> usize {
        let Shared { producers, consumers, slots } = &*self.shared;
        let Some(claim) = consumers.claim(producers, 0, out.len()) else { return 0 };
        let n = claim.n;
        // SAFETY: producers have published these slots (Acquire of their tail), and no producer comes back to them
        // before `publish` below; no other consumer can claim them.
        unsafe { slots.0.read(claim.at as Pos, &mut out[..n]) };
        consumers.publish(claim);
        n
    }

    /// As [`pop`](Self::pop), over elements that hold something already.
    #[inline]
    pub fn pop_slice(&self, out: &mut [T]) -> usize {
        self.pop(crate::slots::as_uninit(out))
    }

    /// Items that wait, published and not yet claimed, give or take what others do meanwhile.
    #[inline]
    pub fn len(&self) -> usize {
        let taken = self.shared.consumers.head.0.load(Ordering::Acquire);
        let there = self.shared.producers.tail.0.load(Ordering::Acquire);
        (there.wrapping_sub(taken) as usize).min(self.capacity())
    }

    /// True if no item waits, give or take what others do meanwhile.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that fit, give or take what others do meanwhile.
    #[inline]
    pub fn room(&self) -> usize {
        let claimed = self.shared.producers.head.0.load(Ordering::Acquire);
        let left = self.shared.consumers.tail.0.load(Ordering::Acquire).wrapping_add(self.size.get().into());
        (left.wrapping_sub(claimed) as usize).min(self.capacity())
    }

    /// Items that the ring holds when full.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.size.entries()
    }
}
