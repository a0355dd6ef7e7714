//! Where the layers of a frame are, in one pass.
use crate::ethernet::EthernetHeader;
use crate::icmp::IcmpHeader;
use crate::ipv4::route_pending;
use crate::tcp::TcpHeader;
use crate::udp::UdpHeader;
use crate::vlan::{TAG_LEN, VlanHeader};
use crate::{
    EtherType, Fragment, Icmp, IpProtocol, IpVersion, Ipv4, Ipv4Header, Ipv6, Ipv6Header, Malformed, Options,
    Tci, Tcp, Udp, Upper,
};
use zerocopy::{FromBytes, SplitByteSlice};

/// VLAN tags that are followed.
const MAX_TAGS: usize = 2;

/// How deep [`Layers::parse_to`] looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// Ethernet and its tags: up to [`Layers::l3_offset`].
    Link,
    /// And the IP header: up to [`Layers::ip_payload_offset`].
    Network,
    /// And what it carries: all of it.
    Transport,
}

/// Where layers 2, 3 and 4 of one frame are, and what they are.
///
/// [`Layers::parse`] never fails: it goes as far as the frame makes sense and says in [`Layers::malformed`] why it went no
/// further. Offsets count from the frame's first byte. Used with another frame than the one parsed, the view methods give `None` or a
/// view of the wrong bytes, but never panic.
///
/// | | known when |
/// |---|---|
/// | [`ether_type`](Self::ether_type), [`l3_offset`](Self::l3_offset), [`vlans`](Self::vlans) | the Ethernet header and its tags are whole |
/// | [`ip_version`](Self::ip_version), [`l3_end`](Self::l3_end) | and the IP header's lengths fit the frame |
/// | [`protocol`](Self::protocol), [`ip_payload_offset`](Self::ip_payload_offset) | and so do IPv6's extension headers |
/// | [`l4_offset`](Self::l4_offset), [`l4_header_len`](Self::l4_header_len) | and TCP's, UDP's or ICMP's header is whole and its lengths fit |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// End of the IP packet, or of the frame.
    end: u32,
    /// 0: unknown, as no layer 3 begins there.
    l3: u16,
    /// Offset of what IP carries. 0: unknown.
    l4: u16,
    ether_type: EtherType,
    vlans: [Tci; MAX_TAGS],
    tags: u8,
    /// 0: no layer 4 header that we know and that is whole.
    l4_len: u8,
    protocol: IpProtocol,
    version: Option<IpVersion>,
    fragment: Fragment,
    route_pending: bool,
    malformed: Option<Malformed>,
}

const _: () = assert!(size_of::<Layers>() <= 24);

impl Layers {
    const NONE: Self = Self {
        end: 0,
        l3: 0,
        l4: 0,
        ether_type: EtherType::new(0),
        vlans: [Tci::from_raw(0); MAX_TAGS],
        tags: 0,
        l4_len: 0,
        protocol: IpProtocol(0),
        version: None,
        fragment: Fragment::Whole,
        route_pending: false,
        malformed: None,
    };

    /// Finds the layers of an Ethernet frame without its FCS.
    #[inline]
    pub fn parse(frame: &[u8]) -> Self {
        Self::parse_to(frame, frame.len(), Depth::Transport)
    }
    /// Looks only as deep as `depth`, into a frame of `len` bytes of which only the first, `front`, are at hand. Lengths are checked against the
    /// whole frame; headers are found as far as they begin in `front`, so that an offset may point to its end or beyond.
    #[inline]
    pub fn parse_to(front: &[u8], len: usize, depth: Depth) -> Self {
        let len = len.max(front.len());
        if depth == Depth::Transport
            && let Some(usual) = Self::usual(front, len)
        {
            return usual;
        }
        let mut layers = Self { end: u32::try_from(len).unwrap_or(u32::MAX), ..Self::NONE };
        layers.malformed = layers.link(front, len, depth).err();
        layers
    }

