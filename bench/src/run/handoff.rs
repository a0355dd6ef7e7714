//! `handoff`: what it costs to hand a packet from one worker to another.
//!
//! Between two cores it is the whole runtime: one worker that receives from a null port, runs a stage and sends, beside two
//! that share this work, one receiving, the other running the stage and sending. Both sides are charged with their useful
//! cycles only (a worker that waits for the other does not work), so that the cost of one hand-off is what both of the
//! pipeline take together, less what the one worker takes. It includes the lines that change cores: the ring's, and with
//! whole frames the headers', which one core writes and the other reads and changes.
//!
//! On one core it is the rings alone, in and out, and what it costs to tell flows apart.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use graph::OnFull;
use handoff::{Feed, Link, Spread, handoff};
use mem::{Batch, Local, Memory, Meta, PoolId};
use port::{Driver, OpenEnv, PortConfig, RxQueue, RxSetup, TxQueue, TxSetup, WorkerEnv};
use ring::RingSize;
use rt::{Role, Runtime, Status, WorkerPlan};

use super::null::Work;
use super::{Output, Timing, pool};
use crate::BenchError;
use crate::cpu::{self, Core, SchedStat};
use crate::distance;
use crate::harness::one_core::OneCore;
use crate::harness::report::{Compare, Report};
use crate::harness::{Candidate, Reading, Share};
use crate::manifest::{Manifest, Peer};
use crate::session;

/// Buffers in the pool: the default of a configuration.
const BUFFERS: usize = 16_384;
const BULK: usize = 32;
/// Flows that take turns where frames are whole.
const FLOWS: u32 = 64;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
}

/// Measures.
///
/// # Errors
/// Of the machine, and [`BenchError::Unexplained`].
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (&args.timing, args.timing.json);
    let priority = session::raise();
    let cores = timing.pair()?;
    let (local, pool, pages) = pool::packet_memory(BUFFERS)?;
    let state =
        vec![Peer { name: "ringwright", state: format!("{BUFFERS} buffers on {} pages", pages.name()) }];
    let apart = distance::measure(cores.0, cores.1)?;
    let parts = [(cores.0, "the one worker; sends to the other"), (cores.1, "receives from it")];
    let manifest = Manifest::new(&parts, priority, state, Some(apart));
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("handoff", manifest, json);
    for (what, keys) in
        [("lengths only", String::new()), ("frames written", format!("frames = \"udp\"\nflows = {FLOWS}"))]
    {
        let title = format!("macswap between null ports, one worker and two, 64-byte packets, {what}");
        let mut all = between(cores, local.memory(), &keys);
        let blocks = timing.measure(&title, Some(cores), &mut all)?;
        output.add(Report::new(&title, "packets", &blocks, &[Compare::Cost(1, 0)], tsc_hz), json);
    }
    let title = "in and out of rings on one core, bulk 32";
    let mut all = alone(&local, pool, cores);
    let blocks = timing.measure(title, None, &mut all)?;
    let compare = [Compare::Cost(1, 0), Compare::Cost(2, 1)];
    output.add(Report::new(title, "packets", &blocks, &compare, tsc_hz), json);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

/// Whose cycles count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Those of the worker that does everything.
    One,
    Both,
    Sender,
    Receiver,
}

fn between(cores: (Core, Core), memory: &Arc<Memory>, keys: &str) -> Vec<Box<dyn Candidate>> {
    let names = [
        (Whose::One, "run to completion"),
        (Whose::Both, "pipeline, both workers"),
        (Whose::Sender, "pipeline, the sending worker"),
        (Whose::Receiver, "pipeline, the receiving worker"),
    ];
    let one = |(whose, name)| -> Box<dyn Candidate> {
        Box::new(Between { name, whose, cores, memory: Arc::clone(memory), keys: keys.to_owned() })
    };
    names.map(one).into()
}

/// A runtime of one worker, or of two.
struct Between {
    name: &'static str,
    whose: Whose,
    cores: (Core, Core),
    memory: Arc<Memory>,
    keys: String,
}

