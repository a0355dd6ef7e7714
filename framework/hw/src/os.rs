//! The system calls behind memory and placement. Nothing else in the crate calls the kernel.

use core::ptr::NonNull;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::{Node, PageSize};

fn check(r: libc::c_int) -> Result<()> {
    if r == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Reserves addresses: no memory, no access.
pub fn reserve(len: usize) -> Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing of ours.
    let p = unsafe { libc::mmap(core::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
    if p == libc::MAP_FAILED {
        Err(Error::last_os_error())
    } else {
        Ok(NonNull::new(p.cast()).expect("not null"))
    }
}

/// Gives a reservation back.
///
/// # Safety
/// Nothing points into `base..base + len` any more.
pub unsafe fn release(base: NonNull<u8>, len: usize) {
    // SAFETY: by the caller.
    unsafe { libc::munmap(base.as_ptr().cast(), len) };
}

/// Turns a part of a reservation back into bare addresses.
///
/// # Safety
/// The range is part of a live reservation and nothing points into it.
pub unsafe fn decommit(base: NonNull<u8>, len: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: by the caller.
    unsafe { libc::mmap(base.as_ptr().cast(), len, libc::PROT_NONE, flags, -1, 0) };
}

/// An anonymous file of `len` bytes on pages of the given size.
pub fn memfd(len: usize, page: PageSize) -> Result<OwnedFd> {
    let huge = match page {
        PageSize::Huge1G => libc::MFD_HUGETLB | libc::MFD_HUGE_1GB,
        PageSize::Huge2M => libc::MFD_HUGETLB | libc::MFD_HUGE_2MB,
        PageSize::Base4K => 0,
    };
    // SAFETY: a C string and flags.
    let fd = unsafe { libc::memfd_create(c"ringwright".as_ptr(), libc::MFD_CLOEXEC | huge) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else has.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an open descriptor.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), len as libc::off_t) })?;
    Ok(fd)
}

/// Maps `fd` over a part of a reservation.
///
/// # Safety
/// The range is part of a live reservation that nothing points into, and aligned to the file's pages.
pub unsafe fn commit(base: NonNull<u8>, len: usize, fd: &OwnedFd) -> Result<()> {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: by the caller.
    let p = unsafe { libc::mmap(base.as_ptr().cast(), len, prot, flags, fd.as_raw_fd(), 0) };
    if p == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Binds pages that are not there yet to `node`.
pub fn bind(base: NonNull<u8>, len: usize, node: Node) -> Result<()> {
    const MPOL_BIND: libc::c_long = 2;
    let mut mask = [0u64; 1024 / 64];
    let id = usize::from(node.id());
    *mask.get_mut(id / 64).ok_or_else(|| Error::from_raw_os_error(libc::EINVAL))? |= 1 << (id % 64);
    // SAFETY: a range of ours and a mask of 1024 bits; the call changes where pages come from, not what they hold.
    let r = unsafe {
        libc::syscall(libc::SYS_mbind, base.as_ptr(), len, MPOL_BIND, mask.as_ptr(), 1025 as libc::c_ulong, 0)
    };
    check(r as libc::c_int)
}

/// Brings every page in, writable, or fails; unlike touching them it cannot end in a signal.
pub fn populate(base: NonNull<u8>, len: usize) -> Result<()> {
    // SAFETY: a range of ours; populating does not change what it holds.
    check(unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_POPULATE_WRITE) })
}

/// Keeps pages in memory.
pub fn lock(base: NonNull<u8>, len: usize) -> Result<()> {
    // SAFETY: a range of ours.
    check(unsafe { libc::mlock(base.as_ptr().cast(), len) })
}
