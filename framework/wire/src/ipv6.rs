//! IPv6 and its extension headers (RFC 8200, RFC 4302 for AH, RFC 7045 for which headers are such).
use crate::view::{split, view};
use crate::{Fragment, IpProtocol, Malformed};
use zerocopy::network_endian::{U16, U32};
use zerocopy::{ByteSlice, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// Extension headers that are followed. RFC 8200 4.1 recommends each at most once, which is fewer; a longer chain costs a
/// sender nothing and a reader time, so it is malformed here.
pub const MAX_EXTENSIONS: usize = 8;

/// The fixed 40 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6Header {
    version_class_flow: U32,
    /// Bytes after this header.
    pub payload_len: U16,
    /// What follows: an extension header or layer 4.
    pub next_header: IpProtocol,
    /// Hops left.
    pub hop_limit: u8,
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
}

impl Ipv6Header {
    /// Bytes of the header.
    pub const LEN: usize = size_of::<Self>();

    /// A header with hop limit 64. `None` when `payload_len` is beyond 65,535.
    pub fn new(next_header: IpProtocol, src: [u8; 16], dst: [u8; 16], payload_len: usize) -> Option<Self> {
        let payload_len = u16::try_from(payload_len).ok()?.into();
        Some(Self {
            version_class_flow: U32::new(6 << 28),
            payload_len,
            next_header,
            hop_limit: 64,
            src,
            dst,
        })
    }
    /// 6, in a header that a view was made over.
    #[inline]
    pub const fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }
    /// DSCP (6 bits) and ECN (2 bits).
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }
    /// Flow label, 20 bits.
    #[inline]
    pub const fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
    }
    /// Sets traffic class and flow label (the low 20 bits count).
    pub const fn set_class_flow(&mut self, traffic_class: u8, flow_label: u32) {
        self.version_class_flow = U32::new(6 << 28 | (traffic_class as u32) << 20 | (flow_label & 0xf_ffff));
    }
    /// Checks the header against `available` bytes from its first: bytes of payload.
    #[inline]
    pub(crate) const fn payload_within(&self, available: usize) -> Result<usize, Malformed> {
        if self.version() != 6 {
            return Err(Malformed::WrongKind);
        }
        let payload = self.payload_len.get() as usize;
        if payload > available.saturating_sub(Self::LEN) { Err(Malformed::BadLength) } else { Ok(payload) }
    }
}

/// View of an IPv6 packet. Its payload begins with the extension headers, if there are any.
#[derive(Debug)]
pub struct Ipv6<B: ByteSlice> {
    header: Ref<B, Ipv6Header>,
    payload: B,
}
view!(Ipv6, Ipv6Header);

impl<B: SplitByteSlice> Ipv6<B> {
    /// Over an Ethernet payload; what follows the payload length is padding and left out.
    ///
    /// # Errors
    /// [`Malformed::TooShort`] below 40 bytes, `WrongKind` if the version is not 6, `BadLength` for a payload beyond the bytes.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let available = bytes.len();
        let (header, rest) = Ref::<B, Ipv6Header>::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        let payload = header.payload_within(available)?;
        let (payload, _) = split(rest, payload, Malformed::BadLength)?;
        Ok(Self { header, payload })
    }
}

impl<B: ByteSlice> Ipv6<B> {
    /// Walks the extension headers.
    pub fn extensions(&self) -> Extensions<'_> {
        Extensions::new(self.header.next_header, &self.payload)
    }
    /// What is behind the extension headers.
    ///
    /// # Errors
    /// Those of [`Extensions`].
    #[inline]
    pub fn upper(&self) -> Result<Upper, Malformed> {
        Upper::find(self.header.next_header, &self.payload)
    }
}

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// What kind it is.
    pub kind: IpProtocol,
    /// All its bytes, at least 8; the first is the kind of what follows.
    pub bytes: &'a [u8],
}

impl Extension<'_> {
    /// The fragment header's offset in bytes and its M flag (RFC 8200 4.5); `None` for other kinds.
    #[inline]
    pub fn fragment(&self) -> Option<(usize, bool)> {
        match (self.kind, self.bytes) {
            (IpProtocol::FRAGMENT, &[_, _, high, low, ..]) => {
                let field = u16::from_be_bytes([high, low]);
                Some((usize::from(field & 0xfff8), field & 1 != 0))
            }
            _ => None,
        }
    }
    /// The routing header's segments left (RFC 8200 4.4); `None` for other kinds.
    #[inline]
    pub fn segments_left(&self) -> Option<u8> {
        match (self.kind, self.bytes) {
            (IpProtocol::ROUTING, &[_, _, _, left, ..]) => Some(left),
            _ => None,
        }
    }
}

