//! A runtime's packet memory and the pools in it.

use core::cell::UnsafeCell;
use core::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam_queue::ArrayQueue;
use hw::{Arena, Bytes, GRANULE, LINE, Node, Pages, Window};

use crate::{Ext, MemError, magazine::Magazine};

/// Most pools of one runtime.
pub(crate) const MAX_POOLS: usize = 64;
/// Most workers that can hold magazines of one pool without the depot growing short of empty ones.
const MAX_WORKERS: usize = 64;

/// The shape of a buffer, the same in all pools of a runtime: a slot of any pool fits any batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    lines: u16,
    headroom: u16,
}

impl Layout {
    /// Buffers `stride` bytes apart with `headroom` bytes before the frame.
    ///
    /// # Errors
    /// [`MemError::BadLayout`] unless `stride` is a multiple of 64 up to 16384 and larger than `headroom`.
    pub const fn new(stride: usize, headroom: usize) -> Result<Self, MemError> {
        if !stride.is_multiple_of(LINE) || stride > 16_384 || headroom >= stride {
            return Err(MemError::BadLayout { stride, headroom });
        }
        Ok(Self { lines: (stride / LINE) as u16, headroom: headroom as u16 })
    }

    /// Buffers in which a device may fill `room` bytes after 128 bytes of headroom. The stride is an odd number of
    /// cache lines, which spreads the headers over the cache's sets.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub const fn for_frame_room(room: usize) -> Result<Self, MemError> {
        const HEADROOM: usize = 128;
        let lines = (room + HEADROOM).div_ceil(LINE);
        Self::new((lines | 1) * LINE, HEADROOM)
    }

    /// Bytes from one buffer to the next.
    #[inline]
    pub const fn stride(self) -> usize {
        self.lines as usize * LINE
    }
    /// Bytes before the frame.
    #[inline]
    pub const fn headroom(self) -> u16 {
        self.headroom
    }
    /// Bytes that a device may fill.
    #[inline]
    pub const fn room(self) -> u16 {
        (self.stride() - self.headroom as usize) as u16
    }
    pub(crate) const fn lines(self) -> u32 {
        self.lines as u32
    }
}

/// A pool, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub(crate) u8);

/// Buffers on one node. Shared: any worker takes from it and frees to it, through its own magazines.
pub struct Pool {
    id: PoolId,
    arena: Arc<Arena>,
    /// The first buffer's first line.
    pub(crate) first: u32,
    capacity: u32,
    layout: Layout,
    ext: Box<[UnsafeCell<Ext>]>,
    pub(crate) full: ArrayQueue<Box<Magazine>>,
    pub(crate) empty: ArrayQueue<Box<Magazine>>,
    /// Lines of slots that do not fill a magazine: what workers had left when they ended.
    pub(crate) rest: Mutex<Vec<u32>>,
    /// Slots in the magazines of `full` and in `rest`.
    pub(crate) depot: AtomicUsize,
}
// SAFETY: an `Ext` is reached only by the owner of its slot, and a slot has one owner; the rest is `Sync` by itself.
unsafe impl Sync for Pool {}

impl Pool {
    fn new(id: PoolId, arena: Arc<Arena>, layout: Layout, capacity: usize) -> Self {
        assert!(arena.claim(), "a fresh arena");
        let first = (arena.offset() / LINE) as u32;
        let magazines = capacity.div_ceil(Magazine::SIZE) + 2 * MAX_WORKERS;
        let full = ArrayQueue::new(magazines);
        let empty = ArrayQueue::new(magazines);
        let lines: Vec<u32> = (0..capacity as u32).map(|i| first + i * layout.lines()).collect();
        for chunk in lines.chunks(Magazine::SIZE) {
            let _ = full.push(Magazine::holding(chunk));
        }
        for _ in 0..2 * MAX_WORKERS {
            let _ = empty.push(Magazine::holding(&[]));
        }
        let ext = (0..capacity).map(|_| UnsafeCell::default()).collect();
        let depot = AtomicUsize::new(capacity);
        let rest = Mutex::new(Vec::with_capacity(2 * Magazine::SIZE));
        Self { id, arena, first, capacity: capacity as u32, layout, ext, full, empty, rest, depot }
    }

