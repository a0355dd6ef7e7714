//! The one place through which everything crosses the bus: IOMMU, DMA, counters, log.

use core::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hw::{GRANULE, Reg};
use ixgbe_defs::{DESC_BYTES, Queue};

use crate::count::{Cause, Direction, Tally};
use crate::iommu::Iommu;

/// Bytes of a cache line, for hints.
const LINE: usize = 64;

/// One access, in the log of a stepped model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Why. It also says which way: `*_read` and `*_write` of memory are the device's, `mmio_*` the driver's.
    pub cause: Cause,
    /// Whose, if it belongs to a queue.
    pub queue: Option<(Direction, Queue)>,
    /// Device address, or offset of the register.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
}

/// An access that the IOMMU refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was tried.
    pub cause: Cause,
    /// Whose it was.
    pub queue: (Direction, Queue),
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
}

/// Refused accesses that are kept; beyond them they are only counted.
const FAULTS_KEPT: usize = 64;

/// IOMMU, log and the list of faults: what all accesses share.
pub(crate) struct Port {
    pub(crate) iommu: Iommu,
    log: Option<Mutex<Vec<Event>>>,
    faults: Mutex<Vec<Fault>>,
    fault_count: AtomicU64,
}

/// An access refused; the queue is to hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// The queue on whose behalf memory is accessed, and its tally.
pub(crate) struct Site<'a> {
    pub(crate) queue: (Direction, Queue),
    pub(crate) tally: &'a mut Tally,
}

impl Port {
    pub(crate) fn new(window: usize, logged: bool) -> Self {
        Self {
            iommu: Iommu::new(window),
            log: logged.then(|| Mutex::new(Vec::new())),
            faults: Mutex::new(Vec::new()),
            fault_count: AtomicU64::new(0),
        }
    }

