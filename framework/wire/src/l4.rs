//! Layer 4's checksum in a frame whose layers are known.
use crate::checksum::Sum;
use crate::{Fragment, IpProtocol, IpVersion, Layers};

/// What a layer 4 checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum L4Check {
    /// It is right.
    Good,
    /// It is wrong.
    Bad,
    /// There is none that could be checked: no TCP, UDP or ICMP, a fragment, a source route with hops left, or UDP over IPv4 without one.
    Unchecked,
}

/// The pseudo header's sum for the frame's TCP, UDP or ICMPv6 (nothing for ICMP over IPv4). Without its length when `with_length` is false,
/// which is what segmentation offloads want in the checksum field ([`Sum::folded`]). `None` where [`L4Check::Unchecked`] would be said
/// for another reason than a UDP checksum of 0.
#[inline]
pub fn pseudo(frame: &[u8], layers: &Layers, with_length: bool) -> Option<Sum> {
    let (pseudo, _) = covered(frame, layers, with_length)?;
    Some(pseudo)
}

/// Checks the frame's layer 4 checksum.
#[inline]
pub fn verify_l4(frame: &[u8], layers: &Layers) -> L4Check {
    let Some((pseudo, segment)) = covered(frame, layers, true) else { return L4Check::Unchecked };
    if layers.protocol() == Some(IpProtocol::UDP) && matches!(segment, [_, _, _, _, _, _, 0, 0, ..]) {
        // RFC 768: none was made. RFC 8200 8.1: over IPv6 there must be one.
        return if layers.ip_version() == Some(IpVersion::V4) { L4Check::Unchecked } else { L4Check::Bad };
    }
    if pseudo.plus(segment).is_ok() { L4Check::Good } else { L4Check::Bad }
}

/// Computes the frame's layer 4 checksum. False, and nothing written, when there is none to compute.
#[inline]
pub fn fill_l4(frame: &mut [u8], layers: &Layers) -> bool {
    let Some((pseudo, segment)) = covered(frame, layers, true) else { return false };
    let (Some(l4), Some(offset)) = (layers.l4_offset(), layers.l4_checksum_offset()) else { return false };
    // Around the field, which counts as zero: both pieces before it are of even length.
    let (Some(before), Some(after)) = (segment.get(..offset), segment.get(offset + 2..)) else {
        return false;
    };
    let mut checksum = pseudo.plus(before).plus(after).checksum();
    if checksum == 0 && layers.protocol() == Some(IpProtocol::UDP) {
        checksum = 0xffff; // RFC 768: 0 would say that there is none
    }
    let Some(field) = frame.get_mut(l4 + offset..).and_then(|f| f.first_chunk_mut()) else { return false };
    *field = checksum.to_be_bytes();
    true
}

/// The sum of the pseudo header and the bytes of layer 4 that the checksum is over.
#[inline]
fn covered<'f>(frame: &'f [u8], layers: &Layers, with_length: bool) -> Option<(Sum, &'f [u8])> {
    if layers.fragment() != Fragment::Whole || layers.route_pending() {
        return None;
    }
    let (protocol, l3) = (layers.protocol()?, layers.l3_offset()?);
    let mut segment = frame.get(layers.l4_offset()?..layers.l3_end())?;
    if let (IpProtocol::UDP, &[_, _, _, _, high, low, ..]) = (protocol, segment) {
        segment = segment.get(..usize::from(u16::from_be_bytes([high, low])))?;
    }
    if protocol == IpProtocol::ICMPV4 {
        // ICMP for the other IP's addresses is nothing that has a defined sum.
        return (layers.ip_version() == Some(IpVersion::V4)).then_some((Sum::default(), segment));
    }
    // Both addresses, as they stand in the header.
    let addresses = match layers.ip_version()? {
        IpVersion::V4 if protocol == IpProtocol::ICMPV6 => return None,
        IpVersion::V4 => frame.get(l3 + 12..l3 + 20)?,
        IpVersion::V6 => frame.get(l3 + 8..l3 + 40)?,
    };
    let length = if with_length { segment.len() as u32 } else { 0 };
    // Upper half, lower half, protocol: as one sum this is either IP's pseudo header.
    let rest = length.to_be_bytes();
    Some((Sum::default().plus(addresses).plus(&rest).plus(&[0, protocol.0]), segment))
}
