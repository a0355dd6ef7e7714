//! What holds of every split and every sum.

use proptest::prelude::*;
use ringwright_pcie::{
    AddressWidth, Bus, Cause, Completions, Operation, Parameters, ReadBoundary, Source, Split, TlpSize,
    Transactions,
};

fn parameters() -> impl Strategy<Value = Parameters> {
    (0..6_u32, 0..6_u32, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(mps, mrrs, far, every, ecrc)| Parameters {
            max_payload: TlpSize::new(128 << mps).expect("MPS"),
            max_read: TlpSize::new(128 << mrrs).expect("MRRS"),
            read_boundary: if far { ReadBoundary::B128 } else { ReadBoundary::B64 },
            completions: if every { Completions::EveryBoundary } else { Completions::Largest },
            ecrc,
            ..Parameters::default()
        },
    )
}

fn cause() -> impl Strategy<Value = Cause> {
    prop::sample::select(&Cause::ALL[..])
}

fn config() -> ProptestConfig {
    // Seeded, and without a file of failures: the same cases on each run.
    let rng_seed = prop::test_runner::RngSeed::Fixed(0x7c1e);
    ProptestConfig { cases: 1000, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

fn at_most(a: Split, b: Split) -> bool {
    a.requests <= b.requests
        && a.request_bytes <= b.request_bytes
        && a.completions <= b.completions
        && a.completion_bytes <= b.completion_bytes
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_byte_more_never_costs_less(p in parameters(), address: u64, length in 0..20_000_u32) {
        prop_assert!(at_most(p.write(address, length), p.write(address, length + 1)));
        prop_assert!(at_most(p.read(address, length), p.read(address, length + 1)));
    }

    #[test]
    fn a_cut_at_a_page_costs_nothing(p in parameters(), page in 0..u64::from(u32::MAX), before in 1..9000_u32,
                                     after in 1..9000_u32) {
        let (at, whole) = ((page + 3) * 4096, before + after);
        let start = at - u64::from(before);
        prop_assert_eq!(p.write(start, whole), p.write(start, before).plus(p.write(at, after)));
        prop_assert_eq!(p.read(start, whole), p.read(start, before).plus(p.read(at, after)));
    }

    #[test]
    fn payload_and_headers_make_up_the_bytes(p in parameters(), address in 0..1_u64 << 40, length in 1..20_000_u32) {
        let ecrc = if p.ecrc { 4 } else { 0 };
        let (low, high) = (p.headers.request(AddressWidth::Bits32) + ecrc, p.headers.request(AddressWidth::Bits64) + ecrc);
        let payload = u64::from(length);
        let w = p.write(address, length);
        prop_assert!(w.request_bytes >= payload + w.requests * u64::from(low));
        // Cuts are at whole double words, so only the two ends are padded.
        prop_assert!(w.request_bytes <= payload + 6 + w.requests * u64::from(high));
        let r = p.read(address, length);
        prop_assert!(r.request_bytes >= r.requests * u64::from(low));
        prop_assert!(r.request_bytes <= r.requests * u64::from(high), "a read request carries no payload");
        let completions = r.completions * u64::from(p.headers.completion() + ecrc);
        prop_assert!((payload..=payload + 6).contains(&(r.completion_bytes - completions)));
    }

    #[test]
    fn cutting_at_each_boundary_is_the_most(p in parameters(), address: u64, length in 0..20_000_u32) {
        let all = |completions| Parameters { completions, ..p }.read(address, length);
        let (few, many) = (all(Completions::Largest), all(Completions::EveryBoundary));
        prop_assert!(at_most(few, many));
        prop_assert_eq!(few.requests, many.requests);
    }

    #[test]
    fn an_estimate_of_equal_aligned_transfers_is_exact(p in parameters(), high: bool, operations in 1..1_000_000_u64,
                                                       length in 0..70_000_u32) {
        let (width, address) = if high { (AddressWidth::Bits64, 1 << 32) } else { (AddressWidth::Bits32, 0) };
        let bytes = operations * u64::from(length);
        let exact = p.read(address, length).times(operations);
        prop_assert_eq!(p.estimate(Operation::Read, width, operations, bytes), exact);
        let exact = p.write(address, length).times(operations);
        prop_assert_eq!(p.estimate(Operation::Write, width, operations, bytes), exact);
    }

    #[test]
    fn an_estimate_of_short_transfers_has_the_right_tlps(lengths in prop::collection::vec(1..=256_u32, 1..200)) {
        let p = Parameters::default();
        let exact = lengths.iter().fold(Split::default(), |sum, &n| sum.plus(p.write(0, n)));
        let bytes = lengths.iter().map(|&n| u64::from(n)).sum();
        let estimate = p.estimate(Operation::Write, AddressWidth::Bits32, lengths.len() as u64, bytes);
        prop_assert_eq!(estimate.requests, exact.requests);
        prop_assert!(estimate.request_bytes.abs_diff(exact.request_bytes) <= 3 * exact.requests);
    }

    #[test]
    fn a_sum_is_the_sum_of_its_parts(p in parameters(),
                                     ops in prop::collection::vec((cause(), any::<u64>(), 0..5000_u32), 0..60),
                                     cut in 0..60_usize) {
        let sum = |ops: &[(Cause, u64, u32)]| {
            let mut t = Transactions::new(Source::Driver, p);
            ops.iter().for_each(|&(cause, address, length)| t.record(cause, address, length));
            t
        };
        let whole = sum(&ops);
        let (a, b) = ops.split_at(cut.min(ops.len()));
        let mut parts = sum(a);
        parts.merge(&sum(b)).expect("same source and parameters");
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(whole.total().operations, ops.len() as u64);
        for bus in [Bus::Upstream, Bus::Downstream] {
            let by_cause: u64 = whole.iter().map(|(_, t)| t.wire_bytes(bus)).sum();
            prop_assert_eq!(whole.total().wire_bytes(bus), by_cause);
        }
        let tlps: u64 = ops.iter().map(|&(cause, address, length)| match cause.operation() {
            Operation::Read => p.read(address, length).tlps(),
            Operation::Write => p.write(address, length).tlps(),
        }).sum();
        prop_assert_eq!(whole.total().tlps(), tlps);
    }

    #[test]
    fn no_counts_are_too_many(p in parameters(), cause in cause(), operations: u64, bytes: u64) {
        let mut t = Transactions::new(Source::Device, p);
        t.estimate(cause, AddressWidth::Bits64, operations, bytes);
        t.estimate(cause, AddressWidth::Bits64, operations, bytes);
        prop_assert_eq!(t.totals(cause).operations, operations.saturating_mul(2));
        prop_assert_eq!(t.totals(cause).estimated, operations.saturating_mul(2));
    }
}
