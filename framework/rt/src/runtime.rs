//! Memory, ports and workers, from start to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Instant;

use graph::{Graph, GraphError, OnFull};
use mem::{Local, Memory};
use meter::{Direction, Published, QueueMeter, Registry};
use port::{OpenPort, PortConfig, Queues, RxSetup, TxSetup};

use crate::start::{Failed, Start, StartError};
use crate::status::Lint;
use crate::worker::{Mailbox, Returned, ReturnedSetup};
use crate::{MemorySum, RtError};

/// Builds a worker's graph on the worker's own thread, where batches live.
pub type BuildGraph = Box<dyn FnOnce(&Local) -> Result<Graph, GraphError> + Send>;

/// What one worker runs.
pub struct WorkerPlan {
    /// The core to bind it to; `None` leaves it to the kernel.
    pub core: Option<usize>,
    /// Receive queues: port number and queue number.
    pub rx: Vec<(u16, u16)>,
    /// Transmit queues.
    pub tx: Vec<(u16, u16)>,
    /// What happens when a transmit queue is full.
    pub on_full: OnFull,
    /// Stages in the graph, for the memory sum.
    pub stages: usize,
    /// Its graph.
    pub graph: BuildGraph,
}

pub(crate) struct PortEntry {
    pub name: Arc<str>,
    pub open: Box<dyn OpenPort>,
    pub cfg: PortConfig,
    /// It has been started, and not stopped again.
    pub started: bool,
    /// Whether its link was up when last looked at.
    pub seen_up: Option<bool>,
    /// What went wrong with it for good.
    pub fault: Option<String>,
    /// Queues that no worker has, by number.
    pub rx: Vec<Option<Box<dyn RxSetup>>>,
    pub tx: Vec<Option<Box<dyn TxSetup>>>,
}

pub(crate) struct WorkerEntry {
    pub id: usize,
    pub core: Option<usize>,
    pub rx: Vec<(u16, u16)>,
    pub thread: Option<JoinHandle<()>>,
    pub mailbox: Arc<Mailbox>,
    pub abort: Arc<AtomicBool>,
}

/// Packet memory, ports and workers.
pub struct Runtime {
    pub(crate) memory: Arc<Memory>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) ports: Vec<PortEntry>,
    pub(crate) workers: Vec<WorkerEntry>,
    pub(crate) lints: Vec<Lint>,
    pub(crate) started: Instant,
    /// Whether queues count their bursts. Off only to measure what counting costs.
    pub metered: bool,
}

impl Runtime {
    /// A runtime over packet memory that has its pools.
    pub fn new(memory: Arc<Memory>) -> Self {
        let mut lints = Vec::new();
        for pool in memory.pools() {
            let pages = pool.arena().pages();
            if pages == hw::PageSize::Base4K {
                let message = format!(
                    "packet memory lies on {pages} pages{}: expect TLB and IO-TLB misses; `make setup` reserves 2M pages",
                    if pool.arena().locked() { "" } else { " that are not locked" }
                );
                lints.push(Lint { lint: "pages_small", object: format!("{pool:?}"), message });
            }
        }
        Self {
            memory,
            registry: Arc::default(),
            ports: Vec::new(),
            workers: Vec::new(),
            lints,
            started: Instant::now(),
            metered: true,
        }
    }

    /// The runtime's packet memory.
    pub const fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
    /// Where everything is counted.
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
    /// What is not as it should be, so far.
    pub fn lints(&self) -> &[Lint] {
        &self.lints
    }

    /// Adds a port; its number is the number of ports before it, and goes into `cfg`.
    pub fn add_port(&mut self, name: &str, open: Box<dyn OpenPort>, mut cfg: PortConfig) -> u16 {
        cfg.port = self.ports.len() as u16;
        self.ports.push(PortEntry {
            name: name.into(),
            open,
            cfg,
            started: false,
            seen_up: None,
            fault: None,
            rx: Vec::new(),
            tx: Vec::new(),
        });
        cfg.port
    }

    /// The most buffers that this can hold. A stage holds at most one copy of each packet for each transmit queue.
    pub fn memory_sum(&self, plans: &[WorkerPlan]) -> MemorySum {
        let ports: Vec<_> = self.ports.iter().map(|p| p.cfg).collect();
        MemorySum::of(&ports, plans, self.memory.pools().count(), self.memory.capacity())
    }

    /// Starts the ports, then the workers. On an error everything is stopped again.
    ///
    /// # Errors
    /// The memory sum, a port, a graph, a core, or a queue that is not there: each says what to do.
    pub fn start(&mut self, plans: Vec<WorkerPlan>) -> Result<(), RtError> {
        if !self.workers.is_empty() {
            return Err(RtError::Started);
        }
        let sum = self.memory_sum(&plans);
        if !sum.fits() {
            return Err(RtError::PoolTooSmall(sum));
        }
        self.lint_cores(&plans);
        self.lints.iter().for_each(Lint::log);
        let result = self.start_all(plans);
        if result.is_err() {
            self.stop();
        }
        self.started = Instant::now();
        result
    }

