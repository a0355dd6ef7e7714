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

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// From the frame's first byte.
    Link(u8),
    /// From layer 3's.
    Network(u8),
    /// From layer 4's.
    Transport(u8),
    /// The outermost tag's 16 bits.
    Tag,
    /// The type behind all tags.
    Type,
    /// What IP carries.
    Upper,
    /// The frame's length.
    Length,
}

/// Bytes of a field that is read from the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
    Six,
    Sixteen,
}

/// How to read a field: big-endian bytes, shifted right, and the bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub from: From,
    pub width: Width,
    pub shift: u8,
    pub mask: u64,
}

/// A packet.
pub(super) struct Facts<'f> {
    front: &'f [u8],
    len: u32,
    tag: u16,
    layers: Layers,
    pub has: Has,
}

impl<'f> Facts<'f> {
    /// Of a frame of `len` bytes that begins with `front`. `tag` stood in front of all others and was taken out.
    #[inline]
    pub fn of(front: &'f [u8], len: usize, tag: Option<u16>, wants: Has) -> Self {
        let layers = Layers::parse_to(front, len, wants.depth());
        let tags = layers.vlans();
        let has = Has::ETHERNET
            .when(front.len() >= wire::EthernetHeader::LEN)
            .and(Has::TYPE.when(layers.l3_offset().is_some()))
            .and(Has::TAG.when(tag.is_some() || !tags.is_empty()))
            .and(Has::L4.when(layers.l4_offset().is_some()))
            .and(network(&layers));
        let tag = tag.or_else(|| tags.first().map(|t| t.raw())).unwrap_or_default();
        let mut facts = Self { front, len: u32::try_from(len).unwrap_or(u32::MAX), tag, layers, has };
        if wants.some(Has::ARP) && facts.is_arp() {
            facts.has = facts.has.and(Has::ARP);
        }
        facts
    }

    fn is_arp(&self) -> bool {
        let packet = self.layers.l3_offset().and_then(|at| self.front.get(at..));
        self.layers.ether_type() == EtherType::ARP && packet.is_some_and(|p| Arp::parse(p).is_ok())
    }

    /// The field's value, of those of at most eight bytes. `None` if it is beyond the bytes at hand.
    #[inline]
    pub fn read(&self, load: Load) -> Option<u64> {
        let raw = match load.from {
            From::Tag => self.tag.into(),
            From::Type => self.layers.ether_type().value().into(),
            From::Upper => self.layers.protocol()?.0.into(),
            From::Length => self.len.into(),
            _ => {
                let bytes = self.bytes(load.from)?;
                match load.width {
                    Width::One => u64::from(*bytes.first()?),
                    Width::Two => u16::from_be_bytes(*bytes.first_chunk()?).into(),
                    Width::Four => u32::from_be_bytes(*bytes.first_chunk()?).into(),
                    Width::Six => wire::MacAddr::new(*bytes.first_chunk()?).to_u64(),
                    Width::Sixteen => return None,
                }
            }
        };
        Some((raw >> load.shift) & load.mask)
    }
    /// The field's value, of those of sixteen bytes.
    #[inline]
    pub fn read_wide(&self, load: Load) -> Option<u128> {
        Some(u128::from_be_bytes(*self.bytes(load.from)?.first_chunk()?))
    }

    #[inline]
    fn bytes(&self, from: From) -> Option<&'f [u8]> {
        let at = match from {
            From::Link(at) => at.into(),
            From::Network(at) => self.layers.l3_offset()? + usize::from(at),
            From::Transport(at) => self.layers.l4_offset()? + usize::from(at),
            _ => return None,
        };
        self.front.get(at..)
    }
}

/// What there is of IP and what it carries.
#[inline]
fn network(layers: &Layers) -> Has {
    let (version, other) = match layers.ip_version() {
        Some(IpVersion::V4) => (Has::V4, (IpProtocol::ICMPV4, Has::ICMP)),
        Some(IpVersion::V6) => (Has::V6, (IpProtocol::ICMPV6, Has::ICMPV6)),
        None => return Has::default(),
    };
    match layers.protocol() {
        Some(IpProtocol::TCP) => version.and(Has::TCP),
        Some(IpProtocol::UDP) => version.and(Has::UDP),
        Some(p) if p == other.0 => version.and(other.1),
        _ => version,
    }
}
