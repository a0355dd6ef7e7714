//! Advanced transmit descriptors (82599 7.2.3.2.3, 7.2.3.2.4) and their write-back (7.2.3.5).

use ring::{Completion, Pos, RingSize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Command bits (DCMD, 82599 7.2.3.2.4): bits 31:24 of the second quad word, as an 8-bit number.
pub mod tx_cmd {
    /// The last descriptor of a packet.
    pub const EOP: u8 = 1 << 0;
    /// Insert the CRC.
    pub const IFCS: u8 = 1 << 1;
    /// Report status: write back.
    pub const RS: u8 = 1 << 3;
    /// An advanced descriptor. Always set by [`super::TxDesc`].
    pub const DEXT: u8 = 1 << 5;
    /// Insert the VLAN tag of the context.
    pub const VLE: u8 = 1 << 6;
    /// Segment by the context.
    pub const TSE: u8 = 1 << 7;
}

/// Packet options (POPTS, 82599 7.2.3.2.4).
pub mod tx_popts {
    /// Insert the IPv4 header checksum.
    pub const IXSM: u8 = 1 << 0;
    /// Insert the TCP, UDP or SCTP checksum.
    pub const TXSM: u8 = 1 << 1;
}

const DTYP_SHIFT: u32 = 20;
const DTYP_CONTEXT: u64 = 0b0010;
const DTYP_DATA: u64 = 0b0011;
const DEXT: u64 = 1 << 29;
const DD: u64 = 1 << 32;

/// What a transmit descriptor is: the DEXT bit and the DTYP field. Unknown values keep their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxKind {
    /// Advanced data descriptor.
    Data,
    /// Advanced context descriptor.
    Context,
    /// Legacy descriptor (DEXT = 0).
    Legacy,
    /// Advanced, of a reserved type.
    Reserved(u8),
}

/// The checksum a context describes (TUCMD.L4T). Unknown values keep their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L4Type(pub u8);
impl L4Type {
    /// UDP.
    pub const UDP: Self = Self(0b00);
    /// TCP.
    pub const TCP: Self = Self(0b01);
    /// SCTP.
    pub const SCTP: Self = Self(0b10);
}

/// Fields of an advanced data descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxData {
    /// Buffer address.
    pub buffer: u64,
    /// Bytes in the buffer (DTALEN).
    pub len: u16,
    /// [`tx_cmd`] bits.
    pub cmd: u8,
    /// Which of the two contexts of the queue (IDX, bit 0).
    pub index: u8,
    /// A context applies (CC, "check context").
    pub check_context: bool,
    /// [`tx_popts`] bits.
    pub popts: u8,
    /// Bytes of the whole packet, in its first descriptor (PAYLEN, 18 bits).
    pub payload_len: u32,
}

/// Fields of an advanced context descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Bytes of the IP header with options (IPLEN, 9 bits).
    pub ip_len: u16,
    /// Bytes of the Ethernet header, VLAN tag in the buffer included (MACLEN, 7 bits).
    pub mac_len: u8,
    /// The tag that VLE inserts.
    pub vlan: u16,
    /// The packet is IPv4 (TUCMD.IPV4).
    pub ipv4: bool,
    /// Layer 4 type.
    pub l4: L4Type,
    /// Which of the two contexts of the queue (IDX, bit 0).
    pub index: u8,
    /// Bytes of the layer 4 header (L4LEN); segmentation only.
    pub l4_len: u8,
    /// Bytes of payload per segment; segmentation only.
    pub mss: u16,
}

/// An advanced transmit descriptor: two little-endian quad words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TxDesc {
    low: u64,
    high: u64,
}

impl TxDesc {
    /// A data descriptor (7.2.3.2.4). Fields are masked to their width.
    #[inline]
    pub const fn data(d: TxData) -> Self {
        let high = d.len as u64
            | DTYP_DATA << DTYP_SHIFT
            | (d.cmd as u64) << 24
            | DEXT
            | ((d.index & 0b111) as u64) << 36
            | (d.check_context as u64) << 39
            | ((d.popts & 0x3F) as u64) << 40
            | ((d.payload_len & 0x3_FFFF) as u64) << 46;
        Self { low: d.buffer.to_le(), high: high.to_le() }
    }

    /// A context descriptor (7.2.3.2.3). Fields are masked to their width.
    pub const fn context(c: Context) -> Self {
        let low = (c.ip_len & 0x1FF) as u64 | ((c.mac_len & 0x7F) as u64) << 9 | (c.vlan as u64) << 16;
        let high = (c.ipv4 as u64) << 10
            | ((c.l4.0 & 0b11) as u64) << 11
            | DTYP_CONTEXT << DTYP_SHIFT
            | DEXT
            | ((c.index & 0b111) as u64) << 36
            | (c.l4_len as u64) << 40
            | (c.mss as u64) << 48;
        Self { low: low.to_le(), high: high.to_le() }
    }

