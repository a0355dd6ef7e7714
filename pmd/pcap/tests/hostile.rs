//! Files that are not what they should be: an error that says so, all whole frames before it, and never more.

mod rig;

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rig::{Bench, Owned, captures, frames, read_key, whole};

/// Words in the byte order of a file.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}
use Order::{Big, Little};

fn words(order: Order, words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| if order == Big { w.to_be_bytes() } else { w.to_le_bytes() }).collect()
}

/// A pcapng block around a body.
fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let len = padded as u32 + 12;
    let mut b = words(order, &[kind, len]);
    b.extend_from_slice(body);
    b.resize(8 + padded, 0);
    b.extend(words(order, &[len]));
    b
}

fn section(order: Order) -> Vec<u8> {
    let version = if order == Big { 1 << 16 } else { 1 };
    block(order, 0x0a0d_0d0a, &words(order, &[0x1a2b_3c4d, version, u32::MAX, u32::MAX]))
}

/// Two 16-bit numbers, as one word holds them.
const fn halves(order: Order, first: u16, second: u16) -> u32 {
    let (a, b) = (first as u32, second as u32);
    if matches!(order, Big) { a << 16 | b } else { b << 16 | a }
}

fn interface(order: Order, link: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
    let mut body = words(order, &[halves(order, link, 0), snaplen]);
    body.extend_from_slice(options);
    block(order, 1, &body)
}

fn packet(order: Order, interface: u32, ticks: u64, frame: &[u8], options: &[u8]) -> Vec<u8> {
    let len = frame.len() as u32;
    let mut body = words(order, &[interface, (ticks >> 32) as u32, ticks as u32, len, len + 5]);
    body.extend_from_slice(frame);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend_from_slice(options);
    block(order, 6, &body)
}

fn classic(order: Order, magic: u32, records: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut f = words(order, &[magic, halves(order, 2, 4), 0, 0, 65535, 1]);
    for (seconds, part, frame) in records {
        f.extend(words(order, &[*seconds, *part, frame.len() as u32, frame.len() as u32]));
        f.extend_from_slice(frame);
    }
    f
}

fn error_of(file: &[u8]) -> String {
    frames(file).1.unwrap_err()
}

#[test]
fn classic_files_of_either_order_and_unit() {
    let f: &[u8] = &[7; 21];
    for order in [Little, Big] {
        let (micros, end) = frames(&classic(order, 0xa1b2_c3d4, &[(5, 6, f), (7, 999_999, f)]));
        let want = |time| (f.to_vec(), 21, Some(time));
        assert_eq!((micros, end), (vec![want(5_000_006_000), want(7_999_999_000)], Ok(())));
        let (nanos, end) = frames(&classic(order, 0xa1b2_3c4d, &[(u32::MAX, 999_999_999, f)]));
        assert_eq!((nanos, end), (vec![want(4_294_967_295_999_999_999)], Ok(())));
    }
}

#[test]
fn sections_may_change_order_and_have_any_block() {
    let f: &[u8] = b"fourteen bytes";
    let mut file = Vec::new();
    for order in [Big, Little, Big] {
        file.extend(section(order));
        file.extend(interface(order, 1, 10, &[]));
        // Nanoseconds, after a name and before an end.
        let options = [
            words(order, &[halves(order, 2, 2)]),
            b"e1\0\0".to_vec(),
            words(order, &[halves(order, 9, 1)]),
            vec![9, 0, 0, 0, 0, 0, 0, 0],
        ];
        file.extend(interface(order, 1, 0, &options.concat()));
        file.extend(block(order, 5, &[1; 60])); // statistics
        file.extend(packet(order, 0, 1, f, &words(order, &[halves(order, 1, 3), 0x0020_2020, 0])));
        file.extend(block(order, 0x0bad, &vec![3; 900_000])); // somebody's own, longer than any that is read
        file.extend(packet(order, 1, 1, f, &[]));
        // A simple packet: its length is the interface's longest.
        file.extend(block(order, 3, &[words(order, &[14]), f[..10].to_vec()].concat()));
        // An obsolete one of interface 1, with 2 drops.
        let head = words(order, &[halves(order, 1, 2), 0, 77, 14, 99]);
        file.extend(block(order, 2, &[head, f.to_vec()].concat()));
    }
    let one: Vec<Owned> = vec![
        (f.to_vec(), 19, Some(1000)),
        (f.to_vec(), 19, Some(1)),
        (f[..10].to_vec(), 14, None),
        (f.to_vec(), 99, Some(77)),
    ];
    assert_eq!(frames(&file), ([one.clone(), one.clone(), one].concat(), Ok(())));
}

