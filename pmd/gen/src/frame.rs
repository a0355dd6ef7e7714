//! Making frames, and telling whether a frame is one of them and as it was made.

use ipnet::{Ipv4Net, Ipv6Net};
use mem::Flags;
use wire::checksum::{L4Check, Sum, verify_l4};
use wire::zerocopy::network_endian::U16;
use wire::{EthernetHeader, IpProtocol, Ipv4Header, Ipv6Header, Layers, MacAddr, UdpHeader};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ip::{Ip, station4, station6};
use crate::pattern::Pattern;
use crate::profile::{Addresses, Profile};
use crate::sizes::{FCS, Sizes};
use crate::tag::{Identity, Mark, Tag};

/// Discard (RFC 863).
const DST_PORT: u16 = 9;
/// Flows take source ports from here on, and begin again behind the last.
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT;

/// How every frame begins.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head<I> {
    ethernet: EthernetHeader,
    ip: I,
    udp: UdpHeader,
    tag: Tag,
}

/// Frames of one size, but for what differs by flow and number.
struct Template<I> {
    head: Head<I>,
    /// Bytes behind the head.
    fill: usize,
    /// The sum of what is the same in all of UDP's pseudo header and header: protocol, lengths, destination port.
    udp_sum: u64,
}

/// What is the same in all frames of a flow.
struct Flow<A> {
    src: A,
    dst: A,
    port: u16,
    /// The sum of both addresses.
    sum: u16,
}

/// All frames of a run over IPv4 or IPv6.
pub struct Frames<I: Ip> {
    id: Identity,
    sizes: Sizes,
    templates: Vec<Template<I>>,
    flows: Vec<Flow<I::Address>>,
    pattern: Pattern,
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// One of this run's, as it was made, but for what a bridge or router may change.
    Intact(Mark),
    /// One of this run's, changed; `None` if that may be true of its tag as well.
    Changed(Option<Mark>),
    /// Not one of this run's.
    Foreign,
}

/// Bytes of the headers and the tag: the shortest frame without its check sequence.
pub const fn head_len(addresses: &Addresses) -> usize {
    match addresses {
        Addresses::V4 { .. } => size_of::<Head<Ipv4Header>>(),
        Addresses::V6 { .. } => size_of::<Head<Ipv6Header>>(),
    }
}

impl Frames<Ipv4Header> {
    /// Of `profile`, between these prefixes.
    pub fn v4(profile: &Profile, src: Ipv4Net, dst: Ipv4Net, seed: u64) -> Option<Self> {
        Self::new(profile, seed, |i| (station4(src, i), station4(dst, i)))
    }
}

impl Frames<Ipv6Header> {
    /// Of `profile`, between these prefixes.
    pub fn v6(profile: &Profile, src: Ipv6Net, dst: Ipv6Net, seed: u64) -> Option<Self> {
        Self::new(profile, seed, |i| (station6(src, i), station6(dst, i)))
    }
}

impl<I: Ip> Frames<I> {
    const HEAD: usize = size_of::<Head<I>>();
    /// Where the tag is.
    const TAG: usize = Self::HEAD - Tag::LEN;

    /// `None` if a size is shorter than the headers or longer than they can state.
    fn new(
        profile: &Profile,
        seed: u64,
        addresses: impl Fn(u32) -> (I::Address, I::Address),
    ) -> Option<Self> {
        let sizes = profile.sizes.clone();
        let template = |size| Template::new(profile.src_mac, profile.dst_mac, size);
        let flow = |i| {
            let (src, dst) = addresses(i);
            let sum = Sum::default().plus(src.as_bytes()).plus(dst.as_bytes()).folded();
            Flow { src, dst, port: (FIRST_PORT + i % PORTS) as u16, sum }
        };
        Some(Self {
            id: Identity::new(seed),
            templates: sizes.iter().map(template).collect::<Option<_>>()?,
            flows: (0..profile.flows).map(flow).collect(),
            pattern: Pattern::new(sizes.longest(), seed),
            sizes,
        })
    }

    /// Writes the frame that `mark` names, of the size with index `size`, into `to`, which is as long as that.
    #[inline]
    pub fn write(&self, to: &mut [u8], mark: Mark, size: usize) {
        let (Some(t), Some(f)) = (self.templates.get(size), self.flows.get(mark.flow as usize)) else {
            return;
        };
        let Ok((head, rest)) = Head::<I>::mut_from_prefix(to) else { return };
        let tag = self.id.tag(mark);
        let piece = self.pattern.piece(mark.flow, mark.number, t.fill);
        let sum = t.udp_sum + u64::from(f.sum) + u64::from(f.port) + tag.sum() + u64::from(piece.sum);
        *head = t.head;
        head.ip.set_addresses(f.src, f.dst, f.sum);
        head.udp.src_port = f.port.into();
        head.udp.checksum = udp_checksum(sum);
        head.tag = tag;
        if !rest.is_empty() && rest.len() == piece.bytes.len() {
            rest.copy_from_slice(piece.bytes);
        }
    }

