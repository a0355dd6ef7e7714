//! A socket with its mapped ring.

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys;

/// A packet socket and the memory that it shares with the kernel.
///
/// Status words are atomics on both sides. All other bytes belong to whoever the status word of their block or slot says,
/// and that is up to the ring that is laid over the mapping: one ring, one owner.
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    socket: OwnedFd,
}
// SAFETY: the memory is reached through atomics, or through the unsafe methods, whose callers own what they reach.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the ring of `socket`, which has `len` bytes.
    pub fn new(socket: OwnedFd, len: usize) -> Result<Self> {
        let base = sys::map(socket.as_fd(), len)?;
        Ok(Self { base, len, socket })
    }

    /// The socket.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The word at `at`.
    ///
    /// # Panics
    /// If it is not aligned or not inside: a fault of the ring, as `at` never comes from the kernel.
    #[inline]
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at < self.len && self.len - at >= 4, "a word of the ring");
        // SAFETY: inside the mapping and aligned, as it starts at a page; it lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The bytes of a range.
    ///
    /// # Safety
    /// Neither the kernel nor anyone else writes them while the slice lives, but through [`Mapping::word`].
    ///
    /// # Panics
    /// If they are not inside.
    #[inline]
    pub unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.len, "bytes of the ring");
        // SAFETY: inside the mapping; unwritten by the caller's word.
        unsafe { core::slice::from_raw_parts(self.base.as_ptr().add(range.start), range.end - range.start) }
    }

    /// The bytes of a range, to write.
    ///
    /// # Safety
    /// Nobody else reads or writes them while the slice lives.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "whoever owns the slot is the only one to ask for its bytes")]
    pub unsafe fn bytes_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len, "bytes of the ring");
        // SAFETY: inside the mapping; the caller's alone.
        unsafe {
            core::slice::from_raw_parts_mut(self.base.as_ptr().add(range.start), range.end - range.start)
        }
    }

    /// Brings the line at `at` closer, if it is inside.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        // The address only feeds a prefetch, which any address suits.
        hw::prefetch_read(self.base.as_ptr().wrapping_add(at));
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; every slice of it borrowed `self`.
        unsafe { sys::unmap(self.base, self.len) };
    }
}
