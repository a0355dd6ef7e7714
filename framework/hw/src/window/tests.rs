use core::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::DmaPool;

fn window() -> Arc<Window> {
    if cfg!(miri) { Window::on_heap(16 << 20) } else { Window::reserve(Window::LEN).unwrap() }
}

#[test]
fn arenas_do_not_overlap_and_places_are_used_again() {
    let w = window();
    let a = w.arena(3 << 20, None, Pages::Any).unwrap();
    let b = w.arena(1, None, Pages::Any).unwrap();
    assert!(a.offset() >= GRANULE, "device address 0 is never given");
    assert_eq!((a.len(), b.len()), (4 << 20, GRANULE));
    assert!(b.offset() >= a.offset() + a.len());
    let first = a.offset();
    drop(a);
    assert_eq!(w.arena(4 << 20, None, Pages::Any).unwrap().offset(), first);
}

#[test]
fn memory_is_zero_also_when_used_again() {
    let w = window();
    for _ in 0..2 {
        let a = w.arena(GRANULE, None, Pages::Any).unwrap();
        // SAFETY: the arena is ours alone.
        let bytes = unsafe { core::slice::from_raw_parts_mut(a.base().as_ptr(), 4096) };
        assert!(bytes.iter().all(|&b| b == 0));
        bytes.fill(7);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a window of 8 GiB")]
fn no_arena_touches_the_interrupt_range() {
    let w = Window::reserve(8 << 30).unwrap();
    // Addresses only: nothing is committed by `place`.
    let mut last = 0;
    while let Ok((at, _)) = w.place(512 << 20, GRANULE) {
        let end = at + (512 << 20);
        assert!(end <= MSI.start || at >= MSI.end, "{at:#x}..{end:#x}");
        last = last.max(end);
    }
    assert!(last > 7 << 30, "the room beyond it is used: {last:#x}");
}

#[test]
fn a_full_window_says_so() {
    let w = Window::on_heap(4 << 20);
    let _a = w.arena(4 << 20, None, Pages::Any).unwrap();
    let e = w.arena(1, None, Pages::Any).map(|_| ()).unwrap_err();
    assert!(e.to_string().starts_with("no room for 2 MiB in the address window: 6 MiB of 6 MiB"), "{e}");
}

#[test]
fn more_than_there_are_addresses_is_refused() {
    let w = Window::on_heap(4 << 20);
    let rings = DmaPool::new(w.arena(1, None, Pages::Any).unwrap());
    for bytes in [usize::MAX, usize::MAX - GRANULE + 1, usize::MAX - 2 * GRANULE + 1, (6 << 20) + 1] {
        assert!(
            matches!(w.arena(bytes, None, Pages::Any), Err(HwError::NoRoom { asked, .. }) if asked == bytes)
        );
        assert!(matches!(rings.take(bytes), Err(HwError::NoDma { asked, .. }) if asked == bytes));
    }
}

#[test]
#[cfg_attr(miri, ignore = "sysfs")]
fn a_wrong_node_names_the_right_ones() {
    let e = window().arena(1, Some(Node::new(999)), Pages::Any).map(|_| ()).unwrap_err().to_string();
    assert!(e.starts_with("node 999 does not exist: this machine has node 0"), "{e}");
}

#[test]
#[cfg_attr(miri, ignore = "huge pages")]
fn too_few_superpages_name_the_number_and_the_command() {
    let asked = 128usize << 30;
    let (free, all) = PageSize::Huge2M.count(None).expect("x86 and aarch64 kernels have 2 MiB pages");
    let short = (asked >> 21) - free;
    let w = window();
    let e = w.arena(asked, None, Pages::Only(PageSize::Huge2M)).map(|_| ()).unwrap_err().to_string();
    let want = format!(
        "asked 128 GiB of 2 MiB pages: {free} free, {short} more needed; run: echo {} | sudo tee \
         /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        all + short
    );
    assert_eq!(e, want);
    assert_eq!(w.taken.lock().unwrap().len(), 1, "a failed arena leaves no hole");
}

#[test]
#[cfg_attr(miri, ignore = "/proc")]
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    let e =
        window().arena(200 << 30, None, Pages::Only(PageSize::Base4K)).map(|_| ()).unwrap_err().to_string();
    assert!(e.starts_with("asked 200 GiB of memory, ") && e.ends_with("ask for fewer buffers"), "{e}");
}

#[test]
#[cfg_attr(miri, ignore = "huge pages")]
fn superpages_are_really_superpages() {
    for page in [PageSize::Huge2M, PageSize::Huge1G] {
        let Some((free, _)) = page.count(None).filter(|c| c.0 > 0) else {
            eprintln!("SKIPPED: no free {page} pages");
            continue;
        };
        let w = window();
        let a = w.arena(page.bytes(), None, Pages::Only(page)).unwrap();
        assert!(a.locked());
        let start = format!("{:x}-", a.base().as_ptr() as usize);
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let map = smaps.split(&start).nth(1).expect("the arena is mapped");
        let kernel = map.lines().find(|l| l.starts_with("KernelPageSize")).unwrap();
        assert!(kernel.contains(&format!("{} kB", page.bytes() >> 10)), "{kernel}");
        drop(a);
        assert!(page.count(None).unwrap().0 >= free.min(1), "the pages went back");
    }
}

#[test]
#[cfg_attr(miri, ignore = "quarantined memory is leaked on purpose")]
fn ring_memory_comes_zeroed_goes_back_and_can_be_quarantined() {
    let pool = DmaPool::new(window().arena(GRANULE, None, Pages::Any).unwrap());
    let a = pool.take(100).unwrap();
    let b = pool.take(5000).unwrap();
    assert_eq!((a.len(), b.len()), (4096, 8192));
    assert_eq!(b.iova().to_bits(), a.iova().to_bits() + 4096);
    // SAFETY: the region is ours, and ring memory is reached by 64-bit atomics only.
    let word = |r: &crate::DmaRegion| unsafe { AtomicU64::from_ptr(r.base().cast().as_ptr()) };
    word(&a).store(9, Ordering::Relaxed);
    let at = a.iova();
    drop(a);
    let again = pool.take(4096).unwrap();
    assert_eq!(again.iova(), at);
    assert_eq!(word(&again).load(Ordering::Relaxed), 0);
    again.quarantine();
    assert_eq!(pool.quarantined(), 4096);
    assert_ne!(pool.take(4096).unwrap().iova(), at, "quarantined memory is never used again");
    let e = pool.take(4 << 20).map(|_| ()).unwrap_err().to_string();
    assert!(e.starts_with("no DMA memory left for 4 MiB"), "{e}");
    drop(b);
    assert!(pool.take(GRANULE - 4096).is_ok(), "ranges that were given back join again");
}
