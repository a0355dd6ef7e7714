//! What can go wrong while a port is set up.

use hw::Bytes;

/// Setup errors; each says what to do. The fast path has none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The device or its memory.
    #[error(transparent)]
    Hw(#[from] hw::HwError),
    /// A ring.
    #[error(transparent)]
    Ring(#[from] ring::RingError),
    /// Packet memory.
    #[error(transparent)]
    Mem(#[from] mem::MemError),
    /// More queues than there are.
    #[error("{asked} queues asked, {driver} has 1 to {max}")]
    Queues {
        /// Asked for.
        asked: u16,
        /// Available.
        max: u16,
        /// The driver.
        driver: &'static str,
    },
    /// A frame length that cannot be.
    #[error("frames of {asked} bytes asked, {driver} takes 60 to {max}")]
    Frame {
        /// Asked for.
        asked: u16,
        /// Longest.
        max: u16,
        /// The driver.
        driver: &'static str,
    },
    /// A ring size that the device does not have.
    #[error("a ring of {asked} descriptors asked, {driver} takes powers of two from {min} to {max}")]
    RingLength {
        /// Asked for.
        asked: u32,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
        /// The driver.
        driver: &'static str,
    },
    /// The pool cannot fill the ring.
    #[error(
        "the pool has {have} free buffers, the receive ring posts {need}; raise [memory] buffers or use smaller rings"
    )]
    NoBuffers {
        /// Buffers the ring posts.
        need: usize,
        /// Buffers there were.
        have: usize,
    },
    /// No pool at all.
    #[error("the runtime has no packet pool; add one before ports are attached")]
    NoPool,
    /// A key of the driver's.
    #[error("{driver}: {key}: {problem}")]
    Config {
        /// The driver.
        driver: &'static str,
        /// The key.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The device is not what the driver drives.
    #[error("{driver}: {problem}")]
    Device {
        /// The driver.
        driver: &'static str,
        /// What was found.
        problem: String,
    },
    /// The device did not reset, so that its memory cannot be used again.
    #[error("the device did not reset: {} of rings and {buffers} buffers are quarantined until the process ends", Bytes(*rings))]
    Quarantined {
        /// Bytes of rings.
        rings: usize,
        /// Buffers.
        buffers: usize,
    },
}

impl PortError {
    /// A key of `driver`'s is wrong.
    pub fn key(driver: &'static str, e: config::KeyError) -> Self {
        Self::Config { driver, key: e.key, problem: e.problem }
    }
}
