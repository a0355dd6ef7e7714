//! UDP (RFC 768).
use crate::Malformed;
use crate::view::{split, view};
use zerocopy::network_endian::U16;
use zerocopy::{ByteSlice, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// The 8 bytes of the header.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Bytes of header and data.
    pub length: U16,
    /// Of pseudo header, header and data; 0 for none. See [`crate::checksum::fill_l4`].
    pub checksum: U16,
}

impl UdpHeader {
    /// Bytes of the header.
    pub const LEN: usize = size_of::<Self>();

    /// A header without checksum. `None` when `payload_len` is beyond 65,527.
    pub fn new(src_port: u16, dst_port: u16, payload_len: usize) -> Option<Self> {
        let length = u16::try_from(payload_len.checked_add(Self::LEN)?).ok()?.into();
        Some(Self { src_port: src_port.into(), dst_port: dst_port.into(), length, checksum: U16::ZERO })
    }
    /// Checks the header against `available` bytes from its first: bytes of header and data.
    #[inline]
    pub(crate) const fn within(&self, available: usize) -> Result<usize, Malformed> {
        let length = self.length.get() as usize;
        if length < Self::LEN || length > available { Err(Malformed::BadLength) } else { Ok(length) }
    }
}

/// View of a UDP datagram.
#[derive(Debug)]
pub struct Udp<B: ByteSlice> {
    header: Ref<B, UdpHeader>,
    payload: B,
}
view!(Udp, UdpHeader);

impl<B: SplitByteSlice> Udp<B> {
    /// Over an IP payload; what follows the length is left out.
    ///
    /// # Errors
    /// [`Malformed::TooShort`] below 8 bytes, `BadLength` for a length below 8 or beyond the bytes.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let available = bytes.len();
        let (header, rest) = Ref::<B, UdpHeader>::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        let length = header.within(available)?;
        let (payload, _) = split(rest, length - UdpHeader::LEN, Malformed::BadLength)?;
        Ok(Self { header, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_cuts_the_payload() {
        let bytes = *b"\x04\xd2\x00\x35\x00\x0a\x00\x00hi--";
        let udp = Udp::parse(&bytes[..]).unwrap();
        assert_eq!((udp.src_port.get(), udp.dst_port.get()), (1234, 53));
        assert_eq!(udp.payload(), b"hi");
        assert_eq!(*udp, UdpHeader::new(1234, 53, 2).unwrap());
        assert_eq!(UdpHeader::new(1, 2, 65_528), None);
    }

    #[test]
    fn impossible_lengths_have_their_kinds() {
        let with = |length: u8| Udp::parse(&[0, 1, 0, 2, 0, length, 0, 0, 9, 9][..]).map(|_| ()).unwrap_err();
        assert_eq!(with(7), Malformed::BadLength);
        assert_eq!(with(11), Malformed::BadLength);
        assert_eq!(Udp::parse(&[0u8; 7][..]).unwrap_err(), Malformed::TooShort);
    }
}
