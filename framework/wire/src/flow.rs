//! A number for the flow that a frame belongs to: what spreads packets over workers.
//!
//! - All packets of a flow have one [`hash`], and so have those of the way back: whichever end speaks, one worker sees both.
//! - A flow is two addresses, a protocol and two ports: TCP, UDP or SCTP over IPv4 or IPv6. Other IP is told apart by its two addresses, other
//!   Ethernet by its two addresses and its type (none, where the frame has a length instead, 802.3).
//! - Every fragment, the first too, counts by its addresses only, so that all parts of a datagram meet. They need not meet the flow's packets
//!   that are whole.
//! - VLAN tags, at most two, are stepped over and do not count: a tag that a device took out makes no difference.
//!
//! Only headers are looked at, so the first buffer of a longer frame will do. Each is read as far as it is there: hostile lengths change at most the
//! value.
//!
//! Limits: the hash has no key, so who can choose ports can choose the worker; of tunnels only the outer addresses count; an ICMP error is
//! no part of the flow that it is about.
use crate::{EtherType, EthernetHeader, Fragment, IpProtocol, Ipv4Header, Ipv6Header, Upper, VlanHeader};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// VLAN tags that are stepped over.
const MAX_TAGS: usize = 2;
/// Odd numbers without a pattern: pi's hexadecimal digits after the point, the last bit of each set.
const MIX: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// The hash of the flow of an Ethernet frame, or of as much of it as is at hand; 0 without a whole Ethernet header.
///
/// All 32 bits are good: any of them may choose, by remainder or by multiplication.
///
/// ```
/// # use ringwright_wire::flow;
/// let there = b"AAAAAABBBBBB\x88\xcc...";
/// let back = b"BBBBBBAAAAAA\x88\xcc......";
/// assert_eq!(flow::hash(there), flow::hash(back));
/// ```
#[inline]
pub fn hash(frame: &[u8]) -> u32 {
    usual(frame).unwrap_or_else(|| any(frame))
}

/// The start of by far the most frames.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Usual {
    ethernet: EthernetHeader,
    ip: Ipv4Header,
    ports: [[u8; 2]; 2],
}

/// Of whole TCP or UDP over IPv4, without tags and options; other frames take the longer way to the same number.
#[inline(always)]
fn usual(frame: &[u8]) -> Option<u32> {
    let (Usual { ethernet, ip, ports: [from, to] }, _) = Usual::ref_from_prefix(frame).ok()?;
    let plain = ethernet.ether_type == EtherType::IPV4 && ip.is_plain() && ip.fragment() == Fragment::Whole;
    if !plain || !matches!(ip.protocol, IpProtocol::TCP | IpProtocol::UDP) {
        return None;
    }
    let end = |address, port: &[u8; 2]| end(address, u16::from_ne_bytes(*port));
    Some(between(end(ip.src, from), end(ip.dst, to), ip.protocol.0.into()))
}

#[inline(never)]
fn any(frame: &[u8]) -> u32 {
    let Ok((ethernet, mut packet)) = EthernetHeader::ref_from_prefix(frame) else { return 0 };
    let mut kind = ethernet.ether_type;
    for _ in 0..MAX_TAGS {
        let tag = VlanHeader::ref_from_prefix(packet).ok().filter(|_| kind.is_vlan());
        let Some((tag, rest)) = tag else { break };
        (kind, packet) = (tag.ether_type, rest);
    }
    let found = match kind {
        EtherType::IPV4 => ipv4(packet),
        EtherType::IPV6 => ipv6(packet),
        _ => None,
    };
    found.unwrap_or_else(|| stations(ethernet, kind))
}

/// Both stations and the type between them.
fn stations(ethernet: &EthernetHeader, kind: EtherType) -> u32 {
    let kind = if kind.is_length() { 0 } else { kind.value() };
    between(ethernet.src.to_u64(), ethernet.dst.to_u64(), kind)
}

fn ipv4(packet: &[u8]) -> Option<u32> {
    let (ip, _) = Ipv4Header::ref_from_prefix(packet).ok().filter(|(ip, _)| ip.version() == 4)?;
    let whole = ip.fragment() == Fragment::Whole && ip.header_len() >= Ipv4Header::LEN;
    let (protocol, [from, to]) = ports(ip.protocol, packet, ip.header_len(), whole);
    Some(between(end(ip.src, from), end(ip.dst, to), protocol))
}

fn ipv6(packet: &[u8]) -> Option<u32> {
    let (ip, rest) = Ipv6Header::ref_from_prefix(packet).ok().filter(|(ip, _)| ip.version() == 6)?;
    // What follows a chain of headers that makes no sense is not looked at.
    let upper = Upper::find(ip.next_header, rest).ok().filter(|u| u.fragment == Fragment::Whole);
    let (protocol, at) = upper.map_or((IpProtocol::NO_NEXT, 0), |u| (u.protocol, u.offset));
    let (protocol, [from, to]) = ports(protocol, rest, at, upper.is_some());
    let end = |address: [u8; 16], port| {
        let [high, low]: [u64; 2] = zerocopy::transmute!(address);
        fold(high ^ MIX[2], low ^ MIX[3]).wrapping_add(port)
    };
    Some(between(end(ip.src, from.into()), end(ip.dst, to.into()), protocol))
}

/// The protocol and its two ports, at `at` in `bytes`; nothing but zeros where there are none or they are not to count.
fn ports(protocol: IpProtocol, bytes: &[u8], at: usize, count: bool) -> (u16, [u16; 2]) {
    let has = matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP);
    match bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
        Some(&ports) if has && count => (protocol.0.into(), zerocopy::transmute!(ports)),
        _ => (0, [0; 2]),
    }
}

/// One end over IPv4. The order of bytes does not matter, only that it is always the same.
#[inline(always)]
fn end(address: [u8; 4], port: u16) -> u64 {
    u64::from(u32::from_ne_bytes(address)) << 16 | u64::from(port)
}

/// The hash of what goes on between two ends, whichever of them sends.
#[inline(always)]
const fn between(a: u64, b: u64, what: u16) -> u32 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let mixed = fold(low ^ MIX[0] ^ (what as u64) << 48, high ^ MIX[1]);
    (mixed ^ mixed >> 32) as u32
}

/// Both halves of the product, one on the other.
#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}