/// Walks extension headers up to layer 4, to a later fragment's data, or to the first that is malformed:
/// [`Malformed::BadExtension`] when it is cut off, or is hop-by-hop options that are not first; [`Malformed::TooManyHeaders`] at the
/// ninth.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    next: IpProtocol,
    rest: &'a [u8],
    seen: usize,
    ended: bool,
}

impl<'a> Extensions<'a> {
    /// Over the payload of an IPv6 header that says `next`.
    #[inline]
    pub const fn new(next: IpProtocol, payload: &'a [u8]) -> Self {
        Self { next, rest: payload, seen: 0, ended: false }
    }
    /// What follows the headers walked so far.
    #[inline]
    pub const fn protocol(&self) -> IpProtocol {
        self.next
    }
    #[inline]
    fn step(&mut self) -> Result<Extension<'a>, Malformed> {
        if self.seen == MAX_EXTENSIONS {
            return Err(Malformed::TooManyHeaders);
        }
        if self.next == IpProtocol::HOP_BY_HOP && self.seen > 0 {
            return Err(Malformed::BadExtension);
        }
        let &[next, length, ..] = self.rest else { return Err(Malformed::BadExtension) };
        let bytes = match self.next {
            IpProtocol::FRAGMENT => 8,
            // In words of four bytes, less two (RFC 4302 2.2). Below 12 bytes it would not hold its own fixed part.
            IpProtocol::AH if length == 0 => return Err(Malformed::BadExtension),
            IpProtocol::AH => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        let Some((bytes, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(Malformed::BadExtension);
        };
        let extension = Extension { kind: self.next, bytes };
        (self.next, self.rest, self.seen) = (IpProtocol(next), rest, self.seen + 1);
        // The rest of a later fragment is data: whatever its first byte looks like.
        self.ended = extension.fragment().is_some_and(|(offset, _)| offset > 0);
        Ok(extension)
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Extension<'a>, Malformed>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || !self.next.is_extension() {
            return None;
        }
        let step = self.step();
        self.ended |= step.is_err();
        Some(step)
    }
}

/// What is behind the extension headers of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// What it is.
    pub protocol: IpProtocol,
    /// Bytes of extension headers before it.
    pub offset: usize,
    /// Which part of its datagram the packet carries.
    pub fragment: Fragment,
    /// A routing header has segments left: the destination is not the one that layer 4's checksum was made for (RFC 8200 8.1).
    pub route_pending: bool,
}

