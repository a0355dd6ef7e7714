//! Memory, ports and workers, from start to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Instant;

use graph::OnFull;
use mem::Memory;
use meter::{Direction, Registry};
use port::{OpenPort, PortConfig, Queues, RxSetup, TxSetup};
use tracing::Span;

use crate::lanes::{HANDOFF, NewRx, NewTx, Place, Returned, ReturnedSetup};
use crate::mailbox::Mailbox;
use crate::plan::{self, Shape};
use crate::rings::Rings;
use crate::start::{Failed, Start, StartError};
use crate::status::{Lint, Status};
use crate::stop::Past;
use crate::watch::Watched;
use crate::{Idle, MemorySum, RtError, WorkerPlan};

pub(crate) struct PortEntry {
    pub name: Arc<str>,
    /// `None` once it has been removed.
    pub open: Option<Box<dyn OpenPort>>,
    pub cfg: PortConfig,
    pub on_full: OnFull,
    /// Whether rings to it wait.
    pub waits: Arc<AtomicBool>,
    /// It has been started, and not stopped again.
    pub started: bool,
    /// Its queues, by number.
    pub rx: Vec<Place<Box<dyn RxSetup>>>,
    pub tx: Vec<Place<Box<dyn TxSetup>>>,
    pub watched: Watched,
    pub span: Span,
}

pub(crate) struct WorkerEntry {
    pub id: usize,
    pub core: Option<usize>,
    pub idle: Idle,
    pub shape: Shape,
    /// Receive queues of ports.
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
    /// By number, once all have started.
    pub(crate) workers: Vec<WorkerEntry>,
    pub(crate) rings: Rings,
    pub(crate) lints: Vec<Lint>,
    pub(crate) faults: Vec<String>,
    /// Counts of what is gone.
    pub(crate) past: Past,
    /// The last status, once it has stopped.
    pub(crate) last: Option<Status>,
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
            rings: Rings::default(),
            lints,
            faults: Vec::new(),
            past: Past::default(),
            last: None,
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

    /// Adds a port; its number is the number of ports before it, and goes into `cfg`. `on_full` is what happens to packets
    /// that find its transmit queue, or a ring to it, full.
    ///
    /// As soon as one port waits, so do the rings between receiving and processing workers: a wait that loses packets in
    /// front of it would be none.
    pub fn add_port(
        &mut self,
        name: &str,
        open: Box<dyn OpenPort>,
        mut cfg: PortConfig,
        on_full: OnFull,
    ) -> u16 {
        cfg.port = self.ports.len() as u16;
        self.ports.push(PortEntry {
            name: name.into(),
            open: Some(open),
            cfg,
            on_full,
            waits: Arc::new(AtomicBool::new(on_full == OnFull::Wait)),
            started: false,
            rx: Vec::new(),
            tx: Vec::new(),
            watched: Watched::default(),
            span: tracing::error_span!("port", name),
        });
        self.wait_before_waiting();
        cfg.port
    }

    /// The most buffers that this can hold.
    pub fn memory_sum(&self, plans: &[WorkerPlan]) -> MemorySum {
        let shapes: Vec<Shape> = plans.iter().map(Shape::from).collect();
        self.sum_of(&shapes)
    }

    pub(crate) fn sum_of(&self, shapes: &[Shape]) -> MemorySum {
        let ports = self.ports.iter().filter(|p| p.open.is_some()).map(|p| &p.cfg);
        MemorySum::of_shapes(ports, shapes, self.memory.pools().count(), self.memory.capacity())
    }

    /// Starts the ports, then the workers. On an error everything is stopped again.
    ///
    /// # Errors
    /// Roles that do not go together, the memory sum, a port, a graph, a core, or a queue that is not there: each says
    /// what to do.
    pub fn start(&mut self, plans: Vec<WorkerPlan>) -> Result<(), RtError> {
        if !self.workers.is_empty() {
            return Err(RtError::Started);
        }
        plan::check(&plans)?;
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
        for port in 0..self.ports.len() {
            self.ports[port].cfg.receives =
                plans.iter().any(|plan| plan.rx.iter().any(|q| usize::from(q.0) == port));
            self.start_port(port)?;
        }
        let shapes: Vec<Shape> = plans.iter().map(Shape::from).collect();
        let mut rings = self.make_rings(&shapes);
        let mut plans: Vec<_> = plans.into_iter().enumerate().collect();
        // Whoever empties a ring starts before whoever fills it.
        plans.sort_by_key(|(_, p)| core::cmp::Reverse(p.role.place()));
        for (id, plan) in plans {
            let tx = std::mem::take(&mut rings[id]);
            self.start_worker(id, plan, tx)?;
        }
        self.workers.sort_by_key(|w| w.id);
        Ok(())
    }

