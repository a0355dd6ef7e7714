//! Model checks of the rings between cores: every interleaving and every stale read that the orderings allow, up to the
//! number of preemptions given. Each ordering is also weakened in turn, and the same check must then fail.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ringwright-ring --release --test loom`
#![cfg(loom)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use ringwright_ring::{Edge, Mpmc, RingSize, spsc_at, weaken};

const SIZE: u32 = 8;
/// The positions wrap after three items.
const START: u32 = u32::MAX - 2;

fn size() -> RingSize {
    RingSize::try_from(SIZE).unwrap()
}

/// The lengths of the bulks in one execution.
type Bulks = Vec<usize>;

/// Runs all executions of `model` and returns what they came to, to show that the model reaches what it is for.
fn check(preemptions: usize, model: impl Fn() -> Bulks + Send + Sync + 'static) -> BTreeSet<Bulks> {
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&outcomes);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let bulks = model();
        seen.lock().unwrap().insert(bulks);
    });
    outcomes.lock().unwrap().clone()
}

/// What every thread of a model bumps between its operations.
///
/// loom runs a thread before another's load only if it later finds a store that the load could have seen, and it
/// remembers one access per word: the load by which a thread waits for its turn hides those of others before its store.
/// Bumps conflict always, so loom tries all orders of whole operations; being relaxed, they order nothing else.
#[derive(Clone)]
struct Gate(Arc<AtomicUsize>);

