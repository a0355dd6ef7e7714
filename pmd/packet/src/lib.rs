//! Linux interfaces as ports, through packet sockets (packet(7)) and rings mapped from the kernel. Driver name: `packet`.
//!
//! For any interface that Linux has, real or virtual, with the kernel's own driver behind it; nothing has to be unbound.
//!
//! - [`Packet`] opens ports; each is one interface.
//! - [`interfaces`] says what there is.
//!
//! Keys of a port with `driver = "packet"`:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `interface` | | the interface, as in `ip link` |
//! | `promiscuous` | true | receive frames for everyone; the interface is put back at the end, even by kill -9. If false, frames for others are filtered out by the kernel |
//! | `fanout` | `"hash"` | how frames are spread over several queues: `"hash"` by flow, both directions alike; `"cpu"` by the core that received them; `"lb"` in turn; `"qm"` by the queue of the device |
//! | `block` | `"128K"` | bytes of a receive block, a multiple of 4096 up to 16M. A frame larger than a block is dropped |
//! | `blocks` | to hold `rx_ring` frames, at least 64 | receive blocks of a queue. Each holds the frames of a millisecond, or fewer: so long may a worker stand still |
//! | `retire` | `"1ms"` | a block that is not full is handed over after this time; the kernel's least is a millisecond |
//! | `qdisc_bypass` | true | send past the interface's queueing discipline, and unseen by tcpdump on the same interface |
//! | `shared` | false | do without the claim that keeps a second Ringwright off the interface |
//!
//! Life of a port:
//! 1. [`Packet::open`][port::Driver::open] finds the interface, checks that its frames fit the buffers, and claims it.
//! 2. `start` opens two or three sockets for a queue: one with a receive ring (`TPACKET_V3`), one with a transmit ring, one
//!    for frames longer than its slots. No frame is let in before all have their place.
//! 3. Receive: the kernel copies frames into blocks and hands a block over when it is full or old enough; frames are copied
//!    into buffers of the pool, those longer than one into chains. A tag that the kernel took out goes back into the bytes;
//!    unfinished checksums and segmentation stay as they are, as [`mem::Flags`] say.
//! 4. Transmit: frames are copied into slots, and one call a burst has the kernel take them.
//! 5. The interface may go down, or be deleted and made again: [`link`][port::OpenPort::link] sees it, opens new sockets and
//!    leaves their rings in the queues' mailboxes. Meanwhile what is sent is dropped with reason `link_down`.
//! 6. `rx_off` filters everything out and waits, some milliseconds, until the kernel has handed over all blocks; then what
//!    the queues count and drop is exactly what the kernel delivered. `stop` closes the sockets.
//!
//! What goes out is copied by the kernel, as is what comes in: one copy more each way than a driver with the device to
//! itself. Frames that an interface's own protocol stack sends are not received, and the stack sees all frames that come in.
//!
//! Limits: Ethernet frames only; the kernel tells blocks apart no faster than every millisecond, so that a lone frame waits
//! for up to that long; what the kernel took to send is not known to be sent (`tx_sent` is unknown); a frame with an IPv4
//! header checksum to be put in is refused; received hashes are not asked for. Sockets are opened in the network namespace
//! of the thread that calls `start` and `link`: one and the same.
// UNSAFETY: system calls, and memory that the kernel writes; all of it is in `sys`, `mapping`, `rx_ring` and `tx_ring`.
#![allow(unsafe_code)]

mod block;
mod claim;
mod control;
mod frame;
mod iface;
mod keys;
mod layout;
mod mapping;
mod open;
mod run;
mod rx;
mod rx_ring;
mod send;
mod swap;
mod sys;
mod tx;
mod tx_ring;
mod vnet;

use port::{Driver, OpenEnv, OpenPort, PortError};

pub use iface::{Interface, interfaces};

/// The driver's name.
const NAME: &str = "packet";
/// Most queue pairs of a port.
const MAX_QUEUES: u16 = 16;

/// Opens ports on network interfaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet;

impl Driver for Packet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn keys(&self) -> &'static [&'static str] {
        &keys::Keys::KNOWN
    }

    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError> {
        Ok(Box::new(control::PacketPort::open(keys::Keys::read(cfg)?, env)?))
    }
}
