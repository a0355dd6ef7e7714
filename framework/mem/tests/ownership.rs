//! Whoever holds a buffer owns it; none is ever lost, none has two owners.

use std::sync::Arc;

use hw::{Pages, Window};
use meter::{DropCounts, DropReason};
use ringwright_mem as mem;

use mem::{BURST, Batch, Chain, Flags, Layout, Local, Memory, Meta, PacketBuf, PoolId};

const BUFFERS: usize = 512;

fn memory() -> (Arc<Memory>, PoolId) {
    let memory = Memory::new(Window::on_heap(4 << 20), Layout::for_frame_room(2048).unwrap());
    let id = memory.add_pool(BUFFERS, None, Pages::Any).unwrap().id();
    (memory, id)
}

fn fill(b: &mut Batch, pool: PoolId, n: usize) {
    let local = b.local().clone();
    for slot in local.take_bulk(pool, n) {
        b.push(slot, 60, Meta { port: 3, ..Meta::default() }).unwrap();
    }
}

fn census(memory: &Memory, local: &Local) -> usize {
    memory.depot() + local.cached()
}

#[test]
fn a_stride_is_an_odd_number_of_lines_and_bad_shapes_are_explained() {
    let l = Layout::for_frame_room(2048).unwrap();
    assert_eq!((l.stride(), l.headroom(), l.room()), (35 * 64, 128, 2112));
    assert!(Layout::new(2048, 2048).unwrap_err().to_string().contains("multiple of 64"));
    assert!(Layout::new(100, 0).is_err());
    assert!(
        memory()
            .0
            .add_pool(63, None, Pages::Any)
            .unwrap_err()
            .to_string()
            .starts_with("a pool of 63 buffers")
    );
}

#[test]
fn every_buffer_is_given_once_and_comes_back() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut held = Vec::new();
    loop {
        let n = held.len();
        held.extend(local.take_bulk(pool, 48));
        if held.len() == n {
            break;
        }
    }
    assert_eq!((held.len(), census(&memory, &local)), (BUFFERS, 0));
    let mut seen: Vec<_> = held.iter().map(|s| format!("{s:?}")).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), BUFFERS, "no buffer twice");
    assert!(local.take(pool).is_none());
    local.put_bulk(held);
    assert_eq!(census(&memory, &local), BUFFERS);
}

#[test]
fn slots_that_are_taken_and_not_used_go_back() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut some = local.take_bulk(pool, 64);
    let one = some.next().unwrap();
    drop(some);
    assert_eq!(census(&memory, &local), BUFFERS - 1);
    local.put(one);
    drop(local);
    assert_eq!(memory.depot(), BUFFERS, "a worker that ends leaves its magazines to the depot");
}

#[test]
fn workers_share_a_pool_and_any_may_free() {
    let (memory, pool) = memory();
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    let (to, from) = std::sync::mpsc::channel();
    std::thread::scope(|s| {
        let m = &memory;
        s.spawn(move || {
            let local = Local::new(m);
            for i in 0..rounds {
                to.send(local.take_bulk(pool, 1 + i % 64).collect::<Vec<_>>()).unwrap();
            }
        });
        s.spawn(move || {
            let local = Local::new(m);
            for slots in from {
                local.put_bulk(slots);
            }
        });
    });
    assert_eq!(memory.depot(), BUFFERS);
}

#[test]
fn magazines_come_back_cache_hot() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let slot = local.take(pool).unwrap();
    let name = format!("{slot:?}");
    local.put(slot);
    let again = local.take(pool).unwrap();
    assert_eq!(format!("{again:?}"), name, "last in, first out");
    local.put(again);
    assert_eq!(local.cache_counts(), (4, 1), "four buffers passed, one trip to the depot");
}

#[test]
fn a_dropped_batch_frees_all_and_says_they_were_lost() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    fill(&mut b, pool, 40);
    drop(b);
    assert_eq!((local.lost(), census(&memory, &local)), (40, BUFFERS));
    let mut b = Batch::new(&local);
    fill(&mut b, pool, 10);
    let mut drops = DropCounts::default();
    assert_eq!(b.drop_all(DropReason::Filtered, &mut drops), 10);
    assert_eq!((local.lost(), drops.of(DropReason::Filtered)), (40, 10), "a reason makes the difference");
}

#[test]
fn batches_refuse_what_cannot_be() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    let slot = local.take(pool).unwrap();
    let slot = b.push(slot, memory.layout().room() + 1, Meta::default()).unwrap_err();
    local.put(slot);
    fill(&mut b, pool, BURST);
    let slot = local.take(pool).unwrap();
    let slot = b.push(slot, 60, Meta::default()).unwrap_err();
    local.put(slot);
    assert_eq!((b.len(), b.free_sent(), b.len()), (64, 64, 0));
    assert_eq!(census(&memory, &local), BUFFERS);
}

