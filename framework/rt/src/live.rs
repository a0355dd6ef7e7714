//! Ports that come and go, and other changes, while packets flow (rule 15): messages, taken between two breaths and
//! answered.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use graph::{Graph, OnFull};
use mem::Local;
use port::{OpenPort, PortConfig};

use crate::lanes::{HANDOFF, LINK, NewRx, NewTx};
use crate::mailbox::{AGAIN, DEADLINE};
use crate::plan::{Shape, Way, ways_to};
use crate::runtime::{Runtime, WorkerEntry};
use crate::stop::compare;
use crate::view::device_status;
use crate::worker::Worker;
use crate::{Role, RtError};

impl Runtime {
    /// The number of the port called `name`.
    ///
    /// # Errors
    /// [`RtError::NoPort`], with the ports there are.
    pub fn port(&self, name: &str) -> Result<u16, RtError> {
        let port = self.ports.iter().find(|p| p.open.is_some() && *p.name == *name);
        port.map(|p| p.cfg.port).ok_or_else(|| self.no_port(name))
    }

    fn no_port(&self, port: &str) -> RtError {
        let names = self.ports.iter().filter(|p| p.open.is_some()).map(|p| &*p.name);
        RtError::NoPort { port: port.to_owned(), there: names.collect::<Vec<_>>().join(", ") }
    }

    /// Whether there is a port of that number, and workers run.
    pub(crate) fn live_port(&self, port: u16) -> Result<(), RtError> {
        self.worker(0)?;
        let there = self.ports.get(usize::from(port)).is_some_and(|p| p.open.is_some());
        if there { Ok(()) } else { Err(self.no_port(&port.to_string())) }
    }

    fn shapes(&self) -> Vec<Shape> {
        self.workers.iter().map(|w| w.shape.clone()).collect()
    }

    /// Adds a port while packets flow, starts it, and gives all that send a way to it. Its receive queues go to worker
    /// `receiver`, or each to the receiving worker that has the fewest. Stages must be told of it first
    /// ([`Runtime::with_graph`]) if they are to send to it from its first packet on. Returns its number.
    ///
    /// # Errors
    /// A name that is there already, too few buffers or queues for one more, the port's own. The port is then removed.
    pub fn add_port_live(
        &mut self,
        name: &str,
        open: Box<dyn OpenPort>,
        cfg: PortConfig,
        on_full: OnFull,
        receiver: Option<usize>,
    ) -> Result<u16, RtError> {
        self.worker(0)?;
        receiver.map_or(Ok(()), |w| self.receives(w))?;
        if self.port(name).is_ok() {
            return Err(RtError::PortThere(name.into()));
        }
        if self.ports.len() >= usize::from(HANDOFF) {
            return Err(RtError::TooManyPorts(self.ports.len()));
        }
        let port = self.add_port(name, open, cfg, on_full);
        if let Err(e) = self.bring_up(port, receiver) {
            if let Err(also) = self.remove_port(port) {
                tracing::error!(port = name, "the port could not be taken away again: {also}");
            }
            return Err(e);
        }
        tracing::info!(port = name, "port added");
        Ok(port)
    }

    fn bring_up(&mut self, port: u16, receiver: Option<usize>) -> Result<(), RtError> {
        let mut shapes = self.shapes();
        let senders = self.senders();
        let queues = self.ports[usize::from(port)].cfg.queues;
        if senders.len() > usize::from(queues) {
            return Err(RtError::TooFewQueues { port: self.name(port), queues, workers: senders.len() });
        }
        for (queue, worker) in senders.iter().enumerate() {
            shapes[*worker].tx.push((port, queue as u16));
        }
        let sum = self.sum_of(&shapes);
        if !sum.fits() {
            return Err(RtError::PoolTooSmall(sum));
        }
        self.start_port(usize::from(port))?;
        let until = Instant::now() + DEADLINE;
        for (queue, worker) in senders.into_iter().enumerate() {
            let missing = RtError::NoQueue { worker, port: self.name(port), queue: queue as u16 };
            let new = self.take_tx(port, queue as u16).ok_or(missing)?;
            self.attach_tx(worker, new, until)?;
            self.workers[worker].shape.tx.push((port, queue as u16));
        }
        for way in ways_to(&shapes, port) {
            self.attach_link(way, port, until)?;
        }
        for queue in 0..queues {
            let fewest = || {
                let may = self.workers.iter().filter(|w| self.receives(w.id).is_ok());
                may.min_by_key(|w| w.rx.len()).map_or(0, |w| w.id)
            };
            let worker = receiver.unwrap_or_else(fewest);
            self.attach_rx(worker, port, queue, until)?;
        }
        Ok(())
    }