impl Gate {
    fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(0)))
    }
    fn bump(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Seven items go through a ring that starts with five in it: bulks are cut short by "full" and "empty", slots are used
/// twice, positions wrap.
/// Gives the bulks of the producer, then those of the consumer.
fn spsc_in_order() -> BTreeSet<Bulks> {
    check(7, || {
        let (mut tx, mut rx) = spsc_at::<u32>(size(), START);
        assert_eq!(tx.push(&[0, 1, 2, 3, 4]), 5);
        let producer = thread::spawn(move || {
            let mut next = 5;
            let mut bulks = Bulks::new();
            for _ in 0..3 {
                let bulk: Vec<u32> = (next..12).take(5).collect();
                bulks.push(tx.push(&bulk));
                next += bulks[bulks.len() - 1] as u32;
            }
            assert!(tx.room() <= SIZE as usize);
            (next, bulks)
        });
        let (mut seen, mut popped) = (Vec::new(), Bulks::new());
        for want in [3, 2, 4] {
            let mut out = vec![u32::MAX; want];
            popped.push(rx.pop_slice(&mut out));
            seen.extend_from_slice(&out[..popped[popped.len() - 1]]);
        }
        let (pushed, mut bulks) = producer.join().unwrap();
        bulks.extend(popped);
        let mut rest = [u32::MAX; 12];
        let n = rx.pop_slice(&mut rest);
        seen.extend_from_slice(&rest[..n]);
        assert!(rx.is_empty());
        assert_eq!(seen, (0..pushed).collect::<Vec<_>>());
        bulks
    })
}

/// The same ring with items that are moved: six go through one that starts with four in it, some reserved and not used,
/// some looked at and left. Each is a box that loom sees the owner of: one that came out twice, or never, fails the check.
/// Gives what each reservation took, then what each look moved out.
fn spsc_moves() -> BTreeSet<Bulks> {
    check(7, || {
        let (mut tx, mut rx) = spsc_at::<loom::alloc::Track<u32>>(size(), START);
        let fill = |tx: &mut ringwright_ring::Producer<_>, from: u32, n: usize| {
            let mut room = tx.reserve(n + 1);
            for i in (from..).take(n) {
                if room.push(loom::alloc::Track::new(i)).is_err() {
                    break;
                }
            }
            room.used()
        };
        assert_eq!(fill(&mut tx, 0, 4), 4);
        let producer = thread::spawn(move || {
            let mut bulks = Bulks::new();
            for n in [4, 2] {
                let next = 4 + bulks.iter().sum::<usize>();
                bulks.push(fill(&mut tx, next as u32, n));
            }
            bulks
        });
        let (mut seen, mut moved) = (Vec::new(), Bulks::new());
        for (want, most) in [(3, 2), (5, 4)] {
            let before = seen.len();
            seen.extend(rx.take(want).take(most).map(|t| t.into_inner()));
            moved.push(seen.len() - before);
        }
        let mut bulks = producer.join().unwrap();
        let pushed = 4 + bulks.iter().sum::<usize>() as u32;
        bulks.extend(moved);
        seen.extend(rx.take(2 * SIZE as usize).map(|t| t.into_inner()));
        assert!(rx.is_empty());
        assert_eq!(seen, (0..pushed).collect::<Vec<_>>());
        bulks
    })
}

fn drain(ring: &Mpmc<u32>) -> Vec<u32> {
    let mut out = [u32::MAX; 3 * SIZE as usize];
    let n = ring.pop_slice(&mut out);
    out[..n].to_vec()
}

/// Two producers and a consumer over a ring that starts full, so that every slot is used twice.
/// Gives the bulks of the producers, then those of the consumer.
fn mpmc_two_producers() -> BTreeSet<Bulks> {
    check(4, || {
        let ring = Mpmc::<u32>::new_at(size(), u64::from(START));
        let gate = Gate::new();
        assert_eq!(ring.push(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), 8);
        let producers = [10, 20].map(|first| {
            let (ring, gate) = (ring.clone(), gate.clone());
            thread::spawn(move || {
                let n = ring.push(&[first, first + 1, first + 2]);
                gate.bump();
                n as u32
            })
        });
        let mut seen = Vec::new();
        let mut popped = Bulks::new();
        for want in [4, 7] {
            let mut out = vec![u32::MAX; want];
            let n = ring.pop_slice(&mut out);
            gate.bump();
            assert!(n >= 4, "eight were there");
            popped.push(n);
            seen.extend_from_slice(&out[..n]);
        }
        let pushed = producers.map(|p| p.join().unwrap());
        seen.extend(drain(&ring));
        assert_eq!(seen[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        let bulk = |i: usize| (0..pushed[i]).map(move |k| 10 * (i as u32 + 1) + k);
        let one_first: Vec<u32> = bulk(0).chain(bulk(1)).collect();
        let two_first: Vec<u32> = bulk(1).chain(bulk(0)).collect();
        assert!(seen[8..] == one_first || seen[8..] == two_first, "bulks stay together: {seen:?}");
        pushed.into_iter().map(|n| n as usize).chain(popped).collect()
    })
}

/// Two consumers and a producer that uses their slots again. One of them can take what the other does not know of yet.
/// Gives the bulks of the consumers, then what was pushed in all.
fn mpmc_two_consumers() -> BTreeSet<Bulks> {
    check(4, || {
        let ring = Mpmc::<u32>::new_at(size(), u64::from(START));
        let gate = Gate::new();
        assert_eq!(ring.push(&[0, 1, 2, 3]), 4);
        let consumers = [6, 3].map(|want| {
            let (ring, gate) = (ring.clone(), gate.clone());
            thread::spawn(move || {
                let mut out = vec![u32::MAX; want];
                let n = ring.pop_slice(&mut out);
                gate.bump();
                out.truncate(n);
                out
            })
        });
        let mut pushed = 0;
        for _ in 0..2 {
            pushed += ring.push(&[4, 5, 6, 7, 8, 9][pushed..]);
            gate.bump();
        }
        let mut seen = Vec::new();
        let mut bulks = Bulks::new();
        for c in consumers {
            let bulk = c.join().unwrap();
            assert!(bulk.is_sorted_by(|a, b| a + 1 == *b), "one pop takes a run: {bulk:?}");
            bulks.push(bulk.len());
            seen.extend(bulk);
        }
        seen.extend(drain(&ring));
        seen.sort_unstable();
        assert_eq!(seen, (0..4 + pushed as u32).collect::<Vec<_>>());
        bulks.push(pushed);
        bulks
    })
}

/// A model that does not come to what it is for would find nothing wrong either.
fn reaches(outcomes: &BTreeSet<Bulks>, wanted: &[&[usize]]) {
    for bulks in wanted {
        assert!(outcomes.contains(*bulks), "never came to {bulks:?}, only to {outcomes:?}");
    }
}

#[test]
fn spsc_is_right() {
    reaches(
        &spsc_in_order(),
        &[
            // Full at once, and for ever; empty at the end.
            &[3, 0, 0, 3, 2, 0],
            // All through: the second bulk and the last pop are cut short.
            &[5, 1, 1, 3, 2, 4],
            &[3, 4, 0, 3, 2, 3],
        ],
    );
}

#[test]
fn spsc_moves_are_right() {
    reaches(
        &spsc_moves(),
        &[
            // Full at once; the second look finds what there was, or all that it may move out.
            &[4, 0, 2, 2],
            &[4, 0, 2, 4],
            // Room for the second reservation, whole or in part.
            &[4, 2, 2, 2],
            &[4, 2, 2, 4],
        ],
    );
}

#[test]
fn mpmc_with_two_producers_is_right() {
    // Four slots become free: one producer is cut short, or finds none; or both fit after the second pop.
    reaches(&mpmc_two_producers(), &[&[3, 1, 4, 7], &[1, 3, 4, 4], &[0, 3, 4, 7], &[3, 3, 4, 7]]);
}

#[test]
fn mpmc_with_two_consumers_is_right() {
    // One takes all that was there; or six and three of ten; or what the other left of eight.
    reaches(&mpmc_two_consumers(), &[&[4, 0, 4], &[6, 3, 6], &[5, 3, 4], &[1, 3, 6]]);
}

/// Checks that fail: the same models with one ordering Relaxed.
mod teeth {
    use super::*;

    macro_rules! must_fail {
        ($($name:ident: $edge:ident in $model:ident;)*) => {$(
            #[test]
            #[should_panic(expected = "Causality violation")]
            fn $name() {
                weaken(Edge::$edge);
                $model();
            }
        )*};
    }

    must_fail! {
        spsc_publish: SpscPublish in spsc_in_order;
        spsc_observe: SpscObserve in spsc_in_order;
        spsc_free: SpscFree in spsc_in_order;
        spsc_room: SpscRoom in spsc_in_order;
        spsc_publish_of_moves: SpscPublish in spsc_moves;
        spsc_observe_of_moves: SpscObserve in spsc_moves;
        spsc_free_of_moves: SpscFree in spsc_moves;
        spsc_room_of_moves: SpscRoom in spsc_moves;
        mpmc_claim: MpmcClaim in mpmc_two_producers;
        mpmc_head: MpmcHead in mpmc_two_producers;
        mpmc_other: MpmcOther in mpmc_two_producers;
        mpmc_turn: MpmcTurn in mpmc_two_producers;
        mpmc_publish: MpmcPublish in mpmc_two_producers;
        mpmc_claim_of_consumers: MpmcClaim in mpmc_two_consumers;
        mpmc_head_of_consumers: MpmcHead in mpmc_two_consumers;
        mpmc_other_of_consumers: MpmcOther in mpmc_two_consumers;
        mpmc_turn_of_consumers: MpmcTurn in mpmc_two_consumers;
        mpmc_publish_of_consumers: MpmcPublish in mpmc_two_consumers;
    }
}
