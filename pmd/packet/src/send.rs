//! Packets into the kernel's slots, one call for a burst.

use std::io::{Error, IoSlice};

use mem::{Batch, Flags, Local, MAX_SEGMENTS, Outgoing, Pkt};
use meter::DropReason;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

use crate::frame::{Pieces, tag_bytes};
use crate::layout::{VnetHeader, vnet as virtio};
use crate::sys;
use crate::tx::{Tally, TxState};
use crate::tx_ring::TxRing;
use crate::vnet::{self, ADDRESSES, ETHERNET};

/// What takes more than a look at the length.
const SLOW: Flags =
    Flags(Flags::CHAIN.0 | Flags::VLAN.0 | Flags::TX_L3.0 | Flags::TX_L4.0 | Flags::TSO.0 | Flags::USO.0);
/// What a frame may have beyond the interface's longest network packet: an Ethernet header and a tag.
pub const HEADERS: u32 = ETHERNET as u32 + 4;

/// A tag to be put in: protocol and control information.
type Tag = Option<(u16, u16)>;

/// How a packet is sent.
enum Way {
    /// In a slot, as it is.
    Slot,
    /// In a slot, with more to be said.
    SlotWith(VnetHeader, Tag),
    /// By a call of its own.
    Alone(VnetHeader, Tag),
    /// Not at all.
    Not(DropReason),
}

/// What became of a call to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It took everything.
    Sent,
    /// It has no room now.
    Busy,
    /// The next packet cannot be sent.
    Refused(DropReason),
    /// No packet can be sent.
    Down,
}

/// Why no more packets were laid into slots.
enum Stop {
    /// There are no more.
    End,
    /// The next slot is still the kernel's.
    Full,
    /// The next one goes by no slot.
    Next(Way),
}

/// The part of a transmit queue that sends.
pub struct Sender {
    pub state: TxState,
    pub local: Local,
    pub tally: Tally,
}

impl Sender {
    /// Takes the newest ring that the control side has left. Between two calls a ring holds nothing of ours.
    #[inline]
    pub fn renew(&mut self) {
        while let Some(ring) = self.state.swap.take() {
            self.state.ring = Some(ring);
        }
    }

    /// Sends from the front of `batch` what the kernel takes; what it does not take now stays. The first has waited
    /// `waited` ticks. Returns packets sent.
    #[inline]
    pub fn push(&mut self, batch: &mut Batch, waited: u64) -> usize {
        self.renew();
        let dropped = self.tally.dropped;
        let gone = self.offer(batch, waited);
        if gone == batch.len() {
            batch.free_sent();
        } else if gone > 0 {
            self.free_front(batch, gone);
        }
        gone - (self.tally.dropped - dropped) as usize
    }

    #[cold]
    fn free_front(&self, batch: &mut Batch, gone: usize) {
        let mut left = gone;
        batch.drain_while(|p: Outgoing| {
            if left == 0 {
                return Err(p);
            }
            left -= 1;
            p.free(&self.local);
            Ok(())
        });
    }

    /// Offers packets in order. Returns how many at the front are done with: sent, or dropped and counted.
    #[inline]
    fn offer(&mut self, batch: &mut Batch, waited: u64) -> usize {
        let mut at = 0;
        loop {
            let (next, stop) = self.lay_run(batch, at);
            let (outcome, left) = self.call(waited);
            at = next - left;
            match outcome {
                Outcome::Sent => {}
                Outcome::Busy => return at,
                Outcome::Down => return self.give_up(batch, at),
                Outcome::Refused(reason) => {
                    self.refuse(batch, at, reason);
                    at += 1;
                    continue;
                }
            }
            let way = match stop {
                Stop::End | Stop::Full => return at,
                Stop::Next(way) => way,
            };
            match self.exception(batch, at, &way) {
                Outcome::Sent => {}
                Outcome::Busy => return at,
                Outcome::Down => return self.give_up(batch, at),
                Outcome::Refused(reason) => self.refuse(batch, at, reason),
            }
            at += 1;
        }
    }

