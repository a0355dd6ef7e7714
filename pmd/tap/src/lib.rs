//! Tap interfaces: ports whose other side is Linux (tun(4), Documentation/networking/tuntap.rst). Driver name: `tap`.
//!
//! What Linux sends out of the interface is received here, and what is sent here Linux receives: the way into the host's own
//! protocol stack, to containers and virtual machines on it, and to programs such as tcpdump.
//!
//! - [`Tap`] opens ports; each is one interface.
//!
//! Keys of a port with `driver = "tap"`:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `interface` | `"rw%d"` | its name; for `%d` the kernel puts the next free number |
//! | `mtu` | the kernel's: 1500 | longest network packet in bytes, 68 to 65517 |
//! | `mac` | the kernel's: random | address of Linux's side, `"02:00:00:00:00:01"` |
//! | `persist` | `false` | it stays when the port goes |
//! | `up` | `true` | the port takes it up when it starts |
//!
//! Checksums and segmentation are left to whoever can do them: a packet from Linux may have its checksum still to be put in
//! ([`mem::Flags::TX_L4`]), or be as long as 64 KiB, to be cut up ([`mem::Flags::TSO`], [`mem::Flags::USO`]); packets that
//! are sent may be so as well. VLAN tags are in the bytes.
//!
//! Life of a port:
//! 1. [`Tap::open`][port::Driver::open] makes the interface, which takes CAP_NET_ADMIN; or attaches to one that was made beforehand and
//!    stays by itself. One that another program has open is refused.
//! 2. `start` attaches a file for each queue, and takes the interface up. Linux chooses the queue of a flow by the queue
//!    that the flow's packets were last sent by.
//! 3. Each packet is one `read` into private memory, from where it is copied into buffers, or one `writev` from its buffers.
//!    A packet that finds no buffer waits, and behind it the kernel's queue, which counts what it loses (`rx_missed`).
//! 4. While the interface is down, what is sent is dropped as `link_down`. One that is deleted is made again, by the next
//!    call of [`link`][port::OpenPort::link], with its name, address and MTU; what else was set up on it, IP addresses for one,
//!    has gone with it. From then on the kernel's counts are unknown.
//! 5. `rx_off` ends reading; what the kernel still has stays there. `stop` closes the files but one; with the port the last
//!    goes, and with it the interface, also when the process is killed.
//!
//! Limits: a system call for each packet, about a microsecond; frames up to 64 KiB of IP (no BIG TCP); no `TX_L3`. An
//! interface that is moved to another network namespace works on, but its link is taken for up and its counts are unknown.
//! The interface is made in the network namespace of the thread that opens the port.
// UNSAFETY: ioctls of tun and of interfaces; all of it is in `sys`.
#![allow(unsafe_code)]

mod claim;
mod device;
mod keys;
mod mailbox;
mod port;
mod rx;
mod stats;
mod sys;
mod tx;
mod vnet;

use ::port::{Driver, OpenEnv, OpenPort, PortError};

/// The driver's name.
const NAME: &str = "tap";
/// Most queue pairs of a port.
const MAX_QUEUES: u16 = 16;

/// Opens tap interfaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tap;

impl Driver for Tap {
    fn name(&self) -> &'static str {
        NAME
    }
    fn keys(&self) -> &'static [&'static str] {
        &keys::KNOWN
    }
    fn open(&self, cfg: &toml::Table, env: &OpenEnv) -> Result<Box<dyn OpenPort>, PortError> {
        Ok(Box::new(port::TapPort::open(&keys::Keys::read(cfg)?, env)?))
    }
}