impl Upper {
    /// Walks over the payload of an IPv6 header that says `next`.
    #[inline]
    pub(crate) fn find(next: IpProtocol, payload: &[u8]) -> Result<Self, Malformed> {
        let mut upper = Self { protocol: next, offset: 0, fragment: Fragment::Whole, route_pending: false };
        if !next.is_extension() {
            return Ok(upper);
        }
        let mut walk = Extensions::new(next, payload);
        for extension in walk.by_ref() {
            let extension = extension?;
            match extension.fragment() {
                Some((0, false)) | None => {}
                Some((0, true)) => upper.fragment = Fragment::First,
                Some(_) => upper.fragment = Fragment::Later,
            }
            upper.route_pending |= extension.segments_left().is_some_and(|left| left > 0);
            upper.offset += extension.bytes.len();
        }
        upper.protocol = walk.protocol();
        Ok(upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: IpProtocol, payload: &[u8]) -> Vec<u8> {
        let header = Ipv6Header::new(next, [1; 16], [2; 16], payload.len()).unwrap();
        [header.as_bytes(), payload].concat()
    }
    fn upper(next: IpProtocol, payload: &[u8]) -> Result<Upper, Malformed> {
        Ipv6::parse(&packet(next, payload)[..]).unwrap().upper()
    }

    #[test]
    fn reads_and_writes_the_fixed_header() {
        let mut bytes = packet(IpProtocol::UDP, b"12345678");
        bytes.extend_from_slice(b"padding");
        let mut ip = Ipv6::parse(&mut bytes[..]).unwrap();
        ip.set_class_flow(0xb8, 0xfedcb);
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0xb8, 0xfedcb));
        assert_eq!(ip.payload(), b"12345678");
        assert_eq!(bytes[..8], [0x6b, 0x8f, 0xed, 0xcb, 0, 8, 17, 64]);
    }

    #[test]
    fn impossible_lengths_have_their_kinds() {
        let bytes = packet(IpProtocol::UDP, b"12345678");
        assert_eq!(Ipv6::parse(&bytes[..39]).unwrap_err(), Malformed::TooShort);
        assert_eq!(Ipv6::parse(&bytes[..47]).unwrap_err(), Malformed::BadLength);
        let mut other = bytes.clone();
        other[0] = 0x45;
        assert_eq!(Ipv6::parse(&other[..]).unwrap_err(), Malformed::WrongKind);
    }

    #[test]
    fn walks_to_the_upper_layer() {
        // Hop-by-hop (8 bytes), destination options (16), AH (12), then UDP.
        let mut chain = vec![60, 0, 1, 4, 0, 0, 0, 0];
        chain.extend([51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        chain.extend([17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        chain.extend([0; 8]);
        let found = upper(IpProtocol::HOP_BY_HOP, &chain).unwrap();
        let expected =
            Upper { protocol: IpProtocol::UDP, offset: 36, fragment: Fragment::Whole, route_pending: false };
        assert_eq!(found, expected);
        let bytes = packet(IpProtocol::HOP_BY_HOP, &chain);
        let ip = Ipv6::parse(&bytes[..]).unwrap();
        let lengths: Vec<_> = ip.extensions().map(|e| e.unwrap().bytes.len()).collect();
        assert_eq!(lengths, [8, 16, 12]);
    }

    #[test]
    fn fragments_and_routes() {
        let fragment = |field: u16| {
            let [high, low] = field.to_be_bytes();
            // The bytes behind a later fragment's header look like a hop-by-hop header and must not be taken for one.
            upper(IpProtocol::FRAGMENT, &[0, 0, high, low, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0])
        };
        assert_eq!(fragment(8).unwrap().fragment, Fragment::Later);
        assert_eq!((fragment(8).unwrap().offset, fragment(8).unwrap().protocol.0), (8, 0));
        assert_eq!(fragment(0), Err(Malformed::BadExtension), "hop-by-hop options must be first");
        let first = upper(IpProtocol::FRAGMENT, &[17, 0, 0, 1, 0, 0, 0, 7]).unwrap();
        assert_eq!((first.fragment, first.protocol), (Fragment::First, IpProtocol::UDP));
        let atomic = upper(IpProtocol::FRAGMENT, &[17, 0, 0, 0, 0, 0, 0, 7]).unwrap();
        assert_eq!(atomic.fragment, Fragment::Whole);
        assert!(upper(IpProtocol::ROUTING, &[17, 0, 4, 1, 0, 0, 0, 0]).unwrap().route_pending);
        assert!(!upper(IpProtocol::ROUTING, &[17, 0, 4, 0, 0, 0, 0, 0]).unwrap().route_pending);
    }

    #[test]
    fn chains_are_bounded_and_whole() {
        let chain = |n: usize| [60, 0, 1, 4, 0, 0, 0, 0].repeat(n);
        let mut eight = chain(MAX_EXTENSIONS);
        eight[(MAX_EXTENSIONS - 1) * 8] = 6;
        assert_eq!(upper(IpProtocol::DESTINATION, &eight).unwrap().protocol, IpProtocol::TCP);
        assert_eq!(upper(IpProtocol::DESTINATION, &chain(100)), Err(Malformed::TooManyHeaders));
        assert_eq!(upper(IpProtocol::DESTINATION, &[17, 1, 0, 0, 0, 0, 0, 0]), Err(Malformed::BadExtension));
        assert_eq!(upper(IpProtocol::DESTINATION, &[17]), Err(Malformed::BadExtension));
        assert_eq!(upper(IpProtocol::AH, &[17, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::BadExtension));
        assert_eq!(upper(IpProtocol::NO_NEXT, &[]).unwrap().protocol, IpProtocol::NO_NEXT);
    }
}
