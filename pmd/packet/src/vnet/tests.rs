use proptest::prelude::*;
use zerocopy::FromBytes;

use super::*;

/// A TCP or UDP frame over IPv4 or IPv6, with tags before the type, and where its layer 4 starts.
fn frame(tags: &[u16], v6: bool, tcp: bool, cwr: bool) -> (Vec<u8>, u16) {
    let mut f = vec![2; ADDRESSES];
    for tpid in tags {
        f.extend_from_slice(&tpid.to_be_bytes());
        f.extend_from_slice(&[0, 5]);
    }
    f.extend_from_slice(if v6 { &[0x86, 0xdd] } else { &[8, 0] });
    f.resize(f.len() + if v6 { 40 } else { 20 }, 0);
    let start = f.len() as u16;
    f.resize(f.len() + 40, 0);
    if tcp {
        f[usize::from(start) + 12] = 8 << 4;
        f[usize::from(start) + 13] = if cwr { 0x90 } else { 0x10 };
    }
    f.resize(f.len() + 3000, 0xcd);
    (f, start)
}

fn wish(start: u16, offset: u16, mss: u16) -> Ext {
    let mut ext = Ext::default();
    (ext.csum_start, ext.csum_offset, ext.mss) = (start, offset, mss);
    ext
}

fn header(flags: u8, gso_type: u8, start: u16, offset: u16, size: u16) -> VnetHeader {
    VnetHeader {
        flags,
        gso_type,
        hdr_len: 0.into(),
        gso_size: size.into(),
        csum_start: start.into(),
        csum_offset: offset.into(),
    }
}

#[test]
fn plain_frames_are_plain_and_checked_ones_good() {
    assert_eq!(received(&VnetHeader::default(), &[0; 60], false), Ok((Flags::default(), None)));
    let h = header(vnet::DATA_VALID, 0, 0, 0, 0);
    assert_eq!(received(&h, &[0; 60], true), Ok((Flags::L4_GOOD, None)));
    assert_eq!(sent(Flags::L4_GOOD, &Ext::default(), &[0; 60], 60, false), Ok(VnetHeader::default()));
}

#[test]
fn what_was_received_is_sent_as_it_was() {
    for (v6, tcp, tags) in [
        (false, true, &[][..]),
        (true, true, &[]),
        (false, false, &[0x8100]),
        (true, false, &[0x88a8, 0x8100]),
    ] {
        for cwr in [false, true] {
            let (bytes, start) = frame(tags, v6, tcp, cwr);
            let (kind, offset, len) = match (tcp, v6) {
                (true, false) => (vnet::GSO_TCPV4, 16, 32),
                (true, true) => (vnet::GSO_TCPV6, 16, 32),
                _ => (vnet::GSO_UDP_L4, 6, 8),
            };
            let ecn = if cwr && tcp { vnet::GSO_ECN } else { 0 };
            let h = header(vnet::NEEDS_CSUM, kind | ecn, start, offset, 1400);
            let (flags, ext) = received(&h, &bytes, false).unwrap();
            let ext = ext.unwrap();
            assert_eq!(flags, Flags::TX_L4.with(if tcp { Flags::TSO } else { Flags::USO }));
            assert_eq!((ext.csum_start, ext.csum_offset, ext.mss), (start, offset, 1400));
            let l2 = ETHERNET + tags.len() * 4;
            assert_eq!((usize::from(ext.l2_len), ext.l3_len), (l2, if v6 { 40 } else { 20 }));
            assert_eq!(u16::from(ext.l4_len), len);
            let out = sent(flags, &ext, &bytes, bytes.len() as u32, false).unwrap();
            assert_eq!(out, VnetHeader { hdr_len: (start + len).into(), ..h });
        }
    }
}

#[test]
fn offsets_move_by_a_tag_that_is_put_back() {
    let (bytes, start) = frame(&[], false, true, false);
    let h = header(vnet::NEEDS_CSUM, 0, start, 16, 0);
    let (flags, ext) = received(&h, &bytes, true).unwrap();
    let ext = ext.unwrap();
    assert_eq!((flags, ext.csum_start, ext.l2_len, ext.l3_len), (Flags::TX_L4, start + 4, 18, 20));
    let outside = wish(start, 16, 1000);
    let out = sent(Flags::TX_L4.with(Flags::TSO), &outside, &bytes, bytes.len() as u32, true).unwrap();
    assert_eq!((out.csum_start.get(), out.hdr_len.get()), (start + 4, start + 4 + 32));
}

