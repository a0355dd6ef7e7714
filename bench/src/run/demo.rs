//! `demo`: `ringwright demo` in rounds, its worker on one core, devices and wires on the other.
//!
//! Each round is the release binary as a user starts it, for about two seconds, in this program's session and so with
//! its priority; how far the cores are apart is measured right before and right after. Packets are those that both ports
//! received, over the time the demo says it ran. A round counts for speed only if both polling threads kept their cores
//! and the class stayed; it must be clean in any case: exit code 0, nothing unexplained, every frame verified by the
//! checkers. One that is not ends the benchmark.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output as ChildOutput, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Output, Timing};
use crate::BenchError;
use crate::cpu::{self, Core, SchedStat};
use crate::distance;
use crate::harness::report::Report;
use crate::harness::stats::Summary;
use crate::harness::{Candidate, Reading, Share};
use crate::manifest::{Manifest, Peer};
use crate::session;

const TOOL: &str = "ringwright demo";
/// Rounds to keep, and how long one lasts, unless asked otherwise.
const ROUNDS: u32 = 5;
const ROUND: Duration = Duration::from_secs(2);
/// Between two looks at the shares of the demo's threads.
const LOOK: Duration = Duration::from_millis(100);
/// The demo's threads that poll, and what they are called here.
const THREADS: [(&str, &str); 2] = [("worker-0", "worker"), ("devices", "devices")];

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
    /// Frame size in bytes with the check sequence, or imix: as `ringwright demo` takes it
    #[arg(long, default_value = "64", value_name = "SIZE")]
    frame: String,
}

/// Measures.
///
/// # Errors
/// [`BenchError::Tool`] if the binary is not there or cannot run, [`BenchError::Usage`] if it refuses the frame size,
/// [`BenchError::Unclean`] if it lost a packet.
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (args.timing.or(ROUNDS, ROUND), args.timing.json);
    let priority = session::raise();
    let (worker, devices) = timing.pair()?;
    let program = program()?;
    let state = format!("{}, {}", version(&program)?, program.display());
    let apart = distance::measure(worker, devices)?;
    let cores = [(worker, "worker: rings, pools, switch"), (devices, "devices, generators, checkers")];
    let peers = vec![Peer { name: "ringwright", state }];
    let manifest = Manifest::new(&cores, priority, peers, Some(apart));
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("demo", manifest, json);
    let runs = Rc::new(RefCell::new(Vec::new()));
    let demo = Demo { name: "demo".into(), program, frame: args.frame.clone(), worker, devices, runs };
    let runs = Rc::clone(&demo.runs);
    let title = format!("demo: two software 82599s and a switch, frames of {}", args.frame);
    let blocks = timing.measure(&title, Some((worker, devices)), &mut [Box::new(demo)])?;
    output.add(Report::new(&title, "packets", &blocks, &[], tsc_hz), json);
    let clean = Clean::of(&runs.borrow());
    if !json {
        clean.print();
    }
    output.demo = Some(clean);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

/// The command's binary: it is built into the same folder as this program.
pub fn program() -> Result<PathBuf, BenchError> {
    let me = std::env::current_exe().map_err(|e| error(e.to_string()))?;
    let program = me.with_file_name("ringwright");
    if program.is_file() {
        return Ok(program);
    }
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    Err(error(format!("there is no {}; build it: cargo build{profile} -p ringwright", program.display())))
}

