//! Descriptor rings: who sees what when, over laps and the wrap of positions, and with a device on another thread.
// UNSAFETY: the device's side of the ring, which is memory behind the driver's back.
#![allow(unsafe_code)]
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hw::{DmaPool, DmaRegion, Pages, Window};
use ringwright_ring::{Completion, DescRing, Pos, RingError, RingSize};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An entry with its owner word last: the lap's parity in bit 0, as virtio's packed ring has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Entry {
    body: [u64; 2],
    owner: u64,
}

impl Completion for Entry {
    const OWNER: usize = 16;
    fn is_done(owner: u64, pos: Pos, size: RingSize) -> bool {
        owner & 1 == done_bit(pos, size)
    }
}

/// 1 in the first lap of zeroed memory, then alternating.
fn done_bit(pos: Pos, size: RingSize) -> u64 {
    u64::from(!(pos / size.get()) & 1)
}

fn done(pos: Pos, size: RingSize) -> Entry {
    let tag = u64::from(pos);
    Entry { body: [tag, !tag], owner: (tag << 1 | done_bit(pos, size)).to_le() }
}

fn size(n: u32) -> RingSize {
    RingSize::try_from(n).unwrap()
}

fn pool() -> Arc<DmaPool> {
    DmaPool::new(Window::on_heap(4 << 20).arena(256 << 10, None, Pages::Any).unwrap())
}

fn region(bytes: usize) -> DmaRegion {
    pool().take(bytes).unwrap()
}

fn ring(n: u32) -> DescRing<Entry> {
    DescRing::new(region(n as usize * size_of::<Entry>()), size(n)).unwrap()
}

/// A device's write-back: body first, then the owner word with Release.
struct Device {
    base: *mut u8,
    size: RingSize,
}
// SAFETY: the memory lives as long as the ring in each test, and both sides use atomics.
unsafe impl Send for Device {}

impl Device {
    fn write(&self, pos: Pos, e: Entry) {
        let at = self.size.index(pos) * size_of::<Entry>();
        for (i, value) in [e.body[0], e.body[1], e.owner].into_iter().enumerate() {
            let order = if i == 2 { Ordering::Release } else { Ordering::Relaxed };
            // SAFETY: an aligned word of the ring.
            unsafe { AtomicU64::from_ptr(self.base.add(at + 8 * i).cast()) }.store(value, order);
        }
    }
}

#[test]
fn a_zeroed_ring_has_nothing_done() {
    let ring = ring(8);
    assert!((0..8).all(|pos| ring.poll(pos).is_none()));
}

#[test]
fn entries_are_done_in_their_lap_only() {
    let mut ring = ring(8);
    // Twice round, across the wrap of positions: an even number of laps fits in 2^32, so parities go on.
    let start = u32::MAX - 7;
    for pos in (0..8).map(|i| start.wrapping_add(i)) {
        ring.store(pos, Entry { body: [0; 2], owner: done_bit(pos, size(8)) ^ 1 });
    }
    for pos in (0..20).map(|i| start.wrapping_add(i)) {
        assert_eq!(ring.poll(pos), None, "not yet at {pos}");
        ring.store(pos, done(pos, size(8)));
        assert_eq!(ring.poll(pos), Some(done(pos, size(8))));
        assert_eq!(ring.poll(pos.wrapping_add(8)), None, "that is of the lap before");
    }
}

#[test]
fn positions_meet_after_a_lap_and_not_before() {
    let mut ring = ring(16);
    for i in 0..16u32 {
        let pos = u32::MAX.wrapping_sub(5).wrapping_add(i);
        ring.store(pos, done(pos, size(16)));
    }
    for i in 0..16u32 {
        let pos = u32::MAX.wrapping_sub(5).wrapping_add(i);
        assert_eq!(ring.poll(pos), Some(done(pos, size(16))), "nobody else's at {pos}");
    }
}

#[test]
fn memory_that_is_too_small_says_what_is_missing() {
    // Regions are whole pages: one page holds 170 entries of 24 bytes.
    let refused = DescRing::<Entry>::new(region(1), size(256));
    assert!(matches!(refused, Err(RingError::Region { need: 6144, have: 4096 })), "{:?}", refused.err());
    assert!(DescRing::<Entry>::new(region(1), size(128)).is_ok());
}

#[test]
fn memory_that_is_misaligned_is_refused() {
    #[derive(Clone, Copy)]
    #[repr(C, align(8192))]
    struct Page2([u8; 8192]);
    let pool = pool();
    let first = pool.take(8 * 8192).unwrap();
    let _one_page = pool.take(1).unwrap();
    let after_it = pool.take(8 * 8192).unwrap();
    assert!(DescRing::<Page2>::new(first, size(8)).is_ok(), "arenas start on 2 MiB");
    let refused = DescRing::<Page2>::new(after_it, size(8));
    assert!(matches!(refused, Err(RingError::Region { need: 65_536, have: 65_536 })), "{:?}", refused.err());
}

#[test]
fn memory_and_address_come_back() {
    let region = region(4096);
    let (base, iova) = (region.base(), region.iova());
    let ring = DescRing::<Entry>::new(region, size(8)).unwrap();
    assert_eq!((ring.iova(), ring.size()), (iova, size(8)));
    assert_eq!(ring.into_memory().base(), base);
}

#[test]
fn sizes_are_powers_of_two_in_range() {
    for bad in [0, 1, 4, 7, 9, 24, 32_767, 65_536, u32::MAX] {
        assert!(matches!(RingSize::try_from(bad), Err(RingError::BadSize(n)) if n == bad));
    }
    for good in (3..=15).map(|b| 1 << b) {
        assert_eq!(size(good).entries(), good as usize);
    }
}

#[test]
fn a_device_on_another_thread_is_never_seen_half_way() {
    let total: u32 = if cfg!(miri) { 60 } else { 100_000 };
    let (n, start) = (size(16), u32::MAX - total / 2 / 16 * 16 + 1);
    let memory = region(16 * size_of::<Entry>());
    let device = Device { base: memory.base().as_ptr(), size: n };
    let mut ring = DescRing::<Entry>::new(memory, n).unwrap();
    for pos in (0..16).map(|i| start.wrapping_add(i)) {
        ring.store(pos, Entry { body: [0; 2], owner: done_bit(pos, n) ^ 1 });
    }
    // How many entries the device may write, in all; its doorbell.
    let posted = Arc::new(AtomicU64::new(16));
    let seen = Arc::clone(&posted);
    let writer = thread::spawn(move || {
        for i in 0..total {
            while u64::from(i) >= seen.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let pos = start.wrapping_add(i);
            device.write(pos, done(pos, n));
        }
    });
    for i in 0..total {
        let pos = start.wrapping_add(i);
        let entry = loop {
            match ring.poll(pos) {
                Some(entry) => break entry,
                None => thread::yield_now(),
            }
        };
        assert_eq!(entry, done(pos, n));
        posted.store(u64::from(i) + 17, Ordering::Release);
    }
    writer.join().unwrap();
}
