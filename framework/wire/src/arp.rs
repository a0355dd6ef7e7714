//! ARP for IPv4 over Ethernet (RFC 826).
use crate::view::view;
use crate::{EtherType, MacAddr, Malformed};
use zerocopy::network_endian::U16;
use zerocopy::{ByteSlice, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// What an ARP packet wants. Any value is representable.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(transparent)]
pub struct ArpOperation([u8; 2]);

impl ArpOperation {
    /// Who has this address?
    pub const REQUEST: Self = Self([0, 1]);
    /// I have.
    pub const REPLY: Self = Self([0, 2]);

    /// Its number.
    pub const fn value(self) -> u16 {
        u16::from_be_bytes(self.0)
    }
}

/// The 28 bytes of ARP for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ArpHeader {
    hardware: U16,
    protocol: EtherType,
    hardware_len: u8,
    protocol_len: u8,
    /// Request or reply.
    pub operation: ArpOperation,
    /// Who sends this.
    pub sender_mac: MacAddr,
    /// Its IPv4 address.
    pub sender_ip: [u8; 4],
    /// Who is meant; zero in a request.
    pub target_mac: MacAddr,
    /// The IPv4 address asked about.
    pub target_ip: [u8; 4],
}

impl ArpHeader {
    /// Bytes of the header.
    pub const LEN: usize = size_of::<Self>();

    /// A request for `target_ip`.
    pub const fn request(sender_mac: MacAddr, sender_ip: [u8; 4], target_ip: [u8; 4]) -> Self {
        Self {
            hardware: U16::new(1),
            protocol: EtherType::IPV4,
            hardware_len: 6,
            protocol_len: 4,
            operation: ArpOperation::REQUEST,
            sender_mac,
            sender_ip,
            target_mac: MacAddr::ZERO,
            target_ip,
        }
    }
    /// The reply to this request: `mac` has the address that it asks about.
    #[must_use]
    pub const fn reply(&self, mac: MacAddr) -> Self {
        Self {
            operation: ArpOperation::REPLY,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
            ..*self
        }
    }
    const fn is_ipv4_over_ethernet(&self) -> bool {
        self.hardware.get() == 1
            && matches!(self.protocol, EtherType::IPV4)
            && self.hardware_len == 6
            && self.protocol_len == 4
    }
}

/// View of an ARP packet.
#[derive(Debug)]
pub struct Arp<B: ByteSlice> {
    header: Ref<B, ArpHeader>,
    payload: B,
}
view!(Arp, ArpHeader);

impl<B: SplitByteSlice> Arp<B> {
    /// Over an Ethernet payload; what follows the 28 bytes is padding. [`Malformed::TooShort`] below 28 bytes,
    /// [`Malformed::WrongKind`] for other address types.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let (header, payload) = Ref::<B, ArpHeader>::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        if !header.is_ipv4_over_ethernet() {
            return Err(Malformed::WrongKind);
        }
        Ok(Self { header, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2, //
    ];

    #[test]
    fn a_request_is_read_and_answered() {
        let view = Arp::parse(&REQUEST[..]).unwrap();
        assert_eq!(view.operation, ArpOperation::REQUEST);
        let asker = MacAddr::new([2, 0, 0, 0, 0, 1]);
        assert_eq!(*view, ArpHeader::request(asker, [192, 0, 2, 1], [192, 0, 2, 2]));
        let reply = view.reply(MacAddr::new([2, 0, 0, 0, 0, 2]));
        let expected = [
            0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, //
        ];
        assert_eq!(reply.as_bytes(), expected);
    }

    #[test]
    fn other_address_types_are_refused() {
        for at in [1, 2, 4, 5] {
            let mut bytes = REQUEST;
            bytes[at] += 1;
            assert_eq!(Arp::parse(&bytes[..]).unwrap_err(), Malformed::WrongKind, "byte {at}");
        }
        assert_eq!(Arp::parse(&REQUEST[..27]).unwrap_err(), Malformed::TooShort);
    }
}
