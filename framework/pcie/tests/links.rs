//! Links: names, and bandwidth against published and derived figures.

use ringwright_pcie::{Link, Overhead, Parameters, PcieError, TlpSize};

fn link(name: &str) -> Link {
    name.parse().expect(name)
}

fn size(bytes: u32) -> TlpSize {
    TlpSize::new(bytes).expect("a legal size")
}

/// Whether `got` bits per second are `gigabits` to two places.
#[track_caller]
fn assert_gigabits(got: f64, gigabits: f64) {
    assert!((got / 1e9 - gigabits).abs() <= 0.0051, "{} Gb/s, not {gigabits}", got / 1e9);
}

#[test]
fn names_go_there_and_back() {
    for g in 1..=6 {
        for l in [1, 2, 4, 8, 12, 16, 32] {
            let name = format!("gen{g}x{l}");
            assert_eq!(link(&name).to_string(), name);
            assert_eq!(link(&name), Link::new(g, l).expect("legal"));
        }
    }
    assert_eq!(link("GEN3X8"), link("gen3x8"));
    assert_eq!(format!("{:>8}", link("gen3x8")), "  gen3x8");
}

#[test]
fn what_is_no_link_is_told_what_is_one() {
    assert_eq!("gen7x8".parse::<Link>(), Err(PcieError::Generation(7)));
    assert_eq!("gen0x8".parse::<Link>(), Err(PcieError::Generation(0)));
    assert_eq!("gen3x3".parse::<Link>(), Err(PcieError::Lanes(3)));
    assert_eq!("gen3x256".parse::<Link>(), Err(PcieError::Lanes(256)));
    for bad in
        ["", "gen", "3x8", "gen3", "gen3x", "genx8", "gen3x8x1", "gen+3x8", "gen3x 8", "gen99999999999x8"]
    {
        assert_eq!(bad.parse::<Link>(), Err(PcieError::LinkForm(bad.to_owned())));
    }
    for error in [PcieError::Generation(7), PcieError::Lanes(3), PcieError::LinkForm("x".into())] {
        assert!(error.to_string().contains("16 or 32") || error.to_string().contains("5 or 6"), "{error}");
    }
}

#[test]
fn a_lane_is_not_rounded() {
    for (name, raw, physical) in [
        ("gen1x8", 20.0, 16.0),
        ("gen2x16", 80.0, 64.0),
        ("gen3x8", 64.0, 63.015),
        ("gen4x16", 256.0, 252.06),
        ("gen5x16", 512.0, 504.12),
        ("gen6x8", 512.0, 512.0),
    ] {
        assert_gigabits(link(name).signalling().bits_per_second(), raw);
        assert_gigabits(link(name).physical().bits_per_second(), physical);
    }
    assert_eq!(link("gen3x8").physical().to_string(), "63.02 Gb/s");
}

#[test]
fn transaction_layer_of_each_generation() {
    // Link, by specification, by the published model; MPS 256.
    for (name, spec, published) in [
        ("gen1x8", 15.66, 13.57),
        ("gen1x16", 31.47, 24.81),
        ("gen2x8", 31.51, 28.68),
        ("gen2x16", 63.31, 55.51),
        ("gen3x1", 7.61, 7.61),
        ("gen3x8", 62.23, 57.885),
        ("gen3x16", 124.95, 113.70),
        ("gen4x8", 124.46, 115.77),
        ("gen4x16", 249.91, 227.40),
        ("gen5x8", 248.92, 231.54),
        ("gen5x16", 499.81, 454.80),
        ("gen6x8", 472.0, 444.59),
        ("gen6x16", 944.0, 873.27),
    ] {
        let at = |overhead| link(name).transaction_layer(size(256), overhead).bits_per_second();
        assert_gigabits(at(Overhead::Spec), spec);
        assert!(
            (at(Overhead::PcieBench) / 1e9 - published).abs() < 0.06,
            "{name}: {}",
            at(Overhead::PcieBench)
        );
        assert!(at(Overhead::Spec) >= at(Overhead::PcieBench));
    }
}

#[test]
fn bounds_of_gen3_x8() {
    let at = |mps, overhead| link("gen3x8").transaction_layer(size(mps), overhead).bits_per_second();
    assert_gigabits(at(256, Overhead::OneWay), 62.85);
    assert_gigabits(at(256, Overhead::Spec), 62.23);
    assert_gigabits(at(256, Overhead::SpecTwoCredits), 61.92);
    assert_gigabits(at(128, Overhead::PcieBench), 56.666);
    assert_gigabits(at(256, Overhead::PcieBench), 57.885);
    assert_gigabits(at(512, Overhead::PcieBench), 57.312);
}

#[test]
fn ack_intervals_are_those_of_the_specifications_tables() {
    for (name, mps, interval) in [
        ("gen1x1", 128, 237),
        ("gen1x1", 4096, 4143),
        ("gen1x4", 256, 118),
        ("gen1x8", 256, 107),
        ("gen1x16", 256, 72),
        ("gen1x32", 2048, 148),
        ("gen2x1", 128, 288),
        ("gen2x32", 4096, 327),
        ("gen3x1", 128, 333),
        ("gen3x8", 128, 163),
        ("gen3x8", 256, 203),
        ("gen3x8", 512, 182),
    ] {
        assert_eq!(link(name).ack_interval(size(mps)), interval, "{name} at {mps}");
    }
}

#[test]
fn spec_allows_what_was_measured_and_the_published_model_does_not() {
    // Payload rates that the authors of pcie-bench measured on Gen3 x8 at MPS 256.
    let p = Parameters::default();
    let read =
        |bytes, goodput: f64| goodput * p.read(1 << 32, bytes).completion_bytes as f64 / f64::from(bytes);
    let write =
        |bytes, goodput: f64| goodput * p.write(1 << 32, bytes).request_bytes as f64 / f64::from(bytes);
    let at = |overhead| link("gen3x8").transaction_layer(size(256), overhead).bits_per_second() / 1e9;
    for needed in [read(1792, 55.439), write(2048, 54.44)] {
        assert!(needed < at(Overhead::Spec), "{needed}");
        assert!(needed > at(Overhead::PcieBench), "{needed}");
    }
}

/// Payload rates of DMA on Gen3 x8 by the published model: MPS 256, MRRS 512, 64-bit addresses. Sizes of whole double
/// words: the model does not pad.
#[test]
fn dma_rates_of_the_published_model() {
    let p = Parameters::default();
    let bw = link("gen3x8").transaction_layer(size(256), Overhead::PcieBench).bits_per_second();
    for (bytes, write, read, both) in [
        (64, 42.10, 44.10, 33.08),
        (128, 48.75, 50.06, 42.10),
        (256, 52.92, 53.69, 48.75),
        (512, 52.92, 53.69, 50.75),
        (1024, 52.92, 53.69, 50.75),
        (1500, 52.81, 53.60, 50.60),
    ] {
        let goodput = |wire: u64| bw * f64::from(bytes) / wire as f64;
        let (w, r) = (p.write(1 << 32, bytes), p.read(1 << 32, bytes));
        assert_gigabits(goodput(w.request_bytes), write);
        assert_gigabits(goodput(r.completion_bytes.max(r.request_bytes)), read);
        assert_gigabits(goodput(w.request_bytes + r.request_bytes), both);
    }
    // 64-byte reads and writes at once, below 4 GiB: 69.57 M/s each way.
    let up = p.write(0, 64).request_bytes + p.read(0, 64).request_bytes;
    assert_eq!((bw / 8.0 / up as f64 / 1e4).round(), 6957.0);
}