    /// By far the most usual at once, and no other: whole TCP or UDP over IPv4, no tags, no options of IP's, nothing malformed.
    #[inline(always)]
    fn usual(front: &[u8], len: usize) -> Option<Self> {
        let (ethernet, packet) = EthernetHeader::ref_from_prefix(front).ok()?;
        let (ip, segment) = Ipv4Header::ref_from_prefix(packet).ok()?;
        let total = usize::from(ip.total_len.get());
        let plain =
            ethernet.ether_type == EtherType::IPV4 && ip.is_plain() && ip.fragment() == Fragment::Whole;
        if !plain || total > len - EthernetHeader::LEN {
            return None;
        }
        let length = total.checked_sub(Ipv4Header::LEN)?;
        let l4_len = match ip.protocol {
            IpProtocol::TCP => TcpHeader::ref_from_prefix(segment).ok()?.0.length(length).ok()?,
            IpProtocol::UDP => {
                UdpHeader::ref_from_prefix(segment).ok()?.0.within(length).ok()?;
                UdpHeader::LEN
            }
            _ => return None,
        };
        Some(Self {
            end: (EthernetHeader::LEN + total) as u32,
            l3: EthernetHeader::LEN as u16,
            l4: (EthernetHeader::LEN + Ipv4Header::LEN) as u16,
            ether_type: EtherType::IPV4,
            l4_len: l4_len as u8,
            protocol: ip.protocol,
            version: Some(IpVersion::V4),
            ..Self::NONE
        })
    }

    #[inline]
    fn link(&mut self, front: &[u8], len: usize, depth: Depth) -> Result<(), Malformed> {
        let (header, mut rest) = EthernetHeader::ref_from_prefix(front).map_err(|_| Malformed::TooShort)?;
        self.ether_type = header.ether_type;
        while self.ether_type.is_vlan() {
            let slot = self.vlans.get_mut(usize::from(self.tags)).ok_or(Malformed::TooManyHeaders)?;
            let (tag, after) = VlanHeader::ref_from_prefix(rest).map_err(|_| Malformed::TooShort)?;
            *slot = tag.tci;
            (self.ether_type, rest) = (tag.ether_type, after);
            self.tags += 1;
        }
        self.l3 = EthernetHeader::LEN as u16 + u16::from(self.tags) * TAG_LEN as u16;
        let available = len - usize::from(self.l3);
        match self.ether_type {
            _ if depth == Depth::Link => Ok(()),
            EtherType::IPV4 => self.ipv4(rest, available, depth),
            EtherType::IPV6 => self.ipv6(rest, available, depth),
            _ => Ok(()),
        }
    }

    #[inline]
    fn ipv4(&mut self, bytes: &[u8], available: usize, depth: Depth) -> Result<(), Malformed> {
        let (header, _) = Ipv4Header::ref_from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        let (header_len, total) = header.lengths(available)?;
        self.network(IpVersion::V4, total);
        if header_len > Ipv4Header::LEN {
            let options = bytes.get(Ipv4Header::LEN..header_len).ok_or(Malformed::TooShort)?;
            self.route_pending = route_pending(Options::new(options));
        }
        self.fragment = header.fragment();
        self.transport(bytes, header_len, total, header.protocol, depth)
    }

    #[inline]
    fn ipv6(&mut self, bytes: &[u8], available: usize, depth: Depth) -> Result<(), Malformed> {
        let (header, rest) = Ipv6Header::ref_from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        let length = header.payload_within(available)?;
        self.network(IpVersion::V6, Ipv6Header::LEN + length);
        let upper = Upper::find(header.next_header, rest.get(..length).unwrap_or(rest))?;
        self.fragment = upper.fragment;
        self.route_pending = upper.route_pending;
        let (from, to) = (Ipv6Header::LEN + upper.offset, Ipv6Header::LEN + length);
        self.transport(bytes, from, to, upper.protocol, depth)
    }

    #[inline]
    fn network(&mut self, version: IpVersion, length: usize) {
        self.version = Some(version);
        // At most 22 bytes of Ethernet and tags and 65,575 of IPv6.
        self.end = u32::from(self.l3) + length as u32;
    }

