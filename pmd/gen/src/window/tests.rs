//! The windows against the plainest thing that does the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// Remembers every arrival, and searches them all.
#[derive(Default)]
struct Plain {
    /// Number and position of each first arrival, in their order.
    arrivals: Vec<u64>,
    words: u64,
}

impl Plain {
    fn place(&mut self, number: u64) -> Place {
        let highest = self.arrivals.iter().max().copied();
        if let Some(highest) = highest.filter(|h| *h >= number) {
            if highest / 64 - number / 64 >= self.words {
                return Place::TooLate;
            }
            if self.arrivals.contains(&number) {
                return Place::Repeated;
            }
            // RFC 4737, 4.2.1: i - j for the smallest j with s[j] > s[i].
            let first_later = self.arrivals.iter().position(|n| *n > number).expect("the highest");
            let extent = (self.arrivals.len() - first_later) as u64;
            self.arrivals.push(number);
            return Place::Reordered { extent };
        }
        self.arrivals.push(number);
        Place::InOrder
    }
}

/// The same, but for extents, which are bounds from below where the flow jumped too often.
fn agree(got: Place, want: Place, jumps: usize) -> bool {
    match (got, want) {
        (Place::Reordered { extent: got }, Place::Reordered { extent: want }) if jumps > JUMPS => {
            (1..=want).contains(&got)
        }
        _ => got == want,
    }
}

/// Moves from one number to the next: mostly one ahead, sometimes a jump, back, or the same again.
fn steps() -> impl Strategy<Value = Vec<i64>> {
    let step = prop_oneof![
        20 => Just(1i64),
        4 => 2i64..8,
        4 => -8i64..1,
        2 => -400i64..400,
        1 => 60i64..70,
    ];
    prop::collection::vec(step, 1..400)
}

fn seeded() -> ProptestConfig {
    let cases = if cfg!(miri) { 4 } else { 512 };
    ProptestConfig {
        rng_seed: RngSeed::Fixed(4737),
        failure_persistence: None,
        cases,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn every_frame_is_placed_as_by_one_who_remembers_all(steps in steps(), start in 0u64..300, high in any::<bool>()) {
        // High: numbers that have wrapped around in the frame.
        let base = if high { 3 * NUMBERS - 100 } else { 0 };
        let mut windows = Windows::with_bits(2, 256);
        windows.flows[1].next = base;
        let mut plain = Plain { words: 4, ..Plain::default() };
        let mut number = base + start;
        for step in steps {
            number = number.saturating_add_signed(step).max(base);
            let jumps = windows.flows[1].jumped;
            let (got, want) = (windows.place(1, number % NUMBERS), plain.place(number));
            prop_assert!(agree(got, want, jumps), "{number}: {got:?}, not {want:?}, after {:?}", plain.arrivals);
        }
        prop_assert_eq!(windows.flows[0].arrived, 0, "flows are apart");
        prop_assert_eq!(windows.flows[1].arrived, plain.arrivals.len() as u64);
    }

    #[test]
    fn any_permutation_of_a_window_is_complete(order in Just((0..200u64).collect::<Vec<_>>()).prop_shuffle()) {
        let mut windows = Windows::with_bits(1, 256);
        let mut counts = BTreeMap::new();
        for number in order {
            let kind = match windows.place(0, number) {
                Place::InOrder => "order",
                Place::Reordered { .. } => "reordered",
                other => panic!("{number}: {other:?}"),
            };
            *counts.entry(kind).or_insert(0) += 1;
        }
        prop_assert_eq!(counts.values().sum::<i32>(), 200);
    }
}

#[test]
fn two_that_change_places_are_one_apart() {
    let mut w = Windows::new(1);
    let places = [1, 0, 2, 5, 3, 4, 3].map(|n| w.place(0, n));
    let late = |extent| Place::Reordered { extent };
    let want = [Place::InOrder, late(1), Place::InOrder, Place::InOrder, late(1), late(2), Place::Repeated];
    assert_eq!(places, want);
}

#[test]
fn a_jump_over_more_than_the_window_leaves_nothing_behind() {
    let mut w = Windows::with_bits(1, 256);
    for n in [0, 63, 64, 255, 1_000_000] {
        assert_eq!(w.place(0, n), Place::InOrder);
    }
    assert_eq!(w.place(0, 255), Place::TooLate);
    assert!((999_900..1_000_000).all(|n| matches!(w.place(0, n), Place::Reordered { .. })));
    assert_eq!(w.place(0, 999_950), Place::Repeated);
}

#[test]
fn numbers_that_cannot_be_are_said_to_be() {
    let mut w = Windows::new(2);
    assert_eq!(w.place(2, 0), Place::Impossible, "no such flow");
    assert_eq!(w.place(0, NUMBERS - 1), Place::Impossible, "before the first");
    assert_eq!(w.place(0, 5), Place::InOrder);
    assert_eq!(w.place(0, NUMBERS - 1), Place::Impossible);
    w.flows[0].next = u64::MAX - 3;
    assert_eq!(w.place(0, 77), Place::Impossible, "beyond what can be counted");
}

#[test]
fn memory_is_bounded_whatever_the_number_of_flows() {
    for (flows, bits) in [(1, 65_536), (64, 65_536), (1024, 4096), (65_536, 256)] {
        let w = Windows::new(flows);
        assert_eq!(w.words * 64, bits, "{flows} flows");
        assert!(w.bits.len() * 8 <= 2 << 20);
    }
}
