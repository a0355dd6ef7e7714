//! Walking a block of received frames: pure, and safe against whatever the bytes say.
//!
//! The kernel is trusted, and yet each offset and length is checked: a frame that is not wholly inside its block is bad,
//! and a link that leads nowhere makes all that should follow bad. A block never holds more frames than headers fit.

use zerocopy::FromBytes;

use crate::layout::{BlockHeader, FrameHeader, LinkAddress, VnetHeader, rx_status};

/// Frames start where a `u64` may (`V3_ALIGNMENT`).
const ALIGN: u32 = 8;
/// The least that stands before a frame's bytes.
const FRONT: usize = FrameHeader::LEN + LinkAddress::LEN + VnetHeader::LEN;

/// A position in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Where the next frame's header is.
    at: u32,
    /// Frames that follow.
    left: u32,
}

/// One frame as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// Its bytes, without a tag that was taken out.
    pub bytes: &'b [u8],
    /// Whether these are all of its bytes.
    pub whole: bool,
    /// The tag that was taken out: protocol and control information.
    pub tag: Option<(u16, u16)>,
    /// `PACKET_HOST` and so on.
    pub pkttype: u8,
    /// Checksum and segmentation.
    pub vnet: VnetHeader,
}

/// What was found at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'b> {
    /// The block has no more.
    End,
    /// A frame.
    Frame(Frame<'b>),
    /// The kernel took the room and then gave the frame up; it is among its drops.
    GivenUp,
    /// A frame that cannot be.
    Bad,
}

impl Cursor {
    /// The start of a block that the kernel has handed over. One too short for a header holds nothing.
    pub fn open(block: &[u8]) -> Self {
        let Ok((header, rest)) = BlockHeader::ref_from_prefix(block) else { return Self::default() };
        let most = (rest.len() / FrameHeader::LEN) as u32;
        Self { at: header.offset_to_first_pkt.get(), left: header.num_pkts.get().min(most) }
    }

    /// Frames that follow, whatever they turn out to be.
    pub const fn left(self) -> u32 {
        self.left
    }

    /// Where the next header is, for a prefetch.
    #[inline]
    pub const fn at(self) -> usize {
        self.at as usize
    }

    /// Takes the next frame.
    #[inline]
    pub fn next<'b>(&mut self, block: &'b [u8]) -> Step<'b> {
        let Some(left) = self.left.checked_sub(1) else { return Step::End };
        self.left = left;
        let here = block.get(self.at as usize..).filter(|_| self.at.is_multiple_of(ALIGN));
        let Some((header, rest)) = here.and_then(|b| FrameHeader::ref_from_prefix(b).ok()) else {
            return Step::Bad;
        };
        let next = header.next_offset.get();
        // An offset of 0 ends the block; what does not lead forward leads to where nothing is.
        let forward = next as usize >= FrameHeader::LEN;
        self.at = if forward { self.at.saturating_add(next) } else { u32::MAX };
        if header.status.get() & rx_status::USER == 0 {
            return Step::GivenUp;
        }
        frame(header, rest).map_or(Step::Bad, Step::Frame)
    }
}

/// The frame of `header`, which `rest` follows; `None` if it is not inside.
#[inline]
fn frame<'b>(header: &FrameHeader, rest: &'b [u8]) -> Option<Frame<'b>> {
    let mac = usize::from(header.mac.get());
    let (address, _) = LinkAddress::ref_from_prefix(rest).ok()?;
    let start = mac.checked_sub(FrameHeader::LEN).filter(|_| mac >= FRONT)?;
    let snaplen = header.snaplen.get();
    let bytes = rest.get(start..)?.get(..snaplen as usize)?;
    let vnet = rest.get(start - VnetHeader::LEN..)?;
    let (vnet, _) = VnetHeader::ref_from_prefix(vnet).ok()?;
    Some(Frame {
        bytes,
        whole: header.len.get() == snaplen,
        tag: tag(header),
        pkttype: address.pkttype,
        vnet: *vnet,
    })
}

/// The tag that was taken out. Its protocol is said since Linux 3.14; before that it was 802.1Q.
#[inline]
fn tag(header: &FrameHeader) -> Option<(u16, u16)> {
    const DOT1Q: u16 = 0x8100;
    let status = header.status.get();
    if status & rx_status::VLAN_VALID == 0 {
        return None;
    }
    let said = status & rx_status::VLAN_TPID_VALID != 0;
    Some((if said { header.vlan_tpid.get() } else { DOT1Q }, header.vlan_tci.get() as u16))
}

#[cfg(test)]
mod tests;
