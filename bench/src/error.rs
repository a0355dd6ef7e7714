//! What can stop a benchmark.

/// Errors that end a run. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The machine's edge refused; its words say what to do.
    #[error(transparent)]
    Hw(#[from] hw::HwError),
    /// A core that cannot be had; its words say which can.
    #[error(transparent)]
    Core(#[from] topology::PinError),
    /// Packet memory refused; its words say what to do.
    #[error(transparent)]
    Mem(#[from] mem::MemError),
    /// A port refused; its words say what to do.
    #[error(transparent)]
    Port(#[from] port::PortError),
    /// The runtime refused; its words say what to do.
    #[error(transparent)]
    Rt(#[from] rt::RtError),
    /// A datapath lost packets, or made some up.
    #[error("{name}: {unexplained} packets unexplained: {account}")]
    Unexplained {
        /// The candidate.
        name: String,
        /// How many.
        unexplained: u64,
        /// The account that does not add up.
        account: String,
    },
    /// A run of the demo lost packets, or cannot say that it lost none.
    #[error(
        "ringwright demo: {status}, {} packets unexplained, {verified} of {generated} frames verified; run it without --json to see the whole account",
        unexplained.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string())
    )]
    Unclean {
        /// How it ended.
        status: String,
        /// What its account leaves open; `None` if it does not know.
        unexplained: Option<u64>,
        /// Frames that the generators sent.
        generated: u64,
        /// Frames that arrived once, unchanged and in order.
        verified: u64,
    },
    /// Arguments that do not fit this machine or this build.
    #[error("{0}")]
    Usage(String),
    /// A two-core benchmark on one core.
    #[error(
        "this benchmark needs two cores and this process may use {0}; widen the cpuset or give --cores A,B"
    )]
    Cores(usize),
    /// A peer is there but did not do what its own words promise.
    #[error("peer {peer}: {what}")]
    Peer {
        /// Which one.
        peer: &'static str,
        /// What went wrong, with its last output.
        what: String,
    },
    /// Items came out of a ring that did not go in, or the reverse.
    #[error("{name}: {sent} items (sum {sent_sum:#x}) went in, {received} (sum {received_sum:#x}) came out")]
    Lost {
        /// The candidate.
        name: String,
        /// Items pushed.
        sent: u64,
        /// Wrapping sum of their first words.
        sent_sum: u64,
        /// Items popped.
        received: u64,
        /// Wrapping sum of their first words.
        received_sum: u64,
    },
    /// A tool that the command stands on is missing or failed.
    #[error("{tool}: {what}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// What went wrong and what to do.
        what: String,
    },
    /// A file of stored values cannot be read or written.
    #[error("{path}: {what}")]
    File {
        /// Its path.
        path: String,
        /// What went wrong and what to do.
        what: String,
    },
}
