//! The classic format: a header of 24 bytes, then records of 16 bytes and a frame each (pcap-savefile(5)).

use super::{ETHERNET, Found, MAX_FRAME, Order, Problem, ReadError, Step};

/// Bytes of the file's header.
pub const FILE_HEADER: usize = 24;
/// Bytes before each frame.
pub const RECORD_HEADER: usize = 16;
/// Stamps in microseconds.
pub const MICROS: u32 = 0xa1b2_c3d4;
/// Stamps in nanoseconds.
pub const NANOS: u32 = 0xa1b2_3c4d;

/// What the file's header said.
pub struct Classic {
    order: Order,
    /// Nanoseconds of the stamps' smaller unit.
    unit: u64,
}

impl Classic {
    /// The byte order and unit that a file beginning with `magic` has, if it is one.
    pub fn of(magic: [u8; 4]) -> Option<Self> {
        [Order::Little, Order::Big].into_iter().find_map(|order| match order.u32(&magic, 0)? {
            MICROS => Some(Self { order, unit: 1000 }),
            NANOS => Some(Self { order, unit: 1 }),
            _ => None,
        })
    }

    /// Reads the file's header: all of it is there.
    pub fn header(&self, bytes: &[u8]) -> Result<(), ReadError> {
        let u16_at = |at| self.order.u16(bytes, at).unwrap_or_default();
        if u16_at(4) != 2 {
            return Err(ReadError::Damaged { offset: 0, problem: Problem::Version(u16_at(4), u16_at(6)) });
        }
        // The upper half says whether frames have a check sequence (pcap-linktype(7)).
        let link = self.order.u32(bytes, 20).unwrap_or_default() & 0xffff;
        if link != ETHERNET {
            return Err(ReadError::LinkType { interface: None, name: String::new(), link });
        }
        Ok(())
    }

    /// The record at the front of `bytes`.
    #[inline]
    pub fn step(&self, bytes: &[u8]) -> Result<Step, Problem> {
        let Some(head) = bytes.first_chunk::<RECORD_HEADER>() else { return Ok(Step::Need(RECORD_HEADER)) };
        let word = |at| self.order.u32(head, at).unwrap_or_default();
        let (seconds, part, len, original) = (word(0), word(4), word(8), word(12));
        if len > MAX_FRAME {
            return Err(Problem::FrameLength(len));
        }
        let end = RECORD_HEADER + len as usize;
        if bytes.len() < end {
            return Ok(Step::Need(end));
        }
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(part) * self.unit;
        Ok(Step::Frame(Found { at: RECORD_HEADER, len: len as usize, original, time: Some(time), end }))
    }
}
