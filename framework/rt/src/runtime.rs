//! Memory, ports and workers, from start to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use graph::{Graph, GraphError, OnFull};
use hw::topology;
use mem::{Local, Memory};
use meter::{Direction, Published, QueueMeter, Registry};
use port::{OpenPort, PortConfig, Queues, RxSetup, TxSetup};

use crate::conserve::Witness;
use crate::start::{Failed, Start, StartError};
use crate::status::{Lint, Status};
use crate::worker::{Farewell, Mailbox, Returned, ReturnedSetup, Worker};
use crate::{MemorySum, RtError};

/// How long a stop waits for queues to drain.
const DRAIN: Duration = Duration::from_secs(2);
/// Places in batches that one stage or one queue of a worker can fill.
const INBOX: usize = mem::BURST;

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
    /// Queues that no worker has, by number.
    rx: Vec<Option<Box<dyn RxSetup>>>,
    tx: Vec<Option<Box<dyn TxSetup>>>,
}

pub(crate) struct WorkerEntry {
    pub id: usize,
    pub core: Option<usize>,
    pub rx: Vec<(u16, u16)>,
    thread: Option<JoinHandle<()>>,
    mailbox: Arc<Mailbox>,
    abort: Arc<AtomicBool>,
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
        self.ports.push(PortEntry { name: name.into(), open, cfg, rx: Vec::new(), tx: Vec::new() });
        cfg.port
    }

    /// The most buffers that this can hold.
    pub fn memory_sum(&self, plans: &[WorkerPlan]) -> MemorySum {
        let rings = |entries: fn(&PortConfig) -> usize| {
            self.ports.iter().map(|p| usize::from(p.cfg.queues) * entries(&p.cfg)).sum()
        };
        let pools = self.memory.pools().count();
        MemorySum {
            rx_rings: rings(|c| c.rx_ring.entries()),
            tx_rings: rings(|c| c.tx_ring.entries()),
            magazines: plans.len() * pools * 2 * mem::BURST,
            inboxes: plans.iter().map(|p| INBOX * (1 + p.stages + p.tx.len())).sum(),
            buffers: self.memory.capacity(),
        }
    }

    /// Starts the ports, then the workers. On an error everything is stopped again.
    ///
    /// # Errors
    /// The memory sum, a port, a graph, a core, or a queue that is not there: each says what to do.
    pub fn start(&mut self, plans: Vec<WorkerPlan>) -> Result<(), RtError> {
        let sum = self.memory_sum(&plans);
        if !sum.fits() {
            return Err(RtError::PoolTooSmall(sum));
        }
        self.lint_cores(&plans);
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
        }
        plans.into_iter().enumerate().try_for_each(|(id, plan)| self.start_worker(id, plan))
    }

    fn lint_cores(&mut self, plans: &[WorkerPlan]) {
        for (i, a) in plans.iter().enumerate() {
            for (j, b) in plans.iter().enumerate().skip(i + 1) {
                let (Some(x), Some(y)) = (a.core, b.core) else { continue };
                let shared = if x == y {
                    format!(
                        "workers {i} and {j} share core {x}: each gets half of it at best; give each its own"
                    )
                } else if topology::siblings(x).contains(&y) {
                    format!(
                        "workers {i} and {j} run on two threads of one core ({x}, {y}): they share its caches"
                    )
                } else {
                    continue;
                };
                tracing::warn!("{shared}");
                self.lints.push(Lint { lint: "core_shared", object: format!("core {x}"), message: shared });
            }
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
        let thread = thread.map_err(|source| RtError::Core {
            worker: id,
            source: hw::HwError::Os { what: "starting a thread".to_owned(), source },
        })?;
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
    fn take_back(&mut self, q: Returned) {
        let Some(p) = self.ports.get_mut(usize::from(q.port)) else { return };
        match q.setup {
            ReturnedSetup::Rx(s) => p.rx[usize::from(q.id)] = Some(s),
            ReturnedSetup::Tx(s) => p.tx[usize::from(q.id)] = Some(s),
        }
    }

    /// Stops everything (rule 15): receiving ends at the devices, workers drain and give their queues back, the
    /// devices' counts are read, the devices reset. Returns the final status, in which all packets are accounted for
    /// or named as unexplained.
    pub fn stop(&mut self) -> Status {
        for p in &mut self.ports {
            if let Err(e) = p.open.rx_off() {
                tracing::error!(port = &*p.name, "receiving could not be ended: {e}");
            }
        }
        let farewells = self.dismiss();
        let mut counts = Vec::new();
        let (mut parked, mut lost) = (0, 0);
        for f in farewells {
            parked += f.parked;
            lost += f.meter.lost;
            for q in f.queues {
                let direction =
                    if matches!(q.setup, ReturnedSetup::Rx(_)) { Direction::Rx } else { Direction::Tx };
                counts.push((q.port, direction, q.counts));
                self.take_back(q);
            }
        }
        let mut status = self.status();
        let mut witness = self.witness(&status, &counts);
        self.reset_ports();
        // Everything is back in the depots, or it is gone.
        witness.missing = (self.memory.capacity() as u64).abs_diff(self.memory.depot() as u64);
        witness.lost = lost;
        tracing::debug!(parked, ?witness, "stopped");
        status.conservation.held = 0;
        status.conservation.judge(&witness);
        for (p, pool) in status.pools.iter_mut().zip(self.memory.pools()) {
            p.available = pool.depot();
        }
        status
    }

    /// Tells all workers to leave, and waits for them. One that waits for a full queue is told to drop what waits.
    fn dismiss(&mut self) -> Vec<Farewell> {
        let (to, from): (_, Receiver<Farewell>) = channel();
        let deadline = hw::cycles().wrapping_add(hw::tsc_hz() * DRAIN.as_secs());
        let here = |w: &&WorkerEntry| w.thread.is_some();
        let there = self.workers.iter().filter(here).count();
        for w in self.workers.iter().filter(here) {
            let to = to.clone();
            w.mailbox.send(Box::new(move |worker: &mut Worker| worker.leave(deadline, to)));
        }
        drop(to);
        let mut all = Vec::new();
        for patience in [DRAIN + DRAIN / 4, DRAIN] {
            while all.len() < there
                && let Ok(f) = from.recv_timeout(patience)
            {
                all.push(f);
            }
            self.workers.iter().for_each(|w| w.abort.store(true, Ordering::Relaxed));
        }
        for w in self.workers.iter_mut().filter(|w| w.thread.is_some()) {
            if all.iter().any(|f| f.worker == w.id) {
                let _ = w.thread.take().map(JoinHandle::join);
            } else {
                tracing::error!("worker {} did not leave within {:?}; its buffers are lost", w.id, 2 * DRAIN);
            }
        }
        all
    }

    /// Compares what devices counted with what queues counted.
    fn witness(&mut self, status: &Status, counts: &[(u16, Direction, QueueMeter)]) -> Witness {
        let mut w = Witness::default();
        for (i, p) in status.ports.iter().enumerate() {
            let sum = |d: Direction| {
                let mine = counts.iter().filter(|c| (usize::from(c.0), c.1) == (i, d));
                let drops = |m: &QueueMeter| if d == Direction::Rx { m.drops.total() } else { 0 };
                mine.map(|c| c.2.packets + drops(&c.2)).sum::<u64>()
            };
            w.rx_difference += p.device.rx_delivered.map_or(0, |n| n.abs_diff(sum(Direction::Rx)));
            w.in_device += p.device.unaccounted().unwrap_or(0);
            w.tx_difference += p.device.tx_sent.map_or(0, |n| n.abs_diff(sum(Direction::Tx)));
        }
        w
    }

    fn reset_ports(&mut self) {
        let local = Local::new(&self.memory);
        for p in &mut self.ports {
            let rx = p.rx.drain(..).flatten().collect();
            let tx = p.tx.drain(..).flatten().collect();
            if let Err(e) = p.open.stop(Queues { rx, tx }, &local) {
                tracing::error!(port = &*p.name, "{e}");
            }
        }
    }
}

impl Drop for Runtime {
    /// A runtime that is let go still stops its workers and resets its devices.
    fn drop(&mut self) {
        if self.workers.iter().any(|w| w.thread.is_some()) || self.ports.iter().any(|p| !p.rx.is_empty()) {
            self.stop();
        }
    }
}
