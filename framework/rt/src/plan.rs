//! What workers are to do, and the rings that this takes between them.

use graph::{Graph, GraphError};
use handoff::MAX_FEEDS;
use mem::Local;

use crate::{Idle, Role, RtError};

/// Packets that a ring between two workers holds.
pub const HANDOFF_RING: u32 = 512;

/// Builds a worker's graph on the worker's own thread, where batches live.
pub type BuildGraph = Box<dyn FnOnce(&Local) -> Result<Graph, GraphError> + Send>;

/// What one worker runs.
#[derive(Default)]
pub struct WorkerPlan {
    /// The core to bind it to; `None` leaves it to the kernel.
    pub core: Option<usize>,
    /// What it does.
    pub role: Role,
    /// What it does when there is nothing to do.
    pub idle: Idle,
    /// Receive queues, port number and queue number: of roles `RunToCompletion` and `Rx`.
    pub rx: Vec<(u16, u16)>,
    /// Transmit queues: of roles `RunToCompletion`, `Process` and `Tx`. What a `Process` worker sends to a port of which
    /// it has no queue goes to a `Tx` worker that has one.
    pub tx: Vec<(u16, u16)>,
    /// Stages in the graph, for the memory sum.
    pub stages: usize,
    /// Its graph: of roles `RunToCompletion` and `Process`.
    pub graph: Option<BuildGraph>,
}

/// What of a worker decides which rings there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub role: Role,
    pub stages: usize,
    pub tx: Vec<(u16, u16)>,
}

impl From<&WorkerPlan> for Shape {
    fn from(p: &WorkerPlan) -> Self {
        Self { role: p.role, stages: p.stages, tx: p.tx.clone() }
    }
}

/// A ring from one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub from: usize,
    pub to: usize,
    /// The port that what passes is for; `None` between receiving and processing.
    pub port: Option<u16>,
}

fn with(shapes: &[Shape], role: Role) -> impl Iterator<Item = (usize, &Shape)> {
    shapes.iter().enumerate().filter(move |(_, s)| s.role == role)
}

/// The rings that workers of these shapes need.
pub(crate) fn ways(shapes: &[Shape]) -> Vec<Way> {
    let mut ways = Vec::new();
    for (from, _) in with(shapes, Role::Rx) {
        ways.extend(with(shapes, Role::Process).map(|(to, _)| Way { from, to, port: None }));
    }
    let mut ports: Vec<u16> =
        with(shapes, Role::Tx).flat_map(|(_, s)| s.tx.iter().map(|queue| queue.0)).collect();
    ports.sort_unstable();
    ports.dedup();
    ways.extend(ports.into_iter().flat_map(|port| ways_to(shapes, port)));
    ways
}

/// The rings by which `Process` workers reach `port`. Of several `Tx` workers that have queues of it they take turns.
pub(crate) fn ways_to(shapes: &[Shape], port: u16) -> Vec<Way> {
    let has = |s: &Shape| s.tx.iter().any(|queue| queue.0 == port);
    let owners: Vec<usize> = with(shapes, Role::Tx).filter(|(_, s)| has(s)).map(|(i, _)| i).collect();
    if owners.is_empty() {
        return Vec::new();
    }
    let senders = with(shapes, Role::Process).enumerate().filter(|(_, (_, s))| !has(s));
    senders.map(|(i, (from, _))| Way { from, to: owners[i % owners.len()], port: Some(port) }).collect()
}

