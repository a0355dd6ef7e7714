//! Policy: cores, workers, start and stop, status.
//!
//! - [`Runtime`] owns packet memory, ports and workers. No global state: several live in one process.
//! - [`WorkerPlan`] says what one worker runs: a core, queues, and how to build its graph.
//! - [`Status`] is everything that was counted; [`Conservation`] says whether every packet is accounted for.
//!
//! Life of a runtime:
//! 1. [`Runtime::new`] takes packet memory; [`Runtime::add_port`] opens devices' control sides.
//! 2. [`Runtime::start`] checks the memory sum, starts the ports, pins the workers and attaches their queues.
//! 3. Workers breathe. Control changes are messages that they take between two breaths.
//! 4. [`Runtime::stop`] ends receiving at the devices, lets the workers drain, flush and reap (2 s at most), takes the
//!    queues back, reads what the devices counted, resets them, and compares all counts.
//!
//! Limits: one graph per worker; queues are given out at the start; a runtime starts once. Devices count in 32 bits: ask
//! for [`Runtime::status`] at least every few minutes, or their counts fall behind and show as unexplained.
#![forbid(unsafe_code)]

pub mod config;
mod conserve;
mod role;
mod runtime;
mod start;
mod status;
mod stop;
mod sum;
mod view;
mod watch;
mod worker;

use std::sync::Arc;

pub use conserve::Conservation;
pub use role::{Idle, Role};
pub use runtime::{BuildGraph, Runtime, WorkerPlan};
pub use status::{
    CyclesPerPacket, CyclesStatus, DeviceStatus, DropMap, LinkStatus, Lint, PoolStatus, PortStatus,
    QueueSide, QueueStatus, StageStatus, Status, Traffic, WorkerStatus,
};
pub use sum::MemorySum;

/// Start and stop errors; each says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RtError {
    /// A port.
    #[error("port {port}: {source}")]
    Port {
        /// Its name.
        port: Arc<str>,
        /// What is wrong.
        source: port::PortError,
    },
    /// A worker's graph.
    #[error("worker {worker}: {source}")]
    Graph {
        /// The worker.
        worker: usize,
        /// What is wrong.
        source: graph::GraphError,
    },
    /// A worker's core.
    #[error("worker {worker}: {source}")]
    Core {
        /// The worker.
        worker: usize,
        /// What is wrong.
        source: topology::PinError,
    },
    /// A worker's thread.
    #[error("worker {worker}: starting a thread: {source}")]
    Thread {
        /// The worker.
        worker: usize,
        /// What the system says.
        source: std::io::Error,
    },
    /// The pool is smaller than what can hold buffers.
    #[error("{0}")]
    PoolTooSmall(MemorySum),
    /// A queue that a worker names does not exist, or two workers name it.
    #[error("worker {worker}: port {port} has no free queue {queue}; each queue belongs to one worker")]
    NoQueue {
        /// The worker.
        worker: usize,
        /// The port.
        port: Arc<str>,
        /// The queue.
        queue: u16,
    },
    /// A runtime starts once.
    #[error("the runtime has been started already; make a new one to start again")]
    Started,
    /// A worker's thread did not start or is gone.
    #[error("worker {worker}: its thread is gone; see the log above")]
    WorkerGone {
        /// The worker.
        worker: usize,
    },
}
