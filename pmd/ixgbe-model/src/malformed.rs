//! Transmit descriptors that the device cannot work with.

/// What the data sheet forbids, and this model refuses: the queue hangs, as it may on hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// A legacy descriptor or a reserved type: this model knows advanced descriptors only.
    Kind,
    /// A buffer of no bytes.
    NoBytes,
    /// More than 40 buffers in a packet.
    TooManyBuffers,
    /// A packet longer than the device carries.
    TooLong,
    /// A packet shorter than its addresses and type.
    TooShort,
    /// PAYLEN is not the length of the packet.
    PayloadLength,
    /// An offload names a context that was never given.
    NoContext,
    /// An offload reaches beyond the packet, or is one that this model does not have (SCTP).
    Offload,
    /// Segmentation: this model does not have it.
    Segmentation,
    /// IFCS is not set in the first descriptor: the frame would leave without a CRC.
    NoCrc,
}