    /// Workers that send to a new port, each by a queue of its own: the one of role `Tx` that has the fewest, or else all of
    /// role `Process`; and those that run to completion.
    fn senders(&self) -> Vec<usize> {
        let with = |role| self.workers.iter().filter(move |w: &&WorkerEntry| w.shape.role == role);
        let tx = with(Role::Tx).min_by_key(|w| w.shape.tx.len()).map(|w| w.id);
        let first: Vec<usize> = tx.map_or_else(|| with(Role::Process).map(|w| w.id).collect(), |w| vec![w]);
        first.into_iter().chain(with(Role::RunToCompletion).map(|w| w.id)).collect()
    }

    fn attach_tx(&mut self, worker: usize, new: NewTx, until: Instant) -> Result<(), RtError> {
        let port = new.port;
        let (error, back) =
            match self.worker(worker)?.ask_with(until, Box::new(new), |w: &mut Worker, new| w.attach_tx(new))
            {
                Ok(Ok(())) => return Ok(()),
                Ok(Err((source, back))) => (RtError::Port { port: self.name(port), source }, Some(back)),
                Err((e, back)) => (e, back),
            };
        back.into_iter().for_each(|new| self.take_back((*new).into()));
        Err(error)
    }

    /// A ring to the worker that has the port: its receiving side first.
    fn attach_link(&mut self, way: Way, port: u16, until: Instant) -> Result<(), RtError> {
        let link = self.make_link(way, port);
        for inlet in self.rings.inlets_of(way.to) {
            let attach = |w: &mut Worker, new: Box<NewRx>| w.attach_rx(new);
            match self.worker(way.to)?.ask_with(until, Box::new(inlet), attach) {
                Ok(Ok(())) => {}
                Ok(Err((source, back))) => {
                    self.take_back((*back).into());
                    return Err(RtError::Port { port: self.name(port), source });
                }
                Err((e, back)) => {
                    back.into_iter().for_each(|new| self.take_back((*new).into()));
                    return Err(e);
                }
            }
        }
        self.attach_tx(way.from, link, until)
    }

    /// Removes a port while packets flow: receiving ends at the device; what was sent to it is sent (2 s at most, the rest is
    /// dropped as `stopping`), and later packets for it have no route (`no_route`); what it had received is taken, and goes
    /// on its way; the device is reset. Its counts stay in the totals. Its number is not used again, its name may be.
    ///
    /// # Errors
    /// No such port; a worker that does not answer; a worker that cannot take what the port had received, because another
    /// port is full and waits. The port is then there, but neither receives nor sends, and to remove it again goes on where
    /// this ended.
    pub fn remove_port(&mut self, port: u16) -> Result<(), RtError> {
        self.live_port(port)?;
        let p = &mut self.ports[usize::from(port)];
        if let (true, Some(open)) = (p.started, &mut p.open) {
            let at = |source| RtError::Port { port: Arc::clone(&p.name), source };
            open.rx_off().map_err(at)?;
        }
        // Sending first: a worker that waits for this port takes nothing in.
        let until = Instant::now() + DEADLINE;
        self.cut_links(port, until)?;
        self.retire_queues(port, until)?;
        self.retire_rx(port, Instant::now() + DEADLINE)?;
        self.close_port(port);
        Ok(())
    }

