//! Queues on their way to a worker and back, and how far packets are that were sent by one.

use std::sync::Arc;

use graph::{OnFull, RxLane, TxLane};
use meter::{DropReason, Published, QueueMeter};
use port::{RxSetup, TxSetup};

use crate::worker::Worker;

/// The port number of queues that are rings between workers.
pub(crate) const HANDOFF: u16 = u16::MAX;
/// Set in the number of a transmit queue that is a ring to the worker that has the port.
pub(crate) const LINK: u16 = 1 << 15;

/// A queue that no worker has, with what it has counted on those that had it.
pub(crate) struct Place<S> {
    /// `None` while a worker has it.
    pub setup: Option<S>,
    pub counts: QueueMeter,
    /// Buffers that its device had in flight.
    pub inflight: u64,
    pub published: Arc<Published<QueueMeter>>,
}

impl<S> Place<S> {
    pub fn new(setup: S, published: Arc<Published<QueueMeter>>) -> Self {
        Self { setup: Some(setup), counts: QueueMeter::default(), inflight: 0, published }
    }
}

/// A receive queue for a worker.
pub(crate) struct NewRx {
    pub port: u16,
    pub id: u16,
    pub setup: Box<dyn RxSetup>,
    pub base: QueueMeter,
    pub published: Arc<Published<QueueMeter>>,
}

/// A transmit queue for a worker.
pub(crate) struct NewTx {
    pub port: u16,
    pub id: u16,
    pub setup: Box<dyn TxSetup>,
    pub base: QueueMeter,
    pub published: Arc<Published<QueueMeter>>,
    pub on_full: OnFull,
}

impl NewRx {
    /// A ring between workers. Its counts are its own.
    pub fn ring(id: u16, setup: Box<dyn RxSetup>) -> Self {
        Self { port: HANDOFF, id, setup, base: QueueMeter::default(), published: Arc::default() }
    }
}

impl NewTx {
    /// A ring, or rings, between workers. What it has no room for it drops itself unless it waits.
    pub fn ring(port: u16, id: u16, setup: Box<dyn TxSetup>) -> Self {
        let (base, published) = (QueueMeter::default(), Arc::default());
        Self { port, id, setup, base, published, on_full: OnFull::Wait }
    }
}

/// A queue's setup.
pub(crate) enum ReturnedSetup {
    Rx(Box<dyn RxSetup>),
    Tx(Box<dyn TxSetup>),
}

/// A queue that came back from its worker.
pub(crate) struct Returned {
    pub port: u16,
    pub id: u16,
    pub setup: ReturnedSetup,
    pub counts: QueueMeter,
    /// Buffers that its device had in flight.
    pub inflight: u64,
}

impl Returned {
    pub fn rx(lane: RxLane) -> Self {
        let counts = lane.counts();
        lane.published.publish(&counts);
        let RxLane { port, id, queue, .. } = lane;
        Self { port, id, setup: ReturnedSetup::Rx(queue.detach()), counts, inflight: 0 }
    }
    /// What waits for it is dropped, with reason `stopping`.
    pub fn tx(mut lane: TxLane) -> Self {
        lane.give_up(DropReason::Stopping);
        let (counts, inflight) = (lane.counts(), lane.queue.inflight() as u64);
        lane.published.publish(&counts);
        Self { port: lane.port, id: lane.id, counts, inflight, setup: ReturnedSetup::Tx(lane.queue.detach()) }
    }
}

impl From<NewRx> for Returned {
    fn from(n: NewRx) -> Self {
        Self { port: n.port, id: n.id, setup: ReturnedSetup::Rx(n.setup), counts: n.base, inflight: 0 }
    }
}
impl From<NewTx> for Returned {
    fn from(n: NewTx) -> Self {
        Self { port: n.port, id: n.id, setup: ReturnedSetup::Tx(n.setup), counts: n.base, inflight: 0 }
    }
}

/// How far a transmit queue of a worker must come until all that had been sent by it has left the worker.
pub(crate) struct Mark {
    port: u16,
    id: u16,
    waited: u64,
    sent: Option<u64>,
}

impl Mark {
    /// Marks of all transmit queues, for what was sent by now.
    pub fn all(worker: &Worker) -> Vec<Self> {
        let mark = |l: &TxLane| {
            let waited = l.progress().1 + l.waiting() as u64;
            Self { port: l.port, id: l.id, waited, sent: None }
        };
        worker.graph.tx().iter().map(mark).collect()
    }

    /// Whether its queue has come so far: what waited went in, and the device is done with as many packets as had gone in
    /// by then. Devices send in order, and a packet in flight has at least one buffer in flight.
    pub fn is_passed(&mut self, worker: &Worker) -> bool {
        let lanes = worker.graph.tx();
        let Some(lane) = lanes.iter().find(|l| (l.port, l.id) == (self.port, self.id)) else { return true };
        let (sent, waited) = lane.progress();
        if waited < self.waited {
            return false;
        }
        let mark = *self.sent.get_or_insert(sent);
        sent.saturating_sub(lane.queue.inflight() as u64) >= mark
    }
}
