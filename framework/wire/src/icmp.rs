//! ICMP for IPv4 (RFC 792) and IPv6 (RFC 4443). Both have one layout; kinds and checksums differ.
use crate::Malformed;
use crate::checksum::Sum;
use crate::view::view;
use zerocopy::network_endian::U16;
use zerocopy::{ByteSlice, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// Kinds of ICMP messages for IPv4.
pub mod icmpv4 {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Code of [`UNREACHABLE`]: a fragment would be needed, and must not be made (RFC 1191).
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
}

/// Kinds of ICMP messages for IPv6. Those below 128 are errors.
pub mod icmpv6 {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Neighbour solicitation (RFC 4861).
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// Neighbour advertisement (RFC 4861).
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
}

/// The first 8 bytes, which every message has.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct IcmpHeader {
    /// What message ([`icmpv4`], [`icmpv6`]).
    pub kind: u8,
    /// What kind of it.
    pub code: u8,
    /// Of the message; for IPv6 with a pseudo header. See [`crate::checksum::fill_l4`].
    pub checksum: U16,
    /// Depends on the kind: see [`IcmpHeader::echo`], [`IcmpHeader::mtu`].
    pub rest: [u8; 4],
}

impl IcmpHeader {
    /// Bytes of the header.
    pub const LEN: usize = size_of::<Self>();

    /// `rest` of an echo message: identifier and sequence number.
    pub const fn echo(&self) -> (u16, u16) {
        let [a, b, c, d] = self.rest;
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }
    /// `rest` of "packet too big" (all of it) and of "fragmentation needed" (where the upper half is 0): the MTU to use.
    pub const fn mtu(&self) -> u32 {
        u32::from_be_bytes(self.rest)
    }
}

/// View of an ICMP message.
#[derive(Debug)]
pub struct Icmp<B: ByteSlice> {
    header: Ref<B, IcmpHeader>,
    payload: B,
}
view!(Icmp, IcmpHeader);

impl<B: SplitByteSlice> Icmp<B> {
    /// Over an IP payload. [`Malformed::TooShort`] below 8 bytes.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let (header, payload) = Ref::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        Ok(Self { header, payload })
    }
}

impl<B: ByteSlice> Icmp<B> {
    /// The sum over the whole message: alone for IPv4, on top of [`Sum::pseudo_v6`] for IPv6.
    pub fn sum(&self) -> Sum {
        Sum::default().plus(self.header.as_bytes()).plus(&self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_request() {
        let bytes = *b"\x08\x00\x92\x91\x12\x34\x00\x07ping";
        let icmp = Icmp::parse(&bytes[..]).unwrap();
        assert_eq!((icmp.kind, icmp.code), (icmpv4::ECHO_REQUEST, 0));
        assert_eq!(icmp.echo(), (0x1234, 7));
        assert_eq!(icmp.payload(), b"ping");
        // 0800 + 1234 + 0007 + 7069 + 6e67 = f90b, so the field must be 06f4.
        assert!(!icmp.sum().is_ok());
        let mut bytes = bytes;
        Icmp::parse(&mut bytes[..]).unwrap().checksum.set(0x06f4);
        assert!(Icmp::parse(&bytes[..]).unwrap().sum().is_ok());
        assert_eq!(Icmp::parse(&bytes[..7]).unwrap_err(), Malformed::TooShort);
    }

    #[test]
    fn a_path_mtu() {
        let bytes = *b"\x03\x04\x00\x00\x00\x00\x05\x78";
        assert_eq!(Icmp::parse(&bytes[..]).unwrap().mtu(), 1400);
    }
}
