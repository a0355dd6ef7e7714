//! Which worker has which queues.

use super::{Config, ConfigError, Problem};
use crate::Role;

/// The queues of one worker: port and queue numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// To receive from.
    pub rx: Vec<(u16, u16)>,
    /// To send to.
    pub tx: Vec<(u16, u16)>,
}

/// Gives each worker its queues.
///
/// Receive queues are as the workers name them. Transmit queues go to the workers that may send to a port, one each: those
/// of role `tx`, or else those that run stages and receive from any other port.
///
/// # Errors
/// A queue that is not there, that two workers name or none does; a port with fewer queues than workers that send to it.
pub fn assign(config: &Config) -> Result<Vec<Assignment>, ConfigError> {
    let mut a =
        Assigner { config, all: vec![Assignment::default(); config.workers.len()], problems: Vec::new() };
    a.roles();
    a.receive();
    a.send();
    let Assigner { all, problems, .. } = a;
    if problems.is_empty() { Ok(all) } else { Err(config.text.error(problems)) }
}

struct Assigner<'c> {
    config: &'c Config,
    all: Vec<Assignment>,
    problems: Vec<Problem>,
}

impl Assigner<'_> {
    fn say(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(self.config.text.problem(path, message));
    }

    fn has(&self, role: Role) -> bool {
        self.config.workers.iter().any(|w| w.role == role)
    }

    fn roles(&mut self) {
        if self.config.ports.is_empty() {
            self.say("port", "there is no port: write [[port]] with name and driver");
        }
        if self.config.workers.is_empty() {
            self.say("worker", "there is no worker: write [[worker]] with core and rx");
        }
        if self.has(Role::Rx) && !self.has(Role::Process) {
            self.say("worker", "workers of role \"rx\" hand packets to workers of role \"process\": add one");
        }
        if self.has(Role::Process) && !self.has(Role::Rx) {
            self.say(
                "worker",
                "workers of role \"process\" get packets from workers of role \"rx\": add one",
            );
        }
        if self.has(Role::Tx) && !self.has(Role::Process) {
            self.say(
                "worker",
                "workers of role \"tx\" get packets from workers of role \"process\": add one",
            );
        }
    }

    fn receive(&mut self) {
        for (i, w) in self.config.workers.iter().enumerate() {
            for (j, q) in w.rx.iter().enumerate() {
                let path = format!("worker[{i}].rx[{j}]");
                let Some(port) = self.config.ports.get(usize::from(q.port)) else { continue };
                let queues = match q.queue {
                    None => 0..port.queues,
                    Some(n) if n < port.queues => n..n + 1,
                    Some(n) => {
                        let message = format!(
                            "{} has queues 0 to {}, not {n}: set queues = {}",
                            port.name,
                            port.queues - 1,
                            n + 1
                        );
                        self.say(&path, message);
                        continue;
                    }
                };
                for n in queues {
                    if let Some(other) = self.all.iter().position(|a| a.rx.contains(&(q.port, n))) {
                        self.say(
                            &path,
                            format!(
                                "queue {}:{n} is worker {other}'s already: each has one worker",
                                port.name
                            ),
                        );
                    } else {
                        self.all[i].rx.push((q.port, n));
                    }
                }
            }
        }
        for (number, port) in self.config.ports.iter().enumerate() {
            let mine = |n: &u16| self.all.iter().any(|a| a.rx.contains(&(number as u16, *n)));
            let alone: Vec<_> =
                (0..port.queues).filter(|n| !mine(n)).map(|n| format!("{}:{n}", port.name)).collect();
            // A port that nobody receives from is there to be sent to.
            if !alone.is_empty() && alone.len() < usize::from(port.queues) {
                let message = format!(
                    "no worker receives from {}: name it in a worker's rx, or use fewer queues",
                    alone.join(", ")
                );
                self.say(&format!("port[{number}].queues"), message);
            }
        }
    }

    /// Workers that may send to a port.
    fn senders(&self, port: u16) -> Vec<usize> {
        let workers = &self.config.workers;
        let last = if self.has(Role::Tx) {
            [Role::Tx, Role::RunToCompletion]
        } else {
            [Role::Process, Role::RunToCompletion]
        };
        let may: Vec<usize> = (0..workers.len()).filter(|&i| last.contains(&workers[i].role)).collect();
        let named: Vec<usize> = may
            .iter()
            .copied()
            .filter(|&i| workers[i].tx.as_ref().is_some_and(|t| t.contains(&port)))
            .collect();
        if !named.is_empty() {
            return named;
        }
        let free = |&i: &usize| workers[i].tx.is_none();
        let open: Vec<usize> = may.into_iter().filter(free).collect();
        if self.has(Role::Tx) {
            // Ports are shared out among the workers that only send; one of another kind sends where it must.
            let (tx, others): (Vec<_>, Vec<_>) = open.into_iter().partition(|&i| workers[i].role == Role::Tx);
            let one = tx.get(usize::from(port) % tx.len().max(1)).copied();
            return one.into_iter().chain(others).collect();
        }
        let from_others = |&i: &usize| {
            workers[i].role != Role::RunToCompletion || workers[i].rx.iter().any(|q| q.port != port)
        };
        let others: Vec<usize> = open.iter().copied().filter(from_others).collect();
        if others.is_empty() { open } else { others }
    }

    fn send(&mut self) {
        for (number, port) in self.config.ports.iter().enumerate() {
            let senders = self.senders(number as u16);
            if senders.len() > usize::from(port.queues) {
                let names: Vec<_> = senders.iter().map(ToString::to_string).collect();
                let message = format!(
                    "workers {} send to {}, each by a queue of its own, and it has {}: set queues = {}, or say tx = [...] on the workers that send to it",
                    names.join(", "),
                    port.name,
                    port.queues,
                    senders.len()
                );
                let path = format!("port[{number}].queues");
                self.say(&path, message);
                continue;
            }
            for (queue, worker) in senders.into_iter().enumerate() {
                self.all[worker].tx.push((number as u16, queue as u16));
            }
        }
    }
}
