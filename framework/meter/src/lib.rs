//! Counting: private and plain on the worker, published rarely, read by everyone from one registry.
//!
//! - [`QueueMeter`], [`StageMeter`], [`WorkerMeter`]: plain `u64`s with one writer.
//! - [`DropReason`] and [`DropCounts`]: why a packet went no further.
//! - [`Published`]: where other threads read a meter, as a whole or not at all.
//! - [`Registry`]: the one list that command line, API and exporter read.
//!
//! Life of a count:
//! 1. A worker adds to its own meter, once per burst or per call.
//! 2. About every millisecond it copies the meter out with relaxed stores ([`Published::publish`]).
//! 3. A reader takes a [`Snapshot`] of the registry; counts in one block belong to one moment.
//!
//! Limits: counts of different blocks are of slightly different moments until the workers have stopped.
#![forbid(unsafe_code)]

mod counters;
mod drops;
mod published;
mod registry;

pub use counters::{Histogram, QueueMeter, StageMeter, WorkerMeter};
pub use drops::{DropCounts, DropReason};
pub use published::Published;
pub use registry::{Direction, QueueRow, Registry, Snapshot, StageRow, WorkerRow};

/// Called once per burst, never per packet.
pub trait Meter {
    /// False makes every call vanish.
    const ON: bool;
    /// A poll that brought or took `packets` packets of `bytes` bytes in all; zero packets is an empty poll.
    fn burst(&mut self, packets: usize, bytes: u64);
    /// Adds its counts to `sum`.
    fn add_to(&self, sum: &mut QueueMeter);
}

/// Off.
impl Meter for () {
    const ON: bool = false;
    #[inline(always)]
    fn burst(&mut self, _: usize, _: u64) {}
    fn add_to(&self, _: &mut QueueMeter) {}
}
