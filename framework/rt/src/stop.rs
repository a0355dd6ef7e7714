//! Stopping: nothing is lost on the way, and what the device keeps is named.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mem::Local;
use meter::DropReason;
use port::{PortError, Queues};

use crate::conserve::Witness;
use crate::lanes::Place;
use crate::mailbox::DEADLINE;
use crate::runtime::{PortEntry, Runtime, WorkerEntry};
use crate::status::{DeviceStatus, Status};
use crate::worker::Farewell;

/// Beyond its deadline, a worker has this long to give its queues back.
const GRACE: Duration = Duration::from_millis(500);

/// What is not counted anywhere else: of ports and rings that are gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    /// Packets given to transmit queues whose devices did not send them any more.
    pub unsent: u64,
    /// Packets dropped at rings that are gone.
    pub dropped: u64,
    pub witness: Witness,
    /// Buffers that devices keep because they did not reset.
    pub kept: u64,
}

impl Runtime {
    /// Stops everything (rule 15): receiving ends at the devices, workers drain and give their queues back (those that
    /// receive first, those that only send last), the devices' counts are read, the devices reset. Returns the final
    /// status, in which all packets are accounted for or named as unexplained. Packets that a device still had when it was
    /// reset, or that a ring had at the deadline, are dropped, with reason `stopping`.
    ///
    /// A second call returns the same.
    pub fn stop(&mut self) -> Status {
        if let Some(last) = &self.last {
            return last.clone();
        }
        for p in self.ports.iter_mut().filter(|p| p.started) {
            let _inside = p.span.enter();
            if let Some(Err(e)) = p.open.as_mut().map(|open| open.rx_off()) {
                tracing::error!("receiving could not be ended: {e}");
            }
        }
        let ran = !self.workers.is_empty();
        for f in self.dismiss() {
            self.past.witness.lost += f.meter.lost;
            f.queues.into_iter().for_each(|q| self.take_back(q));
        }
        let local = Local::new(&self.memory);
        self.rings.empty(&local);
        // Links may be down by now because receiving has ended; faults are news.
        (0..self.ports.len()).for_each(|port| self.note_fault(port));
        let mut status = self.status();
        let live = self.ports.iter_mut().filter(|p| p.open.is_some());
        for (p, s) in live.zip(&mut status.ports) {
            let unsent = compare(p, &s.device, &mut self.past.witness);
            if unsent > 0 {
                *s.drops.entry(DropReason::Stopping.name()).or_default() += unsent;
            }
            self.past.unsent += unsent;
            status.conservation.sent -= unsent;
            status.conservation.dropped += unsent;
        }
        for port in 0..self.ports.len() {
            self.reset_port(port, &local);
        }
        drop(local);
        // Everything is back in the depots, or kept by a device that did not reset, or gone.
        let mut witness = self.past.witness;
        witness.missing =
            (self.memory.capacity() as u64).abs_diff(self.memory.depot() as u64 + self.past.kept);
        tracing::debug!(?witness, past = ?self.past, "stopped");
        status.conservation.held = 0;
        status.conservation.judge(&witness);
        for (p, pool) in status.pools.iter_mut().zip(self.memory.pools()) {
            p.available = pool.depot();
        }
        if ran {
            self.last = Some(status.clone());
        }
        status
    }

    /// Tells all workers to leave, those that are furthest from the packets' way out first, and waits for them. One that
    /// waits for a full queue is told to drop what waits.
    fn dismiss(&mut self) -> Vec<Farewell> {
        let (ticks, until) =
            (hw::cycles().wrapping_add(hw::tsc_hz() * DEADLINE.as_secs()), Instant::now() + DEADLINE);
        let mut all = Vec::new();
        for place in 0..=2 {
            let mine = |w: &&WorkerEntry| w.thread.is_some() && w.shape.role.place() == place;
            let ids: Vec<usize> = self.workers.iter().filter(mine).map(|w| w.id).collect();
            let (to, from): (_, Receiver<Farewell>) = channel();
            for w in self.workers.iter().filter(mine) {
                let to = to.clone();
                // Past the deadline it must still be told, or it would never leave.
                let patience = until.max(Instant::now() + GRACE);
                w.mailbox.tell(patience, move |worker| worker.leave(ticks, to));
            }
            drop(to);
            let mut came = 0;
            for patience in [until + GRACE, until + GRACE + DEADLINE] {
                while came < ids.len()
                    && let Ok(f) = from.recv_timeout(patience.saturating_duration_since(Instant::now()))
                {
                    all.push(f);
                    came += 1;
                }
                if came < ids.len() {
                    self.workers.iter().for_each(|w| w.abort.store(true, Ordering::Relaxed));
                }
            }
        }
        for w in self.workers.iter_mut().filter(|w| w.thread.is_some()) {
            if all.iter().any(|f| f.worker == w.id) {
                let _ = w.thread.take().map(JoinHandle::join);
            } else {
                tracing::error!(
                    "worker {} did not leave within {:?}; its buffers are lost",
                    w.id,
                    GRACE + 2 * DEADLINE
                );
            }
        }
        all
    }

    /// Resets a device and gives everything back.
    pub(crate) fn reset_port(&mut self, port: usize, local: &Local) {
        let p = &mut self.ports[port];
        if !std::mem::replace(&mut p.started, false) {
            return;
        }
        let _inside = p.span.clone().entered();
        let Some(open) = &mut p.open else { return };
        if p.rx.iter().any(|q| q.setup.is_none()) || p.tx.iter().any(|q| q.setup.is_none()) {
            // A worker that did not leave still has a queue: the device must go on, and its memory stay mapped.
            tracing::error!("not reset: a queue did not come back from its worker");
            return;
        }
        let queues = Queues { rx: take(&mut p.rx), tx: take(&mut p.tx) };
        match open.stop(queues, local) {
            Ok(()) => {}
            Err(e @ PortError::Quarantined { buffers, .. }) => {
                self.past.kept += buffers as u64;
                tracing::error!("{e}");
            }
            Err(e) => tracing::error!("{e}"),
        }
        self.note_fault(port);
    }
}

fn take<S>(places: &mut [Place<S>]) -> Vec<S> {
    places.iter_mut().filter_map(|p| p.setup.take()).collect()
}

/// Compares what a port's device counted with what its queues counted. Returns the packets that the device had not sent,
/// and could no longer send.
pub(crate) fn compare(p: &PortEntry, device: &DeviceStatus, w: &mut Witness) -> u64 {
    let received: u64 = p.rx.iter().map(|q| q.counts.packets + q.counts.drops.total()).sum();
    let sent: u64 = p.tx.iter().map(|q| q.counts.packets).sum();
    let inflight: u64 = p.tx.iter().map(|q| q.inflight).sum();
    w.rx_difference += device.rx_delivered.map_or(0, |n| n.abs_diff(received));
    w.in_device += device.unaccounted().unwrap_or(0);
    let Some(by_device) = device.tx_sent else { return 0 };
    // A packet in flight has at least one buffer in flight, so there are no more of the former than of the latter.
    let unsent = sent.saturating_sub(by_device).min(inflight);
    w.tx_difference += by_device.abs_diff(sent - unsent);
    unsent
}
