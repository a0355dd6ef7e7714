//! DPDK's `rte_ring` between two pinned threads: our own small C program, built on first use.

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::{Lines, build};
use crate::BenchError;
use crate::cpu::Core;
use crate::harness::{Candidate, Reading, Share};

const PEER: &str = "rte_ring";
const SOURCE: &str = include_str!("../../peers/rte_ring.c");
/// Before the window starts to count.
const WARMUP: Duration = Duration::from_millis(5);

/// The running program, shared by the candidates it serves.
#[derive(Debug)]
pub struct RteRing {
    lines: Lines,
    /// What `rte_version()` says.
    pub version: String,
}

impl RteRing {
    /// Builds the program if needed and starts it with rings of `size` entries; `Err` holds why it is skipped.
    pub fn start(producer: Core, consumer: Core, size: usize) -> Result<Rc<RefCell<Self>>, String> {
        let program = build(PEER, SOURCE, Some("libdpdk"))?;
        // Huge pages as its users have them; without, ordinary ones.
        let attempts = [(["-m", "16"], "2 MiB pages"), (["--no-huge", "-m64"], "4 KiB pages")];
        let mut last = String::new();
        for (memory, pages) in attempts {
            let mut command = Command::new(&program);
            command.args([producer, consumer].map(|c| c.to_string())).arg(size.to_string());
            command.args(["--", "--in-memory", "--no-pci", "--no-telemetry", "--log-level=lib.eal:4", "-l"]);
            command.arg(producer.to_string()).args(memory);
            match Self::greet(command) {
                Ok((lines, version)) => {
                    let version = format!("{version}, {pages}");
                    return Ok(Rc::new(RefCell::new(Self { lines, version })));
                }
                Err(e) => last = e.to_string(),
            }
        }
        Err(last)
    }

    fn greet(command: Command) -> Result<(Lines, String), BenchError> {
        let mut lines = Lines::start(PEER, command)?;
        lines.tell("version")?;
        let version = lines.expect("its version", Duration::from_secs(20), |l| {
            l.strip_prefix("version ").map(str::to_owned)
        })?;
        Ok((lines, version))
    }

    fn run(&mut self, name: &str, command: &str, window: Duration) -> Result<Reading, BenchError> {
        self.lines.tell(&format!("{command} {} {}", WARMUP.as_millis(), window.as_millis()))?;
        let answer =
            self.lines.expect("the result of a block", window * 20 + Duration::from_secs(20), |l| {
                (l.starts_with("ok ") || l.starts_with("error ")).then(|| l.to_owned())
            })?;
        let answer = Answer::parse(&answer)
            .ok_or_else(|| BenchError::Peer { peer: PEER, what: format!("answered `{answer}`") })?;
        answer.reading(name)
    }
}

/// One `ok` line.
#[derive(Debug, PartialEq)]
struct Answer {
    items: u64,
    ns: u64,
    shares: [f64; 2],
    sent: [u64; 2],
    received: [u64; 2],
}

impl Answer {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.strip_prefix("ok ")?.split(' ').collect();
        let [items, ns, p, c, sent, sent_sum, received, received_sum] = words[..] else { return None };
        let int = |w: &str| w.parse::<u64>().ok();
        Some(Self {
            items: int(items)?,
            ns: int(ns)?,
            shares: [p.parse().ok()?, c.parse().ok()?],
            sent: [int(sent)?, int(sent_sum)?],
            received: [int(received)?, int(received_sum)?],
        })
    }

    fn reading(&self, name: &str) -> Result<Reading, BenchError> {
        if self.sent != self.received {
            return Err(BenchError::Lost {
                name: name.to_owned(),
                sent: self.sent[0],
                sent_sum: self.sent[1],
                received: self.received[0],
                received_sum: self.received[1],
            });
        }
        let [producer, consumer] = self.shares;
        let shares = vec![
            Share { thread: "producer", share: producer },
            Share { thread: "consumer", share: consumer },
        ];
        Ok(Reading { items: self.items, seconds: self.ns as f64 / 1e9, shares })
    }
}

/// One kind of ring, element and bulk.
#[derive(Debug)]
pub struct RteRingCandidate {
    name: String,
    command: String,
    peer: Rc<RefCell<RteRing>>,
}

impl RteRingCandidate {
    /// `multi` for MP/MC; `bytes` 8 or 16; `bulk` 8 or 32.
    pub fn new(peer: &Rc<RefCell<RteRing>>, multi: bool, bytes: usize, bulk: usize) -> Self {
        let (kind, label) = if multi { ("mp", "MP/MC") } else { ("sp", "SP/SC") };
        let name = format!("rte_ring {label}");
        Self { name, command: format!("run {kind} {bytes} {bulk}"), peer: Rc::clone(peer) }
    }
}

impl Candidate for RteRingCandidate {
    fn name(&self) -> &str {
        &self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        self.peer.borrow_mut().run(&self.name, &self.command, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_a_reading() {
        let a = Answer::parse("ok 640 2000000 0.9900 0.9800 700 55 700 55").unwrap();
        let r = a.reading("x").unwrap();
        assert_eq!((r.items, r.seconds), (640, 0.002));
        assert_eq!(r.shares[1], Share { thread: "consumer", share: 0.98 });
        assert_eq!(Answer::parse("error no memory"), None);
        assert_eq!(Answer::parse("ok 1 2 3"), None);
    }

    #[test]
    fn a_lost_item_is_an_error() {
        let a = Answer::parse("ok 640 2000000 0.99 0.98 700 55 699 54").unwrap();
        assert!(matches!(a.reading("x"), Err(BenchError::Lost { sent: 700, received: 699, .. })));
    }
}