fn version(program: &Path) -> Result<String, BenchError> {
    let out = Command::new(program).arg("--version").output().map_err(|e| error(e.to_string()))?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

const fn error(what: String) -> BenchError {
    BenchError::Tool { tool: TOOL, what }
}

/// The demo as a candidate.
struct Demo {
    name: String,
    program: PathBuf,
    frame: String,
    worker: Core,
    devices: Core,
    runs: Rc<RefCell<Vec<Run>>>,
}

impl Demo {
    fn start(&self, window: Duration) -> Result<Child, BenchError> {
        let mut command = Command::new(&self.program);
        command.args(["demo", "--json", "--frame", &self.frame]);
        command.args(["--for", &format!("{}us", window.as_micros())]);
        command.args(["--worker-core", &self.worker.to_string()]);
        command.args(["--device-core", &self.devices.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|e| error(e.to_string()))
    }
}

impl Candidate for Demo {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        let mut child = self.start(window)?;
        let shares = watch(&mut child, window);
        let out = child.wait_with_output().map_err(|e| error(e.to_string()))?;
        let run = Run::read(&out)?;
        let reading = Reading { items: run.packets(), seconds: run.elapsed_s, shares };
        self.runs.borrow_mut().push(run);
        Ok(reading)
    }
}

/// Looks at the polling threads until shortly before the demo's time is over. A thread that was never seen twice has
/// the share 0: nothing is known, so the round does not count.
fn watch(child: &mut Child, window: Duration) -> Vec<Share> {
    let start = Instant::now();
    let mut seen = THREADS.map(|_| Seen::default());
    while start.elapsed() + LOOK < window && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
        for ((name, _), seen) in THREADS.iter().zip(&mut seen) {
            seen.look(child.id(), name);
        }
    }
    let share = |((_, thread), seen): (&(&str, &'static str), &Seen)| Share { thread, share: seen.share() };
    THREADS.iter().zip(&seen).map(share).collect()
}

/// What was seen of one thread.
#[derive(Default)]
struct Seen {
    thread: Option<u32>,
    first: Option<SchedStat>,
    last: Option<SchedStat>,
}

impl Seen {
    fn look(&mut self, pid: u32, name: &str) {
        let is_named = |status: &str| cpu::status_value(status, "Name") == Some(name);
        self.thread = self.thread.or_else(|| cpu::find_thread(pid, is_named));
        if let Some(now) = self.thread.and_then(|tid| SchedStat::read(pid, tid)) {
            self.first.get_or_insert(now);
            self.last = Some(now);
        }
    }

    fn share(&self) -> f64 {
        match (&self.first, &self.last) {
            (Some(first), Some(last)) if !last.wanted_since(first).is_zero() => last.share_since(first),
            _ => 0.0,
        }
    }
}

/// The parts of the demo's JSON object that matter here.
#[derive(Debug, Deserialize)]
struct Run {
    elapsed_s: f64,
    ports: Vec<PortPart>,
    workers: Vec<WorkerPart>,
    conservation: ConservationPart,
    demo: DemoPart,
}

#[derive(Debug, Deserialize)]
struct PortPart {
    rx: TrafficPart,
}

#[derive(Debug, Deserialize)]
struct TrafficPart {
    packets: u64,
}

#[derive(Debug, Deserialize)]
struct WorkerPart {
    packets: u64,
    cycles: CyclesPart,
}

#[derive(Debug, Deserialize)]
struct CyclesPart {
    idle: u64,
    useful: u64,
}

#[derive(Debug, Deserialize)]
struct ConservationPart {
    unexplained: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct DemoPart {
    checked: CheckedPart,
}

#[derive(Debug, Deserialize)]
struct CheckedPart {
    generated: u64,
    verified: u64,
}

impl Run {
    /// A clean run's figures.
    fn read(out: &ChildOutput) -> Result<Self, BenchError> {
        let words = String::from_utf8_lossy(&out.stderr);
        let words = words.trim();
        if out.status.code() == Some(2) {
            return Err(BenchError::Usage(format!("{TOOL}: {words}")));
        }
        let run: Self = serde_json::from_slice(&out.stdout)
            .map_err(|e| error(format!("{}, without a status object ({e}): {words}", out.status)))?;
        if out.status.success() && run.is_clean() {
            return Ok(run);
        }
        let (status, unexplained) = (out.status.to_string(), run.conservation.unexplained);
        let CheckedPart { generated, verified } = run.demo.checked;
        Err(BenchError::Unclean { status, unexplained, generated, verified })
    }

    fn is_clean(&self) -> bool {
        let CheckedPart { generated, verified } = self.demo.checked;
        self.conservation.unexplained == Some(0) && generated == verified && generated > 0
    }

    fn packets(&self) -> u64 {
        self.ports.iter().map(|p| p.rx.packets).sum()
    }

    /// Cycles per packet that the worker spent on packets, not on waiting for them.
    fn useful(&self) -> f64 {
        let cycles: u64 = self.workers.iter().map(|w| w.cycles.useful).sum();
        cycles as f64 / self.workers.iter().map(|w| w.packets).sum::<u64>() as f64
    }

    /// Percent of the worker's time without a packet.
    fn idle(&self) -> f64 {
        let idle: u64 = self.workers.iter().map(|w| w.cycles.idle).sum();
        let useful: u64 = self.workers.iter().map(|w| w.cycles.useful).sum();
        100.0 * idle as f64 / (idle + useful) as f64
    }
}

/// What all rounds have in common, those that do not count for speed among them.
#[derive(Debug, Serialize)]
pub struct Clean {
    /// Rounds, all with exit code 0, nothing unexplained and every frame verified.
    clean_runs: usize,
    /// Frames that the checkers verified.
    frames_verified: u64,
    /// Cycles per packet of the worker, without waiting.
    useful_cycles: Option<Summary>,
    /// Percent of the worker's time without a packet.
    idle_percent: Option<Summary>,
}

impl Clean {
    fn of(runs: &[Run]) -> Self {
        let summary = |f: fn(&Run) -> f64| Summary::of(&runs.iter().map(f).collect::<Vec<_>>());
        Self {
            clean_runs: runs.len(),
            frames_verified: runs.iter().map(|r| r.demo.checked.verified).sum(),
            useful_cycles: summary(Run::useful),
            idle_percent: summary(Run::idle),
        }
    }

    fn print(&self) {
        let Self { clean_runs, frames_verified, .. } = self;
        println!(
            "{clean_runs} runs, each with exit code 0 and nothing unexplained; {frames_verified} frames verified"
        );
        if let (Some(useful), Some(idle)) = (self.useful_cycles, self.idle_percent) {
            let Summary { median, min, max, .. } = useful;
            println!(
                "worker: {median:.1} useful cycles a packet ({min:.1} .. {max:.1}), idle {:.0} % of its time",
                idle.median
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn out(code: i32, unexplained: &str, verified: u64) -> ChildOutput {
        let stdout = format!(
            r#"{{"elapsed_s": 2.0, "ports": [{{"rx": {{"packets": 30}}}}, {{"rx": {{"packets": 10}}}}],
            "workers": [{{"packets": 40, "cycles": {{"idle": 3000, "useful": 1000, "stall": null}}}}],
            "conservation": {{"unexplained": {unexplained}}},
            "demo": {{"checked": {{"generated": 40, "verified": {verified}}}}}}}"#
        );
        let status = ExitStatus::from_raw(code << 8);
        ChildOutput { status, stdout: stdout.into_bytes(), stderr: b"no such size".to_vec() }
    }

    #[test]
    fn a_clean_run_has_both_ports_packets_and_the_workers_cycles() {
        let run = Run::read(&out(0, "0", 40)).unwrap();
        assert_eq!((run.packets(), run.elapsed_s, run.useful(), run.idle()), (40, 2.0, 25.0, 75.0));
    }

    #[test]
    fn a_run_that_is_not_clean_is_an_error() {
        for bad in [out(1, "0", 40), out(0, "1", 40), out(0, "null", 40), out(0, "0", 39)] {
            assert!(matches!(Run::read(&bad), Err(BenchError::Unclean { generated: 40, .. })), "{bad:?}");
        }
        assert!(
            matches!(Run::read(&out(2, "0", 40)), Err(BenchError::Usage(words)) if words.contains("size"))
        );
    }

    #[test]
    fn a_thread_that_was_not_seen_has_no_share() {
        let mut seen = Seen::default();
        seen.look(std::process::id(), "no thread of this name");
        assert_eq!(seen.share(), 0.0);
        let at = |ran: u64, waited: u64| SchedStat {
            ran: Duration::from_millis(ran),
            waited: Duration::from_millis(waited),
        };
        seen.first = Some(at(10, 0));
        assert_eq!(seen.share(), 0.0, "seen once");
        seen.last = Some(at(85, 25));
        assert!((seen.share() - 0.75).abs() < 1e-9, "{}", seen.share());
    }
}
