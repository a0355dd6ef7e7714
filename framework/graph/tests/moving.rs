//! Every packet that comes in goes out, in order, or has a reason; every buffer comes home.

mod rig;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

use graph::{Exit, ExitInfo, Exits, Graph, GraphBuilder, Leads, OnFull, Stage, To};
use mem::{BURST, Batch, PacketBuf};
use meter::{DropReason, Published, StageMeter};
use rig::{Rig, numbered, numbers};
use ringwright_graph as graph;

/// Exits `0`, `1`, `2` to be joined, and `3` that drops.
#[derive(Clone, Copy)]
struct Way(u8);
impl From<Way> for u8 {
    fn from(e: Way) -> Self {
        e.0
    }
}
impl Exit for Way {
    const EXITS: &'static [ExitInfo] = &[
        ExitInfo { name: "0", leads: Leads::Open },
        ExitInfo { name: "1", leads: Leads::Open },
        ExitInfo { name: "2", leads: Leads::Open },
        ExitInfo { name: "3", leads: Leads::Drop(DropReason::Filtered) },
    ];
}

type Work = dyn FnMut(&mut Batch, &mut Exits<'_, Way>);

/// A stage that does what the test says, and writes down the sizes of its batches.
struct Does {
    work: Box<Work>,
    calls: Rc<RefCell<Vec<usize>>>,
}
impl Stage for Does {
    type Exit = Way;
    const KIND: &'static str = "does";
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, Way>) {
        self.calls.borrow_mut().push(batch.len());
        (self.work)(batch, exits);
    }
}

type Calls = Rc<RefCell<Vec<usize>>>;

fn does(work: impl FnMut(&mut Batch, &mut Exits<'_, Way>) + 'static) -> (Does, Calls) {
    let calls = Calls::default();
    (Does { work: Box::new(work), calls: Rc::clone(&calls) }, calls)
}
fn number_of(batch: &mut Batch, i: usize) -> u32 {
    rig::number(batch.pkt(i).unwrap().bytes())
}
/// By the number in each packet.
fn by_number(f: impl Fn(u32) -> u8 + 'static) -> (Does, Calls) {
    does(move |batch, exits| {
        for i in 0..batch.len() {
            exits.set(i, Way(f(number_of(batch, i))));
        }
    })
}

/// A graph of stages that receive in a row and whose exits lead where `edges` says.
fn graph(rig: &Rig, stages: Vec<Does>, edges: &[(usize, &str, usize)], tx: &[(usize, &str, u16)]) -> Graph {
    let mut b = GraphBuilder::new(&rig.local);
    let nodes: Vec<_> =
        stages.into_iter().enumerate().map(|(i, s)| b.add(&format!("s{i}"), Box::new(s))).collect();
    for &node in &nodes {
        for exit in ["0", "1", "2"] {
            b.join(node, exit, To::Drop(DropReason::NoRoute)).unwrap();
        }
    }
    for &(from, exit, to) in edges {
        b.join(nodes[from], exit, To::Node(nodes[to])).unwrap();
    }
    for &(from, exit, port) in tx {
        b.join(nodes[from], exit, To::Tx(port)).unwrap();
    }
    b.build(To::Node(nodes[0])).unwrap()
}
fn meter(graph: &Graph, name: &str) -> StageMeter {
    *graph.stages().find(|s| s.0 == name).unwrap().2
}

#[test]
fn a_batch_of_one_mind_is_handed_on_whole() {
    let mut rig = Rig::new(512);
    let (first, calls) = by_number(|_| 0);
    let (second, behind) = by_number(|_| 1);
    let mut g = graph(&rig, vec![first, second], &[(0, "0", 1)], &[(1, "1", 7)]);
    rig.add_rx(&mut g, 0);
    rig.add_tx(&mut g, 7, OnFull::Drop);
    rig.arrive(0, numbered(0..50));
    assert_eq!(rig.run(&mut g), 50);
    assert_eq!((calls.borrow().as_slice(), behind.borrow().as_slice()), (&[50][..], &[50][..]));
    assert_eq!(numbers(&rig.sent(7)), (0..50).collect::<Vec<_>>());
    let m = meter(&g, "s1");
    assert_eq!((m.calls, m.packets, m.drops.total(), m.timed_calls), (1, 50, 0, 0));
    rig.finish(g);
}

#[test]
fn packets_of_different_minds_part_and_keep_their_order() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|n| (n % 4) as u8);
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 1), (0, "1", 2), (0, "2", 3)]);
    rig.add_rx(&mut g, 0);
    for port in [1, 2, 3] {
        rig.add_tx(&mut g, port, OnFull::Drop);
    }
    rig.arrive(0, numbered(0..150));
    rig.run(&mut g);
    for (port, rest) in [(1, 0), (2, 1), (3, 2)] {
        let expected: Vec<u32> = (0..150).filter(|n| n % 4 == rest).collect();
        assert_eq!(numbers(&rig.sent(port)), expected, "port {port}");
    }
    assert_eq!(meter(&g, "s0").drops.of(DropReason::Filtered), 37);
    assert_eq!(meter(&g, "s0").drops.total(), 37);
    rig.finish(g);
}

