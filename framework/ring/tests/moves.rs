//! Items that are no plain copies, moved through the SPSC ring one by one: against a queue that is known to be right, and
//! with the half-done things that a panic or a leak leaves behind. Each item is a box: one that came out twice, or not at
//! all, is a fault that Miri names.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ringwright_ring::{Consumer, Producer, RingSize, spsc, spsc_at};

type Item = Box<u64>;

fn size(n: u32) -> RingSize {
    RingSize::try_from(n).unwrap()
}

fn push(tx: &mut Producer<Item>, items: std::ops::Range<u64>) -> usize {
    let mut room = tx.reserve((items.end - items.start) as usize);
    for i in items {
        if room.push(Box::new(i)).is_err() {
            break;
        }
    }
    room.used()
}

fn take(rx: &mut Consumer<Item>, n: usize) -> Vec<u64> {
    rx.take(n).map(|b| *b).collect()
}

#[test]
fn a_reservation_is_seen_whole_when_it_is_dropped() {
    let (mut tx, mut rx) = spsc_at::<Item>(size(8), u32::MAX - 2);
    let mut room = tx.reserve(5);
    for i in 0..5 {
        room.push(Box::new(i)).unwrap();
        assert_eq!(rx.len(), 0, "not yet");
    }
    assert_eq!(*room.push(Box::new(99)).unwrap_err(), 99, "five were reserved");
    drop(room);
    assert_eq!((rx.len(), take(&mut rx, 9)), (5, vec![0, 1, 2, 3, 4]));
}

#[test]
fn a_reservation_has_what_room_there_is() {
    let (mut tx, mut rx) = spsc::<Item>(size(8));
    assert_eq!(push(&mut tx, 0..6), 6);
    assert_eq!(push(&mut tx, 6..12), 2, "two of six fitted");
    assert_eq!(push(&mut tx, 12..13), 0);
    assert_eq!(take(&mut rx, 3), [0, 1, 2]);
    assert_eq!(push(&mut tx, 20..29), 3);
    assert_eq!(take(&mut rx, 100), [3, 4, 5, 6, 7, 20, 21, 22]);
}

#[test]
fn an_empty_reservation_publishes_nothing() {
    let (mut tx, mut rx) = spsc::<Item>(size(8));
    drop(tx.reserve(8));
    assert!(rx.is_empty() && tx.is_empty());
    assert_eq!(push(&mut tx, 0..8), 8);
    assert_eq!(take(&mut rx, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn what_is_not_moved_out_stays() {
    let (mut tx, mut rx) = spsc_at::<Item>(size(8), u32::MAX - 3);
    push(&mut tx, 0..8);
    let mut taken = rx.take(5);
    assert_eq!((taken.len(), taken.next().map(|b| *b), taken.len()), (5, Some(0), 4));
    drop(taken);
    assert_eq!((rx.len(), tx.room()), (7, 1), "one slot came back");
    assert_eq!(take(&mut rx, 8), [1, 2, 3, 4, 5, 6, 7]);
}

/// An iterator that is leaked keeps its slots, and what came out of it does not come out again.
#[test]
fn a_leaked_iterator_gives_nothing_twice() {
    let (mut tx, mut rx) = spsc::<Item>(size(8));
    push(&mut tx, 0..8);
    let mut taken = rx.take(3);
    let first = taken.next();
    std::mem::forget(taken);
    assert_eq!(first.map(|b| *b), Some(0));
    assert_eq!(tx.room(), 0, "its slot did not come back");
    assert_eq!(take(&mut rx, 2), [1, 2]);
    assert_eq!(tx.room(), 3, "now it has");
    assert_eq!(take(&mut rx, 9), [3, 4, 5, 6, 7]);
}

/// What a leaked reservation held is forgotten (a plain copy here: a box would be a leak); its slots are used again.
#[test]
fn a_leaked_reservation_is_as_if_it_had_not_been() {
    let (mut tx, mut rx) = spsc::<u64>(size(8));
    let mut room = tx.reserve(3);
    room.push(7).unwrap();
    std::mem::forget(room);
    assert_eq!(rx.len(), 0);
    assert_eq!(tx.push(&[1, 2]), 2);
    assert_eq!(rx.take(8).collect::<Vec<_>>(), [1, 2]);
}

/// A panic between two items leaves a ring that goes on.
#[test]
fn a_panic_half_way_publishes_what_was_done() {
    let (mut tx, mut rx) = spsc::<Item>(size(8));
    let half = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut room = tx.reserve(4);
        room.push(Box::new(1)).unwrap();
        panic!("half way");
    }));
    assert!(half.is_err());
    assert_eq!(push(&mut tx, 2..4), 2);
    assert_eq!(take(&mut rx, 8), [1, 2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 512 }, rng_seed: RngSeed::Fixed(82599), failure_persistence: None,
        ..Default::default()
    })]
    #[test]
    fn any_moves_behave_like_a_queue(
        bits in 3u32..6,
        before_wrap in 0u32..80,
        steps in prop::collection::vec((any::<bool>(), 0usize..40, 0usize..40), 1..40),
    ) {
        let n = 1 << bits;
        let (mut tx, mut rx) = spsc_at::<Item>(size(n), 0u32.wrapping_sub(before_wrap));
        let (mut queue, mut next) = (VecDeque::new(), 0);
        for (fill, reserved, moved) in steps {
            if fill {
                let mut room = tx.reserve(reserved);
                let fits = reserved.min(n as usize - queue.len()).min(moved);
                for _ in 0..fits {
                    room.push(Box::new(next)).unwrap();
                    queue.push_back(next);
                    next += 1;
                }
            } else {
                let got: Vec<u64> = rx.take(reserved).take(moved).map(|b| *b).collect();
                let want: Vec<u64> = queue.drain(..reserved.min(moved).min(queue.len())).collect();
                prop_assert_eq!(got, want);
            }
            prop_assert_eq!((tx.len(), rx.len()), (queue.len(), queue.len()));
        }
        // Boxes that are left in a ring are forgotten.
        take(&mut rx, n as usize);
    }
}

#[test]
fn two_threads_move_every_item_once_and_in_order() {
    let total: u64 = if cfg!(miri) { 800 } else { 200_000 };
    let (mut tx, mut rx) = spsc_at::<Item>(size(64), u32::MAX - total as u32 / 2);
    let producer = thread::spawn(move || {
        let mut next = 0;
        while next < total {
            let want = (1 + next % 37).min(total - next);
            let n = push(&mut tx, next..next + want) as u64;
            if n == 0 {
                thread::yield_now();
            }
            next += n;
        }
    });
    let mut next = 0;
    while next < total {
        let got = take(&mut rx, 1 + (next % 41) as usize);
        if got.is_empty() {
            thread::yield_now();
        }
        for i in got {
            assert_eq!(i, next);
            next += 1;
        }
    }
    producer.join().unwrap();
    assert!(rx.is_empty());
}
