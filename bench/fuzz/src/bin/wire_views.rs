//! Arbitrary bytes taken for a frame, and for each header.
//!
//! Flags: -max_len=600
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::hint::black_box;
use wire::checksum::{self, L4Check, Sum, fill_l4, pseudo, verify_l4};
use wire::rss::{RssKey, RssKinds, Toeplitz};
use wire::{
    Arp, Depth, EtherType, Ethernet, EthernetHeader, Fragment, Icmp, IcmpHeader, IpProtocol, Ipv4,
    Ipv4Header, Ipv6, Ipv6Header, Layers, MAX_EXTENSIONS, MacAddr, Tci, Tcp, TcpHeader, Udp, UdpHeader, Vlan,
    VlanHeader, flow, vlan,
};
use zerocopy::IntoBytes;

static SYMMETRIC: Toeplitz = Toeplitz::new(&RssKey::SYMMETRIC);

fuzz_target!(|data: &[u8]| {
    link(data);
    ipv4(data);
    ipv6(data);
    transport(data);
    sums(data);
    layers(data);
    tags(data);
});

/// What was taken apart gives, together, the first bytes of what there was.
fn same(data: &[u8], parts: &[&[u8]]) {
    assert!(data.starts_with(&parts.concat()), "written back, it is not what was read");
}

fn link(data: &[u8]) {
    if let Ok(v) = Ethernet::parse(data) {
        let mac = |mac: MacAddr| mac.to_string().parse().expect("its own text");
        let header = EthernetHeader {
            dst: mac(v.dst),
            src: MacAddr::new(v.src.bytes()),
            ether_type: EtherType::new(v.ether_type.value()),
        };
        same(data, &[header.as_bytes(), v.payload()]);
    }
    if let Ok(v) = Vlan::parse(data) {
        let tci = Tci::new(v.tci.priority(), v.tci.drop_eligible(), v.tci.id());
        same(data, &[VlanHeader { tci, ether_type: v.ether_type }.as_bytes(), v.payload()]);
    }
    if let Ok(v) = Arp::parse(data) {
        same(data, &[v.as_bytes(), v.payload()]);
        // The reply to the reply is the request, but for the target that was not known.
        let mut back = v.reply(v.target_mac).reply(v.sender_mac);
        back.operation = v.operation;
        same(data, &[back.as_bytes()]);
    }
}

fn ipv4(data: &[u8]) {
    let Ok(v) = Ipv4::parse(data) else { return };
    let mut header = Ipv4Header::new(v.protocol, v.src, v.dst, 0).expect("no payload fits");
    header.set_header_words((v.header_len() / 4) as u8);
    header.dscp_ecn = v.dscp() << 2 | v.ecn();
    (header.total_len, header.identification) = (v.total_len, v.identification);
    header.set_fragment(v.dont_fragment(), v.more_fragments(), v.fragment_offset());
    (header.ttl, header.checksum) = (v.ttl, v.checksum);
    if !v.reserved_flag() {
        same(data, &[header.as_bytes(), v.option_bytes(), v.payload()]);
    }
    assert_eq!(v.header_len(), Ipv4Header::LEN + v.option_bytes().len());
    assert_eq!(usize::from(v.total_len.get()), v.header_len() + v.payload().len());
    assert!(v.options().count() <= 40);
    black_box(v.route_pending());

    let mut copy = data.to_vec();
    let mut v = Ipv4::parse(&mut copy[..]).expect("the same bytes");
    v.fill_checksum();
    assert!(v.checksum_ok());
    // A router's step, by RFC 1624.
    let at = u16::from_be_bytes([v.ttl, v.protocol.0]);
    v.ttl = v.ttl.wrapping_sub(1);
    let now = u16::from_be_bytes([v.ttl, v.protocol.0]);
    let quick = checksum::update(v.checksum.get(), at, now);
    v.fill_checksum();
    assert_eq!(quick, v.checksum.get());
}

fn ipv6(data: &[u8]) {
    let Ok(v) = Ipv6::parse(data) else { return };
    let mut header = Ipv6Header::new(v.next_header, v.src, v.dst, v.payload().len()).expect("it was read");
    header.set_class_flow(v.traffic_class(), v.flow_label());
    header.hop_limit = v.hop_limit;
    same(data, &[header.as_bytes(), v.payload()]);

    assert!(v.extensions().count() <= MAX_EXTENSIONS + 1);
    let walked: Vec<&[u8]> = v.extensions().flatten().map(|e| e.bytes).collect();
    assert!(v.payload().starts_with(&walked.concat()));
    if let Ok(upper) = v.upper() {
        assert_eq!(upper.offset, walked.concat().len());
        assert!(!upper.protocol.is_extension() || upper.fragment == Fragment::Later);
    } else {
        assert!(v.extensions().last().expect("what is malformed").is_err());
    }
}

