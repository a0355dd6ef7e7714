//! Checksum and segmentation, from the kernel's header (virtio 1.3, 5.1.6) into our words and back. Pure.

use mem::{Ext, Flags};
use meter::DropReason;
use virtio_defs::{GsoType, HdrFlags, VirtioNetHdr};
use wire::vlan::TAG_LEN;
use wire::{EtherType, Layers};

/// Bytes of both addresses, behind which tags stand; and of an Ethernet header without tags.
pub const ADDRESSES: usize = 12;
pub const ETHERNET: usize = 14;

const CUT: Flags = Flags(Flags::TSO.0 | Flags::USO.0);
const OFFLOADS: Flags = Flags(CUT.0 | Flags::TX_L4.0);

/// Where a checksum goes says what is summed: RFC 9293 3.1, RFC 768.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;
/// Bytes of the shortest TCP header, and of UDP's.
const TCP: usize = 20;
const UDP: usize = 8;

/// What is known of a frame that came in, and what is wanted for it.
///
/// # Errors
/// Why it must be dropped: a kind of segmentation that we have no word for, or places that are not in the frame.
#[inline]
pub fn received(h: &VirtioNetHdr, frame: &[u8]) -> Result<(Flags, Option<Ext>), DropReason> {
    if h.flags.has(HdrFlags::NEEDS_CSUM) {
        return wishes(h, frame).map(|(flags, ext)| (flags, Some(ext)));
    }
    if h.gso_type != GsoType::NONE {
        // Each segment needs a checksum: the kernel never leaves one out.
        return Err(DropReason::UnsupportedOffload);
    }
    let good = h.flags.has(HdrFlags::DATA_VALID);
    Ok((if good { Flags::L4_GOOD } else { Flags::default() }, None))
}

fn wishes(h: &VirtioNetHdr, frame: &[u8]) -> Result<(Flags, Ext), DropReason> {
    let cut = match h.gso_type.kind() {
        GsoType::NONE => Flags::default(),
        GsoType::TCPV4 | GsoType::TCPV6 => Flags::TSO,
        GsoType::UDP_L4 => Flags::USO,
        _ => return Err(DropReason::UnsupportedOffload),
    };
    let (start, offset) = (h.csum_start.get(), h.csum_offset.get());
    let end = usize::from(start) + usize::from(offset) + 2;
    let mss = if cut == Flags::default() { 0 } else { h.gso_size.get() };
    if usize::from(start) < ETHERNET || end > frame.len() || cut != Flags::default() && mss == 0 {
        return Err(DropReason::BadDescriptor);
    }
    let mut ext = Ext::default();
    (ext.csum_start, ext.csum_offset, ext.mss) = (start, offset, mss);
    let layers = Layers::parse(frame);
    let byte = |n: Option<usize>| n.and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
    if layers.l4_offset() == Some(start.into()) {
        ext.l2_len = byte(layers.l3_offset());
        ext.l3_len = byte(layers.l3_header_len());
        ext.l4_len = byte(layers.l4_header_len());
    }
    Ok((Flags::TX_L4.with(cut), ext))
}

/// The header for a packet that goes out. `first` are the bytes of its first buffer, of `total` in all; with
/// [`Flags::VLAN`] a tag will be put behind the addresses.
///
/// # Errors
/// Why it cannot be sent.
#[inline]
pub fn sent(flags: Flags, ext: &Ext, first: &[u8], total: usize) -> Result<VirtioNetHdr, DropReason> {
    if flags.has(Flags::TX_L3) {
        return Err(DropReason::UnsupportedOffload);
    }
    if !flags.has(OFFLOADS) {
        return Ok(VirtioNetHdr::default());
    }
    let (start, offset) = (ext.csum_start, ext.csum_offset);
    if usize::from(start) < ETHERNET || usize::from(start) + usize::from(offset) + 2 > total {
        return Err(DropReason::TooShort);
    }
    let shift = if flags.has(Flags::VLAN) { TAG_LEN as u16 } else { 0 };
    let shifted = |at: u16| at.checked_add(shift).ok_or(DropReason::BadLength);
    let mut h = VirtioNetHdr { flags: HdrFlags::NEEDS_CSUM, ..VirtioNetHdr::default() };
    (h.csum_start, h.csum_offset) = (shifted(start)?.into(), offset.into());
    if flags.has(CUT) {
        let header = cut(&mut h, flags, ext, first)?;
        h.hdr_len = shifted(header)?.into();
    }
    Ok(h)
}

