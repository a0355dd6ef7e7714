//! `ring`: bulk rings between two cores, beside DPDK's `rte_ring` at the same bulk and element size.
//!
//! The loops are the same on both sides: the producer writes fresh numbers into each item, the consumer sums their
//! first words, a full or empty ring costs one pause, the clock is read once in [`CLOCK_EVERY`] bulks. A block is an
//! error if anything is lost: both ends' counts and sums must agree once the ring is empty.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ring::RingSize;

use super::{Output, Timing};
use crate::BenchError;
use crate::cpu::{self, Core};
use crate::distance;
use crate::harness::report::{Compare, Report};
use crate::harness::{Candidate, Reading, Share};
use crate::manifest::{Manifest, Peer};
use crate::peers::rte_ring::{RteRing, RteRingCandidate};
use crate::session;

/// Bulks between two looks at the clock.
const CLOCK_EVERY: usize = 64;
/// Before the window starts to count.
const WARMUP: Duration = Duration::from_millis(5);

/// Options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    timing: Timing,
    /// Entries of the rings
    #[arg(long, default_value_t = 1024, value_parser = ring_size)]
    size: u32,
}

fn ring_size(text: &str) -> Result<u32, String> {
    let n = text.parse::<u32>().map_err(|e| e.to_string())?;
    RingSize::try_from(n).map(RingSize::get).map_err(|e| e.to_string())
}

/// Measures both kinds of ring at bulk 32 and 8 with items of 8 and 16 bytes.
///
/// # Errors
/// Of the machine or of a peer, and [`BenchError::Lost`].
pub fn run(args: &Args) -> Result<ExitCode, BenchError> {
    let (timing, json) = (&args.timing, args.timing.json);
    let priority = session::raise();
    let (producer, consumer) = timing.pair()?;
    let peer = match timing.no_peers {
        true => Err("left out by --no-peers".to_owned()),
        false => RteRing::start(producer, consumer, args.size as usize),
    };
    let state = peer.as_ref().map_or_else(|why| format!("skipped: {why}"), |p| p.borrow().version.clone());
    let peers = vec![Peer { name: "rte_ring", state }];
    let apart = distance::measure(producer, consumer)?;
    let manifest =
        Manifest::new(&[(producer, "producer"), (consumer, "consumer")], priority, peers, Some(apart));
    let tsc_hz = manifest.tsc_hz;
    let mut output = Output::new("ring", manifest, json);
    for (bulk, bytes) in [(32, 8), (32, 16), (8, 8), (8, 16)] {
        let mut all = ours(args.size, (producer, consumer), bulk, bytes);
        let mut compare = vec![];
        if let Ok(peer) = &peer {
            for multi in [false, true] {
                compare.push(Compare::Ratio(usize::from(multi), all.len()));
                all.push(Box::new(RteRingCandidate::new(peer, multi, bytes, bulk)));
            }
        }
        let title = format!("ring of {}, bulk {bulk}, items of {bytes} bytes", args.size);
        let blocks = timing.measure(&title, Some((producer, consumer)), &mut all)?;
        output.add(Report::new(&title, "items", &blocks, &compare, tsc_hz), json);
    }
    output.finish(json);
    Ok(ExitCode::SUCCESS)
}

fn ours(size: u32, cores: (Core, Core), bulk: usize, bytes: usize) -> Vec<Box<dyn Candidate>> {
    let size = RingSize::try_from(size).expect("checked with the arguments");
    match (bulk, bytes) {
        (32, 8) => kinds::<u64, 32>(size, cores),
        (32, _) => kinds::<[u64; 2], 32>(size, cores),
        (_, 8) => kinds::<u64, 8>(size, cores),
        _ => kinds::<[u64; 2], 8>(size, cores),
    }
}

fn kinds<T: Item, const BULK: usize>(size: RingSize, cores: (Core, Core)) -> Vec<Box<dyn Candidate>> {
    let (push, pop) = ring::spsc::<T>(size);
    let mpmc = ring::Mpmc::<T>::new(size);
    vec![
        Box::new(Pair::<_, _, T, BULK>::new("ring::spsc", cores, push, pop)),
        Box::new(Pair::<_, _, T, BULK>::new("ring::Mpmc", cores, mpmc.clone(), mpmc)),
    ]
}

