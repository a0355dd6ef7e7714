//! To many workers, by flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use mem::{BURST, Batch, Local, Outgoing, Parcel};
use meter::{DropReason, QueueMeter};
use port::{PortError, TxQueue, TxSetup, WorkerEnv};
use ring::{Producer, Reserve};
use wire::flow;

use crate::counts::Sent;
use crate::{Feed, MAX_FEEDS};

/// A transmit queue that spreads packets over feeds: all of a flow to one, in order, marked as they were.
pub struct Spread {
    rings: Vec<Producer<Parcel>>,
    sent: Vec<Sent>,
    waits: Arc<AtomicBool>,
}

impl Spread {
    /// Spreads over `feeds`. While `waits` is set, packets that find no room wait.
    ///
    /// # Panics
    /// Without feeds, or with more than [`MAX_FEEDS`].
    pub fn new(feeds: Vec<Feed>, waits: Arc<AtomicBool>) -> Self {
        assert!((1..=MAX_FEEDS).contains(&feeds.len()), "1 to {MAX_FEEDS} feeds, not {}", feeds.len());
        let (rings, sent) = feeds.into_iter().map(|f| (f.ring, f.sent)).unzip();
        Self { rings, sent, waits }
    }

    fn so_far(&self) -> (u64, u64) {
        let all = self.sent.iter().map(Sent::so_far);
        all.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }
}

/// The feed, of `feeds`, of each packet.
#[inline]
fn choose(batch: &mut Batch, feeds: usize) -> [u8; BURST] {
    let mut to = [0; BURST];
    if feeds > 1 {
        for (to, packet) in to.iter_mut().zip(batch.iter_mut()) {
            *to = ((u64::from(flow::hash(packet.bytes())) * feeds as u64) >> 32) as u8;
        }
    }
    to
}

impl TxSetup for Spread {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        let before = self.so_far();
        Ok(Box::new(SpreadTx { spread: *self, local: env.local.clone(), before }))
    }
    /// Packets in the rings are the [`crate::Inlet`]s'.
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct SpreadTx {
    spread: Spread,
    local: Local,
    before: (u64, u64),
}

impl TxQueue for SpreadTx {
    #[inline]
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        let Spread { rings, sent, waits } = &mut self.spread;
        let (to, n) = (choose(from, rings.len()), from.len());
        let wait = waits.load(Ordering::Relaxed);
        // What a ring has room for is settled here: once it has refused a packet of this burst it refuses all that
        // follow, so that no flow overtakes itself.
        let mut rooms: ArrayVec<Reserve<'_, Parcel>, MAX_FEEDS> =
            rings.iter_mut().map(|r| r.reserve(n)).collect();
        let (mut next, mut refused) = (0, 0);
        let gone = from.drain_each(|packet| {
            let feed = usize::from(to[next]);
            next += 1;
            match rooms[feed].push(packet.into()) {
                Ok(()) => Ok(()),
                Err(parcel) if wait => Err(Outgoing::from(parcel)),
                Err(parcel) => {
                    sent[feed].refuse(1);
                    refused += 1;
                    parcel.free(&self.local);
                    Ok(())
                }
            }
        });
        for (sent, room) in sent.iter_mut().zip(&rooms).filter(|(_, room)| room.used() > 0) {
            sent.add(room.used());
        }
        gone - refused
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    /// Nothing that could come back: [`crate::View::held`] has what is in the rings.
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        let (sent, full) = self.spread.so_far();
        sum.packets += sent - self.before.0;
        sum.drops.add(DropReason::HandoffFull, full - self.before.1);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(self.spread)
    }
}