#[test]
fn an_inbox_that_would_overflow_runs_the_stages_behind_it() {
    let mut rig = Rig::new(512);
    let pool = rig.pool;
    // Sends every packet on and two copies after it: three times what an inbox holds.
    let (first, _) = does(move |batch, exits| {
        exits.set_all(Way(0));
        for copy in 0..2 {
            for i in 0..batch.len() {
                exits.copy(batch, i, pool, 10 + copy, Way(0));
            }
        }
    });
    let (second, calls) = by_number(|n| u8::from(n % 2 == 1));
    let (third, last) = by_number(|_| 0);
    let edges = [(0, "0", 1), (1, "0", 2), (1, "1", 2)];
    let mut g = graph(&rig, vec![first, second, third], &edges, &[(2, "0", 7)]);
    rig.add_rx(&mut g, 0);
    rig.add_tx(&mut g, 7, OnFull::Drop);
    rig.arrive(0, numbered(0..60));
    rig.run(&mut g);
    assert!(calls.borrow().iter().all(|&n| n <= BURST) && calls.borrow().len() == 3, "{calls:?}");
    assert_eq!(last.borrow().iter().sum::<usize>(), 180);
    let sent = numbers(&rig.sent(7));
    assert_eq!(sent.len(), 180);
    for rest in [0, 1] {
        let of = |v: &[u32]| v.iter().copied().filter(|n| n % 2 == rest).collect::<Vec<_>>();
        let expected = of(&[(0..60).collect::<Vec<_>>(), (0..60).collect(), (0..60).collect()].concat());
        assert_eq!(of(&sent), expected, "of one exit, in order");
    }
    assert_eq!(meter(&g, "s0").created, 120);
    rig.finish(g);
}

#[test]
fn a_drop_is_counted_at_the_stage_whose_exit_it_is() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|n| if n < 5 { 3 } else { 0 });
    let (second, _) = by_number(|n| if n < 12 { 3 } else { 1 });
    let mut g = graph(&rig, vec![first, second], &[(0, "0", 1)], &[]);
    rig.add_rx(&mut g, 0);
    rig.arrive(0, numbered(0..40));
    rig.run(&mut g);
    let of = |name, reason| meter(&g, name).drops.of(reason);
    assert_eq!((of("s0", DropReason::Filtered), of("s0", DropReason::NoRoute)), (5, 0));
    assert_eq!((of("s1", DropReason::Filtered), of("s1", DropReason::NoRoute)), (7, 28));
    rig.finish(g);
}

#[test]
fn packets_marked_for_ports_part_by_port_and_those_for_none_have_no_route() {
    let mut rig = Rig::new(512);
    let (first, _) = does(|batch, exits| {
        exits.set_all(Way(0));
        for i in 0..batch.len() {
            let port = (number_of(batch, i) % 3) as u16;
            batch.pkt(i).unwrap().set_port(port);
        }
    });
    let mut b = GraphBuilder::new(&rig.local);
    let node = b.add("s0", Box::new(first));
    b.join(node, "0", To::Marked).unwrap();
    for exit in ["1", "2"] {
        b.join(node, exit, To::Drop(DropReason::NoRoute)).unwrap();
    }
    let mut g = b.build(To::Node(node)).unwrap();
    rig.add_rx(&mut g, 9);
    for port in [0, 1] {
        rig.add_tx(&mut g, port, OnFull::Drop);
    }
    rig.arrive(9, numbered(0..90));
    rig.run(&mut g);
    assert_eq!(numbers(&rig.sent(0)), (0..90).step_by(3).collect::<Vec<_>>());
    assert_eq!(numbers(&rig.sent(1)), (1..90).step_by(3).collect::<Vec<_>>());
    assert_eq!(meter(&g, "s0").drops.of(DropReason::NoRoute), 30);
    rig.finish(g);
}

