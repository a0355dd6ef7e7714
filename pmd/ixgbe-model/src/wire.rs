//! What is at the other end of the cable.

use core::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A frame that came in by the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes, from the destination address on, without the CRC.
    pub len: usize,
    /// Its CRC is wrong.
    pub bad_crc: bool,
}

impl Arrival {
    /// A frame of `len` bytes with a good CRC.
    pub const fn good(len: usize) -> Self {
        Self { len, bad_crc: false }
    }
}

/// What is at the other end of the cable: a generator, a checker, another model, a test.
///
/// Frames have no CRC; the device counts 4 bytes for it. One engine owns a wire and calls it from its own thread,
/// many frames in a row, so neither call should allocate or lock.
pub trait Wire: Send {
    /// The next frame that arrives, built in `room` (at least [`ixgbe_defs::MAX_FRAME_BYTES`]); `None` if the line
    /// is idle now. The device asks only when it can take a frame; what it then does with it is its own affair.
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival>;

    /// A frame leaves the device. It is only there for the call.
    fn tx_frame(&mut self, frame: &[u8]);

    /// A burst has ended, in one direction or both: the place to publish what is kept back for the sake of speed.
    fn end_burst(&mut self) {}
}

impl<W: Wire + ?Sized> Wire for Box<W> {
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        (**self).rx_next(room)
    }
    fn tx_frame(&mut self, frame: &[u8]) {
        (**self).tx_frame(frame);
    }
    fn end_burst(&mut self) {
        (**self).end_burst();
    }
}

/// A wire that a test writes down: frames to come in, frames that went out.
#[derive(Debug, Default)]
pub struct Script {
    arrivals: VecDeque<(Vec<u8>, bool)>,
    sent: Vec<Vec<u8>>,
}

impl Script {
    /// A frame to come in, with a good CRC.
    pub fn push(&mut self, frame: impl Into<Vec<u8>>) {
        self.arrivals.push_back((frame.into(), false));
    }
    /// A frame to come in, with a bad CRC.
    pub fn push_bad_crc(&mut self, frame: impl Into<Vec<u8>>) {
        self.arrivals.push_back((frame.into(), true));
    }
    /// Frames that have not come in yet.
    pub fn waiting(&self) -> usize {
        self.arrivals.len()
    }
    /// Takes the frames that went out since last asked.
    pub fn take_sent(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.sent)
    }
}

impl Wire for Script {
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        let (frame, bad_crc) = self.arrivals.pop_front()?;
        let len = frame.len().min(room.len());
        room[..len].copy_from_slice(&frame[..len]);
        Some(Arrival { len, bad_crc })
    }
    fn tx_frame(&mut self, frame: &[u8]) {
        self.sent.push(frame.to_vec());
    }
}

/// One way of a cable: a bounded queue of frames between two engines, on one thread or two.
struct Lane {
    slots: Box<[UnsafeCell<Box<[u8]>>]>,
    lens: Box<[AtomicUsize]>,
    head: AtomicU64,
    tail: AtomicU64,
    overflow: AtomicU64,
}
// SAFETY: a slot is written by the one sender before it moves `tail` past it (Release), and read by the one receiver
// after it saw that (Acquire) and before it moves `head` past it (Release), which the sender waits for (Acquire).
unsafe impl Sync for Lane {}
// SAFETY: owned memory.
unsafe impl Send for Lane {}

impl Lane {
    fn new(frames: usize, room: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: (0..frames).map(|_| UnsafeCell::new(vec![0; room].into_boxed_slice())).collect(),
            lens: (0..frames).map(|_| AtomicUsize::new(0)).collect(),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            overflow: AtomicU64::new(0),
        })
    }
}

/// One end of a cable between two models.
pub struct Cable {
    out: Arc<Lane>,
    into: Arc<Lane>,
}

impl Cable {
    /// A cable that holds `frames` frames of up to `room` bytes each way. A frame that finds it full, or is longer,
    /// is lost and counted ([`Cable::lost`]).
    pub fn pair(frames: usize, room: usize) -> (Self, Self) {
        let (a, b) = (Lane::new(frames.max(1), room), Lane::new(frames.max(1), room));
        (Self { out: Arc::clone(&a), into: Arc::clone(&b) }, Self { out: b, into: a })
    }

    /// Frames sent from this end that were lost.
    pub fn lost(&self) -> u64 {
        self.out.overflow.load(Ordering::Relaxed)
    }
}

impl Wire for Cable {
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        let lane = &*self.into;
        let head = lane.head.load(Ordering::Relaxed);
        if head == lane.tail.load(Ordering::Acquire) {
            return None;
        }
        let at = (head % lane.slots.len() as u64) as usize;
        let len = lane.lens[at].load(Ordering::Relaxed).min(room.len());
        // SAFETY: between `head` and `tail`, so the receiver's; `&mut self` makes it the only one.
        let slot = unsafe { &*lane.slots[at].get() };
        room[..len].copy_from_slice(&slot[..len]);
        lane.head.store(head + 1, Ordering::Release);
        Some(Arrival::good(len))
    }

    fn tx_frame(&mut self, frame: &[u8]) {
        let lane = &*self.out;
        let tail = lane.tail.load(Ordering::Relaxed);
        let at = (tail % lane.slots.len() as u64) as usize;
        if tail - lane.head.load(Ordering::Acquire) == lane.slots.len() as u64 {
            lane.overflow.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: not between `head` and `tail`, so the sender's; `&mut self` makes it the only one.
        let slot = unsafe { &mut *lane.slots[at].get() };
        let Some(room) = slot.get_mut(..frame.len()) else {
            lane.overflow.fetch_add(1, Ordering::Relaxed);
            return;
        };
        room.copy_from_slice(frame);
        lane.lens[at].store(frame.len(), Ordering::Relaxed);
        lane.tail.store(tail + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_keeps_order_both_ways_and_counts_what_it_loses() {
        let (mut a, mut b) = Cable::pair(2, 8);
        for n in 1..=3u8 {
            a.tx_frame(&[n; 4]);
        }
        b.tx_frame(&[9; 9]);
        assert_eq!((a.lost(), b.lost()), (1, 1));
        let mut room = [0; 16];
        assert_eq!(b.rx_next(&mut room), Some(Arrival::good(4)));
        assert_eq!(room[..4], [1; 4]);
        a.tx_frame(&[4; 8]);
        assert_eq!(b.rx_next(&mut room).map(|f| (f.len, room[0])), Some((4, 2)));
        assert_eq!(b.rx_next(&mut room).map(|f| (f.len, room[7])), Some((8, 4)));
        assert_eq!((b.rx_next(&mut room), a.rx_next(&mut room)), (None, None));
    }

    #[test]
    fn a_cable_joins_two_threads() {
        let frames = if cfg!(miri) { 40 } else { 4000 };
        let (mut a, mut b) = Cable::pair(4, 64);
        let sender = std::thread::spawn(move || {
            let mut n = 0u32;
            while n < frames {
                let before = a.lost();
                a.tx_frame(&n.to_le_bytes());
                if a.lost() == before {
                    n += 1;
                } else {
                    std::thread::yield_now();
                }
            }
        });
        let (mut room, mut expected) = ([0; 64], 0u32);
        while expected < frames {
            match b.rx_next(&mut room) {
                Some(f) => {
                    assert_eq!(room[..f.len], expected.to_le_bytes());
                    expected += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        sender.join().expect("the sender");
    }
}