/// What travels: fresh numbers, of which the first word is summed.
trait Item: Copy + Send + Default + 'static {
    fn number(n: u64) -> Self;
    fn first(&self) -> u64;
}

impl Item for u64 {
    #[inline(always)]
    fn number(n: u64) -> Self {
        n
    }
    #[inline(always)]
    fn first(&self) -> u64 {
        *self
    }
}

impl Item for [u64; 2] {
    #[inline(always)]
    fn number(n: u64) -> Self {
        [n, !n]
    }
    #[inline(always)]
    fn first(&self) -> u64 {
        self[0]
    }
}

/// The end of a ring that takes items.
trait Push<T>: Send {
    fn push(&mut self, items: &[T]) -> usize;
}

/// The end of a ring that gives them.
trait Pop<T>: Send {
    fn pop(&mut self, out: &mut [T]) -> usize;
}

impl<T: Item> Push<T> for ring::Producer<T> {
    #[inline(always)]
    fn push(&mut self, items: &[T]) -> usize {
        Self::push(self, items)
    }
}

impl<T: Item> Pop<T> for ring::Consumer<T> {
    #[inline(always)]
    fn pop(&mut self, out: &mut [T]) -> usize {
        self.pop_slice(out)
    }
}

impl<T: Item> Push<T> for ring::Mpmc<T> {
    #[inline(always)]
    fn push(&mut self, items: &[T]) -> usize {
        Self::push(self, items)
    }
}

impl<T: Item> Pop<T> for ring::Mpmc<T> {
    #[inline(always)]
    fn pop(&mut self, out: &mut [T]) -> usize {
        self.pop_slice(out)
    }
}

/// A ring's two ends and the cores they run on.
struct Pair<I, O, T, const BULK: usize> {
    name: &'static str,
    cores: (Core, Core),
    push: I,
    pop: O,
    _item: std::marker::PhantomData<T>,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    items: u64,
    sum: u64,
}

/// What the two threads tell each other besides items, a line each.
#[derive(Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

#[derive(Default)]
struct Flags {
    ready: AtomicUsize,
    /// Set by the consumer: the window is over.
    stop: Flag,
    /// Set by the producer: nothing more will come.
    finished: Flag,
}

impl Flags {
    fn meet(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
        while self.ready.load(Ordering::Acquire) < 2 {}
    }
}

/// Items and time of the window.
struct Window {
    items: u64,
    time: Duration,
}

impl<I: Push<T>, O: Pop<T>, T: Item, const BULK: usize> Pair<I, O, T, BULK> {
    fn new(name: &'static str, cores: (Core, Core), push: I, pop: O) -> Self {
        Self { name, cores, push, pop, _item: std::marker::PhantomData }
    }

    fn check(&self, sent: Tally, received: Tally) -> Result<(), BenchError> {
        if sent.items == received.items && sent.sum == received.sum {
            return Ok(());
        }
        Err(BenchError::Lost {
            name: self.name.to_owned(),
            sent: sent.items,
            sent_sum: sent.sum,
            received: received.items,
            received_sum: received.sum,
        })
    }
}

impl<I: Push<T>, O: Pop<T>, T: Item, const BULK: usize> Candidate for Pair<I, O, T, BULK> {
    fn name(&self) -> &str {
        self.name
    }

    fn block(&mut self, window: Duration) -> Result<Reading, BenchError> {
        let flags = Flags::default();
        // A thread that cannot be pinned must not leave the other one waiting.
        let (a, b) = self.cores;
        let (push, pop) = (&mut self.push, &mut self.pop);
        let ((sent, p), (received, inside, c)) = std::thread::scope(|s| {
            let producer = s.spawn(|| {
                let pinned = cpu::pin(a);
                flags.meet();
                let out = timed(|| produce::<I, T, BULK>(push, &flags));
                flags.finished.0.store(true, Ordering::Release);
                pinned.map(|()| out)
            });
            let consumer = s.spawn(|| {
                let pinned = cpu::pin(b);
                flags.meet();
                let ((tally, inside), share) = timed(|| consume::<O, T, BULK>(pop, &flags, window));
                pinned.map(|()| (tally, inside, share))
            });
            let sent = producer.join().expect("the producer does not panic");
            sent.and_then(|s| Ok((s, consumer.join().expect("the consumer does not panic")?)))
        })?;
        self.check(sent, received)?;
        let shares = vec![Share { thread: "producer", share: p }, Share { thread: "consumer", share: c }];
        Ok(Reading { items: inside.items, seconds: inside.time.as_secs_f64(), shares })
    }
}

