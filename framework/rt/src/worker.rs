//! A worker: one thread, one core, one graph.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use graph::{Breath, Graph, RxLane, TxLane};
use mem::Local;
use meter::{Published, QueueMeter, WorkerMeter};

/// Something for a worker to do between two breaths.
pub type Command = Box<dyn FnOnce(&mut Worker) + Send>;

/// The control side of a worker's mailbox.
pub struct Mailbox {
    commands: ArrayQueue<Command>,
    waiting: AtomicBool,
}

impl Mailbox {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { commands: ArrayQueue::new(64), waiting: AtomicBool::new(false) })
    }
    /// Leaves a command; waits while the box is full.
    pub fn send(&self, mut command: Command) {
        while let Err(back) = self.commands.push(command) {
            command = back;
            std::thread::sleep(Duration::from_micros(50));
        }
        self.waiting.store(true, Ordering::Release);
    }
}

/// A queue that came back from its worker.
pub struct Returned {
    pub port: u16,
    pub id: u16,
    pub setup: ReturnedSetup,
    pub counts: QueueMeter,
    /// Buffers that its device had in flight.
    pub inflight: usize,
}

/// Its setup.
pub enum ReturnedSetup {
    Rx(Box<dyn port::RxSetup>),
    Tx(Box<dyn port::TxSetup>),
}

/// What a worker leaves behind.
pub struct Farewell {
    pub worker: usize,
    pub queues: Vec<Returned>,
    pub meter: WorkerMeter,
}

/// One thread's state.
pub struct Worker {
    pub id: usize,
    pub local: Local,
    pub graph: Graph,
    meter: WorkerMeter,
    published: Arc<Published<WorkerMeter>>,
    mailbox: Arc<Mailbox>,
    random: u64,
    /// Set by the stop command: when to give up draining.
    leave: Option<(u64, Sender<Farewell>)>,
}

impl Worker {
    pub fn new(
        id: usize,
        local: Local,
        graph: Graph,
        published: Arc<Published<WorkerMeter>>,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        let random = hw::cycles() | 1;
        Self { id, local, graph, meter: WorkerMeter::default(), published, mailbox, random, leave: None }
    }

    /// Breathes until told to leave.
    pub fn run(mut self) {
        let publish_every = hw::tsc_hz() / 1000;
        let mut now = hw::cycles();
        let mut next_publish = now;
        loop {
            let sample = self.sample();
            let breath = self.graph.breathe(now, sample);
            let end = hw::cycles();
            self.account(end.wrapping_sub(now), breath);
            now = end;
            if now.wrapping_sub(next_publish) < u64::MAX / 2 {
                next_publish = now.wrapping_add(publish_every);
                self.graph.tick(now);
                self.publish();
            }
            // Before new commands are taken: the breath just ended must have begun after the one that says leave.
            if let Some((deadline, _)) = &self.leave
                && (self.is_drained(breath) || now.wrapping_sub(*deadline) < u64::MAX / 2)
            {
                return self.farewell();
            }
            // A load of a line that nobody writes costs nothing.
            if self.mailbox.waiting.load(Ordering::Relaxed) {
                self.obey();
            }
        }
    }

    /// True on a random 1 breath in 16 (xorshift, Marsaglia 2003).
    #[inline]
    fn sample(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random & 15 == 0
    }

    #[inline]
    fn account(&mut self, cycles: u64, breath: Breath) {
        let m = &mut self.meter;
        m.polls += 1;
        if breath.received == 0 {
            // Empty polls are never charged to packets.
            m.empty_polls += 1;
            *(if breath.worked { &mut m.useful_cycles } else { &mut m.idle_cycles }) += cycles;
            return;
        }
        let n = breath.received as u64;
        m.packets += n;
        m.useful_cycles += cycles;
        m.cycles_per_packet.add(cycles / n, n);
    }

    fn publish(&mut self) {
        let m = &mut self.meter;
        (m.cache_hits, m.cache_misses) = self.local.cache_counts();
        m.cached = self.local.cached() as u64;
        m.posted = self.graph.posted() as u64;
        m.inflight = self.graph.inflight() as u64;
        m.batched = self.graph.batched() as u64;
        m.parked = self.local.parked() as u64;
        m.lost = self.local.lost();
        self.published.publish(m);
        self.graph.publish();
    }

    #[cold]
    fn obey(&mut self) {
        let mailbox = Arc::clone(&self.mailbox);
        mailbox.waiting.swap(false, Ordering::AcqRel);
        while let Some(command) = mailbox.commands.pop() {
            command(self);
        }
    }

    /// Leaves when drained, or at `deadline`.
    pub fn leave(&mut self, deadline: u64, to: Sender<Farewell>) {
        self.leave = Some((deadline, to));
    }

    fn is_drained(&self, last: Breath) -> bool {
        last.received == 0 && self.graph.inflight() == 0 && self.graph.batched() == 0
    }

    /// Takes the queues out, drops the graph, and says what was counted.
    fn farewell(mut self) {
        let mut queues = Vec::new();
        let rx: Vec<_> = self.graph.rx().iter().map(|l| (l.port, l.id)).collect();
        for (port, id) in rx {
            queues.extend(self.graph.remove_rx(port, id).map(Returned::from));
        }
        let tx: Vec<_> = self.graph.tx().iter().map(|l| (l.port, l.id)).collect();
        for (port, id) in tx {
            queues.extend(self.graph.remove_tx(port, id).map(Returned::from));
        }
        self.publish();
        let Self { id, local, graph, mut meter, published, leave, .. } = self;
        drop(graph);
        // Stages are gone: what is parked now was forgotten; what they let go only now is lost.
        let parked = local.parked() as u64;
        meter.lost = local.lost();
        (meter.cached, meter.posted, meter.inflight, meter.batched, meter.parked) = (0, 0, 0, 0, parked);
        published.publish(&meter);
        // A packet that was forgotten has a handle of its own; the magazines' buffers are not lost with it.
        local.flush();
        drop(local);
        if let Some((_, to)) = leave {
            let _ = to.send(Farewell { worker: id, queues, meter });
        }
    }
}

impl From<RxLane> for Returned {
    fn from(lane: RxLane) -> Self {
        let counts = lane.counts();
        lane.published.publish(&counts);
        Self {
            port: lane.port,
            id: lane.id,
            setup: ReturnedSetup::Rx(lane.queue.detach()),
            counts,
            inflight: 0,
        }
    }
}
impl From<TxLane> for Returned {
    fn from(lane: TxLane) -> Self {
        let (counts, inflight) = (lane.counts(), lane.queue.inflight());
        Self { port: lane.port, id: lane.id, counts, inflight, setup: ReturnedSetup::Tx(lane.queue.detach()) }
    }
}
