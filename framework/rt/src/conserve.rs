//! Whether every packet is accounted for (rule 7 of the design).

use serde::Serialize;

/// received + created = sent + consumed + held + dropped + unexplained.
///
/// `unexplained` is not the remainder of this sum. It comes from what counts independently: the census of buffers, and
/// the devices' own counters. It is exact when the workers have stopped, and unknown (`None`) before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conservation {
    /// Packets that receive queues delivered.
    pub received: u64,
    /// Copies, segments and generated packets.
    pub created: u64,
    /// Packets given to transmit queues.
    pub sent: u64,
    /// Packets that ended in a stage on purpose.
    pub consumed: u64,
    /// Packets in batches.
    pub held: u64,
    /// Packets dropped, with a reason, after they were received.
    pub dropped: u64,
    /// Packets that nothing accounts for.
    pub unexplained: Option<u64>,
}

/// What was counted by others than the datapath.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Witness {
    /// Packets that devices say they delivered, less those that receive queues delivered or dropped: all ports.
    pub rx_difference: u64,
    /// Good frames that came into devices, less those that they delivered or say they missed: all ports.
    pub in_device: u64,
    /// Packets that transmit queues took, less those that devices say they sent: all ports.
    pub tx_difference: u64,
    /// Buffers of the pools that are in none of their places.
    pub missing: u64,
    /// Packets freed without a reason.
    pub lost: u64,
}

impl Conservation {
    /// Judges counts that no longer change.
    ///
    /// A packet that a driver loses shows at the device and, if its buffer is gone, in the census as well: it counts
    /// once. So does one that a stage forgets. What is larger says more, so the larger of both views is taken.
    pub(crate) fn judge(&mut self, w: &Witness) {
        let inside =
            (self.received + self.created).abs_diff(self.sent + self.consumed + self.held + self.dropped);
        let boundary = w.rx_difference + w.in_device + w.tx_difference;
        self.unexplained = Some((boundary + w.lost.max(inside)).max(w.missing + w.lost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unexplained(received: u64, sent: u64, w: Witness) -> u64 {
        let mut c = Conservation { received, sent, ..Conservation::default() };
        c.judge(&w);
        c.unexplained.unwrap()
    }

    #[test]
    fn every_way_of_losing_one_packet_shows_one() {
        let none = Witness::default();
        assert_eq!(unexplained(5, 5, none), 0);
        assert_eq!(unexplained(5, 4, Witness { missing: 1, ..none }), 1, "a stage forgot it");
        assert_eq!(unexplained(5, 4, Witness { lost: 1, ..none }), 1, "a stage let it go");
        assert_eq!(
            unexplained(4, 4, Witness { rx_difference: 1, missing: 1, ..none }),
            1,
            "a driver lost it"
        );
        assert_eq!(
            unexplained(4, 4, Witness { rx_difference: 1, ..none }),
            1,
            "a driver put it back uncounted"
        );
        assert_eq!(
            unexplained(5, 5, Witness { tx_difference: 1, ..none }),
            1,
            "a device swallowed it on its way out"
        );
        assert_eq!(
            unexplained(4, 4, Witness { in_device: 1, ..none }),
            1,
            "a device swallowed it on its way in"
        );
        assert_eq!(unexplained(5, 5, Witness { missing: 1, ..none }), 1, "an empty buffer is gone");
    }

    #[test]
    fn two_different_faults_show_two() {
        let w = Witness { rx_difference: 1, missing: 1, ..Witness::default() };
        assert_eq!(unexplained(4, 3, w), 2);
    }
}
