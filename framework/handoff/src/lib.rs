//! Rings of packets from one worker to another, as queues that a graph knows already.
//!
//! - [`handoff`] makes one: a [`Feed`] that fills it, an [`Inlet`] that empties it, a [`View`] that says how it goes.
//! - [`Spread`] is a transmit queue over many feeds: each packet goes to the ring that its flow has.
//! - [`Link`] is a transmit queue over one feed: what a worker sends to one port, on its way to the worker that has it.
//! - An [`Inlet`] is a receive queue. Packets come out as they went in, in order, marked as they were.
//!
//! Life of a hand-off:
//! 1. The control side makes the rings; feeds become setups of transmit queues, inlets are setups of receive queues.
//! 2. Setups travel to their workers and are attached, like those of any port.
//! 3. A burst goes in with one store per ring, and comes out with one.
//! 4. The sending side leaves first, the receiving side once it has emptied the ring. What is left then is freed by
//!    [`port::RxSetup::reclaim`], and counted as dropped (`stopping`).
//!
//! **Full rings.** By default packets for a full ring are dropped and counted (`handoff_full`), and those for other rings
//! go on. A hand-off that waits leaves them with the sender instead, which receives nothing until they are gone: then the
//! slowest ring holds up the others (head of line), because a flow must not overtake itself.
//!
//! **Flows.** A [`Spread`] takes [`wire::flow::hash`] of each packet, never a hash that a device or a driver may have left
//! with some of them: all packets of a flow must be told apart by the same means.
//!
//! Limits: a hand-off moves packets within one [`mem::Memory`]; a packet is neither received nor sent by passing one, so
//! that its counts are its own ([`View`]) and are no port's.
#![forbid(unsafe_code)]

mod counts;
mod inlet;
mod link;
mod spread;

use std::sync::Arc;

use mem::Parcel;
use ring::{Producer, RingSize, spsc};

pub use counts::View;
use counts::{Counts, Sent};
pub use inlet::Inlet;
pub use link::Link;
pub use spread::Spread;

/// Most feeds of one [`Spread`].
pub const MAX_FEEDS: usize = 64;

/// The end of a hand-off that is filled: to be made part of a [`Spread`], or a [`Link`].
pub struct Feed {
    ring: Producer<Parcel>,
    sent: Sent,
}

/// A hand-off of up to `size` packets.
pub fn handoff(size: RingSize) -> (Feed, Inlet, View) {
    let (producer, consumer) = spsc(size);
    let counts = Arc::new(Counts::default());
    let feed = Feed { ring: producer, sent: Sent::new(&counts) };
    (feed, Inlet::new(consumer, &counts), View::new(counts, size))
}
