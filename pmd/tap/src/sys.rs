//! The system calls that have no safe wrapper: ioctls of `/dev/net/tun` (tun.c, `linux/if_tun.h`) and of interfaces
//! (netdevice(7)). Nothing else in the crate is unsafe.

use std::fs::{File, OpenOptions};
use std::io::{self, Error};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

use libc::{c_int, c_short, c_ulong, ifreq};

/// Where tap interfaces come from.
pub const DEVICE: &str = "/dev/net/tun";
/// Longest name of an interface, in bytes.
pub const NAME_LEN: usize = libc::IFNAMSIZ - 1;

/// `_IOW('T', number, int)` of `linux/if_tun.h`.
const fn tun_write(number: u8) -> c_ulong {
    1 << 30 | (size_of::<c_int>() as c_ulong) << 16 | (b'T' as c_ulong) << 8 | number as c_ulong
}
/// `_IOR('T', number, unsigned int)`.
const fn tun_read(number: u8) -> c_ulong {
    2 << 30 | (size_of::<c_int>() as c_ulong) << 16 | (b'T' as c_ulong) << 8 | number as c_ulong
}
const SET_IFF: c_ulong = tun_write(202);
const SET_PERSIST: c_ulong = tun_write(203);
const SET_OFFLOAD: c_ulong = tun_write(208);
const GET_IFF: c_ulong = tun_read(210);
const SET_HEADER: c_ulong = tun_write(216);

/// What the interface may be asked to leave to us (`TUN_F_...`).
pub const OFFLOAD_CHECKSUM: c_ulong = 0x01;
/// TCP segmentation, both IPs, with ECN.
pub const OFFLOAD_TSO: c_ulong = 0x02 | 0x04 | 0x08;
/// UDP segmentation, both IPs; since Linux 6.2.
pub const OFFLOAD_USO: c_ulong = 0x20 | 0x40;

/// An `ioctl` that reads and writes an `ifreq`.
fn with_request(fd: RawFd, request: c_ulong, arg: &mut ifreq) -> io::Result<()> {
    // SAFETY: all requests of this file that come here read and write one `ifreq`, which `arg` is.
    if unsafe { libc::ioctl(fd, request as _, &raw mut *arg) } < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
}

/// An `ioctl` whose argument is a number.
fn with_number(fd: RawFd, request: c_ulong, arg: c_ulong) -> io::Result<()> {
    // SAFETY: all requests of this file that come here take a number and touch no memory.
    if unsafe { libc::ioctl(fd, request as _, arg) } < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// A request about the interface `name`, which is cut to what fits.
fn request(name: &str) -> ifreq {
    // SAFETY: an `ifreq` is numbers and bytes, for which zero is a value.
    let mut r: ifreq = unsafe { core::mem::zeroed() };
    for (to, from) in r.ifr_name.iter_mut().zip(name.bytes().take(NAME_LEN)) {
        *to = from as _;
    }
    r
}

fn name_of(r: &ifreq) -> String {
    r.ifr_name.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8)).collect()
}

/// Opens the device; an interface is still to be attached.
pub fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
}

/// How an interface is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Several queues may be attached.
    pub multi_queue: bool,
    /// It must not exist.
    pub exclusive: bool,
}

/// What is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The interface's name: the kernel's choice if a pattern was asked for.
    pub name: String,
    /// It stays when nobody has it open.
    pub persistent: bool,
}

