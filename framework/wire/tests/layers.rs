//! Whole frames, byte by byte.
use ringwright_wire::checksum::{L4Check, fill_l4, pseudo, verify_l4};
use ringwright_wire::rss::{RssKey, RssKind, RssKinds, Toeplitz};
use ringwright_wire::{
    Depth, EtherType, Fragment, IpProtocol, IpVersion, Layers, Malformed, Tci, TcpFlags, VlanId, vlan,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A DNS query, 192.0.2.1:1024 to 192.0.2.53:53, padded to 60 bytes.
fn udp() -> Vec<u8> {
    bytes(
        "020000000002 020000000001 0800
         45000023 00004000 4011b693 c0000201 c0000235
         0400 0035 000f 1d3d 71756572793f0a
         0000000000 000000000000",
    )
}

/// A SYN with options, 2001:db8::1 to 2001:db8::2, port 49153 to 80.
fn tcp_v6() -> Vec<u8> {
    bytes(
        "020000000002 020000000001 86dd
         60000000 001c 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002
         c001 0050 01020304 00000000 70 02 faf0 0000 0000 020405b4 01030307",
    )
}

#[test]
fn udp_over_ipv4() {
    let frame = udp();
    let layers = Layers::parse(&frame);
    assert_eq!((layers.ether_type(), layers.ip_version()), (EtherType::IPV4, Some(IpVersion::V4)));
    assert_eq!((layers.l3_offset(), layers.l3_header_len(), layers.l3_end()), (Some(14), Some(20), 49));
    assert_eq!(
        (layers.l4_offset(), layers.l4_header_len(), layers.l4_payload_offset()),
        (Some(34), Some(8), Some(42))
    );
    assert_eq!((layers.protocol(), layers.malformed()), (Some(IpProtocol::UDP), None));
    assert_eq!(layers.ports_in(&frame), Some((1024, 53)));
    assert_eq!(layers.udp_in(&frame[..]).unwrap().payload(), b"query?\n");
    assert!(layers.ipv4_in(&frame[..]).unwrap().checksum_ok());
    assert_eq!(verify_l4(&frame, &layers), L4Check::Good);
}

#[test]
fn tcp_over_ipv6() {
    let mut frame = tcp_v6();
    let layers = Layers::parse(&frame);
    assert_eq!(
        (layers.l4_offset(), layers.l4_header_len(), layers.l4_checksum_offset()),
        (Some(54), Some(28), Some(16))
    );
    assert_eq!(verify_l4(&frame, &layers), L4Check::Bad, "the field is still zero");
    assert!(fill_l4(&mut frame, &layers));
    assert_eq!(verify_l4(&frame, &layers), L4Check::Good);
    let tcp = layers.tcp_in(&mut frame[..]).unwrap();
    assert_eq!((tcp.flags, tcp.mss()), (TcpFlags::SYN, Some(1460)));
}

#[test]
fn views_write_through_to_the_frame() {
    let mut frame = udp();
    let layers = Layers::parse(&frame);
    let mut ip = layers.ipv4_in(&mut frame[..]).unwrap();
    ip.dst = [198, 51, 100, 7];
    ip.fill_checksum();
    assert_eq!(verify_l4(&frame, &layers), L4Check::Bad, "the pseudo header changed");
    assert!(fill_l4(&mut frame, &layers));
    assert_eq!(verify_l4(&frame, &layers), L4Check::Good);
    assert_eq!(frame[30..34], [198, 51, 100, 7]);
    assert!(layers.ipv4_in(&frame[..]).unwrap().checksum_ok());
}

#[test]
fn tags_are_listed_from_the_outside() {
    let tag = |id| Tci::new(3, false, VlanId::new(id).unwrap());
    let mut room = [vec![0; 12], udp()].concat();
    assert!(vlan::insert(&mut room[8..], EtherType::VLAN, tag(7)));
    assert!(vlan::insert(&mut room[4..], EtherType::QINQ, tag(8)));
    let frame = &room[4..];
    let layers = Layers::parse(frame);
    assert_eq!(layers.vlans(), [tag(8), tag(7)]);
    assert_eq!((layers.l3_offset(), layers.ports_in(frame)), (Some(22), Some((1024, 53))));
    assert_eq!(verify_l4(frame, &layers), L4Check::Good);

    assert!(vlan::insert(&mut room, EtherType::QINQ_OLD, tag(9)));
    let layers = Layers::parse(&room);
    assert_eq!((layers.malformed(), layers.l3_offset()), (Some(Malformed::TooManyHeaders), None));
    assert_eq!(layers.vlans(), [tag(9), tag(8)]);
}

#[test]
fn fragments_have_ports_only_first_and_no_checksum() {
    let mut frame = udp();
    let layers = Layers::parse(&frame);
    layers.ipv4_in(&mut frame[..]).unwrap().set_fragment(false, true, 0);
    frame[39] = 200; // the length of the whole datagram
    let first = Layers::parse(&frame);
    assert_eq!((first.fragment(), first.malformed()), (Fragment::First, None));
    assert_eq!(first.ports_in(&frame), Some((1024, 53)));
    assert_eq!(verify_l4(&frame, &first), L4Check::Unchecked);
    assert!(!fill_l4(&mut frame, &first));

    layers.ipv4_in(&mut frame[..]).unwrap().set_fragment(false, false, 80);
    let later = Layers::parse(&frame);
    assert_eq!((later.fragment(), later.l4_offset(), later.ports_in(&frame)), (Fragment::Later, None, None));
    assert_eq!((later.protocol(), later.ip_payload_offset()), (Some(IpProtocol::UDP), Some(34)));
}

#[test]
fn udp_without_a_checksum() {
    let mut frame = udp();
    let layers = Layers::parse(&frame);
    frame[40..42].fill(0);
    assert_eq!(verify_l4(&frame, &layers), L4Check::Unchecked, "IPv4 allows it");
    let mut v6 = tcp_v6();
    v6.truncate(54 + 8);
    (v6[19], v6[20]) = (8, 17);
    v6[54..].copy_from_slice(&[0, 1, 0, 2, 0, 8, 0, 0]);
    let layers = Layers::parse(&v6);
    assert_eq!(verify_l4(&v6, &layers), L4Check::Bad, "IPv6 does not");
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    let mut frame = udp();
    let layers = Layers::parse(&frame);
    assert!(fill_l4(&mut frame, &layers));
    // Lifting a data word by what is missing to 0xffff makes the computed checksum zero.
    let checksum = u16::from_be_bytes([frame[40], frame[41]]);
    let word = u16::from_be_bytes([frame[42], frame[43]]);
    let (sum, carry) = word.overflowing_add(checksum);
    frame[42..44].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    assert!(fill_l4(&mut frame, &layers));
    assert_eq!(frame[40..42], [0xff, 0xff]);
    assert_eq!(verify_l4(&frame, &layers), L4Check::Good);
}

#[test]
fn a_pending_route_leaves_the_checksum_alone() {
    let mut frame = tcp_v6();
    let layers = Layers::parse(&frame);
    assert!(fill_l4(&mut frame, &layers));
    // A routing header in front of TCP, first with a segment left, then without.
    frame.splice(54..54, [6, 0, 4, 1, 0, 0, 0, 0]);
    (frame[19], frame[20]) = (0x24, 43);
    let layers = Layers::parse(&frame);
    assert_eq!((layers.l4_offset(), layers.route_pending()), (Some(62), true));
    assert_eq!(verify_l4(&frame, &layers), L4Check::Unchecked);
    frame[57] = 0;
    assert_eq!(verify_l4(&frame, &Layers::parse(&frame)), L4Check::Good);
}

#[test]
fn the_pseudo_header_seeds_an_offload() {
    let mut frame = udp();
    let layers = Layers::parse(&frame);
    let expected = u16::from_be_bytes([frame[40], frame[41]]);
    let seed = pseudo(&frame, &layers, true).unwrap().folded();
    frame[40..42].copy_from_slice(&seed.to_be_bytes());
    // A device that sums from csum_start to the end, the seed included, gets the checksum.
    assert_eq!(ringwright_wire::checksum::of(&frame[34..49]), expected);
    let without = pseudo(&frame, &layers, false).unwrap();
    assert_eq!(without.plus_u16(15).folded(), seed);
}

#[test]
fn malformed_layers_keep_what_was_found() {
    let parse = |edit: fn(&mut Vec<u8>)| {
        let mut frame = udp();
        edit(&mut frame);
        Layers::parse(&frame)
    };
    assert_eq!(Layers::parse(&[]).malformed(), Some(Malformed::TooShort));
    let cut = parse(|f| f.truncate(13));
    assert_eq!((cut.l3_offset(), cut.l3_end()), (None, 13));
    let cut = parse(|f| f.truncate(33));
    assert_eq!(
        (cut.malformed(), cut.l3_offset(), cut.ip_version()),
        (Some(Malformed::TooShort), Some(14), None)
    );
    let cut = parse(|f| f.truncate(48));
    assert_eq!((cut.malformed(), cut.ip_version(), cut.l3_end()), (Some(Malformed::BadLength), None, 48));
    let ihl = parse(|f| f[14] = 0x44);
    assert_eq!((ihl.malformed(), ihl.protocol()), (Some(Malformed::BadHeaderLength), None));
    let udp = parse(|f| f[39] = 16);
    assert_eq!(
        (udp.malformed(), udp.protocol(), udp.l4_offset()),
        (Some(Malformed::BadLength), Some(IpProtocol::UDP), None)
    );
    let tcp = parse(|f| f[23] = 6);
    assert_eq!((tcp.malformed(), tcp.l4_offset()), (Some(Malformed::TooShort), None));
    let other = parse(|f| f[23] = 47);
    assert_eq!((other.malformed(), other.protocol(), other.l4_offset()), (None, Some(IpProtocol::GRE), None));
    let arp = parse(|f| f[13] = 6);
    assert_eq!((arp.malformed(), arp.l3_offset(), arp.l3_end()), (None, Some(14), 60));
}

#[test]
fn layers_of_another_frame_do_not_panic() {
    let layers = Layers::parse(&tcp_v6());
    for length in 0..60 {
        let mut other = udp();
        other.truncate(length);
        assert!(layers.tcp_in(&other[..]).is_none() && layers.ipv6_in(&other[..]).is_none());
        assert_eq!(verify_l4(&other, &layers), L4Check::Unchecked);
        assert!(!fill_l4(&mut other, &layers));
    }
}

#[test]
fn rss_takes_what_may_be_taken() {
    let toeplitz = Toeplitz::new(&RssKey::MICROSOFT);
    let mut frame = udp();
    // The first line of Microsoft's table.
    frame[26..34].copy_from_slice(&[66, 9, 149, 187, 161, 142, 100, 80]);
    frame[34..38].copy_from_slice(&[0x0a, 0xea, 0x06, 0xe6]);
    let hash = |frame: &[u8], kinds| toeplitz.hash_frame(frame, &Layers::parse(frame), kinds);
    assert_eq!(hash(&frame, RssKinds::ALL), Some((0x51cc_c178, RssKind::UdpIpv4)));
    let only_addresses = RssKinds::NONE.with(RssKind::Ipv4).with(RssKind::TcpIpv4);
    assert_eq!(hash(&frame, only_addresses), Some((0x323e_8fc2, RssKind::Ipv4)));
    assert_eq!(hash(&frame, RssKinds::NONE.with(RssKind::Ipv6)), None);
    frame[20] = 0x20; // more fragments
    assert_eq!(hash(&frame, RssKinds::ALL), Some((0x323e_8fc2, RssKind::Ipv4)));
    assert_eq!(hash(&tcp_v6(), RssKinds::ALL).unwrap().1, RssKind::TcpIpv6);
    frame[13] = 6;
    assert_eq!(hash(&frame, RssKinds::ALL), None, "ARP has no hash");
}

#[test]
fn the_first_bytes_of_a_frame_say_what_all_would() {
    // A segment of 60,000 bytes, as a kernel hands them out, of which one buffer's bytes are at hand.
    for v6 in [false, true] {
        let mut frame = if v6 { tcp_v6() } else { udp() };
        let (at, header) = if v6 { (18, 0) } else { (16, 20) };
        frame.resize(if v6 { 54 + 60_000 } else { 34 + 60_000 }, 7);
        frame[at..at + 2].copy_from_slice(&(60_000u16 + header).to_be_bytes());
        if !v6 {
            frame[38..40].copy_from_slice(&60_000u16.to_be_bytes());
        }
        let whole = Layers::parse(&frame);
        assert_eq!((whole.malformed(), whole.l3_end()), (None, frame.len()));
        for front in [82, 128, 2048, frame.len()] {
            assert_eq!(Layers::parse_to(&frame[..front], frame.len(), Depth::Transport), whole);
        }
        assert_eq!(
            Layers::parse_to(&frame[..128], 128, Depth::Transport).malformed(),
            Some(Malformed::BadLength)
        );
        assert_eq!(
            Layers::parse_to(&frame[..if v6 { 60 } else { 40 }], frame.len(), Depth::Transport).malformed(),
            Some(Malformed::TooShort),
            "a header that is not all at hand"
        );
    }
}

#[test]
fn no_deeper_than_asked() {
    let mut room = [vec![0; 4], tcp_v6()].concat();
    assert!(vlan::insert(&mut room, EtherType::VLAN, Tci::from_raw(7)));
    let to = |depth| Layers::parse_to(&room, room.len(), depth);
    let (link, network) = (to(Depth::Link), to(Depth::Network));
    assert_eq!((link.l3_offset(), link.ether_type(), link.vlans().len()), (Some(18), EtherType::IPV6, 1));
    assert_eq!((link.ip_version(), link.protocol()), (None, None));
    assert_eq!((network.ip_version(), network.l3_end()), (Some(IpVersion::V6), room.len()));
    assert_eq!((network.protocol(), network.ip_payload_offset()), (Some(IpProtocol::TCP), Some(58)));
    assert_eq!((network.l4_offset(), network.malformed()), (None, None));
    assert_eq!(to(Depth::Transport), Layers::parse(&room));
}
