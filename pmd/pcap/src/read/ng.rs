//! The newer format: blocks, in sections of one byte order each (draft-ietf-opsawg-pcapng).

use super::{ETHERNET, Found, MAX_FRAME, Order, Problem, Step};

/// Section header (4.1), the same in both byte orders.
pub const SECTION: u32 = 0x0a0d_0d0a;
/// What tells a section's byte order (4.1).
pub const ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Interface description (4.2).
pub const INTERFACE: u32 = 1;
/// A packet, as it was written before 2009 (appendix A).
const OLD_PACKET: u32 = 2;
/// A packet of interface 0 without a stamp (4.4).
const SIMPLE_PACKET: u32 = 3;
/// A packet (4.3).
pub const PACKET: u32 = 6;
/// The resolution of an interface's stamps (4.2).
pub const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;
const NAME: u16 = 2;

/// Longest block of those that are looked into: a frame, and its options.
pub const MAX_BLOCK: u32 = 2 * MAX_FRAME;
/// Most interfaces of one section.
const MAX_INTERFACES: usize = 65_536;
/// The shortest block: type and length before, length behind.
const SHORTEST: u32 = 12;

/// An interface of the section.
#[derive(Clone, Copy)]
struct Interface {
    /// Longest frame; 0 for any.
    snaplen: u32,
    /// As the option has it: a power of ten, or of two if the uppermost bit is set.
    resolution: u8,
    /// Seconds to add to its stamps.
    offset: i64,
}

/// Why a block is not read.
pub enum Fault {
    /// It makes no sense.
    Problem(Problem),
    /// An interface that is not Ethernet.
    Link { interface: usize, name: String, link: u32 },
}

impl From<Problem> for Fault {
    fn from(p: Problem) -> Self {
        Self::Problem(p)
    }
}

/// What the current section has said.
#[derive(Default)]
pub struct Ng {
    order: Order,
    interfaces: Vec<Interface>,
    /// The length of the block that was passed over, to be found again behind it.
    trailer: Option<u32>,
}

impl Ng {
    /// The block at the front of `bytes`.
    #[inline]
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, Fault> {
        if let Some(len) = self.trailer {
            let Some(found) = self.order.u32(bytes, 0) else { return Ok(Step::Need(4)) };
            self.trailer = None;
            return if found == len { Ok(Step::Skip(4)) } else { Err(Problem::Trailer(len, found).into()) };
        }
        let Some(kind) = self.order.u32(bytes, 0).filter(|_| bytes.len() >= SHORTEST as usize) else {
            return Ok(Step::Need(SHORTEST as usize));
        };
        if kind == SECTION {
            self.order = Order::of_section(bytes)?;
        }
        let len = self.order.u32(bytes, 4).unwrap_or_default();
        if len < SHORTEST || !len.is_multiple_of(4) {
            return Err(Problem::BlockLength(len).into());
        }
        if !matches!(kind, SECTION | INTERFACE | OLD_PACKET | SIMPLE_PACKET | PACKET) {
            self.trailer = Some(len);
            return Ok(Step::Skip(u64::from(len) - 4));
        }
        if len > MAX_BLOCK {
            return Err(Problem::BlockLength(len).into());
        }
        let Some(block) = bytes.get(..len as usize) else { return Ok(Step::Need(len as usize)) };
        let (block, trailer) = block.split_at(block.len() - 4);
        let found = self.order.u32(trailer, 0).unwrap_or_default();
        if found != len {
            return Err(Problem::Trailer(len, found).into());
        }
        self.block(kind, block, len as usize)
    }

    /// In the middle of a block that is passed over.
    pub const fn is_inside(&self) -> bool {
        self.trailer.is_some()
    }

    /// `block` is without the length behind it; `end` counts that one in.
    #[inline]
    fn block(&mut self, kind: u32, block: &[u8], end: usize) -> Result<Step, Fault> {
        let word = |at| self.order.u32(block, at).ok_or(Problem::Overrun);
        let half = |at| self.order.u16(block, at).ok_or(Problem::Overrun);
        let (interface, high, len, original, at) = match kind {
            PACKET => (word(8)?, 12, word(20)?, word(24)?, 28),
            OLD_PACKET => (u32::from(half(8)?), 12, word(20)?, word(24)?, 28),
            SIMPLE_PACKET => {
                let (original, room) = (word(8)?, block.len().saturating_sub(12) as u32);
                let snaplen = self.interfaces.first().map_or(0, |i| i.snaplen);
                let most = if snaplen == 0 { original } else { snaplen.min(original) };
                // A block that is shorter than that was cut; it may only be padded by up to three bytes.
                (0, 0, most.min(room), original, 12)
            }
            INTERFACE => return self.describe(block, end),
            _ => return self.section(block, end),
        };
        let i = self.interfaces.get(interface as usize).ok_or(Problem::Interface(interface))?;
        if len > MAX_FRAME {
            return Err(Problem::FrameLength(len).into());
        }
        if at + len as usize > block.len() {
            return Err(Problem::Overrun.into());
        }
        let time = if high == 0 {
            None
        } else {
            Some(i.nanoseconds(u64::from(word(high)?) << 32 | u64::from(word(high + 4)?)))
        };
        Ok(Step::Frame(Found { at, len: len as usize, original, time, end }))
    }

