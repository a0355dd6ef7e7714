//! What can go wrong while workers start, change or stop.

use std::sync::Arc;
use std::time::Duration;

use crate::{MemorySum, Role};

/// Start, change and stop errors; each says what to do.
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
    /// What a worker is told to do does not go with its role.
    #[error("worker {worker} ({}): {problem}", role.name())]
    Role {
        /// The worker.
        worker: usize,
        /// Its role.
        role: Role,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Roles that do not make a pipeline.
    #[error("workers of role {:?} need at least one of role {:?}: {why}", there.name(), missing.name())]
    Pipeline {
        /// A role that some worker has.
        there: Role,
        /// One that none has.
        missing: Role,
        /// What the one is to the other.
        why: &'static str,
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
    /// Fewer transmit queues than workers that send.
    #[error(
        "port {port} has {queues} queues, and {workers} workers send to it, each by a queue of its own: set queues = \
         {workers}, or let workers of role \"tx\" send"
    )]
    TooFewQueues {
        /// The port.
        port: Arc<str>,
        /// Its queues.
        queues: u16,
        /// Workers that send.
        workers: usize,
    },
    /// A port of that name is there already.
    #[error("there is a port {0} already; remove it first, or use another name")]
    PortThere(Arc<str>),
    /// No such port.
    #[error("there is no port {port}; there are {there}")]
    NoPort {
        /// The port asked for.
        port: String,
        /// The ports there are.
        there: String,
    },
    /// No more numbers for ports.
    #[error("{0} ports have been added, and numbers are not used again: start a new runtime")]
    TooManyPorts(usize),
    /// No such worker.
    #[error("there is no worker {worker}; there are workers 0 to {last}")]
    NoWorker {
        /// The worker asked for.
        worker: usize,
        /// The last there is.
        last: usize,
    },
    /// A runtime starts once.
    #[error("the runtime has been started already; make a new one to start again")]
    Started,
    /// Only a running runtime can be changed so.
    #[error("the runtime does not run: start it first")]
    NotRunning,
    /// A worker's thread did not start or is gone.
    #[error("worker {worker}: its thread is gone; see the log above")]
    WorkerGone {
        /// The worker.
        worker: usize,
    },
    /// A worker did not come to the end of a breath.
    #[error(
        "worker {worker} did not answer within {within:?}: does it wait for a full port (on_full = \"wait\") that nobody empties?"
    )]
    NoAnswer {
        /// The worker.
        worker: usize,
        /// How long it had.
        within: Duration,
    },
    /// Packets that were under way did not leave.
    #[error(
        "packets were still under way on worker {worker} after {within:?}: is a port that it sends to full, or its link \
         down? Try again"
    )]
    UnderWay {
        /// The worker.
        worker: usize,
        /// How long they had.
        within: Duration,
    },
}
