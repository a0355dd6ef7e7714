//! Driver for the Intel 82599 and X540, 10 Gb/s Ethernet. Driver name: `ixgbe`.
//!
//! Written against the *Intel 82599 10 GbE Controller Datasheet*, revision 3.4 ("82599 x.y" in comments, or only the
//! section number), and the *Intel Ethernet Controller X540 Datasheet* where that differs. Registers and descriptors are
//! those of `ixgbe-defs`; nothing is asked of a device but through a [`hw::Bus`].
//!
//! - [`Ixgbe`] is the control side of one device (a [`port::OpenPort`]): reset, start, link, filters, statistics, stop.
//! - [`IxgbeDriver`] opens devices for a runtime, on a bus that the caller finds for them.
//! - Queues are [`port::RxQueue`] and [`port::TxQueue`]; they are made by `start`.
//!
//! Life of a device:
//! 1. [`Ixgbe::open`] checks what it is and resets it (4.6.3): interrupts off, bus mastering off, reset, EEPROM read,
//!    DMA ready, address known. Nothing moves.
//! 2. `start` clears statistics and filters, sets up packet buffers, RSS and rings, switches the queues on (4.6.7, 4.6.8)
//!    and restarts the link (4.6.4). A queue gets its buffers when a worker attaches it.
//! 3. Receive: buffers are posted in bulk with one tail write; the device fills them and sets DD; what it says about a
//!    frame is checked, then it is a packet. A frame of several descriptors is taken when its last one is done.
//! 4. Transmit: a tail write publishes a burst, whose last descriptor asks for a report (RS); `reap` frees all up to
//!    there.
//! 5. `rx_off`, drain, detach, `stop`: the device is reset, then rings and buffers go back. If it does not reset they are
//!    quarantined: neither is used again while the process lives.
//!
//! Keys of a port with `driver = "ixgbe"`: `device`, which the bus finder understands (`"0000:01:00.0"`); `rss`:
//! `"addresses"` (default: TCP by addresses and ports, all else by addresses) or `"ports"` (UDP by ports too, which
//! parts the fragments of a datagram from its flow).
//!
//! What no hardware has confirmed: **all of it.** The driver has run against `ixgbe-model` only, which was written from
//! the same data sheet, so that a misreading shared by both would not show. To be watched first on a card: the time a
//! reset and the EEPROM take, master disable under load (5.2.5.3.2), whether GPRC counts frames that find no room
//! (statistics here assume so), the order of writes to packet buffer registers, SFP+ modules (the link mode is left as
//! the EEPROM has it, no module is looked at, no laser switched), the X540's PHY (left to its firmware).
//!
//! Limits: no interrupts, no segmentation (TSO) and no receive coalescing, no header split, no VMDq, SR-IOV, DCB, flow
//! director, LinkSec, IPsec, flow control; VLAN filter off; the semaphore shared with firmware (10.5.4) is not taken, as
//! nothing but AUTOC's restart bit is shared with it. Statistics registers stick at 2^32: read them
//! (`device_counts`) at least every four minutes.
#![forbid(unsafe_code)]

mod control;
mod device;
mod filters;
mod guard;
mod init;
mod rx;
mod stats;
mod tx;
mod tx_slow;

use config::Keys;
use hw::Bus;
use port::{Driver, OpenEnv, OpenPort, PortError};

pub use control::Ixgbe;
pub use stats::Statistics;

/// The driver's name.
const NAME: &str = "ixgbe";
/// Most queue pairs: what RSS reaches (7.1.2.8) and statistics tell apart (8.2.3.23.71).
pub const MAX_QUEUES: u16 = 16;
/// Longest frame in bytes, without the frame check sequence.
pub const MAX_FRAME: u16 = 9_600;

/// What a bus says a device is, from its configuration space (9.3.2, 9.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciId {
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
}

/// How receive queues are chosen for UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RssBy {
    /// By addresses: fragments of a datagram stay with its flow.
    #[default]
    Addresses,
    /// By addresses and ports.
    Ports,
}

/// Opens devices on buses that `find` makes of the key `device`.
pub struct IxgbeDriver<F> {
    find: F,
}

impl<F> IxgbeDriver<F> {
    /// `find` gets the value of `device`, and gives the bus and what the device's configuration space says it is.
    pub const fn new<B>(find: F) -> Self
    where
        B: Bus + 'static,
        F: Fn(&str) -> Result<(B, PciId), PortError> + Send + Sync,
    {
        Self { find }
    }
}

impl<B, F> Driver for IxgbeDriver<F>
where
    B: Bus + 'static,
    F: Fn(&str) -> Result<(B, PciId), PortError> + Send + Sync,
{
    fn name(&self) -> &'static str {
        NAME
    }

    fn keys(&self) -> &'static [&'static str] {
        &["device", "rss"]
    }

    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError> {
        let wrong = |e| PortError::key(NAME, e);
        let keys = Keys::new(cfg, self.keys()).map_err(wrong)?;
        let device = keys.need_text("device", "as in device = \"0000:01:00.0\"").map_err(wrong)?;
        let words = [("addresses", RssBy::Addresses), ("ports", RssBy::Ports)];
        let rss = keys.word("rss", RssBy::default(), &words).map_err(wrong)?;
        let (bus, id) = (self.find)(device)?;
        let mut port = Ixgbe::open(bus, id, env)?;
        port.set_rss(rss);
        Ok(Box::new(port))
    }
}