#[test]
fn a_full_ring_drops_and_says_so_at_the_queue() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|_| 0);
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 1)]);
    rig.add_rx(&mut g, 0);
    rig.add_tx(&mut g, 1, OnFull::Drop);
    (rig.wire(1).ring, rig.wire(1).stuck) = (100, true);
    rig.arrive(0, numbered(0..150));
    rig.run(&mut g);
    assert_eq!(numbers(&rig.sent(1)), (0..100).collect::<Vec<_>>());
    let counts = g.tx()[0].counts();
    assert_eq!((counts.packets, counts.drops.of(DropReason::TxFull)), (100, 50));
    assert_eq!(meter(&g, "s0").drops.total(), 0);
    // What only waited to be reaped makes room in the same call.
    rig.wire(1).stuck = false;
    rig.arrive(0, numbered(150..180));
    g.breathe(2, false);
    assert_eq!((rig.sent(1).len(), g.tx()[0].counts().drops.total()), (30, 50));
    rig.finish(g);
}

#[test]
fn a_full_ring_that_waits_loses_nothing_and_holds_receiving_back() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|_| 0);
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 1)]);
    rig.add_ports(&mut g, &[0, 2], OnFull::Wait);
    rig.add_tx(&mut g, 1, OnFull::Wait);
    (rig.wire(1).ring, rig.wire(1).stuck) = (100, true);
    rig.arrive(0, numbered(0..300));
    rig.arrive(2, numbered(1000..1010));
    assert_eq!(g.breathe(1, false).received, 74, "64, and 10 of the other port");
    assert_eq!(g.breathe(2, false).received, 64, "26 fit, 38 wait, the other port is not asked");
    assert_eq!((g.batched(), g.tx()[2].waiting()), (38, 38));
    rig.arrive(2, numbered(1010..1020));
    for now in 3..9 {
        let breath = g.breathe(now, false);
        assert_eq!((breath.received, breath.worked), (0, false), "nothing is received meanwhile");
    }
    assert_eq!((rig.wire(0).rx.len(), rig.wire(2).rx.len()), (300 - 128, 10));
    rig.wire(1).stuck = false;
    rig.run(&mut g);
    let sent = numbers(&rig.sent(1));
    let of = |f: fn(&u32) -> bool| sent.iter().copied().filter(f).collect::<Vec<_>>();
    assert_eq!(of(|&n| n < 1000), (0..300).collect::<Vec<_>>(), "nothing lost, in order");
    assert_eq!(of(|&n| n >= 1000), (1000..1020).collect::<Vec<_>>());
    rig.finish(g);
}

#[test]
fn each_breath_begins_with_another_queue() {
    // The first queue that is asked takes all buffers there are; they come back at the end of the breath.
    let mut rig = Rig::new(64);
    let (first, _) = by_number(|_| 0);
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 9)]);
    for port in 0..3 {
        rig.add_rx(&mut g, port);
        rig.arrive(port, numbered(0..64 * 4));
    }
    rig.add_tx(&mut g, 9, OnFull::Drop);
    for now in 0..6 {
        assert_eq!(g.breathe(now, false).received, 64, "breath {now}");
    }
    let left = [0, 1, 2].map(|p| rig.wire(p).rx.len());
    assert_eq!(left, [64 * 2; 3], "each was first twice");
    rig.run(&mut g);
    rig.finish(g);
}

/// Sends each packet and two copies to port 1, whose ring holds ten and is stuck.
fn three_times_into_a_stuck_ring() -> (Rig, Graph) {
    let mut rig = Rig::new(512);
    let pool = rig.pool;
    let (first, _) = does(move |batch, exits| {
        exits.set_all(Way(0));
        for i in 0..2 * batch.len() {
            exits.copy(batch, i / 2, pool, 1, Way(0));
        }
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 1)]);
    rig.add_rx(&mut g, 0);
    rig.add_tx(&mut g, 1, OnFull::Wait);
    (rig.wire(1).ring, rig.wire(1).stuck) = (10, true);
    rig.arrive(0, numbered(0..64));
    (rig, g)
}

