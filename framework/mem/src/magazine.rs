//! Magazines: what a worker keeps of a pool (Bonwick and Adams, "Magazines and Vmem", 2001).

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::{Pool, Slot};

/// Up to 64 slots that change hands as one.
pub(crate) struct Magazine {
    len: usize,
    lines: [u32; Self::SIZE],
}

impl Magazine {
    pub const SIZE: usize = 64;

    /// Holds the slots of `lines`; last in, first out, so that the lowest come first.
    pub fn holding(lines: &[u32]) -> Box<Self> {
        let mut m = Box::new(Self { len: lines.len(), lines: [0; Self::SIZE] });
        m.lines[..lines.len()].copy_from_slice(lines);
        m.lines[..lines.len()].reverse();
        m
    }
}

/// One worker's magazines of one pool. One of the two is full, empty, or neither; the other is full or empty.
pub(crate) struct Cache {
    loaded: Box<Magazine>,
    spare: Box<Magazine>,
    pub hits: u64,
    pub misses: u64,
}

impl Cache {
    /// Two empty magazines.
    pub fn new(pool: &Pool) -> Self {
        let empty = || pool.empty.pop().unwrap_or_else(|| Magazine::holding(&[]));
        Self { loaded: empty(), spare: empty(), hits: 0, misses: 0 }
    }
    /// Slots in both.
    pub fn len(&self) -> usize {
        self.loaded.len + self.spare.len
    }
    /// Gives both back to the depot.
    pub fn flush(self, pool: &Pool) {
        give_rest(pool, self.loaded);
        give_rest(pool, self.spare);
    }

    /// Takes up to `want` slots' lines, in one piece from the loaded magazine; none only when the pool has no more.
    #[inline]
    pub fn take(&mut self, pool: &Pool, want: usize) -> &[u32] {
        if self.loaded.len == 0 && !self.load(pool) {
            return &[];
        }
        let len = self.loaded.len;
        let rest = len.saturating_sub(want);
        self.loaded.len = rest;
        self.hits += (len - rest) as u64;
        &self.loaded.lines[rest..len]
    }

    /// Gets something to take from: the spare magazine, or one from the depot.
    #[cold]
    fn load(&mut self, pool: &Pool) -> bool {
        if self.spare.len > 0 {
            core::mem::swap(&mut self.loaded, &mut self.spare);
            return true;
        }
        self.misses += 1;
        let Some(full) = pool.full.pop() else { return self.load_rest(pool) };
        pool.depot.fetch_sub(full.len, Ordering::Relaxed);
        let empty = core::mem::replace(&mut self.loaded, full);
        // The depot holds every magazine there is, so it has room for this one.
        let _ = pool.empty.push(empty);
        true
    }

    /// Takes what workers that ended have left beside the full magazines. `loaded` is empty.
    fn load_rest(&mut self, pool: &Pool) -> bool {
        if pool.depot() == 0 {
            return false;
        }
        let mut rest = pool.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let from = rest.len().saturating_sub(Magazine::SIZE);
        let n = rest.len() - from;
        self.loaded.lines[..n].copy_from_slice(&rest[from..]);
        self.loaded.len = n;
        rest.truncate(from);
        pool.depot.fetch_sub(n, Ordering::Relaxed);
        n > 0
    }

    #[inline]
    pub fn put<T>(&mut self, pool: &Pool, mut items: &[T], line: impl Fn(&T) -> u32) {
        self.hits += items.len() as u64;
        while !items.is_empty() {
            if self.loaded.len == Magazine::SIZE {
                self.unload(pool);
            }
            let len = self.loaded.len;
            let (now, later) = items.split_at(items.len().min(Magazine::SIZE - len));
            for (to, item) in self.loaded.lines[len..len + now.len()].iter_mut().zip(now) {
                *to = line(item);
            }
            self.loaded.len = len + now.len();
            items = later;
        }
    }

    /// As `put`, for places that may be empty and that are emptied.
    #[inline]
    pub fn put_some(&mut self, pool: &Pool, mut slots: &mut [Option<Slot>]) {
        while !slots.is_empty() {
            if self.loaded.len == Magazine::SIZE {
                self.unload(pool);
            }
            let n = slots.len().min(Magazine::SIZE - self.loaded.len);
            let (now, later) = slots.split_at_mut(n);
            let mut len = self.loaded.len;
            for slot in now {
                let line = slot.take().map_or(0, |s| s.line());
                // `len` stays below the size: there is room for all of `now`, empty or not.
                self.loaded.lines[len % Magazine::SIZE] = line;
                len += usize::from(line != 0);
            }
            self.hits += (len - self.loaded.len) as u64;
            self.loaded.len = len;
            slots = later;
        }
    }

    /// Gets room to put into: the spare magazine, or an empty one from the depot.
    #[cold]
    fn unload(&mut self, pool: &Pool) {
        if self.spare.len == 0 {
            core::mem::swap(&mut self.loaded, &mut self.spare);
            return;
        }
        self.misses += 1;
        let empty = pool.empty.pop().unwrap_or_else(|| Magazine::holding(&[]));
        let full = core::mem::replace(&mut self.loaded, empty);
        // Counted before it is there: whoever takes it at once must not take the count below zero.
        pool.depot.fetch_add(full.len, Ordering::Relaxed);
        give_full(pool, full);
    }
}

fn give_full(pool: &Pool, mut magazine: Box<Magazine>) {
    // The depot has room for more full magazines than there can be; a taker that has not quite left may hold a place.
    while let Err(back) = pool.full.push(magazine) {
        magazine = back;
        std::thread::yield_now();
    }
}

/// Gives a magazine back as a worker ends. What does not fill one is gathered until it does: were such magazines kept as
/// they are, a depot that sees many workers come and go would fill up with them.
fn give_rest(pool: &Pool, mut magazine: Box<Magazine>) {
    let mut rest = pool.rest.lock().unwrap_or_else(PoisonError::into_inner);
    pool.depot.fetch_add(magazine.len, Ordering::Relaxed);
    rest.extend_from_slice(&magazine.lines[..magazine.len]);
    if let Some(from) = rest.len().checked_sub(Magazine::SIZE) {
        magazine.lines.copy_from_slice(&rest[from..]);
        magazine.len = Magazine::SIZE;
        rest.truncate(from);
        drop(rest);
        return give_full(pool, magazine);
    }
    magazine.len = 0;
    // One more than the depot was made for may go.
    let _ = pool.empty.push(magazine);
}
