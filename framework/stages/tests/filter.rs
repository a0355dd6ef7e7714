//! Filters over frames that `etherparse` built, against an evaluation from what they were built of.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;

use std::fmt::Write as _;

use etherparse::PacketBuilder;
use graph::{self, Graph, GraphBuilder, OnFull, To};
use mem::{Batch, Chain, Ext, Flags, Meta};
use meter::DropReason;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rig::{Frame, Rig};
use ringwright_stages::{Filter, FilterConfig};
use wire::zerocopy::IntoBytes;
use wire::{ArpHeader, EtherType, Tci, VlanId, vlan};

/// What a frame is built of, and what it therefore is.
#[derive(Clone, Debug)]
struct Built {
    src: u8,
    dst: u8,
    group: bool,
    tags: Vec<u16>,
    inner: Inner,
    payload: usize,
}

#[derive(Clone, Debug)]
enum Inner {
    Arp { op: u16, from: u8, to: u8 },
    V4 { from: u8, to: u8, ttl: u8, dscp: u8, l4: L4 },
    V6 { from: u8, to: u8, hops: u8, l4: L4 },
    Other,
}

#[derive(Clone, Debug)]
enum L4 {
    Tcp {
        from: u16,
        to: u16,
        flags: u8,
    },
    Udp {
        from: u16,
        to: u16,
    },
    Icmp {
        kind: u8,
        code: u8,
    },
    /// A later part of a datagram of UDP.
    Part,
    Gre,
}

const fn mac(last: u8, group: bool) -> [u8; 6] {
    [if group { 3 } else { 2 }, 0, 0, 0, 0, last]
}
const fn v4(last: u8) -> [u8; 4] {
    [10, 0, last >> 2, last]
}
const fn v6(last: u8) -> [u8; 16] {
    [0x20, 1, 0xd, 0xb8, 0, 0, 0, last >> 2, 0, 0, 0, 0, 0, 0, 0, last]
}

impl Built {
    fn frame(&self) -> Frame {
        let link = PacketBuilder::ethernet2(mac(self.src, false), mac(self.dst, self.group));
        let payload = vec![0x5a; self.payload];
        let mut frame = Vec::new();
        let (step, l4) = match &self.inner {
            Inner::Arp { op, from, to } => {
                let mut arp = ArpHeader::request(mac(*from, false).into(), v4(*from), v4(*to));
                arp = arp.reply(mac(*to, false).into()).reply(mac(*from, false).into());
                let mut bytes = arp.as_bytes().to_vec();
                bytes[6..8].copy_from_slice(&op.to_be_bytes());
                frame.extend([mac(self.dst, self.group), mac(self.src, false)].concat());
                frame.extend([0x08, 0x06]);
                frame.extend(bytes);
                return self.tagged(frame);
            }
            Inner::Other => {
                frame.extend([mac(self.dst, self.group), mac(self.src, false)].concat());
                frame.extend([0x88, 0xcc]);
                frame.extend(payload);
                return self.tagged(frame);
            }
            Inner::V4 { from, to, ttl, l4, .. } => (link.ipv4(v4(*from), v4(*to), *ttl), l4),
            Inner::V6 { from, to, hops, l4 } => (link.ipv6(v6(*from), v6(*to), *hops), l4),
        };
        match l4 {
            L4::Tcp { from, to, flags } => {
                step.tcp(*from, *to, 1, 2).write(&mut frame, &payload).unwrap();
                let at = if matches!(self.inner, Inner::V4 { .. }) { 47 } else { 67 };
                frame[at] = *flags;
            }
            L4::Udp { from, to } => step.udp(*from, *to).write(&mut frame, &payload).unwrap(),
            L4::Icmp { kind, code } if matches!(self.inner, Inner::V4 { .. }) => {
                step.icmpv4_raw(*kind, *code, [0; 4]).write(&mut frame, &payload).unwrap()
            }
            L4::Icmp { kind, code } => {
                step.icmpv6_raw(*kind, *code, [0; 4]).write(&mut frame, &payload).unwrap()
            }
            L4::Gre => step.write(&mut frame, etherparse::IpNumber::GRE, &payload).unwrap(),
            L4::Part => step.write(&mut frame, etherparse::IpNumber::UDP, &payload).unwrap(),
        }
        self.finished(&mut frame, matches!(l4, L4::Part));
        self.tagged(frame)
    }
    /// What the builder has no way to say.
    fn finished(&self, frame: &mut Vec<u8>, part: bool) {
        match self.inner {
            Inner::V4 { dscp, .. } => {
                frame[15] = dscp << 2 | 1;
                frame[20..22].copy_from_slice(if part { &[0x00, 0x09] } else { &[0x40, 0x00] });
            }
            Inner::V6 { .. } if part => {
                frame.splice(54..54, [frame[20], 0, 0, 0x49, 0, 0, 0, 1]);
                frame[20] = 44;
                let length = u16::from_be_bytes([frame[18], frame[19]]) + 8;
                frame[18..20].copy_from_slice(&length.to_be_bytes());
            }
            _ => {}
        }
    }
    fn tagged(&self, frame: Frame) -> Frame {
        let n = self.tags.len();
        let mut room = [vec![0; 4 * n], frame].concat();
        for (i, &tci) in self.tags.iter().enumerate().rev() {
            assert!(vlan::insert(&mut room[4 * i..], EtherType::VLAN, Tci::from_raw(tci)));
        }
        room
    }

