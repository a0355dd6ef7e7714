//! Counting: privately by the engine, published with relaxed stores.

use std::sync::atomic::{AtomicU64, Ordering};

use ixgbe_defs::Queue;

/// A way a queue goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Receive.
    Rx,
    /// Transmit.
    Tx,
}

/// Why something crossed the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Cause {
    /// A driver's register store.
    MmioWrite,
    /// A driver's register load.
    MmioRead,
    /// Descriptors fetched.
    DescRead,
    /// An index read from memory. This device reads none.
    IndexRead,
    /// Frame bytes read.
    PayloadRead,
    /// Frame bytes written.
    PayloadWrite,
    /// Descriptors written back.
    CompletionWrite,
    /// An index written to memory: transmit head write-back.
    IndexWrite,
    /// An interrupt message.
    Interrupt,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::MmioWrite,
        Self::MmioRead,
        Self::DescRead,
        Self::IndexRead,
        Self::PayloadRead,
        Self::PayloadWrite,
        Self::CompletionWrite,
        Self::IndexWrite,
        Self::Interrupt,
    ];

    /// As in metrics and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MmioWrite => "mmio_write",
            Self::MmioRead => "mmio_read",
            Self::DescRead => "desc_read",
            Self::IndexRead => "index_read",
            Self::PayloadRead => "payload_read",
            Self::PayloadWrite => "payload_write",
            Self::CompletionWrite => "completion_write",
            Self::IndexWrite => "index_write",
            Self::Interrupt => "interrupt",
        }
    }
}

/// Bus operations of one queue, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    ops: [u64; Cause::ALL.len()],
    bytes: [u64; Cause::ALL.len()],
}

