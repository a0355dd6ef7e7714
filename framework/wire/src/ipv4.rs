//! IPv4 (RFC 791; the differentiated services field of RFC 2474 and RFC 3168).
use crate::checksum::Sum;
use crate::view::{split, view};
use crate::{Fragment, IpProtocol, Malformed, Options};
use zerocopy::network_endian::U16;
use zerocopy::{
    ByteSlice, ByteSliceMut, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned,
};

/// Kinds of IPv4 options.
pub mod ipv4_option {
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Time stamp.
    pub const TIMESTAMP: u8 = 68;
    /// Loose source and record route: the packet's destination is not its last.
    pub const LOOSE_ROUTE: u8 = 131;
    /// Strict source and record route.
    pub const STRICT_ROUTE: u8 = 137;
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;
}

const RESERVED: u16 = 0x8000;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// The fixed 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    version_ihl: u8,
    /// DSCP (6 bits) and ECN (2 bits).
    pub dscp_ecn: u8,
    /// Bytes of header and payload.
    pub total_len: U16,
    /// Names the datagram that fragments belong to.
    pub identification: U16,
    flags_offset: U16,
    /// Hops left.
    pub ttl: u8,
    /// What the payload is.
    pub protocol: IpProtocol,
    /// Of the header. See [`Ipv4::checksum_ok`], [`Ipv4::fill_checksum`].
    pub checksum: U16,
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
}

impl Ipv4Header {
    /// Bytes of a header without options.
    pub const LEN: usize = size_of::<Self>();

    /// A header without options, TTL 64, "don't fragment" set (RFC 6864 then asks nothing of the identification), checksum filled. `None` when `payload_len` is beyond 65,515.
    pub fn new(protocol: IpProtocol, src: [u8; 4], dst: [u8; 4], payload_len: usize) -> Option<Self> {
        let total_len = u16::try_from(payload_len.checked_add(Self::LEN)?).ok()?;
        let mut header = Self {
            version_ihl: 0x45,
            dscp_ecn: 0,
            total_len: total_len.into(),
            identification: 0.into(),
            flags_offset: DONT_FRAGMENT.into(),
            ttl: 64,
            protocol,
            checksum: 0.into(),
            src,
            dst,
        };
        header.checksum = Sum::default().plus(header.as_bytes()).checksum().into();
        Some(header)
    }
    /// 4, in a header that a view was made over.
    #[inline]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }
    /// Bytes of the header with options, by its IHL field.
    #[inline]
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 0xf) as usize * 4
    }
    /// States version 4 and a header of `words` 32-bit words, of which the low four bits count. The view that it is set through keeps its shape.
    pub const fn set_header_words(&mut self, words: u8) {
        self.version_ihl = 0x40 | (words & 0xf);
    }
    /// Version 4, no options.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.version_ihl == 0x45
    }
    /// Differentiated services code point.
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.dscp_ecn >> 2
    }
    /// Explicit congestion notification.
    #[inline]
    pub const fn ecn(&self) -> u8 {
        self.dscp_ecn & 3
    }
    /// The reserved flag, which senders leave clear.
    pub const fn reserved_flag(&self) -> bool {
        self.flags_offset.get() & RESERVED != 0
    }
    /// "Don't fragment".
    #[inline]
    pub const fn dont_fragment(&self) -> bool {
        self.flags_offset.get() & DONT_FRAGMENT != 0
    }
    /// "More fragments".
    #[inline]
    pub const fn more_fragments(&self) -> bool {
        self.flags_offset.get() & MORE_FRAGMENTS != 0
    }
    /// Where in its datagram the payload belongs, in bytes (a multiple of 8).
    #[inline]
    pub const fn fragment_offset(&self) -> usize {
        (self.flags_offset.get() & OFFSET) as usize * 8
    }
    /// Sets the fragment fields and clears the reserved flag. Of `offset` (bytes) what is a multiple of 8 below 65,536 counts.
    pub const fn set_fragment(&mut self, dont: bool, more: bool, offset: usize) {
        let flags = if dont { DONT_FRAGMENT } else { 0 } | if more { MORE_FRAGMENTS } else { 0 };
        self.flags_offset = U16::new(flags | ((offset / 8) as u16 & OFFSET));
    }
    /// Which part of its datagram this packet is.
    #[inline]
    pub const fn fragment(&self) -> Fragment {
        let field = self.flags_offset.get();
        if field & (MORE_FRAGMENTS | OFFSET) == 0 {
            Fragment::Whole
        } else if field & OFFSET == 0 {
            Fragment::First
        } else {
            Fragment::Later
        }
    }
    /// Checks the header against `available` bytes from its first: bytes of header, and of header and payload.
    #[inline]
    pub(crate) const fn lengths(&self, available: usize) -> Result<(usize, usize), Malformed> {
        if self.version() != 4 {
            return Err(Malformed::WrongKind);
        }
        let (header, total) = (self.header_len(), self.total_len.get() as usize);
        if header < Self::LEN || header > available {
            return Err(Malformed::BadHeaderLength);
        }
        if total < header || total > available {
            return Err(Malformed::BadLength);
        }
        Ok((header, total))
    }
}

