//! The transmit ring: slots of one size that the kernel takes in order when it is called (`TPACKET_V3`, without blocks).
//!
//! A frame is sent in two steps: it is laid into the next slot, and the kernel is called for all that were laid. What it
//! does not take then is taken back, so that between two bursts the ring holds nothing of ours.

use core::sync::atomic::Ordering;
use std::io::{IoSlice, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::layout::{FrameHeader, RingRequest, VnetHeader, option, tx_status};
use crate::mapping::Mapping;
use crate::sys;

/// Slots of a block: with slots that are a multiple of 64 bytes long a block is a whole number of pages.
const PER_BLOCK: u32 = 64;
/// The longest frame for which a slot is made. What is longer is sent by a call of its own, which copies it once instead
/// of twice.
const LONGEST: u32 = 2048;
/// What stands before a frame's bytes in a slot.
const FRONT: usize = FrameHeader::LEN + VnetHeader::LEN;

/// The shape of a transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxShape {
    /// Bytes from one slot to the next.
    slot: u32,
    /// Slots.
    slots: u32,
}

impl TxShape {
    /// At least `entries` slots for frames of up to `longest` bytes, as far as slots are made for them. Slots are an odd
    /// number of cache lines apart, which spreads their heads over the cache's sets.
    pub fn new(entries: u32, longest: u32) -> Self {
        let bytes = FRONT as u32 + longest.min(LONGEST);
        let lines = bytes.div_ceil(hw::LINE as u32) | 1;
        Self { slot: lines * hw::LINE as u32, slots: entries.next_multiple_of(PER_BLOCK) }
    }

    /// Bytes in all.
    pub const fn len(self) -> usize {
        self.slot as usize * self.slots as usize
    }
    /// Bytes of the longest frame that fits.
    pub const fn longest(self) -> u32 {
        self.slot - FRONT as u32
    }
    /// Slots.
    pub const fn slots(self) -> u32 {
        self.slots
    }

    /// As the kernel wants it.
    pub fn request(self) -> RingRequest {
        RingRequest {
            block_size: self.slot * PER_BLOCK,
            block_nr: self.slots / PER_BLOCK,
            frame_size: self.slot,
            frame_nr: self.slots,
            ..RingRequest::default()
        }
    }

    const fn start(self, index: u32) -> usize {
        self.slot as usize * index as usize
    }
    /// `n` slots before `index`.
    const fn before(self, index: u32, n: u32) -> u32 {
        if index >= n { index - n } else { index + self.slots - n }
    }
}

/// After so many frames to be cut up that went through the queueing discipline, the direct way is tried again.
const DETOUR: u32 = 1024;

/// The way that frames take in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// Past the queueing discipline.
    Direct,
    /// Through it, for so many more frames that are to be cut up.
    Detour(u32),
    /// Through it, as the user wants it.
    Queued,
}

/// What a transmit queue sends by: a socket with a ring, and one without for frames that fit no slot.
pub struct TxSockets {
    pub ring: Mapping,
    pub plain: OwnedFd,
}

/// A transmit ring and the position in it. The one owner of the slots that are not the kernel's.
pub struct TxRing {
    sockets: Arc<TxSockets>,
    shape: TxShape,
    path: Path,
    /// The slot that is laid next. With none laid it is the one at which the kernel looks next.
    at: u32,
    /// Slots laid, and not yet taken by the kernel.
    laid: u32,
}

impl TxRing {
    /// The ring of `sockets`, from its start; the mapping has its length. `bypass`: they send past the queueing discipline.
    pub fn new(sockets: Arc<TxSockets>, shape: TxShape, bypass: bool) -> Self {
        let path = if bypass { Path::Direct } else { Path::Queued };
        Self { sockets, shape, path, at: 0, laid: 0 }
    }