    /// Its number.
    pub const fn id(&self) -> PoolId {
        self.id
    }
    /// The pages it lies on; a port's bus maps them for the device.
    pub const fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }
    /// The node; `None` if unknown.
    pub fn node(&self) -> Option<Node> {
        self.arena.node()
    }
    /// All buffers.
    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }
    /// Buffers in the depot: neither in a worker's magazines nor anywhere else.
    pub fn depot(&self) -> usize {
        self.depot.load(Ordering::Relaxed)
    }
    /// Whether `line` belongs to one of its buffers.
    #[inline]
    pub(crate) const fn owns(&self, line: u32) -> bool {
        line.wrapping_sub(self.first) < self.capacity * self.layout.lines()
    }
    /// The place of the `Ext` of the buffer that starts at `line`.
    #[inline]
    pub(crate) fn ext(&self, line: u32) -> *mut Ext {
        self.ext[((line - self.first) / self.layout.lines()) as usize].get()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pool {} of {} buffers, {} pages",
            self.id.0,
            self.capacity,
            Bytes(self.arena.pages().bytes())
        )
    }
}

/// The packet memory of one runtime: a window, its pools, and which granule belongs to which pool.
pub struct Memory {
    window: Arc<Window>,
    layout: Layout,
    pools: [OnceLock<Pool>; MAX_POOLS],
    /// Pool number + 1 by granule; 0 for granules without buffers.
    granules: Box<[AtomicU8]>,
    count: Mutex<usize>,
}

impl Memory {
    /// No pools yet.
    pub fn new(window: Arc<Window>, layout: Layout) -> Arc<Self> {
        let granules = (0..window.len() / GRANULE).map(|_| AtomicU8::new(0)).collect();
        let pools = [const { OnceLock::new() }; MAX_POOLS];
        Arc::new(Self { window, layout, pools, granules, count: Mutex::new(0) })
    }

    /// Bytes of pages that a pool of `buffers` takes.
    pub const fn bytes_for(layout: Layout, buffers: usize) -> usize {
        buffers * layout.stride()
    }

    /// Adds a pool of `buffers` on `node`.
    ///
    /// # Errors
    /// Too few pages, a wrong node, no room: see [`hw::HwError`]; a number of buffers or pools that cannot be.
    pub fn add_pool(&self, buffers: usize, node: Option<Node>, pages: Pages) -> Result<&Pool, MemError> {
        let most = (self.window.len() - GRANULE) / self.layout.stride();
        if !(64..=most).contains(&buffers) {
            return Err(MemError::BadCapacity { asked: buffers, most });
        }
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.pools.get(*count).ok_or(MemError::TooManyPools)?;
        let arena = self.window.arena(Self::bytes_for(self.layout, buffers), node, pages)?;
        for g in &self.granules[arena.offset() / GRANULE..(arena.offset() + arena.len()) / GRANULE] {
            g.store(*count as u8 + 1, Ordering::Relaxed);
        }
        let id = PoolId(*count as u8);
        *count += 1;
        Ok(place.get_or_init(|| Pool::new(id, arena, self.layout, buffers)))
    }

    /// The window that slots number.
    pub const fn window(&self) -> &Arc<Window> {
        &self.window
    }
    /// The shape of every buffer.
    pub const fn layout(&self) -> Layout {
        self.layout
    }
    /// Pool `id`, if it is one of this memory's.
    pub fn pool(&self, id: PoolId) -> Option<&Pool> {
        self.pools.get(usize::from(id.0))?.get()
    }
    /// All pools.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter().map_while(OnceLock::get)
    }
    /// The pool of `node`; the first pool, wherever it is, if there is none there.
    pub fn pool_on(&self, node: Option<Node>) -> Option<&Pool> {
        self.pools().find(|p| p.node() == node).or_else(|| self.pools().next())
    }
    /// All buffers of all pools.
    pub fn capacity(&self) -> usize {
        self.pools().map(Pool::capacity).sum()
    }
    /// Buffers in depots.
    pub fn depot(&self) -> usize {
        self.pools().map(Pool::depot).sum()
    }
    /// The pool, if there is but one: nearly always.
    #[inline]
    pub(crate) fn only_pool(&self) -> Option<&Pool> {
        let [first, second, ..] = &self.pools;
        if second.get().is_none() { first.get() } else { None }
    }
    /// The pool that the line belongs to.
    #[inline]
    pub(crate) fn pool_of(&self, line: u32) -> &Pool {
        let g = self.granules.get(line as usize / (GRANULE / LINE)).map_or(0, |g| g.load(Ordering::Relaxed));
        self.pools.get(usize::from(g).wrapping_sub(1)).and_then(OnceLock::get).expect("a slot of this memory")
    }
}
