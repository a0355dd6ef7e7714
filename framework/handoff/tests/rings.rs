//! Packets pass from worker to worker: each once, in order within its flow, and those that do not are counted.
// Nothing here is unsafe; threads meet, under Miri, in another file.
#![cfg(not(miri))]

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::{BURST, Batch, Chain, Local, Meta};
use meter::{DropReason, QueueMeter};
use port::TxQueue;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ringwright_handoff::{Feed, Inlet, Link, MAX_FEEDS, Spread, View, handoff};

use rig::{BUFFERS, add, by_flow, empty, memory, receive, rx, size, tx, worker};

fn rings(n: usize, of: u32) -> (Vec<Feed>, Vec<Inlet>, Vec<View>) {
    let (mut feeds, mut inlets, mut views) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let (feed, inlet, view) = handoff(size(of));
        feeds.push(feed);
        inlets.push(inlet);
        views.push(view);
    }
    (feeds, inlets, views)
}

fn waits(on: bool) -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(on))
}

fn census(memory: &mem::Memory, workers: &[&Local]) -> usize {
    memory.depot() + workers.iter().map(|l| l.cached()).sum::<usize>()
}

#[test]
fn flows_keep_their_order_their_ring_and_their_mark() {
    let (memory, pool) = memory();
    let (a, b) = (worker(&memory), worker(&memory));
    let (feeds, inlets, views) = rings(3, 1024);
    let mut spread = tx(Spread::new(feeds, waits(false)), &a);
    let mut batch = Batch::new(&a.local);
    for round in 0..10 {
        let frames: Vec<_> = (0..BURST as u32).map(|i| (i % 32, 2 * round + i / 32)).collect();
        add(&mut batch, pool, &frames);
        assert_eq!((spread.tx_burst(&mut batch, 0), batch.len()), (BURST, 0));
    }
    assert_eq!(views.iter().map(View::held).sum::<u64>(), 640);
    let mut flows_seen = Vec::new();
    for (inlet, view) in inlets.into_iter().zip(&views) {
        let mut queue = rx(inlet, &b);
        let mut first = Batch::new(&b.local);
        assert_eq!(
            (queue.rx_burst(&mut first), first.one_port()),
            (BURST, Some(3)),
            "all wait, marked as before"
        );
        let mut all = empty(&mut first);
        all.extend(receive(&mut *queue, &b));
        assert_eq!((view.sent(), view.taken(), view.held()), (all.len() as u64, all.len() as u64, 0));
        for (flow, numbers) in by_flow(&all) {
            assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "flow {flow} whole and in order");
            flows_seen.push(flow);
        }
    }
    flows_seen.sort_unstable();
    assert_eq!(flows_seen, (0..32).collect::<Vec<_>>(), "each flow came out of one ring");
    assert_eq!(census(&memory, &[&a.local, &b.local]), BUFFERS);
}

#[test]
fn a_full_ring_drops_its_own_and_no_others() {
    let (memory, pool) = memory();
    let (a, b) = (worker(&memory), worker(&memory));
    let (feeds, inlets, views) = rings(2, 8);
    let mut spread = tx(Spread::new(feeds, waits(false)), &a);
    let mut batch = Batch::new(&a.local);
    // One flow fills its ring; a flow of the other ring passes all the same.
    add(&mut batch, pool, &(0..20).map(|n| (0, n)).collect::<Vec<_>>());
    assert_eq!((spread.tx_burst(&mut batch, 0), batch.len()), (8, 0));
    let full = usize::from(views[0].held() == 0);
    let other = (1..100).find(|flow| {
        add(&mut batch, pool, &[(*flow, 0)]);
        spread.tx_burst(&mut batch, 0);
        views[1 - full].held() > 0
    });
    let other = other.expect("some flow of a hundred has the other ring");
    let dropped_before = views[full].drops().of(DropReason::HandoffFull);
    add(&mut batch, pool, &[(0, 20), (other, 1), (0, 21), (other, 2)]);
    assert_eq!((spread.tx_burst(&mut batch, 0), batch.len()), (2, 0));
    assert_eq!(views[full].drops().of(DropReason::HandoffFull), dropped_before + 2);
    assert_eq!(views[1 - full].drops().total(), 0);
    let mut counts = QueueMeter::default();
    spread.counts(&mut counts);
    assert_eq!((counts.packets, counts.drops.total()), (8 + 3, dropped_before + 2));
    let mut inlets: Vec<_> = inlets.into_iter().map(|i| rx(i, &b)).collect();
    assert_eq!(receive(&mut *inlets[full], &b), (0..8).map(|n| (0, n)).collect::<Vec<_>>());
    assert_eq!(receive(&mut *inlets[1 - full], &b), [(other, 0), (other, 1), (other, 2)]);
    assert_eq!((census(&memory, &[&a.local, &b.local]), a.local.lost()), (BUFFERS, 0));
}

