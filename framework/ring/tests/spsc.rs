//! The SPSC ring against a queue that is known to be right, over wraps, partial bulks and two threads.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ringwright_ring::{Consumer, Pos, Producer, RingSize, spsc, spsc_at};

fn size(n: u32) -> RingSize {
    RingSize::try_from(n).unwrap()
}

fn config() -> ProptestConfig {
    let cases = if cfg!(miri) { 8 } else { 512 };
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(82599), failure_persistence: None, ..Default::default() }
}

/// Pops up to `n`; the items are what was asked for, not what the buffer held.
fn pop<T: Copy + Send>(rx: &mut Consumer<T>, n: usize, filler: T) -> Vec<T> {
    let mut out = vec![filler; n];
    let got = rx.pop_slice(&mut out);
    out.truncate(got);
    out
}

#[test]
fn all_entries_can_be_used() {
    for start in [0, u32::MAX - 7, u32::MAX - 3, u32::MAX, 1 << 31] {
        let (mut tx, mut rx) = spsc_at::<u32>(size(8), start);
        assert_eq!((tx.room(), tx.len(), rx.len(), rx.room()), (8, 0, 0, 8));
        assert_eq!(tx.push(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), 8, "as many as fit, from the front");
        assert_eq!(tx.push(&[10]), 0);
        assert_eq!((tx.room(), tx.len(), rx.len(), rx.room()), (0, 8, 8, 0));
        assert_eq!(pop(&mut rx, 9, 0), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(pop(&mut rx, 9, 0), [0; 0]);
        assert!(tx.is_empty() && rx.is_empty());
    }
}

#[test]
fn room_comes_back_bulk_by_bulk() {
    let (mut tx, mut rx) = spsc_at::<u32>(size(8), u32::MAX - 9);
    let mut next = 0;
    for _ in 0..20 {
        while tx.has_room(3) {
            assert_eq!(tx.push(&[next, next + 1, next + 2]), 3, "has_room is a promise");
            next += 3;
        }
        let oldest = next - rx.len() as u32;
        assert_eq!(pop(&mut rx, 2, 0), [oldest, oldest + 1]);
    }
}

#[test]
fn empty_bulks_do_nothing() {
    let (mut tx, mut rx) = spsc::<u8>(size(8));
    assert_eq!(tx.push(&[]), 0);
    assert_eq!(rx.pop_slice(&mut []), 0);
    assert_eq!(tx.push(&[7]), 1);
    assert_eq!(rx.pop_slice(&mut []), 0);
    assert_eq!(rx.len(), 1);
}

#[test]
fn pop_leaves_the_rest_of_the_buffer_alone() {
    let (mut tx, mut rx) = spsc::<u16>(size(8));
    tx.push(&[1, 2]);
    let mut out = [9; 4];
    assert_eq!(rx.pop_slice(&mut out), 2);
    assert_eq!(out, [1, 2, 9, 9]);
}

#[test]
fn pop_fills_memory_that_held_nothing() {
    let (mut tx, mut rx) = spsc_at::<Wide>(size(8), u32::MAX - 1);
    let items: Vec<Wide> = (0..6).map(|i| [i; 32]).collect();
    tx.push(&items);
    let mut out = Vec::with_capacity(8);
    let n = rx.pop(&mut out.spare_capacity_mut()[..8]);
    // SAFETY: `pop` initialised the first `n`.
    // UNSAFETY: reads what `pop` says it has initialised.
    #[allow(unsafe_code)]
    unsafe {
        out.set_len(n);
    }
    assert_eq!(out, items);
}

/// 256 bytes: more than one line an item.
type Wide = [u64; 32];

/// An end has one owner. This compiles only as long as it is neither `Clone` nor `Sync`; `spawn` below needs `Send`.
#[test]
fn ends_are_neither_clone_nor_sync() {
    trait Ambiguous<Why> {
        fn here() {}
    }
    struct IfClone;
    struct IfSync;
    impl<T> Ambiguous<()> for T {}
    impl<T: Clone> Ambiguous<IfClone> for T {}
    impl<T: Sync> Ambiguous<IfSync> for T {}
    <Producer<u8> as Ambiguous<_>>::here();
    <Consumer<u8> as Ambiguous<_>>::here();
}

/// Pushes (true) and pops (false) of some length, against a `VecDeque`.
fn behaves_like_a_queue<T: Copy + Send + PartialEq + std::fmt::Debug>(
    n: u32,
    start: Pos,
    steps: &[(bool, usize)],
    item: impl Fn(u64) -> T,
) -> Result<(), TestCaseError> {
    let (mut tx, mut rx) = spsc_at::<T>(size(n), start);
    let mut queue = VecDeque::new();
    let mut next = 1;
    for &(push, len) in steps {
        if push {
            let bulk: Vec<T> = (next..).take(len).map(&item).collect();
            let taken = tx.push(&bulk);
            prop_assert_eq!(taken, len.min(n as usize - queue.len()));
            queue.extend(&bulk[..taken]);
            next += taken as u64;
        } else {
            let want: Vec<T> = queue.drain(..len.min(queue.len())).collect();
            prop_assert_eq!(pop(&mut rx, len, item(0)), want);
        }
        prop_assert_eq!((tx.len(), rx.len()), (queue.len(), queue.len()));
        prop_assert_eq!((tx.room(), rx.room()), (n as usize - queue.len(), n as usize - queue.len()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn any_pushes_and_pops_behave_like_a_queue(
        bits in 3u32..8,
        before_wrap in 0u32..300,
        steps in prop::collection::vec((any::<bool>(), 0usize..160), 1..40),
    ) {
        let (n, start) = (1 << bits, 0u32.wrapping_sub(before_wrap));
        behaves_like_a_queue(n, start, &steps, |i| i)?;
        // Items that no cache line holds a whole number of, and items of several lines.
        behaves_like_a_queue(n, start, &steps, |i| [i as u8, (i >> 8) as u8, 5])?;
        behaves_like_a_queue(n, start, &steps, |i| [i; 20])?;
    }
}

/// Bulk lengths that look random and are the same in each run.
fn lengths(seed: u64) -> impl Iterator<Item = usize> {
    let mut x = seed;
    std::iter::repeat_with(move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        1 + (x % 47) as usize
    })
}

#[test]
fn two_threads_keep_every_item_in_order() {
    let total: u64 = if cfg!(miri) { 1_500 } else { 400_000 };
    let start = u32::MAX - total as u32 / 2;
    let (mut tx, mut rx) = spsc_at::<[u64; 2]>(size(64), start);
    let producer = thread::spawn(move || {
        let mut next = 0;
        for len in lengths(3) {
            let bulk: Vec<[u64; 2]> = (next..total).take(len).map(|i| [i, !i]).collect();
            if bulk.is_empty() {
                return;
            }
            let n = tx.push(&bulk);
            if n == 0 {
                thread::yield_now();
            }
            next += n as u64;
        }
    });
    let mut next = 0;
    for len in lengths(5) {
        let items = pop(&mut rx, len, [0, 0]);
        if items.is_empty() {
            thread::yield_now();
        }
        for item in items {
            assert_eq!(item, [next, !next]);
            next += 1;
        }
        if next == total {
            break;
        }
    }
    producer.join().unwrap();
    assert!(rx.is_empty());
}

#[test]
fn what_was_pushed_outlives_the_producer() {
    let (mut tx, mut rx) = spsc::<u32>(size(8));
    thread::spawn(move || tx.push(&[1, 2, 3])).join().unwrap();
    assert_eq!(pop(&mut rx, 8, 0), [1, 2, 3]);
}
