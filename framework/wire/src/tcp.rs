//! TCP (RFC 9293; options of RFC 7323 and RFC 2018).
use crate::view::{split, view};
use crate::{Malformed, Options};
use core::fmt;
use zerocopy::network_endian::{U16, U32};
use zerocopy::{
    ByteSlice, ByteSliceMut, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned,
};

/// Kinds of TCP options.
pub mod tcp_option {
    /// Maximum segment size.
    pub const MSS: u8 = 2;
    /// Window scale.
    pub const WINDOW_SCALE: u8 = 3;
    /// Selective acknowledgement permitted.
    pub const SACK_PERMITTED: u8 = 4;
    /// Selective acknowledgement.
    pub const SACK: u8 = 5;
    /// Time stamps.
    pub const TIMESTAMPS: u8 = 8;
}

/// TCP's control bits, FIN lowest.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(transparent)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// All flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Those of both.
    #[must_use]
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
        let mut between = "";
        for (_, name) in names.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0) {
            write!(f, "{between}{name}")?;
            between = "|";
        }
        if self.0 == 0 { f.write_str("none") } else { Ok(()) }
    }
}

/// The fixed 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Sequence number of the first byte.
    pub sequence: U32,
    /// Next sequence number that the sender expects.
    pub acknowledgement: U32,
    offset_reserved: u8,
    /// Control bits.
    pub flags: TcpFlags,
    /// Window, unscaled.
    pub window: U16,
    /// Of pseudo header, header and data. See [`crate::checksum::fill_l4`].
    pub checksum: U16,
    /// Urgent pointer.
    pub urgent: U16,
}

impl TcpHeader {
    /// Bytes of a header without options.
    pub const LEN: usize = size_of::<Self>();

    /// A header without options, all else zero.
    pub const fn new(src_port: u16, dst_port: u16) -> Self {
        Self {
            src_port: U16::new(src_port),
            dst_port: U16::new(dst_port),
            sequence: U32::ZERO,
            acknowledgement: U32::ZERO,
            offset_reserved: 0x50,
            flags: TcpFlags(0),
            window: U16::ZERO,
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        }
    }
    /// Bytes of the header with options, by its data offset.
    #[inline]
    pub const fn header_len(&self) -> usize {
        (self.offset_reserved >> 4) as usize * 4
    }
    /// The four reserved bits, which senders leave clear.
    pub const fn reserved(&self) -> u8 {
        self.offset_reserved & 0xf
    }
    /// States a header of `words` 32-bit words, of which the low four bits count, and clears the reserved bits. The view that it is set through keeps its shape.
    pub const fn set_header_words(&mut self, words: u8) {
        self.offset_reserved = words << 4;
    }
    /// Checks the header against `available` bytes from its first: bytes of header.
    #[inline]
    pub(crate) const fn length(&self, available: usize) -> Result<usize, Malformed> {
        let header = self.header_len();
        if header < Self::LEN || header > available { Err(Malformed::BadHeaderLength) } else { Ok(header) }
    }
}

/// View of a TCP segment.
#[derive(Debug)]
pub struct Tcp<B: ByteSlice> {
    header: Ref<B, TcpHeader>,
    options: B,
    payload: B,
}
view!(Tcp, TcpHeader);

impl<B: SplitByteSlice> Tcp<B> {
    /// Over an IP payload.
    ///
    /// # Errors
    /// [`Malformed::TooShort`] below 20 bytes, `BadHeaderLength` for a data offset below 5 or beyond the bytes.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let available = bytes.len();
        let (header, rest) = Ref::<B, TcpHeader>::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        let options = header.length(available)? - TcpHeader::LEN;
        let (options, payload) = split(rest, options, Malformed::BadHeaderLength)?;
        Ok(Self { header, options, payload })
    }
}

impl<B: ByteSlice> Tcp<B> {
    /// The option bytes, 0 to 40.
    #[inline]
    pub fn option_bytes(&self) -> &[u8] {
        &self.options
    }
    /// Walks the options.
    pub fn options(&self) -> Options<'_> {
        Options::new(&self.options)
    }
    /// The maximum segment size option, if there is a whole one before the first malformed option.
    pub fn mss(&self) -> Option<u16> {
        self.options().map_while(Result::ok).find(|o| o.kind == tcp_option::MSS).and_then(|o| match *o.data {
            [high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        })
    }
}

impl<B: ByteSliceMut> Tcp<B> {
    /// The option bytes, to be written.
    pub fn option_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN as Linux sends it: MSS 1460, SACK permitted, time stamps, padding, window scale 7.
    const SYN: [u8; 40] = [
        0xc0, 0x01, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, //
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];

    #[test]
    fn reads_a_syn() {
        let tcp = Tcp::parse(&SYN[..]).unwrap();
        assert_eq!((tcp.src_port.get(), tcp.dst_port.get()), (0xc001, 80));
        assert_eq!((tcp.flags, tcp.sequence.get()), (TcpFlags::SYN, 0x0102_0304));
        assert_eq!(tcp.mss(), Some(1460));
        let kinds: Vec<_> = tcp.options().map(|o| o.unwrap().kind).collect();
        assert_eq!(kinds, [2, 4, 8, 3]);
        assert!(tcp.payload().is_empty());
    }

    #[test]
    fn impossible_offsets_have_their_kinds() {
        assert_eq!(Tcp::parse(&SYN[..19]).unwrap_err(), Malformed::TooShort);
        assert_eq!(Tcp::parse(&SYN[..39]).unwrap_err(), Malformed::BadHeaderLength);
        for offset in [0x00, 0x40, 0xb0, 0xf0] {
            let mut bytes = SYN;
            bytes[12] = offset;
            assert_eq!(Tcp::parse(&bytes[..]).unwrap_err(), Malformed::BadHeaderLength, "{offset:#x}");
        }
    }

    #[test]
    fn options_can_be_rewritten() {
        let mut bytes = SYN;
        let mut tcp = Tcp::parse(&mut bytes[..]).unwrap();
        tcp.option_bytes_mut()[2..4].copy_from_slice(&1400u16.to_be_bytes());
        tcp.flags = tcp.flags.with(TcpFlags::ECE);
        assert_eq!(tcp.mss(), Some(1400));
        assert!(tcp.flags.contains(TcpFlags::SYN) && !tcp.flags.contains(TcpFlags::ACK));
        assert_eq!(format!("{:?}", tcp.flags), "syn|ece");
    }

    #[test]
    fn a_malformed_option_hides_what_follows() {
        let mut bytes = SYN;
        bytes[20..24].copy_from_slice(&[9, 0, 2, 4]);
        assert_eq!(Tcp::parse(&bytes[..]).unwrap().mss(), None);
    }
}
