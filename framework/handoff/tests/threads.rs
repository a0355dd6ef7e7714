//! Two senders, two receivers, a thread each: what another core wrote is seen whole, and every packet comes out once.

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mem::Batch;
use ringwright_handoff::{Spread, handoff};

use rig::{BUFFERS, add, by_flow, memory, receive, rx, size, tx, worker};

#[test]
fn four_threads_keep_every_flow_in_order() {
    let per_flow: u32 = if cfg!(miri) { 5 } else { 3_000 };
    const FLOWS: u32 = if cfg!(miri) { 4 } else { 8 };
    let (memory, pool) = memory();
    // `rings[s][r]`: from sender s to receiver r.
    let (mut feeds, mut inlets) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for feeds in &mut feeds {
        for inlets in &mut inlets {
            let (feed, inlet, _) = handoff(size(16));
            feeds.push(feed);
            inlets.push(inlet);
        }
    }
    let sending = Arc::new(AtomicUsize::new(2));
    let received: Vec<Vec<(u32, u32)>> = thread::scope(|s| {
        for (who, feeds) in feeds.into_iter().enumerate() {
            let (memory, sending) = (&memory, Arc::clone(&sending));
            s.spawn(move || {
                let env = worker(memory);
                let mut spread = tx(Spread::new(feeds, Arc::new(true.into())), &env);
                let mut batch = Batch::new(&env.local);
                for number in 0..per_flow {
                    let frames: Vec<_> = (0..FLOWS).map(|f| (f + FLOWS * who as u32, number)).collect();
                    add(&mut batch, pool, &frames);
                    while !batch.is_empty() {
                        if spread.tx_burst(&mut batch, 0) == 0 {
                            thread::yield_now();
                        }
                    }
                }
                sending.fetch_sub(1, Ordering::Release);
            });
        }
        let receivers: Vec<_> = inlets
            .into_iter()
            .map(|inlets| {
                let (memory, sending) = (&memory, Arc::clone(&sending));
                s.spawn(move || {
                    let env = worker(memory);
                    let mut queues: Vec<_> = inlets.into_iter().map(|i| rx(i, &env)).collect();
                    let mut all = Vec::new();
                    loop {
                        let last = sending.load(Ordering::Acquire) == 0;
                        let before = all.len();
                        queues.iter_mut().for_each(|q| all.extend(receive(&mut **q, &env)));
                        if all.len() == before {
                            if last {
                                return all;
                            }
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        receivers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    let whole: Vec<u32> = (0..per_flow).collect();
    let mut flows = Vec::new();
    for (flow, numbers) in received.iter().flat_map(|all| by_flow(all)) {
        assert_eq!(numbers, whole, "flow {flow}");
        flows.push(flow);
    }
    flows.sort_unstable();
    assert_eq!(flows, (0..2 * FLOWS).collect::<Vec<_>>(), "each flow at one receiver");
    assert_eq!(memory.depot(), BUFFERS);
}
