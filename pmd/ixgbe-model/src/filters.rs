//! Who a frame is for: address and VLAN filters (82599 7.1.1), RSS (7.1.2.8).

use ixgbe_defs::{Queue, RssType, regs};

use crate::parse::Parsed;
use crate::regs::RegisterFile;

/// Bytes of the longest RSS input: two IPv6 addresses and two ports.
const INPUT: usize = 36;

/// The verdict of the address filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Wanted: by an exact match, or because everything is.
    Exact,
    /// Wanted by the multicast hash only.
    Hash,
    /// Not wanted.
    Filtered,
}

/// Filters as the registers have them.
pub(crate) struct Filters {
    addresses: Vec<u64>,
    unicast: bool,
    multicast: bool,
    broadcast: bool,
    hash: Option<u32>,
    mta: Box<[u32; 128]>,
    vlan: bool,
    vfta: Box<[u32; 128]>,
    canonical: Option<bool>,
    /// The ether type of a VLAN tag.
    pub(crate) vlan_type: u16,
}

impl Filters {
    /// The tables; [`Filters::switch`] sets the rest.
    pub(crate) fn load(file: &RegisterFile) -> Self {
        let address = |n| {
            let high = file.get(regs::rah(n));
            let both =
                u64::from(file.get(regs::ral(n))) | u64::from(high & regs::rah_bits::ADDRESS_MASK) << 32;
            (high & regs::rah_bits::AV != 0).then_some(both)
        };
        Self {
            addresses: (0..regs::RECEIVE_ADDRESSES).filter_map(address).collect(),
            mta: Box::new(core::array::from_fn(|n| file.get(regs::mta(n as u32)))),
            vfta: Box::new(core::array::from_fn(|n| file.get(regs::vfta(n as u32)))),
            unicast: false,
            multicast: false,
            broadcast: false,
            hash: None,
            vlan: false,
            canonical: None,
            vlan_type: 0,
        }
    }

    /// Sets the switches as they are now; the tables stay.
    pub(crate) fn switch(&mut self, file: &RegisterFile) {
        let (fctrl, mcst, vlan) = (file.get(regs::FCTRL), file.get(regs::MCSTCTRL), file.get(regs::VLNCTRL));
        self.unicast = fctrl & regs::fctrl::UPE != 0;
        self.multicast = fctrl & regs::fctrl::MPE != 0;
        self.broadcast = fctrl & regs::fctrl::BAM != 0;
        self.hash = (mcst & regs::mcstctrl::MFE != 0).then_some(mcst & regs::mcstctrl::MO_MASK);
        self.vlan = vlan & regs::vlnctrl::VFE != 0;
        self.canonical = (vlan & regs::vlnctrl::CFIEN != 0).then_some(vlan & regs::vlnctrl::CFI != 0);
        self.vlan_type = (vlan & regs::vlnctrl::VET_MASK) as u16;
    }

    /// `address`: the destination, its first byte in bits 7:0.
    #[inline]
    pub(crate) fn address(&self, address: u64) -> Verdict {
        const BROADCAST: u64 = 0xFFFF_FFFF_FFFF;
        let exact = if address & 1 == 0 {
            self.unicast || self.addresses.contains(&address)
        } else if address == BROADCAST {
            self.broadcast
        } else {
            self.multicast || self.addresses.contains(&address)
        };
        if exact {
            Verdict::Exact
        } else if address & 1 != 0 && address != BROADCAST && self.hashed(address) {
            Verdict::Hash
        } else {
            Verdict::Filtered
        }
    }

    /// 82599 7.1.1.1.2: 12 bits of the last two bytes of the address index the table.
    fn hashed(&self, address: u64) -> bool {
        let Some(offset) = self.hash else { return false };
        let bits = (address >> (36 - offset) & 0xFFF) as usize;
        self.mta[bits >> 5] & 1 << (bits & 31) != 0
    }

    /// 82599 7.1.1.2.
    #[inline]
    pub(crate) fn vlan(&self, tag: Option<u16>) -> bool {
        let Some(tag) = tag.filter(|_| self.vlan) else { return true };
        let id = usize::from(tag & 0xFFF);
        self.vfta[id >> 5] & 1 << (id & 31) != 0 && self.canonical.is_none_or(|c| c == (tag & 0x1000 != 0))
    }
}

/// RSS as the registers have it.
pub(crate) struct Rss {
    /// For each input byte and each of its values, what it adds to the hash.
    table: Box<[[u32; 256]; INPUT]>,
    types: u32,
    redirection: [u8; regs::RETA_ENTRIES],
}