#[test]
fn scatter_append_and_drain_move_every_packet_once_and_in_order() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    fill(&mut b, pool, 50);
    for (i, mut p) in b.iter_mut().enumerate() {
        p.bytes_mut()[0] = i as u8;
    }
    let mut exits = [0; BURST];
    exits.iter_mut().enumerate().for_each(|(i, e)| *e = u8::from(i % 3 == 0));
    let mut to = [Batch::new(&local), Batch::new(&local)];
    b.scatter(&exits, &mut to);
    let firsts = |b: &mut Batch| b.iter_mut().map(|p| p.bytes()[0]).collect::<Vec<_>>();
    assert_eq!((b.len(), to[0].len(), to[1].len()), (0, 33, 17));
    assert_eq!(firsts(&mut to[1]), (0..50).filter(|i| i % 3 == 0).collect::<Vec<u8>>());
    let [mut a, mut c] = to;
    assert_eq!((c.append_to(&mut a), a.len()), (17, 50));
    let mut taken = Vec::new();
    let n = a.drain_while(|o| {
        if taken.len() == 20 {
            return Err(o);
        }
        taken.push(o.into_slot());
        Ok(())
    });
    assert_eq!((n, a.len(), firsts(&mut a)[0]), (20, 30, 31));
    local.put_bulk(taken);
    a.free_sent();
    assert_eq!(census(&memory, &local), BUFFERS);
}

/// Packets that are refused stay, in order, and the others leave in order: wherever they stand, and chains with them.
#[test]
fn a_drain_of_each_passes_over_what_is_refused() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    fill(&mut b, pool, 40);
    let mut c = Chain::new(&local, local.take(pool).unwrap(), 2000).unwrap();
    c.push(local.take(pool).unwrap(), 9).unwrap();
    assert!(c.finish(&mut b, Meta { port: 3, ..Meta::default() }).is_ok());
    for (i, mut p) in b.iter_mut().enumerate() {
        p.bytes_mut()[0] = i as u8;
    }
    let mut out = Batch::new(&local);
    let mut i = 0;
    let n = b.drain_each(|p| {
        i += 1;
        if (i - 1) % 3 == 0 {
            return Err(p);
        }
        assert_eq!(out.take_parcels(&mut std::iter::once(p.into())), 1);
        Ok(())
    });
    let firsts = |b: &mut Batch| b.iter_mut().map(|p| p.bytes()[0]).collect::<Vec<_>>();
    assert_eq!((n, b.len(), out.len(), b.one_port()), (27, 14, 27, Some(3)));
    assert_eq!(firsts(&mut b), (0..41).filter(|i| i % 3 == 0).collect::<Vec<u8>>());
    assert_eq!(firsts(&mut out), (0..41).filter(|i| i % 3 != 0).collect::<Vec<u8>>());
    assert_eq!(out.bytes_from(26), 2009, "the chain came along");
    assert_eq!(
        b.drain_each(|p| {
            p.free(&local);
            Ok(())
        }),
        14
    );
    fill(&mut b, pool, 40);
    let mut parcels = Vec::new();
    b.drain_each(|p| {
        parcels.push(mem::Parcel::from(p));
        Ok(())
    });
    let mut parcels = parcels.into_iter();
    assert_eq!(
        (out.take_parcels(&mut parcels), out.len(), parcels.len()),
        (37, BURST, 3),
        "no more than fit"
    );
    parcels.for_each(|p| p.free(&local));
    out.free_sent();
    assert_eq!((census(&memory, &local), local.lost()), (BUFFERS, 0));
}

#[test]
fn packets_grow_shrink_and_never_leave_their_buffer() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    fill(&mut b, pool, 1);
    let mut p = b.pkt(0).unwrap();
    p.bytes_mut().fill(1);
    p.prepend(128).unwrap().fill(2);
    assert!(p.prepend(1).is_none(), "the headroom is used up");
    assert_eq!((p.len(), p.bytes()[127], p.bytes()[128]), (188, 2, 1));
    p.trim(130).unwrap();
    assert_eq!((p.len(), p.bytes()[0]), (58, 1));
    assert!(p.trim(59).is_none());
    assert!(p.resize(2110).is_some() && p.resize(2111).is_none(), "2240 - 130");
    b.free_sent();
}