    fn l4(&self) -> Option<(&L4, bool)> {
        match &self.inner {
            Inner::V4 { l4, .. } => Some((l4, true)),
            Inner::V6 { l4, .. } => Some((l4, false)),
            _ => None,
        }
    }
    /// The values of a field, none if the frame does not have it; addresses by their last byte.
    fn values(&self, field: &str) -> Vec<u64> {
        let tag = self.tags.first().copied();
        match (field, &self.inner) {
            ("len", _) => vec![self.frame().len() as u64],
            ("eth.src", _) => vec![self.src.into()],
            ("eth.dst", _) if !self.group => vec![self.dst.into()],
            // The groups' addresses are none of those that are asked for.
            ("eth.dst", _) => vec![u64::MAX],
            ("eth.multicast", _) => vec![self.group.into()],
            ("eth.type", Inner::Arp { .. }) => vec![0x806],
            ("eth.type", Inner::V4 { .. }) => vec![0x800],
            ("eth.type", Inner::V6 { .. }) => vec![0x86dd],
            ("eth.type", Inner::Other) => vec![0x88cc],
            ("vlan.id", _) => tag.map(|t| u64::from(t & 0xfff)).into_iter().collect(),
            ("vlan.pcp", _) => tag.map(|t| u64::from(t >> 13)).into_iter().collect(),
            ("arp.op", Inner::Arp { op, .. }) => vec![(*op).into()],
            ("arp.sha" | "arp.spa", Inner::Arp { from, .. }) => vec![(*from).into()],
            ("arp.tha" | "arp.tpa", Inner::Arp { to, .. }) => vec![(*to).into()],
            ("ipv4.src", Inner::V4 { from, .. }) | ("ipv6.src", Inner::V6 { from, .. }) => {
                vec![(*from).into()]
            }
            ("ipv4.dst", Inner::V4 { to, .. }) | ("ipv6.dst", Inner::V6 { to, .. }) => vec![(*to).into()],
            ("ipv4.addr", Inner::V4 { from, to, .. }) | ("ipv6.addr", Inner::V6 { from, to, .. }) => {
                vec![(*from).into(), (*to).into()]
            }
            ("ipv4.ttl", Inner::V4 { ttl: n, .. }) | ("ipv6.hops", Inner::V6 { hops: n, .. }) => {
                vec![(*n).into()]
            }
            ("ipv4.dscp", Inner::V4 { dscp, .. }) => vec![(*dscp).into()],
            ("ipv4.len", Inner::V4 { .. }) => vec![(self.frame().len() - 14 - 4 * self.tags.len()) as u64],
            ("ipv4.fragment", Inner::V4 { l4, .. }) => vec![matches!(l4, L4::Part).into()],
            ("ipv4.proto", Inner::V4 { l4, .. }) => vec![number(l4, 1)],
            ("ipv6.next", Inner::V6 { l4, .. }) => vec![number(l4, 58)],
            _ => self.l4().map(|(l4, v4)| upper(l4, v4, field)).unwrap_or_default(),
        }
    }
    /// Whether it has a protocol.
    fn is(&self, protocol: &str) -> bool {
        let l4 = self.l4();
        match protocol {
            "vlan" => !self.tags.is_empty(),
            "arp" => matches!(self.inner, Inner::Arp { .. }),
            "ipv4" => matches!(self.inner, Inner::V4 { .. }),
            "ipv6" => matches!(self.inner, Inner::V6 { .. }),
            "tcp" => l4.is_some_and(|l| matches!(l.0, L4::Tcp { .. })),
            "udp" => l4.is_some_and(|l| matches!(l.0, L4::Udp { .. } | L4::Part)),
            "icmp" => l4.is_some_and(|l| matches!(l.0, L4::Icmp { .. }) && l.1),
            _ => l4.is_some_and(|l| matches!(l.0, L4::Icmp { .. }) && !l.1),
        }
    }
}

