//! Receive side scaling: the Toeplitz hash of a frame's addresses and ports.
//!
//! Source: Microsoft, "RSS Hashing Functions" and "Verifying the RSS Hash Calculation" (Windows driver documentation); Intel 82599
//! data sheet, 7.1.2.8. The hash over n bytes of input uses the key's first n + 4 bytes, so both its 40 bytes and IPv6 with ports (36) fit.
use crate::{Fragment, IpProtocol, IpVersion, Layers};

/// Bytes of the longest input: two IPv6 addresses and two ports.
pub const MAX_INPUT: usize = 36;

/// A 40-byte hash key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RssKey(pub [u8; MAX_INPUT + 4]);

impl RssKey {
    /// The key of Microsoft's verification suite.
    pub const MICROSOFT: Self = Self([
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
        0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
        0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ]);
    /// A key of period 16 bits: both directions of a flow have one hash (S. Woo and K. Park, "Scalable TCP session monitoring with symmetric
    /// receive-side scaling", KAIST, 2012).
    pub const SYMMETRIC: Self = Self(period_16([0x6d, 0x5a]));

    /// The 32 bits of the key from bit `at`, counted from the top of the first byte.
    const fn window(&self, at: usize) -> u32 {
        let mut window = 0;
        let mut bit = at;
        while bit < at + 32 {
            let set = bit < self.0.len() * 8 && self.0[bit / 8] & (0x80 >> (bit % 8)) != 0;
            window = window << 1 | set as u32;
            bit += 1;
        }
        window
    }
}

const fn period_16(pair: [u8; 2]) -> [u8; MAX_INPUT + 4] {
    let mut key = [0; MAX_INPUT + 4];
    let mut at = 0;
    while at < key.len() {
        key[at] = pair[at % 2];
        at += 1;
    }
    key
}

/// What a hash was made over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RssKind {
    /// IPv4 addresses.
    Ipv4,
    /// IPv4 addresses and TCP ports.
    TcpIpv4,
    /// IPv4 addresses and UDP ports.
    UdpIpv4,
    /// IPv6 addresses.
    Ipv6,
    /// IPv6 addresses and TCP ports.
    TcpIpv6,
    /// IPv6 addresses and UDP ports.
    UdpIpv6,
}

/// A set of [`RssKind`]s: those that may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RssKinds(u8);

impl RssKinds {
    /// None: no hash is made.
    pub const NONE: Self = Self(0);
    /// All six.
    pub const ALL: Self = Self(0x3f);