    /// Bytes of the longest frame that fits a slot.
    #[inline]
    pub const fn longest(&self) -> u32 {
        self.shape.longest()
    }
    /// Slots laid, and not yet taken by the kernel.
    #[inline]
    pub const fn laid(&self) -> u32 {
        self.laid
    }
    /// The socket with the ring.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.sockets.ring.socket()
    }
    /// Sends a frame that fits no slot. `cut_up`: it is to be cut into segments.
    ///
    /// Past the queueing discipline the kernel drops what the device cannot cut up by itself, and says the same as of one
    /// that is full. So from there everything takes the way through the discipline for a while: that has software for it,
    /// and order is kept, as both sockets change over.
    pub fn send(&mut self, parts: &[IoSlice<'_>], cut_up: bool) -> Result<()> {
        if cut_up && let Path::Detour(left) = &mut self.path {
            *left -= 1;
            if *left == 0 {
                self.set_path(Path::Direct);
            }
        }
        match sys::send(self.sockets.plain.as_fd(), parts) {
            Err(e) if cut_up && self.path == Path::Direct && e.raw_os_error() == Some(libc::ENOBUFS) => {
                self.set_path(Path::Detour(DETOUR));
                sys::send(self.sockets.plain.as_fd(), parts)
            }
            other => other,
        }
    }

    #[cold]
    fn set_path(&mut self, path: Path) {
        for socket in [self.sockets.ring.socket(), self.sockets.plain.as_fd()] {
            // Where it cannot be changed it stays, and with it what the kernel says.
            let _ =
                sys::set(socket, libc::SOL_PACKET, option::QDISC_BYPASS, &u32::from(path == Path::Direct));
        }
        self.path = path;
    }

    fn status(&self, index: u32) -> u32 {
        let at = self.shape.start(index) + FrameHeader::STATUS;
        self.sockets.ring.word(at).load(Ordering::Acquire) & !tx_status::STAMPS
    }
    fn set_status(&self, index: u32, status: u32) {
        let at = self.shape.start(index) + FrameHeader::STATUS;
        self.sockets.ring.word(at).store(status, Ordering::Release);
    }

    /// Where the next frame goes, behind its header; `None` if the kernel has not yet sent what is there.
    #[inline]
    pub fn slot(&mut self) -> Option<&mut [u8]> {
        if self.laid == self.shape.slots || self.status(self.at) != tx_status::AVAILABLE {
            return None;
        }
        let start = self.shape.start(self.at);
        // SAFETY: a slot that is available is ours until `lay`, and `&mut self` makes this the only slice of it. The
        // header, whose words are atomics, is left out.
        Some(unsafe {
            self.sockets.ring.bytes_mut(start + FrameHeader::LEN..start + self.shape.slot as usize)
        })
    }

    /// The slot holds `header` and `len` bytes of a frame behind it, from now on for the kernel to send.
    #[inline]
    pub fn lay(&mut self, len: u32) {
        let start = self.shape.start(self.at);
        let word = |at| self.sockets.ring.word(start + at);
        word(FrameHeader::FRAME_LEN).store(len + VnetHeader::LEN as u32, Ordering::Relaxed);
        word(FrameHeader::NEXT_OFFSET).store(0, Ordering::Relaxed);
        self.set_status(self.at, tx_status::SEND_REQUEST);
        self.at = if self.at + 1 < self.shape.slots { self.at + 1 } else { 0 };
        self.laid += 1;
    }

    /// After the kernel was called: takes back what it did not take. Returns how many slots that are, and whether the
    /// first of them holds something that it cannot send.
    #[inline]
    pub fn settle(&mut self) -> (u32, bool) {
        let took = |status| status != tx_status::SEND_REQUEST && status != tx_status::WRONG_FORMAT;
        let laid = core::mem::take(&mut self.laid);
        // It takes them in order.
        if laid == 0 || took(self.status(self.shape.before(self.at, 1))) {
            return (0, false);
        }
        self.take_back(laid, took)
    }

    #[cold]
    fn take_back(&mut self, laid: u32, took: impl Fn(u32) -> bool) -> (u32, bool) {
        let index = |left| self.shape.before(self.at, left);
        let left = (1..=laid).rev().find(|&left| !took(self.status(index(left)))).unwrap_or(0);
        let wrong = left > 0 && self.status(index(left)) == tx_status::WRONG_FORMAT;
        (1..=left).for_each(|n| self.set_status(index(n), tx_status::AVAILABLE));
        self.at = index(left);
        (left, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_an_odd_number_of_lines_and_blocks_whole_pages() {
        for (longest, slot) in [(1518, 1600), (64, 192), (9018, 2112), (2048, 2112)] {
            let s = TxShape::new(1024, longest);
            assert_eq!((s.slot, s.slots), (slot, 1024), "frames of {longest}");
            assert!(s.longest() >= longest.min(LONGEST));
            let r = s.request();
            assert!(r.block_size.is_multiple_of(4096) && r.block_nr * r.block_size == s.len() as u32);
            assert_eq!(r.frame_nr, r.block_size / r.frame_size * r.block_nr);
        }
        assert_eq!(TxShape::new(8, 1518).slots(), 64);
    }

    #[test]
    fn positions_go_round() {
        let s = TxShape::new(64, 1518);
        assert_eq!((s.before(3, 2), s.before(0, 1), s.before(5, 64)), (1, 63, 5));
    }
}
