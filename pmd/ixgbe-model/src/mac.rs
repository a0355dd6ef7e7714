//! What the MAC and the filters make of a frame: lengths, CRC, addresses, tags, checksums, queue (82599 7.1.1, 7.1.2).

use ixgbe_defs::{MAX_FRAME_BYTES, Queue, RxWriteBack, rx_error, rx_status};

use crate::count::{Count, Totals, size_class, sized};
use crate::filters::Verdict;
use crate::parse::parse;
use crate::queue::Ctx;
use crate::wire::{Arrival, Wire};

/// Bytes of the CRC.
pub(crate) const CRC: usize = 4;
const SHORTEST: usize = 64;

/// Where a frame is to go: what the MAC and the filters found out.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) queue: Queue,
    pub(crate) fields: RxWriteBack,
}

#[cfg(test)]
impl Ticket {
    pub(crate) fn any() -> Self {
        Self { queue: const { Queue::new(0).unwrap() }, fields: RxWriteBack::default() }
    }
}

/// The MAC and the filters. Returns where the frame to deliver starts in `room`, its length, and its ticket.
#[inline(always)]
pub(crate) fn admit(
    ctx: &mut Ctx<'_>,
    room: &mut [u8],
    a: Arrival,
    strips: impl Fn(Queue) -> bool,
) -> Option<(usize, usize, Ticket)> {
    let (config, total) = (ctx.config, a.len + CRC);
    ctx.totals.add(Count::RxFrames, 1);
    ctx.totals.add(Count::RxBytes, total as u64);
    let tag = vlan_tag(&room[..a.len], config.filters.vlan_type);
    let longest = (config.max_frame + if tag.is_some() { 4 } else { 0 }).min(MAX_FRAME_BYTES);
    let wrong = match (total < SHORTEST, total > longest, a.bad_crc) {
        (true, _, false) => Some(Count::RxUndersize),
        (true, _, true) => Some(Count::RxFragment),
        (_, true, false) => Some(Count::RxOversize),
        (_, true, true) => Some(Count::RxJabber),
        (_, _, true) => Some(Count::RxBadCrc),
        _ => None,
    };
    if let Some(c) = wrong {
        ctx.totals.add(c, 1);
        if c != Count::RxBadCrc || !config.store_bad {
            return None;
        }
    }
    let destination = u64::from_le_bytes(*room.first_chunk()?) & 0xFFFF_FFFF_FFFF;
    let verdict = config.filters.address(destination);
    if verdict == Verdict::Filtered || !config.filters.vlan(tag) {
        ctx.totals.add(Count::RxFiltered, 1);
        return None;
    }
    if wrong.is_none() {
        count_good(ctx, destination, total);
    }
    let parsed = parse(&room[..a.len], if tag.is_some() { 18 } else { 14 });
    let mut fields = RxWriteBack {
        packet_type: parsed.packet_type,
        status: parsed.status,
        errors: parsed.errors,
        vlan: tag.unwrap_or(0),
        ..RxWriteBack::default()
    };
    if parsed.errors != 0 {
        ctx.totals.add(Count::RxBadChecksum, 1);
    }
    if wrong.is_some() {
        fields.errors |= rx_error::RXE;
    }
    if verdict == Verdict::Hash {
        fields.status |= rx_status::PIF;
    }
    let mut queue = const { Queue::new(0).unwrap() };
    if let Some((hash, what, q)) = config.rss.as_ref().and_then(|r| r.queue(&room[..a.len], &parsed)) {
        queue = q;
        if config.report_hash {
            (fields.rss_hash, fields.rss_type) = (hash, what);
        }
    }
    let (mut start, mut len) = (0, a.len);
    if !config.strip_crc {
        let crc = crc32(&room[..len]) ^ if a.bad_crc { 1 } else { 0 };
        room[len..len + CRC].copy_from_slice(&crc.to_le_bytes());
        len += CRC;
    }
    if tag.is_some() {
        fields.status |= rx_status::VP;
        if strips(queue) {
            room.copy_within(0..12, 4);
            (start, len) = (4, len - 4);
        }
    }
    Some((start, len, Ticket { queue, fields }))
}

fn vlan_tag(frame: &[u8], vlan_type: u16) -> Option<u16> {
    let [a, b, c, d] = *frame.get(12..)?.first_chunk()?;
    (u16::from_be_bytes([a, b]) == vlan_type).then_some(u16::from_be_bytes([c, d]))
}

#[inline]
fn count_good(ctx: &mut Ctx<'_>, destination: u64, total: usize) {
    ctx.totals.add(Count::RxGood, 1);
    ctx.totals.add(Count::RxGoodBytes, total as u64);
    ctx.totals.add(sized(Count::RxSize64, size_class(total)), 1);
    if destination & 1 != 0 {
        let broadcast = destination == 0xFFFF_FFFF_FFFF;
        ctx.totals.add(if broadcast { Count::RxBroadcast } else { Count::RxMulticast }, 1);
    }
}

/// Counts a frame and puts it on the wire.
#[inline]
pub(crate) fn send<W: Wire>(totals: &mut Totals, wire: &mut W, frame: &[u8]) {
    let total = frame.len() + CRC;
    totals.add(Count::TxGood, 1);
    totals.add(Count::TxGoodBytes, total as u64);
    totals.add(sized(Count::TxSize64, size_class(total)), 1);
    if frame[0] & 1 != 0 {
        let broadcast = frame[..6] == [0xFF; 6];
        totals.add(if broadcast { Count::TxBroadcast } else { Count::TxMulticast }, 1);
    }
    wire.tx_frame(frame);
}

/// The Ethernet CRC (IEEE 802.3 3.2.9), for a device that does not strip it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| if c & 1 != 0 { c >> 1 ^ 0xEDB8_8320 } else { c >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_that_of_ethernet() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_tag_is_seen_only_where_it_is() {
        let mut f = [0; 18];
        f[12..16].copy_from_slice(&[0x81, 0, 0x20, 0x05]);
        assert_eq!(vlan_tag(&f, 0x8100), Some(0x2005));
        assert_eq!((vlan_tag(&f, 0x88A8), vlan_tag(&f[..15], 0x8100)), (None, None));
    }
}