    /// Takes a port's receive queues from their workers, once they are empty.
    fn retire_rx(&mut self, port: u16, until: Instant) -> Result<(), RtError> {
        let rx = self.workers.iter().flat_map(|w| w.rx.iter().map(|q| (w.id, *q)));
        let rx: Vec<_> = rx.filter(|(_, q)| q.0 == port).collect();
        for (worker, (_, queue)) in rx {
            // The last look may be at the last moment.
            while !self.worker(worker)?.ask(until + DEADLINE / 4, move |w| w.empty_rx(port, queue))? {
                self.again(worker, until)?;
            }
            let marks = self.detach_rx(worker, port, queue, until + DEADLINE / 4)?;
            match self.settle(worker, marks, until) {
                Err(e @ RtError::UnderWay { .. }) => {
                    tracing::warn!(port = &*self.name(port), queue, "what it received goes on its way: {e}");
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Takes the rings to a port away: senders first, then what is in them goes on its way.
    fn cut_links(&mut self, port: u16, until: Instant) -> Result<(), RtError> {
        let links = self.rings.all.iter().filter(|r| r.way.port == Some(port));
        let links: Vec<_> = links.map(|r| (r.id, r.way, r.view.clone())).collect();
        for (id, way, _) in &links {
            self.retire_tx(way.from, port, LINK | id, until)?;
        }
        let local = Local::new(&self.memory);
        for (id, way, view) in links {
            while view.held() > 0 && Instant::now() < until {
                std::thread::sleep(AGAIN);
            }
            let detach = move |w: &mut Worker| w.detach_rx(HANDOFF, id);
            let inlet = self.worker(way.to)?.ask(until + DEADLINE / 4, detach)?;
            inlet.into_iter().for_each(|q| self.take_back(q));
            self.past.dropped += self.rings.remove(id, &local);
        }
        Ok(())
    }

    /// Takes a port's transmit queues from their workers, once they are empty or in the end: a link may be down.
    fn retire_queues(&mut self, port: u16, until: Instant) -> Result<(), RtError> {
        let all = self.workers.iter().flat_map(|w| w.shape.tx.iter().map(|q| (w.id, *q)));
        let mine: Vec<_> = all.filter(|(_, q)| q.0 == port).collect();
        for (worker, (_, queue)) in mine {
            self.retire_tx(worker, port, queue, until)?;
            self.workers[worker].shape.tx.retain(|q| *q != (port, queue));
        }
        Ok(())
    }

    /// Takes a transmit queue from its worker; does nothing if it is not there.
    fn retire_tx(&mut self, worker: usize, port: u16, id: u16, until: Instant) -> Result<(), RtError> {
        let left = until.saturating_duration_since(Instant::now());
        let deadline = hw::cycles().wrapping_add((left.as_secs_f64() * hw::tsc_hz() as f64) as u64);
        let (to, from) = channel();
        // The answer to this may be late, but the queue then leaves all the same.
        let answer = until + DEADLINE / 4;
        if !self.worker(worker)?.ask(answer, move |w| w.retire_tx(port, id, deadline, to))? {
            return Ok(());
        }
        match from.recv_timeout(answer.saturating_duration_since(Instant::now())) {
            Ok(q) => {
                self.take_back(q);
                Ok(())
            }
            Err(_) => Err(RtError::NoAnswer { worker, within: DEADLINE }),
        }
    }

    /// Compares a port's counts for the last time, and lets its device go.
    fn close_port(&mut self, port: u16) {
        self.watch();
        let p = &mut self.ports[usize::from(port)];
        let Some(open) = &mut p.open else { return };
        let device = device_status(&open.device_counts());
        if p.started {
            self.past.unsent += compare(p, &device, &mut self.past.witness);
        }
        let local = Local::new(&self.memory);
        self.reset_port(usize::from(port), &local);
        let p = &mut self.ports[usize::from(port)];
        p.open = None;
        p.span.in_scope(|| tracing::info!("port removed"));
        self.wait_before_waiting();
    }

    /// From now on a port's doorbells are rung at the latest after `packets`, or when the first has waited `delay`.
    ///
    /// # Errors
    /// No such port, or a worker that does not answer.
    pub fn set_batching(&mut self, port: u16, packets: u16, delay: Duration) -> Result<(), RtError> {
        self.live_port(port)?;
        let ticks = (delay.as_secs_f64() * hw::tsc_hz() as f64) as u64;
        let packets = packets.max(1);
        let until = Instant::now() + DEADLINE;
        for w in self.workers.iter().filter(|w| w.shape.tx.iter().any(|q| q.0 == port)) {
            w.ask(until, move |w| {
                let lanes = w.graph.tx_mut().iter_mut().filter(|l| l.port == port);
                lanes.for_each(|l| l.queue.set_doorbell(packets, ticks));
            })?;
        }
        let p = &mut self.ports[usize::from(port)];
        (p.cfg.doorbell_packets, p.cfg.doorbell_delay) = (packets, ticks);
        tracing::info!(port = &*p.name, packets, ?delay, "batching set");
        Ok(())
    }

    /// Changes the graph of `worker`, or of all workers that run stages, between two breaths. Returns what each answered,
    /// with its number.
    ///
    /// # Errors
    /// No such worker, or one that does not answer; those asked before it have changed.
    pub fn with_graph<R: Send + 'static>(
        &self,
        worker: Option<usize>,
        f: impl Fn(&mut Graph) -> R + Send + Sync + 'static,
    ) -> Result<Vec<(usize, R)>, RtError> {
        self.worker(worker.unwrap_or(0))?;
        let f = Arc::new(f);
        let until = Instant::now() + DEADLINE;
        let has_stages = |w: &&WorkerEntry| matches!(w.shape.role, Role::RunToCompletion | Role::Process);
        let mine = self.workers.iter().filter(|w| worker.map_or_else(|| has_stages(w), |id| w.id == id));
        let ask = |w: &WorkerEntry| {
            let f = Arc::clone(&f);
            Ok((w.id, w.ask(until, move |w| f(&mut w.graph))?))
        };
        mine.map(ask).collect()
    }
}
