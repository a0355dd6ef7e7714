//! Why packets go no further.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet was dropped. There is no way to drop one without.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $variant,)* }

        impl DropReason {
            /// Every reason, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As in configuration, status and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

reasons! {
    /// The pool had no buffer.
    NoBuffer = "no_buffer",
    /// The transmit ring was full.
    TxFull = "tx_full",
    /// The ring to another worker was full.
    HandoffFull = "handoff_full",
    /// The ring back into the graph was full.
    InjectFull = "inject_full",
    /// A length from a device, a guest or a header that cannot be.
    BadLength = "bad_length",
    /// A descriptor that makes no sense.
    BadDescriptor = "bad_descriptor",
    /// A checksum that does not match.
    BadChecksum = "bad_checksum",
    /// Too short for its headers.
    TooShort = "too_short",
    /// Longer than the way out can take.
    TooLong = "too_long",
    /// A table had no room for the packet's entry.
    TableFull = "table_full",
    /// Nothing says where it should go.
    NoRoute = "no_route",
    /// A rule says no.
    Filtered = "filtered",
    /// It went round too often.
    Looped = "looped",
    /// Over its rate.
    Policed = "policed",
    /// The link is down.
    LinkDown = "link_down",
    /// The runtime was stopping.
    Stopping = "stopping",
    /// The guest had posted no buffer.
    GuestNoBuffer = "guest_no_buffer",
    /// The guest broke the rules of the ring.
    GuestFault = "guest_fault",
    /// The peer took its memory away.
    MemoryGone = "memory_gone",
    /// The kernel's fill ring was empty.
    FillStarved = "fill_starved",
    /// An offload that the way out does not have.
    UnsupportedOffload = "unsupported_offload",
}

const REASONS: usize = DropReason::ALL.len();

impl core::str::FromStr for DropReason {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|r| r.name() == s).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|r| r.name()).collect();
            format!("{s:?} is no drop reason; there are {}", names.join(", "))
        })
    }
}

/// One count per reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct DropCounts([u64; REASONS]);

impl Default for DropCounts {
    fn default() -> Self {
        Self([0; REASONS])
    }
}

impl DropCounts {
    /// `n` more packets dropped because of `reason`.
    #[inline]
    pub fn add(&mut self, reason: DropReason, n: u64) {
        self.0[reason as usize] += n;
    }
    /// Packets dropped because of `reason`.
    pub const fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }
    /// Packets dropped.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// The reasons that happened, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.iter().map(|&r| (r, self.of(r))).filter(|&(_, n)| n > 0)
    }
    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a += b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_a_wrong_one_lists_them() {
        for &r in DropReason::ALL {
            assert_eq!(r.name().parse(), Ok(r));
        }
        assert!("gone".parse::<DropReason>().unwrap_err().contains("memory_gone"));
    }

    #[test]
    fn counts_are_kept_apart_and_merge() {
        let mut a = DropCounts::default();
        a.add(DropReason::TxFull, 2);
        let mut b = a;
        b.add(DropReason::NoBuffer, 1);
        a.merge(&b);
        assert_eq!(a.iter().collect::<Vec<_>>(), [(DropReason::NoBuffer, 1), (DropReason::TxFull, 4)]);
        assert_eq!(a.total(), 5);
    }
}
