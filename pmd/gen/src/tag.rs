//! The first 18 bytes of a frame's payload: whose it is, which it is, when it was made.

use wire::zerocopy::network_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::window::NUMBER_BITS;

/// Bits of a time stamp in a frame: ticks of the cycle counter, minutes before they come again.
const TIME_BITS: u32 = 40;
const TIMES: u64 = 1 << TIME_BITS;
/// Numbers of a frame in its flow are below this in the frame, and begin at 0 again.
pub const NUMBERS: u64 = 1 << NUMBER_BITS;
/// The first half of the first word: "RW".
const MAGIC: u32 = 0x5257_0000;

/// As it lies in the frame, big endian: magic (32 bits), flow (16), number in its flow (40), time (40), check (16).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Tag {
    first: U64,
    second: U64,
    check: U16,
}

/// What a tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which flow.
    pub flow: u32,
    /// The frame's number in its flow, modulo [`NUMBERS`].
    pub number: u64,
    /// When it was made: the low bits of the cycle counter.
    pub time: u64,
}

impl Mark {
    /// Ticks from when the frame was made until `now`; `None` if it was made later.
    #[inline]
    pub const fn age(&self, now: u64) -> Option<u64> {
        let age = now.wrapping_sub(self.time) % TIMES;
        if age < TIMES / 2 { Some(age) } else { None }
    }
}

/// What the tags of one run have in common, and of no other.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    magic: u32,
    seed: u64,
}

impl Identity {
    /// From a random number.
    pub const fn new(seed: u64) -> Self {
        Self { magic: MAGIC | (seed >> 48) as u32, seed }
    }

    /// The tag that says `mark`.
    #[inline]
    pub fn tag(&self, mark: Mark) -> Tag {
        let first = u64::from(self.magic) << 32
            | u64::from(mark.flow & 0xffff) << 16
            | (mark.number % NUMBERS) >> (NUMBER_BITS - 16);
        let second = (mark.number << TIME_BITS) | (mark.time % TIMES);
        Tag { first: first.into(), second: second.into(), check: self.check(first, second).into() }
    }

    /// Whether a tag is of this run, at a glance.
    #[inline]
    pub const fn has(&self, tag: &Tag) -> bool {
        (tag.first.get() >> 32) as u32 == self.magic
    }

    /// Whether bytes too few for a tag begin like one of this run.
    pub fn begins(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(&self.magic.to_be_bytes())
    }

    /// What a tag says, if its check says that it can be believed. Without `magic`, believes a tag whose magic is not this run's as
    /// well, if only that is wrong.
    #[inline]
    pub fn read(&self, tag: &Tag, magic: bool) -> Option<Mark> {
        let (mut first, second) = (tag.first.get(), tag.second.get());
        if !magic {
            first = first & 0xffff_ffff | u64::from(self.magic) << 32;
        }
        if self.check(first, second) != tag.check.get() {
            return None;
        }
        let number = (first & 0xffff) << (NUMBER_BITS - 16) | second >> TIME_BITS;
        Some(Mark { flow: (first >> 16) as u32 & 0xffff, number, time: second % TIMES })
    }

    /// Two rounds of multiplying and folding: enough that a change shows and that nobody without the seed makes one by chance.
    #[inline]
    const fn check(&self, first: u64, second: u64) -> u16 {
        let a = (first ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let b = (a ^ a >> 32 ^ second).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (b >> 48) as u16
    }
}

impl Tag {
    /// Bytes of a tag.
    pub const LEN: usize = size_of::<Self>();

    /// Congruent to the sum of its 16-bit words modulo 2^16 - 1, as 2^16 is congruent to 1.
    #[inline]
    pub const fn sum(&self) -> u64 {
        halves(self.first.get()) + halves(self.second.get()) + self.check.get() as u64
    }
}

#[inline]
const fn halves(word: u64) -> u64 {
    (word >> 32) + (word & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 0x0123_4567_89ab_cdef;

    #[test]
    fn a_tag_says_what_it_was_told() {
        let id = Identity::new(SEED);
        for (flow, number, time) in
            [(0, 0, 0), (65_535, NUMBERS - 1, TIMES - 1), (7, 1 << 24, 12), (7, (1 << 24) - 1, 1 << 39)]
        {
            let mark = Mark { flow, number, time };
            let tag = id.tag(mark);
            assert!(id.has(&tag));
            assert_eq!(id.read(&tag, true), Some(mark));
        }
        let beyond = id.tag(Mark { flow: 1, number: NUMBERS + 5, time: TIMES + 6 });
        assert_eq!(id.read(&beyond, true), Some(Mark { flow: 1, number: 5, time: 6 }));
    }

    #[test]
    fn a_changed_tag_is_not_believed_but_for_its_magic() {
        let id = Identity::new(SEED);
        let mark = Mark { flow: 3, number: 1000, time: 77 };
        let good = id.tag(mark);
        for i in 0..Tag::LEN {
            for change in [1, 0x10, 0x80, 0xff] {
                let mut tag = good;
                tag.as_mut_bytes()[i] ^= change;
                assert_eq!(id.read(&tag, true), None, "byte {i} ^ {change}");
                assert_eq!(id.read(&tag, false), (i < 4).then_some(mark));
            }
        }
        assert_eq!(Identity::new(!SEED).read(&good, false), None, "another run's");
    }

    #[test]
    fn ages_are_right_over_the_wrap_and_unknown_for_what_comes() {
        let mark = |time| Mark { flow: 0, number: 0, time };
        assert_eq!(mark(TIMES - 10).age(5 * TIMES + 20), Some(30));
        assert_eq!(mark(100).age(90), None);
        assert_eq!(mark(100).age(100), Some(0));
    }

    #[test]
    fn sums_are_those_of_the_words() {
        let tag = Identity::new(SEED).tag(Mark { flow: 9, number: 1 << 30, time: 1 << 35 });
        let fold = |mut n: u64| {
            while n > 0xffff {
                n = (n >> 16) + (n & 0xffff);
            }
            n as u16
        };
        assert_eq!(fold(tag.sum()), !wire::checksum::of(tag.as_bytes()));
    }
}
