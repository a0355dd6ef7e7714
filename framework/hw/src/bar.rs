//! Registers: a window of 32-bit words, and the doorbells taken from it.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::HwError;

/// The byte offset of a 32-bit register in a BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u32);

/// A register window that is not memory: a software device, which sees every single access.
///
/// Accesses come from any thread. `write32` has the ordering of a release store and `read32` that of an acquire
/// load, as a doorbell and a status register need.
pub trait Registers: Send + Sync {
    /// Bytes in the window.
    fn len(&self) -> usize;
    /// True if there are no registers.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A load of the register at byte offset `reg`, with its side effects (read-to-clear).
    fn read32(&self, reg: Reg) -> u32;
    /// A store to the register at byte offset `reg`, with its side effects.
    fn write32(&self, reg: Reg, value: u32);
}

#[derive(Clone)]
enum Window {
    Mapped { base: NonNull<u8>, len: usize },
    Software(Arc<dyn Registers>),
}

/// A register window. For the control path: each access is checked.
#[derive(Clone)]
pub struct Bar(Window);
// SAFETY: a mapped window is device memory that lives as long as the process and is reached by single atomic
// accesses only; a software window is `Send + Sync` by its trait.
unsafe impl Send for Bar {}
// SAFETY: as above.
unsafe impl Sync for Bar {}

impl Bar {
    /// A window of device memory.
    ///
    /// # Safety
    /// `base..base + len` is mapped for the life of the process, 4-byte aligned, and reached only through `Bar`s
    /// and `Doorbell`s.
    pub const unsafe fn from_raw(base: NonNull<u8>, len: usize) -> Self {
        Self(Window::Mapped { base, len })
    }

    /// The window of a software device.
    pub fn software(device: Arc<dyn Registers>) -> Self {
        Self(Window::Software(device))
    }

    /// Bytes in the window.
    pub fn len(&self) -> usize {
        match &self.0 {
            Window::Mapped { len, .. } => *len,
            Window::Software(d) => d.len(),
        }
    }

    /// True for a window without registers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check(&self, reg: Reg) -> Result<(), HwError> {
        let off = reg.0 as usize;
        if off.is_multiple_of(4) && off + 4 <= self.len() { Ok(()) } else { Err(HwError::BadReg(reg)) }
    }

    /// Reads a register.
    ///
    /// # Panics
    /// If `reg` lies outside the window or is misaligned: register offsets come from a `-defs` crate, never from
    /// input.
    pub fn read32(&self, reg: Reg) -> u32 {
        self.check(reg).expect("registers are named by the data sheet");
        match &self.0 {
            // SAFETY: `check` put the aligned word inside the mapping.
            Window::Mapped { base, .. } => unsafe { word(*base, reg) }.load(Ordering::Acquire),
            Window::Software(d) => d.read32(reg),
        }
    }

    /// Writes a register. Stores to DMA memory made before are visible to the device first.
    ///
    /// # Panics
    /// As [`Bar::read32`].
    pub fn write32(&self, reg: Reg, value: u32) {
        self.check(reg).expect("registers are named by the data sheet");
        match &self.0 {
            Window::Mapped { base, .. } => {
                publish();
                // SAFETY: `check` put the aligned word inside the mapping.
                unsafe { word(*base, reg) }.store(value, Ordering::Release);
            }
            Window::Software(d) => d.write32(reg, value),
        }
    }

    /// Changes the bits of `mask` to those of `bits`; the others keep what the device reads back.
    pub fn modify32(&self, reg: Reg, mask: u32, bits: u32) {
        let old = self.read32(reg);
        self.write32(reg, (old & !mask) | (bits & mask));
    }

    /// Takes the doorbell at `reg`. Its bounds are checked here, once.
    ///
    /// # Errors
    /// [`HwError::BadReg`] if it lies outside the window.
    pub fn doorbell(&self, reg: Reg) -> Result<Doorbell, HwError> {
        self.check(reg)?;
        Ok(Doorbell(match &self.0 {
            // SAFETY: `check` put the aligned word inside the mapping.
            Window::Mapped { base, .. } => Bell::Mapped(unsafe { base.add(reg.0 as usize) }.cast()),
            Window::Software(d) => Bell::Software(Arc::clone(d), reg),
        }))
    }
}

/// # Safety
/// `reg` is an aligned offset inside the live mapping at `base`.
const unsafe fn word<'a>(base: NonNull<u8>, reg: Reg) -> &'a AtomicU32 {
    // SAFETY: by the caller; device memory is only reached by such atomics.
    unsafe { AtomicU32::from_ptr(base.add(reg.0 as usize).cast().as_ptr()) }
}

/// Makes earlier stores to DMA memory visible to a device before a later register store.
#[inline(always)]
fn publish() {
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a barrier instruction has no operands. An inner-shareable barrier would not reach the device.
    unsafe {
        core::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "x86_64")]
    core::sync::atomic::fence(Ordering::Release);
}

enum Bell {
    Mapped(NonNull<u32>),
    Software(Arc<dyn Registers>, Reg),
}

/// One register that tells the device to look at its ring. Write-only.
pub struct Doorbell(Bell);
// SAFETY: a doorbell is one word of device memory that lives as long as the process; it has one owner.
unsafe impl Send for Doorbell {}

impl Doorbell {
    /// Publishes all earlier stores to DMA memory, then writes `value`: one MMIO store.
    #[inline]
    pub fn ring(&mut self, value: u32) {
        match &self.0 {
            Bell::Mapped(reg) => {
                publish();
                // SAFETY: `Bar::doorbell` checked that the word lies in the live mapping.
                unsafe { AtomicU32::from_ptr(reg.as_ptr()) }.store(value, Ordering::Release);
            }
            Bell::Software(d, reg) => d.write32(*reg, value),
        }
    }
}
