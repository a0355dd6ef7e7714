//! The system calls behind packet sockets and interfaces. Nothing else in the crate calls the kernel, and all unsafe code
//! is here and in [`crate::mapping`].

use core::ffi::{CStr, c_char, c_int, c_void};
use std::io::{Error, IoSlice, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::layout::{LinkAddress, OTHERHOST};

/// `SIOCETHTOOL`, `ETHTOOL_GDRVINFO` (`<linux/sockios.h>`, `<linux/ethtool.h>`).
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 3;

fn check(r: c_int) -> Result<()> {
    if r < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// A packet socket that receives nothing yet: it has no protocol.
pub fn packet_socket() -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: numbers only.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    check(fd)?;
    // SAFETY: a fresh descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket to ask about interfaces with, for which no rights are needed.
pub fn query_socket() -> Result<OwnedFd> {
    // SAFETY: numbers only.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(fd)?;
    // SAFETY: a fresh descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option.
pub fn set<T: IntoBytes + Immutable>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> Result<()> {
    let bytes = value.as_bytes();
    // SAFETY: the kernel reads as many bytes as there are.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, bytes.as_ptr().cast(), bytes.len() as libc::socklen_t)
    })
}

/// Reads an option.
pub fn get<T: FromBytes + IntoBytes>(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> Result<T> {
    let mut value = T::new_zeroed();
    let bytes = value.as_mut_bytes();
    let mut len = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes no more bytes than there are.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, bytes.as_mut_ptr().cast(), &raw mut len) })?;
    Ok(value)
}

/// Which frames a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// None.
    Nothing,
    /// Those that are not for somebody else.
    NotOthers,
    /// All.
    Everything,
}

/// Has the kernel take only some frames from now on. Those filtered are not counted (`SO_ATTACH_FILTER`, socket(7)).
pub fn filter(fd: BorrowedFd<'_>, which: Filter) -> Result<()> {
    const fn op(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let nothing = [op(RETURN, 0, 0, 0)];
    let mine = [
        op(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            0,
            0,
            (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32,
        ),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, OTHERHOST),
        op(RETURN, 0, 0, 0),
        op(RETURN, 0, 0, u32::MAX),
    ];
    let program: &[libc::sock_filter] = match which {
        Filter::Nothing => &nothing,
        Filter::NotOthers => &mine,
        Filter::Everything => {
            return match set(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0) {
                // There was none.
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(()),
                other => other,
            };
        }
    };
    let prog = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which it only reads, during the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const prog).cast(),
            size_of_val(&prog) as libc::socklen_t,
        )
    })
}

/// Binds a packet socket to an interface; with `all` it receives all protocols, without it none.
pub fn bind(fd: BorrowedFd<'_>, ifindex: u32, all: bool) -> Result<()> {
    let protocol = if all { (libc::ETH_P_ALL as u16).to_be_bytes() } else { [0; 2] };
    let family = libc::AF_PACKET as u16;
    let address =
        LinkAddress { family: family.into(), protocol, ifindex: ifindex.into(), ..LinkAddress::default() };
    let bytes = address.as_bytes();
    // SAFETY: the kernel reads as many bytes as there are.
    check(unsafe { libc::bind(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len() as libc::socklen_t) })
}

/// The interface that a packet socket is bound to; `None` once it was deleted.
pub fn bound_to(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut address = LinkAddress::default();
    let bytes = address.as_mut_bytes();
    let mut len = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes no more bytes than there are.
    let r = unsafe { libc::getsockname(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut len) };
    let index = address.ifindex.get();
    (r == 0 && index != 0 && index != u32::MAX).then_some(index)
}

/// Has the kernel send what is in the transmit ring.
#[inline]
pub fn kick(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no bytes.
    let r = unsafe {
        libc::sendto(fd.as_raw_fd(), core::ptr::null(), 0, libc::MSG_DONTWAIT, core::ptr::null(), 0)
    };
    check(r as c_int)
}

