//! The least that touches every frame.

use graph::{Exits, Leads, Stage};
use mem::{Batch, Pkt};
use meter::DropReason;
use wire::{Ethernet, EthernetHeader};

use crate::{PortMap, exits};

exits! {
    /// Ways out of [`MacSwap`].
    MacSwapExit {
        /// To the partner, or back.
        Out = "out" => Leads::Marked,
        /// The port has no partner.
        NoRoute = "no_route" => Leads::Drop(DropReason::NoRoute),
        /// No whole Ethernet header.
        TooShort = "too_short" => Leads::Drop(DropReason::TooShort),
    }
}

/// Swaps source and destination address of every frame.
#[derive(Clone, Debug)]
pub struct MacSwap {
    pair: Option<PortMap>,
}

impl MacSwap {
    /// Sends frames to their port's partner by `pair`, or, without, back out of the port they came from.
    pub const fn new(pair: Option<PortMap>) -> Self {
        Self { pair }
    }
}

impl Stage for MacSwap {
    type Exit = MacSwapExit;
    const KIND: &'static str = "macswap";

    #[inline]
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, MacSwapExit>) {
        exits.set_all(MacSwapExit::Out);
        if let Some(pair) = &self.pair {
            pair.mark(batch, |i| exits.set(i, MacSwapExit::NoRoute));
        }
        for (i, mut p) in batch.iter_mut().enumerate() {
            if !swap(p.bytes_mut()) && !swap_short(&mut p) {
                exits.set(i, MacSwapExit::TooShort);
            }
        }
    }
}

#[inline(always)]
fn swap(frame: &mut [u8]) -> bool {
    let Ok(mut frame) = Ethernet::parse(frame) else { return false };
    let EthernetHeader { dst, src, .. } = *frame;
    (frame.dst, frame.src) = (src, dst);
    true
}

/// A header in several buffers, or none.
#[cold]
fn swap_short(p: &mut Pkt<'_>) -> bool {
    p.pull(EthernetHeader::LEN) && swap(p.bytes_mut())
}
