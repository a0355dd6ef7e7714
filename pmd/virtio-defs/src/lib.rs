//! Layouts of the virtio specification, revision 1.3 (OASIS, 2023). No logic.
//!
//! - [`VirtioNetHdr`]: what stands before a frame of a network device, 5.1.6. The kernel's tun, tap and packet sockets use the same
//!   ten bytes (`linux/virtio_net.h`).
//! - [`HdrFlags`] and [`GsoType`]: what its first two bytes may say. Both hold any value, as a peer may write any.
//!
//! Life of a header: the side that sends fills it in, the side that receives reads it; nothing is kept between two frames.
//!
//! Limits: without `num_buffers`, which belongs to rings with merged buffers and stands behind these ten bytes.
#![forbid(unsafe_code)]

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first byte (5.1.6): one bit each.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct HdrFlags(pub u8);

impl HdrFlags {
    /// A checksum is still to be put in, as `csum_start` and `csum_offset` say; the pseudo header's sum is in its place.
    pub const NEEDS_CSUM: Self = Self(1);
    /// The checksums were checked and are right.
    pub const DATA_VALID: Self = Self(2);
    /// `csum_start` and `csum_offset` hold counts of coalesced segments instead (feature `VIRTIO_NET_F_RSC_EXT`).
    pub const RSC_INFO: Self = Self(4);

    /// Whether any bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The second byte (5.1.6): how the frame is to be cut, or was put together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct GsoType(pub u8);

impl GsoType {
    /// It is one frame.
    pub const NONE: Self = Self(0);
    /// TCP over IPv4.
    pub const TCPV4: Self = Self(1);
    /// UDP over IPv4, to be cut into IP fragments.
    pub const UDP: Self = Self(3);
    /// TCP over IPv6.
    pub const TCPV6: Self = Self(4);
    /// UDP, to be cut into datagrams.
    pub const UDP_L4: Self = Self(5);
    /// Beside one of the TCP types: the first segment carries CWR, the others do not (RFC 3168).
    pub const ECN: Self = Self(0x80);

    /// Whether it is TCP with [`GsoType::ECN`].
    pub const fn ecn(self) -> bool {
        self.0 & Self::ECN.0 != 0
    }
    /// Without [`GsoType::ECN`].
    pub const fn kind(self) -> Self {
        Self(self.0 & !Self::ECN.0)
    }
}

/// What stands before a frame (5.1.6), without `num_buffers`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct VirtioNetHdr {
    /// What is known and wanted.
    pub flags: HdrFlags,
    /// How the frame is to be cut.
    pub gso_type: GsoType,
    /// Bytes of all headers. A hint (5.1.6.2): the receiver finds out by itself.
    pub hdr_len: U16,
    /// Bytes of payload of each piece.
    pub gso_size: U16,
    /// The first byte that the checksum covers, from the start of the frame.
    pub csum_start: U16,
    /// Where the checksum goes, from `csum_start`.
    pub csum_offset: U16,
}
const _: () = assert!(size_of::<VirtioNetHdr>() == VirtioNetHdr::LEN);

impl VirtioNetHdr {
    /// Bytes of it.
    pub const LEN: usize = 10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_in_memory_as_the_specification_says() {
        let bytes = [1, 0x81, 54, 0, 0xa8, 5, 34, 0, 16, 0];
        let hdr = VirtioNetHdr::read_from_bytes(&bytes).unwrap();
        assert!(hdr.flags.has(HdrFlags::NEEDS_CSUM) && !hdr.flags.has(HdrFlags::DATA_VALID));
        assert_eq!((hdr.gso_type.kind(), hdr.gso_type.ecn()), (GsoType::TCPV4, true));
        let numbers = [hdr.hdr_len, hdr.gso_size, hdr.csum_start, hdr.csum_offset].map(U16::get);
        assert_eq!(numbers, [54, 1448, 34, 16]);
        assert_eq!(hdr.as_bytes(), bytes);
    }
}
