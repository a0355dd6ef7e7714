//! Other projects' programs in the same run, driven over their stdin and stdout.
//!
//! A peer that is not installed is skipped in clear words; a peer that is there but misbehaves is an error.

pub mod packet_gen;
pub mod rte_ring;
pub mod testpmd;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::BenchError;

/// A child process that is spoken to in lines. Closing its stdin ends it; one that stays is killed.
#[derive(Debug)]
pub struct Lines {
    peer: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    tail: Vec<String>,
}

/// Output lines kept for the error message.
const TAIL: usize = 12;

impl Lines {
    /// Starts `command`, stderr joined to what is read.
    ///
    /// # Errors
    /// [`BenchError::Peer`] if it cannot be started.
    pub fn start(peer: &'static str, mut command: Command) -> Result<Self, BenchError> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            piped.spawn().map_err(|e| BenchError::Peer { peer, what: format!("cannot start: {e}") })?;
        let (send, lines) = channel();
        let outputs: [Option<Box<dyn std::io::Read + Send>>; 2] =
            [child.stdout.take().map(|o| Box::new(o) as _), child.stderr.take().map(|o| Box::new(o) as _)];
        for output in outputs.into_iter().flatten() {
            let send = send.clone();
            std::thread::spawn(move || {
                // Ends with the child's output, or when nobody listens any more.
                BufReader::new(output).lines().map_while(Result::ok).all(|l| send.send(l).is_ok())
            });
        }
        let stdin = child.stdin.take();
        Ok(Self { peer, child, stdin, lines, tail: Vec::new() })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one line.
    ///
    /// # Errors
    /// [`BenchError::Peer`] if it is gone.
    pub fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let sent = match &mut self.stdin {
            Some(stdin) => writeln!(stdin, "{line}").and_then(|()| stdin.flush()),
            None => return Err(self.error("its input is closed".into())),
        };
        sent.map_err(|e| self.error(format!("cannot send `{line}`: {e}")))
    }

    /// The first line that `pick` turns into something, within `patience`.
    ///
    /// # Errors
    /// [`BenchError::Peer`] with its last lines if it ends or says nothing of the kind in time.
    pub fn expect<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut pick: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, BenchError> {
        let until = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let picked = pick(&line);
                    self.remember(line);
                    if let Some(found) = picked {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.error(format!("no {what} within {patience:?}")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.error(format!("ended before {what}"))),
            }
        }
    }

    fn remember(&mut self, line: String) {
        if self.tail.len() == TAIL {
            self.tail.remove(0);
        }
        self.tail.push(line);
    }

    fn error(&self, what: String) -> BenchError {
        let last = if self.tail.is_empty() {
            String::new()
        } else {
            format!("; last words:\n{}", self.tail.join("\n"))
        };
        BenchError::Peer { peer: self.peer, what: format!("{what}{last}") }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the C program `name` beside this one's own binary, unless it is there from the same `source`. `package` is
/// what it needs of DPDK, if anything.
///
/// # Errors
/// Why it is skipped.
pub fn build(name: &str, source: &str, package: Option<&str>) -> Result<PathBuf, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let dir = exe.parent().ok_or("this program has no folder")?.join("peers");
    let (kept, program) = (dir.join(format!("{name}.c")), dir.join(name));
    if program.is_file() && fs::read_to_string(&kept).is_ok_and(|s| s == source) {
        return Ok(program);
    }
    let flags = package.map(|p| output(Command::new("pkg-config").args(["--cflags", "--libs", p])));
    let flags = flags
        .transpose()
        .map_err(|e| format!("DPDK's libraries are not there ({e}); apt-get install libdpdk-dev"))?;
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    // The source is written last: only a finished build leaves both.
    let scratch = dir.join(format!("building-{name}.c"));
    fs::write(&scratch, source).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-Wall", "-Wextra", "-o"]).arg(&program).arg(&scratch);
    cc.args(flags.unwrap_or_default().split_whitespace());
    output(&mut cc).map_err(|e| format!("building bench/peers/{name}.c failed: {e}"))?;
    fs::rename(&scratch, &kept).map_err(|e| format!("{}: {e}", kept.display()))?;
    Ok(program)
}

/// What a program that ends well prints.
///
/// # Errors
/// What it says otherwise.
pub fn output(command: &mut Command) -> Result<String, String> {
    let out = command.output().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&out.stderr).trim().to_owned())
    }
}

/// True if `program` is found on the path.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Lines {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Lines::start("sh", command).unwrap()
    }

    #[test]
    fn answers_are_picked_and_the_child_ends_with_its_input() {
        let mut cat = shell("cat");
        cat.tell("noise").unwrap();
        cat.tell("n=5").unwrap();
        let n: u32 = cat.expect("n", Duration::from_secs(5), |l| l.strip_prefix("n=")?.parse().ok()).unwrap();
        assert_eq!(n, 5);
        let start = Instant::now();
        drop(cat);
        assert!(start.elapsed() < Duration::from_secs(4), "cat had to be killed");
    }

    #[test]
    fn a_dead_peer_is_an_error_with_its_last_words() {
        let mut sh = shell("echo no such device >&2");
        let e = sh
            .expect("a prompt", Duration::from_secs(5), |l| l.contains("prompt").then_some(()))
            .unwrap_err();
        assert!(e.to_string().contains("no such device"), "{e}");
    }
}
