//! What can be wrong with what a user asks for.

use crate::Source;

/// Errors of this crate. Setup only; each says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PcieError {
    /// Not of the form `genGxL`.
    #[error(
        "link \"{0}\" is not of the form genGxL, generation G 1 to 6 and lanes L 1, 2, 4, 8, 12, 16 or 32: gen3x8"
    )]
    LinkForm(String),
    /// No such generation.
    #[error("PCIe generation {0} does not exist: use 1, 2, 3, 4, 5 or 6")]
    Generation(u32),
    /// No such width.
    #[error("a PCIe link of {0} lanes does not exist: use 1, 2, 4, 8, 12, 16 or 32")]
    Lanes(u32),
    /// Neither a Max_Payload_Size nor a Max_Read_Request_Size.
    #[error("{0} bytes is no payload or read request size: use 128, 256, 512, 1024, 2048 or 4096")]
    TlpSize(u32),
    /// Not a Read Completion Boundary.
    #[error("{0} bytes is no read completion boundary: use 64 or 128")]
    ReadBoundary(u32),
    /// A TLP header that cannot be.
    #[error(
        "a {name} of {bytes} bytes on the wire is not possible: use {min} to 64, framing and LCRC included"
    )]
    Header {
        /// Which.
        name: &'static str,
        /// Bytes asked for.
        bytes: u32,
        /// The fewest possible: the header alone.
        min: u32,
    },
    /// No such cause.
    #[error(
        "unknown cause \"{0}\": use mmio_write, mmio_read, desc_read, index_read, payload_read, payload_write, \
         completion_write, index_write or interrupt"
    )]
    Cause(String),
    /// Sums of different sources say different things.
    #[error(
        "transactions counted by {theirs} cannot be added to those counted by {ours}: keep one sum per source"
    )]
    Sources {
        /// Of the sum that was to grow.
        ours: Source,
        /// Of the one to be added.
        theirs: Source,
    },
    /// Sums that were split by different parameters.
    #[error("transactions split by different parameters cannot be added: keep one sum per device")]
    Parameters,
}