/// As [`Ipv4::route_pending`], of the options alone.
pub(crate) fn route_pending(mut options: Options<'_>) -> bool {
    options.any(|option| match option {
        Ok(o) if matches!(o.kind, ipv4_option::LOOSE_ROUTE | ipv4_option::STRICT_ROUTE) => {
            // The pointer counts from the option's first byte, from 1; beyond the option it is used up.
            o.data.first().is_some_and(|&pointer| usize::from(pointer) <= o.data.len() + 2)
        }
        _ => false,
    })
}

/// View of an IPv4 packet.
#[derive(Debug)]
pub struct Ipv4<B: ByteSlice> {
    header: Ref<B, Ipv4Header>,
    options: B,
    payload: B,
}
view!(Ipv4, Ipv4Header);

impl<B: SplitByteSlice> Ipv4<B> {
    /// Over an Ethernet payload; what follows the total length is padding and left out.
    ///
    /// # Errors
    /// [`Malformed::TooShort`] below 20 bytes, `WrongKind` if the version is not 4, `BadHeaderLength` for an IHL below 5 or beyond
    /// the bytes, `BadLength` for a total length below the header's or beyond the bytes.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let available = bytes.len();
        let (header, rest) = Ref::<B, Ipv4Header>::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        let (header_len, total) = header.lengths(available)?;
        let (options, rest) = split(rest, header_len - Ipv4Header::LEN, Malformed::BadHeaderLength)?;
        let (payload, _) = split(rest, total - header_len, Malformed::BadLength)?;
        Ok(Self { header, options, payload })
    }
}

impl<B: ByteSlice> Ipv4<B> {
    /// The option bytes, 0 to 40.
    #[inline]
    pub fn option_bytes(&self) -> &[u8] {
        &self.options
    }
    /// Walks the options.
    pub fn options(&self) -> Options<'_> {
        Options::new(&self.options)
    }
    /// A source route option has hops left: the destination is not the one that layer 4's checksum was made for (RFC 1122 4.1.3.5, 4.2.3.8).
    pub fn route_pending(&self) -> bool {
        route_pending(self.options())
    }
    /// The header checksum is right.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        self.sum().is_ok()
    }
    fn sum(&self) -> Sum {
        Sum::default().plus(self.header.as_bytes()).plus(&self.options)
    }
}

