//! The rings between workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graph::OnFull;
use handoff::{Feed, Inlet, Link, Spread, View, handoff};
use mem::Local;
use meter::{DropCounts, DropReason};
use port::RxSetup;
use ring::RingSize;

use crate::lanes::{HANDOFF, LINK, NewRx, NewTx, Returned, ReturnedSetup};
use crate::plan::{HANDOFF_RING, Shape, Way, ways};
use crate::runtime::Runtime;

/// One ring.
pub(crate) struct RingEntry {
    /// The number of its queues.
    pub id: u16,
    pub way: Way,
    pub view: View,
    /// Packets that waited before it when its sender left: of one that has several rings, before the first.
    left: u64,
    /// Its receiving side, while no worker has it.
    inlet: Option<Box<dyn RxSetup>>,
}

impl RingEntry {
    /// Packets dropped at it.
    pub fn drops(&self) -> DropCounts {
        let mut drops = self.view.drops();
        drops.add(DropReason::Stopping, self.left);
        drops
    }
}

/// All rings of a runtime.
#[derive(Default)]
pub(crate) struct Rings {
    pub all: Vec<RingEntry>,
    /// Whether rings between receiving and processing workers wait.
    waits: Arc<AtomicBool>,
}

impl Rings {
    /// Makes a ring. Its inlet waits here for its worker.
    pub fn add(&mut self, way: Way) -> (u16, Feed) {
        let size = RingSize::try_from(HANDOFF_RING).expect("a power of two");
        let (feed, inlet, view): (Feed, Inlet, View) = handoff(size);
        // Numbers are used again: ports may come and go for years.
        let free = |id: &u16| self.all.iter().all(|r| r.id != *id);
        let id = (0..LINK).find(free).expect("fewer rings than numbers: 64 workers times the ports");
        self.all.push(RingEntry { id, way, view, left: 0, inlet: Some(Box::new(inlet)) });
        (id, feed)
    }

    /// Inlets for a worker that have none yet.
    pub fn inlets_of(&mut self, worker: usize) -> Vec<NewRx> {
        let mine = self.all.iter_mut().filter(|r| r.way.to == worker);
        mine.filter_map(|r| Some(NewRx::ring(r.id, r.inlet.take()?))).collect()
    }

    /// The transmit queue that a worker spreads packets by.
    pub fn spread(&self, worker: usize, feeds: Vec<Feed>) -> NewTx {
        let spread = Spread::new(feeds, Arc::clone(&self.waits));
        NewTx::ring(HANDOFF, worker as u16, Box::new(spread))
    }

    pub fn take_back(&mut self, q: Returned) {
        let mine = |r: &&mut RingEntry| match q.setup {
            ReturnedSetup::Tx(_) if q.port == HANDOFF => {
                r.way.from == usize::from(q.id) && r.way.port.is_none()
            }
            ReturnedSetup::Tx(_) => r.id == q.id & !LINK,
            ReturnedSetup::Rx(_) => r.id == q.id,
        };
        let Some(r) = self.all.iter_mut().find(mine) else { return };
        match q.setup {
            // What its sender left in a ring is the receiver's: nothing of it is in a feed.
            ReturnedSetup::Tx(_) => r.left += q.counts.drops.of(DropReason::Stopping),
            ReturnedSetup::Rx(inlet) => r.inlet = Some(inlet),
        }
    }

    /// Frees what is left in rings that have come back.
    pub fn empty(&mut self, local: &Local) {
        for r in &mut self.all {
            if let Some(inlet) = r.inlet.take() {
                inlet.reclaim(local);
            }
        }
    }

    /// Takes a ring away. Returns what was dropped at it.
    pub fn remove(&mut self, id: u16, local: &Local) -> u64 {
        let Some(i) = self.all.iter().position(|r| r.id == id) else { return 0 };
        let mut ring = self.all.swap_remove(i);
        if let Some(inlet) = ring.inlet.take() {
            inlet.reclaim(local);
        }
        ring.drops().total()
    }

    /// Packets in rings.
    pub fn held(&self) -> u64 {
        self.all.iter().map(|r| r.view.held()).sum()
    }
    /// Packets dropped at rings.
    pub fn dropped(&self) -> u64 {
        self.all.iter().map(|r| r.drops().total()).sum()
    }
}

impl Runtime {
    /// Makes all rings; the sending sides for each worker.
    pub(crate) fn make_rings(&mut self, shapes: &[Shape]) -> Vec<Vec<NewTx>> {
        let mut spreads: Vec<Vec<Feed>> = shapes.iter().map(|_| Vec::new()).collect();
        let mut queues: Vec<Vec<NewTx>> = shapes.iter().map(|_| Vec::new()).collect();
        for way in ways(shapes) {
            match way.port {
                None => spreads[way.from].push(self.rings.add(way).1),
                Some(port) => queues[way.from].push(self.make_link(way, port)),
            }
        }
        for (worker, feeds) in spreads.into_iter().enumerate().filter(|(_, f)| !f.is_empty()) {
            queues[worker].push(self.rings.spread(worker, feeds));
        }
        queues
    }

    /// Makes a ring to the worker that has `port`.
    pub(crate) fn make_link(&mut self, way: Way, port: u16) -> NewTx {
        let (id, feed) = self.rings.add(way);
        let waits = self.ports.get(usize::from(port)).map(|p| Arc::clone(&p.waits)).unwrap_or_default();
        NewTx::ring(port, LINK | id, Box::new(Link::new(feed, port, waits)))
    }

    /// Rings in front of processing workers wait as soon as one port does.
    pub(crate) fn wait_before_waiting(&self) {
        let waits = self.ports.iter().any(|p| p.open.is_some() && p.on_full == OnFull::Wait);
        self.rings.waits.store(waits, Ordering::Relaxed);
    }
}
