//! Moving a queue from one worker to another, with every flow in order.

use std::time::Instant;

use crate::lanes::{Mark, NewRx, Returned};
use crate::mailbox::{AGAIN, DEADLINE};
use crate::runtime::{Runtime, WorkerEntry};
use crate::worker::Worker;
use crate::{Role, RtError};

impl WorkerEntry {
    /// Has the worker do `f` between two breaths.
    pub fn ask<R: Send + 'static>(
        &self,
        until: Instant,
        f: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, RtError> {
        self.ask_with(until, (), |worker, ()| f(worker)).map_err(|e| e.0)
    }

    /// As `ask`, with something that comes back if the worker does not do it.
    pub fn ask_with<P: Send + 'static, R: Send + 'static>(
        &self,
        until: Instant,
        payload: P,
        f: impl FnOnce(&mut Worker, P) -> R + Send + 'static,
    ) -> Result<R, (RtError, Option<P>)> {
        let worker = self.id;
        if self.thread.as_ref().is_none_or(|t| t.is_finished()) {
            return Err((RtError::WorkerGone { worker }, Some(payload)));
        }
        self.mailbox.ask(until, payload, f).map_err(|payload| {
            let within = DEADLINE.saturating_sub(until.saturating_duration_since(Instant::now()));
            (RtError::NoAnswer { worker, within }, payload)
        })
    }
}

impl Runtime {
    /// The worker of that number.
    pub(crate) fn worker(&self, worker: usize) -> Result<&WorkerEntry, RtError> {
        let last = self.workers.len().checked_sub(1).filter(|_| self.last.is_none());
        let last = last.ok_or(RtError::NotRunning)?;
        self.workers.get(worker).ok_or(RtError::NoWorker { worker, last })
    }

    /// Moves receive queue `queue` of `port` to `worker`, while packets flow; it takes as long as packets that the queue has
    /// delivered need to leave the worker that had it, at most 2 s. All packets of a flow stay in order.
    ///
    /// # Errors
    /// A queue or a worker that is not there or does not receive; a worker that does not answer; packets that do not leave:
    /// the queue then stays where it was.
    pub fn move_queue(&mut self, port: u16, queue: u16, worker: usize) -> Result<(), RtError> {
        let until = Instant::now() + DEADLINE;
        self.receives(worker)?;
        self.live_port(port)?;
        let from = self.workers.iter().find(|w| w.rx.contains(&(port, queue))).map(|w| w.id);
        let from = from.ok_or_else(|| RtError::NoQueue { worker, port: self.name(port), queue })?;
        if from == worker {
            return Ok(());
        }
        let marks = self.detach_rx(from, port, queue, until)?;
        let settled = self.settle(from, marks, until);
        let to = if settled.is_ok() { worker } else { from };
        // A queue that went must go somewhere, however late it is.
        let attached = self.attach_rx(to, port, queue, until.max(Instant::now() + DEADLINE / 4));
        if attached.is_err() && to != from {
            let back = self.attach_rx(from, port, queue, Instant::now() + DEADLINE);
            if let Err(e) = back {
                tracing::error!(port = &*self.name(port), queue, "the queue has no worker now: {e}");
            }
        }
        attached?;
        settled?;
        tracing::info!(port = &*self.name(port), queue, from, to, "queue moved");
        Ok(())
    }

    /// Whether a worker of that number receives from ports.
    pub(crate) fn receives(&self, worker: usize) -> Result<(), RtError> {
        let role = self.worker(worker)?.shape.role;
        if matches!(role, Role::RunToCompletion | Role::Rx) {
            return Ok(());
        }
        let problem =
            "does not receive from ports: name a worker of role \"rx\" or \"run-to-completion\"".into();
        Err(RtError::Role { worker, role, problem })
    }

    /// Takes a receive queue from its worker into its place. Returns how far the worker must come until what the queue
    /// delivered has left.
    pub(crate) fn detach_rx(
        &mut self,
        worker: usize,
        port: u16,
        queue: u16,
        until: Instant,
    ) -> Result<Vec<Mark>, RtError> {
        let detach = move |w: &mut Worker| (w.detach_rx(port, queue), Mark::all(w));
        let (returned, marks) = self.worker(worker)?.ask(until, detach)?;
        self.workers[worker].rx.retain(|q| *q != (port, queue));
        returned.into_iter().for_each(|q: Returned| self.take_back(q));
        Ok(marks)
    }

    /// Gives a receive queue in its place to a worker.
    pub(crate) fn attach_rx(
        &mut self,
        worker: usize,
        port: u16,
        queue: u16,
        until: Instant,
    ) -> Result<(), RtError> {
        let missing = RtError::NoQueue { worker, port: self.name(port), queue };
        let new = self.take_rx(port, queue).ok_or(missing)?;
        let attach = |w: &mut Worker, new: Box<NewRx>| w.attach_rx(new);
        let (error, back) = match self
            .worker(worker)
            .map_err(|e| (e, None))
            .and_then(|w| w.ask_with(until, Box::new(new), attach))
        {
            Ok(Ok(())) => {
                self.workers[worker].rx.push((port, queue));
                return Ok(());
            }
            Ok(Err((source, back))) => (RtError::Port { port: self.name(port), source }, Some(back)),
            Err((e, back)) => (e, back),
        };
        back.into_iter().for_each(|new| self.take_back((*new).into()));
        Err(error)
    }

    /// Waits until all that a worker had sent when `marks` were made has left it, and the rings behind it.
    pub(crate) fn settle(&self, worker: usize, marks: Vec<Mark>, until: Instant) -> Result<(), RtError> {
        let mut marks = marks;
        let w = self.worker(worker)?;
        // The last look may be at the last moment.
        let patience = until + DEADLINE / 4;
        while !marks.is_empty() {
            let look = |w: &mut Worker, mut marks: Vec<Mark>| {
                marks.retain_mut(|m| !m.is_passed(w));
                marks
            };
            marks = w.ask_with(patience, marks, look).map_err(|e| e.0)?;
            if !marks.is_empty() {
                self.again(worker, until)?;
            }
        }
        // What a ring has given out its receiver sends on before it takes anything else.
        let rings = self.rings.all.iter().filter(|r| r.way.from == worker);
        for (view, mark) in rings.map(|r| (&r.view, r.view.sent())) {
            while view.taken() < mark {
                self.again(worker, until)?;
            }
        }
        Ok(())
    }

    /// Waits a little.
    pub(crate) fn again(&self, worker: usize, until: Instant) -> Result<(), RtError> {
        if Instant::now() >= until {
            return Err(RtError::UnderWay { worker, within: DEADLINE });
        }
        std::thread::sleep(AGAIN);
        Ok(())
    }
}