    /// The packet's bytes `from..to`, of which `packet` may have only the first, are what IP carries.
    #[inline]
    fn transport(
        &mut self,
        packet: &[u8],
        from: usize,
        to: usize,
        protocol: IpProtocol,
        depth: Depth,
    ) -> Result<(), Malformed> {
        // At most 22 bytes of Ethernet and tags, 40 of IPv6 and 8 extension headers of 2,048.
        self.l4 = self.l3 + from as u16;
        self.protocol = protocol;
        if self.fragment == Fragment::Later || depth == Depth::Network {
            return Ok(());
        }
        let segment = packet.get(from..to.min(packet.len())).ok_or(Malformed::BadLength)?;
        let length = to - from;
        self.l4_len = match protocol {
            IpProtocol::TCP => {
                let (tcp, _) = TcpHeader::ref_from_prefix(segment).map_err(|_| Malformed::TooShort)?;
                tcp.length(length)? as u8
            }
            IpProtocol::UDP => {
                let (udp, _) = UdpHeader::ref_from_prefix(segment).map_err(|_| Malformed::TooShort)?;
                // The first fragment states the length of the whole datagram.
                let first = self.fragment == Fragment::First;
                udp.within(if first { usize::MAX } else { length })?;
                UdpHeader::LEN as u8
            }
            IpProtocol::ICMPV4 | IpProtocol::ICMPV6 => {
                IcmpHeader::ref_from_prefix(segment).map_err(|_| Malformed::TooShort)?;
                IcmpHeader::LEN as u8
            }
            _ => 0,
        };
        Ok(())
    }

