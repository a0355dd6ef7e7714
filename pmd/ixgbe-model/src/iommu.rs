//! The IOMMU: which device addresses are memory, and where that lies.

use core::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hw::{Arena, GRANULE, HwError};

const SHIFT: u32 = GRANULE.trailing_zeros();

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
    pub(crate) fn translate(&self, iova: u64, len: usize) -> Option<NonNull<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use hw::{Pages, Window};

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