#[test]
fn more_than_can_wait_makes_the_worker_wait_for_the_device() {
    let (rig, mut g) = three_times_into_a_stuck_ring();
    let device = rig.shared(1);
    std::thread::scope(|s| {
        s.spawn(move || {
            // It goes on once the worker has asked it to.
            while device.lock().unwrap().flushes == 0 {
                std::thread::yield_now();
            }
            device.lock().unwrap().stuck = false;
        });
        g.breathe(1, false);
    });
    while g.tx()[0].waiting() > 0 {
        g.breathe(2, false);
    }
    let copies = (0..64).flat_map(|n| [n, n]);
    assert_eq!(numbers(&rig.sent(1)), (0..64).chain(copies).collect::<Vec<_>>(), "all, in order");
    rig.finish(g);
}

#[test]
fn a_worker_that_waits_can_be_stopped() {
    let (rig, mut g) = three_times_into_a_stuck_ring();
    g.abort_when(Arc::new(true.into()));
    g.breathe(1, false);
    let counts = g.tx()[0].counts();
    assert_eq!((counts.packets, g.tx()[0].waiting(), counts.drops.of(DropReason::Stopping)), (10, 64, 118));
    rig.wire(1).stuck = false;
    while g.tx()[0].waiting() > 0 {
        g.breathe(2, false);
    }
    rig.finish(g);
}

#[test]
fn copies_are_packets_of_their_own() {
    let mut rig = Rig::new(128);
    let pool = rig.pool;
    let (first, _) = does(move |batch, exits| {
        exits.set_all(Way(0));
        for i in 0..batch.len() {
            exits.copy(batch, i, pool, 1, Way(1));
        }
        // What happens to an original afterwards is not seen in its copy.
        for mut p in batch.iter_mut() {
            p.bytes_mut()[20] = 0xff;
        }
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0), (0, "1", 1)]);
    rig.add_ports(&mut g, &[0, 1], OnFull::Drop);
    rig.arrive(0, numbered(0..20));
    rig.run(&mut g);
    let (originals, copies) = (rig.sent(0), rig.sent(1));
    assert_eq!((numbers(&originals), numbers(&copies)), ((0..20).collect(), (0..20).collect()));
    assert!(originals.iter().all(|f| f[20] == 0xff) && copies.iter().all(|f| f[20] == 0));
    rig.finish(g);
}

#[test]
fn a_copy_without_a_buffer_is_created_and_dropped_and_the_original_goes() {
    let mut rig = Rig::new(100);
    let pool = rig.pool;
    let (first, _) = does(move |batch, exits| {
        exits.set_all(Way(0));
        for i in 0..batch.len() {
            exits.copy(batch, i, pool, 1, Way(1));
        }
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0), (0, "1", 1)]);
    rig.add_ports(&mut g, &[0, 1], OnFull::Drop);
    rig.arrive(0, numbered(0..60));
    rig.run(&mut g);
    let m = meter(&g, "s0");
    assert_eq!((m.created, m.drops.of(DropReason::NoBuffer)), (60, 20));
    assert_eq!((numbers(&rig.sent(0)), numbers(&rig.sent(1))), ((0..60).collect(), (0..40).collect()));
    rig.finish(g);
}