impl Rss {
    pub(crate) fn load(file: &RegisterFile) -> Option<Self> {
        let mrqc = file.get(regs::MRQC);
        if mrqc & regs::mrqc::MRQE_MASK != regs::mrqc::MRQE_RSS {
            return None;
        }
        let mut key = [0; regs::RSS_KEY_BYTES];
        for (n, word) in key.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *word = file.get(regs::rssrk(n as u32)).to_le_bytes();
        }
        let redirection =
            core::array::from_fn(|i| (file.get(regs::reta(i as u32 / 4)) >> (i % 4 * 8) & 0xF) as u8);
        Some(Self { table: toeplitz_table(&key), types: mrqc, redirection })
    }

    /// The hash of a frame, what it covers, and the queue it names.
    #[inline]
    pub(crate) fn queue(&self, frame: &[u8], p: &Parsed) -> Option<(u32, RssType, Queue)> {
        let (by_ports, by_addresses) = p.rss_types();
        let (start, len) = p.addresses;
        let addresses = frame.get(start..start + len)?;
        let (hash, what) = if self.types & bit_of(by_ports) != 0 {
            let ports = frame.get(p.ports?..)?.get(..4)?;
            (self.hash(addresses, 0) ^ self.hash(ports, len), by_ports)
        } else if self.types & bit_of(by_addresses) != 0 {
            (self.hash(addresses, 0), by_addresses)
        } else {
            return None;
        };
        let queue = Queue::new(self.redirection[hash as usize % regs::RETA_ENTRIES])?;
        Some((hash, what, queue))
    }

    /// Of whole addresses and ports: words of four bytes.
    #[inline]
    fn hash(&self, input: &[u8], from: usize) -> u32 {
        let (words, tables) = (input.as_chunks::<4>().0, self.table[from..].as_chunks::<4>().0);
        words.iter().zip(tables).fold(0, |h, ([a, b, c, d], [ta, tb, tc, td])| {
            let low = ta[usize::from(*a)] ^ tb[usize::from(*b)];
            h ^ low ^ tc[usize::from(*c)] ^ td[usize::from(*d)]
        })
    }
}

const fn bit_of(t: RssType) -> u32 {
    match t {
        RssType::TCP_IPV4 => regs::mrqc::TCP_IPV4,
        RssType::IPV4 => regs::mrqc::IPV4,
        RssType::TCP_IPV6 => regs::mrqc::TCP_IPV6,
        RssType::IPV6 => regs::mrqc::IPV6,
        RssType::UDP_IPV4 => regs::mrqc::UDP_IPV4,
        RssType::UDP_IPV6 => regs::mrqc::UDP_IPV6,
        _ => 0,
    }
}

/// Toeplitz (82599 7.1.2.8.1): bit `i` of the input, counted from the left, adds the 32 key bits that start at `i`.
fn toeplitz_table(key: &[u8; regs::RSS_KEY_BYTES]) -> Box<[[u32; 256]; INPUT]> {
    let window = |bit: usize| {
        let at = bit / 8;
        let five = [key[at], key[at + 1], key[at + 2], key[at + 3], key.get(at + 4).copied().unwrap_or(0)];
        let bits = five.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
        (bits >> (8 - bit % 8)) as u32
    };
    let mut table = Box::new([[0; 256]; INPUT]);
    for (byte, values) in table.iter_mut().enumerate() {
        let bits: [u32; 8] = core::array::from_fn(|i| window(byte * 8 + 7 - i));
        for v in 1..256usize {
            values[v] = values[v & (v - 1)] ^ bits[v.trailing_zeros() as usize];
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and the cases of the RSS verification suite (82599 7.1.2.8.3, the suite of the NDIS specification).
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
        0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
        0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    fn rss() -> Rss {
        Rss { table: toeplitz_table(&KEY), types: u32::MAX, redirection: [0; 128] }
    }

    #[test]
    fn the_ipv4_cases_of_the_verification_suite() {
        let rss = rss();
        let cases: [([u8; 8], [u16; 2], u32, u32); 5] = [
            ([66, 9, 149, 187, 161, 142, 100, 80], [2794, 1766], 0x323e_8fc2, 0x51cc_c178),
            ([199, 92, 111, 2, 65, 69, 140, 83], [14230, 4739], 0xd718_262a, 0xc626_b0ea),
            ([24, 19, 198, 95, 12, 22, 207, 184], [12898, 38024], 0xd2d0_a5de, 0x5c2b_394a),
            ([38, 27, 205, 30, 209, 142, 163, 6], [48228, 2217], 0x8298_9176, 0xafc7_327f),
            ([153, 39, 163, 191, 202, 188, 127, 2], [44251, 1303], 0x5d18_09c5, 0x10e8_28a2),
        ];
        for (addresses, [from, to], alone, with_ports) in cases {
            let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
            assert_eq!(rss.hash(&addresses, 0), alone);
            assert_eq!(rss.hash(&addresses, 0) ^ rss.hash(&ports, 8), with_ports);
        }
    }

    #[test]
    fn the_ipv6_cases_of_the_verification_suite() {
        let rss = rss();
        let cases = [
            ("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", [2794u16, 1766], 0x2cc1_8cd5, 0x4020_7d3d),
            ("3ffe:501:8::260:97ff:fe40:efab", "ff02::1", [14230, 4739], 0x0f0c_461c, 0xdde5_1bbf),
            (
                "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
                "fe80::200:f8ff:fe21:67cf",
                [44251, 38024],
                0x4b61_e985,
                0x02d1_feef,
            ),
        ];
        for (from, to, [source, destination], alone, with_ports) in cases {
            let octets = |a: &str| a.parse::<std::net::Ipv6Addr>().expect("an address").octets();
            let addresses = [octets(from), octets(to)].concat();
            let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
            assert_eq!(rss.hash(&addresses, 0), alone);
            assert_eq!(rss.hash(&addresses, 0) ^ rss.hash(&ports, 32), with_ports);
        }
    }
}
