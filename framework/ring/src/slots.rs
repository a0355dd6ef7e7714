//! The memory of a ring between cores: plain slots, and copies in at most two pieces.
//!
//! Who may touch which slot is the ring's business; the two functions here are unsafe because of that alone.

use core::mem::MaybeUninit;

use crate::{Pos, RingSize};

#[cfg(loom)]
mod loom;
#[cfg(loom)]
pub(crate) use loom::Slots;
#[cfg(not(loom))]
pub(crate) use store::Slots;

/// How many of `n` items from `pos` on lie before the end of the ring; the others start at its first slot.
#[inline]
fn before_end(size: RingSize, pos: Pos, n: usize) -> usize {
    n.min(size.entries() - size.index(pos))
}

/// The same elements, for a callee that only ever writes items to them.
#[inline]
pub(crate) fn as_uninit<T: Copy>(out: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: same layout; `Slots::read`, the only writer behind `pop`, stores initialised items.
    unsafe { &mut *(core::ptr::from_mut(out) as *mut [MaybeUninit<T>]) }
}

#[cfg(not(loom))]
mod store {
    use core::alloc::Layout;
    use core::cell::Cell;
    use core::marker::PhantomData;
    use core::ptr::NonNull;
    use std::alloc::{alloc, dealloc, handle_alloc_error};

    use super::*;

    /// `size` slots that start on a line of their own, so that a bulk touches as few lines as it can.
    pub(crate) struct Slots<T> {
        base: NonNull<T>,
        size: RingSize,
        /// Items go in and come out: a ring of one type is no ring of another.
        _items: PhantomData<Cell<T>>,
    }
    // SAFETY: the memory belongs to the value; what is in it are `T`s, which cross threads as the ring hands them
    // over.
    unsafe impl<T: Send> Send for Slots<T> {}
    // SAFETY: as above; shared access is `write` and `read`, whose callers keep slots exclusive.
    unsafe impl<T: Send> Sync for Slots<T> {}

    impl<T> Slots<T> {
        const NOT_EMPTY: () = assert!(size_of::<T>() > 0, "a ring carries items that have a size");

        pub(crate) fn new(size: RingSize) -> Self {
            let () = Self::NOT_EMPTY;
            let layout = Self::layout(size);
            // SAFETY: at least 8 slots of at least one byte.
            let base = unsafe { alloc(layout) };
            let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
            Self { base: base.cast(), size, _items: PhantomData }
        }

        /// The slot at `pos`, and one in each line after it, over `n` slots.
        #[inline]
        fn lines(&self, pos: Pos, n: usize) -> impl Iterator<Item = *mut T> {
            // As many as a core fetches at once.
            const MOST: usize = 16;
            let per_line = const { if size_of::<T>() < 64 { 64 / size_of::<T>() } else { 1 } };
            (0..n).step_by(per_line).take(MOST).map(move |i| {
                // SAFETY: masked to the ring.
                unsafe { self.base.add(self.size.index(pos.wrapping_add(i as u32))) }.as_ptr()
            })
        }

        /// Takes the lines of `n` slots from `pos` on away from the other core, to be written.
        #[inline]
        pub(crate) fn prefetch_write(&self, pos: Pos, n: usize) {
            self.lines(pos, n).for_each(hw::prefetch_write);
        }

        /// Brings the lines of `n` slots from `pos` on closer, to be read.
        #[inline]
        pub(crate) fn prefetch_read(&self, pos: Pos, n: usize) {
            self.lines(pos, n).for_each(|at| hw::prefetch_read(at));
        }

        /// Moves `item` into the slot at `pos`.
        ///
        /// # Safety
        /// No other thread touches that slot meanwhile.
        #[inline]
        pub(crate) unsafe fn put(&self, pos: Pos, item: T) {
            // SAFETY: masked to the ring; the slot is the caller's.
            unsafe { self.base.add(self.size.index(pos)).write(item) };
        }

        /// Moves the item out of the slot at `pos`.
        ///
        /// # Safety
        /// As for `put`; the slot was written since it was last moved out of.
        #[inline]
        pub(crate) unsafe fn get(&self, pos: Pos) -> T {
            // SAFETY: masked to the ring; the slot is the caller's.
            unsafe { self.base.add(self.size.index(pos)).read() }
        }
    }

    impl<T: Copy> Slots<T> {
        /// Copies `items` into the slots from `pos` on.
        ///
        /// # Safety
        /// `items` is no longer than the ring, and no other thread touches those slots meanwhile.
        #[inline]
        pub(crate) unsafe fn write(&self, pos: Pos, items: &[T]) {
            let first = before_end(self.size, pos, items.len());
            // SAFETY: both pieces are in bounds (`first` ends at the last slot, the rest is no longer than the
            // ring); the slots are the caller's, and `items` is not ring memory, which is never lent out.
            unsafe {
                self.base.add(self.size.index(pos)).copy_from_nonoverlapping(source(items), first);
                if first < items.len() {
                    self.base.copy_from_nonoverlapping(source(&items[first..]), items.len() - first);
                }
            }
        }

        /// Copies the slots from `pos` on to `out`, all of it.
        ///
        /// # Safety
        /// As for `write`; the slots were written before.
        #[inline]
        pub(crate) unsafe fn read(&self, pos: Pos, out: &mut [MaybeUninit<T>]) {
            let first = before_end(self.size, pos, out.len());
            let (head, rest) = out.split_at_mut(first);
            // SAFETY: as in `write`.
            unsafe {
                self.base.add(self.size.index(pos)).copy_to_nonoverlapping(target(head), head.len());
                if !rest.is_empty() {
                    self.base.copy_to_nonoverlapping(target(rest), rest.len());
                }
            }
        }
    }

    impl<T> Slots<T> {
        fn layout(size: RingSize) -> Layout {
            let slots = Layout::array::<T>(size.entries()).and_then(|l| l.align_to(128));
            slots.expect("32768 items are less than the address space")
        }
    }

    impl<T> Drop for Slots<T> {
        fn drop(&mut self) {
            // SAFETY: allocated in `new` with this layout; items that are still in it are forgotten.
            unsafe { dealloc(self.base.as_ptr().cast(), Self::layout(self.size)) }
        }
    }

    fn source<T>(items: &[T]) -> NonNull<T> {
        NonNull::from(items).cast()
    }

    fn target<T>(out: &mut [MaybeUninit<T>]) -> NonNull<T> {
        NonNull::from(out).cast()
    }
}