    /// What a received frame is. `flags` say which checksums are not in it yet.
    #[inline]
    pub fn read(&self, frame: &[u8], flags: Flags) -> Seen {
        if let Ok((head, rest)) = Head::<I>::ref_from_prefix(frame)
            && self.id.has(&head.tag)
            && head.ethernet.ether_type == I::ETHER_TYPE
            && head.ip.is_plain()
        {
            let Some(mark) = self.mark(&head.tag, true) else { return Seen::Changed(None) };
            let intact = self.is_intact(head, rest, mark, flags);
            return if intact { Seen::Intact(mark) } else { Seen::Changed(Some(mark)) };
        }
        self.read_closely(frame, flags)
    }

    /// What the tag says, if it can be believed.
    #[inline]
    fn mark(&self, tag: &Tag, magic: bool) -> Option<Mark> {
        self.id.read(tag, magic).filter(|m| (m.flow as usize) < self.flows.len())
    }

    /// The bytes behind the headers and tag that the frame was made with, and their sum.
    #[inline]
    fn piece(&self, mark: Mark) -> crate::pattern::Piece<'_> {
        let fill = self.templates.get(self.sizes.of(mark.flow, mark.number)).map_or(0, |t| t.fill);
        self.pattern.piece(mark.flow, mark.number, fill)
    }

    /// Whether lengths, checksums and the rest are right. What follows the IP packet is padding.
    #[inline]
    fn is_intact(&self, head: &Head<I>, rest: &[u8], mark: Mark, flags: Flags) -> bool {
        let piece = self.piece(mark);
        let udp_len = UdpHeader::LEN + Tag::LEN + piece.bytes.len();
        head.ip.payload_len() == udp_len
            && usize::from(head.udp.length.get()) == udp_len
            && (piece.bytes.is_empty() || rest.get(..piece.bytes.len()) == Some(piece.bytes))
            && (head.ip.checksum_ok() || flags.has(Flags::TX_L3))
            && (flags.has(Flags::TX_L4) || Self::udp_checksum_ok(head, udp_len, piece.sum))
    }

    /// Whether the UDP checksum is right, over a payload whose rest sums up to `rest`.
    #[inline]
    fn udp_checksum_ok(head: &Head<I>, udp_len: usize, rest: u32) -> bool {
        let udp = &head.udp;
        let sum = u64::from(udp.src_port.get())
            + u64::from(udp.dst_port.get())
            + u64::from(udp.checksum.get())
            + u64::from(head.ip.address_sum())
            + pseudo(udp_len)
            + head.tag.sum()
            + u64::from(rest);
        udp.checksum.get() != 0 && fold(sum) == 0xffff
    }

    /// A frame that does not begin as those that were made: it may have come by a tunnel's end, or be broken.
    #[cold]
    fn read_closely(&self, frame: &[u8], flags: Flags) -> Seen {
        let layers = Layers::parse(frame);
        if layers.protocol() == Some(IpProtocol::UDP)
            && let Some(at) = layers.l4_payload_offset()
            && let Some((tag, fill)) = frame.get(at..layers.l3_end()).and_then(split_tag)
            && self.id.has(tag)
        {
            let Some(mark) = self.mark(tag, true) else { return Seen::Changed(None) };
            let ip = layers.ipv4_in(frame).is_none_or(|ip| ip.checksum_ok() || flags.has(Flags::TX_L3));
            let udp = flags.has(Flags::TX_L4) || verify_l4(frame, &layers) == L4Check::Good;
            let intact = ip && udp && fill == self.piece(mark).bytes;
            return if intact { Seen::Intact(mark) } else { Seen::Changed(Some(mark)) };
        }
        // No headers that make sense. The tag may still be where it was.
        let tagged = frame.get(Self::TAG..).unwrap_or_default();
        let Some((tag, fill)) = split_tag(tagged) else {
            return if self.id.begins(tagged) { Seen::Changed(None) } else { Seen::Foreign };
        };
        match self.mark(tag, false) {
            mark if self.id.has(tag) => Seen::Changed(mark),
            // A foreign frame passes for a tag without magic once in 65,536: the length has to be right as well.
            Some(mark) if fill.len() == self.piece(mark).bytes.len() => Seen::Changed(Some(mark)),
            _ => Seen::Foreign,
        }
    }
}

fn split_tag(bytes: &[u8]) -> Option<(&Tag, &[u8])> {
    Tag::ref_from_prefix(bytes).ok()
}

impl<I: Ip> Template<I> {
    fn new(src: MacAddr, dst: MacAddr, size: usize) -> Option<Self> {
        let fill = size.checked_sub(FCS + Frames::<I>::HEAD)?;
        let payload = Tag::LEN + fill;
        let udp = UdpHeader::new(0, DST_PORT, payload)?;
        let ip = I::between_none(UdpHeader::LEN + payload)?;
        let ethernet = EthernetHeader { dst, src, ether_type: I::ETHER_TYPE };
        let udp_sum = pseudo(UdpHeader::LEN + payload) + u64::from(DST_PORT);
        Some(Self { head: Head { ethernet, ip, udp, tag: Tag::default() }, fill, udp_sum })
    }
}

/// The protocol and the length, which stands both in the pseudo header and in the header.
#[inline]
const fn pseudo(udp_len: usize) -> u64 {
    IpProtocol::UDP.0 as u64 + 2 * udp_len as u64
}

/// 64 bits to 16, modulo 2^16 - 1 (RFC 1071, 2).
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff); // below 3 * 2^16
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// For the field: 0 would say that there is none (RFC 768).
#[inline]
fn udp_checksum(sum: u64) -> U16 {
    match !fold(sum) {
        0 => 0xffff.into(),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests;
