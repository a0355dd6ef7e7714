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
pub mod control;
mod error;
mod idle;
mod known;
mod lanes;
mod live;
mod mailbox;
mod moves;
mod plan;
mod rings;
mod role;
mod runtime;
mod start;
mod status;
mod stop;
mod sum;
pub mod telemetry;
mod view;
mod watch;
mod worker;

pub use conserve::Conservation;
pub use error::RtError;
pub use plan::{BuildGraph, HANDOFF_RING, WorkerPlan};
pub use role::{Idle, Role};
pub use runtime::Runtime;
pub use status::{
    CyclesPerPacket, CyclesStatus, DeviceStatus, DropMap, HandoffStatus, IdleStatus, LinkStatus, Lint,
    PoolStatus, PortStatus, QueueSide, QueueStatus, StageStatus, Status, Traffic, WorkerStatus,
};
pub use sum::MemorySum;
