//! Which frames of each flow have arrived: what tells in order, reordered and repeated apart.
//!
//! A flow's window is a ring of bits for its latest numbers, cleared by whole words as it moves on (as RFC 6479 does). What is older
//! than the ring is too late to be told from a repetition.

/// Bits of a frame's number in the frame; numbers beyond are told by what came before.
pub const NUMBER_BITS: u32 = 40;
const NUMBERS: u64 = 1 << NUMBER_BITS;
/// Jumps ahead in a flow that are remembered.
const JUMPS: usize = 16;
/// Bits of the windows of all flows together, where that is enough for each.
const ALL_BITS: usize = 1 << 22;
/// Least and most bits of a flow's window.
const LEAST: usize = 256;
const MOST: usize = 65_536;

/// How a frame arrived in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After all those before it that have arrived so far.
    InOrder,
    /// After a later one (RFC 4737, 3.3), for the first time.
    Reordered {
        /// Frames of the flow that arrived since the first later one did, this one included (RFC 4737, 4.2.1: the extent).
        /// A lower bound if the flow has jumped ahead more often than is remembered since.
        extent: u64,
    },
    /// It had arrived before.
    Repeated,
    /// Older than the window: reordered or repeated, nobody can tell.
    TooLate,
    /// A number that no frame can have had yet.
    Impossible,
}

/// A frame that came before others of its flow: `to` is its number, `at` how many had arrived by then.
#[derive(Clone, Copy, Default)]
struct Jump {
    to: u64,
    at: u64,
}

#[derive(Clone, Default)]
struct Flow {
    /// One more than the highest number that has arrived.
    next: u64,
    /// Different frames that have arrived.
    arrived: u64,
    jumps: [Jump; JUMPS],
    /// Jumps so far; the last of them are in `jumps`.
    jumped: usize,
}

/// The windows of all flows.
pub struct Windows {
    flows: Vec<Flow>,
    bits: Vec<u64>,
    /// Words of a flow's window, a power of two.
    words: usize,
}

impl Windows {
    /// Windows for `flows` flows: 65,536 bits each for few, 256 for many.
    pub fn new(flows: u32) -> Self {
        let flows = flows as usize;
        Self::with_bits(flows, (ALL_BITS / flows.max(1)).clamp(LEAST, MOST))
    }

    fn with_bits(flows: usize, bits: usize) -> Self {
        let words = (bits / 64).next_power_of_two();
        Self { flows: vec![Flow::default(); flows], bits: vec![0; flows * words], words }
    }

    /// A frame of `flow` has arrived, the low [`NUMBER_BITS`] bits of whose number are `low`.
    #[inline]
    pub fn place(&mut self, flow: u32, low: u64) -> Place {
        let flow = flow as usize;
        let Some(f) = self.flows.get_mut(flow) else { return Place::Impossible };
        let Some(ring) = self.bits.get_mut(flow * self.words..(flow + 1) * self.words) else {
            return Place::Impossible;
        };
        let Some(number) = nearest(f.next, low) else { return Place::Impossible };
        if number >= f.next {
            f.advance(ring, number);
            return Place::InOrder;
        }
        let (word, bit) = at(ring.len(), number);
        let age = (f.next - 1) / 64 - number / 64;
        if age >= ring.len() as u64 {
            return Place::TooLate;
        }
        if ring[word] & bit != 0 {
            return Place::Repeated;
        }
        ring[word] |= bit;
        let extent = f.extent(number);
        f.arrived += 1;
        Place::Reordered { extent }
    }
}

/// The number nearest to `next` with these low bits, and with one behind it.
#[inline]
fn nearest(next: u64, low: u64) -> Option<u64> {
    let ahead = low.wrapping_sub(next) & (NUMBERS - 1);
    let number =
        if ahead < NUMBERS / 2 { next.checked_add(ahead) } else { next.checked_sub(NUMBERS - ahead) };
    number.filter(|n| *n < u64::MAX)
}

/// Where the bit of `number` is in a ring of `words` words, a power of two.
#[inline]
const fn at(words: usize, number: u64) -> (usize, u64) {
    ((number / 64) as usize & (words - 1), 1 << (number % 64))
}

impl Flow {
    #[inline]
    fn advance(&mut self, ring: &mut [u64], number: u64) {
        if number > self.next {
            self.jumps[self.jumped % JUMPS] = Jump { to: number, at: self.arrived };
            self.jumped += 1;
        }
        let (newest, last) = (number / 64, self.next.saturating_sub(1) / 64);
        for word in (last + 1..=newest).rev().take(ring.len()) {
            ring[word as usize & (ring.len() - 1)] = 0;
        }
        let (word, bit) = at(ring.len(), number);
        ring[word] |= bit;
        self.next = number + 1;
        self.arrived += 1;
    }

    /// Frames that arrived since the first one later than `number`, and the frame `number` itself. The first later one jumped
    /// over it.
    #[cold]
    fn extent(&self, number: u64) -> u64 {
        let oldest = self.jumped.saturating_sub(JUMPS);
        let mut jumps = (oldest..self.jumped).map(|i| self.jumps[i % JUMPS]);
        jumps.find(|j| j.to > number).map_or(0, |j| self.arrived - j.at)
    }
}

#[cfg(test)]
mod tests;