impl Between {
    fn runtime(&self) -> Result<Runtime, BenchError> {
        let mut runtime = Runtime::new(Arc::clone(&self.memory));
        let driver = null::Null::new();
        let keys: toml::Table = self.keys.parse().expect("keys of the benchmark's own");
        for (name, keys) in [("p0", keys), ("p1", toml::Table::new())] {
            let env = OpenEnv { memory: Arc::clone(&self.memory), name: name.into() };
            // A ring that is full makes its sender wait: nothing is dropped, and waiting is no work.
            runtime.add_port(name, driver.open(&keys, &env)?, PortConfig::new(0), OnFull::Wait);
        }
        Ok(runtime)
    }

    fn plans(&self) -> Vec<WorkerPlan> {
        let (core, rx, tx) = (Some(self.cores.0.0), vec![(0, 0)], vec![(1, 0)]);
        let stage = |role, core: Core, rx, tx| WorkerPlan {
            core: Some(core.0),
            role,
            rx,
            tx,
            stages: 1,
            graph: Some(Box::new(|local| Work::MacSwap.graph(local))),
            ..WorkerPlan::default()
        };
        match self.whose {
            Whose::One => vec![stage(Role::RunToCompletion, self.cores.0, rx, tx)],
            Whose::Both | Whose::Sender | Whose::Receiver => vec![
                WorkerPlan { core, role: Role::Rx, rx, ..WorkerPlan::default() },
                stage(Role::Process, self.cores.1, Vec::new(), tx),
            ],
        }
    }

    /// A datapath is only worth timing if it loses nothing.
    fn check(&self, status: &Status) -> Result<(), BenchError> {
        let c = &status.conservation;
        match c.unexplained {
            Some(0) if c.dropped == 0 => Ok(()),
            unexplained => Err(BenchError::Unexplained {
                name: self.name.to_owned(),
                unexplained: unexplained.unwrap_or(0) + c.dropped,
                account: format!("{c:?}"),
            }),
        }
    }
}

impl Candidate for Between {
    fn name(&self) -> &str {
        self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        let mut runtime = self.runtime()?;
        runtime.start(self.plans())?;
        std::thread::sleep(window);
        let me = std::process::id();
        let share = |(thread, worker): (&'static str, &str)| {
            let tid = cpu::find_thread(me, |s| cpu::status_value(s, "Name") == Some(worker));
            let seen = tid.and_then(|tid| SchedStat::read(me, tid)).unwrap_or_default();
            Share { thread, share: seen.share_since(&SchedStat::default()) }
        };
        let threads = [("worker", "worker-0"), ("receiving worker", "worker-1")];
        let workers = if self.whose == Whose::One { 1 } else { 2 };
        let shares = threads[..workers].iter().copied().map(share).collect();
        let status = runtime.stop();
        self.check(&status)?;
        let useful = |i: usize| status.workers.get(i).map_or(0, |w| w.cycles.useful);
        let cycles = match self.whose {
            Whose::One | Whose::Sender => useful(0),
            Whose::Receiver => useful(1),
            Whose::Both => useful(0) + useful(1),
        };
        let items = status.conservation.sent;
        Ok(Reading { items, seconds: cycles as f64 / status.tsc_hz as f64, shares })
    }
}

/// Rings of one worker to itself.
pub struct Loop {
    tx: Box<dyn TxQueue>,
    rx: Vec<Box<dyn RxQueue>>,
    batch: Batch,
    pool: PoolId,
}

/// What a loop's packets go into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// A link to one port.
    Link,
    /// A spread over so many rings.
    Spread(usize),
}