fn number(l4: &L4, icmp: u64) -> u64 {
    match l4 {
        L4::Tcp { .. } => 6,
        L4::Udp { .. } | L4::Part => 17,
        L4::Icmp { .. } => icmp,
        L4::Gre => 47,
    }
}
fn upper(l4: &L4, v4: bool, field: &str) -> Vec<u64> {
    let flag = |flags: &u8, bit: u8| vec![u64::from(flags >> bit & 1)];
    match (field, l4) {
        ("tcp.src", L4::Tcp { from, .. }) | ("udp.src", L4::Udp { from, .. }) => vec![(*from).into()],
        ("tcp.dst", L4::Tcp { to, .. }) | ("udp.dst", L4::Udp { to, .. }) => vec![(*to).into()],
        ("tcp.port", L4::Tcp { from, to, .. }) | ("udp.port", L4::Udp { from, to }) => {
            vec![(*from).into(), (*to).into()]
        }
        ("tcp.flags", L4::Tcp { flags, .. }) => vec![(*flags).into()],
        ("tcp.fin", L4::Tcp { flags, .. }) => flag(flags, 0),
        ("tcp.syn", L4::Tcp { flags, .. }) => flag(flags, 1),
        ("tcp.rst", L4::Tcp { flags, .. }) => flag(flags, 2),
        ("tcp.ack", L4::Tcp { flags, .. }) => flag(flags, 4),
        ("icmp.type", L4::Icmp { kind, .. }) if v4 => vec![(*kind).into()],
        ("icmp.code", L4::Icmp { code, .. }) if v4 => vec![(*code).into()],
        ("icmpv6.type", L4::Icmp { kind, .. }) if !v4 => vec![(*kind).into()],
        ("icmpv6.code", L4::Icmp { code, .. }) if !v4 => vec![(*code).into()],
        _ => vec![],
    }
}

