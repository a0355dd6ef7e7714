//! The edge of Rust: registers, DMA memory on superpages, barriers, time.
//!
//! Everything the compiler cannot check about a device and its memory is in this crate.
//!
//! - [`Bus`] is how a driver reaches its device: [`Bar`]s of registers, [`Doorbell`]s, [`DmaRegion`]s.
//! - [`Window`] is one range of addresses; [`Arena`]s of real pages are laid into it.
//! - [`cycles`] says when; where, as a [`Node`], is known to the crate `topology`.
//!
//! Life of memory:
//! 1. A runtime reserves a [`Window`]: addresses only.
//! 2. It lays [`Arena`]s into it: memfd-backed pages of a named node, prefaulted and locked.
//! 3. A bus maps arenas for its device ([`Bus::map`]); rings are carved from one by a [`DmaPool`].
//! 4. After the device has been reset, regions return to their arena, or are quarantined if the reset failed.
//!
//! Limits: no hot-unplug of memory; a window never grows; interrupts are not here yet.
// UNSAFETY: register access, raw memory that devices write, and the system calls behind them.
#![allow(unsafe_code)]

mod bar;
mod bus;
mod dma;
mod os;
mod time;
mod window;

pub use bar::{Bar, Doorbell, Reg, Registers};
pub use bus::Bus;
pub use dma::{DmaPool, DmaRegion};
pub use time::{cycles, tsc_hz};
pub use topology::{Bytes, Node, PageSize, Pages};
pub use window::{Arena, GRANULE, LINE, Window};

/// An address as the device sees it: no number becomes one but by way of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Iova(pub(crate) u64);

impl Iova {
    /// The value to put into a descriptor or a register.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// What can go wrong at the edge. Setup only; each says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HwError {
    /// The register does not lie inside the BAR, or is misaligned.
    #[error("register {0:?} lies outside the device's register window: not the device this driver is for")]
    BadReg(Reg),
    /// The device has no such BAR.
    #[error("the device has no BAR {0}: not the device this driver is for")]
    NoBar(u8),
    /// Not enough free superpages.
    #[error("asked {} of {page} pages{}: {free} free, {short} more needed; run: {command}",
        Bytes(*asked), node.map_or_else(String::new, |n| format!(" on {n}")))]
    NoPages {
        /// Bytes asked for.
        asked: usize,
        /// Of which page size.
        page: PageSize,
        /// On which node.
        node: Option<Node>,
        /// Pages that are free there.
        free: usize,
        /// Pages that are missing.
        short: usize,
        /// The command that reserves them.
        command: String,
    },
    /// The machine has no such page size.
    #[error("this machine has no {page} pages; use pages = \"{instead}\"")]
    NoPageSize {
        /// The size asked for.
        page: PageSize,
        /// What there is.
        instead: &'static str,
    },
    /// The machine has no such node.
    #[error("node {} does not exist: this machine has node {}; name one of these",
        asked.id(), there.iter().map(|n| n.id().to_string()).collect::<Vec<_>>().join(", "))]
    NoSuchNode {
        /// The node asked for.
        asked: Node,
        /// The nodes there are.
        there: Vec<Node>,
    },
    /// The node cannot give the memory.
    #[error("node {} has no {} left in {page} pages: see `numactl -H`; ask for less or name another node",
        node.id(), Bytes(*bytes))]
    NodeFull {
        /// The node.
        node: Node,
        /// Bytes asked for.
        bytes: usize,
        /// Page size.
        page: PageSize,
    },
    /// Not enough memory at all.
    #[error("asked {} of memory, {} are available; ask for fewer buffers", Bytes(*asked), Bytes(*free))]
    NoMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes that are available.
        free: usize,
    },
    /// RLIMIT_MEMLOCK is too low.
    #[error("locking {} needs more than the memlock limit of {}; run `ulimit -l unlimited`, set LimitMEMLOCK=infinity \
        in the unit file, or use 2M pages, which need no lock", Bytes(*need), Bytes(*limit))]
    Memlock {
        /// Bytes to lock.
        need: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The window is full.
    #[error("no room for {} in the address window: {} of {} are taken", Bytes(*asked), Bytes(*taken), Bytes(*len))]
    NoRoom {
        /// Bytes asked for.
        asked: usize,
        /// Bytes taken.
        taken: usize,
        /// Bytes in all.
        len: usize,
    },
    /// No ring memory left.
    #[error("no DMA memory left for {}: {} free in the ring arena; use smaller rings or fewer queues",
        Bytes(*asked), Bytes(*free))]
    NoDma {
        /// Bytes asked for.
        asked: usize,
        /// Bytes free.
        free: usize,
    },
    /// The device did not reach the wanted state in time.
    #[error("the device did not finish: {0}")]
    Timeout(&'static str),
    /// The operating system said no.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
}

/// Brings the line at `at` into the cache, to be read soon. Any address is fine.
#[inline(always)]
pub fn prefetch_read<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch never faults.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// Brings the line at `at` into the cache with the intent to write it. Any address is fine.
#[inline(always)]
pub fn prefetch_write<T>(at: *mut T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults; processors without PREFETCHW take it as a no-op.
    unsafe {
        core::arch::asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch never faults.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}