/// What `f` returns and the share of a core it had.
fn timed<R>(f: impl FnOnce() -> R) -> (R, f64) {
    let (wall, ran) = (Instant::now(), cpu::thread_time());
    let out = f();
    let share = (cpu::thread_time() - ran).as_secs_f64() / wall.elapsed().as_secs_f64();
    (out, share)
}

#[inline(never)]
fn produce<I: Push<T>, T: Item, const BULK: usize>(ring: &mut I, flags: &Flags) -> Tally {
    let mut items = [T::default(); BULK];
    let mut sent = Tally::default();
    loop {
        for _ in 0..CLOCK_EVERY {
            for (n, item) in (sent.items..).zip(&mut items) {
                *item = T::number(n);
            }
            let n = ring.push(&items);
            if n == 0 {
                std::hint::spin_loop();
                continue;
            }
            sent.sum = items[..n].iter().fold(sent.sum, |sum, i| sum.wrapping_add(i.first()));
            sent.items += n as u64;
        }
        if flags.stop.0.load(Ordering::Relaxed) {
            return sent;
        }
    }
}

#[inline(never)]
fn consume<O: Pop<T>, T: Item, const BULK: usize>(
    ring: &mut O,
    flags: &Flags,
    window: Duration,
) -> (Tally, Window) {
    let mut items = [T::default(); BULK];
    let (mut received, mut inside) = (Tally::default(), Window { items: 0, time: Duration::ZERO });
    let begin = Instant::now() + WARMUP;
    let mut first = None;
    loop {
        let now = Instant::now();
        if now >= begin {
            let (since, at) = *first.get_or_insert((now, received.items));
            if now - since >= window && !flags.stop.0.load(Ordering::Relaxed) {
                inside = Window { items: received.items - at, time: now - since };
                flags.stop.0.store(true, Ordering::Release);
            }
        }
        let last = flags.finished.0.load(Ordering::Acquire);
        let mut popped = 0;
        for _ in 0..CLOCK_EVERY {
            let n = ring.pop(&mut items);
            if n == 0 {
                std::hint::spin_loop();
                continue;
            }
            received.sum = items[..n].iter().fold(received.sum, |sum, i| sum.wrapping_add(i.first()));
            received.items += n as u64;
            popped += n;
        }
        if last && popped == 0 {
            return (received, inside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    /// A ring that loses an item now and then.
    #[derive(Clone, Default)]
    struct Leaky(Arc<Mutex<VecDeque<u64>>>, u64);

    impl Push<u64> for Leaky {
        fn push(&mut self, items: &[u64]) -> usize {
            let mut q = self.0.lock().unwrap();
            if q.len() > 256 {
                return 0;
            }
            let lost = self.1;
            q.extend(items.iter().filter(|&&n| lost == 0 || n != lost));
            items.len()
        }
    }

    impl Pop<u64> for Leaky {
        fn pop(&mut self, out: &mut [u64]) -> usize {
            let mut q = self.0.lock().unwrap();
            let n = out.len().min(q.len());
            out.iter_mut().zip(q.drain(..n)).for_each(|(o, i)| *o = i);
            n
        }
    }

    fn block(lost: u64) -> Result<Reading, BenchError> {
        let ring = Leaky(Arc::default(), lost);
        let cores = cpu::allowed();
        let pair = (cores[0], *cores.last().unwrap());
        Pair::<_, _, u64, 8>::new("leaky", pair, ring.clone(), ring).block(Duration::from_millis(5))
    }

    #[test]
    fn a_block_counts_items_and_shares() {
        // A block on a busy machine may pass before its producer gets a core; not all of many.
        let blocks: Vec<Reading> = (0..20).map(|_| block(0).unwrap()).collect();
        assert!(blocks.iter().all(|r| r.seconds >= 0.005 && r.shares.len() == 2), "{blocks:?}");
        assert!(blocks.iter().any(|r| r.items > 0), "{blocks:?}");
    }

    #[test]
    fn one_lost_item_fails_the_block() {
        let e = block(3).unwrap_err();
        assert!(matches!(e, BenchError::Lost { sent, received, .. } if sent == received + 1), "{e}");
    }
}
