//! Capture files as ports: pcap and pcapng, in and out. Driver name: `pcap`.
//!
//! - [`Pcap`] opens ports that read a capture, write one, or both.
//! - [`CaptureReader`] reads frames of either format from anything that has bytes; it has no need of a port.
//!
//! Keys of a port with `driver = "pcap"`; at least one of `read` and `write`:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `read` | none | path of a capture or a pipe; its frames are received |
//! | `pace` | `"full"` | `"full"`: as fast as they are asked for. `"recorded"`: at the distances that their stamps have. `"1.5M"`, `"10Gbps"`: frames a second, or bits on the wire |
//! | `loop` | `false` | how often the file is read: a number, or `true` for ever. Stamps go on rising by the mean gap |
//! | `write` | none | path of a file or a pipe; frames that are sent are written there. What was in the file is gone |
//! | `format` | by name | `"pcap"` (nanoseconds) or `"pcapng"`; without it a name that ends in `.pcapng` decides |
//! | `snaplen` | 262144 | bytes of a frame that are written at most, from 14 |
//! | `sync` | `true` | stopping waits until the file is on the disk |
//!
//! Read: pcap with stamps in micro- or nanoseconds; pcapng with any number of sections and interfaces, enhanced, simple and
//! obsolete packet blocks, any resolution of stamps; both in either byte order. A frame's stamp, in nanoseconds since 1970,
//! is in [`mem::Ext::time`] under [`mem::Flags::TIME`]. Written: the stamp of a packet that has one, or else the time of
//! writing; so what is read and sent on is written with the bytes and stamps it had.
//!
//! **Full means wait**: a queue that has handed over `tx_ring` buffers takes no more until the file has them, so give the
//! port `on_full = "wait"` ([`ON_FULL_WAITS`]). No packet is copied on the worker: the thread that writes reads the buffers
//! and sends them back. Checksums still to be put in, and VLAN tags, are put in as they are written; a frame to be cut
//! into segments is written whole, with the checksum of the whole.
//!
//! Life of a port:
//! 1. [`Pcap::open`] checks the keys, and reads the capture up to its first frame: what is no Ethernet capture is refused here.
//!    The file to write is only looked at.
//! 2. `start` empties and locks the file to write, writes its header, and starts the thread. A pipe is opened as soon as
//!    somebody reads it; until then the link is down, and what is sent waits.
//! 3. When the last frame was delivered, `input` says so. Damage ends the input as well, and is a fault that names the byte;
//!    all frames before it were delivered. A disk that is full is a fault and takes the link down: the file ends with a
//!    whole frame, and what is sent later is dropped as `link_down`.
//! 4. `rx_off` ends receiving. What is not written 1.5 s later is given up, and counted as dropped (`stopping`).
//! 5. `stop` ends the thread, brings the file to the disk, and gives all buffers back.
//!
//! Limits: only Ethernet; frames up to 262,144 bytes and 64 buffers; shorter than an Ethernet header they are dropped
//! (`too_short`). All frames come in by the first receive queue; several transmit queues write one file, each in order. The
//! length that a cut frame had is not kept, nor are comments, names and statistics of a pcapng file; a check sequence that
//! is in the file stays in the frame. Reading blocks its worker for as long as the disk takes for 64 KiB; a pipe never does.
#![forbid(unsafe_code)]

mod absent;
mod claims;
mod finish;
mod keys;
mod output;
mod pace;
mod port;
mod read;
mod rx;
mod source;
mod tx;
mod write;
mod writer;

use ::port::{Driver, OpenEnv, OpenPort, PortError};

pub use read::{CaptureReader, Frame, MAX_FRAME, Next, Problem, ReadError};

/// The driver's name.
const NAME: &str = "pcap";
/// Most queue pairs of a port.
const MAX_QUEUES: u16 = 64;
/// A full port of this driver is one to wait for, unless the configuration says otherwise: a file is to have all packets.
pub const ON_FULL_WAITS: bool = true;

/// Opens captures.
#[derive(Default)]
pub struct Pcap {
    claims: claims::Claims,
}

impl Pcap {
    /// No captures are open.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Driver for Pcap {
    fn name(&self) -> &'static str {
        NAME
    }
    fn keys(&self) -> &'static [&'static str] {
        &keys::KNOWN
    }
    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError> {
        Ok(Box::new(port::PcapPort::open(keys::Keys::read(cfg)?, env, &self.claims)?))
    }
}

/// A key of ours has `problem`.
fn wrong(key: &str, problem: impl Into<String>) -> PortError {
    PortError::Config { driver: NAME, key: key.into(), problem: problem.into() }
}
