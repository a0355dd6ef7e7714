//! Packet memory: pools shared by all, caches owned by one worker, batches that own their packets.
//!
//! - [`Memory`] is a runtime's packet memory: one window of addresses, [`Pool`]s of buffers in it, one [`Layout`].
//! - [`Local`] is a worker's way to it: two magazines of 64 slots per pool, exchanged whole with the pool's depot.
//! - [`Slot`] is one buffer, by number; [`Batch`] owns up to 64 packets; [`PacketBuf`] owns one, off the fast path.
//! - [`Ext`] holds what few packets need; [`Chain`] joins buffers to a frame longer than one.
//!
//! Life of a buffer: it is always in exactly one of six places, and a census over them equals the capacity:
//! 1. in a pool (magazine or depot), from where a driver takes it to
//! 2. post it to a device; the device fills it and the driver moves it
//! 3. into a batch, and stages work on it; perhaps it passes
//! 4. a hand-off ring to another worker, or waits as
//! 5. a [`PacketBuf`]; a driver sends it and it is
//! 6. in flight until the driver reaps it, back to 1.
//!
//! The unit of ownership is the batch, not the packet: nothing runs per packet when many are freed. A batch that is
//! dropped with packets in it frees them, and counts them as lost ([`Local::lost`]): that is always a fault. To drop
//! packets on purpose takes a [`meter::DropReason`]. What frees without one ([`Batch::free_sent`], [`PacketBuf::consume`],
//! [`Outgoing::free`], [`Parcel::free`]) is for packets that its caller has counted; one that was not shows as unexplained.
//!
//! ```compile_fail,E0599
//! fn forget(batch: &mut ringwright_mem::Batch) { batch.clear() }
//! ```
//! ```compile_fail,E0061
//! fn silently(batch: &mut ringwright_mem::Batch, drops: &mut ringwright_meter::DropCounts) { batch.drop_all(drops) }
//! ```
//!
//! Limits: no reference counts (a multicast copies); a batch and what it holds stay on their worker.
// UNSAFETY: turns slot numbers into slices of the window, and moves rows between uninitialised places. That a slot comes
// back to the memory it was taken from is the drivers' part: a number cannot tell. Debug builds check that it is in a pool.
#![allow(unsafe_code)]

mod batch;
mod chain;
mod ext;
mod local;
mod magazine;
mod packet;
mod pool;
mod row;

pub use batch::Batch;
pub use chain::Chain;
pub use ext::Ext;
pub use local::{Local, Slots};
pub use packet::{PacketBuf, Pkt, Segments};
pub use pool::{Layout, Memory, Pool, PoolId};
pub use row::{Flags, Meta, Outgoing, Parcel, Slot};

/// Most packets in a batch.
pub const BURST: usize = 64;
/// Most buffers in one frame.
pub const MAX_SEGMENTS: usize = 64;

/// Memory errors. Setup only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemError {
    /// A buffer that cannot be.
    #[error(
        "buffers of {stride} bytes with {headroom} of headroom: use a multiple of 64 up to 16384, larger than the headroom"
    )]
    BadLayout {
        /// Bytes from one buffer to the next.
        stride: usize,
        /// Bytes before the frame.
        headroom: usize,
    },
    /// More than 64 pools.
    #[error("a runtime has at most 64 pools; let ports on one node share theirs")]
    TooManyPools,
    /// A pool must have buffers.
    #[error("a pool of {asked} buffers: use 64 to {most}")]
    BadCapacity {
        /// Buffers asked for.
        asked: usize,
        /// Most there may be.
        most: usize,
    },
    /// The window or its pages.
    #[error(transparent)]
    Hw(#[from] hw::HwError),
}