#[test]
fn cut_off_at_any_byte_the_whole_frames_before_are_delivered() {
    for path in captures("pcap").into_iter().chain(captures("pcapng")) {
        let file = fs::read(&path).unwrap();
        let all = whole(&path);
        let mut clean = 0;
        for n in 0..file.len() {
            let (found, end) = frames(&file[..n]);
            assert_eq!(found, all[..found.len()], "{} cut to {n}", path.display());
            match end {
                Ok(()) => clean += 1,
                Err(e) if n == 0 => assert!(e.contains("is empty"), "{e}"),
                Err(e) => assert!(e.contains("ends in the middle of the record that begins at byte"), "{e}"),
            }
            // No frame is kept back: one more is there as soon as its last byte is.
            if n > 0 {
                let before = frames(&file[..n - 1]).0.len();
                assert!((0..=1).contains(&(found.len() - before)));
            }
        }
        assert!(clean >= all.len(), "{}: {clean} places to cut cleanly", path.display());
    }
}

#[test]
fn what_is_no_capture_is_refused_as_it_is_opened() {
    let bench = Bench::new();
    let refused = |bytes: &[u8]| bench.refused(&read_key(&bench.file("x", bytes)));
    assert!(refused(b"").contains("x is empty: even a capture without packets has a header"));
    assert!(refused(b"PK\x03\x04 and so on").contains("x is no pcap or pcapng file"));
    assert!(refused(&[0x1f, 0x8b, 8, 0]).contains("packed with gzip, unpack it first"));
    assert!(refused(b"\xd4\xc3").contains("ends in the middle"));
    assert!(refused(&[0xff; 4000]).contains("no pcap"));
    let cooked = {
        let mut f = classic(Little, 0xa1b2_c3d4, &[]);
        f[20] = 113;
        f
    };
    assert!(
        refused(&cooked)
            .contains("link type 113 (Linux cooked, as of tcpdump -i any); only Ethernet (link type 1)")
    );
    let name = [words(Big, &[halves(Big, 2, 3)]), b"wl0\0".to_vec(), words(Big, &[0])].concat();
    let mixed = [section(Big), interface(Big, 1, 0, &[]), interface(Big, 127, 0, &name)].concat();
    assert!(refused(&mixed).contains("interface 1 (wl0) of link type 127 (802.11)"), "{}", refused(&mixed));
    assert!(bench.refused(&read_key(&bench.path("gone"))).contains("gone cannot be read: No such file"));
    assert!(bench.refused(&read_key(bench.dir.path())).contains("is a folder"));
    // A header and nothing more is a capture.
    assert!(bench.open(&read_key(&bench.file("x", &classic(Big, 0xa1b2_c3d4, &[])))).is_ok());
}

#[test]
fn lengths_that_cannot_be_are_named_with_their_place() {
    let f: &[u8] = &[1; 60];
    let good = classic(Little, 0xa1b2_c3d4, &[(1, 1, f)]);
    for len in [262_145, u32::MAX, 1 << 31] {
        let file = [good.clone(), words(Little, &[1, 1, len, 60]), vec![0; 400_000]].concat();
        let (found, end) = frames(&file);
        assert_eq!(found.len(), 1);
        let want =
            format!("is damaged at byte 100: a frame of {len} bytes; the longest there can be has 262144");
        assert_eq!(end.unwrap_err(), want);
    }
    let start = [section(Little), interface(Little, 1, 0, &[])].concat();
    let at = start.len();
    for (kind, len) in [(6, 0), (6, 8), (6, 13), (6, 524_292), (77, 0), (77, 11), (6, !3)] {
        let file = [start.clone(), words(Little, &[kind, len]), vec![0; 600_000]].concat();
        assert_eq!(error_of(&file), format!("is damaged at byte {at}: a block of {len} bytes"));
    }
    // A block that nobody looks into may be as long as it likes, as long as the file has it.
    let file = [start.clone(), words(Little, &[77, !3]), vec![0; 600_000]].concat();
    assert_eq!(error_of(&file), format!("ends in the middle of the record that begins at byte {at}"));
    let mut p = packet(Little, 0, 0, f, &[]);
    let end = p.len() - 4;
    p[end] ^= 4;
    assert!(error_of(&[start.clone(), p].concat()).contains("a block of 92 bytes that ends as one of 88"));
    let mut b = block(Little, 77, &[0; 8]);
    let end = b.len() - 4;
    b[end] ^= 4;
    assert!(error_of(&[start.clone(), b].concat()).contains("a block of 20 bytes that ends as one of 16"));
    // A packet longer than its block, and one longer than any.
    for (len, what) in
        [(61, "too short for what"), (300_000, "a frame of 300000 bytes"), (u32::MAX, "a frame of")]
    {
        let mut p = packet(Little, 0, 0, f, &[]);
        p[20..24].copy_from_slice(&u32::to_le_bytes(len));
        assert!(error_of(&[start.clone(), p].concat()).contains(what));
    }
    for kind in [1, 2, 3, 6, 0x0a0d_0d0a] {
        let e = error_of(&[start.clone(), block(Little, kind, &[])].concat());
        assert!(
            e.contains("too short") || e.contains("byte order") || e.contains("ends in the middle"),
            "{kind}: {e}"
        );
    }
}

