//! Ring memory: carved from an arena, given back after reset, or quarantined.

use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Arena, HwError, Iova};

/// Regions start on a boundary that suits every ring here (82599: 128 bytes) and keeps rings on their own lines.
const ALIGN: usize = 4096;

/// Hands out ring memory from one arena.
pub struct DmaPool {
    arena: Arc<Arena>,
    free: Mutex<Vec<(usize, usize)>>,
    quarantined: AtomicUsize,
}

impl DmaPool {
    /// All of `arena` is free.
    ///
    /// # Panics
    /// If something else lies in the arena: another pool of rings, or packet buffers.
    pub fn new(arena: Arc<Arena>) -> Arc<Self> {
        assert!(arena.claim(), "an arena has one owner of what lies in it");
        let all = vec![(0, arena.len())];
        Arc::new(Self { arena, free: Mutex::new(all), quarantined: AtomicUsize::new(0) })
    }

    /// The arena it carves from.
    pub const fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Bytes of regions whose device could not be reset. They are never used again.
    pub fn quarantined(&self) -> usize {
        self.quarantined.load(Ordering::Relaxed)
    }

    /// Zeroed memory of at least `bytes`.
    ///
    /// # Errors
    /// [`HwError::NoDma`] if no free range is large enough.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Result<DmaRegion, HwError> {
        let len = bytes.max(1).checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let total = free.iter().map(|r| r.1).sum();
        let i = free.iter().position(|r| r.1 >= len).ok_or(HwError::NoDma { asked: bytes, free: total })?;
        let offset = free[i].0;
        free[i] = (offset + len, free[i].1 - len);
        free.retain(|r| r.1 > 0);
        drop(free);
        // SAFETY: the range lies in the arena and was free, so nobody else touches it.
        let base = unsafe { self.arena.base().add(offset) };
        let words = base.cast::<u64>();
        for i in 0..len / size_of::<u64>() {
            // SAFETY: as above, aligned to `ALIGN`. Atomic, as all access to rings: a device that was never reset may
            // still write here.
            unsafe { AtomicU64::from_ptr(words.add(i).as_ptr()) }.store(0, Ordering::Relaxed);
        }
        Ok(DmaRegion { base, len, offset, pool: Arc::clone(self) })
    }

    fn give(&self, offset: usize, len: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push((offset, len));
        free.sort_unstable();
        free.dedup_by(|b, a| {
            let joins = a.0 + a.1 == b.0;
            if joins {
                a.1 += b.1;
            }
            joins
        });
    }
}

/// A uniquely owned range of memory that a device can reach.
///
/// Dropping it gives the range back: only after the device has been reset. Ring memory is only ever touched by
/// atomics, so a device that still writes can spoil another ring, not the program; [`DmaRegion::quarantine`] avoids
/// even that when a reset failed.
pub struct DmaRegion {
    base: NonNull<u8>,
    len: usize,
    offset: usize,
    pool: Arc<DmaPool>,
}
// SAFETY: the unique owner of plain memory, which the arena keeps alive.
unsafe impl Send for DmaRegion {}

impl DmaRegion {
    /// Bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never: a region has at least one page.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its first byte.
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Where the device finds it.
    pub fn iova(&self) -> Iova {
        Iova(self.pool.arena.iova().0 + self.offset as u64)
    }

    /// Never uses the range again: the device may still write it. Counted by [`DmaPool::quarantined`].
    pub fn quarantine(self) {
        self.pool.quarantined.fetch_add(self.len, Ordering::Relaxed);
        // The arena must outlive the device's writes: leak our share of it together with the range.
        core::mem::forget(self);
    }
}

impl Drop for DmaRegion {
    fn drop(&mut self) {
        self.pool.give(self.offset, self.len);
    }
}
