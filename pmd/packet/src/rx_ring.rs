//! The receive ring: blocks that the kernel fills with frames and hands over whole (`TPACKET_V3`).

use core::sync::atomic::{AtomicU32, Ordering};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::block::{Cursor, Step};
use crate::layout::{BlockHeader, RingRequest, rx_status};
use crate::mapping::Mapping;

/// What the kernel puts before a frame's bytes, at most: two headers, what aligns them, the header for offloads.
pub const FRAME_FRONT: u32 = 112;

/// The shape of a receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxShape {
    /// Bytes of a block, a multiple of the page size.
    pub block: u32,
    /// Blocks.
    pub blocks: u32,
    /// The kernel hands over a block that is not full after this many milliseconds.
    pub retire_ms: u32,
}

impl RxShape {
    /// Bytes in all.
    pub const fn len(self) -> usize {
        self.block as usize * self.blocks as usize
    }

    /// As the kernel wants it. Frames have no fixed size in this version; one a block is what it is told.
    pub fn request(self) -> RingRequest {
        RingRequest {
            block_size: self.block,
            block_nr: self.blocks,
            frame_size: self.block,
            frame_nr: self.blocks,
            retire_blk_tov: self.retire_ms,
            ..RingRequest::default()
        }
    }

    const fn status(self, block: u32) -> usize {
        self.block as usize * block as usize + BlockHeader::STATUS
    }
    const fn num_pkts(self, block: u32) -> usize {
        self.block as usize * block as usize + BlockHeader::NUM_PKTS
    }

    /// Bytes of the longest frame that a block holds.
    pub const fn longest_frame(self) -> u32 {
        self.block - (BlockHeader::LEN as u32 + FRAME_FRONT)
    }
}

/// What a receive queue receives by.
pub struct RxSocket {
    map: Mapping,
    shape: RxShape,
}

impl RxSocket {
    /// `map` is that of a ring of `shape`.
    pub fn new(map: Mapping, shape: RxShape) -> Self {
        Self { map, shape }
    }
    /// The socket itself.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.map.socket()
    }

    /// Whether a block that the kernel has not handed over holds frames.
    pub fn is_pending(&self) -> bool {
        let word = |at| self.map.word(at).load(Ordering::Acquire);
        // The count first: a block that is handed over in between was pending when it was looked at.
        (0..self.shape.blocks)
            .any(|b| word(self.shape.num_pkts(b)) != 0 && word(self.shape.status(b)) & rx_status::USER == 0)
    }
}

/// A receive ring and the position in it. The one owner of blocks that are not the kernel's.
pub struct RxRing {
    socket: Arc<RxSocket>,
    /// The block that is read, or waited for.
    at: u32,
    /// Where in it, if it is ours.
    cursor: Option<Cursor>,
}

impl RxRing {
    /// The ring of a socket, from its start.
    pub fn new(socket: Arc<RxSocket>) -> Self {
        Self { socket, at: 0, cursor: None }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        self.socket.map.word(at)
    }

    /// Whether a block is being read.
    #[inline]
    pub const fn is_open(&self) -> bool {
        self.cursor.is_some()
    }

    /// Opens the next block if the kernel has handed it over. Frames left in the open block; `None` without one.
    #[inline]
    pub fn open(&mut self) -> Option<u32> {
        if let Some(cursor) = self.cursor {
            return Some(cursor.left());
        }
        if self.word(self.socket.shape.status(self.at)).load(Ordering::Acquire) & rx_status::USER == 0 {
            return None;
        }
        let cursor = Cursor::open(block(&self.socket, self.at));
        self.cursor = Some(cursor);
        Some(cursor.left())
    }

    /// Takes the next frame of the open block, and brings `lines` lines of the one behind it closer.
    #[inline]
    pub fn next(&mut self, lines: usize) -> Step<'_> {
        let Some(cursor) = &mut self.cursor else { return Step::End };
        let step = cursor.next(block(&self.socket, self.at));
        let behind = self.socket.shape.block as usize * self.at as usize + cursor.at();
        (0..lines).for_each(|i| self.socket.map.prefetch(behind + i * hw::LINE));
        step
    }

    /// Where the reading of the open block stands.
    #[inline]
    pub fn position(&self) -> Option<Cursor> {
        self.cursor
    }

    /// Goes back to a position in the open block.
    #[inline]
    pub fn back(&mut self, position: Option<Cursor>) {
        self.cursor = position;
    }

    /// Gives the open block back to the kernel and goes on to the next.
    #[inline]
    pub fn close(&mut self) {
        if self.cursor.take().is_none() {
            return;
        }
        // The kernel counts again when it opens the block; until then 0 says that nothing is in it, see `is_pending`.
        self.word(self.socket.shape.num_pkts(self.at)).store(0, Ordering::Relaxed);
        self.word(self.socket.shape.status(self.at)).store(0, Ordering::Release);
        self.at = if self.at + 1 < self.socket.shape.blocks { self.at + 1 } else { 0 };
    }
}

/// The bytes of a block that was handed over.
#[inline]
fn block(socket: &RxSocket, at: u32) -> &[u8] {
    let len = socket.shape.block as usize;
    let start = len * at as usize;
    // SAFETY: its status says that it is ours, and the kernel keeps to that; the ring is its one owner, which writes
    // nothing but the two words in `close`, with no slice left.
    unsafe { socket.map.bytes(start..start + len) }
}
