//! Two workers' packet memory, and frames that say which flow they are of and where they stand in it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use hw::{Pages, Window};
use mem::{Batch, Flags, Layout, Local, Memory, Meta, PoolId};
use port::{RxQueue, RxSetup, TxQueue, TxSetup, WorkerEnv};
use ring::RingSize;

pub const BUFFERS: usize = 1024;

pub fn memory() -> (Arc<Memory>, PoolId) {
    let memory = Memory::new(Window::on_heap(4 << 20), Layout::for_frame_room(2048).unwrap());
    let id = memory.add_pool(BUFFERS, None, Pages::Any).unwrap().id();
    (memory, id)
}

pub fn size(n: u32) -> RingSize {
    RingSize::try_from(n).unwrap()
}

/// A worker's way to the memory.
pub fn worker(memory: &Arc<Memory>) -> WorkerEnv {
    WorkerEnv { local: Local::new(memory), node: None, metered: true }
}

pub fn tx(setup: impl TxSetup + 'static, env: &WorkerEnv) -> Box<dyn TxQueue> {
    Box::new(setup).attach(env).map_err(|e| e.0).unwrap()
}
pub fn rx(setup: impl RxSetup + 'static, env: &WorkerEnv) -> Box<dyn RxQueue> {
    Box::new(setup).attach(env).map_err(|e| e.0).unwrap()
}

/// An Ethernet, IPv4 and UDP frame of `flow`, numbered in its payload.
pub fn frame(flow: u32, number: u32) -> [u8; 60] {
    let mut f = [0; 60];
    f[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    f[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    f[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    f[16..18].copy_from_slice(&46u16.to_be_bytes());
    f[22..24].copy_from_slice(&[64, 17]);
    f[26..30].copy_from_slice(&(0x0a00_0000 + flow).to_be_bytes());
    f[30..34].copy_from_slice(&[198, 18, 0, 1]);
    f[34..36].copy_from_slice(&(1024 + flow as u16).to_be_bytes());
    f[36..38].copy_from_slice(&9u16.to_be_bytes());
    f[38..40].copy_from_slice(&26u16.to_be_bytes());
    f[42..46].copy_from_slice(&flow.to_be_bytes());
    f[46..50].copy_from_slice(&number.to_be_bytes());
    f
}

/// Flow and number of a frame.
pub fn read(bytes: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (word(42), word(46))
}

/// Adds frames, those of odd flows with a hash that a device left, marked with port 3.
pub fn add(batch: &mut Batch, pool: PoolId, frames: &[(u32, u32)]) {
    let local = batch.local().clone();
    for (slot, (flow, number)) in local.take_bulk(pool, frames.len()).zip(frames) {
        let flags = if number % 2 == 1 { Flags::HASH } else { Flags::default() };
        let meta = Meta { hash: 77 * number, flags, port: 3 };
        batch.push(slot, 60, meta).map_err(|s| local.put(s)).unwrap();
        let i = batch.len() - 1;
        batch.pkt(i).unwrap().bytes_mut().copy_from_slice(&frame(*flow, *number));
    }
}

/// What a batch holds; it is empty afterwards.
pub fn empty(batch: &mut Batch) -> Vec<(u32, u32)> {
    let all = batch.iter_mut().map(|p| read(p.bytes())).collect();
    batch.free_sent();
    all
}

/// Everything that waits at a queue.
pub fn receive(queue: &mut dyn RxQueue, env: &WorkerEnv) -> Vec<(u32, u32)> {
    let (mut batch, mut all) = (Batch::new(&env.local), Vec::new());
    while queue.rx_burst(&mut batch) > 0 {
        all.extend(empty(&mut batch));
    }
    all
}

/// The numbers of each flow, in order of arrival.
pub fn by_flow(frames: &[(u32, u32)]) -> BTreeMap<u32, Vec<u32>> {
    let mut flows = BTreeMap::<u32, Vec<u32>>::new();
    frames.iter().for_each(|(flow, number)| flows.entry(*flow).or_default().push(*number));
    flows
}
