//! The thread that writes: packets wait for it in rings, and go back through rings to be freed.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_queue::ArrayQueue;
use mem::{Batch, Flags, Local, Memory, Parcel, Pkt};
use meter::DropReason;

use crate::finish::{WISHES, complete};
use crate::output::{Failed, Output, advice, said, whole};
use crate::write::Format;

/// How long it sleeps when there was nothing to write lately, and when there has not been anything for long.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// Short naps before a long one.
const SHORT_NAPS: u32 = 200;
/// What must be out by then is given up: in milliseconds after receiving ended. A runtime waits 2 s for a queue to drain.
const GIVE_UP_MS: u64 = 1500;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is in the file.
    Written,
    /// It is not.
    Lost(DropReason),
}

/// The two rings of a queue.
pub struct Lane {
    pub to_write: ArrayQueue<Parcel>,
    /// As long as the other, and a queue hands over no more than that: never full.
    pub done: ArrayQueue<(Parcel, Fate)>,
    /// Buffers that the queue had in flight when it last left a worker.
    pub held: AtomicUsize,
}

/// What the queues, the writer and the control side know of each other.
#[derive(Default)]
pub struct TxShared {
    /// Frames in the file.
    pub written: AtomicU64,
    /// Frames can be written: the file is open, and nothing has gone wrong.
    pub ready: AtomicBool,
    /// Nothing more can be written, for good.
    pub failed: AtomicBool,
    /// When receiving ended, in ticks of [`hw::cycles`]; 0 before.
    pub closing: AtomicU64,
    /// All that will be written has been handed over.
    pub finish: AtomicBool,
    /// What went wrong.
    pub fault: Mutex<Option<String>>,
}

impl TxShared {
    /// Says what went wrong; only the first counts.
    pub fn fail(&self, what: String) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }
    fn is_given_up(&self) -> bool {
        let closing = self.closing.load(Ordering::Relaxed);
        closing > 0 && hw::cycles().wrapping_sub(closing) > hw::tsc_hz() / 1000 * GIVE_UP_MS
    }
}

/// The thread's state.
pub struct Writer {
    pub memory: Arc<Memory>,
    pub lanes: Vec<Arc<Lane>>,
    pub shared: Arc<TxShared>,
    pub output: Output,
    /// As in messages.
    pub path: String,
    pub format: Format,
    pub snaplen: u32,
    /// Records not yet written, and where each ends.
    pub buffer: Vec<u8>,
    pub ends: Vec<usize>,
}

impl Writer {
    /// Writes until there is nothing more to come.
    pub fn run(mut self) {
        let local = Local::new(&self.memory);
        let mut batch = Batch::new(&local);
        let mut naps = 0;
        loop {
            // Looked at first: what was handed over before is seen below.
            let finish = self.shared.finish.load(Ordering::Acquire);
            let ready = self.is_ready();
            let waits = !ready && !self.shared.failed.load(Ordering::Relaxed) && !self.shared.is_given_up();
            let n = if waits { 0 } else { self.serve(&mut batch, &local) };
            if n > 0 {
                naps = 0;
            } else if finish && !waits {
                return;
            } else {
                std::thread::sleep(if naps < SHORT_NAPS { NAPS.0 } else { NAPS.1 });
                naps += 1;
            }
        }
    }

    /// Whether the output takes bytes. Opens a pipe as soon as somebody reads it.
    fn is_ready(&mut self) -> bool {
        if self.shared.ready.load(Ordering::Relaxed) {
            return true;
        }
        if self.shared.failed.load(Ordering::Relaxed) {
            return false;
        }
        let header = self.format.header(self.snaplen);
        let opened = match self.output.try_open() {
            Ok(false) => return false,
            Ok(true) => {
                let shared = Arc::clone(&self.shared);
                self.output.write(&header, &[header.len()], || shared.is_given_up())
            }
            Err(error) => Err(Failed { written: 0, error }),
        };
        match opened {
            Ok(()) => self.shared.ready.store(true, Ordering::Relaxed),
            Err(f) => self.failed(&f),
        }
        self.shared.ready.load(Ordering::Relaxed)
    }

    /// Takes up to a burst from each lane, writes it, and hands it back. Returns how many packets.
    fn serve(&mut self, batch: &mut Batch, local: &Local) -> usize {
        let mut n = 0;
        for i in 0..self.lanes.len() {
            let lane = Arc::clone(&self.lanes[i]);
            while batch.room() > 0
                && let Some(parcel) = lane.to_write.pop()
            {
                if let Err(parcel) = batch.push_parcel(parcel) {
                    parcel.free(local);
                }
            }
            if batch.is_empty() {
                continue;
            }
            n += batch.len();
            let (written, rest) = self.write(batch);
            let mut at = 0;
            batch.drain_while(|packet| {
                let fate = if at < written { Fate::Written } else { Fate::Lost(rest) };
                at += 1;
                if let Err((parcel, _)) = lane.done.push((packet.into(), fate)) {
                    debug_assert!(false, "as long as the other ring");
                    parcel.free(local);
                }
                Ok(())
            });
        }
        n
    }

    /// Writes a batch. Returns how many packets are in the file, and why the others are not.
    fn write(&mut self, batch: &mut Batch) -> (usize, DropReason) {
        if self.shared.failed.load(Ordering::Relaxed) {
            return (0, DropReason::LinkDown);
        }
        if self.shared.is_given_up() {
            return (0, DropReason::Stopping);
        }
        self.buffer.clear();
        self.ends.clear();
        for p in batch.iter_mut() {
            self.record(&p);
        }
        let shared = Arc::clone(&self.shared);
        let done = self.output.write(&self.buffer, &self.ends, || shared.is_given_up());
        let (written, reason) = match done {
            Ok(()) => (batch.len(), DropReason::Stopping),
            Err(ref f) => {
                let whole = whole(f.written, &self.ends);
                (self.ends.iter().filter(|end| **end <= whole).count(), DropReason::LinkDown)
            }
        };
        shared.written.store(shared.written.load(Ordering::Relaxed) + written as u64, Ordering::Relaxed);
        if let Err(f) = done {
            self.failed(&f);
        }
        (written, reason)
    }

    /// Adds a packet's record to the buffer.
    fn record(&mut self, p: &Pkt<'_>) {
        let (flags, out) = (p.flags(), &mut self.buffer);
        let record = self.format.begin(out);
        p.segments().for_each(|piece| out.extend_from_slice(piece));
        let time = if flags.has(Flags::TIME) { p.ext().time } else { now() };
        if flags.has(WISHES) {
            complete(out, record.frame, flags, &p.ext());
        }
        record.finish(out, time, self.snaplen);
        self.ends.push(self.buffer.len());
    }

    #[cold]
    fn failed(&self, f: &Failed) {
        let n = self.shared.written.load(Ordering::Relaxed);
        let (what, advice) = (said(&f.error), advice(&f.error));
        self.shared.fail(format!("capture {}: {what} after {n} packets; {advice}", self.path));
        self.shared.failed.store(true, Ordering::Release);
        self.shared.ready.store(false, Ordering::Relaxed);
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Lane {
    /// Rings of `entries` each.
    pub fn new(entries: usize) -> Arc<Self> {
        Arc::new(Self {
            to_write: ArrayQueue::new(entries),
            done: ArrayQueue::new(entries),
            held: AtomicUsize::new(0),
        })
    }
}
