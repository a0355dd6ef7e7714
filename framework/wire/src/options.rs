//! Options of IPv4 and TCP: kind, length, data (RFC 791 3.1, RFC 9293 3.1).
use crate::Malformed;

/// End of the list.
const END: u8 = 0;
/// One byte of padding.
const NOP: u8 = 1;

/// One option other than end and padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderOption<'a> {
    /// Its kind; IPv4's with the copy and class bits.
    pub kind: u8,
    /// Its data, without kind and length.
    pub data: &'a [u8],
}

/// Walks options, skipping padding. Ends at the end option, at the last byte, or with an error at the first that is cut
/// off: each step takes at least one byte, so it always ends.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Over the option bytes of a header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<HeaderOption<'a>, Malformed>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while let [NOP, rest @ ..] = self.rest {
            self.rest = rest;
        }
        // Taken here, so that an error or the end option also ends the walk.
        let bytes = core::mem::take(&mut self.rest);
        match *bytes {
            [] | [END, ..] => None,
            [_] => Some(Err(Malformed::BadExtension)),
            [kind, length, ref rest @ ..] => {
                let split = usize::from(length).checked_sub(2).and_then(|n| rest.split_at_checked(n));
                let Some((data, rest)) = split else { return Some(Err(Malformed::BadExtension)) };
                self.rest = rest;
                Some(Ok(HeaderOption { kind, data }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> Vec<Result<(u8, &[u8]), Malformed>> {
        Options::new(bytes).map(|o| o.map(|o| (o.kind, o.data))).collect()
    }

    #[test]
    fn padding_is_skipped_and_end_ends() {
        assert_eq!(
            walk(&[1, 1, 2, 4, 5, 0xb4, 1, 3, 3, 7, 0, 9, 9]),
            [Ok((2, &[5, 0xb4][..])), Ok((3, &[7][..]))]
        );
        assert_eq!(walk(&[4, 2]), [Ok((4, &[][..]))]);
        assert_eq!(walk(&[1, 1, 1]), []);
    }

    #[test]
    fn a_bad_length_ends_the_walk() {
        for bad in [&[2u8][..], &[2, 0], &[2, 1, 0, 0], &[2, 5, 0, 0]] {
            assert_eq!(walk(bad), [Err(Malformed::BadExtension)], "{bad:?}");
        }
    }
}
