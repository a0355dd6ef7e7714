//! The receive side: what Linux sends out of the interface.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::{BURST, Batch, Chain, Flags, Local, MAX_SEGMENTS, Meta, PoolId, Slot};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, RxQueue, RxSetup, WorkerEnv};
use virtio_defs::VirtioNetHdr;
use zerocopy::FromBytes;

use crate::mailbox::Mailbox;
use crate::vnet::{ETHERNET, received};

/// Bytes of the longest frame and its header: 64 KiB of IP (`GSO_LEGACY_MAX_SIZE`) behind Ethernet's with tags. One byte
/// more, so that a longer one shows.
const SCRATCH: usize = VirtioNetHdr::LEN + 65_536 + 64 + 1;

/// The queue on its way. It has no buffers.
pub struct RxState {
    port: u16,
    file: Arc<File>,
    mailbox: Arc<Mailbox>,
    receiving: Arc<AtomicBool>,
    scratch: Box<[u8]>,
    /// Bytes in `scratch` of a frame that waits for buffers.
    waiting: Option<usize>,
}

impl RxState {
    pub fn new(port: u16, file: Arc<File>, mailbox: Arc<Mailbox>, receiving: Arc<AtomicBool>) -> Self {
        let scratch = vec![0; SCRATCH].into_boxed_slice();
        Self { port, file, mailbox, receiving, scratch, waiting: None }
    }

    /// The next frame, with its header, into `scratch`; how many bytes. `None` if there is none now.
    #[inline]
    fn read(&mut self, receiving: bool) -> Option<usize> {
        self.waiting.take().or_else(|| {
            // An interface that is down or deleted gives nothing; the control side sees to it.
            if receiving { (&*self.file).read(&mut self.scratch).ok() } else { None }
        })
    }
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

impl RxQueue for Rx {
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        if let Some(file) = self.state.mailbox.take() {
            self.state.file = file;
        }
        let had = out.len();
        let receiving = self.state.receiving.load(Ordering::Relaxed);
        for _ in 0..BURST {
            if out.room() == 0 {
                break;
            }
            let Some(n) = self.state.read(receiving) else { break };
            match self.put(n, out) {
                Ok(()) => {}
                // The kernel keeps what comes meanwhile, and counts what it cannot keep.
                Err(DropReason::NoBuffer) if receiving => {
                    self.state.waiting = Some(n);
                    break;
                }
                Err(reason) => self.drops.add(reason, 1),
            }
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

impl Rx {
    /// Copies the `n` bytes in the scratch buffer into the batch, which has room.
    #[inline]
    fn put(&mut self, n: usize, out: &mut Batch) -> Result<(), DropReason> {
        let read = self.state.scratch.get(..n).unwrap_or_default();
        let (header, frame) = VirtioNetHdr::ref_from_prefix(read).map_err(|_| DropReason::BadLength)?;
        if n == SCRATCH || frame.len() > usize::from(self.local.layout().room()) * MAX_SEGMENTS {
            return Err(DropReason::TooLong);
        }
        if frame.len() < ETHERNET {
            return Err(DropReason::TooShort);
        }
        let (flags, ext) = received(header, frame)?;
        self.copy(frame, flags, out).ok_or(DropReason::NoBuffer)?;
        let last = out.len() - 1;
        if let (Some(ext), Some(mut p)) = (ext, out.pkt(last)) {
            p.set_ext(ext);
        }
        Ok(())
    }

    /// Puts a frame into one buffer, or as many as it takes.
    #[inline]
    fn copy(&self, frame: &[u8], flags: Flags, out: &mut Batch) -> Option<()> {
        let (local, room) = (&self.local, usize::from(self.local.layout().room()));
        let meta = Meta { port: self.state.port, flags, ..Meta::default() };
        if frame.len() > room {
            return self.copy_chain(frame, meta, out);
        }
        let back = |slot: Slot| local.put(slot);
        out.push(local.take(self.pool)?, frame.len() as u16, meta).map_err(back).ok()?;
        let last = out.len() - 1;
        out.pkt(last)?.bytes_mut().copy_from_slice(frame);
        Some(())
    }

    #[cold]
    fn copy_chain(&self, frame: &[u8], meta: Meta, out: &mut Batch) -> Option<()> {
        let (local, room) = (&self.local, usize::from(self.local.layout().room()));
        let back = |slot: Slot| local.put(slot);
        let pieces = frame.chunks(room);
        let mut fresh = local.take_bulk(self.pool, pieces.len());
        if fresh.len() < pieces.len() {
            return None;
        }
        let mut lengths = pieces.clone().map(|p| p.len() as u16);
        let mut chain = Chain::new(local, fresh.next()?, lengths.next()?).map_err(back).ok()?;
        for len in lengths {
            chain.push(fresh.next()?, len).map_err(back).ok()?;
        }
        chain.finish(out, meta).ok()?;
        let last = out.len() - 1;
        let mut p = out.pkt(last)?;
        for (i, piece) in pieces.enumerate() {
            p.segment_mut(i)?.copy_from_slice(piece);
        }
        Some(())
    }
}
