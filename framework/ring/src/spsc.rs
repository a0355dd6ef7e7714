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
/// What goes in comes out as what it was, for as long as it lives:
///
/// ```compile_fail,E0597
/// let (mut tx, mut rx) = ringwright_ring::spsc::<&'static str>(8.try_into().unwrap());
/// {
///     let mut tx: ringwright_ring::Producer<&str> = tx;
///     let short = String::from("gone");
///     tx.push(&[&short]);
/// }
/// let mut out = [""; 1];
/// rx.pop_slice(&mut out);
/// ```
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
/// Items that are in the ring when both ends are gone are forgotten, not dropped: empty it first if they stand for
/// something, as slots of buffers do.
pub fn spsc<T: Send>(size: RingSize) -> (Producer<T>, Consumer<T>) {
    spsc_at(size, 0)
}

/// As [`spsc()`], with both positions at `start`: to test what happens when they wrap.
#[doc(hidden)]
pub fn spsc_at<T: Send>(size: RingSize, start: Pos) -> (Producer<T>, Consumer<T>) {
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
        self.publish(n);
        n
    }
}

impl<T: Send> Producer<T> {
    /// Reserves up to `n` slots, to move items into one by one; as many as there are now, perhaps none. What was moved
    /// in becomes visible, with one store, when the reservation is dropped.
    #[inline]
    pub fn reserve(&mut self, n: usize) -> Reserve<'_, T> {
        let room = if self.has_room(n) { n } else { self.room_seen() };
        Reserve { ring: self, used: 0, room: room as u32 }
    }

    /// Makes the `n` items behind `head` visible.
    #[inline]
    fn publish(&mut self, n: usize) {
        self.head = self.head.wrapping_add(n as u32);
        self.shared.head.0.store(self.head, edge(Edge::SpscPublish, Ordering::Release));
        // The next bulk will probably be as long. Its lines are in the consumer's cache, and stores leave a core one
        // after the other: asking for all lines now, but only for slots that the consumer has left, is worth a
        // factor of 1.05 to 2.6 between cores (8-byte and 16-byte items, bulks of 32).
        self.shared.slots.0.prefetch_write(self.head, n.min(self.room_seen()));
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
        self.give_back(n);
        n
    }

    /// As [`pop`](Self::pop), over elements that hold something already.
    #[inline]
    pub fn pop_slice(&mut self, out: &mut [T]) -> usize {
        self.pop(crate::slots::as_uninit(out))
    }
}

impl<T: Send> Consumer<T> {
    /// Takes up to `n` of the oldest items, to be moved out one by one; as many as there are now, perhaps none. The
    /// slots of those moved out go back, with one store, when the iterator is dropped; the others stay in the ring.
    #[inline]
    pub fn take(&mut self, n: usize) -> Taken<'_, T> {
        if self.len_seen() < n {
            self.len();
        }
        let len = n.min(self.len_seen());
        Taken { ring: self, used: 0, len: len as u32 }
    }

    /// Gives the slots before `tail`, `n` since the last time, back.
    #[inline]
    fn give_back(&mut self, n: usize) {
        self.shared.tail.0.store(self.tail, edge(Edge::SpscFree, Ordering::Release));
        self.shared.slots.0.prefetch_read(self.tail, n.min(self.len_seen()));
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

/// Slots of a ring that are being filled. Nothing is visible before it is dropped.
#[must_use = "items are visible once it is dropped"]
pub struct Reserve<'r, T: Send> {
    ring: &'r mut Producer<T>,
    used: u32,
    room: u32,
}

impl<T: Send> Reserve<'_, T> {
    /// Moves an item in.
    ///
    /// # Errors
    /// The item, once all reserved slots are used.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.used == self.room {
            return Err(item);
        }
        // SAFETY: the consumer has left the `room_seen() >= room` slots from `head` on (Acquire in `room`) and comes
        // back only to what is published when this is dropped; this end is the only producer.
        unsafe { self.ring.shared.slots.0.put(self.ring.head.wrapping_add(self.used), item) };
        self.used += 1;
        Ok(())
    }

    /// Items moved in.
    #[inline]
    pub const fn used(&self) -> usize {
        self.used as usize
    }
}

impl<T: Send> Drop for Reserve<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.used > 0 {
            self.ring.publish(self.used as usize);
        }
    }
}

/// Items on their way out of a ring, oldest first.
#[must_use = "items that are not moved out stay in the ring"]
pub struct Taken<'r, T: Send> {
    ring: &'r mut Consumer<T>,
    used: u32,
    len: u32,
}

impl<T: Send> Iterator for Taken<'_, T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.used == self.len {
            return None;
        }
        // SAFETY: the producer has published this slot (`len` were there when `take` looked, by Acquire in `len`) and
        // comes back to it only once it is given back; `tail` moves on at once, so that it is moved out of only once even
        // if this iterator is never dropped.
        let item = unsafe { self.ring.shared.slots.0.get(self.ring.tail) };
        self.ring.tail = self.ring.tail.wrapping_add(1);
        self.used += 1;
        Some(item)
    }
    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.len - self.used) as usize;
        (left, Some(left))
    }
}
impl<T: Send> ExactSizeIterator for Taken<'_, T> {}

impl<T: Send> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.used > 0 {
            self.ring.give_back(self.used as usize);
        }
    }
}
