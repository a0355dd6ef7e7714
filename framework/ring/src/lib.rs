//! Rings: with a device, and between cores.
//!
//! - [`DescRing`] is shared with a device. Owner word first with Acquire, then the body, in one function.
//! - [`spsc()`] carries items from one core to another in bulk: a [`Producer`] and a [`Consumer`], one owner each.
//! - [`Mpmc`] does so between many threads, at the price that it states.
//!
//! Life of a descriptor ring:
//! 1. A driver takes zeroed [`hw::DmaRegion`] memory on the device's node and lays a [`DescRing`] over it.
//! 2. It `store`s entries and rings the doorbell: from there on they are the device's.
//! 3. It `poll`s the entries in order; what is done is its own again.
//! 4. After the device has been reset, the memory goes back (or is quarantined, if the reset failed).
//!
//! Life of a ring between cores:
//! 1. The control side makes it with a [`RingSize`]; all its entries can be used.
//! 2. The ends move to their threads. `push` and `pop` take whole bulks and return how many items went through; "full"
//!    and "empty" are counts below what was asked. Items that are no plain copies move one by one, through
//!    [`Producer::reserve`] and [`Consumer::take`], and are published as a bulk all the same.
//! 3. When the producer is gone, the consumer empties the ring; what is left in it then is forgotten.
//!
//! Both rings between cores are checked with loom over their copies, wraps and partial bulks
//! (`RUSTFLAGS="--cfg loom" cargo test -p ringwright-ring --release --test loom`), each ordering also weakened to show
//! that the check sees it. The check does not see more than three threads, more preemptions than its bounds (7 for SPSC, 4
//! for MPMC), prefetches, or [`DescRing`], whose two sides meet under Miri instead.
// UNSAFETY: memory that a device or another core writes behind our back.
#![allow(unsafe_code)]

mod desc;
mod mpmc;
mod slots;
mod spsc;
mod sync;

pub use desc::{Completion, DescRing, Pos};
pub use mpmc::Mpmc;
pub use spsc::{Consumer, Producer, Reserve, Taken, spsc, spsc_at};
#[cfg(loom)]
pub use sync::{Edge, weaken};

/// A power of two from 8 to 32768.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize(u32);

/// Ring errors. Setup only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// Not a power of two from 8 to 32768.
    #[error("a ring of {0} entries: use a power of two from 8 to 32768")]
    BadSize(u32),
    /// The memory does not hold the ring.
    #[error("the ring needs {need} aligned bytes, its memory has {have}")]
    Region {
        /// Bytes the ring takes.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
}

impl TryFrom<u32> for RingSize {
    type Error = RingError;
    fn try_from(n: u32) -> Result<Self, RingError> {
        if n.is_power_of_two() && (8..=32_768).contains(&n) {
            Ok(Self(n))
        } else {
            Err(RingError::BadSize(n))
        }
    }
}

impl RingSize {
    /// Entries.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Entries, as a length.
    pub const fn entries(self) -> usize {
        self.0 as usize
    }
    /// The place of the free-running position `pos`.
    #[inline]
    pub const fn index(self, pos: Pos) -> usize {
        (pos & (self.0 - 1)) as usize
    }
}
