//! Stopping: nothing is lost on the way, and what the device keeps is named.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mem::Local;
use meter::{Direction, DropReason, QueueMeter};
use port::{PortError, Queues};

use crate::conserve::Witness;
use crate::runtime::{Runtime, WorkerEntry};
use crate::status::{PortStatus, Status};
use crate::worker::{Farewell, ReturnedSetup, Worker};

/// How long a stop waits for queues to drain.
const DRAIN: Duration = Duration::from_secs(2);

/// What a queue that came back had counted.
struct Last {
    port: u16,
    direction: Direction,
    counts: QueueMeter,
    /// Buffers that its device still had.
    inflight: u64,
}

impl Runtime {
    /// Stops everything (rule 15): receiving ends at the devices, workers drain and give their queues back, the
    /// devices' counts are read, the devices reset. Returns the final status, in which all packets are accounted for
    /// or named as unexplained. Packets that a device still had when it was reset are dropped, with reason `stopping`.
    pub fn stop(&mut self) -> Status {
        for p in self.ports.iter_mut().filter(|p| p.started) {
            if let Err(e) = p.open.rx_off() {
                tracing::error!(port = &*p.name, "receiving could not be ended: {e}");
            }
        }
        let (mut last, mut lost) = (Vec::new(), 0);
        for f in self.dismiss() {
            lost += f.meter.lost;
            for q in f.queues {
                let rx = matches!(q.setup, ReturnedSetup::Rx(_));
                let direction = if rx { Direction::Rx } else { Direction::Tx };
                last.push(Last { port: q.port, direction, counts: q.counts, inflight: q.inflight as u64 });
                self.take_back(q);
            }
        }
        let mut status = self.status();
        let mut witness = Witness { lost, ..Witness::default() };
        let mut unsent = 0;
        for (i, p) in status.ports.iter_mut().enumerate() {
            unsent += compare(p, last.iter().filter(|l| usize::from(l.port) == i), &mut witness);
        }
        status.conservation.sent -= unsent;
        status.conservation.dropped += unsent;
        let kept = self.reset_ports();
        // Everything is back in the depots, or kept by a device that did not reset, or gone.
        witness.missing = (self.memory.capacity() as u64).abs_diff(self.memory.depot() as u64 + kept);
        tracing::debug!(?witness, unsent, kept, "stopped");
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

    /// Resets the devices and gives everything back. Returns the buffers that devices keep because they did not reset.
    fn reset_ports(&mut self) -> u64 {
        let local = Local::new(&self.memory);
        let mut kept = 0;
        for p in self.ports.iter_mut().filter(|p| p.started) {
            p.started = false;
            if p.rx.iter().any(Option::is_none) || p.tx.iter().any(Option::is_none) {
                // A worker that did not leave still has a queue: the device must go on, and its memory stay mapped.
                tracing::error!(port = &*p.name, "not reset: a queue did not come back from its worker");
                continue;
            }
            let queues = Queues { rx: take(&mut p.rx), tx: take(&mut p.tx) };
            let stopped = p.open.stop(queues, &local);
            // What was still to be written may fail only now.
            p.fault = p.fault.take().or_else(|| p.open.fault());
            match stopped {
                Ok(()) => {}
                Err(e @ PortError::Quarantined { buffers, .. }) => {
                    kept += buffers as u64;
                    tracing::error!(port = &*p.name, "{e}");
                }
                Err(e) => tracing::error!(port = &*p.name, "{e}"),
            }
        }
        kept
    }
}

fn take<T>(queues: &mut Vec<Option<T>>) -> Vec<T> {
    queues.drain(..).flatten().collect()
}

/// Compares what a port's device counted with what its queues counted. Returns the packets that the device had not sent,
/// and could no longer send.
fn compare<'l>(p: &mut PortStatus, last: impl Iterator<Item = &'l Last> + Clone, w: &mut Witness) -> u64 {
    let of = |d: Direction| last.clone().filter(move |l| l.direction == d);
    let received: u64 = of(Direction::Rx).map(|l| l.counts.packets + l.counts.drops.total()).sum();
    let sent: u64 = of(Direction::Tx).map(|l| l.counts.packets).sum();
    let inflight: u64 = of(Direction::Tx).map(|l| l.inflight).sum();
    w.rx_difference += p.device.rx_delivered.map_or(0, |n| n.abs_diff(received));
    w.in_device += p.device.unaccounted().unwrap_or(0);
    let Some(by_device) = p.device.tx_sent else { return 0 };
    // A packet in flight has at least one buffer in flight, so there are no more of the former than of the latter.
    let unsent = sent.saturating_sub(by_device).min(inflight);
    w.tx_difference += by_device.abs_diff(sent - unsent);
    if unsent > 0 {
        *p.drops.entry(DropReason::Stopping.name()).or_default() += unsent;
    }
    unsent
}