#[test]
fn other_nonsense_is_named() {
    let start = section(Little);
    let of = |rest: Vec<u8>| error_of(&[start.clone(), rest].concat());
    assert!(
        of(packet(Little, 0, 0, &[0; 14], &[])).contains("a packet of interface 0, which is not described")
    );
    let simple = block(Little, 3, &[0; 20]);
    assert!(of(simple).contains("interface 0"), "a simple packet needs one as well");
    assert!(
        of(interface(Little, 1, 0, &words(Little, &[halves(Little, 9, 5), 0])))
            .contains("an option of an interface")
    );
    assert!(
        of(interface(Little, 1, 0, &words(Little, &[halves(Little, 9, 0)])))
            .contains("an option of an interface")
    );
    assert!(
        of(interface(Little, 1, 0, &words(Little, &[halves(Little, 14, 4), 0])))
            .contains("an option of an interface")
    );
    let mut wrong = section(Little);
    wrong[8..12].copy_from_slice(&[9, 9, 9, 9]);
    assert!(error_of(&wrong).contains("byte order is marked with 0x09090909"));
    let mut wrong = section(Little);
    wrong[12] = 2;
    assert!(error_of(&wrong).contains("version 2.0 of the format is not known"));
    let mut wrong = classic(Little, 0xa1b2_c3d4, &[]);
    wrong[4] = 1;
    assert!(error_of(&wrong).contains("version 1.4"));
    let many = interface(Little, 1, 0, &[]).repeat(65_537);
    assert!(of(many).contains("more than 65536 interfaces"));
}

#[test]
fn damage_in_the_middle_ends_the_input_and_is_a_fault() {
    let bench = Bench::new();
    for path in captures("pcap") {
        let mut file = fs::read(&path).unwrap();
        let all = whole(&path);
        // The length of the last record.
        let at = file.len() - all.last().unwrap().0.len() - 16;
        file[at + 8..at + 12].fill(0xff);
        let x = bench.file("x", &file);
        let mut r = bench.start(&read_key(&x));
        assert_eq!(r.port.fault(), None);
        assert_eq!(r.receive_all(), all[..all.len() - 1]);
        let fault = r.stop().2.unwrap();
        let want = format!("x is damaged at byte {at}: a frame of 4294967295 bytes");
        assert!(fault.starts_with("capture ") && fault.contains(&want), "{fault}");
    }
}

fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(2009),
        failure_persistence: None,
        cases: 300,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(seeded())]

    /// Bytes changed anywhere: frames, or an error; no more of them than there are bytes for.
    #[test]
    fn changed_files_never_do_harm(which in 0usize..13, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let all: Vec<_> = captures("pcap").into_iter().chain(captures("pcapng")).collect();
        let mut file = fs::read(&all[which % all.len()]).unwrap();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let (found, _) = frames(&file);
        prop_assert!(found.iter().map(|f| f.0.len() + 16).sum::<usize>() <= file.len());
    }

    #[test]
    fn noise_after_any_magic_never_does_harm(magic in prop::sample::select(vec![0xa1b2_c3d4u32, 0xa1b2_3c4d, 0x0a0d_0d0a]), big: bool, noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let magic = if big { magic.to_be_bytes() } else { magic.to_le_bytes() };
        let file = [&magic[..], &noise].concat();
        let (found, _) = frames(&file);
        prop_assert!(found.len() <= file.len() / 16);
    }
}