fn chain(local: &Local, pool: PoolId, lens: &[u16]) -> Chain {
    let mut c: Option<Chain> = None;
    for &len in lens {
        let slot = local.take(pool).unwrap();
        match c.as_mut() {
            None => c = Some(Chain::new(local, slot, len).map_err(|s| local.put(s)).unwrap()),
            Some(c) => c.push(slot, len).map_err(|s| local.put(s)).unwrap(),
        }
    }
    c.unwrap()
}

#[test]
fn chains_are_owned_by_their_head() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    chain(&local, pool, &[2000, 2000, 500]).finish(&mut b, Meta::default()).map_err(Chain::free).unwrap();
    fill(&mut b, pool, 2);
    assert_eq!((b.bytes_from(0), b.bytes_from(1)), (4620, 120));
    let mut p = b.pkt(0).unwrap();
    assert_eq!(
        (p.total_len(), p.len(), p.segments().map(<[u8]>::len).collect::<Vec<_>>()),
        (4500, 2000, vec![2000, 2000, 500])
    );
    p.bytes_mut().fill(7);
    let copy = b.copy(0, pool).unwrap();
    assert_eq!((local.parked(), census(&memory, &local)), (1, BUFFERS - 8));
    copy.consume();
    let mut drops = DropCounts::default();
    b.drop_all(DropReason::TooLong, &mut drops);
    assert_eq!((drops.total(), census(&memory, &local), local.parked(), local.lost()), (3, BUFFERS, 0, 0));
    drop(chain(&local, pool, &[100, 100]));
    drop(chain(&local, pool, &[100]));
    assert_eq!(census(&memory, &local), BUFFERS, "an unfinished chain is freed whole");
}

#[test]
fn a_copy_of_a_chain_holds_the_same_bytes_elsewhere() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    chain(&local, pool, &[100, 50])
        .finish(&mut b, Meta { port: 9, ..Meta::default() })
        .map_err(Chain::free)
        .unwrap();
    let mut p = b.pkt(0).unwrap();
    p.bytes_mut().fill(3);
    p.prepend(14).unwrap().fill(4);
    let mut ext = p.ext();
    ext.vlan = 77;
    p.set_ext(ext);
    let mut copy = b.copy(0, pool).unwrap();
    b.pkt(0).unwrap().bytes_mut().fill(9);
    let c = copy.pkt();
    assert_eq!(
        (c.total_len(), c.len(), c.bytes()[0], c.bytes()[14], c.ext().vlan, c.port()),
        (164, 114, 4, 3, 77, 9)
    );
    copy.consume();
    while let Some(all) = PacketBuf::fresh(&local, pool) {
        b.push_buf(all).map_err(PacketBuf::consume).ok();
        if b.room() == 0 {
            break;
        }
    }
    b.free_sent();
    assert_eq!(census(&memory, &local), BUFFERS);
}

#[test]
fn pull_makes_bytes_contiguous_and_frees_what_is_empty() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    chain(&local, pool, &[10, 20, 30]).finish(&mut b, Meta::default()).map_err(Chain::free).unwrap();
    let mut p = b.pkt(0).unwrap();
    assert!(p.pull(5) && p.len() == 10, "nothing to do");
    assert!(!p.pull(61), "the frame is shorter");
    assert!(p.pull(25));
    assert_eq!(p.segments().map(<[u8]>::len).collect::<Vec<_>>(), [25, 5, 30]);
    assert!(p.pull(60));
    assert_eq!((p.len(), p.total_len(), p.flags().has(Flags::CHAIN)), (60, 60, false));
    assert_eq!(census(&memory, &local), BUFFERS - 1);
    b.free_sent();
}

#[test]
fn parked_packets_are_counted_and_letting_one_go_is_a_loss() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    fill(&mut b, pool, 3);
    let (x, y, z) = (b.pop().unwrap(), b.pop().unwrap(), b.pop().unwrap());
    assert_eq!((b.pop().is_none(), local.parked()), (true, 3));
    b.push_buf(x).map_err(PacketBuf::consume).unwrap();
    let mut drops = DropCounts::default();
    y.drop_with(DropReason::NoRoute, &mut drops);
    drop(z);
    assert_eq!((local.parked(), local.lost(), drops.total(), b.free_sent()), (0, 1, 1, 1));
    assert_eq!(census(&memory, &local), BUFFERS);
}

#[test]
fn pools_of_different_nodes_mix_in_one_batch() {
    let (memory, first) = memory();
    let second = memory.add_pool(64, None, Pages::Any).unwrap().id();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    for i in 0..60 {
        let slot = local.take(if i % 2 == 0 { first } else { second }).unwrap();
        b.push(slot, 60, Meta::default()).unwrap();
    }
    b.free_sent();
    drop((b, local));
    let depots: Vec<_> = memory.pools().map(|p| (p.depot(), p.capacity())).collect();
    assert_eq!(depots, [(BUFFERS, BUFFERS), (64, 64)], "each buffer went home");
}

