//! Sums by cause against per-packet costs that were worked out for real drivers, and what follows for a link.

use std::time::Duration;

use ringwright_pcie::{
    AddressWidth, Bus, Cause, Headers, Link, Operation, Overhead, Parameters, PcieError, Source, Totals,
    Transactions,
};

fn link(name: &str) -> Link {
    name.parse().expect(name)
}

/// Operations and bytes of each, by cause, all at 64-bit addresses on Gen3 x8.
fn estimated(costs: &[(Cause, u64, u64)]) -> Transactions {
    let mut t = Transactions::new(Source::Device, Parameters::default());
    for &(cause, operations, each) in costs {
        t.estimate(cause, AddressWidth::Bits64, operations, operations * each);
    }
    t
}

/// Costs of 32 packets; bytes per packet up and down, TLPs per packet, millions of packets a second on Gen3 x8 by
/// specification and by pcie-bench.
#[track_caller]
fn assert_costs(costs: &[(Cause, u64, u64)], up: f64, down: f64, tlps: f64, spec: f64, published: f64) {
    let t = estimated(costs);
    let total = t.total();
    let near = |got: f64, want: f64, by: f64| assert!((got - want).abs() <= by, "{got}, not {want}");
    near(total.upstream_bytes as f64 / 32.0, up, 0.051);
    near(total.downstream_bytes as f64 / 32.0, down, 0.051);
    near(total.tlps() as f64 / 32.0, tlps, 0.0051);
    let ceiling = t.ceiling(link("gen3x8"), 32).expect("bytes were seen");
    near(ceiling.packets_per_second / 1e6, spec, 0.051);
    assert_eq!(ceiling.bus, if up >= down { Bus::Upstream } else { Bus::Downstream });
    let as_published = Parameters { overhead: Overhead::PcieBench, ..Parameters::default() };
    let mut t = Transactions::new(Source::Device, as_published);
    for &(cause, operations, each) in costs {
        t.estimate(cause, AddressWidth::Bits64, operations, operations * each);
    }
    near(t.ceiling(link("gen3x8"), 32).expect("bytes").packets_per_second / 1e6, published, 0.051);
}

#[test]
fn a_simple_nic_as_pcie_bench_defines_it() {
    use Cause::*;
    let tx = [
        (MmioWrite, 32, 4),
        (DescRead, 32, 16),
        (PayloadRead, 32, 60),
        (Interrupt, 32, 4),
        (MmioRead, 32, 4),
    ];
    assert_costs(&tx, 100.0, 168.0, 8.0, 46.3, 43.1);
    let rx = [
        (MmioWrite, 32, 4),
        (DescRead, 32, 16),
        (PayloadWrite, 32, 60),
        (CompletionWrite, 32, 16),
        (Interrupt, 32, 4),
        (MmioRead, 32, 4),
    ];
    assert_costs(&rx, 200.0, 88.0, 8.0, 38.9, 36.2);
}

#[test]
fn an_82599_with_batched_doorbells() {
    use Cause::*;
    let tx =
        |frame| [(MmioWrite, 1, 4), (DescRead, 1, 512), (PayloadRead, 32, frame), (CompletionWrite, 1, 16)];
    assert_costs(&tx(60), 26.0, 98.1, 2.16, 79.3, 73.7);
    assert_costs(&tx(252), 26.0, 290.1, 2.16, 26.8, 24.9);
    assert_costs(&tx(1514), 74.0, 1654.1, 9.16, 4.7, 4.4);
    let rx = [(MmioWrite, 1, 4), (DescRead, 32, 16), (PayloadWrite, 32, 60), (CompletionWrite, 32, 16)];
    assert_costs(&rx, 148.0, 36.9, 4.03, 52.6, 48.9);
}

#[test]
fn virtio_with_a_suppressed_guest() {
    use Cause::*;
    let tx = [
        (MmioWrite, 1, 2),
        (IndexRead, 1, 2),
        (IndexRead, 1, 64),
        (DescRead, 1, 512),
        (PayloadRead, 32, 72),
        (CompletionWrite, 1, 256),
        (IndexWrite, 1, 2),
    ];
    let t = estimated(&tx);
    assert_eq!(
        t.totals(IndexRead),
        &Totals {
            operations: 2,
            estimated: 2,
            bytes: 66,
            upstream_tlps: 2,
            downstream_tlps: 2,
            upstream_bytes: 48,
            downstream_bytes: 20 + 4 + 20 + 64,
        }
    );
    assert_costs(&tx, 35.9, 113.5, 2.31, 68.5, 63.7);
}

