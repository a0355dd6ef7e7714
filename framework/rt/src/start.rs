//! What happens on a worker's own thread before its first breath.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use graph::{Graph, GraphError, OnFull, RxLane, TxLane};
use mem::{Local, Memory};
use meter::{Published, QueueMeter, Registry, WorkerMeter};
use port::{PortError, RxSetup, TxSetup, WorkerEnv};

use crate::runtime::BuildGraph;
use crate::worker::{Mailbox, Returned, ReturnedSetup, Worker};

pub(crate) type Lane<S> = (u16, u16, S, Arc<Published<QueueMeter>>);

/// Everything a worker's thread needs to begin.
pub(crate) struct Start {
    pub id: usize,
    pub core: Option<usize>,
    pub memory: Arc<Memory>,
    pub registry: Arc<Registry>,
    pub metered: bool,
    pub on_full: OnFull,
    pub graph: BuildGraph,
    pub published: Arc<Published<WorkerMeter>>,
    pub mailbox: Arc<Mailbox>,
    pub abort: Arc<AtomicBool>,
    pub rx: Vec<Lane<Box<dyn RxSetup>>>,
    pub tx: Vec<Lane<Box<dyn TxSetup>>>,
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

impl Start {
    /// On the worker's thread: binds it, builds its graph, attaches its queues.
    pub fn build(self) -> Result<Worker, Failed> {
        let Self {
            id,
            core,
            memory,
            registry,
            metered,
            on_full,
            graph,
            published,
            mailbox,
            abort,
            mut rx,
            mut tx,
        } = self;
        let local = Local::new(&memory);
        let pinned = core.map_or(Ok(()), topology::pin).map_err(StartError::Core);
        let built = pinned.and_then(|()| graph(&local).map_err(StartError::Graph));
        let mut g = match built {
            Ok(g) => g,
            Err(error) => return Err(Failed { error, back: unattached(rx, tx).collect() }),
        };
        g.abort_when(abort);
        g.publish_stages(|name, kind| registry.stage(id, name, kind));
        let env = WorkerEnv { local: local.clone(), node: core.and_then(topology::node_of_core), metered };
        while let Some((port, queue, setup, published)) = rx.pop() {
            match setup.attach(&env) {
                Ok(q) => {
                    g.add_rx(RxLane { port, id: queue, queue: q, base: QueueMeter::default(), published })
                }
                Err((e, setup)) => {
                    rx.push((port, queue, setup, published));
                    return Err(give_up(g, StartError::Port(port, e), rx, tx));
                }
            }
        }
        while let Some((port, queue, setup, published)) = tx.pop() {
            match setup.attach(&env) {
                Ok(q) => g.add_tx(TxLane::new(&local, (port, queue), q, on_full, published)),
                Err((e, setup)) => {
                    tx.push((port, queue, setup, published));
                    return Err(give_up(g, StartError::Port(port, e), rx, tx));
                }
            }
        }
        Ok(Worker::new(id, local, g, published, mailbox))
    }
}

fn unattached(
    rx: Vec<Lane<Box<dyn RxSetup>>>,
    tx: Vec<Lane<Box<dyn TxSetup>>>,
) -> impl Iterator<Item = Returned> {
    let counts = QueueMeter::default();
    let rx = rx.into_iter().map(move |(port, id, s, _)| Returned {
        port,
        id,
        setup: ReturnedSetup::Rx(s),
        counts,
        inflight: 0,
    });
    let tx = tx.into_iter().map(move |(port, id, s, _)| Returned {
        port,
        id,
        setup: ReturnedSetup::Tx(s),
        counts,
        inflight: 0,
    });
    rx.chain(tx)
}

fn give_up(
    mut g: Graph,
    error: StartError,
    rx: Vec<Lane<Box<dyn RxSetup>>>,
    tx: Vec<Lane<Box<dyn TxSetup>>>,
) -> Failed {
    let mut back: Vec<_> = unattached(rx, tx).collect();
    let lanes: Vec<_> = g.rx().iter().map(|l| (l.port, l.id)).collect();
    back.extend(lanes.into_iter().filter_map(|(p, q)| g.remove_rx(p, q)).map(Returned::from));
    let lanes: Vec<_> = g.tx().iter().map(|l| (l.port, l.id)).collect();
    back.extend(lanes.into_iter().filter_map(|(p, q)| g.remove_tx(p, q)).map(Returned::from));
    Failed { error, back }
}
