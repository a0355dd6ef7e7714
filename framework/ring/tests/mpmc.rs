//! The MPMC ring against a queue that is known to be right, and between four threads.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ringwright_ring::{Mpmc, RingSize};

fn size(n: u32) -> RingSize {
    RingSize::try_from(n).unwrap()
}

fn pop<T: Copy + Send>(ring: &Mpmc<T>, n: usize, filler: T) -> Vec<T> {
    let mut out = vec![filler; n];
    let got = ring.pop_slice(&mut out);
    out.truncate(got);
    out
}

#[test]
fn all_entries_can_be_used_by_any_handle() {
    for start in [0, u64::from(u32::MAX) - 3, u64::MAX - 3] {
        let a = Mpmc::<u32>::new_at(size(8), start);
        let b = a.clone();
        assert_eq!((a.room(), a.len(), a.capacity()), (8, 0, 8));
        assert_eq!(a.push(&[1, 2, 3, 4, 5]), 5);
        assert_eq!(b.push(&[6, 7, 8, 9]), 3, "as many as fit, from the front");
        assert_eq!((a.push(&[10]), b.push(&[10]), a.room(), a.len()), (0, 0, 0, 8));
        assert_eq!(pop(&b, 3, 0), [1, 2, 3]);
        assert_eq!(pop(&a, 9, 0), [4, 5, 6, 7, 8]);
        assert_eq!(pop(&b, 9, 0), [0; 0]);
        assert!(a.is_empty() && b.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 512 },
        rng_seed: RngSeed::Fixed(82599),
        failure_persistence: None,
        ..Default::default()
    })]
    #[test]
    fn any_pushes_and_pops_behave_like_a_queue(
        bits in 3u32..8,
        before in 0u64..300,
        steps in prop::collection::vec((any::<bool>(), 0usize..160), 1..40),
    ) {
        let n = 1 << bits;
        let ring = Mpmc::<[u64; 3]>::new_at(size(n), (1 << 32) - before);
        let mut queue = VecDeque::new();
        let mut next = 1;
        for (push, len) in steps {
            if push {
                let bulk: Vec<[u64; 3]> = (next..).take(len).map(|i| [i; 3]).collect();
                let taken = ring.push(&bulk);
                prop_assert_eq!(taken, len.min(n as usize - queue.len()));
                queue.extend(&bulk[..taken]);
                next += taken as u64;
            } else {
                let want: Vec<[u64; 3]> = queue.drain(..len.min(queue.len())).collect();
                prop_assert_eq!(pop(&ring, len, [0; 3]), want);
            }
            prop_assert_eq!((ring.len(), ring.room()), (queue.len(), n as usize - queue.len()));
        }
    }
}

/// Item `i` of producer `p`.
type Item = (u32, u32);

fn produce(ring: &Mpmc<Item>, p: u32, total: u32) {
    let mut next = 0;
    while next < total {
        let bulk: Vec<Item> =
            (next..total).take(1 + (next as usize * 7 + p as usize) % 13).map(|i| (p, i)).collect();
        let n = ring.push(&bulk);
        if n == 0 {
            thread::yield_now();
        }
        next += n as u32;
    }
}

/// Pops until a bulk with `stop` in it, which goes back for the next consumer.
fn consume(ring: &Mpmc<Item>, stop: Item) -> Vec<Item> {
    let mut seen = Vec::new();
    loop {
        let items = pop(ring, 1 + seen.len() % 11, (0, 0));
        if items.is_empty() {
            thread::yield_now();
        }
        let real = items.iter().filter(|i| **i != stop).count();
        seen.extend_from_slice(&items[..real]);
        if real < items.len() {
            assert_eq!(ring.push(&[stop]), 1, "the ring is empty: the stop came last");
            return seen;
        }
    }
}

#[test]
fn four_threads_lose_nothing_and_keep_each_producers_order() {
    const STOP: Item = (u32::MAX, u32::MAX);
    let total: u32 = if cfg!(miri) { 250 } else { 60_000 };
    let ring = Mpmc::<Item>::new_at(size(32), u64::from(u32::MAX - total));
    let spawn = |f: fn(&Mpmc<Item>, u32, u32), p| {
        let ring = ring.clone();
        thread::spawn(move || f(&ring, p, total))
    };
    let consumers = [0, 1].map(|_| {
        let ring = ring.clone();
        thread::spawn(move || consume(&ring, STOP))
    });
    for p in [spawn(produce, 0), spawn(produce, 1)] {
        p.join().unwrap();
    }
    while ring.push(&[STOP]) == 0 {
        thread::yield_now();
    }
    let mut all = Vec::new();
    for c in consumers {
        let seen = c.join().unwrap();
        for p in [0, 1] {
            let own: Vec<u32> = seen.iter().filter(|i| i.0 == p).map(|i| i.1).collect();
            assert!(own.is_sorted_by(|a, b| a < b), "a consumer sees a producer's items in order");
        }
        all.extend(seen);
    }
    all.sort_unstable();
    let sent: Vec<Item> = [0, 1].into_iter().flat_map(|p| (0..total).map(move |i| (p, i))).collect();
    assert_eq!(all.len(), sent.len());
    assert!(all == sent, "each item once, unchanged");
}
