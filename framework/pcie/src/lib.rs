//! What packets cost on a PCI Express link, by arithmetic alone: no I/O, no clock.
//!
//! - [`Link`]: generation and lanes, and what they carry in each direction ([`Link::signalling`], [`Link::physical`],
//!   [`Link::transaction_layer`]).
//! - [`Parameters`]: how a function and its root port cut transfers up (MPS, MRRS, RCB, header sizes, ECRC).
//! - [`Split`]: the TLPs of one read or write and their bytes on the wire ([`Parameters::write`],
//!   [`Parameters::read`]).
//! - [`Transactions`]: a sum of those by [`Cause`], with the [`Source`] that says who counted.
//! - [`Utilization`] and [`Ceiling`]: how full a link was, and at which packet rate it would be full.
//!
//! Life of a sum:
//! 1. Choose a [`Link`] and the [`Parameters`] of the device on it ([`Parameters::usual`]).
//! 2. Make [`Transactions`] for one source.
//! 3. Add to them: [`Transactions::record`] where each address is known, [`Transactions::estimate`] where only
//!    operations and bytes were counted.
//! 4. Merge queues of the same source, and ask for [`Transactions::utilization`] and [`Transactions::ceiling`].
//!
//! *Upstream* is from the device to the host, *downstream* the other way; a link carries both at once. Bytes "on the
//! wire" are those of TLPs: payload padded to whole double words, headers, framing, sequence number, LCRC and, if on,
//! ECRC. Acks, flow control and skip sets are no TLPs; they are taken off the link's bandwidth ([`Overhead`]).
//!
//! Limits: bandwidth only. Latency, tags, credits, the IOMMU and the root complex can each hold a device below what
//! its link would carry. Of flit mode (generation 6) the optional header words (OHC) are not counted.
//!
//! Sources: *Base*, the PCI Express Base Specification, with section numbers of revision 3.0; *pcie-bench*, Neugebauer
//! et al., "Understanding PCIe performance for end host networking", SIGCOMM 2018, and its published model.
#![forbid(unsafe_code)]

mod cause;
mod error;
mod link;
mod parameters;
mod split;
mod transactions;

pub use cause::{Bus, Cause, Operation, Source};
pub use error::PcieError;
pub use link::{Bandwidth, Generation, Lanes, Link, Overhead};
pub use parameters::{AddressWidth, Completions, Headers, Parameters, ReadBoundary, TlpSize};
pub use split::Split;
pub use transactions::{Ceiling, Totals, Transactions, Utilization};
