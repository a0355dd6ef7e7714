//! A worker's way to the pools.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use hw::{Iova, LINE};

use crate::magazine::{Cache, Magazine};
use crate::pool::MAX_POOLS;
use crate::row::Row;
use crate::{Ext, Flags, Layout, Memory, Pool, PoolId, Slot};

/// Slots just taken; those not used go back when it is dropped.
pub struct Slots<'l> {
    local: &'l Local,
    slots: [MaybeUninit<Slot>; Magazine::SIZE],
    at: usize,
    len: usize,
}

impl Slots<'_> {
    #[inline]
    fn rest(&self) -> &[Slot] {
        // SAFETY: the first `len` are initialised; those before `at` were given out.
        unsafe { self.slots.get_unchecked(self.at..self.len).assume_init_ref() }
    }
}

impl Iterator for Slots<'_> {
    type Item = Slot;
    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let slot = self.rest().first()?.alias();
        self.at += 1;
        Some(slot)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.len - self.at;
        (n, Some(n))
    }
}
impl ExactSizeIterator for Slots<'_> {}
impl Drop for Slots<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.at < self.len {
            self.local.put_rows(self.rest(), Slot::line);
        }
    }
}

struct Inner {
    memory: Arc<Memory>,
    base: NonNull<u8>,
    caches: [UnsafeCell<Option<Cache>>; MAX_POOLS],
    parked: Cell<usize>,
    lost: Cell<u64>,
}

/// A worker's handle on packet memory. Cheap to clone; stays on its thread.
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<ringwright_mem::Local>();
/// ```
#[derive(Clone)]
pub struct Local(Rc<Inner>);

impl Local {
    /// The calling thread's handle on `memory`.
    pub fn new(memory: &Arc<Memory>) -> Self {
        let base = memory.window().base();
        let caches = [const { UnsafeCell::new(None) }; MAX_POOLS];
        Self(Rc::new(Inner {
            memory: Arc::clone(memory),
            base,
            caches,
            parked: Cell::new(0),
            lost: Cell::new(0),
        }))
    }

