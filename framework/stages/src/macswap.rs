//! The least that touches every frame.

use graph::{Exits, Leads, Stage};
use mem::Batch;
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
        let mut short = 0u64;
        for (i, mut p) in batch.iter_mut().enumerate() {
            if !swap(p.bytes_mut()) {
                short |= 1 << i;
            }
        }
        if short != 0 {
            swap_short(short, batch, exits);
        }
    }
}

#[inline(always)]
fn swap(frame: &mut [u8]) -> bool {
    let Ok(mut frame) = Ethernet::parse(frame) else { return false };
    let header = &mut *frame;
    core::mem::swap(&mut header.dst, &mut header.src);
    true
}

/// Headers in several buffers, or none.
#[cold]
fn swap_short(mut short: u64, batch: &mut Batch, exits: &mut Exits<'_, MacSwapExit>) {
    while short != 0 {
        let i = short.trailing_zeros() as usize;
        short &= short - 1;
        let done = batch.pkt(i).is_some_and(|mut p| p.pull(EthernetHeader::LEN) && swap(p.bytes_mut()));
        if !done {
            exits.set(i, MacSwapExit::TooShort);
        }
    }
}