#[test]
fn a_stage_makes_and_consumes_packets() {
    let mut rig = Rig::new(128);
    let pool = rig.pool;
    // Answers each packet with one of its own: the question is consumed.
    let (first, _) = does(move |batch, exits| {
        let n = batch.len();
        for i in 0..n {
            let mut answer = PacketBuf::fresh(batch.local(), pool).unwrap();
            let question = batch.pkt(i).unwrap().bytes().to_vec();
            answer.pkt().resize(60).unwrap().copy_from_slice(&question);
            exits.create(answer, batch, Way(1));
        }
        while let Some(question) = batch.pop() {
            exits.consume(question);
        }
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "1", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    rig.arrive(0, numbered(0..40));
    rig.run(&mut g);
    assert_eq!(numbers(&rig.sent(0)), (0..40).collect::<Vec<_>>());
    let m = meter(&g, "s0");
    assert_eq!((m.created, m.consumed, m.packets), (40, 40, 40));
    rig.finish(g);
}

#[test]
fn queues_come_and_go_between_two_breaths() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|_| 0);
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 1)]);
    rig.add_ports(&mut g, &[0, 1], OnFull::Wait);
    (rig.wire(1).ring, rig.wire(1).stuck) = (10, true);
    rig.arrive(0, numbered(0..30));
    rig.run(&mut g);
    assert!(g.remove_rx(5, 0).is_none() && g.remove_tx(1, 1).is_none());
    let before = rig.totals(&g);
    let mut lane = g.remove_tx(1, 0).unwrap();
    assert_eq!((before.held, rig.totals(&g).held, lane.waiting()), (20, 0, 20), "what waits goes with it");
    assert_eq!(
        (lane.progress(), lane.give_up(DropReason::Stopping), lane.progress()),
        ((10, 0), 20, (10, 20))
    );
    let counts = lane.counts();
    assert_eq!((counts.packets, counts.drops.of(DropReason::Stopping)), (10, 20));
    // A port without a queue here: no route. With one again: it goes.
    rig.arrive(0, numbered(30..40));
    rig.run(&mut g);
    assert_eq!(meter(&g, "s0").drops.of(DropReason::NoRoute), 10);
    rig.add_tx(&mut g, 7, OnFull::Drop);
    let setup = lane.queue.detach();
    rig.wire(1).stuck = false;
    let queue = setup.attach(&rig.env()).map_err(|e| e.0).unwrap();
    let mut back = graph::TxLane::new(&rig.local, (1, 0), queue, OnFull::Wait, Arc::default());
    back.base = counts;
    g.add_tx(back);
    rig.arrive(0, numbered(40..45));
    rig.run(&mut g);
    assert_eq!(numbers(&rig.sent(1)), (0..10).chain(40..45).collect::<Vec<_>>());
    let rx = g.remove_rx(0, 0).unwrap();
    assert_eq!((rx.counts().packets, g.rx().len()), (45, 1));
    rig.arrive(0, numbered(45..50));
    assert_eq!(rig.run(&mut g), 0, "nobody asks the port any more");
    g.add_rx(rx);
    assert_eq!(rig.run(&mut g), 5);
    rig.finish(g);
}

#[test]
fn timed_breaths_are_counted_apart() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|_| 0);
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    for (now, sample) in [(1, false), (2, true), (3, false), (4, true)] {
        rig.arrive(0, numbered(0..10 * now as u32));
        assert_eq!(g.breathe(now, sample).received, 10 * now as usize);
    }
    let m = meter(&g, "s0");
    assert_eq!((m.calls, m.packets, m.timed_calls, m.timed_packets), (4, 100, 2, 60));
    assert!(m.timed_cycles > 0);
    rig.finish(g);
}

#[test]
fn counts_are_published_when_asked() {
    let mut rig = Rig::new(512);
    let (first, _) = by_number(|n| if n < 4 { 3 } else { 0 });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    let mut places = BTreeMap::new();
    g.publish_stages(|name, kind| {
        let place = Arc::new(Published::default());
        places.insert(format!("{name} {kind}"), Arc::clone(&place));
        place
    });
    rig.arrive(0, numbered(0..10));
    rig.run(&mut g);
    assert_eq!((places["s0 does"].read().packets, g.rx()[0].published.read().packets), (0, 0));
    g.publish();
    let (stage, rx, tx) = (places["s0 does"].read(), g.rx()[0].published.read(), g.tx()[0].published.read());
    assert_eq!((stage.packets, stage.drops.of(DropReason::Filtered)), (10, 4));
    assert_eq!((rx.packets, rx.bytes, tx.packets), (10, 600, 6));
    rig.finish(g);
}

#[test]
fn a_graph_without_stages_sends_and_drops_with_reasons() {
    let mut rig = Rig::new(512);
    let mut g = GraphBuilder::new(&rig.local).build(To::Marked).unwrap();
    let edge = Arc::new(Published::<StageMeter>::default());
    g.publish_stages(|name, _| {
        assert_eq!(&*name, "edge");
        Arc::clone(&edge)
    });
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    rig.add_rx(&mut g, 1);
    rig.arrive(0, numbered(0..10));
    rig.arrive(1, numbered(10..13));
    rig.run(&mut g);
    assert_eq!(numbers(&rig.sent(0)), (0..10).collect::<Vec<_>>(), "back out of the port they came from");
    g.publish();
    assert_eq!(edge.read().drops.of(DropReason::NoRoute), 3);
    drop(g);
    assert_eq!((rig.home(), rig.local.lost()), (512, 0));
}

