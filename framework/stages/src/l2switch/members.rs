//! Which ports are in which VLAN, and which VLAN a frame is in.

use mem::{Flags, Pkt};
use wire::{EtherType, VlanHeader};

use super::LEN;
use super::ports::Ports;
use crate::VlanPorts;

/// Numbers of VLANs.
const VIDS: usize = 4096;

/// For each VLAN the ports in it, a bit for each place.
pub(super) struct Members {
    vlans: VlanPorts,
    places: Box<[u64; VIDS]>,
}

impl Members {
    /// Of `ports`, by `vlans`.
    pub fn new(ports: &Ports, vlans: VlanPorts) -> Self {
        let mut places = Box::new([0; VIDS]);
        for (place, number) in ports.all() {
            for vid in vlans.vlans_of(number) {
                places[usize::from(vid) % VIDS] |= 1 << place;
            }
        }
        Self { vlans, places }
    }
    /// The same of other ports.
    pub fn of(&self, ports: &Ports) -> Self {
        Self::new(ports, self.vlans.clone())
    }
    /// The ports in `vid`.
    #[inline(always)]
    pub const fn of_vid(&self, vid: u16) -> u64 {
        self.places[vid as usize % VIDS]
    }
}

/// A frame's header, and the VLAN it is in, which is 0 if it does not say; `None` if it does not hold them.
///
/// The tag is the one that a device took out, or the first of the frame's own; only 802.1Q's counts (IEEE 802.1Q-2018, 9.5 and 9.6).
#[inline(always)]
pub(super) fn front<'p, const V: bool>(p: &'p Pkt<'_>) -> Option<(&'p [u8; LEN], u16)> {
    let (header, rest) = p.bytes().split_first_chunk()?;
    if !V {
        return Some((header, 0));
    }
    if p.flags().has(Flags::VLAN) {
        return Some((header, p.ext().vlan & 0xfff));
    }
    let [.., t0, t1] = *header;
    if [t0, t1] != EtherType::VLAN.value().to_be_bytes() {
        return Some((header, 0));
    }
    let &[c0, c1, _, _] = rest.first_chunk::<{ size_of::<VlanHeader>() }>()?;
    Some((header, u16::from_be_bytes([c0, c1]) & 0xfff))
}