/// Says how to cut the packet up. Returns the length of all its headers.
fn cut(h: &mut VirtioNetHdr, flags: Flags, ext: &Ext, first: &[u8]) -> Result<u16, DropReason> {
    let (kind, checksum) = match network(first) {
        _ if flags.has(Flags::USO) => (GsoType::UDP_L4, UDP_CHECKSUM),
        Some(EtherType::IPV4) => (GsoType::TCPV4, TCP_CHECKSUM),
        Some(EtherType::IPV6) => (GsoType::TCPV6, TCP_CHECKSUM),
        _ => return Err(DropReason::UnsupportedOffload),
    };
    if ext.mss == 0 || ext.csum_offset != checksum {
        return Err(DropReason::UnsupportedOffload);
    }
    let header = first.get(usize::from(ext.csum_start)..).unwrap_or_default();
    let len = if checksum == UDP_CHECKSUM {
        UDP
    } else {
        header.get(12).map_or(0, |b| usize::from(b >> 4) * 4).max(TCP)
    };
    // The kernel looks for whole headers at the front.
    if header.len() < len {
        return Err(DropReason::TooShort);
    }
    // CWR: the first segment has it, the others must not (RFC 3168, 6.1.2).
    let ecn = checksum == TCP_CHECKSUM && header.get(13).is_some_and(|b| b & 0x80 != 0);
    h.gso_type = if ecn { GsoType(kind.0 | GsoType::ECN.0) } else { kind };
    h.gso_size = ext.mss.into();
    ext.csum_start.checked_add(len as u16).ok_or(DropReason::BadLength)
}

