//! Checksum and segmentation, from the kernel's words into ours and back. Pure.
//!
//! The header is that of virtio (virtio 1.2, 5.1.6.1), which `PACKET_VNET_HDR` puts before a frame. It counts offsets
//! from the frame's first byte as the kernel has it: without a tag that it took out.

use mem::{Ext, Flags};
use meter::DropReason;
use wire::vlan::TAG_LEN;

use crate::layout::{VnetHeader, vnet};

/// Bytes of both addresses, behind which tags stand.
pub const ADDRESSES: usize = 12;
/// Bytes of an Ethernet header without tags.
pub const ETHERNET: usize = 14;
/// What asks for more than the frame's bytes.
pub const OFFLOADS: Flags = Flags(Flags::TX_L4.0 | Flags::TSO.0 | Flags::USO.0);

/// Where a checksum goes says what is summed: RFC 9293 3.1, RFC 768.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;
/// Bytes of the shortest TCP header, and of the UDP header.
const TCP: usize = 20;
const UDP: usize = 8;

/// What a frame wants done, or is known to have: for packets that came in.
///
/// `frame` is what is there of it, without the tag that will be put before `tagged` frames' types.
///
/// # Errors
/// Why it must be dropped: a kind of segmentation that we have no word for, or offsets outside the frame.
#[inline]
pub fn received(h: &VnetHeader, frame: &[u8], tagged: bool) -> Result<(Flags, Option<Ext>), DropReason> {
    if h.gso_type == vnet::GSO_NONE && h.flags & vnet::NEEDS_CSUM == 0 {
        let good = h.flags & vnet::DATA_VALID != 0;
        return Ok((if good { Flags::L4_GOOD } else { Flags::default() }, None));
    }
    offloads(h, frame, tagged).map(|(flags, ext)| (flags, Some(ext)))
}

fn offloads(h: &VnetHeader, frame: &[u8], tagged: bool) -> Result<(Flags, Ext), DropReason> {
    // Segments need a checksum each, so that segmentation without one does not come from the kernel itself.
    if h.flags & vnet::NEEDS_CSUM == 0 {
        return Err(DropReason::UnsupportedOffload);
    }
    let kind = match h.gso_type & !vnet::GSO_ECN {
        vnet::GSO_NONE => Flags::default(),
        vnet::GSO_TCPV4 | vnet::GSO_TCPV6 => Flags::TSO,
        vnet::GSO_UDP_L4 => Flags::USO,
        _ => return Err(DropReason::UnsupportedOffload),
    };
    let (start, offset) = (h.csum_start.get(), h.csum_offset.get());
    let end = usize::from(start) + usize::from(offset) + 2;
    let mss = if kind == Flags::default() { 0 } else { h.gso_size.get() };
    if end > frame.len() || usize::from(start) < ETHERNET || kind != Flags::default() && mss == 0 {
        return Err(DropReason::BadDescriptor);
    }
    let shift = if tagged { TAG_LEN } else { 0 };
    let csum_start = start.checked_add(shift as u16).ok_or(DropReason::BadDescriptor)?;
    let mut ext = Ext::default();
    (ext.mss, ext.csum_start, ext.csum_offset) = (mss, csum_start, offset);
    if let Some((_, l3)) = network(frame).filter(|(_, l3)| *l3 < usize::from(start)) {
        ext.l2_len = (l3 + shift) as u8;
        ext.l3_len = (usize::from(start) - l3).try_into().unwrap_or(0);
        ext.l4_len = transport(frame, start, offset).and_then(|n| n.try_into().ok()).unwrap_or(0);
    }
    Ok((Flags::TX_L4.with(kind), ext))
}

