//! What fills the rest of a frame: random bytes, so that a part of one frame in another shows.

/// Pieces begin at one of this many places, a cache line apart.
const PLACES: u64 = 64;
const STEP: usize = 64;

/// Random bytes and their sums, from which each frame gets a piece.
pub struct Pattern {
    bytes: Vec<u8>,
    /// `sums[i]` is the sum of the first `i` 16-bit words. Below 2^32 for any frame that IP can state.
    sums: Vec<u32>,
}

/// A frame's part of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'p> {
    /// Its bytes.
    pub bytes: &'p [u8],
    /// The sum of its big-endian 16-bit words, the last filled up with a zero (RFC 1071).
    pub sum: u32,
}

impl Pattern {
    /// For pieces of up to `longest` bytes, made from `seed`.
    pub fn new(longest: usize, seed: u64) -> Self {
        let len = (longest + STEP * PLACES as usize).next_multiple_of(8);
        let mut random = seed | 1;
        let mut next = || {
            // xorshift* (Marsaglia 2003, Vigna 2016).
            random ^= random >> 12;
            random ^= random << 25;
            random ^= random >> 27;
            random.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()
        };
        let bytes: Vec<u8> = (0..len / 8).flat_map(|_| next()).collect();
        let mut sum = 0;
        let mut sums = vec![0];
        for word in bytes.as_chunks().0 {
            sum += u32::from(u16::from_be_bytes(*word));
            sums.push(sum);
        }
        Self { bytes, sums }
    }

    /// The piece of frame `number` of `flow`, `len` bytes long; empty if that is longer than any.
    #[inline]
    pub fn piece(&self, flow: u32, number: u64, len: usize) -> Piece<'_> {
        let start = (number.wrapping_add(u64::from(flow)) % PLACES) as usize * STEP;
        let end = start + len;
        let whole = |at: usize| self.sums.get(at / 2).copied().unwrap_or_default();
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        let odd = bytes.last().filter(|_| len % 2 == 1).map_or(0, |b| u32::from(*b) << 8);
        Piece { bytes, sum: whole(end) - whole(start) + odd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_bytes() {
        let p = Pattern::new(1500, 7);
        for (flow, number, len) in [(0, 0, 0), (0, 0, 1), (3, 60, 2), (3, 61, 1499), (65_535, 1 << 39, 1500)]
        {
            let piece = p.piece(flow, number, len);
            assert_eq!(piece.bytes.len(), len);
            let words = piece.bytes.chunks(2);
            let sum: u32 =
                words.map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0))).sum();
            assert_eq!(piece.sum, sum);
        }
    }

    #[test]
    fn neighbours_and_runs_differ() {
        let (p, q) = (Pattern::new(100, 7), Pattern::new(100, 8));
        let piece = p.piece(1, 1, 100);
        assert_ne!(piece, p.piece(1, 2, 100));
        assert_ne!(piece, p.piece(2, 1, 100));
        assert_ne!(piece, q.piece(1, 1, 100));
        assert_eq!(p.piece(0, 0, 9999).bytes, [0; 0], "longer than any");
    }

    #[test]
    fn the_longest_frame_of_all_has_a_sum() {
        let p = Pattern::new(65_535, u64::MAX);
        assert!(p.sums.is_sorted(), "no overflow");
    }
}
