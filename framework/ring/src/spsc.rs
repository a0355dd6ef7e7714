//! From one core to another, in bulk.

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::sync::Arc;

use crate::slots::Slots;
use crate::sync::{AtomicU32, Edge, Line, Ordering, edge};
use crate::{Pos, RingSize};

/// What the two ends share: one line that the producer writes, one that the consumer writes, one that nobody does.
#[repr(C)]
struct Shared<T> {
    /// Where the producer writes next.
    head: Line<AtomicU32>,
    /// Where the consumer reads next.
    tail: Line<AtomicU32>,
    slots: Line<Slots<T>>,
}
const _: () = assert!(align_of::<Shared<u64>>() == 128 && size_of::<Shared<u64>>() == 3 * 128);

/// The end that fills a ring. One owner: it moves between threads, it is never shared.
///
/// It keeps the consumer's position as last seen and looks again only when that one does not promise enough room.
#[repr(align(128))]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    size: RingSize,
    head: Pos,
    /// The consumer's position when last looked at: it can only have moved on, which makes more room.
    tail_seen: Pos,
    /// Send, but not Sync.
    _one_owner: PhantomData<Cell<()>>,
}

/// The end that empties a ring. One owner: it moves between threads, it is never shared.
///
/// It keeps the producer's position as last seen and looks again only when that one does not promise enough items.
#[repr(align(128))]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    size: RingSize,
    tail: Pos,
    /// The producer's position when last looked at: it can only have moved on, which makes more items.
    head_seen: Pos,
    /// Send, but not Sync.
    _one_owner: PhantomData<Cell<()>>,
}

/// A ring of `size` items from one thread to another; all `size` of them can wait in it.
///
/// Items that are in the ring when both ends are gone are forgotten (`T: Copy` has nothing to drop): empty it first if
/// they stand for something, as slots of buffers do.
pub fn spsc<T: Copy + Send>(size: RingSize) -> (Producer<T>, Consumer<T>) {
    spsc_at(size, 0)
}

/// As [`spsc()`], with both positions at `start`: to test what happens when they wrap.
#[doc(hidden)]
pub fn spsc_at<T: Copy + Send>(size: RingSize, start: Pos) -> (Producer<T>, Consumer<T>) {
    let shared = Arc::new(Shared {
        head: Line(AtomicU32::new(start)),
        tail: Line(AtomicU32::new(start)),
        slots: Line(Slots::new(size)),
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        size,
        head: start,
        tail_seen: start,
        _one_owner: PhantomData,
    };
    (producer, Consumer { shared, size, tail: start, head_seen: start, _one_owner: PhantomData })
}

impl<T: Copy + Send> Producer<T> {
    /// Copies in as many of `items` as fit, from the front, and makes them visible with one store. Returns how many.
    #[inline]
    pub fn push(&mut self, items: &[T]) -> usize {
        let n = if self.has_room(items.len()) { items.len() } else { self.room_seen() };
        if n == 0 {
            return 0;
        }
        // SAFETY: the consumer has left the `room_seen() >= n` slots from `head` on (Acquire in `room`) and comes
        // back only to what is published below; this end is the only producer.
        unsafe { self.shared.slots.0.write(self.head, &items[..n]) };
        self.head = self.head.wrapping_add(n as u32);
        self.shared.head.0.store(self.head, edge(Edge::SpscPublish, Ordering::Release));
        // The next bulk will probably be as long. Its lines are in the consumer's cache, and stores leave a core one
        // after the other: asking for all lines now, but only for slots that the consumer has left, is worth a
        // factor of 1.05 to 2.6 between cores (8-byte and 16-byte items, bulks of 32).
        self.shared.slots.0.prefetch_write(self.head, n.min(self.room_seen()));
        n
    }

    /// True if `n` items fit; looks at the consumer's position only if the one last seen does not say so.
    #[inline]
    pub fn has_room(&mut self, n: usize) -> bool {
        n <= self.room_seen() || n <= self.room()
    }

    /// Items that fit now, by a fresh look. The consumer may have made more room since, never less.
    #[inline]
    pub fn room(&mut self) -> usize {
        self.tail_seen = self.shared.tail.0.load(edge(Edge::SpscRoom, Ordering::Acquire));
        self.room_seen()
    }

    /// Items that wait in the ring. The consumer may have taken some since.
    #[inline]
    pub fn len(&self) -> usize {
        self.head.wrapping_sub(self.shared.tail.0.load(Ordering::Relaxed)) as usize
    }

    /// True if no item waits in the ring: the consumer has taken all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that the ring holds when full.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.size.entries()
    }

    #[inline]
    const fn room_seen(&self) -> usize {
        self.size.entries() - self.head.wrapping_sub(self.tail_seen) as usize
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Moves the oldest items to the front of `out`, as many as there are and fit. Returns how many: that many
    /// elements of `out` are initialised.
    #[inline]
    pub fn pop(&mut self, out: &mut [MaybeUninit<T>]) -> usize {
        if self.len_seen() < out.len() {
            self.len();
        }
        let n = out.len().min(self.len_seen());
        if n == 0 {
            return 0;
        }
        // SAFETY: the producer has published the `len_seen() >= n` slots from `tail` on (Acquire in `len`) and comes
        // back only to what is given back below; this end is the only consumer.
        unsafe { self.shared.slots.0.read(self.tail, &mut out[..n]) };
        self.tail = self.tail.wrapping_add(n as u32);
        self.shared.tail.0.store(self.tail, edge(Edge::SpscFree, Ordering::Release));
        self.shared.slots.0.prefetch_read(self.tail, n.min(self.len_seen()));
        n
    }

    /// As [`pop`](Self::pop), over elements that hold something already.
    #[inline]
    pub fn pop_slice(&mut self, out: &mut [T]) -> usize {
        self.pop(crate::slots::as_uninit(out))
    }

    /// Items that wait now, by a fresh look. The producer may have added some since, never taken any.
    #[inline]
    pub fn len(&mut self) -> usize {
        self.head_seen = self.shared.head.0.load(edge(Edge::SpscObserve, Ordering::Acquire));
        self.len_seen()
    }

    /// True if no item waits; looks at the producer's position only if the one last seen does not say so.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.len_seen() == 0 && self.len() == 0
    }

    /// Items that fit. The producer may have used some of that room since.
    #[inline]
    pub fn room(&mut self) -> usize {
        self.capacity() - self.len()
    }

    /// Items that the ring holds when full.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.size.entries()
    }

    #[inline]
    const fn len_seen(&self) -> usize {
        self.head_seen.wrapping_sub(self.tail) as usize
    }
}