fn transport(data: &[u8]) {
    if let Ok(v) = Tcp::parse(data) {
        let mut header = TcpHeader::new(v.src_port.get(), v.dst_port.get());
        header.set_header_words((v.header_len() / 4) as u8);
        (header.sequence, header.acknowledgement) = (v.sequence, v.acknowledgement);
        (header.flags, header.window) = (v.flags, v.window);
        (header.checksum, header.urgent) = (v.checksum, v.urgent);
        if v.reserved() == 0 {
            same(data, &[header.as_bytes(), v.option_bytes(), v.payload()]);
        }
        let whole: usize = v.options().flatten().map(|o| o.data.len() + 2).sum();
        assert!(whole <= v.option_bytes().len());
        black_box((v.mss(), format!("{:?}", v.flags)));
    }
    if let Ok(v) = Udp::parse(data) {
        let mut header =
            UdpHeader::new(v.src_port.get(), v.dst_port.get(), v.payload().len()).expect("it was read");
        header.checksum = v.checksum;
        same(data, &[header.as_bytes(), v.payload()]);
    }
    if let Ok(v) = Icmp::parse(data) {
        let header = IcmpHeader { kind: v.kind, code: v.code, checksum: v.checksum, rest: v.rest };
        same(data, &[header.as_bytes(), v.payload()]);
        assert_eq!(v.sum(), Sum::default().plus(data));
        black_box((v.echo(), v.mtu()));
    }
}

fn sums(data: &[u8]) {
    let whole = Sum::default().plus(data);
    let mut plain: u64 =
        data.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum();
    while plain > 0xffff {
        plain = (plain >> 16) + (plain & 0xffff);
    }
    assert_eq!(u64::from(whole.folded()), plain);
    let Some((&at, rest)) = data.split_first() else { return };
    let (before, after) = rest.split_at(usize::from(at).min(rest.len()));
    let pieces = Sum::default().plus(&[at]).plus(before).plus(after);
    assert_eq!(pieces.folded(), whole.folded());
}

fn layers(frame: &[u8]) {
    let layers = Layers::parse(frame);
    shape(frame, &layers);
    let mut copy = frame.to_vec();
    if fill_l4(&mut copy, &layers) {
        assert_eq!(verify_l4(&copy, &layers), L4Check::Good);
        incremental(&mut copy, &layers);
    } else {
        assert_eq!(verify_l4(frame, &layers), L4Check::Unchecked);
    }
    assert_eq!(Layers::parse(&copy), layers, "a checksum changes no layer");
    if let Some(sum) = SYMMETRIC.hash_frame(frame, &layers, RssKinds::ALL) {
        let turned = turn_round(frame, &layers);
        assert_eq!(SYMMETRIC.hash_frame(&turned, &layers, RssKinds::ALL), Some(sum));
    }
    let hash = flow::hash(frame);
    if layers.malformed().is_none() && layers.protocol() != Some(IpProtocol::SCTP) {
        assert_eq!(flow::hash(&turn_round(frame, &layers)), hash, "the way back is the same flow");
    }
    fronts(frame, &layers);
    // Layers of one frame with the bytes of another: wrong answers, but answers.
    for other in [frame.get(1..), frame.get(..frame.len() / 2), frame.get(..layers.l3_end() / 2)] {
        let other = other.unwrap_or_default();
        black_box((
            layers.ipv4_in(other).is_some(),
            layers.ipv6_in(other).is_some(),
            layers.tcp_in(other).is_some(),
        ));
        black_box((layers.udp_in(other).is_some(), layers.icmp_in(other).is_some(), layers.ports_in(other)));
        black_box((verify_l4(other, &layers), SYMMETRIC.hash_frame(other, &layers, RssKinds::ALL)));
        black_box(fill_l4(&mut other.to_vec(), &layers));
    }
}

/// Looking less deep, or at less of the frame, finds less, and nothing else.
fn fronts(frame: &[u8], layers: &Layers) {
    for depth in [Depth::Link, Depth::Network, Depth::Transport] {
        for front in [frame, &frame[..frame.len() / 2], &frame[..frame.len() / 4]] {
            let part = Layers::parse_to(front, frame.len(), depth);
            let same = |found: Option<usize>, all| found.is_none() || found == all;
            assert!(same(part.l3_offset(), layers.l3_offset()));
            assert!(same(part.ip_payload_offset(), layers.ip_payload_offset()));
            assert!(same(part.l4_payload_offset(), layers.l4_payload_offset()));
            assert!(part.ip_version().is_none() || part.l3_end() == layers.l3_end());
        }
    }
    assert_eq!(Layers::parse_to(frame, frame.len(), Depth::Transport), *layers);
}