/// Attaches a queue of the interface `name`, which is made if it does not exist.
pub fn attach(tun: &File, name: &str, how: Attach) -> io::Result<()> {
    let mut r = request(name);
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    if how.multi_queue {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    if how.exclusive {
        flags |= libc::IFF_TUN_EXCL;
    }
    r.ifr_ifru.ifru_flags = flags as c_short;
    with_request(tun.as_raw_fd(), SET_IFF, &mut r)
}

/// What is attached now. `EBADFD` if the interface was deleted.
pub fn attached(tun: &File) -> io::Result<Attached> {
    let mut r = request("");
    with_request(tun.as_raw_fd(), GET_IFF, &mut r)?;
    // SAFETY: the kernel wrote the flags.
    let flags = c_int::from(unsafe { r.ifr_ifru.ifru_flags });
    Ok(Attached { name: name_of(&r), persistent: flags & libc::IFF_PERSIST != 0 })
}

/// The interface stays when nobody has it open.
pub fn set_persistent(tun: &File) -> io::Result<()> {
    with_number(tun.as_raw_fd(), SET_PERSIST, 1)
}

/// Says which offloads are ours.
pub fn set_offload(tun: &File, offload: c_ulong) -> io::Result<()> {
    with_number(tun.as_raw_fd(), SET_OFFLOAD, offload)
}

/// Says how long the header before each frame is.
pub fn set_header(tun: &File, bytes: usize) -> io::Result<()> {
    let bytes = bytes as c_int;
    // SAFETY: the request reads an int, which lives.
    let r = unsafe { libc::ioctl(tun.as_raw_fd(), SET_HEADER as _, &raw const bytes) };
    if r < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Interfaces of the network namespace that the calling thread was in as it was made.
#[derive(Debug)]
pub struct Interfaces(UnixDatagram);

impl Interfaces {
    pub fn new() -> io::Result<Self> {
        // Any socket will do: what is not for its protocol goes to the interfaces.
        UnixDatagram::unbound().map(Self)
    }
    fn call(&self, what: c_ulong, r: &mut ifreq) -> io::Result<()> {
        with_request(self.0.as_raw_fd(), what, r)
    }
    fn flags(&self, name: &str) -> io::Result<(ifreq, c_int)> {
        let mut r = request(name);
        self.call(libc::SIOCGIFFLAGS as _, &mut r)?;
        // SAFETY: the kernel wrote the flags.
        let flags = c_int::from(unsafe { r.ifr_ifru.ifru_flags });
        Ok((r, flags))
    }
    /// Whether the interface is up.
    pub fn is_up(&self, name: &str) -> io::Result<bool> {
        Ok(self.flags(name)?.1 & libc::IFF_UP != 0)
    }
    /// Takes it up.
    pub fn set_up(&self, name: &str) -> io::Result<()> {
        let (mut r, flags) = self.flags(name)?;
        r.ifr_ifru.ifru_flags = (flags | libc::IFF_UP) as c_short;
        self.call(libc::SIOCSIFFLAGS as _, &mut r)
    }
    /// Longest network packet, in bytes.
    pub fn mtu(&self, name: &str) -> io::Result<u32> {
        let mut r = request(name);
        self.call(libc::SIOCGIFMTU as _, &mut r)?;
        // SAFETY: the kernel wrote the MTU.
        Ok(unsafe { r.ifr_ifru.ifru_mtu }.try_into().unwrap_or(0))
    }
    pub fn set_mtu(&self, name: &str, mtu: u32) -> io::Result<()> {
        let mut r = request(name);
        r.ifr_ifru.ifru_mtu = mtu.try_into().unwrap_or(c_int::MAX);
        self.call(libc::SIOCSIFMTU as _, &mut r)
    }
    /// The interface's address.
    pub fn mac(&self, name: &str) -> io::Result<[u8; 6]> {
        let mut r = request(name);
        self.call(libc::SIOCGIFHWADDR as _, &mut r)?;
        // SAFETY: the kernel wrote the address.
        let data = unsafe { r.ifr_ifru.ifru_hwaddr }.sa_data;
        Ok(core::array::from_fn(|i| data[i] as u8))
    }
    pub fn set_mac(&self, name: &str, mac: [u8; 6]) -> io::Result<()> {
        let mut r = request(name);
        // SAFETY: a `sockaddr` is numbers and bytes, for which zero is a value.
        let mut address: libc::sockaddr = unsafe { core::mem::zeroed() };
        address.sa_family = libc::ARPHRD_ETHER;
        for (to, from) in address.sa_data.iter_mut().zip(mac) {
            *to = from as _;
        }
        r.ifr_ifru.ifru_hwaddr = address;
        self.call(libc::SIOCSIFHWADDR as _, &mut r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_numbers_of_the_kernels_header() {
        // linux/if_tun.h, with the encoding of asm-generic/ioctl.h, as strace shows them.
        assert_eq!(
            [SET_IFF, SET_PERSIST, SET_OFFLOAD, SET_HEADER],
            [0x4004_54ca, 0x4004_54cb, 0x4004_54d0, 0x4004_54d8]
        );
        assert_eq!(GET_IFF, 0x8004_54d2);
    }

    #[test]
    fn names_that_are_too_long_are_cut() {
        assert_eq!(name_of(&request("0123456789abcdefghi")), "0123456789abcde");
        assert_eq!(name_of(&request("rw%d")), "rw%d");
    }
}
