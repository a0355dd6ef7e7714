//! What few packets need, kept beside the buffers.

/// 32 bytes per buffer in private memory, never shared with a device or a peer.
///
/// Read only when a row's flags say so. The links of a chain are private: only this crate joins buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Ext {
    /// The line of the next buffer's slot; 0 ends the chain.
    pub(crate) next: u32,
    /// Bytes of the whole frame; in the head.
    pub(crate) total: u32,
    /// Bytes in this buffer, in all but the head, whose length is in its row.
    pub(crate) seg_len: u16,
    /// Buffers in the frame; in the head.
    pub(crate) segs: u16,
    /// VLAN tag control information: priority, drop eligible, identifier (IEEE 802.1Q, 9.6).
    pub vlan: u16,
    /// Largest TCP segment, in bytes of payload.
    pub mss: u16,
    /// First byte that a checksum covers, from the start of the frame.
    pub csum_start: u16,
    /// Where the checksum goes, from `csum_start`.
    pub csum_offset: u16,
    /// Bytes of the link header.
    pub l2_len: u8,
    /// Bytes of the network header.
    pub l3_len: u8,
    /// Bytes of the transport header.
    pub l4_len: u8,
    pub(crate) pad: u8,
    /// When it was received, in the unit of the port's clock.
    pub time: u64,
}
const _: () = assert!(size_of::<Ext>() == 32);

impl Ext {
    /// Nothing but a VLAN tag.
    pub fn tagged(vlan: u16) -> Self {
        Self { vlan, ..Self::default() }
    }
    /// Buffers in the frame, of its head.
    pub const fn segments(&self) -> u16 {
        self.segs
    }
    /// Bytes of the whole frame, of its head.
    pub const fn total_len(&self) -> u32 {
        self.total
    }
}