/// Offsets are in order, and what was found can be viewed.
fn shape(frame: &[u8], layers: &Layers) {
    let offsets =
        [layers.l3_offset(), layers.ip_payload_offset(), layers.l4_offset(), layers.l4_payload_offset()];
    let known: Vec<usize> = offsets.into_iter().flatten().chain([layers.l3_end(), frame.len()]).collect();
    assert!(known.is_sorted(), "{known:?}");
    assert!(layers.malformed().is_some() || layers.l3_offset().is_some());
    assert_eq!(
        layers.ip_version().is_some(),
        layers.ipv4_in(frame).is_some() || layers.ipv6_in(frame).is_some()
    );
    let views =
        [layers.tcp_in(frame).is_some(), layers.udp_in(frame).is_some(), layers.icmp_in(frame).is_some()];
    if layers.fragment() == Fragment::Whole {
        let found = views.into_iter().filter(|&v| v).count();
        assert_eq!(found, usize::from(layers.l4_offset().is_some()));
    }
    if layers.ip_version().is_some() {
        assert_eq!(Layers::parse(&frame[..layers.l3_end()]), *layers, "padding does not matter");
    }
}

/// Changing one word of layer 4 by RFC 1624 is the same as summing all of it again.
fn incremental(frame: &mut [u8], layers: &Layers) {
    let (Some(l4), Some(offset)) = (layers.l4_offset(), layers.l4_checksum_offset()) else { return };
    let old = word(frame, l4 + offset);
    // Ports, sequence number, or an ICMP message's second word: no length and no checksum.
    let at = l4 + if offset == 2 { 4 } else { 0 };
    let (from, to) = (word(frame, at), u16::from_be_bytes([frame[0], frame[1]]));
    frame[at..at + 2].copy_from_slice(&to.to_be_bytes());
    let quick = checksum::update(old, from, to);
    assert!(fill_l4(frame, layers));
    let full = word(frame, l4 + offset);
    let udp = layers.protocol() == Some(IpProtocol::UDP);
    // An ICMPv4 message alone may be all zero, and only then the two may differ.
    let zero = layers.protocol() == Some(IpProtocol::ICMPV4)
        && frame[l4..layers.l3_end()].iter().enumerate().all(|(i, &b)| b == 0 || matches!(i, 2 | 3));
    assert!(zero || quick == full || (udp && quick == 0 && full == 0xffff), "{quick:#06x} {full:#06x}");
    let seed = pseudo(frame, layers, true).expect("it was filled");
    black_box(seed.folded());
}

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// The frame with source and destination changed over.
fn turn_round(frame: &[u8], layers: &Layers) -> Vec<u8> {
    let mut turned = frame.to_vec();
    if let Some(mut v4) = layers.ipv4_in(&mut turned[..]) {
        let header = &mut *v4;
        core::mem::swap(&mut header.src, &mut header.dst);
    }
    if let Some(mut v6) = layers.ipv6_in(&mut turned[..]) {
        let header = &mut *v6;
        core::mem::swap(&mut header.src, &mut header.dst);
    }
    if let (Some(_), Some(at)) = (layers.ports_in(frame), layers.l4_offset()) {
        turned[at..at + 4].rotate_left(2);
    }
    turned
}

/// A tag that is put in is found by the layers, moves all else by four bytes, and comes out again.
fn tags(frame: &[u8]) {
    let mut room = [&[0; vlan::TAG_LEN], frame].concat();
    let tci = Tci::from_raw(0xb123);
    if vlan::insert(&mut room, EtherType::QINQ, tci) {
        let (before, after) = (Layers::parse(frame), Layers::parse(&room));
        if after.malformed() != Some(wire::Malformed::TooManyHeaders) && frame.len() >= EthernetHeader::LEN {
            assert_eq!(after.vlans().first(), Some(&tci));
            assert_eq!(after.l4_offset(), before.l4_offset().map(|at| at + vlan::TAG_LEN));
            assert_eq!((after.protocol(), after.malformed()), (before.protocol(), before.malformed()));
        }
        if frame.len() >= EthernetHeader::LEN {
            assert_eq!(vlan::remove(&mut room), Some((EtherType::QINQ, tci)));
            assert_eq!(room[vlan::TAG_LEN..], *frame);
        }
    }
    let mut frame = frame.to_vec();
    let untouched = frame.clone();
    if vlan::remove(&mut frame).is_none() {
        assert_eq!(frame, untouched);
    }
}
