//! The same slots for model checks.
#![cfg(loom)]

use ::loom::cell::UnsafeCell;

use super::*;

/// The same slots, each under loom's watch: an access without an order to the one before fails the check.
pub(crate) struct Slots<T> {
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    size: RingSize,
}
// SAFETY: as without loom, which checks that callers keep slots exclusive.
unsafe impl<T: Send> Send for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    pub(crate) fn new(size: RingSize) -> Self {
        let cells = (0..size.entries()).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Self { cells, size }
    }

    pub(crate) fn prefetch_write(&self, _pos: Pos, _n: usize) {}

    pub(crate) fn prefetch_read(&self, _pos: Pos, _n: usize) {}

    pub(crate) unsafe fn put(&self, pos: Pos, item: T) {
        // SAFETY: the slot is the caller's.
        self.cells[self.size.index(pos)].with_mut(|p| unsafe { (*p).write(item) });
    }

    pub(crate) unsafe fn get(&self, pos: Pos) -> T {
        // SAFETY: the slot is the caller's, and was written.
        self.cells[self.size.index(pos)].with(|p| unsafe { (*p).assume_init_read() })
    }
}

impl<T: Copy> Slots<T> {
    pub(crate) unsafe fn write(&self, pos: Pos, items: &[T]) {
        let (head, rest) = items.split_at(before_end(self.size, pos, items.len()));
        for (cell, item) in self.cells[self.size.index(pos)..].iter().zip(head) {
            // SAFETY: the slot is the caller's.
            cell.with_mut(|p| unsafe { (*p).write(*item) });
        }
        for (cell, item) in self.cells.iter().zip(rest) {
            // SAFETY: as above.
            cell.with_mut(|p| unsafe { (*p).write(*item) });
        }
    }

    pub(crate) unsafe fn read(&self, pos: Pos, out: &mut [MaybeUninit<T>]) {
        let (head, rest) = out.split_at_mut(before_end(self.size, pos, out.len()));
        for (cell, item) in self.cells[self.size.index(pos)..].iter().zip(head) {
            // SAFETY: the slot is the caller's.
            *item = cell.with(|p| unsafe { *p });
        }
        for (cell, item) in self.cells.iter().zip(rest) {
            // SAFETY: as above.
            *item = cell.with(|p| unsafe { *p });
        }
    }
}
