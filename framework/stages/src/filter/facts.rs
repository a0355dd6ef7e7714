//! One packet as a program sees it: which layers it has, and its fields by where they are.

use wire::{Arp, Depth, EtherType, IpProtocol, IpVersion, Layers};

/// A set of things that a packet may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Has(u16);

impl Has {
    /// Nothing: any packet has it.
    pub const NOTHING: Self = Self(0);
    /// A whole Ethernet header.
    pub const ETHERNET: Self = Self(1 << 0);
    /// A type behind all tags.
    pub const TYPE: Self = Self(1 << 1);
    /// A VLAN tag.
    pub const TAG: Self = Self(1 << 2);
    /// A whole ARP packet for IPv4 over Ethernet.
    pub const ARP: Self = Self(1 << 3);
    /// An IPv4 header whose lengths fit.
    pub const V4: Self = Self(1 << 4);
    /// An IPv6 header whose lengths fit.
    pub const V6: Self = Self(1 << 5);
    /// TCP, by what IP says.
    pub const TCP: Self = Self(1 << 6);
    /// UDP, by what IP says.
    pub const UDP: Self = Self(1 << 7);
    /// ICMP in IPv4.
    pub const ICMP: Self = Self(1 << 8);
    /// ICMPv6 in IPv6.
    pub const ICMPV6: Self = Self(1 << 9);
    /// The whole header of one of those four.
    pub const L4: Self = Self(1 << 10);

    /// All of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// All of `other` is in it.
    #[inline(always)]
    pub const fn all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Some of `other` is in it.
    pub const fn some(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    #[inline(always)]
    const fn when(self, yes: bool) -> Self {
        if yes { self } else { Self(0) }
    }
    /// How deep one has to look for it.
    pub const fn depth(self) -> Depth {
        if self.some(Self::L4) {
            Depth::Transport
        } else if self
            .some(Self(Self::V4.0 | Self::V6.0 | Self::TCP.0 | Self::UDP.0 | Self::ICMP.0 | Self::ICMPV6.0))
        {
            Depth::Network
        } else {
            Depth::Link
        }
    }
}

/// Where a field is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum From {
    /// The frame's first byte.
    Link,
    /// Layer 3's.
    Network,
    /// Layer 4's.
    Transport,
    /// Not in the bytes: the outermost tag's 16 bits.
    Tag,
    /// The type behind all tags.
    Type,
    /// What IP carries.
    Upper,
    /// The frame's length.
    Length,
}
/// Places that are no bytes of the frame's come after these.
const LAYERS: usize = From::Tag as usize;
/// All places, and one so that their number is a power of two.
const PLACES: usize = From::Length as usize + 2;

/// How to read a field of at most eight bytes: big-endian from there on, shifted right, and the bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub from: From,
    /// Bytes from there.
    pub at: u8,
    /// Bytes of the field; sixteen of one that is read by [`Facts::read_wide`].
    pub width: u8,
    /// Of the eight bytes from the field's first on, or of the number.
    pub shift: u8,
    pub mask: u64,
}

/// A packet.
pub(super) struct Facts<'f> {
    front: &'f [u8],
    /// Where layers begin, and numbers that are no bytes; only what [`Facts::has`] says is there means something.
    from: [u32; PLACES],
    pub has: Has,
}

impl<'f> Facts<'f> {
    /// Of a frame of `len` bytes that begins with `front`. `tag` stood in front of all others and was taken out.
    #[inline]
    pub fn of(front: &'f [u8], len: usize, tag: Option<u16>, wants: Has, depth: Depth) -> Self {
        let layers = match depth {
            Depth::Link => Layers::parse_to(front, len, Depth::Link),
            Depth::Network => Layers::parse_to(front, len, Depth::Network),
            Depth::Transport => Layers::parse_to(front, len, Depth::Transport),
        };
        let tag = tag.or_else(|| layers.vlans().first().map(|t| t.raw()));
        let from = [
            0,
            layers.l3_offset().unwrap_or(0) as u32,
            layers.l4_offset().unwrap_or(0) as u32,
            tag.unwrap_or(0).into(),
            layers.ether_type().value().into(),
            layers.protocol().map_or(0, |p| p.0).into(),
            u32::try_from(len).unwrap_or(u32::MAX),
            0,
        ];
        let link = if layers.l3_offset().is_some() { Has::ETHERNET.and(Has::TYPE) } else { Has::NOTHING };
        let has = link.and(Has::TAG.when(tag.is_some())).and(network(&layers));
        let mut facts = Self { front, from, has };
        if link == Has::NOTHING || wants.some(Has::ARP) {
            facts.has = has.and(rare(front, &layers));
        }
        facts
    }

    /// The field's value, of those of at most eight bytes. `None` if it is beyond the bytes at hand.
    #[inline(always)]
    pub fn read(&self, load: Load) -> Option<u64> {
        let place = load.from as usize;
        let from = self.from[place % PLACES];
        let raw = if place >= LAYERS {
            from.into()
        } else {
            let at = from as usize + usize::from(load.at);
            match self.front.get(at..).and_then(|b| b.first_chunk()) {
                Some(&bytes) => u64::from_be_bytes(bytes),
                None => self.last(at, load.width)?,
            }
        };
        Some((raw >> (load.shift % 64)) & load.mask)
    }
    /// Eight bytes of which the frame's end leaves only some.
    #[cold]
    fn last(&self, at: usize, width: u8) -> Option<u64> {
        let rest = self.front.get(at..).filter(|b| b.len() >= width.into())?;
        Some(rest.iter().zip((0..8).rev()).fold(0, |n, (&byte, place)| n | u64::from(byte) << (8 * place)))
    }
    /// The field's value, of those of sixteen bytes.
    #[inline]
    pub fn read_wide(&self, load: Load) -> Option<u128> {
        let from = self.from[load.from as usize % PLACES];
        let bytes = self.front.get(from as usize + usize::from(load.at)..)?;
        Some(u128::from_be_bytes(*bytes.first_chunk()?))
    }
}

/// What is looked for only if somebody asks, or the frame ends in its link header.
#[inline(never)]
fn rare(front: &[u8], layers: &Layers) -> Has {
    let packet = layers.l3_offset().and_then(|at| front.get(at..));
    let arp = layers.ether_type() == EtherType::ARP && packet.is_some_and(|p| Arp::parse(p).is_ok());
    Has::ARP.when(arp).and(Has::ETHERNET.when(front.len() >= wire::EthernetHeader::LEN))
}

/// What there is of IP and what it carries.
#[inline]
fn network(layers: &Layers) -> Has {
    let (version, other) = match layers.ip_version() {
        Some(IpVersion::V4) => (Has::V4, (IpProtocol::ICMPV4, Has::ICMP)),
        Some(IpVersion::V6) => (Has::V6, (IpProtocol::ICMPV6, Has::ICMPV6)),
        None => return Has::NOTHING,
    };
    let carried = match layers.protocol() {
        Some(IpProtocol::TCP) => Has::TCP,
        Some(IpProtocol::UDP) => Has::UDP,
        Some(p) if p == other.0 => other.1,
        _ => return version,
    };
    version.and(carried).and(Has::L4.when(layers.l4_offset().is_some()))
}
