//! The Intel 82599 in software: the other side of the ixgbe driver, written from the same data sheet
//! (*Intel 82599 10 GbE Controller Datasheet*, revision 3.4, November 2019; "82599 x.y" below).
//!
//! - [`Device`] is a handle: modes, link, counters, the IOMMU's faults, the log.
//! - [`Engine`] is the data path: registers in, frames and write-backs out. One thread owns it.
//! - [`Stepped`] runs it step by step, deterministically; [`spawn`] and [`run`] on a thread of its own, several on one
//!   if wanted.
//! - [`Wire`] is what is at the end of the cable: [`Cable`] joins two devices, [`Script`] is for tests.
//! - [`Mode`] has it work, lie or stall.
//!
//! Life of a device:
//! 1. It is made over an arena for rings ([`Device::new`], [`Stepped::new`]): power-on, all registers as after reset.
//! 2. A driver takes its bus, resets it, maps its packet memory, sets up queues. The engine acts on registers in its
//!    next step: RST, ENABLE, DMAIDONE, AUTO_RD and LINKS show what has really been done.
//! 3. Frames: descriptors are fetched in batches after a doorbell; payload is read or written; descriptors are written
//!    back in groups, body first, owner word last with Release.
//! 4. Every access goes through one place (`dma`): translated, counted by cause, and logged if [`Parameters::logged`].
//!    An access to what is not mapped is counted and recorded, and hangs its queue, as a master abort would.
//! 5. After a reset nothing on the die refers to memory any more; arenas are let go a step after they are unmapped.
//!
//! Two threads: registers and descriptor words are atomics on both sides. Payload is plain memory, handed over by the
//! tail register (Release by the driver, Acquire here) and handed back by the owner word. A device that lies keeps its
//! hands off every buffer it has reported done.
//!
//! Limits, and where the model decides what the data sheet leaves open:
//! - Not here: legacy descriptors, segmentation, header split, RSC, VMDq, SR-IOV, DCB, flow director, LinkSec, IPsec,
//!   FCoE, SCTP checksum insertion, interrupts (causes are set, nothing is signalled), flow control frames.
//! - A malformed transmit descriptor hangs its queue ([`Malformed`]); hardware may do worse.
//! - GPRC counts at the MAC, before packet buffer and descriptors: GPRC = frames to the host + MPC + QPRDC + those that
//!   wait in the packet buffer + [`Count::RxNoQueue`].
//! - A receive frame needs all its descriptors before the first is used. Write-back groups never wait beyond a burst.
//! - With [`Parameters::pause`] the wire is not asked while the packet buffer holds frames, as if 802.3x flow control
//!   worked without delay.
//! - A step is no unit of time, and the model has no line rate: the wire sets the pace.
// UNSAFETY: plays the device, which reads and writes memory behind the driver's back.
#![allow(unsafe_code)]

mod bus;
mod config;
mod count;
mod dma;
mod engine;
mod filters;
mod iommu;
mod mac;
mod malformed;
mod modes;
mod offload;
mod packet_buffer;
mod parse;
mod queue;
mod register_map;
mod regs;
mod rx;
mod thread;
mod tx;
mod wire;

pub use bus::{Device, ModelBus, Stepped, SteppedBus};
pub use count::{Cause, Count, Direction, Tally};
pub use dma::{Event, Fault};
pub use engine::Engine;
pub use malformed::Malformed;
pub use modes::{Lie, Lies, Mode, Stall};
pub use thread::{ModelThread, run, spawn};
pub use wire::{Arrival, Cable, Script, Wire};

/// What the data sheet leaves to the device, and what kind of device it is. Values out of range are brought into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The MAC address in its EEPROM.
    pub address: [u8; 6],
    /// Receive descriptors fetched with one read, at most: 1 to 64.
    pub rx_fetch: usize,
    /// Receive descriptors of a queue on the die: 16 to 64.
    pub rx_cache: usize,
    /// Receive descriptors written back with one write, at most: 1 to 64.
    pub rx_write_back: usize,
    /// Transmit descriptors fetched with one read, at most: 1 to 40.
    pub tx_fetch: usize,
    /// Frames each way, and per transmit queue, in one step: 1 to 1024.
    pub burst: usize,
    /// Frames wait on the wire, rather than be missed, while others wait for descriptors.
    pub pause: bool,
    /// Every access is logged ([`Device::take_log`]), and counters are published in every step. For stepped devices.
    pub logged: bool,
}

impl Default for Parameters {
    /// A quick device: whole cache lines and more at a time.
    fn default() -> Self {
        Self {
            address: [0x02, 0x00, 0x00, 0x00, 0x00, 0x01],
            rx_fetch: 32,
            rx_cache: 64,
            rx_write_back: 8,
            tx_fetch: 40,
            burst: 64,
            pause: false,
            logged: false,
        }
    }
}

impl Parameters {
    fn in_bounds(self) -> Self {
        let rx_cache = self.rx_cache.clamp(16, queue::ON_DIE);
        Self {
            rx_cache,
            rx_fetch: self.rx_fetch.clamp(1, rx_cache),
            rx_write_back: self.rx_write_back.clamp(1, queue::ON_DIE),
            tx_fetch: self.tx_fetch.clamp(1, ixgbe_defs::regs::TX_ON_DIE_DESCRIPTORS as usize),
            burst: self.burst.clamp(1, 1024),
            ..self
        }
    }
}