/// A question, its text and its answer told independently.
#[derive(Clone, Debug)]
enum Ask {
    Protocol(&'static str),
    Flag(&'static str),
    Compare(&'static str, &'static str, u64),
    In(&'static str, Vec<(u64, u64)>),
    Not(Box<Ask>),
    And(Box<Ask>, Box<Ask>),
    Or(Box<Ask>, Box<Ask>),
}

fn text_of(field: &str, n: u64) -> String {
    let last = n as u8;
    match field {
        "eth.src" | "eth.dst" | "arp.sha" | "arp.tha" => wire::MacAddr::new(mac(last, false)).to_string(),
        "arp.spa" | "arp.tpa" | "ipv4.src" | "ipv4.dst" | "ipv4.addr" => {
            std::net::Ipv4Addr::from(v4(last)).to_string()
        }
        "ipv6.src" | "ipv6.dst" | "ipv6.addr" => std::net::Ipv6Addr::from(v6(last)).to_string(),
        _ if n % 2 == 1 => format!("{n:#x}"),
        _ => n.to_string(),
    }
}

impl Ask {
    fn text(&self, out: &mut String) {
        match self {
            Self::Protocol(name) | Self::Flag(name) => out.push_str(name),
            Self::Compare(field, sign, n) => write!(out, "{field} {sign} {}", text_of(field, *n)).unwrap(),
            Self::In(field, list) => {
                let part = |&(a, b): &(u64, u64)| {
                    let (first, last) = (text_of(field, a), text_of(field, b));
                    if a == b { first } else { format!("{first} - {last}") }
                };
                let parts: Vec<_> = list.iter().map(part).collect();
                write!(out, "{field} in {{{}}}", parts.join(", ")).unwrap();
            }
            Self::Not(inner) => {
                out.push_str("not (");
                inner.text(out);
                out.push(')');
            }
            Self::And(a, b) | Self::Or(a, b) => {
                out.push('(');
                a.text(out);
                out.push_str(if matches!(self, Self::And(..)) { ") && (" } else { ") or (" });
                b.text(out);
                out.push(')');
            }
        }
    }
    fn holds(&self, b: &Built) -> bool {
        match self {
            Self::Protocol(name) => b.is(name),
            Self::Flag(name) => b.values(name) == [1],
            Self::Compare(field, sign, n) => {
                let values = b.values(field);
                let some = |f: fn(&u64, &u64) -> bool| values.iter().any(|v| f(v, n));
                match *sign {
                    "==" => some(u64::eq),
                    "!=" => !values.is_empty() && !some(u64::eq),
                    "<" => some(u64::lt),
                    "<=" => some(u64::le),
                    ">" => some(u64::gt),
                    _ => some(u64::ge),
                }
            }
            Self::In(field, list) => {
                b.values(field).iter().any(|v| list.iter().any(|r| r.0 <= *v && *v <= r.1))
            }
            Self::Not(inner) => !inner.holds(b),
            Self::And(x, y) => x.holds(b) && y.holds(b),
            Self::Or(x, y) => x.holds(b) || y.holds(b),
        }
    }
}

const PROTOCOLS: [&str; 8] = ["vlan", "arp", "ipv4", "ipv6", "tcp", "udp", "icmp", "icmpv6"];
const FLAGS: [&str; 6] = ["eth.multicast", "ipv4.fragment", "tcp.syn", "tcp.ack", "tcp.fin", "tcp.rst"];
/// Fields whose values the frames share, few enough that they are often met.
const ADDRESSES: [&str; 12] = [
    "eth.src",
    "eth.dst",
    "arp.sha",
    "arp.tha",
    "arp.spa",
    "arp.tpa",
    "ipv4.src",
    "ipv4.dst",
    "ipv4.addr",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.addr",
];
const NUMBERS: [&str; 15] = [
    "vlan.id",
    "arp.op",
    "ipv4.ttl",
    "ipv6.hops",
    "ipv4.dscp",
    "tcp.src",
    "tcp.dst",
    "tcp.port",
    "udp.src",
    "udp.dst",
    "udp.port",
    "icmp.type",
    "icmp.code",
    "icmpv6.type",
    "icmpv6.code",
];
/// Fields of larger numbers.
const LARGE: [&str; 7] = ["len", "vlan.pcp", "eth.type", "ipv4.len", "ipv4.proto", "ipv6.next", "tcp.flags"];

fn asks() -> impl Strategy<Value = Ask> {
    let sign = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let equal = prop::sample::select(vec!["==", "!="]);
    let range = |most: u64| (1..most, 0..4u64).prop_map(move |(a, n)| (a, (a + n).min(most)));
    let large = prop::sample::select(vec![6u64, 17, 47, 58, 60, 66, 100, 0x800, 0x806, 0x86dd, 0x12]);
    let leaf = prop_oneof![
        prop::sample::select(PROTOCOLS.to_vec()).prop_map(Ask::Protocol),
        prop::sample::select(FLAGS.to_vec()).prop_map(Ask::Flag),
        (prop::sample::select(ADDRESSES.to_vec()), equal, 0..12u64)
            .prop_map(|(f, s, n)| Ask::Compare(f, s, n)),
        (prop::sample::select(ADDRESSES.to_vec()), prop::collection::vec(range(12), 1..4))
            .prop_map(|(f, list)| Ask::In(f, list)),
        (prop::sample::select(NUMBERS.to_vec()), sign.clone(), 1..12u64)
            .prop_map(|(f, s, n)| Ask::Compare(f, s, n)),
        (prop::sample::select(NUMBERS.to_vec()), prop::collection::vec(range(12), 1..6))
            .prop_map(|(f, list)| Ask::In(f, list)),
        (prop::sample::select(LARGE.to_vec()), sign, large).prop_map(|(f, s, n)| {
            // What fits the field, and has something below and above it.
            let n = match f {
                "len" | "eth.type" | "ipv4.len" => n,
                "vlan.pcp" => (n % 7).max(1),
                _ => (n & 0x7f).max(1),
            };
            Ask::Compare(f, s, n)
        }),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.prop_map(|a| Ask::Not(Box::new(a))),
            two.clone().prop_map(|(a, b)| Ask::And(Box::new(a), Box::new(b))),
            two.prop_map(|(a, b)| Ask::Or(Box::new(a), Box::new(b))),
        ]
    })
}

fn frames() -> impl Strategy<Value = Built> {
    let small = 0u8..12;
    let port = 0u16..12;
    let l4 = prop_oneof![
        (port.clone(), port.clone(), any::<u8>()).prop_map(|(from, to, flags)| L4::Tcp { from, to, flags }),
        (port.clone(), port).prop_map(|(from, to)| L4::Udp { from, to }),
        (small.clone(), small.clone()).prop_map(|(kind, code)| L4::Icmp { kind, code }),
        Just(L4::Part),
        Just(L4::Gre),
    ];
    let ends = (small.clone(), small.clone(), small.clone());
    let inner = prop_oneof![
        (0u16..4, small.clone(), small.clone()).prop_map(|(op, from, to)| Inner::Arp { op, from, to }),
        (ends.clone(), small.clone(), l4.clone()).prop_map(|((from, to, ttl), dscp, l4)| Inner::V4 {
            from,
            to,
            ttl,
            dscp,
            l4
        }),
        (ends, l4).prop_map(|((from, to, hops), l4)| Inner::V6 { from, to, hops, l4 }),
        Just(Inner::Other),
    ];
    let tags = prop::collection::vec((0u16..12, 0u16..8).prop_map(|(id, pcp)| pcp << 13 | id), 0..3);
    (small.clone(), small, any::<bool>(), tags, inner, 12..60usize)
        .prop_map(|(src, dst, group, tags, inner, payload)| Built { src, dst, group, tags, inner, payload })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..Default::default() })]
    #[test]
    fn a_filter_says_what_a_plain_evaluation_says(ask in asks(), built in prop::collection::vec(frames(), 8)) {
        let mut text = String::new();
        ask.text(&mut text);
        let filter = Filter::new(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for b in built {
            prop_assert_eq!(filter.matches(&b.frame()), ask.holds(&b), "{}: {:?}", text, b);
        }
    }

    #[test]
    fn no_text_and_no_frame_is_a_reason_to_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "tcp.port", "ipv4.src", "eth.dst", "ipv6.addr", "vlan", "tcp.syn", "and", "or", "not", "in", "==", "!=", "<",
            "(", ")", "{", "}", ",", "-", "80", "10.0.0.0/8", "::/0", "0x", "x", "ß", "02:00:00:00:00:01", "\n",
        ]), 0..14),
        frame in prop::collection::vec(any::<u8>(), 0..90),
    ) {
        match Filter::new(&words.join(" ")) {
            Ok(filter) => _ = filter.matches(&frame),
            Err(e) => prop_assert!(e.line() >= 1 && e.column() >= 1 && !e.problem().is_empty()),
        }
    }
}

