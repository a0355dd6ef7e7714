//! Filters: what they say of frames, how they refuse what is no expression, and as stages in a graph.

mod built;
#[path = "../../graph/tests/rig/mod.rs"]
mod rig;

use built::{Built, Inner, L4};
use graph::{self, Graph, GraphBuilder, OnFull, To};
use mem::{Batch, Chain, Ext, Flags, Meta};
use meter::DropReason;
use rig::{Frame, Rig};
use ringwright_stages::{Filter, FilterConfig};
use wire::{Tci, VlanId};

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
