//! What the device sees in a frame: headers for packet type, RSS and checksums (82599 7.1.6.2, 7.1.2.8, 7.1.11).

use ixgbe_defs::{PacketType, RssType, rx_error, rx_status};

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) packet_type: PacketType,
    /// Status bits: what was checked.
    pub(crate) status: u32,
    /// Error bits: what was wrong.
    pub(crate) errors: u32,
    /// Where the addresses that RSS hashes start, and their bytes, 0 if there are none.
    pub(crate) addresses: (usize, usize),
    /// Where the ports start, if there are any.
    pub(crate) ports: Option<usize>,
}

impl Parsed {
    /// The RSS type by the ports, and the one by the addresses alone.
    pub(crate) const fn rss_types(&self) -> (RssType, RssType) {
        let (tcp, udp) = (self.packet_type.has(PacketType::TCP), self.packet_type.has(PacketType::UDP));
        let v4 = self.packet_type.has(PacketType::IPV4);
        let by_ports = match (self.ports, v4, tcp, udp) {
            (Some(_), true, true, _) => RssType::TCP_IPV4,
            (Some(_), true, _, true) => RssType::UDP_IPV4,
            (Some(_), false, true, _) => RssType::TCP_IPV6,
            (Some(_), false, _, true) => RssType::UDP_IPV6,
            _ => RssType::NONE,
        };
        let by_addresses = match (self.addresses.1, v4) {
            (0, _) => RssType::NONE,
            (_, true) => RssType::IPV4,
            (_, false) => RssType::IPV6,
        };
        (by_ports, by_addresses)
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

fn be16(f: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*f.get(at..)?.first_chunk()?))
}

/// The sum of RFC 1071, not folded: order of bytes does not matter to the carries, so words go as they lie.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut s = words.iter().map(|w| u64::from(u32::from_ne_bytes(*w))).sum::<u64>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    s += u64::from(u32::from_ne_bytes(last));
    s
}

/// Folds a sum to 16 bits, in the order of bytes on the wire.
#[inline]
pub(crate) const fn fold(mut s: u64) -> u16 {
    s = (s & 0xFFFF_FFFF) + (s >> 32);
    s = (s & 0xFFFF_FFFF) + (s >> 32);
    s = (s & 0xFFFF) + (s >> 16);
    s = (s & 0xFFFF) + (s >> 16);
    s = (s & 0xFFFF) + (s >> 16);
    u16::from_be(s as u16)
}

/// Looks at a frame whose ether type is at `l2 - 2`. In line for IPv4: what is found stays in registers then.
#[inline(always)]
pub(crate) fn parse(frame: &[u8], l2: usize) -> Parsed {
    match be16(frame, l2 - 2) {
        Some(0x0800) => ipv4(frame, l2).unwrap_or_default(),
        Some(0x86DD) => ipv6(frame, l2).unwrap_or_default(),
        _ => Parsed::default(),
    }
}