#[test]
fn fields_that_are_not_there_make_comparisons_false() {
    let tcp = Inner::V4 { from: 1, to: 2, ttl: 64, dscp: 0, l4: L4::Tcp { from: 5, to: 6, flags: 2 } };
    let b = Built { src: 1, dst: 2, group: false, tags: vec![], inner: tcp, payload: 20 };
    let is = |text: &str| Filter::new(text).unwrap().matches(&b.frame());
    assert!(!is("udp.port == 5") && !is("udp.port != 5") && !is("udp.port < 70") && !is("vlan.id != 1"));
    assert!(is("not udp.port == 5") && is("not (udp.port != 5)") && is("!vlan"));
    assert!(is("tcp.port != 7") && !is("tcp.port != 6") && is("tcp.port == 6") && is("tcp.port > 5"));
    assert!(is("ipv4.addr == 10.0.0.0/24 and ipv4.src in 10.0.0.0-10.0.0.9"));
    assert!(is("arp or ipv4 and tcp.syn && !tcp.ack") && !is("(arp or ipv4) and udp"));
    assert!(is("tcp.syn == true") && is("tcp.syn != 0") && is("tcp.flags == 2") && !is("tcp.syn == false"));
}

#[test]
fn what_is_cut_off_or_lies_is_not_there() {
    let udp = Inner::V4 { from: 1, to: 2, ttl: 64, dscp: 0, l4: L4::Udp { from: 5, to: 6 } };
    let frame = Built { src: 1, dst: 2, group: false, tags: vec![], inner: udp, payload: 20 }.frame();
    let is = |text: &str, frame: &[u8]| Filter::new(text).unwrap().matches(frame);
    assert!(is("udp.src == 5 and len == 62", &frame));
    // Shorter than its length field says: no IPv4, though its type says so.
    assert!(!is("ipv4 or udp or ipv4.src == 10.0.0.1", &frame[..61]));
    assert!(is("eth.type == ipv4 and len == 61", &frame[..61]));
    assert!(
        is("len < 14", &frame[..13]) && !is("eth.multicast or eth.src != 02:00:00:00:00:09", &frame[..13])
    );
    let mut bad = frame.clone();
    bad[39] = 4; // UDP's length
    assert!(is("udp and ipv4.proto == udp", &bad) && !is("udp.port in 0-65535", &bad));
}

