//! Three namespaces on a string: a sender, a forwarder, a receiver.
//!
//! ```text
//!   A: a0 ----- f0 :F: f1 ----- b0 :B
//! ```

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::BenchError;
use crate::peers::output;

/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";
const PREFIX: &str = "rw-";

pub const A: &str = "a0";
/// The forwarder's interfaces, in the direction of the frames.
pub const F: [&str; 2] = ["f0", "f1"];
pub const B: &str = "b0";

fn error(what: impl Into<String>) -> BenchError {
    BenchError::Tool { tool: "ip", what: what.into() }
}

fn ip(arguments: &str) -> Result<(), BenchError> {
    let result = output(Command::new("ip").args(arguments.split(' ')));
    result.map(drop).map_err(|e| error(format!("ip {arguments}: {e}")))
}

/// Removes what a run left that was killed.
fn sweep() {
    for name in
        fs::read_dir(NAMES).into_iter().flatten().flatten().filter_map(|e| e.file_name().into_string().ok())
    {
        let pid = name.strip_prefix(PREFIX).and_then(|n| n.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// The namespaces and cables; gone when this is dropped.
pub struct Wires {
    names: [String; 3],
    ask: Sender<()>,
    answers: Receiver<Option<(Instant, u64)>>,
}

impl Wires {
    /// Makes them, and moves the calling thread into the forwarder's namespace: what it starts from now on is there.
    ///
    /// # Errors
    /// Without root.
    pub fn new() -> Result<Self, BenchError> {
        sweep();
        let names = ["a", "f", "b"].map(|n| format!("{PREFIX}{}-{n}", std::process::id()));
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let wires = Self { names, ask, answers };
        let [a, f, b] = &wires.names;
        for name in &wires.names {
            ip(&format!("netns add {name}"))?;
            // What interfaces say by themselves is no part of any measurement.
            output(Command::new("ip").args([
                "netns",
                "exec",
                name,
                "sysctl",
                "-qw",
                "net.ipv6.conf.default.disable_ipv6=1",
            ]))
            .map_err(error)?;
        }
        ip(&format!("-n {f} link add {} type veth peer name {A} netns {a}", F[0]))?;
        ip(&format!("-n {f} link add {} type veth peer name {B} netns {b}", F[1]))?;
        for (name, interface) in [(a, A), (f, F[0]), (f, F[1]), (b, B)] {
            ip(&format!("-n {name} link set {interface} up"))?;
        }
        let there = b.clone();
        std::thread::spawn(move || {
            let entered = enter(&there).is_ok();
            asked.into_iter().all(|()| {
                let count = received(B).filter(|_| entered);
                answer.send(count.map(|n| (Instant::now(), n))).is_ok()
            })
        });
        enter(f)?;
        Ok(wires)
    }

    /// The sender's namespace.
    pub fn sender(&self) -> &str {
        &self.names[0]
    }
    /// The forwarder's namespace.
    pub fn forwarder(&self) -> &str {
        &self.names[1]
    }

    /// What the receiver's interface has counted, and when.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn received(&self) -> Result<(Instant, u64), BenchError> {
        let _ = self.ask.send(());
        let count = self.answers.recv().ok().flatten();
        count.ok_or_else(|| error(format!("the counters of {B} cannot be read")))
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// Moves the calling thread into a namespace.
fn enter(name: &str) -> Result<(), BenchError> {
    let file = File::open(format!("{NAMES}/{name}")).map_err(|e| error(format!("{name}: {e}")))?;
    let moved = move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network));
    moved.map_err(|e| error(format!("entering {name}: {e}")))
}

/// Packets that an interface of the calling thread's namespace has received.
fn received(interface: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    parse(&text, interface)
}

/// The second number of an interface's line in `/proc/net/dev`.
fn parse(text: &str, interface: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_packets_are_the_second_number() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo:     1       2    0\n   b01:  7 8 0\n    b0:  640      10    0 0\n";
        assert_eq!((parse(text, "b0"), parse(text, "lo"), parse(text, "b")), (Some(10), Some(2), None));
    }
}
