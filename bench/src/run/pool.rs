//! `pool`: what it costs to take a buffer from a pool and to give it back, per buffer.

use std::collections::VecDeque;
use std::process::ExitCode;

use hw::{PageSize, Pages, Window};
use mem::{Batch, Layout, Local, Memory, Meta, PoolId, Slot};

use super::{Output, Timing};
use crate::BenchError;
use crate::cpu::Core;
use crate::harness::Candidate;
use crate::harness::one_core::OneCore;
use crate::harness::report::Report;
use crate::manifest::{Manifest, Peer};
use crate::session;

/// Buffers in the pool: the default of a configuration.
const BUFFERS: usize = 16_384;
/// Buffers that are held between being taken and given back in the candidates with a ring: one descriptor ring's worth.
const HELD: usize = 1024;
const BULK: usize = 32;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
}

/// Measures a bulk at a time, one at a time, through a batch, and with a ring's worth of buffers held.
///
/// # Errors
/// Of the machine.
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (&args.timing, args.timing.json);
    let priority = session::raise();
    let cores = timing.pair()?;
    let (local, pool, pages) = packet_memory(BUFFERS)?;
    let state =
        vec![Peer { name: "pool", state: format!("ours, {BUFFERS} buffers on {} pages", pages.name()) }];
    let manifest = Manifest::new(&[(cores.0, "worker")], priority, state, None);
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("pool", manifest, json);
    let title = "pool: take a buffer and give it back";
    let blocks = timing.measure(title, None, &mut candidates(&local, pool, cores))?;
    output.add(Report::new(title, "pairs", &blocks, &[], tsc_hz), json);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

/// A worker's handle on a pool of `buffers` on the largest pages there are.
///
/// # Errors
/// Of the machine.
pub fn packet_memory(buffers: usize) -> Result<(Local, PoolId, PageSize), BenchError> {
    let layout = Layout::for_frame_room(2048)?;
    let memory = Memory::new(Window::reserve(Window::LEN)?, layout);
    let pool = memory.add_pool(buffers, None, Pages::Any)?;
    let (id, pages) = (pool.id(), pool.arena().pages());
    Ok((Local::new(&memory), id, pages))
}

fn candidates(local: &Local, pool: PoolId, cores: (Core, Core)) -> Vec<Box<dyn Candidate>> {
    let (a, b, c, d) = (local.clone(), local.clone(), local.clone(), local.clone());
    let mut batch = Batch::new(local);
    let mut held = VecDeque::with_capacity(HELD + BULK);
    vec![
        Box::new(OneCore::new("bulk of 32", cores, move || bulk(&a, pool))),
        Box::new(OneCore::new("one at a time", cores, move || single(&b, pool))),
        Box::new(OneCore::new("bulk of 32 into a batch and out", cores, move || {
            through(&c, pool, &mut batch)
        })),
        Box::new(OneCore::new("bulk of 32, 1024 held", cores, move || hold(&d, pool, &mut held))),
    ]
}

/// Takes a bulk and gives it back, as rings do: all in the worker's magazines.
#[inline]
pub fn bulk(local: &Local, pool: PoolId) -> u64 {
    let mut ring = [const { None }; BULK];
    let n = local.take_into(pool, &mut ring);
    local.put_all(std::hint::black_box(&mut ring));
    n as u64
}

fn single(local: &Local, pool: PoolId) -> u64 {
    (0..BULK).filter_map(|_| local.take(pool)).map(|slot| local.put(std::hint::black_box(slot))).count()
        as u64
}

/// Takes a bulk into a batch and frees the batch, as a port without a device does.
#[inline]
pub fn through(local: &Local, pool: PoolId, batch: &mut Batch) -> u64 {
    for slot in local.take_bulk(pool, BULK) {
        if let Err(slot) = batch.push(slot, 60, Meta::default()) {
            local.put(slot);
        }
    }
    std::hint::black_box(&mut *batch).free_sent() as u64
}

/// Takes a bulk and gives back the one taken a ring's worth ago: the depot is asked now and then.
#[inline]
pub fn hold(local: &Local, pool: PoolId, held: &mut VecDeque<Slot>) -> u64 {
    held.extend(local.take_bulk(pool, BULK));
    let n = held.len().saturating_sub(HELD);
    local.put_bulk(held.drain(..n));
    n as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_gives_back_what_it_takes() {
        let memory = Memory::new(Window::on_heap(8 << 20), Layout::for_frame_room(2048).unwrap());
        let pool = memory.add_pool(2048, None, Pages::Any).unwrap().id();
        let local = Local::new(&memory);
        let (mut batch, mut held) = (Batch::new(&local), VecDeque::new());
        for _ in 0..100 {
            assert_eq!(bulk(&local, pool), 32);
            assert_eq!(single(&local, pool), 32);
            assert_eq!(through(&local, pool, &mut batch), 32);
            hold(&local, pool, &mut held);
        }
        assert_eq!(hold(&local, pool, &mut held), 32);
        assert_eq!(memory.depot() + local.cached() + held.len(), 2048);
        local.put_bulk(held.drain(..));
        assert_eq!(local.lost(), 0);
    }
}