#[test]
fn a_ring_that_waits_keeps_what_it_has_no_room_for_in_order() {
    let (memory, pool) = memory();
    let (a, b) = (worker(&memory), worker(&memory));
    let (feeds, inlets, views) = rings(2, 8);
    let wait = waits(true);
    let mut spread = tx(Spread::new(feeds, Arc::clone(&wait)), &a);
    let mut inlets: Vec<_> = inlets.into_iter().map(|i| rx(i, &b)).collect();
    let mut batch = Batch::new(&a.local);
    let frames: Vec<_> = (0..60).map(|i| (i % 6, i / 6)).collect();
    add(&mut batch, pool, &frames);
    let (mut sent, mut all) = (0, Vec::new());
    while !batch.is_empty() {
        sent += spread.tx_burst(&mut batch, 0);
        for queue in &mut inlets {
            all.extend(receive(&mut **queue, &b));
        }
    }
    assert_eq!(sent, 60);
    assert!(by_flow(&all).values().all(|n| *n == (0..10).collect::<Vec<_>>()), "{all:?}");
    assert!(views.iter().all(|v| v.drops().total() == 0));
    // Told to drop, it does so from then on.
    wait.store(false, Ordering::Relaxed);
    add(&mut batch, pool, &frames);
    let n = spread.tx_burst(&mut batch, 0);
    assert!(n < 60 && batch.is_empty());
    assert_eq!(views.iter().map(|v| v.drops().total()).sum::<u64>(), 60 - n as u64);
    for queue in &mut inlets {
        receive(&mut **queue, &b);
    }
    assert_eq!(census(&memory, &[&a.local, &b.local]), BUFFERS);
}

#[test]
fn a_link_marks_packets_with_its_port_and_says_when_it_is_full() {
    let (memory, pool) = memory();
    let (a, b) = (worker(&memory), worker(&memory));
    let (feed, inlet, view) = handoff(size(8));
    let wait = waits(true);
    let mut link = tx(Link::new(feed, 9, Arc::clone(&wait)), &a);
    let mut batch = Batch::new(&a.local);
    add(&mut batch, pool, &(0..12).map(|n| (1, n)).collect::<Vec<_>>());
    assert_eq!((link.tx_burst(&mut batch, 0), batch.len()), (8, 4), "four wait");
    let mut queue = rx(inlet, &b);
    let mut got = Batch::new(&b.local);
    assert_eq!((queue.rx_burst(&mut got), got.one_port()), (8, Some(9)));
    assert_eq!(empty(&mut got), (0..8).map(|n| (1, n)).collect::<Vec<_>>());
    wait.store(false, Ordering::Relaxed);
    add(&mut batch, pool, &(12..20).map(|n| (1, n)).collect::<Vec<_>>());
    assert_eq!((link.tx_burst(&mut batch, 0), batch.len()), (8, 0), "four are dropped");
    assert_eq!((view.drops().of(DropReason::HandoffFull), view.sent(), view.taken()), (4, 16, 8));
    assert_eq!(receive(&mut *queue, &b), (8..16).map(|n| (1, n)).collect::<Vec<_>>());
    // Nothing of a hand-off comes back to its sender, or is an empty buffer.
    link.flush(0, true);
    assert_eq!((link.reap(), link.inflight(), queue.posted()), (0, 0, 0));
    assert_eq!(census(&memory, &[&a.local, &b.local]), BUFFERS);
}

#[test]
fn frames_of_several_buffers_pass_whole() {
    let (memory, pool) = memory();
    let (a, b) = (worker(&memory), worker(&memory));
    let (feeds, inlets, _) = rings(1, 8);
    let mut spread = tx(Spread::new(feeds, waits(false)), &a);
    let mut batch = Batch::new(&a.local);
    let mut chain = Chain::new(&a.local, a.local.take(pool).unwrap(), 2000).unwrap();
    for _ in 0..3 {
        chain.push(a.local.take(pool).unwrap(), 1000).unwrap();
    }
    assert!(chain.finish(&mut batch, Meta::default()).is_ok());
    batch.pkt(0).unwrap().segment_mut(3).unwrap()[999] = 0xab;
    assert_eq!(spread.tx_burst(&mut batch, 0), 1);
    let mut got = Batch::new(&b.local);
    let inlet = inlets.into_iter().next().unwrap();
    assert_eq!((rx(inlet, &b).rx_burst(&mut got), got.bytes_from(0)), (1, 5000));
    assert_eq!(got.pkt(0).unwrap().segments().last().unwrap()[999], 0xab);
    got.free_sent();
    assert_eq!(census(&memory, &[&a.local, &b.local]), BUFFERS);
}