#[test]
fn a_batch_is_filled_with_fresh_buffers_as_far_as_batch_and_pool_go() {
    let (memory, pool) = memory();
    let local = Local::new(&memory);
    let mut b = Batch::new(&local);
    assert_eq!(b.fill(pool, 9, 2113, Meta::default()), 0, "no buffer has room for that");
    let meta = Meta { port: 7, flags: Flags::HASH.with(Flags::CHAIN), hash: 5 };
    assert_eq!((b.fill(pool, 40, 60, meta), b.fill(pool, 40, 61, meta), b.len()), (40, 24, BURST));
    let p = b.pkt(40).unwrap();
    assert_eq!((p.len(), p.port(), p.hash(), p.flags()), (61, 7, 5, Flags::HASH));
    let mut others: Vec<Batch> = (0..8).map(|_| Batch::new(&local)).collect();
    let got: usize = others.iter_mut().map(|o| o.fill(pool, BURST, 60, meta)).sum();
    assert_eq!((got, census(&memory, &local)), (BUFFERS - BURST, 0), "the pool ends first");
    for o in &mut others {
        o.free_sent();
    }
    b.free_sent();
    assert_eq!((census(&memory, &local), local.lost()), (BUFFERS, 0));
}

#[test]
fn parcels_carry_packets_and_chains_to_another_worker() {
    let (memory, pool) = memory();
    let (to, from) = std::sync::mpsc::channel::<mem::Parcel>();
    std::thread::scope(|s| {
        let m = &memory;
        s.spawn(move || {
            let local = Local::new(m);
            let mut b = Batch::new(&local);
            fill(&mut b, pool, 2);
            let mut c = Chain::new(&local, local.take(pool).unwrap(), 2000).unwrap();
            c.push(local.take(pool).unwrap(), 9).unwrap();
            assert!(c.finish(&mut b, Meta::default()).is_ok());
            b.pkt(0).unwrap().bytes_mut()[59] = 0xab;
            b.drain_while(|p| {
                to.send(p.into()).unwrap();
                Ok(())
            });
        });
        s.spawn(move || {
            let local = Local::new(m);
            let mut b = Batch::new(&local);
            for mut p in from {
                p.set_port(9);
                b.push_parcel(p).unwrap();
            }
            assert_eq!((b.len(), b.bytes_from(0), b.one_port()), (3, 2129, Some(9)));
            assert_eq!(b.pkt(0).unwrap().bytes()[59], 0xab);
            b.drain_while(|p| {
                mem::Parcel::from(p).free(&local);
                Ok(())
            });
            assert_eq!(local.lost(), 0);
        });
    });
    assert_eq!(memory.depot(), BUFFERS);
}

#[test]
fn parts_of_a_ring_are_filled_and_emptied_and_holes_are_passed_over() {
    let (memory, pool) = memory();
    for pools in 1..=2 {
        let local = Local::new(&memory);
        let mut ring = [const { None }; 100];
        assert_eq!(local.take_into(pool, &mut ring[..70]), 70);
        local.put(ring[33].take().unwrap());
        assert_eq!(census(&memory, &local), memory.capacity() - 69);
        local.put_all(&mut ring);
        assert!(ring.iter().all(Option::is_none));
        assert_eq!(census(&memory, &local), memory.capacity());
        drop(local);
        if pools == 1 {
            memory.add_pool(64, None, Pages::Any).unwrap();
        }
    }
}

#[test]
fn workers_that_come_and_go_leave_the_depot_as_they_found_it() {
    let (memory, pool) = memory();
    // Each pair of workers leaves two magazines that are neither full nor empty.
    for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
        let slot = Local::new(&memory).take(pool).unwrap();
        Local::new(&memory).put(slot);
    }
    assert_eq!(memory.depot(), BUFFERS);
    let local = Local::new(&memory);
    let all: Vec<_> = core::iter::from_fn(|| local.take(pool)).collect();
    assert_eq!((all.len(), memory.depot()), (BUFFERS, 0), "what was gathered is given out again");
    local.put_bulk(all);
    assert_eq!(census(&memory, &local), BUFFERS);
}

#[test]
#[should_panic(expected = "one owner")]
fn rings_cannot_be_carved_out_of_packet_memory() {
    let (memory, pool) = memory();
    hw::DmaPool::new(Arc::clone(memory.pool(pool).unwrap().arena()));
}
