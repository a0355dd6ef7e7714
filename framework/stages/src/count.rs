//! What kinds of frames pass.

use graph::{Exits, Leads, Stage};
use mem::{Batch, Flags, Pkt};
use wire::{EtherType, Ethernet, EthernetHeader};

use crate::exits;

exits! {
    /// Ways out of [`Count`].
    CountExit {
        /// All packets, unchanged.
        Out = "out" => Leads::Open,
    }
}

/// What [`Count`] saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames.
    pub packets: u64,
    /// Their bytes, without the frame check sequence.
    pub bytes: u64,
    /// To one station.
    pub unicast: u64,
    /// To a group, all stations excepted.
    pub multicast: u64,
    /// To all stations.
    pub broadcast: u64,
    /// With IPv4 in them.
    pub ipv4: u64,
    /// With IPv6 in them.
    pub ipv6: u64,
    /// With ARP in them.
    pub arp: u64,
    /// With a VLAN tag, also one that the device took out.
    pub vlan: u64,
    /// With anything else.
    pub other: u64,
    /// Without a whole Ethernet header.
    pub too_short: u64,
}

impl Counts {
    /// Sums of comparisons, not branches: what comes next is not to be guessed.
    #[inline(always)]
    fn look(&mut self, p: &Pkt<'_>) -> bool {
        let Ok(frame) = Ethernet::parse(p.bytes()) else { return false };
        // A frame whose tag the device took out is one with a tag, and of no other kind, as it would be with the tag in it.
        let tagged = p.flags().has(Flags::VLAN);
        let kind = if tagged { EtherType::VLAN } else { frame.ether_type };
        self.multicast += u64::from(frame.dst.is_multicast());
        self.broadcast += u64::from(frame.dst.is_broadcast());
        self.ipv4 += u64::from(kind == EtherType::IPV4);
        self.ipv6 += u64::from(kind == EtherType::IPV6);
        self.arp += u64::from(kind == EtherType::ARP);
        self.vlan += u64::from(kind.is_vlan());
        true
    }
}

/// Headers in several buffers, or none.
#[cold]
fn look_short(c: &mut Counts, mut short: u64, batch: &mut Batch) {
    while short != 0 {
        let i = short.trailing_zeros() as usize;
        short &= short - 1;
        let seen = batch.pkt(i).is_some_and(|mut p| p.pull(EthernetHeader::LEN) && c.look(&p));
        c.too_short += u64::from(!seen);
    }
}

/// Counts frames by kind and lets all pass.
#[derive(Clone, Debug, Default)]
pub struct Count {
    counts: Counts,
}

impl Count {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// What passed so far.
    pub const fn counts(&self) -> Counts {
        let mut c = self.counts;
        // What is left over was not worth counting per packet.
        c.multicast -= c.broadcast;
        c.unicast = c.packets - c.too_short - c.multicast - c.broadcast;
        c.other = c.packets - c.too_short - c.ipv4 - c.ipv6 - c.arp - c.vlan;
        c
    }
}

impl Stage for Count {
    type Exit = CountExit;
    const KIND: &'static str = "count";

    #[inline]
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, CountExit>) {
        exits.set_all(CountExit::Out);
        let mut c = self.counts;
        c.packets += batch.len() as u64;
        c.bytes += batch.bytes_from(0);
        let mut short = 0u64;
        for (i, p) in batch.iter_mut().enumerate() {
            if !c.look(&p) {
                short |= 1 << i;
            }
        }
        self.counts = c;
        if short != 0 {
            look_short(&mut self.counts, short, batch);
        }
    }

    fn notes(&self) -> Vec<(&'static str, u64)> {
        let c = self.counts();
        vec![
            ("packets", c.packets),
            ("bytes", c.bytes),
            ("unicast", c.unicast),
            ("multicast", c.multicast),
            ("broadcast", c.broadcast),
            ("ipv4", c.ipv4),
            ("ipv6", c.ipv6),
            ("arp", c.arp),
            ("vlan", c.vlan),
            ("other", c.other),
            ("too_short", c.too_short),
        ]
    }
}
