//! Advanced receive descriptors (82599 7.1.6).

use ring::{Completion, Pos, RingSize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Extended status, bits 19:0 of the second quad word written back (82599 7.1.6.2).
pub mod rx_status {
    /// Descriptor done.
    pub const DD: u32 = 1 << 0;
    /// The last descriptor of a packet.
    pub const EOP: u32 = 1 << 1;
    /// Flow director match.
    pub const FLM: u32 = 1 << 2;
    /// A VLAN tag was found (and stripped, with `RXDCTL.VME`): the VLAN field is valid.
    pub const VP: u32 = 1 << 3;
    /// The UDP checksum was checked, or the fragment checksum field is valid.
    pub const UDPCS: u32 = 1 << 4;
    /// The TCP or UDP checksum was checked: see [`super::rx_error::L4E`].
    pub const L4CS: u32 = 1 << 5;
    /// The IPv4 header checksum was checked: see [`super::rx_error::IPE`].
    pub const IPCS: u32 = 1 << 6;
    /// Passed by an inexact filter only (the multicast hash).
    pub const PIF: u32 = 1 << 7;
    /// An outer VLAN tag was found (double VLAN).
    pub const VEXT: u32 = 1 << 9;
    /// A UDP packet whose checksum field is not zero.
    pub const UDPV: u32 = 1 << 10;
    /// Loopback.
    pub const LB: u32 = 1 << 18;
}

/// Extended errors, bits 31:20 of the second quad word written back, as a 12-bit number (82599 7.1.6.2).
pub mod rx_error {
    /// The header buffer was too small.
    pub const HBO: u32 = 1 << 3;
    /// A MAC error: CRC, length, symbol. Only with `FCTRL.SBP`.
    pub const RXE: u32 = 1 << 9;
    /// Bad TCP or UDP checksum.
    pub const L4E: u32 = 1 << 10;
    /// Bad IPv4 header checksum.
    pub const IPE: u32 = 1 << 11;
}

/// What the RSS hash covers (82599 7.1.6.2, RSS type). Unknown values keep their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RssType(pub u8);
impl RssType {
    /// No hash.
    pub const NONE: Self = Self(0);
    /// TCP over IPv4.
    pub const TCP_IPV4: Self = Self(1);
    /// IPv4.
    pub const IPV4: Self = Self(2);
    /// TCP over IPv6.
    pub const TCP_IPV6: Self = Self(3);
    /// IPv6.
    pub const IPV6: Self = Self(5);
    /// UDP over IPv4.
    pub const UDP_IPV4: Self = Self(7);
    /// UDP over IPv6.
    pub const UDP_IPV6: Self = Self(8);
}

/// What the device recognized (82599 7.1.6.2, packet type with bit 11 clear): 13 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketType(pub u16);
impl PacketType {
    /// IPv4 header present.
    pub const IPV4: u16 = 1 << 0;
    /// IPv4 header with options.
    pub const IPV4_OPTIONS: u16 = 1 << 1;
    /// IPv6 header present.
    pub const IPV6: u16 = 1 << 2;
    /// IPv6 header with extensions.
    pub const IPV6_EXTENSIONS: u16 = 1 << 3;
    /// TCP header present.
    pub const TCP: u16 = 1 << 4;
    /// UDP header present.
    pub const UDP: u16 = 1 << 5;
    /// SCTP header present.
    pub const SCTP: u16 = 1 << 6;
    /// An ether type filter matched: the other bits mean something else.
    pub const L2: u16 = 1 << 11;

    /// True if all bits of `bits` are set and the type is one of layer 3 and above.
    pub const fn has(self, bits: u16) -> bool {
        self.0 & Self::L2 == 0 && self.0 & bits == bits
    }
}

/// An advanced receive descriptor, posted or written back: two little-endian quad words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RxDesc {
    low: u64,
    high: u64,
}

/// The fields that the device writes back into an [`RxDesc`] (82599 7.1.6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxWriteBack {
    /// What the hash covers.
    pub rss_type: RssType,
    /// What was recognized.
    pub packet_type: PacketType,
    /// RSS hash (with `RXCSUM.PCSD`), or fragment checksum (31:16) and IP identification (15:0).
    pub rss_hash: u32,
    /// [`rx_status`] bits.
    pub status: u32,
    /// [`rx_error`] bits.
    pub errors: u32,
    /// Bytes in this buffer.
    pub len: u16,
    /// Tag, if `VP` is set.
    pub vlan: u16,
}

impl RxDesc {
    /// A descriptor as a driver posts it (7.1.6.1): buffer and header buffer addresses. Bit 0 of the header address is
    /// the DD bit of the write-back: keep it 0.
    pub const fn post(buffer: u64, header: u64) -> Self {
        Self { low: buffer.to_le(), high: header.to_le() }
    }