#[test]
fn wrong_expressions_are_told_what_is_meant_and_where() {
    let wrong = |text: &str| {
        let e = Filter::new(text).unwrap_err();
        (e.column(), e.problem().to_owned())
    };
    let says = |text: &str, column: usize, part: &str| {
        let (at, problem) = wrong(text);
        assert!(at == column && problem.contains(part), "{text}: {at}: {problem}");
    };
    says("", 1, "there is nothing here");
    says("  ", 1, "there is nothing here");
    says("ip.src == 1", 1, "did you mean ipv4.src?");
    says("tcp.port 80", 10, "== is missing before this: tcp.port == 80");
    says("tcp.port {80}", 10, "in is missing before this");
    says("tcp.port == {80}", 10, "write in before a list");
    says("tcp.port = 80", 10, "write ==");
    says("tcp.port and udp", 1, "tcp.port must be compared: it is a number");
    says("tcp.port ==", 12, "a value is missing here");
    says("tcp.port == 70000", 13, "tcp.port is at most 65535");
    says("tcp.port in {80, 90-70}", 18, "the last of a range comes before its first");
    says("tcp.port in {80 443}", 17, "a comma or } is missing here");
    says("tcp.port in {}", 14, "a value is missing here");
    says("tcp.port < 0", 10, "no tcp.port can be: it is 0 to 65535");
    says("tcp.port > 65535", 10, "no tcp.port can be");
    says("ipv4.src < 10.0.0.1", 10, "has no order");
    says("ipv4.src == 2001:db8::1", 13, "which is an IPv4 address");
    says("ipv4.src == 10.0.0.1/8", 13, "write 10.0.0.0/8");
    says("eth.src == 02-00-00-00-00-01", 12, "which is an Ethernet address");
    says("tcp.syn == 2", 12, "write it alone");
    says("tcp == 80", 1, "tcp has no value of its own");
    says("arp tcp", 5, "and, or, or the end is missing before this");
    says("(arp", 5, "a ) is missing");
    says("arp)", 4, "nothing was opened");
    says("arp and", 8, "is missing here");
    says("not", 4, "is missing here");
    says("arp or or tcp", 8, "a field, a protocol, not, or ( is missing here");
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    let problem = |text: &str| Filter::new(text).unwrap_err().problem().to_owned();
    let nested = |n: usize| format!("{}arp{}", "(".repeat(n), ")".repeat(n));
    assert!(Filter::new(&nested(32)).is_ok());
    assert_eq!(problem(&nested(33)), "more than 32 inside each other");
    assert_eq!(problem(&format!("{}arp", "!".repeat(4000))), "more than 32 inside each other");
    let many = |n: usize| vec!["arp"; n].join(" or ");
    assert!(Filter::new(&many(256)).is_ok());
    assert!(problem(&many(257)).starts_with("more than 256 comparisons"));
    let long = format!("tcp.port in {{{}}}", vec!["1"; 3000].join(","));
    assert!(problem(&long).contains("use at most 4096"));
}

