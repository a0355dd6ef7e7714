//! The names that expressions may use, and what each stands for.

use super::facts::{From, Has, Load};
use Type::{Flag, Mac, Number, V4, V6};

/// What a field's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Yes or no.
    Flag,
    Number,
    Mac,
    V4,
    V6,
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub kind: Type,
    /// What a packet must have to have the field.
    pub needs: Has,
    /// Where it is; more than one for a field that means either of them.
    pub loads: &'static [Load],
    /// Names of values.
    pub names: &'static [(&'static str, u64)],
}

impl Field {
    /// The largest value.
    pub const fn max(&self) -> u128 {
        match self.kind {
            Type::V6 => u128::MAX,
            _ => self.loads[0].mask as u128,
        }
    }
}

/// `bits` of `width` bytes, all but the last `shift`.
const fn load(from: From, at: u8, width: u8, shift: u8, bits: u32) -> Load {
    let mask = u64::MAX >> (64 - bits);
    let shift = match from {
        From::Link | From::Network | From::Transport if width <= 8 => 64 - 8 * width + shift,
        _ => shift,
    };
    Load { from, at, width, shift, mask }
}
const fn link(at: u8, width: u8, bits: u32) -> Load {
    load(From::Link, at, width, 0, bits)
}
const fn l3(at: u8, width: u8, bits: u32) -> Load {
    load(From::Network, at, width, 0, bits)
}
const fn l4(at: u8, width: u8, bits: u32) -> Load {
    load(From::Transport, at, width, 0, bits)
}

const TYPES: &[(&str, u64)] =
    &[("ipv4", 0x0800), ("arp", 0x0806), ("ipv6", 0x86dd), ("lldp", 0x88cc), ("ptp", 0x88f7)];
const OPERATIONS: &[(&str, u64)] = &[("request", 1), ("reply", 2)];
const CARRIED: &[(&str, u64)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("sctp", 132),
];

const MAC_DST: Load = link(0, 6, 48);
const MAC_SRC: Load = link(6, 6, 48);
const V4_SRC: Load = l3(12, 4, 32);
const V4_DST: Load = l3(16, 4, 32);
const V6_SRC: Load = l3(8, 16, 64);
const V6_DST: Load = l3(24, 16, 64);
const PORT_SRC: Load = l4(0, 2, 16);
const PORT_DST: Load = l4(2, 2, 16);
/// Bit `n` of TCP's flags (RFC 9293, 3.1).
const fn tcp_flag(n: u8) -> Load {
    load(From::Transport, 13, 1, n, 1)
}

const fn named(field: Field, names: &'static [(&'static str, u64)]) -> Field {
    Field { names, ..field }
}
const fn new(name: &'static str, kind: Type, needs: Has, loads: &'static [Load]) -> Field {
    Field { name, kind, needs, loads, names: &[] }
}

const TCP: Has = Has::TCP.and(Has::L4);
const UDP: Has = Has::UDP.and(Has::L4);
const ICMP: Has = Has::ICMP.and(Has::L4);
const ICMPV6: Has = Has::ICMPV6.and(Has::L4);