/// Sends one frame.
pub fn send(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> Result<()> {
    // SAFETY: all zeroes is a message without address and control data.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    // An `IoSlice` is laid out as an `iovec`; the kernel only reads.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the parts are alive for the call.
    let r = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
    if r < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// An interface request (netdevice(7)) for the interface `name`.
fn request(name: &str) -> Result<libc::ifreq> {
    // SAFETY: all zeroes is an empty request.
    let mut r: libc::ifreq = unsafe { core::mem::zeroed() };
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= r.ifr_name.len() || bytes.contains(&0) {
        return Err(Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in r.ifr_name.iter_mut().zip(bytes) {
        *to = *from as c_char;
    }
    Ok(r)
}

fn ioctl(fd: BorrowedFd<'_>, what: libc::c_ulong, r: &mut libc::ifreq) -> Result<()> {
    // SAFETY: each request used here reads and writes within an `ifreq`; what its pointer says is the caller's.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), what as _, core::ptr::from_mut(r)) })
}

fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name of interface `index`, now.
pub fn name_of(fd: BorrowedFd<'_>, index: u32) -> Result<String> {
    // SAFETY: all zeroes is an empty request.
    let mut r: libc::ifreq = unsafe { core::mem::zeroed() };
    r.ifr_ifru.ifru_ifindex = index as c_int;
    ioctl(fd, libc::SIOCGIFNAME, &mut r)?;
    Ok(text(&r.ifr_name))
}

/// The index of the interface `name`.
pub fn index_of(fd: BorrowedFd<'_>, name: &str) -> Result<u32> {
    let mut r = request(name)?;
    ioctl(fd, libc::SIOCGIFINDEX, &mut r)?;
    // SAFETY: the kernel has set this member.
    Ok(unsafe { r.ifr_ifru.ifru_ifindex } as u32)
}

/// `IFF_*` flags.
pub fn flags_of(fd: BorrowedFd<'_>, name: &str) -> Result<c_int> {
    let mut r = request(name)?;
    ioctl(fd, libc::SIOCGIFFLAGS, &mut r)?;
    // SAFETY: the kernel has set this member.
    Ok(c_int::from(unsafe { r.ifr_ifru.ifru_flags } as u16))
}

/// Longest network packet in bytes.
pub fn mtu_of(fd: BorrowedFd<'_>, name: &str) -> Result<u32> {
    let mut r = request(name)?;
    ioctl(fd, libc::SIOCGIFMTU, &mut r)?;
    // SAFETY: the kernel has set this member.
    Ok(unsafe { r.ifr_ifru.ifru_mtu } as u32)
}

/// Kind of hardware (`ARPHRD_*`) and address.
pub fn hardware_of(fd: BorrowedFd<'_>, name: &str) -> Result<(u16, [u8; 6])> {
    let mut r = request(name)?;
    ioctl(fd, libc::SIOCGIFHWADDR, &mut r)?;
    // SAFETY: the kernel has set this member.
    let a = unsafe { r.ifr_ifru.ifru_hwaddr };
    let mut address = [0; 6];
    for (to, from) in address.iter_mut().zip(a.sa_data) {
        *to = from as u8;
    }
    Ok((a.sa_family, address))
}

/// `struct ethtool_drvinfo`, as far as it is of interest.
#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [c_char; 32],
    rest: [u8; 160],
}

/// The kernel's driver behind an interface, if it has a name.
pub fn driver_of(fd: BorrowedFd<'_>, name: &str) -> Option<String> {
    let mut info = DriverInfo { cmd: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    let mut r = request(name).ok()?;
    r.ifr_ifru.ifru_data = (&raw mut info).cast();
    ioctl(fd, SIOCETHTOOL, &mut r).ok()?;
    let _ = info.rest;
    Some(text(&info.driver)).filter(|t| !t.is_empty())
}

/// Names and indexes of all interfaces.
pub fn interface_names() -> Result<Vec<(String, u32)>> {
    // SAFETY: gives a list that ends with index 0, or nothing.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(Error::last_os_error());
    }
    let mut all = Vec::new();
    // SAFETY: entries up to the one with index 0 are there, each with a C string.
    unsafe {
        let mut at = list;
        while (*at).if_index != 0 && !(*at).if_name.is_null() {
            all.push((CStr::from_ptr((*at).if_name).to_string_lossy().into_owned(), (*at).if_index));
            at = at.add(1);
        }
        libc::if_freenameindex(list);
    }
    Ok(all)
}

/// The process that listens on the abstract name `name` (unix(7)), if it can be told without waiting.
pub fn holder_of(name: &str) -> Option<u32> {
    // SAFETY: numbers only.
    let fd = unsafe {
        libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
    };
    check(fd).ok()?;
    // SAFETY: a fresh descriptor that nobody else has.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all zeroes is an empty address.
    let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let room = address.sun_path.get_mut(1..1 + name.len())?;
    for (to, from) in room.iter_mut().zip(name.as_bytes()) {
        *to = *from as c_char;
    }
    let len = core::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    // SAFETY: the address has as many bytes.
    check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), len as libc::socklen_t) })
        .ok()?;
    let [pid, _, _] = get::<[u32; 3]>(fd.as_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED).ok()?;
    (pid != 0).then_some(pid)
}

/// Maps all rings of a socket, first the receive ring.
pub fn map(fd: BorrowedFd<'_>, len: usize) -> Result<core::ptr::NonNull<u8>> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
    // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing of ours.
    let at = unsafe { libc::mmap(core::ptr::null_mut(), len, prot, flags, fd.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    core::ptr::NonNull::new(at.cast::<u8>()).ok_or_else(|| Error::from_raw_os_error(libc::EINVAL))
}

/// Undoes [`map`].
///
/// # Safety
/// `at` and `len` are those of a mapping, and nothing points into it any more.
pub unsafe fn unmap(at: core::ptr::NonNull<u8>, len: usize) {
    // SAFETY: by the caller.
    unsafe { libc::munmap(at.as_ptr().cast::<c_void>(), len) };
}
