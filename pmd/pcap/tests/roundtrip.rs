//! Captures of real protocols go in and come out with the same bytes and stamps.

mod rig;

use std::fs::{self, File};
use std::process::Command;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use rig::{Bench, Owned, capture, captures, read_key, whole, write_key};

/// What another reader makes of a pcap file.
fn others_pcap(path: &std::path::Path) -> Vec<Owned> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut all = Vec::new();
    while let Some(p) = reader.next_packet() {
        let p = p.unwrap();
        all.push((p.data.into_owned(), p.orig_len, Some(p.timestamp.as_nanos() as u64)));
    }
    all
}

/// What another reader makes of a pcapng file with stamps in nanoseconds.
fn others_pcapng(path: &std::path::Path) -> Vec<Owned> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut all = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(p) = block.unwrap() {
            all.push((p.data.into_owned(), p.original_len, Some(p.timestamp.as_nanos() as u64)));
        }
    }
    all
}

#[test]
fn both_formats_hold_the_same_frames_as_another_reader_finds() {
    for path in captures("pcap") {
        let found = whole(&path);
        assert!(!found.is_empty());
        assert_eq!(found, others_pcap(&path), "{}", path.display());
        let ng = path.with_extension("pcapng");
        if ng.exists() {
            assert_eq!(found, whole(&ng), "{}", ng.display());
            assert_eq!(found, others_pcapng(&ng), "{}", ng.display());
        }
    }
}

#[test]
fn microseconds_and_interfaces_of_different_resolution_are_read() {
    let (nanos, micros) = (whole(capture("arp-ping.pcap")), whole(capture("arp-ping-us.pcap")));
    let cut: Vec<Owned> = nanos.into_iter().map(|(b, n, t)| (b, n, t.map(|t| t / 1000 * 1000))).collect();
    assert_eq!(micros, cut);
    let both = whole(capture("two-interfaces.pcapng"));
    let mut expected = [micros, whole(capture("vlan.pcap"))].concat();
    expected.sort_by_key(|f| f.2);
    assert_eq!(both, expected);
}

#[test]
fn a_capture_that_goes_through_a_port_is_the_same_file() {
    let bench = Bench::new();
    for path in captures("pcap") {
        let out = bench.path("out.pcap");
        let mut r = bench.start(&(read_key(&path) + &write_key(&out)));
        r.pump(None);
        let (rx, tx, fault) = r.stop();
        let frames = whole(&path);
        assert_eq!((rx.packets, tx.packets, fault), (frames.len() as u64, frames.len() as u64, None));
        assert_eq!((rx.bytes, tx.bytes), (rx.bytes, frames.iter().map(|f| u64::from(f.1)).sum()));
        assert_eq!(whole(&out), frames);
        if !path.to_str().unwrap().contains("-us") {
            assert_eq!(
                fs::read(&out).unwrap(),
                fs::read(&path).unwrap(),
                "{}: byte for byte",
                path.display()
            );
        }
    }
}

#[test]
fn one_port_reads_and_another_writes_in_the_other_format() {
    let bench = Bench::new();
    for path in captures("pcap").into_iter().chain(captures("pcapng")) {
        let frames = whole(&path);
        for name in ["out.pcap", "out.pcapng"] {
            let out = bench.path(name);
            let mut to = bench.start(&write_key(&out));
            let mut from = bench.start(&read_key(&path));
            from.pump(Some(&mut to));
            to.stop();
            from.stop();
            assert_eq!(whole(&out), frames, "{} as {name}", path.display());
            let others = if name == "out.pcap" { others_pcap(&out) } else { others_pcapng(&out) };
            assert_eq!(others, frames, "{} as {name}, to another reader", path.display());
        }
    }
}

#[test]
fn tcpdump_reads_what_is_written() {
    let tcpdump = |path: &std::path::Path| {
        let args = ["-nn", "-e", "-tt", "--time-stamp-precision=nano", "-r"];
        let out = Command::new("tcpdump").args(args).arg(path).output().ok()?;
        Some((out.status.success(), String::from_utf8(out.stdout).unwrap()))
    };
    let bench = Bench::new();
    for path in captures("pcap") {
        let Some(expected) = tcpdump(&path) else {
            eprintln!("SKIPPED: no tcpdump");
            return;
        };
        assert!(expected.0 && expected.1.lines().count() == whole(&path).len());
        let out = bench.path("out.pcapng");
        let mut r = bench.start(&(read_key(&path) + &write_key(&out)));
        r.pump(None);
        r.stop();
        assert_eq!(tcpdump(&out), Some(expected));
    }
}
