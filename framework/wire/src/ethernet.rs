//! Ethernet II (IEEE 802.3-2018, 3.1 and 3.2.6).
use crate::view::view;
use crate::{MacAddr, Malformed};
use core::fmt;
use zerocopy::{ByteSlice, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// What an Ethernet payload is. Any value is representable.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct EtherType([u8; 2]);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self::new(0x0800);
    /// ARP.
    pub const ARP: Self = Self::new(0x0806);
    /// A customer VLAN tag (802.1Q).
    pub const VLAN: Self = Self::new(0x8100);
    /// A service VLAN tag (802.1ad, "QinQ").
    pub const QINQ: Self = Self::new(0x88a8);
    /// A service VLAN tag as it was written before 802.1ad.
    pub const QINQ_OLD: Self = Self::new(0x9100);
    /// IPv6.
    pub const IPV6: Self = Self::new(0x86dd);
    /// IEEE 1588 over Ethernet.
    pub const PTP: Self = Self::new(0x88f7);
    /// LLDP.
    pub const LLDP: Self = Self::new(0x88cc);

    /// From its number.
    pub const fn new(value: u16) -> Self {
        Self(value.to_be_bytes())
    }
    /// Its number.
    #[inline]
    pub const fn value(self) -> u16 {
        u16::from_be_bytes(self.0)
    }
    /// Says that a VLAN tag follows: 0x8100, 0x88a8 or 0x9100.
    #[inline]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::QINQ | Self::QINQ_OLD)
    }
    /// Below 1536: the length field of an 802.3 frame, not a type (3.2.6).
    #[inline]
    pub const fn is_length(self) -> bool {
        self.value() < 0x600
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.value())
    }
}

/// The 14 bytes in front of every frame.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct EthernetHeader {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// What follows.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Bytes of the header.
    pub const LEN: usize = size_of::<Self>();
}

/// View of an Ethernet II frame without its FCS.
#[derive(Debug)]
pub struct Ethernet<B: ByteSlice> {
    header: Ref<B, EthernetHeader>,
    payload: B,
}
view!(Ethernet, EthernetHeader);

impl<B: SplitByteSlice> Ethernet<B> {
    /// Over a frame that starts with its destination address. [`Malformed::TooShort`] below 14 bytes.
    #[inline]
    pub fn parse(frame: B) -> Result<Self, Malformed> {
        let (header, payload) = Ref::from_prefix(frame).map_err(|_| Malformed::TooShort)?;
        Ok(Self { header, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_in_place() {
        let mut frame = *b"\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06rest";
        let view = Ethernet::parse(&frame[..]).unwrap();
        assert!(view.dst.is_broadcast());
        assert_eq!(view.ether_type, EtherType::ARP);
        assert_eq!(view.payload(), b"rest");

        let mut view = Ethernet::parse(&mut frame[..]).unwrap();
        let header = &mut *view;
        core::mem::swap(&mut header.dst, &mut header.src);
        view.payload_mut()[0] = b'R';
        assert_eq!(&frame, b"\x02\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\x08\x06Rest");
        assert_eq!(Ethernet::parse(&frame[..13]).unwrap_err(), Malformed::TooShort);
        assert!(Ethernet::parse(&frame[..14]).unwrap().payload().is_empty());
    }

    #[test]
    fn lengths_are_no_types() {
        assert!(EtherType::new(0x5ff).is_length() && !EtherType::new(0x600).is_length());
        assert_eq!(format!("{:?}", EtherType::QINQ), "0x88a8");
    }
}
