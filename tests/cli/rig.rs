//! Running the command, with a limit on everything that is waited for.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_ringwright");

/// Held by a test while it runs packets. A test that failed has ended its processes, so its lock is as good as any.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a process left behind.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
    /// Asserts the exit code, with everything that was said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        let Self { status, stdout, stderr } = &self;
        assert_eq!(status.code(), Some(code), "{status}\nstdout: {stdout}\nstderr: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        self
    }
    /// Stdout, which is one JSON object and nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        let object: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("not one JSON object: {e}\n{}", self.stdout));
        assert!(object.is_object(), "{object}");
        object
    }
}

/// A process, which ends at the latest with this.
pub struct Process {
    child: Child,
    stdout: Option<Receiver<String>>,
    stderr: Option<Receiver<String>>,
    said: String,
}

/// Reads lines as they come, so that no pipe ever fills up.
fn lines(from: Option<impl Read + Send + 'static>) -> Option<Receiver<String>> {
    let mut from = BufReader::new(from?);
    let (to, lines) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|n| n > 0) && to.send(std::mem::take(&mut line)).is_ok() {}
    });
    Some(lines)
}

fn rest(lines: Option<Receiver<String>>) -> String {
    lines.into_iter().flatten().collect()
}

impl Process {
    /// Starts `command`; what it says is kept, where nothing else was asked.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let (stdout, stderr) = (lines(child.stdout.take()), lines(child.stderr.take()));
        Self { child, stdout, stderr, said: String::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_none()
    }

    /// Waits until a line on stderr holds `words`.
    #[track_caller]
    pub fn until_said(&mut self, words: &str) {
        self.until(words, |p| p.stderr.as_ref().expect("stderr is kept"));
    }

    /// Waits until a line on stdout holds `words`.
    #[track_caller]
    pub fn until_written(&mut self, words: &str) {
        self.until(words, |p| p.stdout.as_ref().expect("stdout is kept"));
    }

    #[track_caller]
    fn until(&mut self, words: &str, from: fn(&Self) -> &Receiver<String>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match from(self).recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.said += &line;
                    if line.contains(words) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("{words:?} was not said: {}", self.said),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {words:?}: {}", self.said),
            }
        }
    }

    /// Sends it a signal, by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status();
        assert!(sent.expect("kill is there").success(), "kill -{name}");
    }

    /// Waits for its end, `limit` at most.
    #[track_caller]
    pub fn end_within(mut self, limit: Duration) -> Ended {
        let deadline = Instant::now() + limit;
        let status = loop {
            match self.child.try_wait().expect("a child of ours") {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("still running after {limit:?}: {}", self.said),
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let stderr = std::mem::take(&mut self.said) + &rest(self.stderr.take());
        Ended { status, stdout: rest(self.stdout.take()), stderr }
    }

    #[track_caller]
    pub fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If it has ended both fail, and that is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `program`, whose first words may be another program that runs it; the environment says nothing about logs.
pub fn program(words: &[&str]) -> Command {
    let mut c = Command::new(words[0]);
    c.args(&words[1..]).env_remove("RINGWRIGHT_LOG").env_remove("NO_COLOR");
    c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c
}

/// The command with these arguments, apart at blanks.
pub fn ringwright(args: &str) -> Command {
    let mut c = program(&[BINARY]);
    c.args(args.split_whitespace());
    c
}

/// Runs it to its end.
#[track_caller]
pub fn run(args: &str) -> Ended {
    Process::start(&mut ringwright(args)).end()
}

/// Asserts that what a `--json` run put out is complete, and that every packet is accounted for.
#[track_caller]
pub fn assert_clean(ended: Ended) -> Value {
    let ended = ended.expect(0);
    let status = ended.json();
    let (c, k) = (&status["conservation"], &status["demo"]["checked"]);
    assert_eq!(c["unexplained"], 0, "{c}");
    assert_eq!((&c["held"], &c["dropped"]), (&0.into(), &0.into()), "{c}");
    for fault in ["missing", "reordered", "duplicated", "changed"] {
        assert_eq!(k[fault], 0, "{fault}: {k}");
    }
    let verified = k["verified"].as_u64().expect("a count");
    assert!(verified > 0, "{k}");
    assert_eq!(k["generated"], verified, "{k}");
    let received: u64 = ports(&status).map(|p| p["rx"]["packets"].as_u64().expect("a count")).sum();
    assert_eq!(received, verified, "what the ports received is what the checkers saw");
    status
}

/// Runs the demo for 300 ms and asserts that it is clean.
#[track_caller]
pub fn clean(args: &str) -> Value {
    let _turn = turn();
    assert_clean(run(&format!("demo --json --for 300ms {args}")))
}

pub fn ports(status: &Value) -> impl Iterator<Item = &Value> {
    status["ports"].as_array().expect("ports").iter()
}

/// Names of all lints in a status.
pub fn lints(status: &Value) -> Vec<&str> {
    let all = status["lints"].as_array().expect("lints");
    all.iter().map(|l| l["lint"].as_str().expect("a name")).collect()
}

/// Says why a test did not run.
pub fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

fn own_status(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    Some(text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?.trim().to_owned())
}

/// Cores that this process, and so the command, may use.
pub fn cores() -> Vec<usize> {
    let list = own_status("Cpus_allowed_list").unwrap_or_default();
    let ranges = list.split(',').filter_map(|part| {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        Some(a.parse().ok()?..=b.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

pub fn is_root() -> bool {
    own_status("Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

/// Whether ordinary pages of a run's size can be locked: CAP_IPC_LOCK (14) or a limit that is high enough.
pub fn can_lock() -> bool {
    let capable = own_status("CapEff").and_then(|c| u64::from_str_radix(&c, 16).ok());
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|l| l.strip_prefix("Max locked memory")).unwrap_or("");
    let limit = limit.split_whitespace().next().unwrap_or("0");
    capable.is_some_and(|c| c >> 14 & 1 == 1)
        || limit == "unlimited"
        || limit.parse().is_ok_and(|n: u64| n >= 64 << 20)
}

/// Whether `program` is there.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
