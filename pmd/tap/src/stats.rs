//! What the kernel counts of an interface.

use std::fs;

/// Counts of `/proc/net/dev`, from the interface's side: what it received, we sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames that it took from us.
    pub received: u64,
    /// Frames that it gave us.
    pub sent: u64,
    /// Frames for us that found its queue full.
    pub dropped: u64,
}

impl Stats {
    /// The counts of `name` in the network namespace of the calling thread.
    pub fn of(name: &str) -> Option<Self> {
        // Not `/proc/net`, which is that of the process's first thread.
        Self::find(&fs::read_to_string("/proc/thread-self/net/dev").ok()?, name)
    }

    /// Columns (net/core/net-procfs.c): bytes, packets, errors, drops and four more received; the same sent.
    fn find(text: &str, name: &str) -> Option<Self> {
        let numbers = text.lines().find_map(|l| l.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
        let numbers: Vec<u64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
        Some(Self { received: *numbers.get(1)?, sent: *numbers.get(9)?, dropped: *numbers.get(11)? })
    }

    /// What was counted since `before`.
    pub const fn since(self, before: Self) -> Self {
        Self {
            received: self.received.saturating_sub(before.received),
            sent: self.sent.saturating_sub(before.sent),
            dropped: self.dropped.saturating_sub(before.dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_the_whole_name() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    rw10: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
   rw1:21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        assert_eq!(Stats::find(text, "rw1"), Some(Stats { received: 22, sent: 30, dropped: 32 }));
        assert_eq!(Stats::find(text, "rw"), None);
        assert_eq!(Stats::find("rw1: 1 2 3", "rw1"), None);
        assert!(Stats::of("lo").is_some());
    }
}