impl Loop {
    /// Rings of 512 packets, empty.
    pub fn new(local: &Local, pool: PoolId, into: Into) -> Self {
        let env = WorkerEnv { local: local.clone(), node: None, metered: true };
        let size = RingSize::try_from(512).expect("a power of two");
        let n = if let Into::Spread(n) = into { n } else { 1 };
        let (mut feeds, mut rx): (Vec<Feed>, Vec<_>) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let (feed, inlet, _) = handoff(size);
            feeds.push(feed);
            let Ok(queue) = Box::new(inlet).attach(&env) else { unreachable!("a ring needs nothing") };
            rx.push(queue);
        }
        let setup: Box<dyn TxSetup> = match (into, feeds.pop()) {
            (Into::Link, Some(feed)) => Box::new(Link::new(feed, 1, Arc::default())),
            (_, last) => {
                feeds.extend(last);
                Box::new(Spread::new(feeds, Arc::default()))
            }
        };
        let Ok(tx) = setup.attach(&env) else { unreachable!("a ring needs nothing") };
        Self { tx, rx, batch: Batch::new(local), pool }
    }

    /// A burst, each packet of another flow.
    pub fn fill(&mut self) {
        self.batch.fill(self.pool, BULK, 60, Meta::default());
        for (flow, mut p) in (0u8..).zip(self.batch.iter_mut()) {
            let f = p.bytes_mut();
            f[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
            f[20..22].fill(0);
            f[23] = 17;
            f[26..34].copy_from_slice(&[10, 0, 0, flow, 198, 18, 0, 1]);
            f[34..38].copy_from_slice(&[4, flow, 0, 9]);
        }
    }

    /// The burst goes in and comes out again. Returns its packets.
    pub fn pass(&mut self) -> u64 {
        self.tx.tx_burst(&mut self.batch, 0);
        self.rx.iter_mut().map(|q| q.rx_burst(&mut self.batch) as u64).sum()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.batch.free_sent();
    }
}

fn alone(local: &Local, pool: PoolId, cores: (Core, Core)) -> Vec<Box<dyn Candidate>> {
    let candidate = |name: &str, into| -> Box<dyn Candidate> {
        let mut packets = Loop::new(local, pool, into);
        packets.fill();
        Box::new(OneCore::new(name, cores, move || packets.pass()))
    };
    vec![
        candidate("a link to a port", Into::Link),
        candidate("a spread over one ring", Into::Spread(1)),
        candidate("a spread over two rings, by flow", Into::Spread(2)),
        candidate("a spread over eight rings, by flow", Into::Spread(8)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(window: usize, buffers: usize) -> (Local, PoolId) {
        let layout = mem::Layout::for_frame_room(2048).unwrap();
        let memory = Memory::new(hw::Window::on_heap(window), layout);
        let pool = memory.add_pool(buffers, None, hw::Pages::Any).unwrap().id();
        (Local::new(&memory), pool)
    }

    #[test]
    fn a_block_of_either_kind_accounts_for_every_packet() {
        let (local, _) = memory(32 << 20, 8192);
        let cores = cpu::allowed();
        let pair = (cores[0], cores[cores.len() - 1]);
        for whose in [Whose::One, Whose::Both, Whose::Sender, Whose::Receiver] {
            let (memory, keys) = (Arc::clone(local.memory()), "frames = \"udp\"\nflows = 8".to_owned());
            let mut between = Between { name: "test", whose, cores: pair, memory, keys };
            // On a busy machine a block may pass before its workers get a core; not all of many.
            let mut blocks = (0..50).map(|_| {
                let r = between.block(Duration::from_millis(20)).unwrap();
                assert_eq!(r.shares.len(), if whose == Whose::One { 1 } else { 2 });
                r
            });
            assert!(blocks.any(|r| r.items > 0 && r.seconds > 0.0), "{whose:?}");
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let (local, pool) = memory(4 << 20, 1024);
        for into in [Into::Link, Into::Spread(1), Into::Spread(2), Into::Spread(8)] {
            let mut packets = Loop::new(&local, pool, into);
            packets.fill();
            for _ in 0..10 {
                assert_eq!(packets.pass(), BULK as u64, "{into:?}");
            }
        }
        assert_eq!((local.memory().depot() + local.cached(), local.lost()), (1024, 0));
    }
}