    /// Lays packets from number `at` on into slots. Returns the number of the first that was not laid, and why.
    #[inline]
    fn lay_run(&mut self, batch: &mut Batch, mut at: usize) -> (usize, Stop) {
        let longest = self.state.known.mtu.load(Ordering::Relaxed).saturating_add(HEADERS);
        loop {
            let Some(p) = batch.pkt(at) else { return (at, Stop::End) };
            // Without a ring every packet takes its own way, which leads nowhere.
            let Some(ring) = &mut self.state.ring else {
                return (at, Stop::Next(Way::Not(DropReason::LinkDown)));
            };
            let way = if p.flags().has(SLOW) {
                slow_way(&p, longest, ring.longest())
            } else {
                plain_way(p.len() as u32, longest, ring.longest())
            };
            let laid = match &way {
                Way::Slot => lay(ring, &p),
                Way::SlotWith(header, tag) => lay_with(ring, &p, *header, *tag),
                _ => return (at, Stop::Next(way)),
            };
            if !laid {
                return (at, Stop::Full);
            }
            at += 1;
        }
    }

    /// Calls the kernel for what was laid. Also returns how many it did not take, which are taken back.
    #[inline]
    fn call(&mut self, waited: u64) -> (Outcome, usize) {
        let Some(ring) = &mut self.state.ring else { return (Outcome::Sent, 0) };
        if ring.laid() == 0 {
            return (Outcome::Sent, 0);
        }
        let result = sys::kick(ring.socket());
        self.tally.doorbells += 1;
        self.tally.hold.add(waited, 1);
        let (left, wrong) = ring.settle();
        if left == 0 { (Outcome::Sent, 0) } else { (self.why(result.err(), wrong), left as usize) }
    }

    /// Why the kernel did not take what it was offered.
    #[cold]
    fn why(&self, error: Option<Error>, wrong: bool) -> Outcome {
        let up = self.state.known.up.load(Ordering::Relaxed);
        match error {
            _ if wrong => Outcome::Refused(DropReason::UnsupportedOffload),
            Some(e) => outcome(&e, up),
            None if up => Outcome::Busy,
            None => Outcome::Down,
        }
    }

    /// Handles packet `at`, which goes by no slot.
    #[cold]
    fn exception(&mut self, batch: &mut Batch, at: usize, way: &Way) -> Outcome {
        let (Some(p), Some(ring)) = (batch.pkt(at), &mut self.state.ring) else { return Outcome::Down };
        match way {
            Way::Not(reason) => Outcome::Refused(*reason),
            Way::Alone(header, tag) => {
                self.tally.doorbells += 1;
                self.tally.hold.add(0, 1);
                match send_alone(ring, &p, header, *tag) {
                    Ok(()) => Outcome::Sent,
                    Err(e) => self.why(Some(e), false),
                }
            }
            Way::Slot | Way::SlotWith(..) => Outcome::Busy,
        }
    }

    #[cold]
    fn refuse(&mut self, batch: &mut Batch, at: usize, reason: DropReason) {
        if let Some(p) = batch.pkt(at) {
            self.tally.refuse(p.total_len() as u64, reason);
        }
    }

    /// Drops all packets from number `at` on: the interface is down or gone. Returns the number of packets.
    #[cold]
    fn give_up(&mut self, batch: &mut Batch, at: usize) -> usize {
        (at..batch.len()).for_each(|i| self.refuse(batch, i, DropReason::LinkDown));
        batch.len()
    }
}

/// What the kernel's error means. `up`: as far as is known, frames can pass.
fn outcome(error: &Error, up: bool) -> Outcome {
    match error.raw_os_error() {
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Outcome::Down,
        Some(libc::EMSGSIZE) => Outcome::Refused(DropReason::TooLong),
        Some(libc::EINVAL) => Outcome::Refused(DropReason::UnsupportedOffload),
        // An interface without a carrier says the same as a full one.
        _ if !up => Outcome::Down,
        _ => Outcome::Busy,
    }
}

/// The way of a packet that needs no more than its bytes.
#[inline]
const fn plain_way(len: u32, longest: u32, slot: u32) -> Way {
    if len < ETHERNET as u32 {
        Way::Not(DropReason::TooShort)
    } else if len > longest {
        Way::Not(DropReason::TooLong)
    } else if len > slot {
        Way::Alone(VNET_NONE, None)
    } else {
        Way::Slot
    }
}