/// Whether each worker's plan goes with its role, and the roles with each other.
pub(crate) fn check(plans: &[WorkerPlan]) -> Result<(), RtError> {
    for (worker, p) in plans.iter().enumerate() {
        let problem = match p.role {
            Role::Rx if !p.tx.is_empty() => {
                "has transmit queues: give them to workers of role \"tx\" or \"process\""
            }
            Role::Process | Role::Tx if !p.rx.is_empty() => {
                "has receive queues: give them to a worker of role \"rx\""
            }
            Role::Rx | Role::Tx if p.graph.is_some() => "has stages: they run on workers of role \"process\"",
            Role::Process | Role::RunToCompletion if p.graph.is_none() => "has no graph: give it one",
            _ => continue,
        };
        return Err(RtError::Role { worker, role: p.role, problem: problem.to_owned() });
    }
    let count = |role| plans.iter().filter(|p| p.role == role).count();
    let needs = [
        (Role::Rx, Role::Process, "that is where packets go"),
        (Role::Process, Role::Rx, "that is where packets come from"),
        (Role::Tx, Role::Process, "that is where packets come from"),
    ];
    for (there, missing, why) in needs {
        if count(there) > 0 && count(missing) == 0 {
            return Err(RtError::Pipeline { there, missing, why });
        }
    }
    if count(Role::Process) > MAX_FEEDS {
        let problem = format!("is one of {}: use at most {MAX_FEEDS} of this role", count(Role::Process));
        return Err(RtError::Role { worker: plans.len() - 1, role: Role::Process, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(role: Role, ports: &[u16]) -> Shape {
        Shape { role, stages: 0, tx: ports.iter().map(|p| (*p, 0)).collect() }
    }
    fn listed(ways: &[Way]) -> Vec<(usize, usize, Option<u16>)> {
        ways.iter().map(|w| (w.from, w.to, w.port)).collect()
    }

    #[test]
    fn run_to_completion_needs_no_rings() {
        assert!(
            ways(&[shape(Role::RunToCompletion, &[0, 1]), shape(Role::RunToCompletion, &[0, 1])]).is_empty()
        );
    }

    #[test]
    fn every_receiver_reaches_every_processor_and_those_every_port() {
        let shapes = [
            shape(Role::Rx, &[]),
            shape(Role::Process, &[]),
            shape(Role::Process, &[]),
            shape(Role::Tx, &[0, 1]),
        ];
        assert_eq!(
            listed(&ways(&shapes)),
            [(0, 1, None), (0, 2, None), (1, 3, Some(0)), (2, 3, Some(0)), (1, 3, Some(1)), (2, 3, Some(1))]
        );
    }

    #[test]
    fn a_processor_sends_itself_what_it_has_a_queue_for_and_owners_take_turns() {
        let shapes = [
            shape(Role::Process, &[0]),
            shape(Role::Process, &[]),
            shape(Role::Process, &[]),
            shape(Role::Tx, &[0, 1]),
            shape(Role::Tx, &[0]),
        ];
        assert_eq!(listed(&ways_to(&shapes, 0)), [(1, 4, Some(0)), (2, 3, Some(0))]);
        assert_eq!(listed(&ways_to(&shapes, 1)), [(0, 3, Some(1)), (1, 3, Some(1)), (2, 3, Some(1))]);
        assert!(ways_to(&shapes, 2).is_empty());
    }

    fn plan(role: Role, rx: &[u16], tx: &[u16], graph: bool) -> WorkerPlan {
        let queues = |ports: &[u16]| ports.iter().map(|p| (*p, 0)).collect();
        let build: BuildGraph = Box::new(|local| graph::GraphBuilder::new(local).build(graph::To::Marked));
        WorkerPlan {
            role,
            rx: queues(rx),
            tx: queues(tx),
            graph: graph.then_some(build),
            ..WorkerPlan::default()
        }
    }
    fn wrong(plans: &[WorkerPlan]) -> String {
        check(plans).unwrap_err().to_string()
    }

    #[test]
    fn what_a_role_does_not_do_is_refused_with_what_would_do() {
        let rx = || plan(Role::Rx, &[0], &[], false);
        let process = || plan(Role::Process, &[], &[], true);
        assert!(check(&[rx(), process(), plan(Role::Tx, &[], &[0], false)]).is_ok());
        assert!(check(&[rx(), process(), plan(Role::RunToCompletion, &[1], &[0], true)]).is_ok());
        let e = wrong(&[plan(Role::Rx, &[0], &[0], false), process()]);
        assert_eq!(
            e,
            "worker 0 (rx): has transmit queues: give them to workers of role \"tx\" or \"process\""
        );
        assert!(
            wrong(&[rx(), plan(Role::Process, &[0], &[], true)]).contains("worker 1 (process): has receive")
        );
        assert!(wrong(&[rx(), process(), plan(Role::Tx, &[0], &[], false)]).contains("has receive queues"));
        assert!(wrong(&[rx(), process(), plan(Role::Tx, &[], &[0], true)]).contains("has stages"));
        assert!(wrong(&[rx(), plan(Role::Process, &[], &[], false)]).contains("has no graph"));
        assert!(wrong(&[plan(Role::RunToCompletion, &[0], &[0], false)]).contains("has no graph"));
        assert!(wrong(&[rx()]).contains("\"rx\" need at least one of role \"process\""));
        assert!(wrong(&[process()]).contains("\"process\" need at least one of role \"rx\""));
        assert!(wrong(&[plan(Role::Tx, &[], &[0], false)]).contains("\"tx\" need at least one"));
        let mut many: Vec<_> = (0..=MAX_FEEDS).map(|_| process()).collect();
        many.push(rx());
        assert!(wrong(&many).contains("at most 64"));
    }
}