#[test]
fn what_is_left_when_a_ring_ends_is_freed_and_named() {
    let (memory, pool) = memory();
    let (a, b) = (worker(&memory), worker(&memory));
    let (feeds, inlets, views) = rings(2, 64);
    let mut spread = tx(Spread::new(feeds, waits(false)), &a);
    let mut batch = Batch::new(&a.local);
    add(&mut batch, pool, &(0..50).map(|n| (n, 0)).collect::<Vec<_>>());
    assert_eq!(spread.tx_burst(&mut batch, 0), 50);
    // Both sides leave, the senders with all that is theirs; the receivers leave packets behind.
    let setup = spread.detach();
    setup.reclaim(&a.local);
    for (inlet, view) in inlets.into_iter().zip(&views) {
        let mut queue = rx(inlet, &b);
        let mut some = Batch::new(&b.local);
        add(&mut some, pool, &(0..60).map(|n| (n, 0)).collect::<Vec<_>>());
        let n = queue.rx_burst(&mut some) as u64;
        assert_eq!((n, some.len()), (4, BURST), "no more than the batch has room for");
        some.free_sent();
        let mut counts = QueueMeter::default();
        queue.counts(&mut counts);
        assert_eq!(counts.packets, 4);
        queue.detach().reclaim(&b.local);
        assert_eq!((view.held(), view.taken()), (0, view.sent()));
        assert_eq!(view.drops().of(DropReason::Stopping), view.sent() - 4);
    }
    assert_eq!(census(&memory, &[&a.local, &b.local]), BUFFERS);
}

#[test]
fn both_sides_go_on_at_another_worker() {
    let (memory, pool) = memory();
    let (a, b, c) = (worker(&memory), worker(&memory), worker(&memory));
    let (feeds, inlets, views) = rings(1, 8);
    let mut spread = tx(Spread::new(feeds, waits(false)), &a);
    let mut batch = Batch::new(&a.local);
    add(&mut batch, pool, &[(0, 0), (0, 1)]);
    assert_eq!(spread.tx_burst(&mut batch, 0), 2);
    let mut spread = spread.detach().attach(&c).map_err(|e| e.0).unwrap();
    let mut batch = Batch::new(&c.local);
    add(&mut batch, pool, &[(0, 2)]);
    assert_eq!(spread.tx_burst(&mut batch, 0), 1);
    let mut counts = QueueMeter::default();
    spread.counts(&mut counts);
    assert_eq!((counts.packets, views[0].sent()), (1, 3), "its own since it came; the ring's in all");
    let queue = rx(inlets.into_iter().next().unwrap(), &a);
    let mut queue = queue.detach().attach(&b).map_err(|e| e.0).unwrap();
    assert_eq!(receive(&mut *queue, &b), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(census(&memory, &[&a.local, &b.local, &c.local]), BUFFERS);
}

#[test]
#[should_panic(expected = "1 to 64 feeds, not 0")]
fn a_spread_needs_a_feed() {
    Spread::new(Vec::new(), waits(false));
}

#[test]
#[should_panic(expected = "1 to 64 feeds, not 65")]
fn a_spread_has_a_bound() {
    Spread::new(rings(MAX_FEEDS + 1, 8).0, waits(false));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, rng_seed: RngSeed::Fixed(82599), failure_persistence: None,
        ..Default::default()
    })]
    /// Any bursts over any number of rings, emptied now and then: every packet comes out once, or is counted; a flow is
    /// never out of order.
    #[test]
    fn any_bursts_are_in_order_and_accounted_for(
        feeds in 1usize..6,
        wait in any::<bool>(),
        steps in prop::collection::vec((0u32..64, 0u32..40, any::<bool>()), 1..40),
    ) {
        let (memory, pool) = memory();
        let (a, b) = (worker(&memory), worker(&memory));
        let (feeds, inlets, views) = rings(feeds, 16);
        let mut spread: Box<dyn TxQueue> = tx(Spread::new(feeds, waits(wait)), &a);
        let mut inlets: Vec<_> = inlets.into_iter().map(|i| rx(i, &b)).collect();
        let (mut batch, mut next, mut offered, mut all) = (Batch::new(&a.local), [0; 40], 0, Vec::new());
        for (n, first, look) in steps {
            let frames: Vec<_> = (0..n.min(batch.room() as u32)).map(|i| {
                let flow = (first + i * i) % 40;
                next[flow as usize] += 1;
                (flow, next[flow as usize])
            }).collect();
            add(&mut batch, pool, &frames);
            offered += frames.len();
            spread.tx_burst(&mut batch, 0);
            prop_assert!(wait || batch.is_empty());
            if look {
                for queue in &mut inlets {
                    all.extend(receive(&mut **queue, &b));
                }
            }
        }
        while !batch.is_empty() || views.iter().any(|v| v.held() > 0) {
            for queue in &mut inlets {
                all.extend(receive(&mut **queue, &b));
            }
            spread.tx_burst(&mut batch, 0);
        }
        let dropped: u64 = views.iter().map(|v| v.drops().total()).sum();
        prop_assert_eq!(all.len() + dropped as usize, offered);
        prop_assert!(!wait || dropped == 0);
        for (flow, numbers) in by_flow(&all) {
            prop_assert!(numbers.is_sorted_by(|x, y| x < y), "flow {}: {:?}", flow, numbers);
        }
        prop_assert_eq!((census(&memory, &[&a.local, &b.local]), a.local.lost() + b.local.lost()), (BUFFERS, 0));
    }
}
