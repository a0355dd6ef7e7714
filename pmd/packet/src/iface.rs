//! What the kernel says of interfaces.
//!
//! Asked through a socket, so that the answers are of the network namespace in which the socket was made. What only sysfs
//! knows (node, speed) is taken from there if the mount is of the same namespace, which the interface's index shows.

use std::fs;
use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hw::Node;

use crate::sys;

/// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK` (`<linux/if_arp.h>`): those whose frames have an Ethernet header.
const ETHERNETS: [u16; 2] = [1, 772];

/// A network interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub index: u32,
    /// Its address (IEEE 802); `None` if it has no Ethernet frames.
    pub mac: Option<[u8; 6]>,
    /// Longest network packet in bytes.
    pub mtu: u32,
    /// It is switched on.
    pub up: bool,
    /// It has a carrier: frames can pass.
    pub running: bool,
    /// The kernel's driver behind it (`veth`, `bridge`, `ixgbe`, ...), if it says.
    pub driver: Option<String>,
}

/// The interfaces of the caller's network namespace, by number.
///
/// # Errors
/// What the kernel says.
pub fn interfaces() -> Result<Vec<Interface>> {
    let ask = Ask::new()?;
    let mut all = Vec::new();
    for (name, index) in sys::interface_names()? {
        // One that is gone by now is none.
        all.extend(ask.about(&name, index));
    }
    all.sort_by_key(|i| i.index);
    Ok(all)
}

/// What an interface is, as far as it does not change.
pub struct Hardware {
    /// Its index.
    pub index: u32,
    /// Whether its frames are Ethernet frames.
    pub ethernet: bool,
    /// Its address.
    pub mac: [u8; 6],
    /// Longest network packet in bytes.
    pub mtu: u32,
}

/// A socket to ask with.
pub struct Ask(OwnedFd);

impl Ask {
    /// For the caller's network namespace.
    pub fn new() -> Result<Self> {
        sys::query_socket().map(Self)
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn about(&self, name: &str, index: u32) -> Option<Interface> {
        let (kind, mac) = sys::hardware_of(self.fd(), name).ok()?;
        let (up, running) = self.state(name).ok()?;
        Some(Interface {
            name: name.to_owned(),
            index,
            mac: ETHERNETS.contains(&kind).then_some(mac),
            mtu: sys::mtu_of(self.fd(), name).ok()?,
            up,
            running,
            driver: sys::driver_of(self.fd(), name),
        })
    }

    /// The interface `name`.
    pub fn hardware(&self, name: &str) -> Result<Hardware> {
        let index = self.index(name)?;
        let (kind, mac) = sys::hardware_of(self.fd(), name)?;
        Ok(Hardware { index, ethernet: ETHERNETS.contains(&kind), mac, mtu: self.mtu(name)? })
    }
    /// The index of the interface `name`.
    pub fn index(&self, name: &str) -> Result<u32> {
        sys::index_of(self.fd(), name)
    }
    /// The name of interface `index`, now.
    pub fn name(&self, index: u32) -> Result<String> {
        sys::name_of(self.fd(), index)
    }
    /// Whether it is switched on, and has a carrier.
    pub fn state(&self, name: &str) -> Result<(bool, bool)> {
        let flags = sys::flags_of(self.fd(), name)?;
        Ok((flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0))
    }
    /// Longest network packet in bytes.
    pub fn mtu(&self, name: &str) -> Result<u32> {
        sys::mtu_of(self.fd(), name)
    }
}

/// A file of sysfs about interface `name`, if sysfs shows interface `index` under that name.
fn sysfs(name: &str, index: u32, file: &str) -> Option<String> {
    let read = |file| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
    (read("ifindex")?.trim().parse() == Ok(index)).then(|| read(file)).flatten()
}

/// The node that the device behind an interface is attached to; `None` if unknown or there is no device.
pub fn node(name: &str, index: u32) -> Option<Node> {
    // -1 is unknown.
    sysfs(name, index, "device/numa_node")?.trim().parse().ok().map(Node::new)
}

/// Bits per second; `None` if unknown or there is no device, as the kernel makes up a speed for virtual ones.
pub fn speed(name: &str, index: u32) -> Option<u64> {
    fs::metadata(format!("/sys/class/net/{name}/device")).ok()?;
    let megabits: u64 = sysfs(name, index, "speed")?.trim().parse().ok()?;
    (megabits > 0 && megabits < u64::from(u32::MAX)).then_some(megabits * 1_000_000)
}