    /// The memory behind it.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }
    /// The shape of every buffer.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.0.memory.layout()
    }
    #[inline]
    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.0.base
    }
    #[inline]
    pub(crate) fn iova(&self, offset: usize) -> Iova {
        self.0.memory.window().iova_at(offset)
    }

    /// Runs `f` on this worker's magazines of `pool`.
    #[inline]
    fn with<R>(&self, pool: &Pool, f: impl FnOnce(&mut Cache) -> R) -> R {
        // SAFETY: `Inner` stays on one thread, and `f`, always one of this file's, never comes back here.
        let cache = unsafe { &mut *self.0.caches[usize::from(pool.id().0)].get() };
        f(cache.get_or_insert_with(|| Cache::new(pool)))
    }

    /// Takes up to `want` buffers of `pool`, at most 64; fewer only when the pool has no more.
    #[inline]
    pub fn take_bulk(&self, pool: PoolId, want: usize) -> Slots<'_> {
        let slots = [const { MaybeUninit::uninit() }; Magazine::SIZE];
        let mut s = Slots { local: self, slots, at: 0, len: 0 };
        self.take_lines(pool, want.min(Magazine::SIZE), |lines| {
            for (slot, &line) in s.slots[s.len..s.len + lines.len()].iter_mut().zip(lines) {
                // SAFETY: magazines hold lines of slots, and a slot's line is never 0.
                slot.write(unsafe { Slot::from_line_unchecked(line) });
            }
            s.len += lines.len();
        });
        s
    }

    /// Takes up to `want` buffers; `f`, which must not come back here, gets their lines in one to three pieces.
    #[inline]
    pub(crate) fn take_lines(&self, pool: PoolId, mut want: usize, mut f: impl FnMut(&[u32])) {
        let Some(pool) = self.0.memory.pool(pool) else { return };
        self.with(pool, |c| {
            while want > 0 {
                let lines = c.take(pool, want);
                if lines.is_empty() {
                    break;
                }
                want -= lines.len();
                f(lines);
            }
        });
    }

    /// Takes one buffer.
    #[inline]
    pub fn take(&self, pool: PoolId) -> Option<Slot> {
        let mut one = None;
        self.take_lines(pool, 1, |lines| one = lines.first().and_then(|&l| Slot::from_line(l)));
        one
    }

    /// Gives one buffer back, of whatever pool.
    #[inline]
    pub fn put(&self, slot: Slot) {
        self.put_rows(&[slot], Slot::line);
    }

    /// Gives many buffers back.
    #[inline]
    pub fn put_bulk(&self, slots: impl IntoIterator<Item = Slot>) {
        let mut some = [const { MaybeUninit::<Slot>::uninit() }; Magazine::SIZE];
        let mut n = 0;
        let mut slots = slots.into_iter();
        loop {
            let next = slots.next();
            let ended = next.is_none();
            if let Some(slot) = next {
                some[n].write(slot);
                n += 1;
            }
            if ended || n == some.len() {
                // SAFETY: the first `n` are initialised, and move here.
                self.put_rows(unsafe { some[..n].assume_init_ref() }, Slot::line);
                n = 0;
            }
            if ended {
                return;
            }
        }
    }

    /// Takes buffers into the places of `out`, which must be empty, from the first on: a part of a ring, say. Returns
    /// how many; fewer only when the pool has no more.
    #[inline]
    pub fn take_into(&self, pool: PoolId, out: &mut [Option<Slot>]) -> usize {
        let mut n = 0;
        self.take_lines(pool, out.len(), |lines| {
            for (to, &line) in out[n..n + lines.len()].iter_mut().zip(lines) {
                debug_assert!(to.is_none(), "a slot that is written over is a buffer lost");
                *to = Slot::from_line(line);
            }
            n += lines.len();
        });
        n
    }

    /// Gives back the buffers of a part of a ring, and empties it. Places without a buffer are passed over.
    #[inline]
    pub fn put_all(&self, slots: &mut [Option<Slot>]) {
        match self.0.memory.only_pool() {
            Some(pool) => self.with(pool, |c| c.put_some(pool, slots)),
            None => self.put_bulk(slots.iter_mut().filter_map(Option::take)),
        }
    }

    /// Gives buffers back whose lines `line` reads.
    #[inline]
    pub(crate) fn put_rows<T>(&self, items: &[T], line: impl Fn(&T) -> u32 + Copy) {
        match self.0.memory.only_pool() {
            Some(pool) => {
                debug_assert!(items.iter().all(|i| pool.owns(line(i))), "slots of this memory");
                self.with(pool, |c| c.put(pool, items, line));
            }
            None => self.put_mixed(items, line),
        }
    }

    fn put_mixed<T>(&self, mut items: &[T], line: impl Fn(&T) -> u32 + Copy) {
        while let Some(head) = items.first() {
            let pool = self.0.memory.pool_of(line(head));
            let run = items.iter().take_while(|i| pool.owns(line(i))).count();
            let (now, later) = items.split_at(run);
            self.with(pool, |c| c.put(pool, now, line));
            items = later;
        }
    }

    /// Gives all buffers of a packet back.
    #[inline]
    pub(crate) fn free_row(&self, row: Row) {
        if row.flags.has(Flags::CHAIN) { self.free_chain(row.slot) } else { self.put(row.slot) }
    }

    /// Gives all buffers of a frame back.
    #[cold]
    pub(crate) fn free_chain(&self, head: Slot) {
        let mut next = Some(head);
        for _ in 0..crate::MAX_SEGMENTS {
            let Some(slot) = next else { return };
            next = Slot::from_line(self.ext(&slot).next);
            self.put(slot);
        }
    }

    /// Brings closer, to be read, the first bytes that a device writes into a buffer.
    #[inline]
    pub fn prefetch(&self, slot: &Slot) {
        let at = slot.line() as usize * LINE + usize::from(self.layout().headroom());
        hw::prefetch_read(self.base().as_ptr().wrapping_add(at));
    }

    /// Brings closer what is kept beside a buffer.
    #[inline]
    pub fn prefetch_ext(&self, slot: &Slot) {
        hw::prefetch_read(self.0.memory.pool_of(slot.line()).ext(slot.line()));
    }

    /// Where a device finds the bytes it may fill of a buffer.
    #[inline]
    pub fn fill_iova(&self, slot: &Slot) -> Iova {
        self.iova(slot.line() as usize * LINE + usize::from(self.layout().headroom()))
    }

    /// What is kept beside a buffer, of which `slot` is the owner.
    #[inline]
    pub fn ext(&self, slot: &Slot) -> Ext {
        // SAFETY: the owner of the slot is here and nobody else touches its `Ext`.
        unsafe { *self.0.memory.pool_of(slot.line()).ext(slot.line()) }
    }

    /// Writes what is kept beside a buffer. The links of a chain stay as they are.
    #[inline]
    pub fn set_ext(&self, slot: &Slot, ext: Ext) {
        self.edit_ext(slot, |e| {
            *e = Ext { next: e.next, total: e.total, seg_len: e.seg_len, segs: e.segs, ..ext }
        });
    }

    #[inline]
    pub(crate) fn edit_ext(&self, slot: &Slot, f: impl FnOnce(&mut Ext)) {
        // SAFETY: as in `ext`; `f` is always one of this crate's and touches nothing but its argument.
        f(unsafe { &mut *self.0.memory.pool_of(slot.line()).ext(slot.line()) });
    }

    pub(crate) fn park(&self) {
        self.0.parked.set(self.0.parked.get() + 1);
    }
    pub(crate) fn unpark(&self) {
        self.0.parked.set(self.0.parked.get() - 1);
    }
    #[cold]
    pub(crate) fn lose(&self, packets: usize) {
        self.0.lost.set(self.0.lost.get() + packets as u64);
    }

    /// Packets that this worker holds in [`crate::PacketBuf`]s.
    pub fn parked(&self) -> usize {
        self.0.parked.get()
    }
    /// Packets that were dropped without a reason: a batch or a [`crate::PacketBuf`] let go with something in it.
    pub fn lost(&self) -> u64 {
        self.0.lost.get()
    }

    fn caches(&self) -> impl Iterator<Item = &Cache> {
        // SAFETY: `Inner` stays on one thread and no call of `with` is under way; the readers here only read.
        self.0.caches.iter().filter_map(|c| unsafe { &*c.get() }.as_ref())
    }
    /// Gives what the magazines hold back to the depots: the worker ends, even if somebody still has a handle.
    pub fn flush(&self) {
        self.0.flush();
    }
    /// Buffers in this worker's magazines.
    pub fn cached(&self) -> usize {
        self.caches().map(Cache::len).sum()
    }
    /// Buffers that passed through the magazines, and trips to depots.
    pub fn cache_counts(&self) -> (u64, u64) {
        self.caches().fold((0, 0), |a, c| (a.0 + c.hits, a.1 + c.misses))
    }
}

impl Inner {
    /// What the magazines hold goes back to the depots.
    fn flush(&self) {
        for (i, cache) in self.caches.iter().enumerate() {
            // SAFETY: `Inner` stays on one thread and no call of `with` is under way.
            let Some(cache) = (unsafe { &mut *cache.get() }).take() else { continue };
            if let Some(pool) = self.memory.pool(PoolId(i as u8)) {
                cache.flush(pool);
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.flush();
    }
}