#[test]
fn rdma_doorbells_of_the_atc_paper() {
    use Cause::*;
    let parameters = Parameters { headers: Headers::ATC16, ..Parameters::default() };
    let sum = |ops: &[(Cause, u32)]| {
        let mut t = Transactions::new(Source::Driver, parameters);
        ops.iter().for_each(|&(cause, bytes)| t.record(cause, 1 << 32, bytes));
        t
    };
    for lines in 1..=3 {
        // One cache line at a time, as the processor's write-combining buffers leave.
        let t = sum(&vec![(MmioWrite, 64); lines]);
        assert_eq!(t.total().downstream_bytes, 90 * lines as u64);
    }
    let mut batch = vec![(DescRead, 128); 16];
    batch.push((MmioWrite, 8));
    let bytes = sum(&batch).total().downstream_bytes;
    assert_eq!(bytes, 34 + 16 * 150);
    // 101.6 M/s were measured on Gen3 x16: just below what the physical layer allows.
    let most = link("gen3x16").physical().bytes_per_second() * 16.0 / bytes as f64 / 1e6;
    assert!((most - 103.6).abs() < 0.1, "{most}");
}

#[test]
fn reads_and_writes_go_the_way_they_should() {
    let way = |cause| {
        let mut t = Transactions::new(Source::Driver, Parameters::default());
        t.record(cause, 0x1000, 64);
        let total = t.total();
        assert_eq!((total.operations, total.estimated, total.bytes), (1, 0, 64));
        (total.upstream_bytes, total.downstream_bytes)
    };
    assert_eq!(way(Cause::MmioWrite), (0, 84));
    assert_eq!(way(Cause::MmioRead), (84, 20));
    for cause in [Cause::DescRead, Cause::IndexRead, Cause::PayloadRead] {
        assert_eq!(way(cause), (20, 84), "{cause}");
    }
    for cause in [Cause::PayloadWrite, Cause::CompletionWrite, Cause::IndexWrite, Cause::Interrupt] {
        assert_eq!(way(cause), (84, 0), "{cause}");
    }
}

#[test]
fn utilization_is_bytes_over_what_the_link_carries() {
    let mut t = Transactions::new(Source::Device, Parameters::default());
    let link = link("gen3x8");
    // 84 bytes up, at a hundredth of the link's rate.
    let carries = link.transaction_layer(t.parameters().max_payload, Overhead::Spec).bytes_per_second();
    let operations = (carries / 84.0 / 100.0) as u64;
    t.estimate(Cause::PayloadWrite, AddressWidth::Bits32, operations, operations * 64);
    let u = t.utilization(link, Duration::from_secs(1)).expect("a second passed");
    assert!((u.upstream - 0.01).abs() < 1e-6, "{u:?}");
    assert_eq!(u.downstream, 0.0);
    assert_eq!(u.busier(), (Bus::Upstream, u.upstream));
    // Half the time, twice as full; a link four times as wide, a quarter.
    let half = t.utilization(link, Duration::from_millis(500)).expect("time passed");
    assert!((half.upstream / u.upstream - 2.0).abs() < 1e-9);
    assert_eq!(t.utilization(link, Duration::ZERO), None);
    // At the ceiling the busier direction is full.
    let ceiling = t.ceiling(link, operations).expect("bytes were seen");
    assert!((operations as f64 / u.upstream / ceiling.packets_per_second - 1.0).abs() < 1e-9);
}

#[test]
fn an_estimate_keeps_the_payload_when_the_mean_is_uneven() {
    let p = Parameters::default();
    // 14 bytes in 3 writes: two of 5 bytes, two double words each, and one of 4.
    let split = p.estimate(Operation::Write, AddressWidth::Bits32, 3, 14);
    assert_eq!((split.requests, split.request_bytes), (3, 2 * 28 + 24));
    // 256.5 bytes a write: half of 256, half of 257, which need a second TLP.
    let split = p.estimate(Operation::Write, AddressWidth::Bits32, 10, 2565);
    assert_eq!((split.requests, split.request_bytes), (5 + 2 * 5, 5 * 276 + 5 * (276 + 24)));
}

#[test]
fn nothing_seen_has_no_ceiling() {
    let mut t = Transactions::new(Source::Device, Parameters::default());
    assert_eq!(t.ceiling(link("gen3x8"), 32), None);
    t.estimate(Cause::PayloadRead, AddressWidth::Bits32, 0, 0);
    assert_eq!(t.total(), Totals::default());
    t.record(Cause::PayloadRead, 0, 64);
    assert_eq!(t.ceiling(link("gen3x8"), 0), None);
}

#[test]
fn sums_that_say_different_things_stay_apart() {
    let mut device = Transactions::new(Source::Device, Parameters::default());
    let driver = Transactions::new(Source::Driver, Parameters::default());
    let refused = device.merge(&driver);
    assert_eq!(refused, Err(PcieError::Sources { ours: Source::Device, theirs: Source::Driver }));
    let checked = Parameters { ecrc: true, ..Parameters::default() };
    assert_eq!(device.merge(&Transactions::new(Source::Device, checked)), Err(PcieError::Parameters));
}

#[test]
fn causes_have_the_names_of_status_and_metrics() {
    let names = "mmio_write mmio_read desc_read index_read payload_read payload_write completion_write index_write \
                 interrupt";
    let parsed: Result<Vec<Cause>, _> = names.split_whitespace().map(str::parse).collect();
    assert_eq!(parsed.as_deref(), Ok(&Cause::ALL[..]));
    let error = "doorbell".parse::<Cause>().expect_err("no such cause").to_string();
    assert!(names.split_whitespace().all(|name| error.contains(name)), "{error}");
}