/// The header for a packet that goes out. `first` are the bytes of its first buffer, of `total` in all; `tagged` says
/// that a tag is going to be put into them. `hdr_len` is what is to be linear for segmentation, and 0 for the rest.
///
/// # Errors
/// Why it cannot be sent.
#[inline]
pub fn sent(
    flags: Flags,
    ext: &Ext,
    first: &[u8],
    total: u32,
    tagged: bool,
) -> Result<VnetHeader, DropReason> {
    if flags.has(Flags::TX_L3) {
        return Err(DropReason::UnsupportedOffload);
    }
    if !flags.has(OFFLOADS) {
        return Ok(VnetHeader::default());
    }
    let (start, offset) = (ext.csum_start, ext.csum_offset);
    if u32::from(start) + u32::from(offset) + 2 > total || usize::from(start) < ETHERNET {
        return Err(DropReason::TooShort);
    }
    let shift = if tagged { TAG_LEN as u16 } else { 0 };
    let csum_start = start.checked_add(shift).ok_or(DropReason::BadLength)?;
    let mut h = VnetHeader { flags: vnet::NEEDS_CSUM, ..VnetHeader::default() };
    (h.csum_start, h.csum_offset) = (csum_start.into(), offset.into());
    if flags.has(Flags::TSO.with(Flags::USO)) {
        segments(&mut h, flags, ext, first)?;
        h.hdr_len = h.hdr_len.get().saturating_add(shift).into();
    }
    Ok(h)
}

/// Says how to cut the packet up.
fn segments(h: &mut VnetHeader, flags: Flags, ext: &Ext, first: &[u8]) -> Result<(), DropReason> {
    if ext.mss == 0 {
        return Err(DropReason::UnsupportedOffload);
    }
    let (kind, checksum) = if flags.has(Flags::USO) {
        (vnet::GSO_UDP_L4, UDP_CHECKSUM)
    } else {
        match network(first) {
            Some((wire::EtherType::IPV4, _)) => (vnet::GSO_TCPV4, TCP_CHECKSUM),
            Some((wire::EtherType::IPV6, _)) => (vnet::GSO_TCPV6, TCP_CHECKSUM),
            _ => return Err(DropReason::UnsupportedOffload),
        }
    };
    if ext.csum_offset != checksum {
        return Err(DropReason::UnsupportedOffload);
    }
    // The kernel looks for whole headers in what is linear.
    let header = transport(first, ext.csum_start, checksum).ok_or(DropReason::TooShort)?;
    let ecn = kind != vnet::GSO_UDP_L4 && cwr(first, ext.csum_start);
    h.gso_type = kind | if ecn { vnet::GSO_ECN } else { 0 };
    h.gso_size = ext.mss.into();
    h.hdr_len = ext.csum_start.checked_add(header as u16).ok_or(DropReason::BadLength)?.into();
    Ok(())
}

/// The type behind at most two tags, and where what it names begins.
fn network(frame: &[u8]) -> Option<(wire::EtherType, usize)> {
    let mut at = ADDRESSES;
    for _ in 0..3 {
        let kind = wire::EtherType::new(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        if !kind.is_vlan() {
            return Some((kind, at + 2));
        }
        at += TAG_LEN;
    }
    None
}

/// Bytes of the TCP or UDP header at `start`, by where its checksum is; `None` if they are not all there.
fn transport(frame: &[u8], start: u16, checksum: u16) -> Option<usize> {
    let header = frame.get(usize::from(start)..)?;
    let len = match checksum {
        UDP_CHECKSUM => UDP,
        TCP_CHECKSUM => usize::from(header.get(12)? >> 4) * 4,
        _ => return None,
    };
    (checksum == UDP_CHECKSUM || len >= TCP).then_some(len).filter(|&n| n <= header.len())
}

/// Whether TCP's CWR bit is set: the first segment says so, the others must not (RFC 3168, 6.1.2).
fn cwr(frame: &[u8], start: u16) -> bool {
    frame.get(usize::from(start) + 13).is_some_and(|flags| flags & 0x80 != 0)
}

#[cfg(test)]
mod tests;
