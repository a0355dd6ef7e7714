//! What is done in software to a frame that waits for it: a checksum, a VLAN tag.

use mem::{Ext, Flags};
use meter::DropReason;
use wire::checksum::{self, Sum};
use wire::{EtherType, Tci, vlan};

/// Flags of packets that are not written as they are.
pub const WISHES: Flags =
    Flags(Flags::VLAN.0 | Flags::TX_L3.0 | Flags::TX_L4.0 | Flags::TSO.0 | Flags::USO.0);
/// Flags of packets with a checksum of layer 4 still to be put in.
const L4: Flags = Flags(Flags::TX_L4.0 | Flags::TSO.0 | Flags::USO.0);
/// Bytes of an Ethernet header without a tag.
pub const ETHERNET: u16 = 14;
/// Bytes of the shortest IPv4 header (RFC 791).
const IPV4: u16 = 20;
/// Where its checksum is.
const IPV4_CHECKSUM: usize = 10;
/// Where UDP's checksum is (RFC 768).
const UDP_CHECKSUM: u16 = 6;

fn l2_len(e: &Ext) -> u16 {
    if e.l2_len == 0 { ETHERNET } else { e.l2_len.into() }
}

/// Whether what is wished can be done to a frame of `len` bytes.
pub fn check(flags: Flags, e: &Ext, len: u32) -> Result<(), DropReason> {
    let l4 = u32::from(e.csum_start) + u32::from(e.csum_offset) + 2;
    let short = flags.has(L4) && l4 > len
        || flags.has(Flags::TX_L3) && u32::from(l2_len(e) + IPV4) > len
        || flags.has(Flags::VLAN) && u32::from(ETHERNET) > len;
    if short { Err(DropReason::TooShort) } else { Ok(()) }
}

/// Completes the frame that is `out[at..]`.
pub fn complete(out: &mut Vec<u8>, at: usize, flags: Flags, e: &Ext) {
    let frame = &mut out[at..];
    if flags.has(L4) {
        fill_l4(frame, e);
    }
    if flags.has(Flags::TX_L3) {
        fill_ipv4(frame, l2_len(e).into());
    }
    if flags.has(Flags::VLAN) {
        out.splice(at..at, [0; vlan::TAG_LEN]);
        let done = vlan::insert(&mut out[at..], EtherType::VLAN, Tci::from_raw(e.vlan));
        debug_assert!(done, "`check` saw whole addresses");
    }
}

/// The pseudo header's sum is in the field, so that the sum over all is the sum.
fn fill_l4(frame: &mut [u8], e: &Ext) {
    let (start, field) = (usize::from(e.csum_start), usize::from(e.csum_start) + usize::from(e.csum_offset));
    let Some(covered) = frame.get(start..) else { return };
    let mut sum = Sum::default().plus(covered).checksum();
    if sum == 0 && e.csum_offset == UDP_CHECKSUM {
        sum = 0xffff; // RFC 768: 0 would say that there is none
    }
    if let Some(field) = frame.get_mut(field..).and_then(|f| f.first_chunk_mut()) {
        *field = sum.to_be_bytes();
    }
}

fn fill_ipv4(frame: &mut [u8], at: usize) {
    let Some(words) = frame.get(at).map(|b| usize::from(b & 15)) else { return };
    let Some(header) = frame.get_mut(at..at + 4 * words).filter(|h| h.len() >= IPV4.into()) else { return };
    header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].fill(0);
    let sum = checksum::of(header);
    header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Layers;
    use wire::checksum::{L4Check, pseudo, verify_l4};

    /// An IPv4 frame with UDP and a payload, its checksums right.
    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let (ip, udp) = ((28 + payload.len()) as u16, (8 + payload.len()) as u16);
        f.extend([0x45, 0, (ip >> 8) as u8, ip as u8, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        f.extend([0, 7, 0, 9, (udp >> 8) as u8, udp as u8, 0, 0]);
        f.extend(payload);
        fill_ipv4(&mut f, 14);
        let layers = Layers::parse(&f);
        assert!(checksum::fill_l4(&mut f, &layers));
        f
    }

    fn ext(csum_start: u16, csum_offset: u16, l2_len: u8) -> Ext {
        let mut e = Ext::tagged(0x6123);
        (e.csum_start, e.csum_offset, e.l2_len) = (csum_start, csum_offset, l2_len);
        e
    }

    #[test]
    fn checksums_and_the_tag_are_put_in() {
        for payload in [&b"even"[..], b"odd", b"", &[0xff; 999]] {
            let want = frame(payload);
            let mut partial = want.clone();
            let sum = pseudo(&want, &Layers::parse(&want), true).unwrap().folded();
            partial[40..42].copy_from_slice(&sum.to_be_bytes());
            partial[24..26].fill(0x5a);
            let e = ext(34, 6, 14);
            let flags = Flags::TX_L4.with(Flags::TX_L3);
            assert_eq!(check(flags, &e, partial.len() as u32), Ok(()));
            let mut out = [&b"before"[..], &partial].concat();
            complete(&mut out, 6, flags, &e);
            assert_eq!(out[6..], want);
            let mut out = partial.clone();
            complete(&mut out, 0, flags.with(Flags::VLAN), &e);
            assert_eq!(out[12..16], [0x81, 0, 0x61, 0x23]);
            assert_eq!([&out[..12], &out[16..]].concat(), want);
            assert_eq!(verify_l4(&out, &Layers::parse(&out)), L4Check::Good);
        }
    }

    #[test]
    fn what_does_not_fit_is_said_and_changes_nothing_outside() {
        let e = ext(34, 6, 0);
        assert_eq!(check(Flags::TX_L4, &e, 42), Ok(()));
        assert_eq!(check(Flags::TSO, &e, 41), Err(DropReason::TooShort));
        assert_eq!(check(Flags::TX_L3, &e, 33), Err(DropReason::TooShort));
        assert_eq!(check(Flags::VLAN, &e, 14), Ok(()));
        assert_eq!(check(Flags::VLAN, &e, 13), Err(DropReason::TooShort));
        let lies = ext(u16::MAX, u16::MAX, 255);
        let mut out = vec![0xff; 60];
        complete(&mut out, 0, WISHES, &lies);
        assert_eq!(out.len(), 64);
    }
}
