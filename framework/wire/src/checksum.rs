//! The Internet checksum: in full (RFC 1071), incrementally (RFC 1624), with pseudo headers (RFC 9293 3.1, RFC 768, RFC 8200 8.1), and
//! for layer 4 of a frame whose [`crate::Layers`] are known ([`verify_l4`], [`fill_l4`]).
use crate::IpProtocol;

pub use crate::l4::{L4Check, fill_l4, pseudo, verify_l4};

/// A ones' complement sum that more bytes can be added to, in pieces of any length: a piece that begins at an odd byte is
/// swapped (RFC 1071, 2 (B)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Sum {
    /// Congruent to the sum modulo 2^16 - 1, and zero only when all bytes were; words in the order of this machine.
    total: u32,
    /// An odd number of bytes has been added.
    odd: bool,
}

impl Sum {
    /// The pseudo header of IPv4. `length` is that of layer 4's header and data; 0 leaves it out, as segmentation offloads want.
    pub fn pseudo_v4(src: [u8; 4], dst: [u8; 4], protocol: IpProtocol, length: u16) -> Self {
        Self::default().plus(&src).plus(&dst).plus_u16(u16::from(protocol.0)).plus_u16(length)
    }
    /// The pseudo header of IPv6. `length` as for IPv4.
    pub fn pseudo_v6(src: [u8; 16], dst: [u8; 16], protocol: IpProtocol, length: u32) -> Self {
        let [a, b, c, d] = length.to_be_bytes();
        Self::default().plus(&src).plus(&dst).plus(&[a, b, c, d, 0, 0, 0, protocol.0])
    }
    /// Adds bytes.
    #[inline]
    pub fn plus(self, bytes: &[u8]) -> Self {
        let mut total = 0;
        // A block's words fit a u64 with ease; the block size keeps that true for any slice.
        for block in bytes.chunks(1 << 20) {
            total = add32(total, block_sum(block));
        }
        if self.odd {
            total = u32::from(fold(total).swap_bytes());
        }
        Self { total: add32(self.total, total), odd: self.odd ^ (bytes.len() % 2 == 1) }
    }
    /// Adds a 16-bit number as it would be on the wire.
    #[inline]
    pub fn plus_u16(self, value: u16) -> Self {
        self.plus(&value.to_be_bytes())
    }
    /// The sum itself in 16 bits: what checksum offloads want in the field.
    #[inline]
    pub const fn folded(self) -> u16 {
        u16::from_be(fold(self.total))
    }
    /// The value for the checksum field, which was summed as zero.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
    /// The bytes, checksum field included, are as they were sent.
    #[inline]
    pub const fn is_ok(self) -> bool {
        self.folded() == 0xffff
    }
}

/// Ones' complement addition: the carry comes back in at the bottom.
#[inline]
const fn add32(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u32 // no overflow: after a carry the sum is below u32::MAX
}

/// 32 bits to 16, modulo 2^16 - 1.
#[inline]
const fn fold(sum: u32) -> u16 {
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// Sums up to 1 MiB by 32-bit words of this machine; RFC 1071 2 (B) and 2 (C) say why that is the same.
#[inline]
fn block_sum(block: &[u8]) -> u32 {
    let (words, tail) = block.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let last = match *tail {
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        _ => [0; 4],
    };
    sum += u64::from(u32::from_ne_bytes(last));
    add32(sum as u32, (sum >> 32) as u32)
}

/// The checksum of `bytes`, whose checksum field is zero.
///
/// ```
/// // The example of RFC 1071, 3.
/// assert_eq!(ringwright_wire::checksum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
/// ```
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::default().plus(bytes).checksum()
}

/// The checksum after a 16-bit word has changed (RFC 1624, equation 3).
///
/// Equals the full checksum unless all summed bytes are zero now, which no IP, TCP, UDP or ICMPv6 sum is. A UDP checksum of 0
/// means none and must be left alone; a result of 0 is sent as 0xffff.
#[inline]
pub const fn update(checksum: u16, from: u16, to: u16) -> u16 {
    // The byte order does not matter as long as it is the same in all three.
    !fold(add32(add32(!checksum as u32, !from as u32), to as u32))
}

/// [`update`] for several bytes, such as an address, that begin at an even byte of what is summed. `from` and `to` should be equally long.
#[inline]
pub fn update_bytes(checksum: u16, from: &[u8], to: &[u8]) -> u16 {
    let from = Sum::default().plus(from).folded();
    let to = Sum::default().plus(to).folded();
    update(checksum, from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    /// RFC 1071, 1: 16-bit words, carries added back; the plainest way.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    #[test]
    fn rfc_1624_example() {
        // RFC 1624, 4: 0xdd2f with 0x5555 changed to 0x3285 is 0x0000, not 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn nothing_and_zeros_sum_to_zero() {
        assert_eq!(Sum::default().plus(&[]).plus(&[0; 999]).folded(), 0);
        assert_eq!(of(&[]), 0xffff);
    }

    #[test]
    fn large_blocks_carry() {
        let bytes = vec![0xff; (2 << 20) + 3];
        assert_eq!(Sum::default().plus(&bytes).folded(), plain(&bytes));
    }

    fn seeded() -> ProptestConfig {
        ProptestConfig {
            rng_seed: RngSeed::Fixed(1071),
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn equals_the_plain_sum(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(Sum::default().plus(&bytes).folded(), plain(&bytes));
        }
        #[test]
        fn pieces_sum_as_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(0usize..40, 0..9)) {
            let mut sum = Sum::default();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                (sum, rest) = (sum.plus(piece), after);
            }
            prop_assert_eq!(sum.plus(rest).folded(), plain(&bytes));
        }
        #[test]
        fn incremental_equals_full(mut bytes in prop::collection::vec(any::<u8>(), 2..80), at in 0usize..40, to: [u8; 4], n in 1usize..=2) {
            let at = at * 2 % (bytes.len() & !1);
            let end = (at + n * 2).min(bytes.len() & !1);
            let from = bytes[at..end].to_vec();
            let old = of(&bytes);
            bytes[at..end].copy_from_slice(&to[..end - at]);
            prop_assume!(bytes.iter().any(|&b| b != 0));
            prop_assert_eq!(update_bytes(old, &from, &to[..end - at]), of(&bytes));
        }
    }
}
