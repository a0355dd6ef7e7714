//! Handing a meter to other threads without stopping its owner.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The public copy of a meter `M`: one writer, any readers.
///
/// A sequence lock (Boehm, "Can seqlocks get along with programming language memory models?", 2012): a reader gets
/// the counts of one moment. The words are atomics, so there is no data race to reason away.
#[derive(Debug)]
#[repr(align(128))]
pub struct Published<M> {
    epoch: AtomicU64,
    words: Box<[AtomicU64]>,
    _m: PhantomData<M>,
}

impl<M: FromBytes + IntoBytes + Immutable> Default for Published<M> {
    fn default() -> Self {
        const { assert!(size_of::<M>().is_multiple_of(8)) };
        let words = (0..size_of::<M>() / 8).map(|_| AtomicU64::new(0)).collect();
        Self { epoch: AtomicU64::new(0), words, _m: PhantomData }
    }
}

impl<M: FromBytes + IntoBytes + Immutable> Published<M> {
    /// Copies `meter` out. To be called by one thread, about every millisecond.
    pub fn publish(&self, meter: &M) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.epoch.store(epoch + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, bytes) in self.words.iter().zip(meter.as_bytes().as_chunks::<8>().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.epoch.store(epoch + 2, Ordering::Release);
    }

    /// The counts as last published.
    pub fn read(&self) -> M {
        loop {
            let before = self.epoch.load(Ordering::Acquire);
            let mut m = M::new_zeroed();
            for (word, bytes) in self.words.iter().zip(m.as_mut_bytes().as_chunks_mut::<8>().0) {
                *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == self.epoch.load(Ordering::Relaxed) {
                return m;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meter, QueueMeter};

    #[test]
    fn a_reader_sees_the_counts_of_one_moment() {
        let p = Published::<QueueMeter>::default();
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut m = QueueMeter::default();
                for _ in 0..rounds {
                    m.burst(3, 180);
                    p.publish(&m);
                }
            });
            let mut last = 0;
            while last < rounds {
                let m = p.read();
                assert_eq!((m.packets, m.bytes, m.bursts[1]), (3 * m.polls, 180 * m.polls, m.polls));
                assert!(m.polls >= last, "counts never go back");
                last = m.polls;
            }
        });
    }
}
