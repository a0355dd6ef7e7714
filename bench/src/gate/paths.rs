//! The hot paths: each is one function with a fixed workload, and one line in [`PATHS`].

use std::collections::VecDeque;
use std::hint::black_box;

use hw::{Pages, Window};
use mem::{Batch, Layout, Local, Memory, PoolId};
use ring::RingSize;

use crate::run::pool;

/// A hot path.
pub struct HotPath {
    /// Its key in the stored file.
    pub name: &'static str,
    /// What its figure is per.
    pub unit: &'static str,
    /// Sets up, runs the workload inside [`collect`], returns its units.
    pub run: fn() -> u64,
}

/// All of them, in the order of the table.
pub const PATHS: &[HotPath] = &[
    HotPath { name: "ring_spsc_bulk32", unit: "item, pushed and popped", run: ring_spsc::<32> },
    HotPath { name: "ring_spsc_bulk8", unit: "item, pushed and popped", run: ring_spsc::<8> },
    HotPath { name: "ring_mpmc_bulk32", unit: "item, pushed and popped", run: ring_mpmc::<32> },
    HotPath { name: "pool_bulk32", unit: "buffer, taken and given back", run: pool_bulk },
    HotPath { name: "pool_held1024", unit: "buffer, with 1024 held", run: pool_held },
    HotPath { name: "batch_fill_free32", unit: "packet, into a batch and freed", run: batch_fill_free },
];

/// Bursts of one workload: enough that the frame's own instructions do not show.
const BURSTS: u64 = 4096;
/// Buffers of a workload's pool.
const BUFFERS: usize = 2048;

/// Callgrind collects while this runs: its name is known to `callgrind.rs`.
#[inline(never)]
fn collect(work: &mut dyn FnMut()) {
    // Through `black_box`, so that the compiler can neither inline nor specialise it for one workload.
    black_box(work)();
}

fn ring_spsc<const BULK: usize>() -> u64 {
    let (mut producer, mut consumer) = ring::spsc::<u64>(RingSize::try_from(1024).expect("a power of two"));
    let (items, mut out) = (black_box([7u64; BULK]), [0u64; BULK]);
    let mut units = 0;
    collect(&mut || {
        for _ in 0..BURSTS {
            let pushed = producer.push(&items);
            let popped = consumer.pop_slice(&mut out);
            black_box(&mut out);
            units += pushed.min(popped) as u64;
        }
    });
    units
}

fn ring_mpmc<const BULK: usize>() -> u64 {
    let ring = ring::Mpmc::<u64>::new(RingSize::try_from(1024).expect("a power of two"));
    let (items, mut out) = (black_box([7u64; BULK]), [0u64; BULK]);
    let mut units = 0;
    collect(&mut || {
        for _ in 0..BURSTS {
            let pushed = ring.push(&items);
            let popped = ring.pop_slice(&mut out);
            black_box(&mut out);
            units += pushed.min(popped) as u64;
        }
    });
    units
}

/// Packet memory for a workload: on the heap, as valgrind knows it.
fn packet_memory() -> (Local, PoolId) {
    let layout = Layout::for_frame_room(2048).expect("a usual buffer");
    let memory = Memory::new(Window::on_heap(BUFFERS * layout.stride()), layout);
    let pool = memory.add_pool(BUFFERS, None, Pages::Any).expect("the window was made for it").id();
    (Local::new(&memory), pool)
}

fn pool_bulk() -> u64 {
    let (local, pool) = packet_memory();
    let mut units = 0;
    collect(&mut || units = (0..BURSTS).map(|_| pool::bulk(&local, pool)).sum());
    units
}

fn pool_held() -> u64 {
    let (local, pool) = packet_memory();
    let (mut held, mut units) = (VecDeque::with_capacity(BUFFERS), 0);
    collect(&mut || units = (0..BURSTS).map(|_| pool::hold(&local, pool, &mut held)).sum());
    local.put_bulk(held.drain(..));
    units
}

fn batch_fill_free() -> u64 {
    let (local, pool) = packet_memory();
    let (mut batch, mut units) = (Batch::new(&local), 0);
    collect(&mut || units = (0..BURSTS).map(|_| pool::through(&local, pool, &mut batch)).sum());
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_keys_and_every_workload_has_units() {
        let mut names: Vec<_> = PATHS.iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PATHS.len());
        for path in PATHS {
            assert!(path.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            assert!((path.run)() > 0, "{}", path.name);
        }
    }
}
