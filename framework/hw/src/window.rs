//! One range of addresses, and the arenas of real pages laid into it.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Bytes, HwError, Iova, Node, PageSize, Pages, os};

/// The cache line; buffers are numbered by it.
pub const LINE: usize = 64;
/// Arenas start and end on this boundary, so that a granule belongs to one arena.
pub const GRANULE: usize = 2 << 20;
/// Device addresses that an arena must not touch: x86 turns writes there into interrupts (Intel SDM 3A, 11.11.1).
const MSI: core::ops::Range<usize> = 0xfee0_0000..0xfef0_0000;

/// A range of addresses for everything that devices may touch, 256 GiB by default.
///
/// The device address of a byte is its offset in the window: never 0 (the first granule stays empty), never in the
/// MSI range, and below 4 GiB as long as that is room enough.
pub struct Window {
    base: NonNull<u8>,
    len: usize,
    backing: Backing,
    taken: Mutex<Vec<(usize, usize)>>,
}

enum Backing {
    /// A reservation of the kernel's, with its own start and length.
    Reserved { at: NonNull<u8>, len: usize },
    /// One allocation, for tests and interpreters.
    Heap(Layout),
}

// SAFETY: addresses; what lies there is owned by arenas.
unsafe impl Send for Window {}
// SAFETY: as above; the list of what is taken is under a lock.
unsafe impl Sync for Window {}

impl Window {
    /// The default length. 2^32 cache lines, so that a line's number fits in 32 bits.
    pub const LEN: usize = 256 << 30;

    /// Reserves `len` bytes of addresses, at most [`Window::LEN`]; less, down to 2 GiB, where a limit on virtual memory
    /// does not allow as much.
    ///
    /// # Errors
    /// If the kernel has no such range.
    pub fn reserve(len: usize) -> Result<Arc<Self>, HwError> {
        let align = PageSize::Huge1G.bytes();
        let mut len = len.min(Self::LEN).next_multiple_of(GRANULE);
        let (at, whole) = loop {
            let whole = len + align;
            match os::reserve(whole) {
                Ok(at) => break (at, whole),
                Err(_) if len >= 4 << 30 => len = (len / 2).next_multiple_of(GRANULE),
                Err(source) => {
                    let what = format!("reserving {} of addresses; check `ulimit -v`", Bytes(whole));
                    return Err(HwError::Os { what, source });
                }
            }
        };
        // SAFETY: the reservation is one `align` longer than the window.
        let base = unsafe { at.add(at.align_offset(align)) };
        let backing = Backing::Reserved { at, len: whole };
        Ok(Arc::new(Self { base, len, backing, taken: Mutex::new(vec![(0, GRANULE)]) }))
    }

    /// A small window in one ordinary allocation: for tests and for interpreters, which have no page mapping.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn on_heap(len: usize) -> Arc<Self> {
        let len = len.next_multiple_of(GRANULE) + GRANULE;
        let layout = Layout::from_size_align(len, GRANULE).expect("a multiple of a power of two");
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory for a test window");
        Arc::new(Self { base, len, backing: Backing::Heap(layout), taken: Mutex::new(vec![(0, GRANULE)]) })
    }

    /// Its first byte.
    #[inline]
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes of addresses.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where devices find the byte at `offset` of the window. They reach it only if an arena lies there and was
    /// mapped for them.
    #[inline]
    pub const fn iova_at(&self, offset: usize) -> Iova {
        Iova(offset as u64)
    }

    /// Lays an arena of at least `bytes` into the window: mapped, bound to `node`, prefaulted, locked.
    ///
    /// Superpages need no lock: they are never swapped. Base pages are locked; with [`Pages::Any`] a memlock limit
    /// that is too low leaves them unlocked ([`Arena::locked`]).
    ///
    /// # Errors
    /// No such node or page size, too few free pages, no room, the memlock limit: each says what to do.
    pub fn arena(
        self: &Arc<Self>,
        bytes: usize,
        node: Option<Node>,
        pages: Pages,
    ) -> Result<Arc<Arena>, HwError> {
        if matches!(self.backing, Backing::Heap(_)) {
            return self.lay(bytes, node, PageSize::Base4K, false);
        }
        let there = topology::nodes();
        if let Some(asked) = node.filter(|n| !there.is_empty() && !there.contains(n)) {
            return Err(HwError::NoSuchNode { asked, there });
        }
        match pages {
            Pages::Only(page) => self.lay(bytes, node, page, true),
            Pages::Any => {
                // A superpage that would be mostly empty is not "the largest that is there": it is waste.
                let big = [PageSize::Huge1G, PageSize::Huge2M].into_iter().filter(|p| bytes >= p.bytes() / 2);
                for page in big {
                    if let Ok(a) = self.lay(bytes, node, page, true) {
                        return Ok(a);
                    }
                }
                self.lay(bytes, node, PageSize::Base4K, false)
            }
        }
    }

    fn lay(
        self: &Arc<Self>,
        bytes: usize,
        node: Option<Node>,
        pages: PageSize,
        strict: bool,
    ) -> Result<Arc<Arena>, HwError> {
        let (offset, len) = self.place(bytes, pages.bytes().max(GRANULE))?;
        // From here on, dropping the arena gives the place back.
        let (window, claimed) = (Arc::clone(self), AtomicBool::new(false));
        let mut arena = Arena { window, offset, len, pages, node, locked: false, claimed };
        match self.backing {
            // SAFETY: the place is free, and ours since `place`.
            Backing::Heap(_) => unsafe { arena.base().write_bytes(0, len) },
            Backing::Reserved { .. } => arena.locked = arena.fill(strict)?,
        }
        Ok(Arc::new(arena))
    }

    /// Finds room for `bytes`, a multiple of `align` long: first fit, never across the MSI range. Returns start and length.
    fn place(&self, bytes: usize, align: usize) -> Result<(usize, usize), HwError> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let used = taken.iter().map(|t| t.1 - t.0).sum();
        let full = |asked| HwError::NoRoom { asked, taken: used, len: self.len };
        // The sums below cannot overflow once this has been ruled out.
        if bytes > self.len {
            return Err(full(bytes));
        }
        let len = bytes.max(1).next_multiple_of(align);
        let mut fences = taken.clone();
        fences.push((MSI.start, MSI.end));
        fences.sort_unstable();
        let mut at = 0usize;
        for (start, end) in fences {
            if at.next_multiple_of(align) + len <= start {
                break;
            }
            at = at.max(end);
        }
        let at = at.next_multiple_of(align);
        if at + len > self.len {
            return Err(full(len));
        }
        taken.push((at, at + len));
        Ok((at, len))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: every arena holds the window, so nothing is left in it.
            Backing::Reserved { at, len } => unsafe { os::release(at, len) },
            // SAFETY: allocated with this layout, and as above.
            Backing::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
        }
    }
}

