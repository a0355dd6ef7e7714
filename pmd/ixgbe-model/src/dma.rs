//! The one place through which everything crosses the bus: IOMMU, DMA, counters, log.

use core::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hw::{Arena, GRANULE, HwError, Reg};
use ixgbe_defs::Queue;

use crate::count::{Cause, Direction, Tally};

const SHIFT: u32 = GRANULE.trailing_zeros();

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

/// Translation by a flat table of granules, and the arenas it keeps alive.
pub(crate) struct Iommu {
    table: Box<[AtomicPtr<u8>]>,
    mapped: Mutex<Vec<(Arc<Arena>, usize)>>,
    retired: Mutex<Vec<Arc<Arena>>>,
    any_retired: AtomicBool,
}

impl Iommu {
    /// A table for device addresses below `len`.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            table: (0..len.div_ceil(GRANULE)).map(|_| AtomicPtr::new(null_mut())).collect(),
            mapped: Mutex::new(Vec::new()),
            retired: Mutex::new(Vec::new()),
            any_retired: AtomicBool::new(false),
        }
    }

    fn granules(&self, arena: &Arena) -> Result<&[AtomicPtr<u8>], HwError> {
        let first = (arena.iova().to_bits() >> SHIFT) as usize;
        self.table
            .get(first..first + arena.len() / GRANULE)
            .ok_or_else(|| refused("outside the device's window"))
    }

    pub(crate) fn map(&self, arena: &Arc<Arena>) -> Result<(), HwError> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(m) = mapped.iter_mut().find(|m| Arc::ptr_eq(&m.0, arena)) {
            m.1 += 1;
            return Ok(());
        }
        let granules = self.granules(arena)?;
        if granules.iter().any(|g| !g.load(Ordering::Relaxed).is_null()) {
            return Err(refused("already taken by an arena of another window"));
        }
        for (i, g) in granules.iter().enumerate() {
            // SAFETY: an arena is whole granules, and this one lies inside it.
            let at = unsafe { arena.base().add(i * GRANULE) };
            g.store(at.as_ptr(), Ordering::Release);
        }
        mapped.push((Arc::clone(arena), 1));
        Ok(())
    }

    /// The engine may be in the middle of an access, so it is the engine that lets go of the arena, in
    /// [`Iommu::let_go`].
    pub(crate) fn unmap(&self, arena: &Arc<Arena>) {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(i) = mapped.iter().position(|m| Arc::ptr_eq(&m.0, arena)) else { return };
        mapped[i].1 -= 1;
        if mapped[i].1 > 0 {
            return;
        }
        for g in self.granules(arena).unwrap_or_default() {
            g.store(null_mut(), Ordering::Release);
        }
        let (arena, _) = mapped.swap_remove(i);
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(arena);
        self.any_retired.store(true, Ordering::Release);
    }

    /// Called by the engine between accesses: it holds no translated address then.
    pub(crate) fn let_go(&self) {
        if self.any_retired.load(Ordering::Relaxed) && self.any_retired.swap(false, Ordering::Acquire) {
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Where `iova..iova + len` lies, if all of it is mapped in one piece.
    #[inline]
    fn translate(&self, iova: u64, len: usize) -> Option<NonNull<u8>> {
        let (granule, offset) = ((iova >> SHIFT) as usize, iova as usize & (GRANULE - 1));
        let base = NonNull::new(self.table.get(granule)?.load(Ordering::Acquire))?;
        for i in 1..=(offset + len).saturating_sub(1) >> SHIFT {
            let next = self.table.get(granule + i)?.load(Ordering::Acquire);
            if next != base.as_ptr().wrapping_add(i * GRANULE) {
                return None;
            }
        }
        // SAFETY: the granules from `base` on are one piece that holds `offset + len` bytes.
        Some(unsafe { base.add(offset) })
    }
}

fn refused(why: &str) -> HwError {
    let source = std::io::Error::new(std::io::ErrorKind::AddrInUse, format!("device addresses {why}"));
    HwError::Os { what: "mapping an arena for the model".into(), source }
}

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
        // SAFETY: translated; a posted buffer is the device's alone until its owner word is written back, and
        // `bytes` is the model's own memory.
        unsafe { at.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
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

    /// Brings the first line of a buffer closer, to be read. A hint: not an access.
    #[inline]
    pub(crate) fn prefetch_read(&self, iova: u64) {
        if let Some(at) = self.iommu.translate(iova, 1) {
            hw::prefetch_read(at.as_ptr());
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

    #[test]
    fn an_unmapped_arena_lives_until_the_engine_lets_go() {
        let window = Window::on_heap(8 << 20);
        let arena = window.arena(GRANULE, None, Pages::Any).expect("an arena");
        let iommu = Iommu::new(window.len());
        iommu.map(&arena).expect("a free place");
        iommu.map(&arena).expect("the same arena again");
        assert_eq!(Arc::strong_count(&arena), 2);
        iommu.unmap(&arena);
        assert!(iommu.translate(arena.iova().to_bits(), 1).is_some(), "still mapped once");
        iommu.unmap(&arena);
        assert!(iommu.translate(arena.iova().to_bits(), 1).is_none());
        assert_eq!(Arc::strong_count(&arena), 2);
        iommu.let_go();
        assert_eq!(Arc::strong_count(&arena), 1);
    }

    #[test]
    fn two_windows_cannot_share_device_addresses() {
        let (a, b) = (Window::on_heap(4 << 20), Window::on_heap(4 << 20));
        let iommu = Iommu::new(a.len());
        let (x, y) =
            (a.arena(1, None, Pages::Any).expect("room"), b.arena(1, None, Pages::Any).expect("room"));
        iommu.map(&x).expect("a free place");
        assert!(iommu.map(&y).is_err());
    }
}