    /// And `kind`.
    #[must_use]
    pub const fn with(self, kind: RssKind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }
    /// `kind` is one of them.
    #[inline]
    pub const fn contains(self, kind: RssKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// The hash function for one key: a table of what each half byte of the input adds, 4.5 KiB, made once per key.
#[derive(Clone, Debug)]
pub struct Toeplitz {
    halves: [[[u32; 16]; 2]; MAX_INPUT],
}

impl Toeplitz {
    /// Makes the table for `key`.
    pub const fn new(key: &RssKey) -> Self {
        let mut halves = [[[0; 16]; 2]; MAX_INPUT];
        let mut at = 0;
        while at < MAX_INPUT * 2 {
            let mut value = 1;
            while value < 16 {
                // The lowest set bit stands 3 - trailing_zeros bits into the half byte; the others are in the table already.
                let low = (value as u32).trailing_zeros() as usize;
                halves[at / 2][at % 2][value] =
                    halves[at / 2][at % 2][value & (value - 1)] ^ key.window(at * 4 + 3 - low);
                value += 1;
            }
            at += 1;
        }
        Self { halves }
    }
    /// The hash of `input`, of which the first 36 bytes count.
    #[inline]
    pub fn hash(&self, input: &[u8]) -> u32 {
        self.from(0, input)
    }
    #[inline]
    fn from(&self, at: usize, input: &[u8]) -> u32 {
        let tables = self.halves.get(at..).unwrap_or_default();
        input.iter().zip(tables).fold(0, |hash, (&byte, [high, low])| {
            hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 15)]
        })
    }
    /// The hash of a frame, over ports if `kinds` and the frame allow, else over addresses; `None` if neither. Ports are not used for fragments, so
    /// that all parts of a datagram have one hash.
    #[inline]
    pub fn hash_frame(&self, frame: &[u8], layers: &Layers, kinds: RssKinds) -> Option<(u32, RssKind)> {
        let l3 = layers.l3_offset()?;
        let (addresses, plain, tcp, udp) = match layers.ip_version()? {
            IpVersion::V4 => {
                (frame.get(l3 + 12..l3 + 20)?, RssKind::Ipv4, RssKind::TcpIpv4, RssKind::UdpIpv4)
            }
            IpVersion::V6 => (frame.get(l3 + 8..l3 + 40)?, RssKind::Ipv6, RssKind::TcpIpv6, RssKind::UdpIpv6),
        };
        let with_ports = if layers.protocol() == Some(IpProtocol::TCP) { tcp } else { udp };
        if kinds.contains(with_ports)
            && layers.fragment() == Fragment::Whole
            && let Some(ports) = layers.port_bytes(frame)
        {
            return Some((self.hash(addresses) ^ self.from(addresses.len(), ports), with_ports));
        }
        kinds.contains(plain).then(|| (self.hash(addresses), plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    static MICROSOFT: Toeplitz = Toeplitz::new(&RssKey::MICROSOFT);

    /// Microsoft's words: for each set bit of the input, the key's leftmost 32 bits are added and the key is shifted by one.
    fn by_the_book(key: &RssKey, input: &[u8]) -> u32 {
        (0..input.len() * 8)
            .filter(|bit| input[bit / 8] & (0x80 >> (bit % 8)) != 0)
            .fold(0, |hash, bit| hash ^ key.window(bit))
    }

    /// "Verifying the RSS Hash Calculation", IPv4: source, destination, hash without and with ports.
    #[test]
    fn verification_suite_ipv4() {
        let table = [
            ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178),
            ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea),
            ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a),
            ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f),
            ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2),
        ];
        for (src, src_port, dst, dst_port, plain, with_ports) in table {
            let octets = |text: &str| text.parse::<Ipv4Addr>().unwrap().octets();
            verify(&octets(src), src_port, &octets(dst), dst_port, plain, with_ports);
        }
    }

    /// The same for IPv6.
    #[test]
    fn verification_suite_ipv6() {
        let table = [
            ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d),
            ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf),
            (
                "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
                44251,
                "fe80::200:f8ff:fe21:67cf",
                38024,
                0x4b61e985,
                0x02d1feef,
            ),
        ];
        for (src, src_port, dst, dst_port, plain, with_ports) in table {
            let octets = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
            verify(&octets(src), src_port, &octets(dst), dst_port, plain, with_ports);
        }
    }

    fn verify(src: &[u8], src_port: u16, dst: &[u8], dst_port: u16, plain: u32, with_ports: u32) {
        let addresses = [src, dst].concat();
        let all = [&addresses[..], &src_port.to_be_bytes(), &dst_port.to_be_bytes()].concat();
        assert_eq!(MICROSOFT.hash(&addresses), plain);
        assert_eq!(MICROSOFT.hash(&all), with_ports);
        assert_eq!(by_the_book(&RssKey::MICROSOFT, &all), with_ports);
    }

    #[test]
    fn the_table_equals_the_book() {
        let mut input = [0u8; MAX_INPUT];
        let mut seed = 1u32;
        for _ in 0..200 {
            for byte in &mut input {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (seed >> 24) as u8;
            }
            let length = seed as usize % (MAX_INPUT + 1);
            assert_eq!(MICROSOFT.hash(&input[..length]), by_the_book(&RssKey::MICROSOFT, &input[..length]));
        }
        let long = [0xa5; MAX_INPUT + 9];
        assert_eq!(MICROSOFT.hash(&long), MICROSOFT.hash(&long[..MAX_INPUT]), "more input than key");
    }

    #[test]
    fn the_symmetric_key_gives_both_directions_one_hash() {
        let symmetric = Toeplitz::new(&RssKey::SYMMETRIC);
        let there = [10, 0, 0, 1, 192, 0, 2, 9, 0x12, 0x34, 0, 80];
        let back = [192, 0, 2, 9, 10, 0, 0, 1, 0, 80, 0x12, 0x34];
        assert_eq!(symmetric.hash(&there), symmetric.hash(&back));
        assert_ne!(MICROSOFT.hash(&there), MICROSOFT.hash(&back));
    }
}
