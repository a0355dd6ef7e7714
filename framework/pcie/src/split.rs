//! Cutting one memory read or write into TLPs.

use crate::{AddressWidth, Completions, Operation, Parameters};

/// No request may cross a boundary of 4 KiB (Base 2.2.7).
const PAGE: u32 = 4096;
/// Where a read that is larger than one request is cut: multiples of the smallest Max_Read_Request_Size, so that the
/// requests behind the first are aligned. Any cut is legal; this is what aligned devices do.
const READ_CUT: u32 = 128;
/// Bytes of an ECRC.
const ECRC: u32 = 4;

/// The TLPs of one or more transfers, and their bytes on the wire.
///
/// Requests travel one way; completions, of reads only, the opposite way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Write requests (MWr) or read requests (MRd).
    pub requests: u64,
    /// Their bytes; of a write the payload is among them.
    pub request_bytes: u64,
    /// Completions with data (CplD).
    pub completions: u64,
    /// Their bytes, payload included.
    pub completion_bytes: u64,
}

impl Split {
    /// TLPs both ways.
    pub const fn tlps(&self) -> u64 {
        self.requests.saturating_add(self.completions)
    }

    /// This, `times` over. Saturates.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self {
            requests: self.requests.saturating_mul(times),
            request_bytes: self.request_bytes.saturating_mul(times),
            completions: self.completions.saturating_mul(times),
            completion_bytes: self.completion_bytes.saturating_mul(times),
        }
    }

    /// Both together. Saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            request_bytes: self.request_bytes.saturating_add(other.request_bytes),
            completions: self.completions.saturating_add(other.completions),
            completion_bytes: self.completion_bytes.saturating_add(other.completion_bytes),
        }
    }

    fn request(&mut self, bytes: u32) {
        self.requests += 1;
        self.request_bytes += u64::from(bytes);
    }

    fn completion(&mut self, bytes: u32) {
        self.completions += 1;
        self.completion_bytes += u64::from(bytes);
    }
}

/// Bytes of the double words that `length` bytes at `address` touch. No bytes at all still take one, with no byte of it
/// enabled (Base 2.2.5).
const fn padded(address: u64, length: u32) -> u32 {
    let bytes = ((address & 3) as u32 + length).next_multiple_of(4);
    if bytes == 0 { 4 } else { bytes }
}

/// Bytes from `address` to the next multiple of `boundary`, a power of two: 1 to `boundary`.
const fn room(address: u64, boundary: u32) -> u32 {
    boundary - (address & (boundary as u64 - 1)) as u32
}

/// Calls `each` with address and length of the pieces of a transfer; `most` says how long a piece may be that starts at
/// an address with so much left of its page. A transfer of no bytes is one piece of none. Addresses wrap around at 2^64.
fn pieces(address: u64, length: u32, most: impl Fn(u64, u32) -> u32, mut each: impl FnMut(u64, u32)) {
    let (mut at, mut left) = (address, length);
    loop {
        let in_page = left.min(room(at, PAGE));
        let piece = most(at, in_page).min(in_page);
        each(at, piece);
        at = at.wrapping_add(u64::from(piece));
        left -= piece;
        if left == 0 {
            return;
        }
    }
}

impl Parameters {
    const fn ecrc_bytes(&self) -> u32 {
        if self.ecrc { ECRC } else { 0 }
    }

    const fn request_header(&self, address: u64) -> u32 {
        self.headers.request(AddressWidth::of(address)) + self.ecrc_bytes()
    }

    /// The TLPs of a memory write of `length` bytes at bus address `address`.
    ///
    /// Each holds at most MPS bytes of whole double words (Base 2.2.2) and stays within 4 KiB. Work is proportional to
    /// the TLPs. A write of no bytes is one TLP with one double word.
    pub fn write(&self, address: u64, length: u32) -> Split {
        let mut split = Split::default();
        let most = |at: u64, _| self.max_payload.bytes() - (at & 3) as u32;
        pieces(address, length, most, |at, n| split.request(self.request_header(at) + padded(at, n)));
        split
    }

