//! The hot paths: each is one function with a fixed workload, and one line in [`PATHS`].

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use graph::{Graph, OnFull, RxLane, TxLane};
use hw::{Pages, Window};
use mem::{Batch, Layout, Local, Memory, PoolId};
use meter::QueueMeter;
use port::{Driver, OpenEnv, OpenPort, PortConfig, WorkerEnv};
use ring::RingSize;

use super::{nic, stages, switch};
use crate::run::null::Work;
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
    HotPath { name: "breath_forward", unit: "packet, null to null, counters on", run: breath::<true, false> },
    HotPath {
        name: "breath_forward_bare",
        unit: "packet, the same, counters off",
        run: breath::<false, false>,
    },
    HotPath { name: "breath_macswap", unit: "packet, null to null, counters on", run: breath::<true, true> },
    HotPath {
        name: "l2switch_known",
        unit: "packet, through the switch into a null port",
        run: switch::l2switch,
    },
    HotPath {
        name: "l2switch_shared",
        unit: "packet, the same as one of two workers",
        run: stages::l2switch_shared,
    },
    HotPath {
        name: "vlan_access",
        unit: "packet, tagged, through the switch, untagged",
        run: stages::vlan_access,
    },
    HotPath { name: "flow_hash", unit: "frame, TCP over IPv4", run: stages::flow_hash },
    HotPath { name: "filter_type", unit: "frame, one comparison of its type", run: stages::filter_type },
    HotPath { name: "filter_flow", unit: "frame, addresses, ports and flags", run: stages::filter_flow },
    HotPath {
        name: "filter_stage",
        unit: "packet, filtered by port into a null port",
        run: stages::filter_stage,
    },
    HotPath { name: "sample", unit: "packet, one in 1000 copied, into a null port", run: stages::sample },
    HotPath { name: "ixgbe_rx32", unit: "packet, received and its buffer replaced", run: nic::ixgbe::<true> },
    HotPath { name: "ixgbe_tx32", unit: "packet, sent and reaped", run: nic::ixgbe::<false> },
];

/// Bursts of one workload: enough that the frame's own instructions do not show.
pub(super) const BURSTS: u64 = 4096;
/// Packets of a burst.
pub(super) const BURST: usize = 32;
/// Buffers of a workload's pool.
pub(super) const BUFFERS: usize = 2048;

/// Callgrind collects while this runs: its name is known to `callgrind.rs`.
#[inline(never)]
pub(super) fn collect(work: &mut dyn FnMut()) {
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
pub(super) fn packet_memory() -> (Local, PoolId) {
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

/// Breaths of a worker between two null ports, as the runtime's loop calls them.
fn breath<const METERED: bool, const SWAP: bool>() -> u64 {
    let (local, _) = packet_memory();
    let work = if SWAP { Work::MacSwap } else { Work::Forward };
    let mut graph = work.graph(&local).expect("one stage, all exits joined");
    let mut ports = null_ports(&local, METERED, &mut graph);
    let mut units = 0;
    collect(&mut || {
        units = (0..BURSTS / 2).map(|now| graph.breathe(now, now % 16 == 0).received as u64).sum()
    });
    ports.iter_mut().for_each(|p| p.rx_off().expect("a source can always be told to end"));
    units
}

/// Two null ports with their queues in `graph`.
pub(super) fn null_ports(local: &Local, metered: bool, graph: &mut Graph) -> Vec<Box<dyn OpenPort>> {
    let driver = null::Null::new();
    let env = WorkerEnv { local: local.clone(), node: None, metered };
    let mut ports = Vec::new();
    for port in 0..2 {
        let open_env = OpenEnv { memory: Arc::clone(local.memory()), name: format!("p{port}").into() };
        let mut open = driver.open(&toml::Table::new(), &open_env).expect("no keys are right");
        let queues = open.start(&PortConfig::new(port)).expect("a usual configuration");
        for setup in queues.rx {
            let Ok(queue) = setup.attach(&env) else { unreachable!("the memory has a pool") };
            graph.add_rx(RxLane {
                port,
                id: 0,
                queue,
                base: QueueMeter::default(),
                published: Arc::default(),
            });
        }
        for setup in queues.tx {
            let Ok(queue) = setup.attach(&env) else { unreachable!("a sink needs nothing") };
            graph.add_tx(TxLane::new(local, (port, 0), queue, OnFull::Drop, Arc::default()));
        }
        ports.push(open);
    }
    ports
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
