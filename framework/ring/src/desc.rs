//! Descriptor rings: the one place that orders owner words and bodies.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use hw::{DmaRegion, Iova};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{RingError, RingSize};

/// A free-running position; the ring masks it, so that laps come for free and `tail - head` never needs care.
pub type Pos = u32;

/// A descriptor that the device hands back to us.
///
/// The owner word is 64 bits wide: the devices here put owner, status and length into one such word, so that one
/// load says whose the entry is and what it carries.
pub trait Completion: FromBytes + IntoBytes + Copy {
    /// Byte offset, a multiple of 8, of the 64-bit word (little endian) that holds the ownership bit.
    const OWNER: usize;
    /// True when the device is done with the entry at `pos`.
    fn is_done(owner: u64, pos: Pos, size: RingSize) -> bool;
}

/// A ring of `D` in memory shared with a device.
///
/// Only one side's driver holds it; the device's side is hardware, a model on another thread, or another process.
pub struct DescRing<D> {
    mem: DmaRegion,
    base: NonNull<D>,
    size: RingSize,
    _d: PhantomData<D>,
}
// SAFETY: the memory belongs to `mem`, which is `Send`; `base` only points into it.
unsafe impl<D: Send> Send for DescRing<D> {}

impl<D: Copy> DescRing<D> {
    /// A ring over zeroed `mem`.
    ///
    /// # Errors
    /// [`RingError::Region`] if `mem` is smaller than the ring or misaligned for `D`.
    pub fn new(mem: DmaRegion, size: RingSize) -> Result<Self, RingError> {
        let need = size.entries() * size_of::<D>();
        let base = mem.base().cast::<D>();
        if mem.len() < need || !base.is_aligned() {
            return Err(RingError::Region { need, have: mem.len() });
        }
        Ok(Self { mem, base, size, _d: PhantomData })
    }

    /// Entries.
    #[inline]
    pub const fn size(&self) -> RingSize {
        self.size
    }

    /// Where the device finds the ring.
    pub fn iova(&self) -> Iova {
        self.mem.iova()
    }

    /// Gives the memory back, to be freed or quarantined.
    pub fn into_memory(self) -> DmaRegion {
        self.mem
    }

    #[inline]
    fn at(&self, pos: Pos) -> NonNull<D> {
        // SAFETY: masked to the ring, which `new` checked to fit in `mem`.
        unsafe { self.base.add(self.size.index(pos)) }
    }

    /// 64-bit words of an entry.
    const WORDS: usize = {
        assert!(size_of::<D>().is_multiple_of(8) && align_of::<D>() <= 8);
        size_of::<D>() / 8
    };

    #[inline(always)]
    fn word(&self, pos: Pos, i: usize) -> &AtomicU64 {
        debug_assert!(i < Self::WORDS);
        // SAFETY: a word of one entry, in bounds and aligned, as all callers stay below `WORDS`; both sides touch entries
        // only as 64-bit atomics.
        unsafe { AtomicU64::from_ptr(self.at(pos).cast::<u64>().add(i).as_ptr()) }
    }

    /// Writes the entry at `pos`. The device may look only after a doorbell, which publishes it.
    #[inline]
    pub fn store(&mut self, pos: Pos, d: D)
    where
        D: IntoBytes + Immutable,
    {
        let words: *const u64 = (&raw const d).cast();
        for i in 0..Self::WORDS {
            // SAFETY: inside `d`, all of whose bytes are initialised (`IntoBytes`).
            self.word(pos, i).store(unsafe { words.add(i).read_unaligned() }, Ordering::Relaxed);
        }
    }

    /// The entry at `pos` if the device is done with it: owner word first (Acquire), body after.
    ///
    /// A device that breaks the rules and writes an entry of ours can spoil what is read here, never more.
    #[inline]
    pub fn poll(&self, pos: Pos) -> Option<D>
    where
        D: Completion,
    {
        const { assert!(D::OWNER.is_multiple_of(8) && D::OWNER + 8 <= size_of::<D>()) };
        let owner = self.word(pos, D::OWNER / 8).load(Ordering::Acquire);
        if !D::is_done(u64::from_le(owner), pos, self.size) {
            return None;
        }
        let mut d = D::new_zeroed();
        let words: *mut u64 = (&raw mut d).cast();
        for i in 0..Self::WORDS {
            // The word that was checked is the word that is returned.
            let value = if i == D::OWNER / 8 { owner } else { self.word(pos, i).load(Ordering::Relaxed) };
            // SAFETY: inside `d`, for which any bytes are a value (`FromBytes`).
            unsafe { words.add(i).write_unaligned(value) };
        }
        Some(d)
    }

    /// Brings the cache line of the entry at `pos` closer, to be read.
    #[inline]
    pub fn prefetch(&self, pos: Pos) {
        hw::prefetch_read(self.at(pos).as_ptr());
    }

    /// Brings the cache line of the entry at `pos` closer, to be written.
    #[inline]
    pub fn prefetch_write(&self, pos: Pos) {
        hw::prefetch_write(self.at(pos).as_ptr());
    }
}
