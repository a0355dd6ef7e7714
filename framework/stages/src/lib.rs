//! The stages in the box.
//!
//! - [`Forward`]: every packet to its port's partner. [`MacSwap`]: the same, with its addresses swapped.
//! - [`L2Switch`]: a learning bridge, alone or shared by workers ([`Peer`]); between two [`Vlan`] stages it keeps VLANs apart.
//! - [`Filter`]: passes what an expression is true of.
//! - [`Count`], [`Tee`], [`Sample`], [`Drop`]: look at packets, copy all or some, end them.
//!
//! Life of a stage:
//! 1. Its configuration is filled in, or `read` from a table of keys; `new` checks it. Whatever cannot be is a [`config::KeyError`] or a
//!    [`StageError`], of an expression a [`FilterError`].
//! 2. It is added to a [`graph::GraphBuilder`]. Exits that end packets have a reason already, `out` of stages that choose a
//!    port leads to the port that they marked; other exits have to be joined.
//! 3. The graph calls it with batches, and about every millisecond with the time.
//! 4. Between two breaths it can be reached ([`graph::Graph::stage_mut`]) and changed.
//!
//! | stage | exits |
//! |---|---|
//! | [`Forward`] | `out` (marked), `no_route` |
//! | [`MacSwap`] | `out` (marked), `no_route`, `too_short` |
//! | [`L2Switch`] | `out` (marked), `filtered`, `reserved` (filtered), `table_full`, `too_short` |
//! | [`Vlan`] | `out`, `filtered`, `too_short` |
//! | [`Filter`] | `pass`, `fail` (filtered) |
//! | [`Count`] | `out` |
//! | [`Tee`] | `out`, `copy` |
//! | [`Sample`] | `out`, `sample` |
//! | [`Drop`] | one per drop reason |
//!
//! A frame may be in several buffers (`mem::Chain`), as a kernel's segments of 64 KiB are: all stages look at headers in the first and gather them
//! there if they are not. Copies are whole and have all that is known of the packet, but for those that [`Sample`] cuts. A VLAN tag that a
//! device took out (`Flags::VLAN`) counts as the outermost. Of the stages here only [`Vlan`] changes a frame's length, and what depends on it.
//!
//! Limits: frames are Ethernet; a bridge has at most 64 ports.
#![forbid(unsafe_code)]

mod count;
mod discard;
mod filter;
mod forward;
mod l2switch;
mod macswap;
mod names;
mod ports;
mod random;
mod sample;
mod tee;
mod vlan;

pub use count::{Count, CountExit, Counts};
pub use discard::{Drop, DropExit};
pub use filter::{Filter, FilterConfig, FilterError, FilterExit};
pub use forward::{Forward, ForwardExit};
pub use l2switch::{L2Switch, L2SwitchConfig, L2SwitchExit, Peer, TableFull};
pub use macswap::{MacSwap, MacSwapExit};
pub use names::PortNames;
pub use ports::PortMap;
pub use sample::{Choice, Sample, SampleConfig, SampleExit};
pub use tee::{Tee, TeeExit};
pub use vlan::{Side, Vlan, VlanConfig, VlanExit, VlanPorts};

/// What a stage cannot be told. Setup only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// A port has two partners.
    #[error("port {port} is to send to port {first} and to port {second}: name each port once")]
    TwoPartners {
        /// The port.
        port: u16,
        /// One partner.
        first: u16,
        /// The other.
        second: u16,
    },
    /// A bridge of too many ports.
    #[error("a bridge of {asked} ports: use at most {most}")]
    TooManyPorts {
        /// Ports asked for.
        asked: usize,
        /// Most there may be.
        most: usize,
    },
    /// A port named twice.
    #[error("port {0} is named twice: name each port once")]
    PortTwice(u16),
    /// A port that is isolated and not one of the bridge's.
    #[error(
        "port {0} is to be isolated and is not a port of the bridge: add it to the ports, or leave it out"
    )]
    NotOfTheBridge(u16),
    /// A table that cannot be.
    #[error("a table of {asked} stations: use 1 to {most}")]
    Table {
        /// Stations asked for.
        asked: usize,
        /// Most there may be.
        most: usize,
    },
    /// An ageing time that cannot be told.
    #[error(
        "stations forgotten after {0:?}: use at least a microsecond; 300 s is usual, 10 s the least that IEEE 802.1Q names"
    )]
    Ageing(core::time::Duration),
    /// A VLAN that is none.
    #[error("VLAN {0}: use 1 to 4094")]
    Vlan(u16),
    /// A native VLAN of a port that is no trunk.
    #[error("port {0} has a native VLAN and is no trunk: make it one, or leave the native VLAN out")]
    NotATrunk(u16),
    /// A bridge that was made without VLANs is told of some.
    #[error("the bridge was made without VLANs: make it with them (vlans = true)")]
    NoVlans,
    /// One packet in none, or copies of no bytes.
    #[error("a sample of one packet in none, or of no bytes: both are at least 1")]
    Sample,
}

/// An exit enum: its variants in the order of their numbers, each with name and end.
macro_rules! exits {
    ($(#[$doc:meta])* $name:ident { $($(#[$d:meta])* $variant:ident = $label:literal => $leads:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$d])* $variant,)* }
        impl From<$name> for u8 {
            #[inline(always)]
            fn from(exit: $name) -> Self {
                exit as Self
            }
        }
        impl graph::Exit for $name {
            const EXITS: &'static [graph::ExitInfo] =
                &[$(graph::ExitInfo { name: $label, leads: $leads },)*];
        }
    };
}
use exits;