/// All fields.
pub(super) const FIELDS: &[Field] = &[
    new("len", Number, Has::NOTHING, &[load(From::Length, 0, 4, 0, 32)]),
    new("eth.src", Mac, Has::ETHERNET, &[MAC_SRC]),
    new("eth.dst", Mac, Has::ETHERNET, &[MAC_DST]),
    new("eth.multicast", Flag, Has::ETHERNET, &[link(0, 1, 1)]),
    named(new("eth.type", Number, Has::TYPE, &[load(From::Type, 0, 2, 0, 16)]), TYPES),
    new("vlan.id", Number, Has::TAG, &[load(From::Tag, 0, 2, 0, 12)]),
    new("vlan.pcp", Number, Has::TAG, &[load(From::Tag, 0, 2, 13, 3)]),
    named(new("arp.op", Number, Has::ARP, &[l3(6, 2, 16)]), OPERATIONS),
    new("arp.sha", Mac, Has::ARP, &[l3(8, 6, 48)]),
    new("arp.spa", V4, Has::ARP, &[l3(14, 4, 32)]),
    new("arp.tha", Mac, Has::ARP, &[l3(18, 6, 48)]),
    new("arp.tpa", V4, Has::ARP, &[l3(24, 4, 32)]),
    new("ipv4.src", V4, Has::V4, &[V4_SRC]),
    new("ipv4.dst", V4, Has::V4, &[V4_DST]),
    new("ipv4.addr", V4, Has::V4, &[V4_SRC, V4_DST]),
    named(new("ipv4.proto", Number, Has::V4, &[l3(9, 1, 8)]), CARRIED),
    new("ipv4.ttl", Number, Has::V4, &[l3(8, 1, 8)]),
    new("ipv4.dscp", Number, Has::V4, &[load(From::Network, 1, 1, 2, 6)]),
    // More fragments, or an offset: neither "don't fragment" nor the reserved bit.
    new("ipv4.fragment", Flag, Has::V4, &[l3(6, 2, 14)]),
    new("ipv4.len", Number, Has::V4, &[l3(2, 2, 16)]),
    new("ipv6.src", V6, Has::V6, &[V6_SRC]),
    new("ipv6.dst", V6, Has::V6, &[V6_DST]),
    new("ipv6.addr", V6, Has::V6, &[V6_SRC, V6_DST]),
    named(new("ipv6.next", Number, Has::V6, &[load(From::Upper, 0, 1, 0, 8)]), CARRIED),
    new("ipv6.hops", Number, Has::V6, &[l3(7, 1, 8)]),
    new("tcp.src", Number, TCP, &[PORT_SRC]),
    new("tcp.dst", Number, TCP, &[PORT_DST]),
    new("tcp.port", Number, TCP, &[PORT_SRC, PORT_DST]),
    new("tcp.flags", Number, TCP, &[l4(13, 1, 8)]),
    new("tcp.fin", Flag, TCP, &[tcp_flag(0)]),
    new("tcp.syn", Flag, TCP, &[tcp_flag(1)]),
    new("tcp.rst", Flag, TCP, &[tcp_flag(2)]),
    new("tcp.ack", Flag, TCP, &[tcp_flag(4)]),
    new("udp.src", Number, UDP, &[PORT_SRC]),
    new("udp.dst", Number, UDP, &[PORT_DST]),
    new("udp.port", Number, UDP, &[PORT_SRC, PORT_DST]),
    new("icmp.type", Number, ICMP, &[l4(0, 1, 8)]),
    new("icmp.code", Number, ICMP, &[l4(1, 1, 8)]),
    new("icmpv6.type", Number, ICMPV6, &[l4(0, 1, 8)]),
    new("icmpv6.code", Number, ICMPV6, &[l4(1, 1, 8)]),
];

/// Names that alone say that a packet has something.
pub(super) const PROTOCOLS: &[(&str, Has)] = &[
    ("vlan", Has::TAG),
    ("arp", Has::ARP),
    ("ipv4", Has::V4),
    ("ipv6", Has::V6),
    ("tcp", Has::TCP),
    ("udp", Has::UDP),
    ("icmp", Has::ICMP),
    ("icmpv6", Has::ICMPV6),
];

/// The field of a name.
pub(super) fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|f| f.name == name)
}
/// What a protocol's name alone asks for.
pub(super) fn protocol(name: &str) -> Option<Has> {
    PROTOCOLS.iter().find(|p| p.0 == name).map(|p| p.1)
}

/// What is wrong with a name that is none of these.
pub(super) fn unknown(name: &str) -> String {
    let (first, _) = name.split_once('.').unwrap_or((name, ""));
    let of_it = |f: &&Field| f.name.split_once('.').is_some_and(|(p, _)| p == first);
    let fields: Vec<_> = FIELDS.iter().filter(of_it).map(|f| f.name).collect();
    if protocol(name).is_some() {
        return format!("{name} has no value of its own: write it alone, or one of {}", fields.join(", "));
    }
    let all = FIELDS.iter().map(|f| f.name).chain(PROTOCOLS.iter().map(|p| p.0));
    if let Some(near) = config::suggest(name, all) {
        return format!("{name} is no field; did you mean {near}?");
    }
    if fields.is_empty() {
        return format!("{name} is no field: write one as ipv4.src or tcp.port, or a protocol alone, as arp");
    }
    format!("{name} is no field; there are {}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_fields_are_read_as_their_type_says() {
        let mut names: Vec<_> = FIELDS.iter().map(|f| f.name).chain(PROTOCOLS.iter().map(|p| p.0)).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for f in FIELDS {
            let wide = f.loads.iter().all(|l| l.width == 16);
            assert_eq!(wide, f.kind == Type::V6, "{}", f.name);
            let bits = f.max().count_ones();
            match f.kind {
                Type::Mac => assert_eq!(bits, 48, "{}", f.name),
                Type::V4 => assert_eq!(bits, 32, "{}", f.name),
                _ => assert!(bits > 0 && f.names.iter().all(|n| u128::from(n.1) <= f.max()), "{}", f.name),
            }
        }
    }

    #[test]
    fn an_unknown_name_is_told_what_there_is() {
        assert_eq!(unknown("ip.src"), "ip.src is no field; did you mean ipv4.src?");
        assert_eq!(unknown("icmp6"), "icmp6 is no field; did you mean icmp?");
        assert_eq!(unknown("vlan.priority"), "vlan.priority is no field; there are vlan.id, vlan.pcp");
        let alone = "vlan has no value of its own: write it alone, or one of vlan.id, vlan.pcp";
        assert_eq!(unknown("vlan"), alone);
        assert!(unknown("host").ends_with("write one as ipv4.src or tcp.port, or a protocol alone, as arp"));
    }
}
