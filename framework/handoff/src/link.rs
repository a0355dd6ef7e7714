//! To the worker that has a port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::{Batch, Outgoing, Parcel};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, TxQueue, TxSetup, WorkerEnv};

use crate::Feed;

/// A transmit queue that hands packets to the worker that has the port's own, each marked with the port.
pub struct Link {
    feed: Feed,
    port: u16,
    waits: Arc<AtomicBool>,
}

impl Link {
    /// A link to `port` by `feed`. While `waits` is set, packets that find no room wait.
    pub const fn new(feed: Feed, port: u16, waits: Arc<AtomicBool>) -> Self {
        Self { feed, port, waits }
    }
}

impl TxSetup for Link {
    fn attach(self: Box<Self>, _: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        let before = self.feed.sent.so_far();
        Ok(Box::new(LinkTx { link: *self, before }))
    }
    /// Packets in the ring are the [`crate::Inlet`]'s.
    fn reclaim(self: Box<Self>, _: &mem::Local) {}
}

struct LinkTx {
    link: Link,
    before: (u64, u64),
}

impl TxQueue for LinkTx {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        let Link { feed, port, waits } = &mut self.link;
        let mut room = feed.ring.reserve(from.len());
        let n = from.drain_while(|packet| {
            let mut parcel = Parcel::from(packet);
            parcel.set_port(*port);
            room.push(parcel).map_err(Outgoing::from)
        });
        feed.sent.add(n);
        drop(room);
        if !from.is_empty() && !waits.load(Ordering::Relaxed) {
            // The hand-off's own counts have it.
            feed.sent.refuse(from.drop_all(DropReason::HandoffFull, &mut DropCounts::default()));
        }
        n
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    /// Nothing that could come back: [`crate::View::held`] has what is in the ring.
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        let (sent, full) = self.link.feed.sent.so_far();
        sum.packets += sent - self.before.0;
        sum.drops.add(DropReason::HandoffFull, full - self.before.1);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(self.link)
    }
}