    /// Takes the log so far; empty if the model keeps none.
    pub(crate) fn take_log(&self) -> Vec<Event> {
        self.log.as_ref().map_or_else(Vec::new, |l| {
            core::mem::take(&mut *l.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn fault_count(&self) -> u64 {
        self.fault_count.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn note(&self, cause: Cause, queue: Option<(Direction, Queue)>, address: u64, bytes: usize) {
        if let Some(log) = &self.log {
            write_down(log, Event { cause, queue, address, bytes: bytes as u32 });
        }
    }

    /// A driver's register access.
    #[inline]
    pub(crate) fn mmio(&self, cause: Cause, queue: Option<(Direction, Queue)>, reg: Reg) {
        self.note(cause, queue, u64::from(reg.0), 4);
    }

    /// Every access of the device to memory: counted, logged, translated. The memory stays mapped until the engine's
    /// next [`Iommu::let_go`].
    #[inline]
    fn access(
        &self,
        site: &mut Site<'_>,
        cause: Cause,
        iova: u64,
        len: usize,
    ) -> Result<NonNull<u8>, Refused> {
        let Some(at) = self.iommu.translate(iova, len) else {
            return Err(self.fault(site, cause, iova, len));
        };
        site.tally.add(cause, len);
        self.note(cause, Some(site.queue), iova, len);
        Ok(at)
    }

    #[cold]
    fn fault(&self, site: &Site<'_>, cause: Cause, address: u64, len: usize) -> Refused {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < FAULTS_KEPT {
            faults.push(Fault { cause, queue: site.queue, address, bytes: len as u32 });
        }
        self.fault_count.fetch_add(1, Ordering::Relaxed);
        Refused
    }

    /// Fetches descriptors: `iova` is 16-byte aligned. What the driver stored before its doorbell is seen.
    #[inline]
    pub(crate) fn read_descs(
        &self,
        mut site: Site<'_>,
        iova: u64,
        out: &mut [[u64; 2]],
    ) -> Result<(), Refused> {
        let at = self.access(&mut site, Cause::DescRead, iova, size_of_val(out))?.cast::<u64>();
        for (i, d) in out.iter_mut().enumerate() {
            for (k, word) in d.iter_mut().enumerate() {
                // SAFETY: translated and aligned; ring words are only ever touched as atomics.
                *word = u64::from_le(unsafe { word_at(at, 2 * i + k) }.load(Ordering::Relaxed));
            }
        }
        Ok(())
    }

    /// Writes descriptors back, each body first and its owner word with Release; `reverse` breaks the order.
    #[inline]
    pub(crate) fn write_descs(
        &self,
        mut site: Site<'_>,
        iova: u64,
        descs: &[[u64; 2]],
        reverse: bool,
    ) -> Result<(), Refused> {
        let at = self.access(&mut site, Cause::CompletionWrite, iova, size_of_val(descs))?.cast::<u64>();
        for i in 0..descs.len() {
            let i = if reverse { descs.len() - 1 - i } else { i };
            // SAFETY: translated and aligned; ring words are only ever touched as atomics.
            unsafe {
                word_at(at, 2 * i).store(descs[i][0].to_le(), Ordering::Relaxed);
                word_at(at, 2 * i + 1).store(descs[i][1].to_le(), Ordering::Release);
            }
        }
        Ok(())
    }

    /// Writes an owner word only, for a lie about a descriptor that is not the device's.
    pub(crate) fn write_owner(&self, mut site: Site<'_>, iova: u64, word: u64) -> Result<(), Refused> {
        let at = self.access(&mut site, Cause::CompletionWrite, iova, 8)?.cast::<u64>();
        // SAFETY: translated and aligned; ring words are only ever touched as atomics.
        unsafe { word_at(at, 0) }.store(word.to_le(), Ordering::Release);
        Ok(())
    }

    /// Writes a head index.
    pub(crate) fn write_index(&self, mut site: Site<'_>, iova: u64, index: u32) -> Result<(), Refused> {
        let at = self.access(&mut site, Cause::IndexWrite, iova & !3, 4)?.cast::<u32>();
        // SAFETY: translated and aligned; an index word is only ever touched as an atomic.
        unsafe { AtomicU32::from_ptr(at.as_ptr()) }.store(index.to_le(), Ordering::Release);
        Ok(())
    }

    /// Writes frame bytes into a posted buffer.
    #[inline]
    pub(crate) fn write_payload(&self, mut site: Site<'_>, iova: u64, bytes: &[u8]) -> Result<(), Refused> {
        let at = self.access(&mut site, Cause::PayloadWrite, iova, bytes.len())?;
        let from = NonNull::from(bytes).cast();
        // SAFETY: translated; a posted buffer is the device's alone until its owner word is written back, and
        // `bytes` is the model's own memory.
        unsafe { copy(from, at, bytes.len()) };
        Ok(())
    }

    /// Frame bytes of a posted buffer.
    ///
    /// # Safety
    /// The caller lets go of the slice before it writes the descriptor back, and before the next [`Iommu::let_go`].
    #[inline]
    pub(crate) unsafe fn read_payload(
        &self,
        mut site: Site<'_>,
        iova: u64,
        len: usize,
    ) -> Result<&[u8], Refused> {
        let at = self.access(&mut site, Cause::PayloadRead, iova, len)?;
        // SAFETY: translated; a posted buffer is not written by anyone until it is written back, which the caller
        // does later.
        Ok(unsafe { core::slice::from_raw_parts(at.as_ptr(), len) })
    }

    /// Brings the first lines of a buffer closer, to be written. A hint: not an access.
    #[inline]
    pub(crate) fn prefetch_write(&self, iova: u64) {
        if let Some(at) = self.iommu.translate(iova, 1) {
            hw::prefetch_write(at.as_ptr());
        }
    }

    /// Brings `n` descriptors closer, to be read. A hint: not an access.
    #[inline]
    pub(crate) fn prefetch_descs(&self, iova: u64, n: usize) {
        if let Some(at) = self.iommu.translate(iova, 1) {
            // No further than the page, so that no address is made up of what is mapped elsewhere.
            let len = (n * DESC_BYTES).min(GRANULE - (iova as usize & (GRANULE - 1)));
            (0..len).step_by(LINE).for_each(|i| hw::prefetch_read(at.as_ptr().wrapping_add(i)));
        }
    }

    /// Brings the first line of a buffer closer, to be read. A hint: not an access.
    #[inline]
    pub(crate) fn prefetch_read(&self, iova: u64) {
        if let Some(at) = self.iommu.translate(iova, 1) {
            hw::prefetch_read(at.as_ptr());
        }
    }
}

/// Copies short frames without a call: their first and their last bytes, which may overlap.
///
/// # Safety
/// As for [`NonNull::copy_to_nonoverlapping`].
#[inline]
unsafe fn copy(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    const HALF: usize = 32;
    // SAFETY: by the caller; both halves are in `len` bytes.
    unsafe {
        if (HALF..=2 * HALF).contains(&len) {
            from.copy_to_nonoverlapping(to, HALF);
            from.add(len - HALF).copy_to_nonoverlapping(to.add(len - HALF), HALF);
        } else {
            from.copy_to_nonoverlapping(to, len);
        }
    }
}

#[cold]
fn write_down(log: &Mutex<Vec<Event>>, event: Event) {
    log.lock().unwrap_or_else(PoisonError::into_inner).push(event);
}

/// # Safety
/// Word `i` from `at` is mapped, 8-byte aligned and only touched by atomics for the life of the reference.
#[inline(always)]
unsafe fn word_at<'a>(at: NonNull<u64>, i: usize) -> &'a AtomicU64 {
    // SAFETY: by the caller.
    unsafe { AtomicU64::from_ptr(at.add(i).as_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hw::{Pages, Window};

    fn site(tally: &mut Tally) -> Site<'_> {
        Site { queue: (Direction::Rx, Queue::new(3).expect("a queue")), tally }
    }

    #[test]
    fn only_what_is_mapped_is_reached_and_all_of_it_is_counted() {
        let window = Window::on_heap(8 << 20);
        let arena = window.arena(2 * GRANULE, None, Pages::Any).expect("an arena");
        let port = Port::new(window.len(), true);
        let (mut tally, at) = (Tally::default(), arena.iova().to_bits());
        assert_eq!(port.write_payload(site(&mut tally), at, &[1]), Err(Refused));
        port.iommu.map(&arena).expect("a free place");
        let edge = at + GRANULE as u64 - 2;
        port.write_payload(site(&mut tally), edge, &[1, 2, 3, 4])
            .expect("granules of one arena are one piece");
        let end = at + 2 * GRANULE as u64;
        assert_eq!(port.write_payload(site(&mut tally), end - 3, &[0; 4]), Err(Refused));
        assert_eq!(port.write_payload(site(&mut tally), u64::MAX - 1, &[0; 4]), Err(Refused));
        // SAFETY: nothing is written back here.
        let read = unsafe { port.read_payload(site(&mut tally), edge, 4) };
        assert_eq!(read, Ok(&[1, 2, 3, 4][..]));
        assert_eq!((tally.ops(Cause::PayloadWrite), tally.bytes(Cause::PayloadRead)), (1, 4));
        assert_eq!(port.faults().iter().map(|f| f.address).collect::<Vec<_>>(), [at, end - 3, u64::MAX - 1]);
        assert_eq!(
            port.take_log().iter().map(|e| (e.cause, e.address, e.bytes)).collect::<Vec<_>>(),
            [(Cause::PayloadWrite, edge, 4), (Cause::PayloadRead, edge, 4)]
        );
    }
}