    /// This descriptor as the device writes it back: DD, and the rest reserved (7.2.3.5).
    pub const fn write_back() -> Self {
        Self { low: 0, high: DD.to_le() }
    }

    /// What it is.
    #[inline]
    pub const fn kind(&self) -> TxKind {
        let high = u64::from_le(self.high);
        if high & DEXT == 0 {
            return TxKind::Legacy;
        }
        match high >> DTYP_SHIFT & 0xF {
            DTYP_DATA => TxKind::Data,
            DTYP_CONTEXT => TxKind::Context,
            other => TxKind::Reserved(other as u8),
        }
    }

    /// The fields of a data descriptor.
    #[inline]
    pub const fn as_data(&self) -> TxData {
        let high = u64::from_le(self.high);
        TxData {
            buffer: u64::from_le(self.low),
            len: high as u16,
            cmd: (high >> 24) as u8,
            index: (high >> 36 & 0b111) as u8,
            check_context: high >> 39 & 1 != 0,
            popts: (high >> 40 & 0x3F) as u8,
            payload_len: (high >> 46) as u32,
        }
    }

    /// The fields of a context descriptor.
    pub const fn as_context(&self) -> Context {
        let (low, high) = (u64::from_le(self.low), u64::from_le(self.high));
        Context {
            ip_len: (low & 0x1FF) as u16,
            mac_len: (low >> 9 & 0x7F) as u8,
            vlan: (low >> 16) as u16,
            ipv4: high >> 10 & 1 != 0,
            l4: L4Type((high >> 11 & 0b11) as u8),
            index: (high >> 36 & 0b111) as u8,
            l4_len: (high >> 40) as u8,
            mss: (high >> 48) as u16,
        }
    }

    /// The owner word (second quad word), in the host's order.
    #[inline]
    pub const fn owner(&self) -> u64 {
        u64::from_le(self.high)
    }
}

impl Completion for TxDesc {
    const OWNER: usize = 8;
    #[inline]
    fn is_done(owner: u64, _: Pos, _: RingSize) -> bool {
        owner & DD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_descriptor_has_its_fields_where_the_data_sheet_has_them() {
        let t = TxData {
            buffer: 0x0102_0304_0506_0708,
            len: 0x1234,
            cmd: tx_cmd::EOP | tx_cmd::IFCS | tx_cmd::RS | tx_cmd::DEXT,
            index: 1,
            check_context: true,
            popts: tx_popts::IXSM | tx_popts::TXSM,
            payload_len: 0x2_1234,
        };
        let d = TxDesc::data(t);
        assert_eq!(d.kind(), TxKind::Data);
        assert_eq!(d.as_data(), t);
        assert_eq!(u64::from_le_bytes(*d.as_bytes().last_chunk().expect("a quad word")), d.owner());
        assert_eq!(d.owner() & 0xFFFF_FFFF, 0x2B30_1234);
        assert_eq!(d.owner() >> 32, 0x0000_0390 | 0x2_1234 << 14);
        assert!(!TxDesc::is_done(d.owner(), 0, RingSize::try_from(8).expect("a size")));
    }

    #[test]
    fn a_context_descriptor_has_its_fields_where_the_data_sheet_has_them() {
        let c = Context {
            ip_len: 20,
            mac_len: 14,
            vlan: 0x6ABC,
            ipv4: true,
            l4: L4Type::TCP,
            index: 1,
            l4_len: 20,
            mss: 1460,
        };
        let d = TxDesc::context(c);
        assert_eq!((d.kind(), d.as_context()), (TxKind::Context, c));
        assert_eq!(u64::from_le_bytes(*d.as_bytes().first_chunk().expect("a quad word")), 0x6ABC_1C14);
        assert_eq!(d.owner(), 0x05B4_1410_2020_0C00);
    }

    #[test]
    fn the_write_back_is_done_and_a_legacy_or_reserved_descriptor_is_told_apart() {
        assert!(TxDesc::is_done(TxDesc::write_back().owner(), 0, RingSize::try_from(8).expect("a size")));
        assert_eq!(TxDesc::default().kind(), TxKind::Legacy);
        let odd = TxDesc { low: 0, high: (DEXT | 0x7 << DTYP_SHIFT).to_le() };
        assert_eq!(odd.kind(), TxKind::Reserved(7));
    }

    #[test]
    fn every_field_is_masked_to_its_width() {
        let d = TxDesc::data(TxData { index: 0xFF, popts: 0xFF, payload_len: u32::MAX, ..TxData::default() });
        assert_eq!((d.as_data().len, d.as_data().cmd, d.as_data().check_context), (0, tx_cmd::DEXT, false));
        assert_eq!((size_of::<TxDesc>(), align_of::<TxDesc>()), (crate::DESC_BYTES, 8));
    }
}