    /// The buffer address, of a posted descriptor.
    pub const fn buffer(&self) -> u64 {
        u64::from_le(self.low)
    }

    /// The header buffer address, of a posted descriptor.
    pub const fn header(&self) -> u64 {
        u64::from_le(self.high)
    }

    /// A descriptor as the device writes it back. Fields are masked to their width.
    pub const fn write_back(w: RxWriteBack) -> Self {
        let low = (w.rss_type.0 & 0xF) as u64
            | ((w.packet_type.0 & 0x1FFF) as u64) << 4
            | (w.rss_hash as u64) << 32;
        let high = (w.status & 0xF_FFFF) as u64
            | ((w.errors & 0xFFF) as u64) << 20
            | (w.len as u64) << 32
            | (w.vlan as u64) << 48;
        Self { low: low.to_le(), high: high.to_le() }
    }

    /// All fields written back.
    pub const fn written_back(&self) -> RxWriteBack {
        RxWriteBack {
            rss_type: self.rss_type(),
            packet_type: self.packet_type(),
            rss_hash: self.rss_hash(),
            status: self.status(),
            errors: self.errors(),
            len: self.len(),
            vlan: self.vlan(),
        }
    }

    /// What the hash covers.
    #[inline]
    pub const fn rss_type(&self) -> RssType {
        RssType((u64::from_le(self.low) & 0xF) as u8)
    }
    /// What was recognized.
    #[inline]
    pub const fn packet_type(&self) -> PacketType {
        PacketType((u64::from_le(self.low) >> 4 & 0x1FFF) as u16)
    }
    /// RSS hash (with `RXCSUM.PCSD`).
    #[inline]
    pub const fn rss_hash(&self) -> u32 {
        (u64::from_le(self.low) >> 32) as u32
    }
    /// [`rx_status`] bits.
    #[inline]
    pub const fn status(&self) -> u32 {
        (u64::from_le(self.high) & 0xF_FFFF) as u32
    }
    /// [`rx_error`] bits.
    #[inline]
    pub const fn errors(&self) -> u32 {
        (u64::from_le(self.high) >> 20 & 0xFFF) as u32
    }
    /// Bytes in this buffer, as the device claims.
    #[inline]
    pub const fn len(&self) -> u16 {
        (u64::from_le(self.high) >> 32) as u16
    }
    /// True if the device claims an empty buffer.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Tag, if `VP` is set.
    #[inline]
    pub const fn vlan(&self) -> u16 {
        (u64::from_le(self.high) >> 48) as u16
    }
    /// The owner word (second quad word), in the host's order.
    #[inline]
    pub const fn owner(&self) -> u64 {
        u64::from_le(self.high)
    }
}

impl Completion for RxDesc {
    const OWNER: usize = 8;
    #[inline]
    fn is_done(owner: u64, _: Pos, _: RingSize) -> bool {
        owner & rx_status::DD as u64 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posted_descriptor_is_two_little_endian_addresses() {
        let d = RxDesc::post(0x1122_3344_5566_7788, 0xA0);
        assert_eq!(d.as_bytes(), [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xA0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((d.buffer(), d.header()), (0x1122_3344_5566_7788, 0xA0));
        assert!(!RxDesc::is_done(d.owner(), 0, RingSize::try_from(8).expect("a size")));
    }

    #[test]
    fn a_write_back_has_its_fields_where_the_data_sheet_has_them() {
        let w = RxWriteBack {
            rss_type: RssType::UDP_IPV4,
            packet_type: PacketType(PacketType::IPV4 | PacketType::UDP),
            rss_hash: 0xDEAD_BEEF,
            status: rx_status::DD | rx_status::EOP | rx_status::IPCS,
            errors: rx_error::IPE,
            len: 0x1234,
            vlan: 0x8765,
        };
        let d = RxDesc::write_back(w);
        assert_eq!(
            d.as_bytes(),
            [0x17, 0x02, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x43, 0, 0, 0x80, 0x34, 0x12, 0x65, 0x87]
        );
        assert_eq!(d.written_back(), w);
        assert!(RxDesc::is_done(d.owner(), 0, RingSize::try_from(8).expect("a size")));
    }

    #[test]
    fn any_bits_are_a_value() {
        let d = RxDesc::read_from_bytes(&[0xFF; 16]).expect("16 bytes");
        assert_eq!((d.rss_type(), d.packet_type(), d.errors()), (RssType(0xF), PacketType(0x1FFF), 0xFFF));
        assert!(!d.packet_type().has(PacketType::IPV4), "an ether type filter match says nothing of IP");
    }
}
