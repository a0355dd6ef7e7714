//! DPDK's testpmd forwarding between two `net_null` ports, worker pinned to the benchmark's core.
//!
//! One process serves the modes `io` and `macswap`. Between its blocks it has no thread on the core: after `stop` its
//! worker sleeps in a read. Packets come from testpmd's own account of a `start`..`stop` (RX of both ports), time from
//! the kernel's account of the worker thread over the same span: run time plus time spent waiting for the core.

use std::cell::RefCell;
use std::fs;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::{Lines, installed};
use crate::BenchError;
use crate::cpu::{self, Core, SchedStat, parse_list};
use crate::harness::{Candidate, Reading, Share};

const PEER: &str = "dpdk-testpmd";
const PATIENCE: Duration = Duration::from_secs(20);

/// The running program.
#[derive(Debug)]
pub struct Testpmd {
    lines: Lines,
    worker: u32,
    mode: Option<&'static str>,
    /// Its version and memory.
    pub version: String,
}

impl Testpmd {
    /// Starts it with its worker on `worker` and its main thread, which sleeps, on `main`; `Err` holds why it is
    /// skipped.
    pub fn start(worker: Core, main: Core) -> Result<Rc<RefCell<Self>>, String> {
        if !installed(PEER) {
            return Err("not installed; apt-get install dpdk-dev".into());
        }
        if worker == main {
            return Err("needs a second core for its main thread".into());
        }
        // stdbuf: testpmd's answers must not wait for a full buffer.
        let attempts = [["--in-memory", "-m", "256"], ["--no-huge", "-m", "256"]];
        let mut last = String::new();
        for memory in attempts {
            match Self::launch(worker, main, &memory) {
                Ok(it) => return Ok(Rc::new(RefCell::new(it))),
                Err(e) => last = e.to_string(),
            }
        }
        Err(last)
    }

    fn launch(worker: Core, main: Core, memory: &[&str]) -> Result<Self, BenchError> {
        let mut command = Command::new("stdbuf");
        command.args(["-oL", PEER, "-v", "-n", "2", "--no-pci", "--no-telemetry"]).args(memory);
        command.args(["-l", &format!("{main},{worker}"), "--main-lcore", &main.to_string()]);
        command.args([&format!("--file-prefix=ringwright-bench-{}", std::process::id())]);
        command.args(["--vdev=net_null0", "--vdev=net_null1", "--", "-i", "--forward-mode=io", "--burst=32"]);
        command.args(["--nb-cores=1", "--total-num-mbufs=16384"]);
        let mut lines = Lines::start(PEER, command)?;
        let mut version = String::from("unknown version");
        lines.expect("both ports", PATIENCE, |l| {
            if let Some((_, v)) = l.split_once("RTE Version: ") {
                version = v.trim_matches('\'').to_owned();
            }
            l.starts_with("Checking link statuses").then_some(())
        })?;
        let pid = lines.pid();
        let worker = worker_thread(pid, worker).ok_or_else(|| BenchError::Peer {
            peer: PEER,
            what: format!("no worker thread pinned to core {worker}"),
        })?;
        let version = format!("{version}, {}", memory_of(pid));
        Ok(Self { lines, worker, mode: Some("io"), version })
    }

    fn block(&mut self, mode: &'static str, window: Duration) -> Result<Reading, BenchError> {
        if self.mode != Some(mode) {
            self.lines.tell(&format!("set fwd {mode}"))?;
            self.lines.expect("the mode's answer", PATIENCE, |l| {
                l.contains(&format!("Set {mode} packet forwarding mode")).then_some(())
            })?;
            self.mode = Some(mode);
        }
        let before = self.schedstat()?;
        self.lines.tell("start")?;
        std::thread::sleep(window);
        self.lines.tell("stop")?;
        let items = self.accumulated()?;
        let after = self.schedstat()?;
        let share = Share { thread: "testpmd worker", share: after.share_since(&before) };
        Ok(Reading { items, seconds: after.wanted_since(&before).as_secs_f64(), shares: vec![share] })
    }

    /// RX packets of both ports in the summary that `stop` prints, once its last line is there.
    fn accumulated(&mut self) -> Result<u64, BenchError> {
        let mut summary = Summary::default();
        self.lines.expect("statistics after `stop`", PATIENCE, |l| summary.line(l))
    }

    fn schedstat(&self) -> Result<SchedStat, BenchError> {
        SchedStat::read(self.lines.pid(), self.worker)
            .ok_or_else(|| BenchError::Peer { peer: PEER, what: "its worker thread is gone".into() })
    }
}

/// Reads the text that `stop` prints.
#[derive(Default)]
struct Summary {
    accumulated: bool,
    rx: Option<u64>,
}

impl Summary {
    /// Takes one line; the count when the summary is over and the worker idle.
    fn line(&mut self, line: &str) -> Option<u64> {
        self.accumulated |= line.contains("Accumulated forward statistics for all ports");
        if self.accumulated && self.rx.is_none() {
            let mut words = line.split_whitespace().skip_while(|w| *w != "RX-packets:");
            self.rx = words.nth(1).and_then(|n| n.parse().ok());
        }
        self.rx.filter(|_| line.trim() == "Done.")
    }
}

/// The id of the EAL worker thread that may run on `core` only.
fn worker_thread(pid: u32, core: Core) -> Option<u32> {
    cpu::find_thread(pid, |status| {
        let value = |key| cpu::status_value(status, key).unwrap_or_default();
        value("Name").contains("worker") && parse_list(value("Cpus_allowed_list")) == [core.0]
    })
}

/// What memory the process really has: its arguments are wishes.
fn memory_of(pid: u32) -> &'static str {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let huge =
        status.lines().find_map(|l| l.strip_prefix("HugetlbPages:")?.split_whitespace().next()?.parse().ok());
    if huge.unwrap_or(0u64) > 0 { "huge pages" } else { "4 KiB pages" }
}

/// One forwarding mode of testpmd.
#[derive(Debug)]
pub struct TestpmdCandidate {
    name: String,
    mode: &'static str,
    peer: Rc<RefCell<Testpmd>>,
}

impl TestpmdCandidate {
    /// `mode` as testpmd names it: `io` or `macswap`.
    pub fn new(peer: &Rc<RefCell<Testpmd>>, mode: &'static str) -> Self {
        Self { name: format!("testpmd {mode}"), mode, peer: Rc::clone(peer) }
    }
}

impl Candidate for TestpmdCandidate {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        self.peer.borrow_mut().block(self.mode, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_all_ports_counts_not_that_of_one() {
        let text = "Telling cores to stop...\nWaiting for lcores to finish...\n\
            ---------------------- Forward statistics for port 0  ----------------------\n\
            RX-packets: 126002400      RX-dropped: 0             RX-total: 126002400\n\
            +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++\n\
            RX-packets: 252004800      RX-dropped: 0             RX-total: 252004800\n\
            TX-packets: 252004864      TX-dropped: 0             TX-total: 252004864\n\
            ++++++++++++++++++++++++++\n\nDone.";
        let mut summary = Summary::default();
        let at: Vec<_> = text.lines().map(|l| summary.line(l)).collect();
        assert_eq!(at.last(), Some(&Some(252_004_800)));
        assert_eq!(at.iter().flatten().count(), 1, "not before the end");
    }
}
