//! What happens on a worker's own thread before its first breath.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use graph::{Graph, GraphBuilder, GraphError, To};
use mem::{Local, Memory};
use meter::{Published, Registry, WorkerMeter};
use port::{PortError, WorkerEnv};

use crate::idle::Idler;
use crate::lanes::{HANDOFF, NewRx, NewTx, Returned};
use crate::mailbox::Mailbox;
use crate::plan::BuildGraph;
use crate::worker::Worker;
use crate::{Idle, Role};

/// Everything a worker's thread needs to begin.
pub(crate) struct Start {
    pub id: usize,
    pub core: Option<usize>,
    pub role: Role,
    pub idle: Idle,
    pub memory: Arc<Memory>,
    pub registry: Arc<Registry>,
    pub metered: bool,
    pub graph: Option<BuildGraph>,
    pub published: Arc<Published<WorkerMeter>>,
    pub mailbox: Arc<Mailbox>,
    pub abort: Arc<AtomicBool>,
    pub rx: Vec<NewRx>,
    pub tx: Vec<NewTx>,
}

pub(crate) enum StartError {
    Core(topology::PinError),
    Graph(GraphError),
    Port(u16, PortError),
}

/// A worker that did not start, with the queues it was given.
pub(crate) struct Failed {
    pub error: StartError,
    pub back: Vec<Returned>,
}

/// The graph of a worker: its own, or what its role makes of it.
fn graph(role: Role, build: Option<BuildGraph>, local: &Local) -> Result<Graph, GraphError> {
    match (role, build) {
        (Role::Rx, _) => GraphBuilder::new(local).build(To::Tx(HANDOFF)),
        (Role::Tx, _) | (_, None) => GraphBuilder::new(local).build(To::Marked),
        (Role::RunToCompletion | Role::Process, Some(build)) => build(local),
    }
}

/// The least slack that the kernel may add to a sleep (PR_SET_TIMERSLACK in prctl(2)); the default is 50 us.
fn precise_sleeps() {
    if let Err(e) = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1)) {
        tracing::warn!("sleeps may end late: setting the timer slack: {e}");
    }
}

impl Start {
    /// On the worker's thread: binds it, builds its graph, attaches its queues.
    pub fn build(self) -> Result<Worker, Failed> {
        let Self { id, core, role, idle, memory, rx, tx, .. } = self;
        self.mailbox.is_mine();
        if let Idle::Sleep { .. } = idle {
            precise_sleeps();
        }
        let local = Local::new(&memory);
        let pinned = core.map_or(Ok(()), topology::pin).map_err(StartError::Core);
        let built = pinned.and_then(|()| graph(role, self.graph, &local).map_err(StartError::Graph));
        let mut graph = match built {
            Ok(graph) => graph,
            Err(error) => {
                let back = rx.into_iter().map(Returned::from).chain(tx.into_iter().map(Returned::from));
                return Err(Failed { error, back: back.collect() });
            }
        };
        graph.abort_when(self.abort);
        graph.publish_stages(|name, kind| self.registry.stage(id, name, kind));
        let env = WorkerEnv { local, node: core.and_then(topology::node_of_core), metered: self.metered };
        let idler = Idler::new(idle, hw::tsc_hz());
        let worker = Worker::new(id, graph, env, self.published, self.mailbox, idler);
        attach(worker, rx, tx)
    }
}

/// Attaches all queues, or gives all back.
fn attach(mut worker: Worker, rx: Vec<NewRx>, tx: Vec<NewTx>) -> Result<Worker, Failed> {
    let (mut rx, mut tx) = (rx.into_iter(), tx.into_iter());
    let mut failed = None;
    for new in rx.by_ref() {
        if let Err((e, new)) = worker.attach_rx(Box::new(new)) {
            failed = Some((StartError::Port(new.port, e), Returned::from(*new)));
            break;
        }
    }
    while let (None, Some(new)) = (&failed, tx.next()) {
        if let Err((e, new)) = worker.attach_tx(Box::new(new)) {
            failed = Some((StartError::Port(new.port, e), Returned::from(*new)));
        }
    }
    let Some((error, last)) = failed else { return Ok(worker) };
    let mut back = worker.detach_all();
    back.push(last);
    back.extend(rx.map(Returned::from).chain(tx.map(Returned::from)));
    Err(Failed { error, back })
}
