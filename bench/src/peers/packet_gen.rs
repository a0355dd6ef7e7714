//! The generator of the `packet` benchmark: our own small C program, built on first use.

use std::process::Command;
use std::time::Duration;

use super::{Lines, build};
use crate::BenchError;
use crate::cpu::Core;
use crate::harness::Share;

const PEER: &str = "packet_gen";
const SOURCE: &str = include_str!("../../peers/packet_gen.c");
const PATIENCE: Duration = Duration::from_secs(10);

/// The running generator.
#[derive(Debug)]
pub struct Generator(Lines);

impl Generator {
    /// Starts it in network namespace `netns`, on `interface` and pinned to `core`, with frames of `length` bytes without
    /// the check sequence; `Err` holds why it cannot be.
    pub fn start(netns: &str, interface: &str, core: Core, length: u16) -> Result<Self, String> {
        let program = build(PEER, SOURCE, None)?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", netns]).arg(program);
        command.args([interface, &core.to_string(), &length.to_string()]);
        let mut lines = Lines::start(PEER, command).map_err(|e| e.to_string())?;
        let ready = |l: &str| match l.strip_prefix("error ") {
            Some(why) => Some(Err(why.to_owned())),
            None => (l == "ready").then_some(Ok(())),
        };
        lines.expect("a generator that is ready", PATIENCE, ready).map_err(|e| e.to_string())??;
        Ok(Self(lines))
    }

    /// Begins to send for `time`.
    ///
    /// # Errors
    /// If it is gone.
    pub fn begin(&mut self, time: Duration) -> Result<(), BenchError> {
        self.0.tell(&format!("run {}", time.as_millis()))
    }

    /// Waits for its end: frames per second it sent, and its share of its core.
    ///
    /// # Errors
    /// What it says if it could not send.
    pub fn end(&mut self, time: Duration) -> Result<(f64, Share), BenchError> {
        let answer = |l: &str| (l.starts_with("ok ") || l.starts_with("error ")).then(|| l.to_owned());
        let answer = self.0.expect("the end of a run", time * 10 + PATIENCE, answer)?;
        parse(&answer)
            .map(|(rate, share)| (rate, Share { thread: "generator", share }))
            .ok_or_else(|| BenchError::Peer { peer: PEER, what: format!("answered `{answer}`") })
    }
}

fn parse(line: &str) -> Option<(f64, f64)> {
    let words: Vec<&str> = line.strip_prefix("ok ")?.split(' ').collect();
    let [frames, ns, share] = words[..] else { return None };
    let number = |w: &str| w.parse::<f64>().ok();
    Some((number(frames)? * 1e9 / number(ns)?, number(share)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_a_rate_and_a_share() {
        assert_eq!(parse("ok 1000 500000000 0.9900"), Some((2000.0, 0.99)));
        assert_eq!(parse("error sendmmsg: Network is down"), None);
        assert_eq!(parse("ok 1 2"), None);
    }
}