    pub(crate) fn start_port(&mut self, port: usize) -> Result<(), RtError> {
        let p = &mut self.ports[port];
        let Some(open) = &mut p.open else { return Ok(()) };
        let at = |source| RtError::Port { port: Arc::clone(&p.name), source };
        let Queues { rx, tx } = open.start(&p.cfg).map_err(at)?;
        let place = |i: usize, direction| self.registry.queue(Arc::clone(&p.name), i as u16, direction);
        let rx = rx.into_iter().enumerate().map(|(i, s)| Place::new(s, place(i, Direction::Rx)));
        let tx = tx.into_iter().enumerate().map(|(i, s)| Place::new(s, place(i, Direction::Tx)));
        (p.rx, p.tx) = (rx.collect(), tx.collect());
        p.started = true;
        Ok(())
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

    /// Takes the queues of `plan` out of their places.
    fn queues(&mut self, id: usize, plan: &WorkerPlan) -> Result<(Vec<NewRx>, Vec<NewTx>), RtError> {
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        let mut missing = None;
        for &(port, queue) in &plan.rx {
            match self.take_rx(port, queue) {
                Some(new) => rx.push(new),
                None => missing = Some((port, queue)),
            }
        }
        for &(port, queue) in &plan.tx {
            match self.take_tx(port, queue) {
                Some(new) => tx.push(new),
                None => missing = Some((port, queue)),
            }
        }
        let Some((port, queue)) = missing else { return Ok((rx, tx)) };
        let back = rx.into_iter().map(Returned::from).chain(tx.into_iter().map(Returned::from));
        back.for_each(|q| self.take_back(q));
        Err(RtError::NoQueue { worker: id, port: self.name(port), queue })
    }

    pub(crate) fn take_rx(&mut self, port: u16, queue: u16) -> Option<NewRx> {
        let place = self.ports.get_mut(usize::from(port))?.rx.get_mut(usize::from(queue))?;
        let setup = place.setup.take()?;
        Some(NewRx { port, id: queue, setup, base: place.counts, published: Arc::clone(&place.published) })
    }

    pub(crate) fn take_tx(&mut self, port: u16, queue: u16) -> Option<NewTx> {
        let p = self.ports.get_mut(usize::from(port))?;
        let place = p.tx.get_mut(usize::from(queue))?;
        let setup = place.setup.take()?;
        let published = Arc::clone(&place.published);
        Some(NewTx { port, id: queue, setup, base: place.counts, published, on_full: p.on_full })
    }

    fn start_worker(&mut self, id: usize, plan: WorkerPlan, rings: Vec<NewTx>) -> Result<(), RtError> {
        let (mut rx, mut tx) = self.queues(id, &plan)?;
        rx.extend(self.rings.inlets_of(id));
        tx.extend(rings);
        let shape = Shape::from(&plan);
        let WorkerPlan { core, role, idle, graph, .. } = plan;
        let start = Start {
            id,
            core,
            role,
            idle,
            memory: Arc::clone(&self.memory),
            registry: Arc::clone(&self.registry),
            metered: self.metered,
            graph,
            published: self.registry.worker(id),
            mailbox: Mailbox::new(),
            abort: Arc::default(),
            rx,
            tx,
        };
        let (mailbox, abort) = (Arc::clone(&start.mailbox), Arc::clone(&start.abort));
        let entry = WorkerEntry { id, core, idle, shape, rx: plan.rx, thread: None, mailbox, abort };
        self.spawn(start, entry)
    }

    fn spawn(&mut self, start: Start, entry: WorkerEntry) -> Result<(), RtError> {
        let id = entry.id;
        let span = tracing::error_span!("worker", id, core = entry.core, role = entry.shape.role.name());
        let (ready, started) = channel();
        let body = move || {
            let _inside = span.entered();
            match start.build() {
                Ok(worker) => {
                    let _ = ready.send(Ok(()));
                    worker.run();
                }
                Err(failed) => {
                    let _ = ready.send(Err(failed));
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("worker-{id}")).spawn(body);
        let thread = thread.map_err(|source| RtError::Thread { worker: id, source })?;
        match started.recv() {
            Ok(Ok(())) => {
                self.workers.push(WorkerEntry { thread: Some(thread), ..entry });
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

    pub(crate) fn name(&self, port: u16) -> Arc<str> {
        self.ports.get(usize::from(port)).map_or_else(|| port.to_string().into(), |p| Arc::clone(&p.name))
    }

    /// Puts a queue back into its place.
    pub(crate) fn take_back(&mut self, q: Returned) {
        if q.port == HANDOFF || matches!(q.setup, ReturnedSetup::Tx(_)) && q.id & crate::lanes::LINK != 0 {
            return self.rings.take_back(q);
        }
        let Some(p) = self.ports.get_mut(usize::from(q.port)) else { return };
        let id = usize::from(q.id);
        match q.setup {
            ReturnedSetup::Rx(s) => {
                p.rx[id].setup = Some(s);
                p.rx[id].counts = q.counts;
            }
            ReturnedSetup::Tx(s) => {
                p.tx[id].setup = Some(s);
                (p.tx[id].counts, p.tx[id].inflight) = (q.counts, q.inflight);
            }
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