impl Tally {
    /// Operations of `cause`.
    pub const fn ops(&self, cause: Cause) -> u64 {
        self.ops[cause as usize]
    }
    /// Bytes of `cause`.
    pub const fn bytes(&self, cause: Cause) -> u64 {
        self.bytes[cause as usize]
    }
    #[inline]
    pub(crate) const fn add(&mut self, cause: Cause, bytes: usize) {
        self.ops[cause as usize] += 1;
        self.bytes[cause as usize] += bytes as u64;
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the device and its model count, since power-on. Statistics registers show the same numbers since they
        /// were last read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Count { $($(#[$doc])* $name,)* }
        impl Count {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

counts! {
    /// Frames that came in by the wire (TPR).
    RxFrames,
    /// Their bytes, CRC included (TOR).
    RxBytes,
    /// Frames with a bad CRC (CRCERRS).
    RxBadCrc,
    /// Shorter than 64 bytes, good CRC (RUC).
    RxUndersize,
    /// Shorter than 64 bytes, bad CRC (RFC).
    RxFragment,
    /// Longer than the limit, good CRC (ROC).
    RxOversize,
    /// Longer than the limit, bad CRC (RJC).
    RxJabber,
    /// Good frames that no address or VLAN filter wanted.
    RxFiltered,
    /// Good frames that passed the filters (GPRC), whether or not they found room behind them.
    RxGood,
    /// Their bytes, CRC included (GORC).
    RxGoodBytes,
    /// Good broadcasts (BPRC).
    RxBroadcast,
    /// Good multicasts (MPRC).
    RxMulticast,
    /// Good frames of 64 bytes (PRC64 and so on, CRC included).
    RxSize64,
    /// 65 to 127.
    RxSize127,
    /// 128 to 255.
    RxSize255,
    /// 256 to 511.
    RxSize511,
    /// 512 to 1023.
    RxSize1023,
    /// 1024 and more.
    RxSizeMax,
    /// Good frames missed: the packet buffer was full (MPC).
    RxMissed,
    /// Good frames dropped for want of descriptors, `DROP_EN` set (the sum of QPRDC).
    RxNoDescriptor,
    /// Good frames for a queue that is off or hung.
    RxNoQueue,
    /// Bad IP, TCP or UDP checksums (XEC).
    RxBadChecksum,
    /// Frames that went to host memory (RXDGPC).
    RxToHost,
    /// Their bytes, as delivered (RXDGBC).
    RxToHostBytes,
    /// Frames that the model was told to swallow on their way to the host.
    RxSwallowed,
    /// Frames sent (GPTC, TPT).
    TxGood,
    /// Their bytes, CRC included (GOTC).
    TxGoodBytes,
    /// Broadcasts sent (BPTC).
    TxBroadcast,
    /// Multicasts sent (MPTC).
    TxMulticast,
    /// Frames sent of 64 bytes (PTC64 and so on, CRC included).
    TxSize64,
    /// 65 to 127.
    TxSize127,
    /// 128 to 255.
    TxSize255,
    /// 256 to 511.
    TxSize511,
    /// 512 to 1023.
    TxSize1023,
    /// 1024 and more.
    TxSizeMax,
    /// Frames that came from host memory (TXDGPC).
    TxFromHost,
    /// Their bytes, as read (TXDGBC).
    TxFromHostBytes,
    /// Frames reported done that the model was told to swallow.
    TxSwallowed,
    /// Transmit queues hung by a descriptor that the data sheet forbids: see [`crate::Malformed`].
    TxMalformed,
    /// DMA accesses that the IOMMU refused; each hangs its queue.
    Faults,
    /// Lies told, all kinds.
    Lies,
    /// Resets done.
    Resets,
}

/// Per queue-counter kinds: 16 of each.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum PerQueue {
    RxPackets,
    RxBytes,
    RxDropped,
    TxPackets,
    TxBytes,
}

const PER_QUEUE: usize = 5 * 16;
const TOTAL: usize = Count::ALL.len() + PER_QUEUE;

/// A place in the array of totals.
#[derive(Clone, Copy)]
pub(crate) struct Place(u16);

impl From<Count> for Place {
    fn from(c: Count) -> Self {
        Self(c as u16)
    }
}

impl Place {
    #[inline]
    pub(crate) const fn queue(kind: PerQueue, n: u32) -> Self {
        Self((Count::ALL.len() + kind as usize * 16 + (n & 15) as usize) as u16)
    }
}

/// The engine's own totals: plain numbers, one writer.
pub(crate) struct Totals {
    now: [u64; ROOM],
    dirty: bool,
}

/// A power of two, so that masking a place bounds it.
const ROOM: usize = 256;
const _: () = assert!(TOTAL <= ROOM);

impl Totals {
    pub(crate) const fn new() -> Self {
        Self { now: [0; ROOM], dirty: false }
    }
    #[inline]
    pub(crate) fn add(&mut self, at: impl Into<Place>, n: u64) {
        self.now[at.into().0 as usize % ROOM] += n;
        self.dirty = true;
    }
    /// Makes the totals visible. Returns true if there was something new.
    pub(crate) fn publish(&mut self, to: &Published) -> bool {
        let was = self.dirty;
        if was {
            for (shared, now) in to.totals.iter().zip(&self.now) {
                shared.store(*now, Ordering::Relaxed);
            }
            self.dirty = false;
        }
        was
    }
}

/// What other threads can read.
pub(crate) struct Published {
    totals: Box<[AtomicU64]>,
    tallies: Box<[AtomicU64]>,
}

const TALLY: usize = 2 * Cause::ALL.len();

fn zeroed(n: usize) -> Box<[AtomicU64]> {
    // SAFETY: all zeroes is a valid atomic, and so are many of them.
    unsafe { Box::new_zeroed_slice(n).assume_init() }
}

fn tally_at(d: Direction, q: Queue) -> usize {
    (d as usize * Queue::COUNT as usize + q.index()) * TALLY
}

impl Published {
    pub(crate) fn new() -> Self {
        Self { totals: zeroed(TOTAL), tallies: zeroed(2 * Queue::COUNT as usize * TALLY) }
    }
    pub(crate) fn total(&self, at: impl Into<Place>) -> u64 {
        self.totals[at.into().0 as usize].load(Ordering::Relaxed)
    }
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        self.totals.iter().map(|t| t.load(Ordering::Relaxed))
    }
    /// Publishes what the engine counted for a queue. Register accesses are counted by [`Published::mmio`].
    pub(crate) fn tally(&self, d: Direction, q: Queue, t: &Tally) {
        let at = tally_at(d, q);
        for (i, (ops, bytes)) in t.ops.iter().zip(t.bytes).enumerate().skip(Cause::DescRead as usize) {
            self.tallies[at + 2 * i].store(*ops, Ordering::Relaxed);
            self.tallies[at + 2 * i + 1].store(bytes, Ordering::Relaxed);
        }
    }
    /// Counts one register access of a queue; several threads may.
    #[inline]
    pub(crate) fn mmio(&self, d: Direction, q: Queue, cause: Cause) {
        let at = tally_at(d, q) + 2 * cause as usize;
        self.tallies[at].fetch_add(1, Ordering::Relaxed);
        self.tallies[at + 1].fetch_add(4, Ordering::Relaxed);
    }
    pub(crate) fn read_tally(&self, d: Direction, q: Queue) -> Tally {
        let at = tally_at(d, q);
        let mut t = Tally::default();
        for i in 0..Cause::ALL.len() {
            t.ops[i] = self.tallies[at + 2 * i].load(Ordering::Relaxed);
            t.bytes[i] = self.tallies[at + 2 * i + 1].load(Ordering::Relaxed);
        }
        t
    }
}

pub(crate) const TOTALS: usize = TOTAL;

impl Place {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The size class of a frame of `len` bytes, CRC included, counted from the 64-byte class.
#[inline]
pub(crate) const fn size_class(len: usize) -> u16 {
    match len {
        0..=64 => 0,
        65..=127 => 1,
        128..=255 => 2,
        256..=511 => 3,
        512..=1023 => 4,
        _ => 5,
    }
}

/// The count of `class` in the size classes that start at `first`.
#[inline]
pub(crate) const fn sized(first: Count, class: u16) -> Place {
    Place(first as u16 + class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_follow_the_registers() {
        let classes = [64, 65, 127, 128, 256, 512, 1023, 1024, 9000].map(size_class);
        assert_eq!(classes, [0, 1, 1, 2, 3, 4, 4, 5, 5]);
        assert_eq!(sized(Count::RxSize64, 5).index(), Count::RxSizeMax as usize);
        assert_eq!(sized(Count::TxSize64, 5).index(), Count::TxSizeMax as usize);
    }

    #[test]
    fn totals_and_tallies_are_seen_once_published() {
        let (mut t, p) = (Totals::new(), Published::new());
        t.add(Count::RxGood, 3);
        t.add(Place::queue(PerQueue::TxBytes, 15), 9);
        assert_eq!(p.total(Count::RxGood), 0);
        assert!(t.publish(&p) && !t.publish(&p));
        assert_eq!((p.total(Count::RxGood), p.total(Place::queue(PerQueue::TxBytes, 15))), (3, 9));
        let q = Queue::new(127).expect("a queue");
        let mut tally = Tally::default();
        tally.add(Cause::DescRead, 64);
        p.mmio(Direction::Tx, q, Cause::MmioWrite);
        p.tally(Direction::Tx, q, &tally);
        let read = p.read_tally(Direction::Tx, q);
        assert_eq!((read.ops(Cause::MmioWrite), read.bytes(Cause::MmioWrite)), (1, 4));
        assert_eq!((read.ops(Cause::DescRead), read.bytes(Cause::DescRead)), (1, 64));
        assert_eq!(p.read_tally(Direction::Rx, q), Tally::default());
    }
}