/// The way of a packet that needs more.
#[inline(never)]
fn slow_way(p: &Pkt<'_>, longest: u32, slot: u32) -> Way {
    let (flags, ext, first) = (p.flags(), p.ext(), p.bytes());
    let tag = flags.has(Flags::VLAN).then(|| (wire::EtherType::VLAN.value(), ext.vlan));
    let total = p.total_len() as u32;
    if total < ETHERNET as u32 || tag.is_some() && first.len() < ADDRESSES {
        return Way::Not(DropReason::TooShort);
    }
    let header = match vnet::sent(flags, &ext, first, total, tag.is_some()) {
        Ok(header) => header,
        Err(reason) => return Way::Not(reason),
    };
    let cut_up = header.gso_type != virtio::GSO_NONE;
    let len = total + if tag.is_some() { 4 } else { 0 };
    if !cut_up && len > longest {
        Way::Not(DropReason::TooLong)
    } else if cut_up || len > slot {
        Way::Alone(header, tag)
    } else {
        Way::SlotWith(header, tag)
    }
}

/// Lays a packet that needs no more than its bytes into the next slot. False if the kernel has not sent what is there.
#[inline]
fn lay(ring: &mut TxRing, p: &Pkt<'_>) -> bool {
    let bytes = p.bytes();
    let Some((header, frame)) = ring.slot().and_then(|s| s.split_first_chunk_mut()) else { return false };
    let Some(frame) = frame.get_mut(..bytes.len()) else { return false };
    // All of it linear: otherwise the kernel makes fragments of the slot, which veth and others copy once more.
    *header = bytes_of(VnetHeader { hdr_len: (bytes.len() as u16).into(), ..VNET_NONE });
    frame.copy_from_slice(bytes);
    ring.lay(bytes.len() as u32);
    true
}

/// Lays a packet of several buffers, or with more to be said, into the next slot, in which it fits.
#[inline(never)]
fn lay_with(ring: &mut TxRing, p: &Pkt<'_>, header: VnetHeader, tag: Tag) -> bool {
    let Some((to, frame)) = ring.slot().and_then(|s| s.split_first_chunk_mut()) else { return false };
    let mut len = 0;
    for (i, segment) in p.segments().enumerate() {
        let Some(room) = frame.get_mut(len..) else { return false };
        len += Pieces::new(segment, tag.filter(|_| i == 0)).fill(room);
    }
    *to = bytes_of(VnetHeader { hdr_len: (len as u16).into(), ..header });
    ring.lay(len as u32);
    true
}

/// Sends a packet by a call of its own.
fn send_alone(ring: &mut TxRing, p: &Pkt<'_>, header: &VnetHeader, tag: Tag) -> Result<(), Error> {
    let tag = tag.map(tag_bytes);
    let mut parts = [IoSlice::new(&[]); MAX_SEGMENTS + 3];
    let mut n = 0;
    let mut add = |bytes| {
        if let Some(part) = parts.get_mut(n) {
            *part = IoSlice::new(bytes);
            n += 1;
        }
    };
    add(header.as_bytes());
    for (i, segment) in p.segments().enumerate() {
        match (&tag, segment.split_at_checked(ADDRESSES)) {
            (Some(tag), Some((addresses, rest))) if i == 0 => {
                add(addresses);
                add(tag);
                add(rest);
            }
            _ => add(segment),
        }
    }
    ring.send(&parts[..n], header.gso_type != virtio::GSO_NONE)
}

/// Nothing to be done.
const VNET_NONE: VnetHeader = zerocopy::transmute!([0u8; VnetHeader::LEN]);

#[inline]
const fn bytes_of(header: VnetHeader) -> [u8; VnetHeader::LEN] {
    zerocopy::transmute!(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_say_what_to_do_with_the_packet() {
        let of = |code, up| outcome(&Error::from_raw_os_error(code), up);
        assert_eq!(of(libc::ENOBUFS, true), Outcome::Busy);
        assert_eq!(of(libc::EAGAIN, true), Outcome::Busy);
        assert_eq!(of(libc::ENOBUFS, false), Outcome::Down, "no carrier");
        for gone in [libc::ENETDOWN, libc::ENXIO, libc::ENODEV] {
            assert_eq!(of(gone, true), Outcome::Down);
        }
        assert_eq!(of(libc::EMSGSIZE, true), Outcome::Refused(DropReason::TooLong));
        assert_eq!(of(libc::EINVAL, true), Outcome::Refused(DropReason::UnsupportedOffload));
    }

    #[test]
    fn lengths_decide_between_slot_call_and_drop() {
        let way = |len| plain_way(len, 9018, 2054);
        assert!(matches!(way(13), Way::Not(DropReason::TooShort)));
        assert!(matches!((way(14), way(2054)), (Way::Slot, Way::Slot)));
        assert!(matches!((way(2055), way(9018)), (Way::Alone(..), Way::Alone(..))));
        assert!(matches!(way(9019), Way::Not(DropReason::TooLong)));
    }
}