    /// The TLPs of a memory read of `length` bytes at bus address `address`: requests without payload, completions
    /// with it.
    ///
    /// A request asks for at most MRRS bytes of whole double words within 4 KiB; what needs several is cut at multiples
    /// of 128 bytes. Completions are cut as [`Completions`] says. Work is proportional to the TLPs. A read of no bytes
    /// is answered by one double word.
    pub fn read(&self, address: u64, length: u32) -> Split {
        let mut split = Split::default();
        let max = self.max_read.bytes();
        let most = |at: u64, in_page: u32| {
            if padded(at, in_page) <= max { in_page } else { max - (at & u64::from(READ_CUT - 1)) as u32 }
        };
        pieces(address, length, most, |at, n| {
            split.request(self.request_header(at));
            self.complete(at, n, &mut split);
        });
        split
    }

    /// An *estimate* of the TLPs of `operations` reads or writes that moved `bytes` bytes in all, where no single address
    /// and length is known.
    ///
    /// It splits the mean size at addresses aligned to 4 KiB, below or above 4 GiB as `width` says; if the mean is no
    /// whole number, as many operations as needed are one byte longer, so that the payload is exact. What it misses:
    /// - Sizes that differ among themselves, when some need more TLPs than the mean does. As long as each operation alone
    ///   would need as many TLPs as the mean, TLPs are exact and bytes off by padding only, at most 3 a TLP.
    /// - Transfers that are not aligned: crossing one more boundary (4 KiB, or RCB near MPS) costs one more TLP.
    ///
    /// Bytes without operations are ignored.
    pub fn estimate(&self, operation: Operation, width: AddressWidth, operations: u64, bytes: u64) -> Split {
        let (Some(mean), Some(longer)) = (bytes.checked_div(operations), bytes.checked_rem(operations))
        else {
            return Split::default();
        };
        let shorter = self.aligned(operation, width, mean).times(operations - longer);
        if longer == 0 {
            shorter
        } else {
            shorter.plus(self.aligned(operation, width, mean + 1).times(longer))
        }
    }

    /// One aligned transfer. Pages are split independently of each other, so whole ones are all alike.
    fn aligned(&self, operation: Operation, width: AddressWidth, bytes: u64) -> Split {
        let address = match width {
            AddressWidth::Bits32 => 0,
            AddressWidth::Bits64 => 1 << 32,
        };
        let one = |length| match operation {
            Operation::Read => self.read(address, length),
            Operation::Write => self.write(address, length),
        };
        let (pages, rest) = (bytes / u64::from(PAGE), (bytes % u64::from(PAGE)) as u32);
        if pages == 0 {
            return one(rest);
        }
        let whole = one(PAGE).times(pages);
        if rest == 0 { whole } else { whole.plus(one(rest)) }
    }

    /// The completions of one read request (Base 2.3.1.1): each but the last ends at a Read Completion Boundary.
    fn complete(&self, address: u64, length: u32, split: &mut Split) {
        let boundary = self.read_boundary.bytes();
        let max = self.max_payload.bytes();
        let most = |at: u64, left: u32| match self.completions {
            Completions::EveryBoundary => room(at, boundary),
            Completions::Largest if padded(at, left) <= max => left,
            Completions::Largest => max - (at & u64::from(boundary - 1)) as u32,
        };
        let header = self.headers.completion() + self.ecrc_bytes();
        pieces(address, length, most, |at, n| split.completion(header + padded(at, n)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_words_are_those_touched() {
        for (address, length, bytes) in
            [(0, 0, 4), (3, 0, 4), (0, 1, 4), (3, 1, 4), (3, 2, 8), (1, 64, 68), (0, 60, 60)]
        {
            assert_eq!(padded(address, length), bytes, "{length} at {address}");
        }
    }

    #[test]
    fn pieces_cover_a_transfer_once_and_stay_in_their_page() {
        let mut next = 4000;
        pieces(
            4000,
            9000,
            |_, _| 1000,
            |at, n| {
                assert_eq!(at, next);
                assert_eq!(at / 4096, (at + u64::from(n) - 1) / 4096);
                next += u64::from(n);
            },
        );
        assert_eq!(next, 13_000);
    }
}