#[inline(always)]
fn ipv4(f: &[u8], at: usize) -> Option<Parsed> {
    let header: &[u8; 20] = f.get(at..)?.first_chunk()?;
    let ihl = usize::from(header[0] & 0xF) * 4;
    if header[0] >> 4 != 4 || ihl < 20 {
        return None;
    }
    let options = f.get(at + 20..at + ihl)?;
    let mut p = Parsed { addresses: (at + 12, 8), ..Parsed::default() };
    p.packet_type.0 = if ihl > 20 { PacketType::IPV4 | PacketType::IPV4_OPTIONS } else { PacketType::IPV4 };
    p.status = rx_status::IPCS;
    let options = if options.is_empty() { 0 } else { sum(options) };
    if fold(sum_of_halves(header) + options) != 0xFFFF {
        p.errors = rx_error::IPE;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
    let Some(payload) = f.get(at + ihl..at + total) else { return Some(p) };
    if !fragment {
        let pseudo = || sum(&header[12..20]) + u64::from((u16::from(header[9])).to_be());
        layer4(&mut p, header[9], payload, at + ihl, pseudo);
    }
    Some(p)
}

/// [`sum`] of a header that has only just been written, maybe in words that its own would straddle: such a load waits
/// until the stores are in the cache.
#[inline]
fn sum_of_halves(header: &[u8; 20]) -> u64 {
    header.as_chunks().0.iter().map(|h| u64::from(u16::from_ne_bytes(*h))).sum()
}

fn ipv6(f: &[u8], at: usize) -> Option<Parsed> {
    let header = f.get(at..at + 40)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let mut p = Parsed { addresses: (at + 8, 32), ..Parsed::default() };
    p.packet_type.0 = PacketType::IPV6;
    let end = at + 40 + usize::from(be16(f, at + 4)?);
    let (mut next, mut l4) = (header[6], at + 40);
    let mut fragment = false;
    // Hop-by-hop, routing, fragment, destination options (RFC 8200 section 4).
    while matches!(next, 0 | 43 | 44 | 60) {
        p.packet_type.0 |= PacketType::IPV6_EXTENSIONS;
        fragment |= next == 44;
        let Some(ext) = f.get(l4..l4 + 8) else { return Some(p) };
        l4 += if next == 44 { 8 } else { 8 + usize::from(ext[1]) * 8 };
        next = ext[0];
    }
    let Some(payload) = f.get(l4..end) else { return Some(p) };
    if !fragment {
        let pseudo = || sum(&header[8..40]) + u64::from(u16::from(next).to_be());
        layer4(&mut p, next, payload, l4, pseudo);
    }
    Some(p)
}

#[inline(always)]
fn layer4(p: &mut Parsed, protocol: u8, payload: &[u8], at: usize, pseudo: impl Fn() -> u64) {
    let (bits, header) = match protocol {
        TCP => (PacketType::TCP, 20),
        UDP => (PacketType::UDP, 8),
        SCTP => (PacketType::SCTP, 12),
        _ => return,
    };
    if payload.len() < header {
        return;
    }
    p.packet_type.0 |= bits;
    if protocol == SCTP {
        return;
    }
    p.ports = Some(at);
    if protocol == UDP {
        // RFC 768: a zero checksum was not computed.
        if payload[6..8] == [0, 0] {
            return;
        }
        p.status |= rx_status::UDPV | rx_status::UDPCS;
    }
    p.status |= rx_status::L4CS;
    if !is_sum_right(payload, pseudo()) {
        p.errors |= rx_error::L4E;
    }
}

#[inline(never)]
fn is_sum_right(payload: &[u8], pseudo: u64) -> bool {
    let len = u64::from((payload.len() as u16).to_be());
    fold(sum(payload) + pseudo + len) == 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071 section 3: 00 01 f2 03 f4 f5 f6 f7 sums to ddf2.
    #[test]
    fn the_sum_is_that_of_rfc_1071() {
        assert_eq!(fold(sum(&[0, 1, 0xF2, 3, 0xF4, 0xF5, 0xF6, 0xF7])), 0xDDF2);
        assert_eq!(fold(sum(&[0, 1, 0xF2, 3, 0xF4, 0xF5, 0xF6, 0xF7, 0x10])), 0xEDF2);
        assert_eq!(fold(u64::MAX), 0xFFFF);
    }

    fn udp(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(7, 9)
            .write(&mut out, payload)
            .expect("a frame");
        out
    }

    #[test]
    fn good_checksums_are_good_and_any_flipped_bit_is_not() {
        for len in [0, 1, 2, 3, 18, 100, 1471] {
            let f = udp(&vec![0xA5; len]);
            let p = parse(&f, 14);
            assert_eq!(p.status, rx_status::IPCS | rx_status::L4CS | rx_status::UDPV | rx_status::UDPCS);
            assert_eq!(
                (p.errors, p.packet_type.0, p.ports),
                (0, PacketType::IPV4 | PacketType::UDP, Some(34))
            );
            let mut bad = f.clone();
            *bad.last_mut().expect("bytes") ^= 0x40;
            assert_eq!(parse(&bad, 14).errors, rx_error::L4E, "payload of {len}");
            bad = f;
            bad[22] ^= 1;
            assert_eq!(parse(&bad, 14).errors & rx_error::IPE, rx_error::IPE);
        }
    }

    #[test]
    fn tcp_over_ipv6_is_checked_too_and_padding_is_not_summed() {
        let mut f = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([1; 16], [2; 16], 64)
            .tcp(80, 1024, 5, 100)
            .write(&mut f, &[1, 2, 3])
            .expect("a frame");
        f.extend([0xEE; 9]);
        let p = parse(&f, 14);
        assert_eq!((p.errors, p.status), (0, rx_status::L4CS));
        assert_eq!(p.rss_types(), (RssType::TCP_IPV6, RssType::IPV6));
        assert_eq!((p.addresses, p.ports), ((22, 32), Some(54)));
    }

    #[test]
    fn fragments_have_addresses_but_no_ports() {
        let mut f = udp(&[1; 64]);
        f[20] = 0x20;
        let p = parse(&f, 14);
        assert_eq!((p.ports, p.status & rx_status::L4CS, p.packet_type.0), (None, 0, PacketType::IPV4));
        assert_eq!(p.rss_types(), (RssType::NONE, RssType::IPV4));
    }

    #[test]
    fn any_bytes_are_survived() {
        let mut rng = crate::modes::Rng::new(3);
        let rounds = if cfg!(miri) { 200 } else { 20_000 };
        for _ in 0..rounds {
            let mut f = udp(&[9; 20]);
            for _ in 0..1 + rng.below(6) {
                let at = rng.below(f.len() as u32) as usize;
                f[at] = rng.next() as u8;
            }
            f.truncate(14 + rng.below(f.len() as u32 - 13) as usize);
            parse(&f, 14);
        }
    }
}
