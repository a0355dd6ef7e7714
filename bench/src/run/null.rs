//! `null`: one worker forwards between two null ports on one core, beside testpmd between two `net_null`.
//!
//! Ours is the whole runtime as `ringwright run` starts it: a pinned worker, two RX and two TX queues, one stage, one
//! time stamp per breath, per-stage stamps on one breath in 16, publication every millisecond. It is started for each
//! block and stopped after it, so that the core is the peer's between our blocks; packets and cycles are the worker's own
//! count from start to stop. With counters on, every block must account for every packet.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use graph::{AnyStage, Graph, GraphBuilder, GraphError, OnFull, To};
use mem::{Local, Memory};
use port::{Driver, OpenEnv, PortConfig};
use rt::{Runtime, Status, WorkerPlan};
use stages::{Forward, MacSwap, PortMap};

use super::{Output, Timing};
use crate::BenchError;
use crate::cpu::{self, Core, SchedStat};
use crate::harness::report::{Compare, Report};
use crate::harness::{Candidate, Reading, Share};
use crate::manifest::{Manifest, Peer};
use crate::peers::testpmd::{Testpmd, TestpmdCandidate};
use crate::run::pool;
use crate::session;

/// Buffers in the pool: the default of a configuration.
const BUFFERS: usize = 16_384;

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
}

/// Measures.
///
/// # Errors
/// Of the machine or of a peer, and [`BenchError::Unexplained`].
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (&args.timing, args.timing.json);
    let priority = session::raise();
    let (worker, other) = timing.pair()?;
    let peer = match timing.no_peers {
        true => Err("left out by --no-peers".to_owned()),
        false => Testpmd::start(worker, other),
    };
    let (local, _, pages) = pool::packet_memory(BUFFERS)?;
    let state = peer.as_ref().map_or_else(|why| format!("skipped: {why}"), |p| p.borrow().version.clone());
    let ours = format!("{BUFFERS} buffers on {} pages", pages.name());
    let peers = vec![Peer { name: "ringwright", state: ours }, Peer { name: "testpmd", state }];
    let manifest = Manifest::new(&[(worker, "worker of each candidate in turn")], priority, peers, None);
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("null", manifest, json);
    let mut all: Vec<Box<dyn Candidate>> = Vec::new();
    for (work, metered) in
        [(Work::Forward, true), (Work::Forward, false), (Work::MacSwap, true), (Work::MacSwap, false)]
    {
        all.push(Box::new(Ours {
            name: work.name(metered),
            work,
            metered,
            worker,
            memory: Arc::clone(local.memory()),
        }));
    }
    let mut compare = vec![Compare::Cost(0, 1), Compare::Cost(2, 3)];
    if let Ok(peer) = &peer {
        compare.extend([Compare::Ratio(0, all.len()), Compare::Ratio(2, all.len() + 1)]);
        all.extend(["io", "macswap"].map(|m| Box::new(TestpmdCandidate::new(peer, m)) as Box<dyn Candidate>));
    }
    let title = "two null ports, one worker, burst 32, 64-byte frames";
    let blocks = timing.measure(title, None, &mut all)?;
    output.add(Report::new(title, "packets", &blocks, &compare, tsc_hz), json);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

/// The stage between the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Packets are not looked at.
    Forward,
    /// Addresses are swapped.
    MacSwap,
}

impl Work {
    fn name(self, metered: bool) -> String {
        let stage = match self {
            Self::Forward => "forward",
            Self::MacSwap => "macswap",
        };
        format!("{stage}{}", if metered { "" } else { ", counters off" })
    }

    /// The stage, between ports 0 and 1.
    pub fn stage(self) -> Box<dyn AnyStage> {
        let pair = PortMap::pairs(&[(0, 1)]).expect("two different ports");
        match self {
            Self::Forward => Box::new(Forward::new(pair)),
            Self::MacSwap => Box::new(MacSwap::new(Some(pair))),
        }
    }

    /// A graph of that one stage.
    pub fn graph(self, local: &Local) -> Result<Graph, GraphError> {
        let mut builder = GraphBuilder::new(local);
        let stage = builder.add("work", self.stage());
        builder.build(To::Node(stage))
    }
}

/// The runtime with one worker.
struct Ours {
    name: String,
    work: Work,
    metered: bool,
    worker: Core,
    memory: Arc<Memory>,
}

impl Ours {
    fn runtime(&self) -> Result<Runtime, BenchError> {
        let mut runtime = Runtime::new(Arc::clone(&self.memory));
        runtime.metered = self.metered;
        let driver = null::Null::new();
        for name in ["p0", "p1"] {
            let env = OpenEnv { memory: Arc::clone(&self.memory), name: name.into() };
            let open = driver.open(&toml::Table::new(), &env)?;
            runtime.add_port(name, open, PortConfig::new(0), OnFull::Drop);
        }
        Ok(runtime)
    }

    fn plan(&self) -> WorkerPlan {
        let (queues, work) = (vec![(0, 0), (1, 0)], self.work);
        WorkerPlan {
            core: Some(self.worker.0),
            rx: queues.clone(),
            tx: queues,
            stages: 1,
            graph: Some(Box::new(move |local| work.graph(local))),
            ..WorkerPlan::default()
        }
    }

    /// A datapath is only worth timing if it loses nothing. Without meters there is nothing to check against.
    fn check(&self, status: &Status) -> Result<(), BenchError> {
        match status.conservation.unexplained {
            Some(unexplained) if self.metered && unexplained > 0 => Err(BenchError::Unexplained {
                name: self.name.clone(),
                unexplained,
                account: format!("{:?}", status.conservation),
            }),
            _ => Ok(()),
        }
    }
}

impl Candidate for Ours {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        let mut runtime = self.runtime()?;
        runtime.start(vec![self.plan()])?;
        std::thread::sleep(window);
        let me = std::process::id();
        let thread = cpu::find_thread(me, |status| cpu::status_value(status, "Name") == Some("worker-0"));
        let seen = thread.and_then(|tid| SchedStat::read(me, tid)).unwrap_or_default();
        let status = runtime.stop();
        self.check(&status)?;
        let worker = &status.workers[0];
        let cycles = worker.cycles.useful + worker.cycles.idle;
        let share = Share { thread: "worker", share: seen.share_since(&SchedStat::default()) };
        Ok(Reading {
            items: worker.packets,
            seconds: cycles as f64 / status.tsc_hz as f64,
            shares: vec![share],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_forwards_and_accounts_for_every_packet() {
        let layout = mem::Layout::for_frame_room(2048).unwrap();
        let memory = Memory::new(hw::Window::on_heap(16 << 20), layout);
        memory.add_pool(6144, None, hw::Pages::Any).unwrap();
        for work in [Work::Forward, Work::MacSwap] {
            for metered in [true, false] {
                let worker = cpu::allowed()[0];
                let mut ours =
                    Ours { name: work.name(metered), work, metered, worker, memory: Arc::clone(&memory) };
                // On a busy machine a block may pass before its worker gets a core; not all of many.
                let mut blocks = (0..50).map(|_| {
                    let r = ours.block(Duration::from_millis(20)).unwrap();
                    assert_eq!(memory.depot(), memory.capacity(), "all buffers are back");
                    r
                });
                let has_forwarded = blocks.any(|r| r.items > 0 && r.seconds > 0.0);
                assert!(has_forwarded, "{work:?}, metered {metered}");
            }
        }
    }
}
