//! `scrape`: what it costs the packets that somebody reads the metrics.
//!
//! One `ringwright run` forwards between two null ports on one core; blocks in which `/metrics` is scraped ten times a second
//! take turns with blocks in which nobody asks. The instance keeps its other threads off the worker's core, and the client is
//! on that other core too. Packets are the worker's, by the control socket's `status` before and after each block: the same
//! two questions in blocks of either kind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Output, Timing};
use crate::BenchError;
use crate::cpu::{self, Core, SchedStat};
use crate::harness::report::{Compare, Report};
use crate::harness::{Candidate, Reading, Share};
use crate::manifest::{Manifest, Peer};
use crate::session;

const TOOL: &str = "ringwright run";
/// Rounds to keep, and how long a block lasts, unless asked otherwise.
const ROUNDS: u32 = 30;
const BLOCK: Duration = Duration::from_secs(1);
/// Between two scrapes.
const EVERY: Duration = Duration::from_millis(100);
/// How long the instance may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
}

/// Measures.
///
/// # Errors
/// [`BenchError::Tool`] if the binary is not there or does not run.
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (args.timing.or(ROUNDS, BLOCK), args.timing.json);
    let priority = session::raise();
    let (worker, other) = timing.pair()?;
    let instance = Rc::new(Instance::start(worker)?);
    let cores = [(worker, "worker"), (other, "the client, and the instance's other threads")];
    let peers = vec![Peer { name: "ringwright", state: instance.program.display().to_string() }];
    let manifest = Manifest::new(&cores, priority, peers, None);
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("scrape", manifest, json);
    let candidate = |name: &str, scraped| -> Box<dyn Candidate> {
        Box::new(Scraped { name: name.to_owned(), scraped, instance: Rc::clone(&instance) })
    };
    let mut all = [candidate("scraped at 10 Hz", true), candidate("left alone", false)];
    let title = "forward between two null ports, with and without scrapes of /metrics";
    let blocks = timing.measure(title, None, &mut all)?;
    output.add(Report::new(title, "packets", &blocks, &[Compare::Ratio(0, 1)], tsc_hz), json);
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

fn error(what: impl ToString) -> BenchError {
    BenchError::Tool { tool: TOOL, what: what.to_string() }
}

/// A running instance, killed when it is let go.
struct Instance {
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl Instance {
    fn start(worker: Core) -> Result<Self, BenchError> {
        let program = super::demo::program()?;
        let folder = std::env::temp_dir().join(format!("ringwright-scrape-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(error)?;
        // A free port, by the kernel's choice; nobody takes it in the moment until it is taken again.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(error)?.port();
        let config = folder.join("scrape.toml");
        std::fs::write(&config, text(worker, port, &folder)).map_err(error)?;
        let child = Command::new(&program)
            .arg("run")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(error)?;
        let mut instance = Self { program, folder, port, child };
        let start = Instant::now();
        while instance.packets().is_err() {
            if start.elapsed() > PATIENCE || !matches!(instance.child.try_wait(), Ok(None)) {
                return Err(error("did not start; run it by hand to see why"));
            }
            thread::sleep(EVERY);
        }
        Ok(instance)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("scrape.sock")
    }

    /// Packets that the worker has received, and the seconds it took.
    fn packets(&self) -> Result<(u64, f64), BenchError> {
        let mut stream = UnixStream::connect(self.socket()).map_err(error)?;
        stream.write_all(b"{\"version\":1,\"command\":\"status\"}\n").map_err(error)?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).map_err(error)?;
        let answer: Value = serde_json::from_str(&line).map_err(error)?;
        let status = &answer["result"];
        let packets = status["workers"][0]["packets"].as_u64();
        packets.zip(status["elapsed_s"].as_f64()).ok_or_else(|| error(format!("no status: {line}")))
    }

    /// One scrape, to the end of the answer.
    fn scrape(port: u16) -> std::io::Result<usize> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)
    }

    fn sched(&self) -> Option<SchedStat> {
        let named = |status: &str| cpu::status_value(status, "Name") == Some("worker-0");
        let thread = cpu::find_thread(self.child.id(), named)?;
        SchedStat::read(self.child.id(), thread)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn text(worker: Core, port: u16, folder: &Path) -> String {
    let ports = ["p0", "p1"].map(|p| format!("[[port]]\nname = \"{p}\"\ndriver = \"null\"\n")).concat();
    format!(
        "version = 1\n[telemetry]\nlisten = \"127.0.0.1:{port}\"\ncontrol = \"{}/scrape.sock\"\n{ports}\
         [[worker]]\ncore = {worker}\nrx = [\"p0\", \"p1\"]\n[[stage]]\nname = \"forward\"\nkind = \"forward\"\n",
        folder.display()
    )
}

/// Blocks of one kind.
struct Scraped {
    name: String,
    scraped: bool,
    instance: Rc<Instance>,
}

impl Candidate for Scraped {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        let (port, over) = (self.instance.port, AtomicBool::new(false));
        let before = self.instance.sched();
        let first = self.instance.packets()?;
        let failed = thread::scope(|s| {
            let scraper = self.scraped.then(|| {
                s.spawn(|| {
                    let mut failed = None;
                    while !over.load(Ordering::Relaxed) {
                        failed = failed.or(Instance::scrape(port).err());
                        thread::sleep(EVERY);
                    }
                    failed
                })
            });
            thread::sleep(window);
            over.store(true, Ordering::Relaxed);
            scraper.and_then(|t| t.join().ok().flatten())
        });
        if let Some(e) = failed {
            return Err(error(format!("a scrape failed: {e}")));
        }
        let last = self.instance.packets()?;
        let share = before.zip(self.instance.sched()).map_or(0.0, |(a, b)| b.share_since(&a));
        let shares = vec![Share { thread: "worker", share }];
        Ok(Reading { items: last.0 - first.0, seconds: last.1 - first.1, shares })
    }
}
