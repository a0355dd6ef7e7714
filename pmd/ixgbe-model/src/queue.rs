//! What receive and transmit queues have in common: a ring in memory and the part of it that is on the die.

use hw::Reg;
use ixgbe_defs::{DESC_BYTES, Queue, regs};

use crate::config::Config;
use crate::count::{Direction, Tally, Totals};
use crate::dma::{Refused, Site};
use crate::modes::Liar;
use crate::regs::RegisterFile;
use crate::{Parameters, count::Count};

/// What an engine lends its sides for a step.
pub(crate) struct Ctx<'a> {
    pub(crate) file: &'a RegisterFile,
    pub(crate) config: &'a Config,
    pub(crate) totals: &'a mut Totals,
    pub(crate) liar: &'a mut Liar,
    pub(crate) params: &'a Parameters,
    pub(crate) swallow: &'a mut [u64; 2],
}

impl Ctx<'_> {
    /// Takes one off what is to be swallowed in this direction.
    #[inline]
    pub(crate) const fn swallow(&mut self, d: Direction) -> bool {
        let left = &mut self.swallow[d as usize];
        let any = *left > 0;
        *left -= any as u64;
        any
    }
}

/// Descriptors that the die has room for, per queue.
pub(crate) const ON_DIE: usize = 64;

/// How many descriptors before its turn a buffer is brought closer. One at a time: as many as are fetched at once would
/// be more than a core can have under way.
pub(crate) const AHEAD: usize = 10;

/// A ring in memory and its fetched descriptors.
pub(crate) struct Ring {
    pub(crate) queue: Queue,
    pub(crate) direction: Direction,
    pub(crate) tally: Tally,
    base: u64,
    pub(crate) size: u32,
    next_fetch: u32,
    /// Index of the first descriptor on the die.
    pub(crate) next: u32,
    die: [[u64; 2]; ON_DIE],
    first: usize,
    pub(crate) on_die: usize,
    /// Refused by the IOMMU or fed a malformed descriptor: does nothing until it is disabled.
    pub(crate) hung: bool,
    /// Something was counted since last published.
    pub(crate) dirty: bool,
}

impl Ring {
    /// The ring as the registers describe it when the queue is switched on.
    pub(crate) fn load(file: &RegisterFile, direction: Direction, queue: Queue) -> Self {
        let rx = direction == Direction::Rx;
        let of = |r: fn(Queue) -> Reg, t: fn(Queue) -> Reg| file.get(if rx { r(queue) } else { t(queue) });
        let base =
            u64::from(of(regs::rdbal, regs::tdbal) & !0x7F) | u64::from(of(regs::rdbah, regs::tdbah)) << 32;
        let size = (of(regs::rdlen, regs::tdlen) & regs::RING_LEN_MASK) / DESC_BYTES as u32;
        let head = of(regs::rdh, regs::tdh);
        let next = if head < size { head } else { 0 };
        Self {
            queue,
            direction,
            tally: file.published.read_tally(direction, queue),
            base,
            size,
            next_fetch: next,
            next,
            die: [[0; 2]; ON_DIE],
            first: 0,
            on_die: 0,
            hung: false,
            dirty: false,
        }
    }

    pub(crate) const fn tail_reg(&self) -> Reg {
        match self.direction {
            Direction::Rx => regs::rdt(self.queue),
            Direction::Tx => regs::tdt(self.queue),
        }
    }

    pub(crate) const fn head_reg(&self) -> Reg {
        match self.direction {
            Direction::Rx => regs::rdh(self.queue),
            Direction::Tx => regs::tdh(self.queue),
        }
    }

    pub(crate) const fn iova(&self, index: u32) -> u64 {
        self.base + index as u64 * DESC_BYTES as u64
    }

    pub(crate) const fn site(&mut self) -> Site<'_> {
        self.dirty = true;
        Site { queue: (self.direction, self.queue), tally: &mut self.tally }
    }

    /// Hangs the queue after an access that the IOMMU refused.
    #[cold]
    pub(crate) fn refuse(&mut self, totals: &mut Totals, _: Refused) {
        totals.add(Count::Faults, 1);
        self.hung = true;
    }

    /// Descriptors posted and not fetched. A tail beyond the ring posts nothing.
    #[inline]
    pub(crate) fn available(&self, file: &RegisterFile) -> u32 {
        let tail = file.get(self.tail_reg());
        if tail >= self.size {
            0
        } else if tail >= self.next_fetch {
            tail - self.next_fetch
        } else {
            tail + self.size - self.next_fetch
        }
    }

    /// Fetches up to `most` of `available` descriptors in one read: never past the end of the ring. Returns how many.
    pub(crate) fn fetch(&mut self, ctx: &mut Ctx<'_>, most: usize, available: u32) -> usize {
        let to_end = self.size - self.next_fetch;
        let n = most.min(available.min(to_end) as usize).min(ON_DIE - self.on_die);
        if n == 0 || self.hung {
            return 0;
        }
        let mut read = [[0; 2]; ON_DIE];
        let at = self.iova(self.next_fetch);
        if let Err(r) = ctx.file.port.read_descs(self.site(), at, &mut read[..n]) {
            self.refuse(ctx.totals, r);
            return 0;
        }
        for d in &read[..n] {
            self.die[(self.first + self.on_die) % ON_DIE] = *d;
            self.on_die += 1;
        }
        self.next_fetch = self.after(self.next_fetch, n as u32);
        if available as usize >= n + most {
            // The next batch is posted already, and written by the driver some time ago.
            let to_end = (self.size - self.next_fetch) as usize;
            ctx.file.port.prefetch_descs(self.iova(self.next_fetch), most.min(to_end));
        }
        n
    }

    /// The `i`th descriptor on the die.
    #[inline]
    pub(crate) const fn peek(&self, i: usize) -> [u64; 2] {
        self.die[(self.first + i) % ON_DIE]
    }

    /// Takes the first descriptor off the die: its index and its words.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u32, [u64; 2])> {
        if self.on_die == 0 {
            return None;
        }
        let d = (self.next, self.die[self.first]);
        self.first = (self.first + 1) % ON_DIE;
        self.on_die -= 1;
        self.next = self.after(self.next, 1);
        Some(d)
    }

    #[inline]
    pub(crate) const fn after(&self, index: u32, n: u32) -> u32 {
        let next = index + n;
        if next >= self.size { next - self.size } else { next }
    }

    /// Publishes what this queue counted.
    pub(crate) fn publish(&mut self, file: &RegisterFile) {
        if self.dirty {
            file.published.tally(self.direction, self.queue, &self.tally);
            self.dirty = false;
        }
    }
}
