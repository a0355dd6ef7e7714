//! Receive queues: frames out of the kernel's blocks into buffers of the pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mem::{Batch, Chain, Ext, Local, MAX_SEGMENTS, Meta, PoolId, Slots};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, RxQueue, RxSetup, WorkerEnv};

use crate::block::{Frame, Step};
use crate::frame::Pieces;
use crate::layout::OUTGOING;
use crate::rx_ring::RxRing;
use crate::swap::{Known, Swap};
use crate::vnet::{self, ETHERNET};

/// After a look at a block that is the kernel's, the next look is this many times a second away at the earliest: the
/// kernel writes that line with each frame, and each look takes it away from its core. A block is a millisecond old
/// before it is handed over, unless it is full.
const LOOKS_A_SECOND: u64 = 100_000;

/// A receive queue between workers.
pub struct RxState {
    /// None until the interface has been there.
    ring: Option<RxRing>,
    swap: Arc<Swap<RxRing>>,
    known: Arc<Known>,
    port: u16,
    /// Lines of the next frame that are fetched while one is copied.
    prefetch: usize,
}

impl RxState {
    /// A queue that takes its ring from `swap`.
    pub fn new(swap: Arc<Swap<RxRing>>, known: Arc<Known>, port: u16, prefetch: u8) -> Self {
        Self { ring: None, swap, known, port, prefetch: prefetch.into() }
    }
}

impl RxSetup for RxState {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        match env.pool() {
            Ok(pool) => Ok(env.boxed_rx(Rx {
                state: *self,
                local: env.local.clone(),
                pool,
                drops: DropCounts::default(),
                look_at: 0,
                patience: hw::tsc_hz() / LOOKS_A_SECOND,
            })),
            Err(e) => Err((e, self)),
        }
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

/// A receive queue on its worker.
struct Rx {
    state: RxState,
    local: Local,
    pool: PoolId,
    drops: DropCounts,
    /// When to look for a block again, and how long to wait after a look in vain: ticks of the cycle counter.
    look_at: u64,
    patience: u64,
}

/// What became of a frame.
enum Landed {
    Well,
    Dropped(DropReason),
    /// There was no buffer.
    Not,
}

impl Rx {
    /// Opens the next block, of the next ring if this one is at its end. False if there is none.
    #[inline]
    fn open(&mut self) -> bool {
        let s = &mut self.state;
        if s.ring.as_ref().is_some_and(RxRing::is_open) {
            return true;
        }
        let off = s.known.off.load(Ordering::Relaxed);
        if !off && hw::cycles() < self.look_at {
            return false;
        }
        loop {
            if s.ring.as_mut().is_some_and(|r| r.open().is_some()) {
                return true;
            }
            // Whoever left a new ring has seen to it that no more comes into the old one.
            match s.swap.take() {
                Some(ring) => s.ring = Some(ring),
                None => break,
            }
        }
        self.look_at = hw::cycles().wrapping_add(self.patience);
        false
    }

    /// Takes frames of the open block until it is at its end or the batch is full. False if there are no buffers.
    #[inline]
    fn take(&mut self, out: &mut Batch) -> bool {
        let Self { state, local, pool, drops, .. } = self;
        let Some(ring) = &mut state.ring else { return false };
        let want = out.room().min(ring.open().unwrap_or(0) as usize);
        let mut landing =
            Landing { slots: local.take_bulk(*pool, want), local, pool: *pool, port: state.port };
        while out.room() > 0 {
            let before = ring.position();
            let landed = match ring.next(state.prefetch) {
                Step::End => {
                    ring.close();
                    return true;
                }
                Step::GivenUp => continue,
                Step::Bad => Landed::Dropped(DropReason::BadDescriptor),
                Step::Frame(f) => landing.land(out, &f),
            };
            match landed {
                Landed::Well => {}
                Landed::Dropped(reason) => drops.add(reason, 1),
                // What stays in the ring may come later; once receiving has ended there is no later.
                Landed::Not if state.known.off.load(Ordering::Relaxed) => drops.add(DropReason::NoBuffer, 1),
                Landed::Not => {
                    ring.back(before);
                    return false;
                }
            }
        }
        true
    }
}

impl RxQueue for Rx {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let had = out.len();
        while out.room() > 0 && self.open() && self.take(out) {}
        out.len() - had
    }
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        sum.drops.merge(&self.drops);
    }
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.state)
    }
}

