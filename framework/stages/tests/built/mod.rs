//! Frames that `etherparse` built, with what they were built of.
#![allow(dead_code, reason = "each test file uses its part")]

use etherparse::PacketBuilder;
use wire::zerocopy::IntoBytes;
use wire::{ArpHeader, EtherType, Tci, vlan};

pub type Frame = Vec<u8>;

/// What a frame is built of, and what it therefore is.
#[derive(Clone, Debug)]
pub struct Built {
    pub src: u8,
    pub dst: u8,
    pub group: bool,
    pub tags: Vec<u16>,
    pub inner: Inner,
    pub payload: usize,
}

#[derive(Clone, Debug)]
pub enum Inner {
    Arp { op: u16, from: u8, to: u8 },
    V4 { from: u8, to: u8, ttl: u8, dscp: u8, l4: L4 },
    V6 { from: u8, to: u8, hops: u8, l4: L4 },
    Other,
}

#[derive(Clone, Debug)]
pub enum L4 {
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

pub const fn mac(last: u8, group: bool) -> [u8; 6] {
    [if group { 3 } else { 2 }, 0, 0, 0, 0, last]
}
pub const fn v4(last: u8) -> [u8; 4] {
    [10, 0, last >> 2, last]
}
pub const fn v6(last: u8) -> [u8; 16] {
    [0x20, 1, 0xd, 0xb8, 0, 0, 0, last >> 2, 0, 0, 0, 0, 0, 0, 0, last]
}

impl Built {
    pub fn frame(&self) -> Frame {
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
    pub fn values(&self, field: &str) -> Vec<u64> {
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
    pub fn is(&self, protocol: &str) -> bool {
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
