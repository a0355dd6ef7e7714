//! The Intel 82599 and X540 data sheet as types: offsets, bit fields, layouts. No logic.
//!
//! Section numbers ("82599 8.2.3.7.1") are those of the *Intel 82599 10 GbE Controller Datasheet*, revision 3.4,
//! November 2019 (document 331520-005). The *Intel Ethernet Controller X540 Datasheet* keeps the
//! offsets and layouts given here; what differs there is said where it differs. Where only the group of a register is
//! cited (statistics: 8.2.3.23), the data sheet has one short section per register in that group.
//!
//! - [`regs`]: registers of the control path and of the queues, each beside a module of its bits.
//! - [`stats`]: statistics registers, with their read-to-clear rule and their widths.
//! - [`RxDesc`]: advanced receive descriptor, as posted and as written back.
//! - [`TxDesc`]: advanced transmit data and context descriptors and their write-back.
//! - [`device`]: PCI identities.
//!
//! Life of a layout:
//! 1. A driver builds descriptors ([`RxDesc::post`], [`TxDesc::data`], [`TxDesc::context`]); any argument fits, wide
//!    values are masked to their field.
//! 2. Device or model decodes the same type; every bit pattern is a value, unknown ones keep their number.
//! 3. The device writes it back ([`RxDesc::write_back`], [`TxDesc::write_back`]); the driver decodes.
//!
//! Limits: no virtualization (VMDq, SR-IOV), DCB, FCoE, LinkSec, IPsec, flow director or header split layouts.
#![forbid(unsafe_code)]

pub mod device;
pub mod regs;
mod rx;
pub mod stats;
mod tx;

pub use rx::{PacketType, RssType, RxDesc, RxWriteBack, rx_error, rx_status};
pub use tx::{Context, L4Type, TxData, TxDesc, TxKind, tx_cmd, tx_popts};

/// A queue number, 0 to 127: 82599 7.1.9 (receive) and 7.2.3.3 (transmit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue(u8);

impl Queue {
    /// Queues of the device, in each direction.
    pub const COUNT: u8 = 128;

    /// Queue `n`, if the device has it.
    pub const fn new(n: u8) -> Option<Self> {
        if n < Self::COUNT { Some(Self(n)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number, to index with.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Bytes of one descriptor of any kind (82599 7.1.6, 7.2.3.2).
pub const DESC_BYTES: usize = 16;
/// Bytes in the register window, BAR 0 (82599 8.1: 128 KiB of internal registers).
pub const BAR_BYTES: usize = 128 * 1024;
/// The longest frame the device carries, CRC included (82599 1.6: jumbo frames of up to 15.5 KB).
pub const MAX_FRAME_BYTES: usize = 15_872;
/// Ring lengths in bytes are multiples of this (82599 8.2.3.8.3, 8.2.3.9.7); ring bases are aligned to it.
pub const RING_ALIGN: usize = 128;