/// What turns frames into packets.
struct Landing<'l> {
    slots: Slots<'l>,
    local: &'l Local,
    pool: PoolId,
    port: u16,
}

impl Landing<'_> {
    /// Copies a frame into buffers and adds it to `out`, which has room.
    #[inline]
    fn land(&mut self, out: &mut Batch, f: &Frame<'_>) -> Landed {
        if !f.whole {
            // Longer than a block: it would go on cut.
            return Landed::Dropped(DropReason::TooLong);
        }
        if f.pkttype == OUTGOING {
            // Only kernels before 5.16 let a group of sockets see what goes out.
            return Landed::Dropped(DropReason::Filtered);
        }
        if f.bytes.len() < ETHERNET {
            return Landed::Dropped(DropReason::TooShort);
        }
        let (flags, ext) = match vnet::received(&f.vnet, f.bytes, f.tag.is_some()) {
            Ok(known) => known,
            Err(reason) => return Landed::Dropped(reason),
        };
        let meta = Meta { flags, port: self.port, ..Meta::default() };
        let pieces = Pieces::new(f.bytes, f.tag);
        let room = usize::from(self.local.layout().room());
        if pieces.len() > room {
            return self.chain(out, pieces, meta, ext);
        }
        let Some(slot) = self.slots.next().or_else(|| self.local.take(self.pool)) else { return Landed::Not };
        if let Err(slot) = out.push(slot, pieces.len() as u16, meta) {
            self.local.put(slot);
            return Landed::Dropped(DropReason::BadLength);
        }
        if let Some(mut p) = out.len().checked_sub(1).and_then(|i| out.pkt(i)) {
            pieces.write(p.bytes_mut());
            if let Some(ext) = ext {
                p.set_ext(ext);
            }
        }
        Landed::Well
    }

    /// As [`Landing::land`], for a frame that takes several buffers.
    #[inline(never)]
    fn chain(&mut self, out: &mut Batch, mut pieces: Pieces<'_>, meta: Meta, ext: Option<Ext>) -> Landed {
        let room = usize::from(self.local.layout().room());
        let segments = pieces.len().div_ceil(room);
        if segments > MAX_SEGMENTS {
            return Landed::Dropped(DropReason::TooLong);
        }
        let total = pieces.len();
        let mut fresh = self.local.take_bulk(self.pool, segments);
        if fresh.len() < segments {
            return Landed::Not;
        }
        let len_of = |i: usize| room.min(total - i * room) as u16;
        let Some(Ok(mut chain)) = fresh.next().map(|slot| Chain::new(self.local, slot, len_of(0))) else {
            return Landed::Not;
        };
        for (i, slot) in (1..).zip(fresh) {
            if let Err(slot) = chain.push(slot, len_of(i)) {
                self.local.put(slot);
                return Landed::Dropped(DropReason::BadLength);
            }
        }
        if chain.finish(out, meta).is_err() {
            return Landed::Dropped(DropReason::BadLength);
        }
        if let Some(mut p) = out.len().checked_sub(1).and_then(|i| out.pkt(i)) {
            for i in 0..segments {
                if let Some(to) = p.segment_mut(i) {
                    pieces.fill(to);
                }
            }
            if let Some(ext) = ext {
                p.set_ext(ext);
            }
        }
        debug_assert!(pieces.is_empty(), "all bytes found a place");
        Landed::Well
    }
}
