//! A worker: one thread, one core, one graph.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use graph::{Breath, Graph, RxLane, TxLane};
use meter::{Published, WorkerMeter};
use port::{PortError, WorkerEnv};

use crate::idle::{Idler, Machine};
use crate::lanes::{NewRx, NewTx, Returned};
use crate::mailbox::Mailbox;

/// What a worker leaves behind.
pub(crate) struct Farewell {
    pub worker: usize,
    pub queues: Vec<Returned>,
    pub meter: WorkerMeter,
}

/// A transmit queue that gets no more packets, and leaves once it is empty.
struct Leaving {
    lane: TxLane,
    deadline: u64,
    to: Sender<Returned>,
}

/// One thread's state.
pub(crate) struct Worker {
    pub id: usize,
    pub graph: Graph,
    pub env: WorkerEnv,
    meter: WorkerMeter,
    published: Arc<Published<WorkerMeter>>,
    mailbox: Arc<Mailbox>,
    idler: Idler,
    random: u64,
    leaving: Vec<Leaving>,
    /// Queues that left when nobody waited for them any more.
    orphans: Vec<Returned>,
    /// Set by the stop command: when to give up draining.
    leave: Option<(u64, Sender<Farewell>)>,
}

/// Whether `deadline` has come.
#[inline]
const fn past(now: u64, deadline: u64) -> bool {
    now.wrapping_sub(deadline) < u64::MAX / 2
}

