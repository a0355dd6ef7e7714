//! The receive side: frames of a capture into buffers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mem::{BURST, Batch, Chain, Ext, Flags, Local, MAX_SEGMENTS, Meta, PoolId, Slots};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, RxQueue, RxSetup, WorkerEnv};

use crate::finish::ETHERNET;
use crate::pace::Pace;
use crate::read::{Frame, Next, ReadError};
use crate::source::Source;

/// What the queue and the control side know of each other.
#[derive(Default)]
pub struct RxShared {
    /// Whether it receives.
    pub receiving: AtomicBool,
    /// Frames read, those dropped as well.
    pub read: AtomicU64,
    /// There is nothing more.
    pub ended: AtomicBool,
    /// Why the capture could not be read to its end.
    pub fault: Mutex<Option<ReadError>>,
}

impl RxShared {
    #[cold]
    fn fail(&self, e: ReadError) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
    }
}

/// The queue on its way. It has no buffers.
pub struct RxState {
    pub port: u16,
    pub source: Source,
    pub pace: Pace,
    pub shared: Arc<RxShared>,
}

impl RxSetup for RxState {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        match env.pool() {
            Ok(pool) => {
                let (local, drops) = (env.local.clone(), DropCounts::default());
                Ok(env.boxed_rx(Rx { state: *self, local, pool, drops }))
            }
            Err(e) => Err((e, self)),
        }
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct Rx {
    state: RxState,
    local: Local,
    pool: PoolId,
    drops: DropCounts,
}

/// What became of a frame.
enum Put {
    Done,
    /// It waits for buffers.
    NoBuffer,
    Drop(DropReason),
}

impl RxQueue for Rx {
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let Self { state, local, pool, drops } = self;
        let shared = &*state.shared;
        if !shared.receiving.load(Ordering::Relaxed) || shared.ended.load(Ordering::Relaxed) {
            return 0;
        }
        let now = if state.pace.is_full() { 0 } else { hw::cycles() };
        let (had, mut read, mut ended) = (out.len(), 0, false);
        let mut slots = None;
        while out.room() > 0 && read < BURST as u64 {
            let frame = match state.source.peek() {
                Ok(Next::Frame(f)) if state.pace.is_due(f.time, now) => f,
                Ok(Next::Frame(_) | Next::Later) => break,
                Ok(Next::End) => {
                    ended = true;
                    break;
                }
                Err(e) => {
                    shared.fail(e);
                    ended = true;
                    break;
                }
            };
            let slots = slots.get_or_insert_with(|| local.take_bulk(*pool, out.room()));
            match put(&frame, state.port, local, slots, *pool, out) {
                Put::Done => {}
                Put::NoBuffer => break,
                Put::Drop(reason) => drops.add(reason, 1),
            }
            state.pace.delivered(frame.time, frame.bytes.len(), now);
            state.source.advance();
            read += 1;
        }
        shared.read.store(shared.read.load(Ordering::Relaxed) + read, Ordering::Relaxed);
        if ended {
            // After the count: whoever sees the end sees all frames counted.
            shared.ended.store(true, Ordering::Release);
        }
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

/// Copies a frame into the batch, which has room.
#[inline]
fn put(f: &Frame<'_>, port: u16, local: &Local, slots: &mut Slots<'_>, pool: PoolId, out: &mut Batch) -> Put {
    let room = local.layout().room();
    if f.bytes.len() < usize::from(ETHERNET) {
        return Put::Drop(DropReason::TooShort);
    }
    let flags = if f.time.is_some() { Flags::TIME } else { Flags::default() };
    let meta = Meta { port, flags, ..Meta::default() };
    match u16::try_from(f.bytes.len()).ok().filter(|len| *len <= room) {
        Some(len) => {
            let Some(slot) = slots.next() else { return Put::NoBuffer };
            if let Err(slot) = out.push(slot, len, meta) {
                local.put(slot);
                return Put::NoBuffer;
            }
        }
        None => match put_chain(f.bytes.len(), meta, local, pool, out) {
            Put::Done => {}
            other => return other,
        },
    }
    let last = out.len() - 1;
    let Some(mut p) = out.pkt(last) else { return Put::NoBuffer };
    if f.bytes.len() <= usize::from(room) {
        p.bytes_mut().copy_from_slice(f.bytes);
    } else {
        for (i, piece) in f.bytes.chunks(room.into()).enumerate() {
            if let Some(to) = p.segment_mut(i) {
                to.copy_from_slice(piece);
            }
        }
    }
    if let Some(time) = f.time {
        let mut ext = Ext::default();
        ext.time = time;
        p.set_ext(ext);
    }
    Put::Done
}

/// Adds a frame of `len` bytes, more than one buffer holds, to the batch; its bytes are still to be written.
#[cold]
fn put_chain(len: usize, meta: Meta, local: &Local, pool: PoolId, out: &mut Batch) -> Put {
    let room = usize::from(local.layout().room());
    let pieces = len.div_ceil(room);
    if pieces > MAX_SEGMENTS {
        return Put::Drop(DropReason::TooLong);
    }
    let mut fresh = local.take_bulk(pool, pieces);
    if fresh.len() < pieces {
        return Put::NoBuffer;
    }
    let mut left = len;
    let mut next = || {
        let n = left.min(room);
        left -= n;
        fresh.next().map(|slot| (slot, n as u16))
    };
    let built = next().and_then(|(slot, n)| Chain::new(local, slot, n).map_err(|s| local.put(s)).ok());
    let Some(mut chain) = built else { return Put::NoBuffer };
    while let Some((slot, n)) = next() {
        if let Err(slot) = chain.push(slot, n) {
            local.put(slot);
            return Put::NoBuffer;
        }
    }
    if chain.finish(out, meta).is_err() { Put::NoBuffer } else { Put::Done }
}
