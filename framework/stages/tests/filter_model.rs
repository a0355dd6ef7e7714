//! Filters against an evaluation from what frames were built of.

mod built;

use std::fmt::Write as _;

use built::{Built, Inner, L4, mac, v4, v6};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ringwright_stages::Filter;

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