impl Worker {
    pub fn new(
        id: usize,
        graph: Graph,
        env: WorkerEnv,
        published: Arc<Published<WorkerMeter>>,
        mailbox: Arc<Mailbox>,
        idler: Idler,
    ) -> Self {
        Self {
            id,
            graph,
            env,
            meter: WorkerMeter::default(),
            published,
            mailbox,
            idler,
            random: hw::cycles() | 1,
            leaving: Vec::new(),
            orphans: Vec::new(),
            leave: None,
        }
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
            if past(now, next_publish) {
                next_publish = now.wrapping_add(publish_every);
                self.graph.tick(now);
                self.publish();
            }
            if !self.leaving.is_empty() {
                self.see_off(now);
            }
            // Before new commands are taken: the breath just ended must have begun after the one that says leave.
            if let Some((deadline, _)) = &self.leave
                && (self.is_drained(breath) || past(now, *deadline))
            {
                return self.farewell();
            }
            if self.mailbox.is_waiting() {
                self.obey();
            } else if self.leave.is_none() {
                now = self.idler.rest(breath.worked, now, &mut Machine, &mut self.meter);
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

    /// Packets in batches, and buffers in flight, of queues that leave as well.
    pub fn held(&self) -> (usize, usize) {
        let leaving = self.leaving.iter().map(|l| &l.lane);
        let sum = |f: fn(&TxLane) -> usize| leaving.clone().map(f).sum::<usize>();
        (
            self.graph.batched() + sum(TxLane::waiting) + self.env.local.parked(),
            self.graph.inflight() + sum(|l| l.queue.inflight()),
        )
    }

    fn publish(&mut self) {
        let (held, inflight) = self.held();
        let (m, local) = (&mut self.meter, &self.env.local);
        (m.cache_hits, m.cache_misses) = local.cache_counts();
        m.cached = local.cached() as u64;
        m.posted = self.graph.posted() as u64;
        m.inflight = inflight as u64;
        m.parked = local.parked() as u64;
        m.batched = held as u64 - m.parked;
        m.lost = local.lost();
        self.published.publish(m);
        self.graph.publish();
        self.leaving.iter().for_each(|l| l.lane.published.publish(&l.lane.counts()));
    }

    #[cold]
    fn obey(&mut self) {
        let mailbox = Arc::clone(&self.mailbox);
        mailbox.take().for_each(|command| command(self));
    }

    /// Leaves when drained, or at `deadline`.
    pub fn leave(&mut self, deadline: u64, to: Sender<Farewell>) {
        self.leave = Some((deadline, to));
    }

    fn is_drained(&self, last: Breath) -> bool {
        let nothing = |l: &Leaving| l.lane.waiting() == 0 && l.lane.queue.inflight() == 0;
        let graph = &self.graph;
        last.received == 0
            && graph.inflight() == 0
            && graph.batched() == 0
            && self.leaving.iter().all(nothing)
    }

    /// Binds a receive queue to this worker.
    pub fn attach_rx(&mut self, new: Box<NewRx>) -> Result<(), (PortError, Box<NewRx>)> {
        let NewRx { port, id, setup, base, published } = *new;
        match setup.attach(&self.env) {
            Ok(queue) => {
                self.graph.add_rx(RxLane { port, id, queue, base, published });
                Ok(())
            }
            Err((e, setup)) => Err((e, Box::new(NewRx { port, id, setup, base, published }))),
        }
    }

    /// Binds a transmit queue to this worker.
    pub fn attach_tx(&mut self, new: Box<NewTx>) -> Result<(), (PortError, Box<NewTx>)> {
        let NewTx { port, id, setup, base, published, on_full } = *new;
        match setup.attach(&self.env) {
            Ok(queue) => {
                let mut lane = TxLane::new(&self.env.local, (port, id), queue, on_full, published);
                lane.base = base;
                self.graph.add_tx(lane);
                Ok(())
            }
            Err((e, setup)) => Err((e, Box::new(NewTx { port, id, setup, base, published, on_full }))),
        }
    }

    /// Takes a receive queue out.
    pub fn detach_rx(&mut self, port: u16, id: u16) -> Option<Returned> {
        self.graph.remove_rx(port, id).map(Returned::rx)
    }

    /// Takes a transmit queue out of the graph now, and lets it go once it is empty, or at `deadline`. False if it is not
    /// here.
    pub fn retire_tx(&mut self, port: u16, id: u16, deadline: u64, to: Sender<Returned>) -> bool {
        let lane = self.graph.remove_tx(port, id);
        let there = lane.is_some();
        self.leaving.extend(lane.map(|lane| Leaving { lane, deadline, to }));
        there
    }

    #[cold]
    fn see_off(&mut self, now: u64) {
        for mut l in std::mem::take(&mut self.leaving) {
            let empty = l.lane.retry(now);
            l.lane.queue.flush(now, true);
            l.lane.queue.reap();
            if (empty && l.lane.queue.inflight() == 0) || past(now, l.deadline) {
                if let Err(back) = l.to.send(Returned::tx(l.lane)) {
                    self.orphans.push(back.0);
                }
            } else {
                self.leaving.push(l);
            }
        }
    }

    /// Receives what is left in a queue whose device no longer does, as far as the worker can send it on. True once there
    /// is no more.
    pub fn empty_rx(&mut self, port: u16, id: u16) -> bool {
        const BURSTS: usize = 64;
        let Some(mut lane) = self.graph.remove_rx(port, id) else { return true };
        let mut batch = mem::Batch::new(&self.env.local);
        let mut dry = false;
        for _ in 0..BURSTS {
            if self.graph.tx().iter().any(|l| l.waiting() > 0) {
                break;
            }
            let n = lane.queue.rx_burst(&mut batch);
            if n == 0 {
                dry = true;
                break;
            }
            self.meter.packets += n as u64;
            self.graph.inject(&mut batch, hw::cycles());
        }
        self.graph.add_rx(lane);
        dry
    }

    /// Takes all queues out.
    pub fn detach_all(&mut self) -> Vec<Returned> {
        let mut all = std::mem::take(&mut self.orphans);
        let rx: Vec<_> = self.graph.rx().iter().map(|l| (l.port, l.id)).collect();
        all.extend(rx.into_iter().filter_map(|(port, id)| self.detach_rx(port, id)));
        let tx: Vec<_> = self.graph.tx().iter().map(|l| (l.port, l.id)).collect();
        all.extend(tx.into_iter().filter_map(|(port, id)| self.graph.remove_tx(port, id)).map(Returned::tx));
        for l in std::mem::take(&mut self.leaving) {
            // Whoever waits for it gets it; otherwise it goes with the others.
            if let Err(back) = l.to.send(Returned::tx(l.lane)) {
                all.push(back.0);
            }
        }
        all
    }

    /// Takes the queues out, drops the graph, and says what was counted.
    fn farewell(mut self) {
        let queues = self.detach_all();
        self.publish();
        let Self { id, env, graph, mut meter, published, leave, .. } = self;
        drop(graph);
        // Stages are gone: what is parked now was forgotten; what they let go only now is lost.
        let (local, parked) = (&env.local, env.local.parked() as u64);
        meter.lost = local.lost();
        (meter.cached, meter.posted, meter.inflight, meter.batched, meter.parked) = (0, 0, 0, 0, parked);
        published.publish(&meter);
        // A packet that was forgotten has a handle of its own; the magazines' buffers are not lost with it.
        local.flush();
        drop(env);
        tracing::debug!(packets = meter.packets, "left");
        if let Some((_, to)) = leave {
            let _ = to.send(Farewell { worker: id, queues, meter });
        }
    }
}
