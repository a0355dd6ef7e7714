//! A frame's bytes in pieces, with a tag put in on the way. Pure.

use wire::vlan::TAG_LEN;

use crate::vnet::ADDRESSES;

/// The bytes of a frame that is to be written elsewhere: its addresses, perhaps a tag, the rest.
///
/// Addresses and tag are copied and small; the rest is borrowed.
pub struct Pieces<'f> {
    /// Addresses and tag, of which `front[at..front_len]` are still to be written. Unused without a tag.
    front: [u8; ADDRESSES + TAG_LEN],
    at: usize,
    front_len: usize,
    rest: &'f [u8],
}

impl<'f> Pieces<'f> {
    /// All of `frame`, with `tag` (protocol and control information) behind its addresses. A frame without whole
    /// addresses takes no tag.
    #[inline]
    pub fn new(frame: &'f [u8], tag: Option<(u16, u16)>) -> Self {
        let mut p = Self { front: [0; ADDRESSES + TAG_LEN], at: 0, front_len: 0, rest: frame };
        if let (Some(tag), Some((addresses, rest))) = (tag, frame.split_first_chunk::<ADDRESSES>()) {
            p.front[..ADDRESSES].copy_from_slice(addresses);
            p.front[ADDRESSES..].copy_from_slice(&tag_bytes(tag));
            p.front_len = p.front.len();
            p.rest = rest;
        }
        p
    }

    /// Bytes that are still to be written.
    #[inline]
    pub const fn len(&self) -> usize {
        self.front_len - self.at + self.rest.len()
    }
    /// None are left.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes all of it to the start of `to`, as far as there is room.
    #[inline]
    pub fn write(mut self, to: &mut [u8]) {
        if self.front_len == 0
            && let Some(to) = to.get_mut(..self.rest.len())
        {
            return to.copy_from_slice(self.rest);
        }
        self.fill(to);
    }

    /// Writes what comes next until `to` is full or nothing is left. Returns how many bytes.
    pub fn fill(&mut self, to: &mut [u8]) -> usize {
        let front = &self.front[self.at..self.front_len];
        let n = front.len().min(to.len());
        let (first, second) = to.split_at_mut(n);
        first.copy_from_slice(&front[..n]);
        self.at += n;
        let m = self.rest.len().min(second.len());
        let (now, later) = self.rest.split_at(m);
        second[..m].copy_from_slice(now);
        self.rest = later;
        n + m
    }
}

/// A tag as it stands in a frame.
#[inline]
pub fn tag_bytes((protocol, control): (u16, u16)) -> [u8; TAG_LEN] {
    (u32::from(protocol) << 16 | u32::from(control)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_behind_the_addresses_wherever_buffers_end() {
        let frame: Vec<u8> = (0..40).collect();
        let mut want = frame.clone();
        want.splice(12..12, [0x88, 0xa8, 0x12, 0x34]);
        for room in 1..50 {
            let mut p = Pieces::new(&frame, Some((0x88a8, 0x1234)));
            assert_eq!(p.len(), 44);
            let mut got = Vec::new();
            while !p.is_empty() {
                let mut to = vec![0; room];
                let n = p.fill(&mut to);
                got.extend_from_slice(&to[..n]);
            }
            assert_eq!(got, want, "buffers of {room}");
        }
        let mut whole = [0; 44];
        Pieces::new(&frame, Some((0x88a8, 0x1234))).write(&mut whole);
        assert_eq!(whole[..], want[..]);
    }

    #[test]
    fn without_a_tag_a_frame_stays_as_it_is() {
        let mut to = [9; 8];
        Pieces::new(&[1, 2, 3], None).write(&mut to);
        assert_eq!(to, [1, 2, 3, 9, 9, 9, 9, 9]);
        Pieces::new(&[4, 5], Some((0x8100, 1))).write(&mut to);
        assert_eq!(to[..3], [4, 5, 3], "no whole addresses, no tag");
        let mut small = [0; 2];
        Pieces::new(&[6, 7, 8], None).write(&mut small);
        assert_eq!(small, [6, 7], "as far as there is room");
    }
}