/// The type behind at most two tags.
fn network(frame: &[u8]) -> Option<EtherType> {
    let kind = |at: usize| Some(EtherType::new(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?)));
    (0..3).map(|i| kind(ADDRESSES + i * TAG_LEN)).find(|k| k.is_none_or(|k| !k.is_vlan())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 or IPv6 frame with TCP or UDP and 100 bytes, perhaps tagged.
    fn frame(v6: bool, udp: bool, tags: usize, cwr: bool) -> Vec<u8> {
        let mut f = vec![2; 12];
        (0..tags).for_each(|_| f.extend([0x81, 0, 0, 7]));
        let l4 = if udp { 8 } else { 32 };
        let len = 100 + l4 as u16;
        let protocol = if udp { 17 } else { 6 };
        if v6 {
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0, (len >> 8) as u8, len as u8, protocol, 64]);
            f.extend([1; 32]);
        } else {
            let total = len + 20;
            f.extend([8, 0, 0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, protocol, 0, 0]);
            f.extend([1; 8]);
        }
        let mut header = vec![0; l4];
        if udp {
            header[5] = len as u8;
        } else {
            (header[12], header[13]) = (8 << 4, if cwr { 0x90 } else { 0x10 });
        }
        f.extend(header);
        f.extend([9; 100]);
        f
    }

    #[test]
    fn what_comes_in_goes_out_as_it_was() {
        for (v6, udp, tags, cwr) in [
            (false, false, 0, false),
            (true, false, 0, true),
            (false, true, 0, false),
            (true, true, 1, false),
            (false, false, 2, true),
        ] {
            let f = frame(v6, udp, tags, cwr);
            let start = (14 + 4 * tags + if v6 { 40 } else { 20 }) as u16;
            let kind = match (udp, v6) {
                (true, _) => GsoType::UDP_L4,
                (_, true) => GsoType::TCPV6,
                _ => GsoType::TCPV4,
            };
            let (offset, l4) = if udp { (6u16, 8) } else { (16, 32) };
            let mut h =
                VirtioNetHdr { flags: HdrFlags::NEEDS_CSUM, gso_type: kind, ..VirtioNetHdr::default() };
            h.gso_type.0 |= if cwr { 0x80 } else { 0 };
            (h.gso_size, h.csum_start, h.csum_offset) = (50.into(), start.into(), offset.into());
            h.hdr_len = (start + l4).into();
            let (flags, ext) = received(&h, &f).unwrap();
            let ext = ext.unwrap();
            assert_eq!(flags, Flags::TX_L4.with(if udp { Flags::USO } else { Flags::TSO }));
            assert_eq!((ext.csum_start, ext.csum_offset, ext.mss), (start, offset, 50));
            assert_eq!((u16::from(ext.l2_len) + u16::from(ext.l3_len), u16::from(ext.l4_len)), (start, l4));
            assert_eq!(sent(flags, &ext, &f[..start as usize + l4 as usize], f.len()), Ok(h));
            let tagged = sent(flags.with(Flags::VLAN), &ext, &f, f.len()).unwrap();
            assert_eq!((tagged.csum_start.get(), tagged.hdr_len.get()), (start + 4, start + l4 + 4));
            // The same without segmentation.
            (h.gso_type, h.gso_size, h.hdr_len) = (GsoType::NONE, 0.into(), 0.into());
            let (flags, ext) = received(&h, &f).unwrap();
            assert_eq!((flags, sent(flags, &ext.unwrap(), &f, f.len())), (Flags::TX_L4, Ok(h)));
        }
    }

    #[test]
    fn plain_frames_say_whether_their_checksum_was_seen() {
        let f = frame(false, false, 0, false);
        let h = VirtioNetHdr::default();
        assert_eq!(received(&h, &f), Ok((Flags::default(), None)));
        let h = VirtioNetHdr { flags: HdrFlags::DATA_VALID, ..h };
        assert_eq!(received(&h, &f), Ok((Flags::L4_GOOD, None)));
        assert_eq!(sent(Flags::L4_GOOD, &Ext::default(), &f, f.len()), Ok(VirtioNetHdr::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        use DropReason::{BadDescriptor, TooShort, UnsupportedOffload};
        let f = frame(false, false, 0, false);
        let with = |gso: GsoType, size: u16, start: u16, offset: u16| {
            let mut h =
                VirtioNetHdr { flags: HdrFlags::NEEDS_CSUM, gso_type: gso, ..VirtioNetHdr::default() };
            (h.gso_size, h.csum_start, h.csum_offset) = (size.into(), start.into(), offset.into());
            received(&h, &f).map(|r| r.0)
        };
        assert_eq!(with(GsoType::TCPV4, 0, 34, 16), Err(BadDescriptor), "segments of nothing");
        assert_eq!(with(GsoType::NONE, 0, 13, 16), Err(BadDescriptor));
        assert_eq!(with(GsoType::NONE, 0, 34, u16::MAX), Err(BadDescriptor));
        assert_eq!(with(GsoType::UDP, 8, 34, 16), Err(UnsupportedOffload), "fragments");
        assert_eq!(with(GsoType(77), 8, 34, 16), Err(UnsupportedOffload));
        let h = VirtioNetHdr { gso_type: GsoType::TCPV4, gso_size: 9.into(), ..VirtioNetHdr::default() };
        assert_eq!(received(&h, &f), Err(UnsupportedOffload), "segments without a checksum");
        let out = |flags: Flags, change: fn(&mut Ext), first: &[u8]| {
            let mut e = Ext::default();
            (e.csum_start, e.csum_offset, e.mss) = (34, 16, 50);
            change(&mut e);
            sent(flags, &e, first, f.len()).map(|_| ())
        };
        let none = |_: &mut Ext| {};
        assert_eq!(out(Flags::TX_L3, none, &f), Err(UnsupportedOffload));
        assert_eq!(out(Flags::TX_L4, |e| e.csum_start = 9, &f), Err(TooShort));
        assert_eq!(out(Flags::TX_L4, |e| e.csum_offset = 200, &f), Err(TooShort));
        assert_eq!(out(Flags::TSO, |e| e.mss = 0, &f), Err(UnsupportedOffload));
        assert_eq!(out(Flags::TSO, |e| e.csum_offset = 6, &f), Err(UnsupportedOffload));
        assert_eq!(out(Flags::USO, none, &f), Err(UnsupportedOffload));
        assert_eq!(out(Flags::TSO, none, &f[..60]), Err(TooShort), "not all headers in the first buffer");
        assert_eq!(out(Flags::TSO, none, &[7; 200]), Err(UnsupportedOffload), "neither IP");
    }
}
