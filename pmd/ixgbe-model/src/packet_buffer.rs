//! The receive packet buffer: frames that wait for descriptors, in their order.

use std::collections::VecDeque;

use ixgbe_defs::MAX_FRAME_BYTES;

use crate::mac::Ticket;

/// A frame that waits.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(crate) ticket: Ticket,
}

/// The largest RXPBSIZE: 512 KiB (82599 8.2.3.8.9).
const LARGEST: usize = 512 * 1024;

pub(crate) struct PacketBuffer {
    bytes: Box<[u8]>,
    frames: VecDeque<(usize, usize, Held)>,
    end: usize,
    used: usize,
}

impl PacketBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: Box::new([]), frames: VecDeque::new(), end: 0, used: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        (self.end, self.used) = (0, 0);
    }

    /// Keeps a frame, if the buffer of `size` bytes has room for it.
    pub(crate) fn push(&mut self, frame: &[u8], held: Held, size: usize) -> bool {
        if self.used + frame.len() > size.min(LARGEST) {
            return false;
        }
        if self.bytes.is_empty() {
            // Once, on the first frame that ever waits.
            self.bytes = vec![0; LARGEST + MAX_FRAME_BYTES].into();
            self.frames.reserve(LARGEST / 60 + 1);
        }
        let Some(start) = self.place(frame.len()) else { return false };
        self.bytes[start..start + frame.len()].copy_from_slice(frame);
        self.end = start + frame.len();
        self.used += frame.len();
        self.frames.push_back((start, frame.len(), held));
        true
    }

    /// A piece of `len` bytes that no waiting frame has.
    fn place(&self, len: usize) -> Option<usize> {
        match self.frames.front() {
            None => Some(0),
            Some((first, ..)) if self.end > *first => {
                if self.end + len <= self.bytes.len() {
                    Some(self.end)
                } else {
                    (len < *first).then_some(0)
                }
            }
            Some((first, ..)) => (self.end + len < *first).then_some(self.end),
        }
    }

    pub(crate) fn front(&self) -> Option<(&[u8], Held)> {
        let (start, len, held) = *self.frames.front()?;
        Some((&self.bytes[start..start + len], held))
    }

    pub(crate) fn pop(&mut self) {
        if let Some((_, len, _)) = self.frames.pop_front() {
            self.used -= len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::Rng;

    #[test]
    #[cfg_attr(miri, ignore = "half a megabyte, many times over")]
    fn frames_come_out_as_they_went_in_over_many_laps() {
        let (mut b, mut rng) = (PacketBuffer::new(), Rng::new(1));
        let (mut pushed, mut popped, mut refused) = (0u32, 0u32, 0);
        let len_of = |n: u32| 60 + (n as usize * 7919) % 9000;
        for _ in 0..20_000 {
            if rng.below(5) < 3 {
                let frame = vec![pushed as u8; len_of(pushed)];
                if b.push(&frame, Held { ticket: Ticket::any() }, 100 * 1024) {
                    pushed += 1;
                } else {
                    refused += 1;
                }
            } else if let Some((frame, _)) = b.front() {
                assert_eq!(frame.len(), len_of(popped));
                assert!(frame.iter().all(|x| *x == popped as u8));
                b.pop();
                popped += 1;
            }
            assert!(b.used <= 100 * 1024);
        }
        assert!(popped > 5000 && refused > 100, "{popped} {refused}");
    }
}