    fn start_all(&mut self, plans: Vec<WorkerPlan>) -> Result<(), RtError> {
        for p in &mut self.ports {
            let at = |source| RtError::Port { port: Arc::clone(&p.name), source };
            let Queues { rx, tx } = p.open.start(&p.cfg).map_err(at)?;
            p.rx = rx.into_iter().map(Some).collect();
            p.tx = tx.into_iter().map(Some).collect();
            p.started = true;
        }
        plans.into_iter().enumerate().try_for_each(|(id, plan)| self.start_worker(id, plan))
    }

    /// Workers that share a core, or the threads of one.
    fn lint_cores(&mut self, plans: &[WorkerPlan]) {
        let mut seen: Vec<(usize, usize)> = Vec::new();
        for (i, core) in plans.iter().enumerate().filter_map(|(i, p)| Some((i, p.core?))) {
            let same = seen.iter().find(|s| s.1 == core);
            let sibling = || seen.iter().find(|s| topology::siblings(core).contains(&s.1));
            let message = match (same, same.or_else(sibling)) {
                (Some((j, _)), _) => {
                    format!(
                        "workers {j} and {i} share core {core}: each gets half of it at best; give each its own"
                    )
                }
                (None, Some((j, c))) => {
                    format!(
                        "workers {j} and {i} run on two threads of one core ({c}, {core}): they share its caches"
                    )
                }
                (None, None) => {
                    seen.push((i, core));
                    continue;
                }
            };
            self.lints.push(Lint { lint: "core_shared", object: format!("core {core}"), message });
        }
    }

    fn start_worker(&mut self, id: usize, plan: WorkerPlan) -> Result<(), RtError> {
        let mut rx = Vec::new();
        for &(port, queue) in &plan.rx {
            let p = self.ports.get_mut(usize::from(port));
            let setup = p.and_then(|p| p.rx.get_mut(usize::from(queue))?.take());
            let setup = setup.ok_or_else(|| self.no_queue(id, port, queue))?;
            rx.push((port, queue, setup, self.place(port, queue, Direction::Rx)));
        }
        let mut tx = Vec::new();
        for &(port, queue) in &plan.tx {
            let p = self.ports.get_mut(usize::from(port));
            let setup = p.and_then(|p| p.tx.get_mut(usize::from(queue))?.take());
            let setup = setup.ok_or_else(|| self.no_queue(id, port, queue))?;
            tx.push((port, queue, setup, self.place(port, queue, Direction::Tx)));
        }
        let start = Start {
            id,
            core: plan.core,
            memory: Arc::clone(&self.memory),
            registry: Arc::clone(&self.registry),
            metered: self.metered,
            on_full: plan.on_full,
            graph: plan.graph,
            published: self.registry.worker(id),
            mailbox: Mailbox::new(),
            abort: Arc::default(),
            rx,
            tx,
        };
        let (mailbox, abort) = (Arc::clone(&start.mailbox), Arc::clone(&start.abort));
        let (ready, started) = channel();
        let thread =
            std::thread::Builder::new().name(format!("worker-{id}")).spawn(move || match start.build() {
                Ok(worker) => {
                    let _ = ready.send(Ok(()));
                    worker.run();
                }
                Err(failed) => {
                    let _ = ready.send(Err(failed));
                }
            });
        let thread = thread.map_err(|source| RtError::Thread { worker: id, source })?;
        match started.recv() {
            Ok(Ok(())) => {
                self.workers.push(WorkerEntry {
                    id,
                    core: plan.core,
                    rx: plan.rx,
                    thread: Some(thread),
                    mailbox,
                    abort,
                });
                Ok(())
            }
            Ok(Err(Failed { error, back })) => {
                back.into_iter().for_each(|q| self.take_back(q));
                Err(match error {
                    StartError::Port(port, source) => RtError::Port { port: self.name(port), source },
                    StartError::Core(source) => RtError::Core { worker: id, source },
                    StartError::Graph(source) => RtError::Graph { worker: id, source },
                })
            }
            Err(_) => Err(RtError::WorkerGone { worker: id }),
        }
    }

    fn name(&self, port: u16) -> Arc<str> {
        self.ports.get(usize::from(port)).map_or_else(|| port.to_string().into(), |p| Arc::clone(&p.name))
    }
    fn no_queue(&self, worker: usize, port: u16, queue: u16) -> RtError {
        RtError::NoQueue { worker, port: self.name(port), queue }
    }
    fn place(&self, port: u16, queue: u16, direction: Direction) -> Arc<Published<QueueMeter>> {
        self.registry.queue(self.name(port), queue, direction)
    }
    pub(crate) fn take_back(&mut self, q: Returned) {
        let Some(p) = self.ports.get_mut(usize::from(q.port)) else { return };
        match q.setup {
            ReturnedSetup::Rx(s) => p.rx[usize::from(q.id)] = Some(s),
            ReturnedSetup::Tx(s) => p.tx[usize::from(q.id)] = Some(s),
        }
    }
}

impl Drop for Runtime {
    /// A runtime that is let go still stops its workers and resets its devices.
    fn drop(&mut self) {
        if self.workers.iter().any(|w| w.thread.is_some()) || self.ports.iter().any(|p| p.started) {
            self.stop();
        }
    }
}