fn bed(expression: &str) -> (Rig, Graph) {
    let mut rig = Rig::new(256);
    let mut b = GraphBuilder::new(&rig.local);
    let f = b.add("f", Box::new(Filter::new(expression).unwrap()));
    b.join(f, "pass", To::Tx(1)).unwrap();
    let mut g = b.build(To::Node(f)).unwrap();
    rig.add_ports(&mut g, &[0, 1], OnFull::Drop);
    (rig, g)
}

fn arp_and_other(n: usize) -> Vec<Frame> {
    let with = |inner| Built { src: 1, dst: 2, group: false, tags: vec![], inner, payload: 30 }.frame();
    (0..n)
        .map(|i| with(if i % 3 == 0 { Inner::Arp { op: 1, from: 1, to: 2 } } else { Inner::Other }))
        .collect()
}

#[test]
fn what_fails_is_dropped_and_counted() {
    let (mut rig, mut g) = bed("not arp");
    rig.arrive(0, arp_and_other(30));
    rig.run(&mut g);
    assert_eq!(rig.sent(1), arp_and_other(30).into_iter().filter(|f| f[12] == 0x88).collect::<Vec<_>>());
    let (_, kind, meter, notes) = g.stages().next().unwrap();
    assert_eq!((kind, meter.drops.of(DropReason::Filtered)), ("filter", 10));
    assert_eq!(notes, [("passed", 20), ("failed", 10)]);
    rig.arrive(0, arp_and_other(1));
    rig.run(&mut g);
    assert_eq!((rig.sent(1).len(), g.stages().next().unwrap().3[1].1), (0, 11), "all of a burst");
    rig.finish(g);
}

#[test]
fn what_fails_can_go_elsewhere() {
    let mut rig = Rig::new(64);
    let mut b = GraphBuilder::new(&rig.local);
    let f = b.add("f", Box::new(Filter::new("arp").unwrap()));
    b.join(f, "pass", To::Tx(0)).unwrap();
    b.join(f, "fail", To::Tx(1)).unwrap();
    let mut g = b.build(To::Node(f)).unwrap();
    rig.add_ports(&mut g, &[0, 1], OnFull::Drop);
    rig.arrive(0, arp_and_other(9));
    rig.run(&mut g);
    assert_eq!((rig.sent(0).len(), rig.sent(1).len()), (3, 6));
    rig.finish(g);
}