    /// What follows the Ethernet header and its tags. Of a frame cut off in a tag, the last type seen.
    #[inline]
    pub const fn ether_type(&self) -> EtherType {
        self.ether_type
    }
    /// The VLAN tags, outermost first; at most two.
    #[inline]
    pub fn vlans(&self) -> &[Tci] {
        self.vlans.get(..usize::from(self.tags)).unwrap_or_default()
    }
    /// Where layer 3 begins; the length of layer 2.
    #[inline]
    pub const fn l3_offset(&self) -> Option<usize> {
        if self.l3 > 0 { Some(self.l3 as usize) } else { None }
    }
    /// Which IP layer 3 is.
    #[inline]
    pub const fn ip_version(&self) -> Option<IpVersion> {
        self.version
    }
    /// Where the IP packet ends by its length field, before Ethernet's padding; the end of the frame if it is not (valid) IP.
    #[inline]
    pub const fn l3_end(&self) -> usize {
        self.end as usize
    }
    /// What IP carries.
    #[inline]
    pub const fn protocol(&self) -> Option<IpProtocol> {
        if self.l4 > 0 { Some(self.protocol) } else { None }
    }
    /// Where that begins: behind IPv4's options or IPv6's extension headers.
    #[inline]
    pub const fn ip_payload_offset(&self) -> Option<usize> {
        if self.l4 > 0 { Some(self.l4 as usize) } else { None }
    }
    /// Bytes of the IP header with options or extension headers.
    #[inline]
    pub const fn l3_header_len(&self) -> Option<usize> {
        if self.l4 > 0 { Some((self.l4 - self.l3) as usize) } else { None }
    }
    /// Which part of its datagram the packet carries.
    #[inline]
    pub const fn fragment(&self) -> Fragment {
        self.fragment
    }
    /// A source route or routing header has hops left, so layer 4's checksum was made for another destination.
    #[inline]
    pub const fn route_pending(&self) -> bool {
        self.route_pending
    }
    /// Where a whole TCP, UDP or ICMP header begins.
    #[inline]
    pub const fn l4_offset(&self) -> Option<usize> {
        if self.l4_len > 0 { Some(self.l4 as usize) } else { None }
    }
    /// Bytes of that header, with TCP's options.
    #[inline]
    pub const fn l4_header_len(&self) -> Option<usize> {
        if self.l4_len > 0 { Some(self.l4_len as usize) } else { None }
    }
    /// Where layer 4's data begins.
    #[inline]
    pub const fn l4_payload_offset(&self) -> Option<usize> {
        if self.l4_len > 0 { Some(self.l4 as usize + self.l4_len as usize) } else { None }
    }
    /// Where in layer 4 its checksum is, as offloads want it.
    #[inline]
    pub const fn l4_checksum_offset(&self) -> Option<usize> {
        match self.protocol {
            _ if self.l4_len == 0 => None,
            IpProtocol::TCP => Some(16),
            IpProtocol::UDP => Some(6),
            _ => Some(2),
        }
    }
    /// Why parsing went no further; `None` when all that is there made sense.
    #[inline]
    pub const fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// View of the IPv4 packet.
    #[inline]
    pub fn ipv4_in<B: SplitByteSlice>(&self, frame: B) -> Option<Ipv4<B>> {
        self.of_version(IpVersion::V4)?;
        Ipv4::parse(self.cut(frame, self.l3)?).ok()
    }
    /// View of the IPv6 packet.
    #[inline]
    pub fn ipv6_in<B: SplitByteSlice>(&self, frame: B) -> Option<Ipv6<B>> {
        self.of_version(IpVersion::V6)?;
        Ipv6::parse(self.cut(frame, self.l3)?).ok()
    }
    /// View of the TCP segment.
    #[inline]
    pub fn tcp_in<B: SplitByteSlice>(&self, frame: B) -> Option<Tcp<B>> {
        self.of_protocol(IpProtocol::TCP)?;
        Tcp::parse(self.cut(frame, self.l4)?).ok()
    }
    /// View of the UDP datagram; not of a first fragment, whose length goes beyond it.
    #[inline]
    pub fn udp_in<B: SplitByteSlice>(&self, frame: B) -> Option<Udp<B>> {
        self.of_protocol(IpProtocol::UDP)?;
        Udp::parse(self.cut(frame, self.l4)?).ok()
    }
    /// View of the ICMP message of either IP.
    #[inline]
    pub fn icmp_in<B: SplitByteSlice>(&self, frame: B) -> Option<Icmp<B>> {
        self.of_protocol(IpProtocol::ICMPV4).or_else(|| self.of_protocol(IpProtocol::ICMPV6))?;
        Icmp::parse(self.cut(frame, self.l4)?).ok()
    }
    /// Source and destination port of TCP or UDP, also of a first fragment.
    #[inline]
    pub fn ports_in(&self, frame: &[u8]) -> Option<(u16, u16)> {
        let [a, b, c, d] = *self.port_bytes(frame)?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    #[inline]
    pub(crate) fn port_bytes<'f>(&self, frame: &'f [u8]) -> Option<&'f [u8; 4]> {
        self.of_protocol(IpProtocol::TCP).or_else(|| self.of_protocol(IpProtocol::UDP))?;
        frame.get(usize::from(self.l4)..)?.first_chunk()
    }
    #[inline]
    fn of_version(&self, version: IpVersion) -> Option<()> {
        (self.version == Some(version)).then_some(())
    }
    #[inline]
    fn of_protocol(&self, protocol: IpProtocol) -> Option<()> {
        (self.l4_len > 0 && self.protocol == protocol).then_some(())
    }
    /// The frame from `from` to the end of the IP packet.
    #[inline]
    fn cut<B: SplitByteSlice>(&self, frame: B, from: u16) -> Option<B> {
        let (packet, _) = frame.split_at(self.l3_end()).ok()?;
        Some(packet.split_at(usize::from(from)).ok()?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// The longer way alone.
    fn slowly(front: &[u8], len: usize) -> Layers {
        let mut layers = Layers { end: len as u32, ..Layers::NONE };
        layers.malformed = layers.link(front, len, Depth::Transport).err();
        layers
    }

    #[test]
    fn the_usual_way_finds_what_the_longer_one_does() {
        let mut usual = 0;
        for protocol in [IpProtocol::TCP, IpProtocol::UDP, IpProtocol::GRE] {
            let mut frame = vec![0; 14];
            frame[12..14].copy_from_slice(&EtherType::IPV4.value().to_be_bytes());
            frame.extend(Ipv4Header::new(protocol, [1; 4], [2; 4], 30).unwrap().as_bytes());
            frame.resize(14 + 20 + 30 + 4, 0);
            frame[46] = 0x50;
            frame[39] = 30;
            // Each byte that a length or a kind depends on takes each value.
            for at in [12, 13, 14, 16, 17, 20, 21, 23, 38, 39, 46] {
                for value in 0..=255 {
                    let mut frame = frame.clone();
                    frame[at] = value;
                    for (front, len) in
                        [(68, 68), (54, 68), (53, 68), (41, 68), (33, 68), (68, 70_000), (63, 63)]
                    {
                        let expected = slowly(&frame[..front], len);
                        assert_eq!(Layers::parse_to(&frame[..front], len, Depth::Transport), expected);
                        if let Some(found) = Layers::usual(&frame[..front], len) {
                            assert_eq!(found, expected, "byte {at} is {value}, {front} of {len}");
                            usual += 1;
                        }
                    }
                }
            }
        }
        assert!(usual > 1000, "{usual}");
    }
}