#[test]
fn what_the_kernel_cannot_mean_is_refused() {
    use DropReason::{BadDescriptor, UnsupportedOffload};
    let (bytes, start) = frame(&[], false, true, false);
    let of = |h: VnetHeader| received(&h, &bytes, false).unwrap_err();
    assert_eq!(of(header(0, vnet::GSO_TCPV4, start, 16, 1400)), UnsupportedOffload, "no checksum");
    assert_eq!(of(header(vnet::NEEDS_CSUM, 3, start, 16, 1400)), UnsupportedOffload, "fragmented UDP");
    assert_eq!(of(header(vnet::NEEDS_CSUM, vnet::GSO_TCPV4, start, 16, 0)), BadDescriptor, "no size");
    assert_eq!(of(header(vnet::NEEDS_CSUM, 0, 60_000, 16, 0)), BadDescriptor);
    assert_eq!(of(header(vnet::NEEDS_CSUM, 0, u16::MAX, u16::MAX, 0)), BadDescriptor);
    assert_eq!(of(header(vnet::NEEDS_CSUM, 0, 13, 16, 0)), BadDescriptor, "in the Ethernet header");
}

#[test]
fn what_cannot_be_sent_is_refused() {
    use DropReason::{TooShort, UnsupportedOffload};
    let (bytes, start) = frame(&[], false, true, false);
    let len = bytes.len() as u32;
    let of = |flags: Flags, ext, first: &[u8]| sent(flags, &ext, first, len, false).unwrap_err();
    let tso = Flags::TX_L4.with(Flags::TSO);
    assert_eq!(of(Flags::TX_L3, Ext::default(), &bytes), UnsupportedOffload);
    assert_eq!(of(Flags::TX_L4, wish(len as u16, 16, 0), &bytes), TooShort);
    assert_eq!(of(Flags::TX_L4, wish(3, 16, 0), &bytes), TooShort);
    assert_eq!(of(tso, wish(start, 16, 0), &bytes), UnsupportedOffload, "no size");
    assert_eq!(of(tso, wish(start, 6, 1400), &bytes), UnsupportedOffload, "no TCP");
    assert_eq!(
        of(tso, wish(start, 16, 1400), &bytes[..40]),
        TooShort,
        "its header is not in the first buffer"
    );
    let mut other = bytes.clone();
    other[12] = 0x88;
    assert_eq!(of(tso, wish(start, 16, 1400), &other), UnsupportedOffload, "no IP");
    let (udp, start) = frame(&[], false, false, false);
    assert_eq!(of(Flags::USO, wish(start, 16, 1400), &udp), UnsupportedOffload, "no UDP");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_header_and_no_bytes_lead_outside(
        raw in any::<[u8; 10]>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        tagged: bool,
    ) {
        let h = VnetHeader::read_from_bytes(&raw).unwrap();
        if let Ok((flags, Some(ext))) = received(&h, &bytes, tagged) {
            let end = usize::from(ext.csum_start) + usize::from(ext.csum_offset) + 2;
            let extra = if tagged { 4 } else { 0 };
            prop_assert!(end <= bytes.len() + extra);
            prop_assert!(flags.has(Flags::TX_L4));
        }
    }

    #[test]
    fn no_wish_makes_a_header_that_points_outside(
        flags: u16,
        words in any::<[u16; 3]>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        tagged: bool,
    ) {
        let total = bytes.len() as u32;
        if let Ok(h) = sent(Flags(flags), &wish(words[0], words[1], words[2]), &bytes, total, tagged) {
            let extra = if tagged { 4 } else { 0 };
            prop_assert!(usize::from(h.hdr_len.get()) <= bytes.len() + extra);
            let end = u32::from(h.csum_start.get()) + u32::from(h.csum_offset.get()) + 2;
            prop_assert!(h.flags == 0 || end <= total + extra as u32);
        }
    }
}