#[test]
fn injected_packets_go_the_way_of_received_ones() {
    let mut rig = Rig::new(512);
    let (first, calls) = by_number(|n| if n == 2 { 3 } else { 0 });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    let mut batch = Batch::new(&rig.local);
    for frame in numbered(0..5) {
        let mut p = PacketBuf::fresh(&rig.local, rig.pool).unwrap();
        p.pkt().resize(60).unwrap().copy_from_slice(&frame);
        batch.push_buf(p).map_err(PacketBuf::consume).unwrap();
    }
    g.inject(&mut batch, 1);
    assert!(batch.is_empty());
    assert_eq!((numbers(&rig.sent(0)), calls.borrow().as_slice()), (vec![0, 1, 3, 4], &[5][..]));
    g.breathe(2, false);
    drop((g, batch));
    assert_eq!((rig.home(), rig.local.lost()), (512, 0));
}

#[test]
fn a_stage_that_forgets_a_packet_shows_as_one() {
    let mut rig = Rig::new(128);
    // Kept where the graph does not see it, and never dropped: so it is forgotten without a leak in the test itself.
    let forgotten: Rc<RefCell<Option<ManuallyDrop<PacketBuf>>>> = Rc::default();
    let hide = Rc::clone(&forgotten);
    let (first, _) = does(move |batch, exits| {
        exits.set_all(Way(0));
        if hide.borrow().is_none() {
            *hide.borrow_mut() = batch.pop().map(ManuallyDrop::new);
        }
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    rig.arrive(0, numbered(0..100));
    rig.run(&mut g);
    g.breathe(1, false);
    let totals = rig.totals(&g);
    assert_eq!((totals.received, totals.sent, totals.dropped, totals.consumed), (100, 99, 0, 0));
    drop(g);
    assert_eq!(rig.memory.capacity() - rig.home(), 1, "the census misses one");
    // Nobody is left who could hold it.
    assert_eq!((rig.local.parked(), rig.local.lost()), (1, 0));
    ManuallyDrop::into_inner(forgotten.take().unwrap()).consume();
}

#[test]
fn a_stage_that_lets_a_packet_go_shows_as_one() {
    let mut rig = Rig::new(128);
    let mut once = true;
    let (first, _) = does(move |batch, exits| {
        exits.set_all(Way(0));
        if std::mem::take(&mut once) {
            drop(batch.pop());
        }
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    rig.arrive(0, numbered(0..100));
    rig.run(&mut g);
    g.breathe(1, false);
    assert_eq!(rig.totals(&g).unexplained(), 1, "{:?}", rig.totals(&g));
    assert_eq!(
        (rig.local.lost(), rig.local.parked(), rig.home()),
        (1, 0, 128),
        "its buffer is home all the same"
    );
}

#[test]
fn a_stage_parks_packets_and_sends_them_later() {
    let mut rig = Rig::new(128);
    let mut parked: Vec<PacketBuf> = Vec::new();
    let (first, _) = does(move |batch, exits| {
        let (mut now, later) = (std::mem::take(&mut parked), batch.pop());
        parked.extend(later);
        while let Some(p) = now.pop() {
            batch.push_buf(p).map_err(PacketBuf::consume).unwrap();
        }
        exits.set_all(Way(0));
    });
    let mut g = graph(&rig, vec![first], &[], &[(0, "0", 0)]);
    rig.add_ports(&mut g, &[0], OnFull::Drop);
    rig.arrive(0, numbered(0..3));
    rig.run(&mut g);
    assert_eq!((numbers(&rig.sent(0)), rig.totals(&g).held), (vec![0, 1], 1));
    assert_eq!(rig.totals(&g).unexplained(), 0, "held is explained");
    rig.arrive(0, numbered(3..5));
    rig.run(&mut g);
    assert_eq!(numbers(&rig.sent(0)), [3, 2], "the parked one came back");
    g.breathe(1, false);
    drop(g);
    assert_eq!(rig.local.lost(), 1, "a graph that ends with a parked packet loses it");
}