    #[cold]
    fn section(&mut self, block: &[u8], end: usize) -> Result<Step, Fault> {
        let version = |at| self.order.u16(block, at).ok_or(Problem::Overrun);
        let (major, minor) = (version(12)?, version(14)?);
        if major != 1 {
            return Err(Problem::Version(major, minor).into());
        }
        self.interfaces.clear();
        Ok(Step::Skip(end as u64))
    }

    #[cold]
    fn describe(&mut self, block: &[u8], end: usize) -> Result<Step, Fault> {
        let link = u32::from(self.order.u16(block, 8).ok_or(Problem::Overrun)?);
        let snaplen = self.order.u32(block, 12).ok_or(Problem::Overrun)?;
        let mut interface = Interface { snaplen, resolution: 6, offset: 0 };
        let mut name = String::new();
        let mut options = block.get(16..).unwrap_or_default();
        while let (Some(code), Some(len)) = (self.order.u16(options, 0), self.order.u16(options, 2)) {
            if code == 0 {
                break;
            }
            let value = options.get(4..4 + usize::from(len)).ok_or(Problem::Option)?;
            match code {
                NAME => {
                    name =
                        String::from_utf8_lossy(value).chars().filter(|c| !c.is_control()).take(64).collect()
                }
                TIME_RESOLUTION => interface.resolution = *value.first().ok_or(Problem::Option)?,
                TIME_OFFSET => interface.offset = self.order.u64(value).ok_or(Problem::Option)?.cast_signed(),
                _ => {}
            }
            options = options.get(4 + usize::from(len).next_multiple_of(4)..).ok_or(Problem::Option)?;
        }
        if link != ETHERNET {
            return Err(Fault::Link { interface: self.interfaces.len(), name, link });
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Problem::Interfaces(MAX_INTERFACES).into());
        }
        self.interfaces.push(interface);
        Ok(Step::Skip(end as u64))
    }
}

impl Interface {
    /// Nanoseconds since 1970 of a stamp in the interface's unit. What is finer is cut off.
    #[inline]
    fn nanoseconds(&self, ticks: u64) -> u64 {
        const NANO: u128 = 1_000_000_000;
        let ticks = u128::from(ticks);
        let exponent = u32::from(self.resolution & 0x7f);
        let ns = match (self.resolution & 0x80, exponent) {
            (0, 0..=9) => ticks * 10u128.pow(9 - exponent),
            (0, _) => ticks / 10u128.checked_pow(exponent - 9).unwrap_or(u128::MAX),
            _ => (ticks * NANO) >> exponent,
        };
        let whole =
            i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(i128::from(self.offset) * NANO as i128);
        u64::try_from(whole.max(0)).unwrap_or(u64::MAX)
    }
}

impl Order {
    /// The byte order of the section whose header `bytes` begins with.
    #[cold]
    fn of_section(bytes: &[u8]) -> Result<Self, Problem> {
        let is = |order: &Self| order.u32(bytes, 8) == Some(ORDER_MAGIC);
        let found = [Self::Little, Self::Big].into_iter().find(is);
        found.ok_or(Problem::ByteOrder(Self::Big.u32(bytes, 8).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(resolution: u8, offset: i64, ticks: u64) -> u64 {
        Interface { snaplen: 0, resolution, offset }.nanoseconds(ticks)
    }

    #[test]
    fn stamps_of_any_resolution_become_nanoseconds() {
        assert_eq!(ns(6, 0, 1_700_000_000_123_456), 1_700_000_000_123_456_000);
        assert_eq!(ns(9, 0, 1_700_000_000_123_456_789), 1_700_000_000_123_456_789);
        assert_eq!(ns(0, 0, 7), 7_000_000_000);
        assert_eq!(ns(3, 5, 7), 5_007_000_000);
        assert_eq!(ns(12, 0, 1_999), 1, "what is finer is cut off");
        assert_eq!(ns(0x80 | 10, 0, 1_536), 1_500_000_000);
        assert_eq!(ns(0x80, 0, 3), 3_000_000_000);
        assert_eq!(ns(9, -10, 1_000_000_000), 0, "before 1970");
    }

    #[test]
    fn no_resolution_and_no_stamp_is_too_much() {
        for resolution in 0..=255 {
            for ticks in [0, 1, u64::MAX] {
                for offset in [0, i64::MIN, i64::MAX] {
                    ns(resolution, offset, ticks);
                }
            }
        }
        assert_eq!(ns(0, 0, u64::MAX), u64::MAX);
        assert_eq!(ns(127, 0, u64::MAX), 0);
    }
}
