//! What is written: the header of a file, and frames with theirs. Little endian, nanoseconds.

use crate::read::{
    ETHERNET, FILE_HEADER, INTERFACE, NANOS, ORDER_MAGIC, PACKET, RECORD_HEADER, SECTION, TIME_RESOLUTION,
};

/// Bytes before a frame of a pcapng file (4.3).
const PACKET_HEADER: usize = 28;

/// Which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap with stamps in nanoseconds, as `tcpdump --time-stamp-precision=nano -w` writes it.
    Classic,
    /// pcapng: one section, one interface.
    Ng,
}

fn put(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
}

impl Format {
    /// What stands before the first frame. `snaplen` is the longest frame to come.
    pub fn header(self, snaplen: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::Classic => {
                // Version 2.4; time zone and accuracy are always 0.
                put(&mut out, &[NANOS, 2 | 4 << 16, 0, 0, snaplen, ETHERNET]);
                debug_assert_eq!(out.len(), FILE_HEADER);
            }
            Self::Ng => {
                // Version 1.0; a section of unknown length.
                put(&mut out, &[SECTION, 28, ORDER_MAGIC, 1, u32::MAX, u32::MAX, 28]);
                // One option of one byte: ten to the power of minus nine; then the end of the options.
                let resolution = u32::from(TIME_RESOLUTION) | 1 << 16;
                put(&mut out, &[INTERFACE, 32, ETHERNET, snaplen, resolution, 9, 0, 32]);
            }
        }
        out
    }

    /// Makes room at the end of `out` for what stands before a frame. The frame is to be written behind it.
    #[inline]
    pub fn begin(self, out: &mut Vec<u8>) -> Record {
        let at = out.len();
        let head = if self == Self::Ng { PACKET_HEADER } else { RECORD_HEADER };
        out.resize(at + head, 0);
        Record { format: self, at, frame: at + head }
    }
}

/// A record that is being written.
#[must_use = "a record is to be finished"]
pub struct Record {
    format: Format,
    at: usize,
    /// Where its frame begins.
    pub frame: usize,
}

impl Record {
    /// The frame is all that stands behind the header: cuts it to `snaplen` bytes, and completes the record with its
    /// stamp, in nanoseconds since 1970.
    #[inline]
    pub fn finish(self, out: &mut Vec<u8>, time: u64, snaplen: u32) {
        let original = (out.len() - self.frame) as u32;
        let len = original.min(snaplen);
        out.truncate(self.frame + len as usize);
        let mut head = Head { to: &mut out[self.at..self.frame] };
        match self.format {
            Format::Classic => {
                let seconds = u32::try_from(time / 1_000_000_000).unwrap_or(u32::MAX);
                head.put(&[seconds, (time % 1_000_000_000) as u32, len, original]);
            }
            Format::Ng => {
                let block = PACKET_HEADER as u32 + len.next_multiple_of(4) + 4;
                head.put(&[PACKET, block, 0, (time >> 32) as u32, time as u32, len, original]);
                out.resize(self.at + block as usize - 4, 0);
                put(out, &[block]);
            }
        }
    }
}

struct Head<'o> {
    to: &'o mut [u8],
}

impl Head<'_> {
    #[inline]
    fn put(&mut self, words: &[u32]) {
        for (to, w) in self.to.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = w.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{CaptureReader, Frame, Next};

    #[test]
    fn what_is_written_is_read_again() {
        let frames: Vec<Vec<u8>> = (14..40u8).map(|n| (0..n).collect()).collect();
        for format in [Format::Classic, Format::Ng] {
            let mut out = format.header(30);
            for (i, f) in frames.iter().enumerate() {
                let r = format.begin(&mut out);
                assert_eq!(r.frame, out.len());
                out.extend_from_slice(f);
                r.finish(&mut out, 1_600_000_000_999_999_999 + i as u64, 30);
            }
            let mut reader = CaptureReader::new(&out[..]);
            for (i, f) in frames.iter().enumerate() {
                let time = Some(1_600_000_000_999_999_999 + i as u64);
                let want = Frame { bytes: &f[..f.len().min(30)], original: f.len() as u32, time };
                assert_eq!(reader.peek().unwrap(), Next::Frame(want), "{format:?} {i}");
                reader.advance();
            }
            assert_eq!(reader.peek().unwrap(), Next::End);
        }
    }
}