impl<B: ByteSliceMut> Ipv4<B> {
    /// The option bytes, to be written.
    pub fn option_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.options
    }
    /// Computes the header checksum.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.header.checksum = 0.into();
        self.header.checksum = self.sum().checksum().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of RFC 1071-style textbooks: 192.168.0.1 to 192.168.0.199, UDP, 115 bytes.
    const HEADER: [u8; 20] = [
        0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 192, 168, 0, 1, 192, 168, 0, 199, //
    ];

    fn packet() -> Vec<u8> {
        let mut bytes = HEADER.to_vec();
        bytes.resize(130, 0xaa);
        bytes
    }

    #[test]
    fn reads_a_known_header() {
        let bytes = packet();
        let ip = Ipv4::parse(&bytes[..]).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!(
            (ip.protocol, ip.ttl, ip.src, ip.dst),
            (IpProtocol::UDP, 64, [192, 168, 0, 1], [192, 168, 0, 199])
        );
        assert!(ip.dont_fragment() && !ip.more_fragments() && ip.fragment() == Fragment::Whole);
        assert_eq!(ip.payload().len(), 0x73 - 20, "padding is left out");
    }

    #[test]
    fn new_is_what_parses() {
        let header =
            Ipv4Header::new(IpProtocol::UDP, [192, 168, 0, 1], [192, 168, 0, 199], 0x73 - 20).unwrap();
        assert_eq!(header.as_bytes(), HEADER);
        assert!(Ipv4Header::new(IpProtocol::UDP, [0; 4], [0; 4], 65_515).is_some());
        assert_eq!(Ipv4Header::new(IpProtocol::UDP, [0; 4], [0; 4], 65_516), None);
    }

    #[test]
    fn a_changed_header_fails_its_checksum_until_filled() {
        let mut bytes = packet();
        let mut ip = Ipv4::parse(&mut bytes[..]).unwrap();
        ip.ttl -= 1;
        assert!(!ip.checksum_ok());
        ip.fill_checksum();
        assert!(ip.checksum_ok());
        assert_eq!(ip.checksum.get(), 0xb961);
    }

    #[test]
    fn impossible_lengths_have_their_kinds() {
        let kind = |edit: fn(&mut Vec<u8>)| {
            let mut bytes = packet();
            edit(&mut bytes);
            Ipv4::parse(&bytes[..]).unwrap_err()
        };
        assert_eq!(kind(|b| b.truncate(19)), Malformed::TooShort);
        assert_eq!(kind(|b| b[0] = 0x65), Malformed::WrongKind);
        assert_eq!(kind(|b| b[0] = 0x44), Malformed::BadHeaderLength);
        assert_eq!(kind(|b| b[0] = 0x40), Malformed::BadHeaderLength);
        assert_eq!(
            kind(|b| {
                b[0] = 0x4f;
                b.truncate(59)
            }),
            Malformed::BadHeaderLength
        );
        assert_eq!(kind(|b| b[3] = 19), Malformed::BadLength);
        assert_eq!(kind(|b| b[3] = 131), Malformed::BadLength);
        assert_eq!(
            kind(|b| {
                b[0] = 0x4f;
                b[3] = 59
            }),
            Malformed::BadLength
        );
    }

    #[test]
    fn options_are_within_the_header() {
        let mut bytes = packet();
        bytes[0] = 0x47;
        bytes[20..28].copy_from_slice(&[131, 7, 4, 10, 0, 0, 9, 0]);
        let ip = Ipv4::parse(&bytes[..]).unwrap();
        assert_eq!(ip.option_bytes().len(), 8);
        let option = ip.options().next().unwrap().unwrap();
        assert_eq!((option.kind, option.data), (ipv4_option::LOOSE_ROUTE, &[4, 10, 0, 0, 9][..]));
        assert!(ip.route_pending());
        bytes[22] = 8;
        assert!(!Ipv4::parse(&bytes[..]).unwrap().route_pending(), "the route is used up");
    }

    #[test]
    fn fragments() {
        let mut bytes = packet();
        let mut ip = Ipv4::parse(&mut bytes[..]).unwrap();
        ip.set_fragment(false, true, 0);
        assert_eq!(ip.fragment(), Fragment::First);
        ip.set_fragment(false, true, 1480);
        assert_eq!((ip.fragment(), ip.fragment_offset()), (Fragment::Later, 1480));
        ip.set_fragment(false, false, 65_528);
        assert_eq!((ip.fragment(), ip.fragment_offset()), (Fragment::Later, 65_528));
        ip.set_fragment(true, false, 0);
        assert_eq!((ip.fragment(), ip.dont_fragment()), (Fragment::Whole, true));
    }
}