/// Real pages in a [`Window`]. Dropping it gives pages and addresses back.
pub struct Arena {
    window: Arc<Window>,
    offset: usize,
    len: usize,
    pages: PageSize,
    node: Option<Node>,
    locked: bool,
    claimed: AtomicBool,
}

impl Arena {
    /// Takes what lies in the arena, as rings or as packet buffers: true for the first who asks. Nobody else may hand out
    /// its memory.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::Relaxed)
    }
    /// Its first byte.
    pub fn base(&self) -> NonNull<u8> {
        // SAFETY: the arena lies in its window.
        unsafe { self.window.base.add(self.offset) }
    }
    /// Bytes.
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Never.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Bytes from the start of the window.
    pub const fn offset(&self) -> usize {
        self.offset
    }
    /// Where devices find its first byte.
    pub const fn iova(&self) -> Iova {
        Iova(self.offset as u64)
    }
    /// The pages it got.
    pub const fn pages(&self) -> PageSize {
        self.pages
    }
    /// The node it was bound to; `None` if unknown.
    pub const fn node(&self) -> Option<Node> {
        self.node
    }
    /// Whether its pages stay in memory. A device must not use pages that may move.
    pub const fn locked(&self) -> bool {
        self.locked
    }
    /// The window it lies in.
    pub const fn window(&self) -> &Arc<Window> {
        &self.window
    }

    /// Maps, binds, prefaults and locks. `strict`: no lock is an error.
    fn fill(&self, strict: bool) -> Result<bool, HwError> {
        let (base, len, page) = (self.base(), self.len, self.pages);
        let os = |what: &str, source| HwError::Os {
            what: format!("{what} {} of {page} pages", Bytes(len)),
            source,
        };
        if !page.exists() {
            let instead = if PageSize::Huge2M.exists() { "2M" } else { "4K" };
            return Err(HwError::NoPageSize { page, instead });
        }
        self.enough()?;
        let fd = os::memfd(len, page).map_err(|e| os("making a memory file of", e))?;
        // SAFETY: the place in the window is ours alone and aligned to the page.
        unsafe { os::commit(base, len, &fd) }.map_err(|e| os("mapping", e))?;
        if let Some(node) = self.node {
            let bound = os::bind(base, len, node).or_else(|e| match e.raw_os_error() {
                Some(libc::ENOSYS) => Ok(()),
                _ => Err(e),
            });
            bound.map_err(|e| os("binding", e))?;
        }
        os::populate(base, len).map_err(|e| match self.node {
            Some(node) if e.raw_os_error() == Some(libc::EFAULT) => {
                HwError::NodeFull { node, bytes: len, page }
            }
            _ => os("bringing in", e),
        })?;
        if page != PageSize::Base4K {
            return Ok(true);
        }
        match os::lock(base, len) {
            Ok(()) => Ok(true),
            Err(_) if strict => Err(HwError::Memlock { need: len, limit: topology::memlock_limit() }),
            Err(_) => Ok(false),
        }
    }

    /// Pages are counted before they are asked for: the answer names how many are missing.
    fn enough(&self) -> Result<(), HwError> {
        let (page, node, asked) = (self.pages, self.node, self.len);
        if page == PageSize::Base4K {
            // Memory is promised freely and taken back by force: better to ask what there is.
            return match topology::available() {
                Some(free) if free < asked => Err(HwError::NoMemory { asked, free }),
                _ => Ok(()),
            };
        }
        let need = asked / page.bytes();
        match page.count(node) {
            Some((free, _)) if free < need => {
                let short = need - free;
                Err(HwError::NoPages { asked, page, node, free, short, command: page.command(node, short) })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if matches!(self.window.backing, Backing::Reserved { .. }) {
            // SAFETY: the last owner is gone; buses that mapped the arena held an `Arc` of it.
            unsafe { os::decommit(self.base(), self.len) };
        }
        let mut taken = self.window.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|t| t.0 != self.offset);
    }
}

#[cfg(test)]
mod tests;
