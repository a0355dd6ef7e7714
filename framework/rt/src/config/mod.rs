//! What a configuration file says: read, checked, and wired, before anything is opened.
//!
//! - [`Config::load`] reads a file; every fault is shown with its line, all at once ([`ConfigError`]).
//! - [`StageKind`] and [`Recipe`] are how stages come in; drivers come in as [`port::Driver`]s. Both lists are the caller's.
//! - [`Wiring`] is the graph: stages in the order of a packet's way, and where each exit leads.
//! - [`Assignment`] says which worker has which queues.
//!
//! Life of a configuration:
//! 1. The text is parsed, each section read, unknown keys refused.
//! 2. Queues are given to workers, exits joined to stages, ports and reasons.
//! 3. Whoever runs it opens the ports and makes a [`crate::WorkerPlan`] of each worker.
//!
//! Limits: a driver's own keys are checked for their names here, for their values when the port is opened.

mod assign;
mod entry;
mod names;
mod read;
mod sections;
mod text;
mod wiring;

pub use assign::{Assignment, assign};
pub use entry::ByPort;
pub use names::PortNames;
pub use sections::{
    Config, EdgeSection, Kinds, MemorySection, PortSection, QueueName, StageSection, TelemetrySection,
    WorkerSection,
};
pub use text::{ConfigError, Problem, Text};
pub use wiring::{BuildEnv, Recipe, StageEnv, StageKind, Wiring};
