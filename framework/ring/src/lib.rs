//! Rings: with a device, and between cores.
//!
//! - [`DescRing`] is shared with a device. Owner word first with Acquire, then the body, in one function.
//! - [`spsc`] and [`mpmc`] carry rows between cores, in bulk.
//!
//! Life of a descriptor ring:
//! 1. A driver takes zeroed [`hw::DmaRegion`] memory on the device's node and lays a [`DescRing`] over it.
//! 2. It `store`s entries and rings the doorbell: from there on they are the device's.
//! 3. It `poll`s the entries in order; what is done is its own again.
//! 4. After the device has been reset, the memory goes back (or is quarantined, if the reset failed).
// UNSAFETY: memory that a device or another core writes behind our back.
#![allow(unsafe_code)]

mod desc;

pub use desc::{Completion, DescRing, Pos};

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
