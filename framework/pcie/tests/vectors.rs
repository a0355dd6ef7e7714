//! The splitter against counts from an independent simulator (`data/README.md`), and against cases cut by hand.

use ringwright_pcie::{Completions, Parameters, ReadBoundary, Split, TlpSize};

const VECTORS: &str = include_str!("data/tlp-vectors.jsonl");

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    op: String,
    addr: u64,
    len: u32,
    mps: u32,
    mrrs: u32,
    rcb: u32,
    completions: String,
    request_tlps: u64,
    request_wire_bytes: u64,
    completion_tlps: u64,
    completion_wire_bytes: u64,
}

fn split(v: &Vector) -> Split {
    let parameters = Parameters {
        max_payload: TlpSize::new(v.mps).expect("MPS"),
        max_read: TlpSize::new(v.mrrs).expect("MRRS"),
        read_boundary: ReadBoundary::new(v.rcb).expect("RCB"),
        completions: match v.completions.as_str() {
            "largest" => Completions::Largest,
            "every_rcb" => Completions::EveryBoundary,
            other => panic!("completions {other}"),
        },
        ..Parameters::default()
    };
    match v.op.as_str() {
        "read" => parameters.read(v.addr, v.len),
        "write" => parameters.write(v.addr, v.len),
        other => panic!("op {other}"),
    }
}

#[test]
fn every_vector_of_the_simulator_is_matched() {
    let mut count = 0;
    for line in VECTORS.lines() {
        let v: Vector = serde_json::from_str(line).expect(line);
        let expected = Split {
            requests: v.request_tlps,
            request_bytes: v.request_wire_bytes,
            completions: v.completion_tlps,
            completion_bytes: v.completion_wire_bytes,
        };
        assert_eq!(split(&v), expected, "{v:?}");
        count += 1;
    }
    assert_eq!(count, 3000);
}

#[test]
fn cases_cut_by_hand() {
    let p = Parameters::default();
    let split = |requests, request_bytes, completions, completion_bytes| Split {
        requests,
        request_bytes,
        completions,
        completion_bytes,
    };
    // A full frame: five of 256 and 234 padded to 236.
    assert_eq!(p.write(0x10_0000, 1514), split(6, 5 * 276 + 256, 0, 0));
    assert_eq!(p.read(0x10_0000, 1514), split(3, 3 * 20, 6, 5 * 276 + 256));
    // One byte off a double word, above 4 GiB: 17 double words.
    assert_eq!(p.read(0x1_0000_0001, 64), split(1, 24, 1, 20 + 68));
    // The last byte of one double word and the first of the next.
    assert_eq!(p.read(0x10_003f, 2), split(1, 20, 1, 20 + 8));
    // Across a page.
    assert_eq!(p.write(0x10_0ffe, 4), split(2, 24 + 24, 0, 0));
    // Longer than MRRS, from 128 bytes past a multiple of it.
    assert_eq!(p.read(0x1_0000_0080, 640), split(2, 2 * 24, 3, 276 + 276 + 148));
    // The last address below 4 GiB has the short header, what follows the long one.
    assert_eq!(p.write(0xffff_fffc, 8), split(2, 24 + 28, 0, 0));
    // No bytes at all are a TLP all the same.
    assert_eq!(p.read(0x10_0000, 0), split(1, 20, 1, 24));
    assert_eq!(p.write(0x10_0000, 0), split(1, 24, 0, 0));
    // At the very end of the address space.
    assert_eq!(p.write(u64::MAX - 3, 4), split(1, 28, 0, 0));
}

#[test]
fn an_ecrc_is_four_bytes_on_each_tlp() {
    let plain = Parameters::default();
    let checked = Parameters { ecrc: true, ..plain };
    for (address, length) in [(0x1000, 64), (0x1001, 1514), (0x1_0000_0ff0, 9000)] {
        for (with, without) in [
            (checked.read(address, length), plain.read(address, length)),
            (checked.write(address, length), plain.write(address, length)),
        ] {
            assert_eq!(with.requests, without.requests);
            assert_eq!(with.request_bytes, without.request_bytes + 4 * without.requests);
            assert_eq!(with.completion_bytes, without.completion_bytes + 4 * without.completions);
        }
    }
}