#[test]
fn headers_in_several_buffers_are_headers() {
    let tcp = Inner::V6 { from: 1, to: 2, hops: 9, l4: L4::Tcp { from: 5, to: 80, flags: 2 } };
    let frame = Built { src: 1, dst: 2, group: false, tags: vec![7], inner: tcp, payload: 12 }.frame();
    let (rig, mut g) = bed("vlan.id == 7 and tcp.dst == 80 and len == 90 and ipv6.hops == 9");
    for cut in [0, 13, 17, 30, 60, 70] {
        g.inject(&mut rig.in_two(&frame, cut, 0), 1);
        assert_eq!(rig.sent(1).len(), 1, "cut at {cut}");
    }
    g.breathe(1, false);
    drop(g);
    assert_eq!((rig.home(), rig.local.lost()), (256, 0));
}

#[test]
fn a_segment_of_many_buffers_is_known_by_its_first() {
    // 60,000 bytes of TCP, as a kernel hands them over, in buffers of 128: more of them than are looked at.
    let tcp = Inner::V4 { from: 1, to: 2, ttl: 64, dscp: 0, l4: L4::Tcp { from: 5, to: 443, flags: 0x18 } };
    let mut front = Built { src: 1, dst: 2, group: false, tags: vec![], inner: tcp, payload: 74 }.frame();
    let rig = Rig::new(256);
    let (buffers, length) = (60, 128 * 60);
    front[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
    let take = |bytes: &[u8]| {
        let mut b = Batch::new(&rig.local);
        assert_eq!(b.fill(rig.pool, 1, bytes.len() as u16, Meta::default()), 1);
        b.pkt(0).unwrap().bytes_mut().copy_from_slice(bytes);
        let mut slot = None;
        b.drain_while(|p| {
            slot = Some(p.into_slot());
            Ok(())
        });
        slot.unwrap()
    };
    let mut chain = Chain::new(&rig.local, take(&front), 128).unwrap();
    for _ in 1..buffers {
        chain.push(take(&[0; 128]), 128).unwrap();
    }
    let mut batch = Batch::new(&rig.local);
    chain.finish(&mut batch, Meta::default()).map_err(Chain::free).unwrap();
    let p = batch.pkt(0).unwrap();
    let is = |text: &str| Filter::new(text).unwrap().matches_packet(&p);
    assert!(is("tcp.dst == 443 and ipv4.len == 7666 and len == 7680 and tcp.flags == 0x18"));
    assert!(!Filter::new("tcp or ipv4").unwrap().matches(p.bytes()), "alone those bytes are no IPv4");
    batch.free_sent();
}

#[test]
fn a_tag_that_the_device_took_out_counts_as_the_outermost() {
    let rig = Rig::new(64);
    let mut batch = Batch::new(&rig.local);
    let inner = Inner::Arp { op: 1, from: 1, to: 2 };
    let frame = Built { src: 1, dst: 2, group: false, tags: vec![5 << 13 | 6], inner, payload: 0 }.frame();
    assert_eq!(batch.fill(rig.pool, 1, frame.len() as u16, Meta::default()), 1);
    let mut p = batch.pkt(0).unwrap();
    p.bytes_mut().copy_from_slice(&frame);
    let is = |p: &mem::Pkt<'_>, text: &str| Filter::new(text).unwrap().matches_packet(p);
    assert!(is(&p, "vlan.id == 6 and vlan.pcp == 5 and arp"));
    p.set_ext(Ext::tagged(Tci::new(3, false, VlanId::new(9).unwrap()).raw()));
    p.set_flags(Flags::VLAN);
    assert!(is(&p, "vlan.id == 9 and vlan.pcp == 3 and arp and vlan"));
    batch.free_sent();
}

#[test]
fn configuration_is_read_or_refused() {
    let read = |text: &str| FilterConfig::read(&text.parse().unwrap()).map_err(|e| e.to_string());
    assert_eq!(read("expression = \"arp\"").unwrap().expression, "arp");
    assert_eq!(read("expresion = \"arp\"").unwrap_err(), "expresion: is not known; did you mean expression?");
    assert!(read("").unwrap_err().starts_with("expression: is missing: what passes"));
}
