//! Both kinds of entries, in tables of all sizes.

use super::*;
use std::collections::BTreeMap;

/// A test of both kinds of entries.
macro_rules! for_either {
    ($test:ident) => {
        $test::<u64>();
        $test::<u128>();
    };
}

const SIZES: &[usize] = if cfg!(miri) { &[1, 7, 40] } else { &[1, 7, 8, 100, 4096, 37_449] };

fn address(n: usize) -> Key {
    Key::of((0x0200_0000_0000 | n as u64) << 16)
}
fn learn<W: Word>(s: &mut Stations<W>, key: Key, port: u8, seen: u8) -> Learned {
    s.learn(key, s.slot(key), Place { port, seen })
}
fn find<W: Word>(s: &Stations<W>, key: Key) -> Option<Place> {
    s.find(key, s.slot(key))
}

#[test]
fn a_table_takes_as_many_stations_as_it_says_and_no_more() {
    for_either!(a_table_takes_as_many_stations_as_it_says_and_no_more_of);
}
fn a_table_takes_as_many_stations_as_it_says_and_no_more_of<W: Word>() {
    for (&most, seed) in SIZES.iter().zip(7..) {
        let mut s = Stations::<W>::new(most, seed);
        for n in 0..most {
            assert_eq!(learn(&mut s, address(n), n as u8, 1), Learned::New, "{n} of {most}");
        }
        assert_eq!(learn(&mut s, address(most), 0, 1), Learned::Full);
        assert_eq!(s.len(), most);
        for n in 0..most {
            assert_eq!(find(&s, address(n)), Some(Place { port: n as u8, seen: 1 }), "{n} of {most}");
            assert_eq!(learn(&mut s, address(n), n as u8, 1), Learned::Known);
        }
        assert_eq!(find(&s, address(most)), None);
    }
}

/// The first stations that may live in lines `first` and `second` only.
fn of_lines<W: Word>(s: &Stations<W>, first: usize, second: usize) -> impl Iterator<Item = Key> {
    (0..4000).map(address).filter(move |&k| {
        (s.slot(k) / Stations::<W>::WAYS, s.second(k) / Stations::<W>::WAYS) == (first, second)
    })
}

#[test]
fn stations_that_meet_in_full_lines_make_way_for_each_other() {
    for_either!(stations_that_meet_in_full_lines_make_way_for_each_other_of);
}
fn stations_that_meet_in_full_lines_make_way_for_each_other_of<W: Word>() {
    let ways = Stations::<W>::WAYS;
    let mut s = Stations::<W>::new(ways, 5);
    assert_eq!(s.lines(), 4);
    s.most = 4 * ways;
    // Lines 0 and 1 are full, of stations that could live in 2 and 3 as well.
    let mut all: Vec<Key> = of_lines(&s, 0, 2).take(ways).chain(of_lines(&s, 1, 3).take(ways)).collect();
    all.extend(of_lines(&s, 0, 1).take(2 * ways));
    assert_eq!(all.len(), 4 * ways);
    for &k in &all {
        assert_eq!(learn(&mut s, k, 3, 0), Learned::New);
    }
    assert!(all.iter().all(|&k| find(&s, k).is_some()), "none was lost on its way");
    s.most += 1;
    let more = of_lines(&s, 0, 1).nth(2 * ways).unwrap();
    assert_eq!(learn(&mut s, more, 3, 0), Learned::Full, "nobody can make way any more");
}

#[test]
fn every_station_has_two_lines() {
    for_either!(every_station_has_two_lines_of);
}
fn every_station_has_two_lines_of<W: Word>() {
    for most in [1, 8, 100] {
        let s = Stations::<W>::new(most, 9);
        assert!(
            (0..if cfg!(miri) { 50 } else { 500 })
                .map(address)
                .all(|k| s.slot(k) / Stations::<W>::WAYS != s.second(k) / Stations::<W>::WAYS),
            "of {most}"
        );
        assert!(
            (0..if cfg!(miri) { 50 } else { 500 })
                .map(address)
                .all(|k| s.all_slots(k).all(|slot| slot < s.lines() * Stations::<W>::WAYS))
        );
    }
}

#[test]
fn the_table_behaves_as_a_map() {
    for_either!(the_table_behaves_as_a_map_of);
}
fn the_table_behaves_as_a_map_of<W: Word>() {
    let mut s = Stations::<W>::new(60, 1);
    s.clock = Clock::new(1 << 40, 1 << 40);
    let mut map = BTreeMap::<u64, Place>::new();
    let mut random = 1u64;
    for round in 0..if cfg!(miri) { 120 } else { 40_000 } {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (a, port, seen) =
            (address((random >> 33) as usize % 90), (random >> 60) as u8 & 3, (random >> 50) as u8 & 7);
        if round % 50 == 49 {
            let before = map.len();
            map.retain(|_, p| p.seen != seen);
            let gone = s.sweep(random as usize % s.lines(), s.lines(), |e| e.place().seen != seen);
            assert_eq!(gone as usize, before - map.len());
        }
        let place = Place { port, seen };
        let expected = match map.get(&a.address()) {
            Some(p) if p.port == port => Learned::Known,
            Some(_) => Learned::Moved,
            None if map.len() < 60 => Learned::New,
            None => Learned::Full,
        };
        assert_eq!(learn(&mut s, a, port, seen), expected, "round {round}");
        if expected != Learned::Full {
            map.insert(a.address(), place);
        }
        for n in 0..90 {
            assert_eq!(find(&s, address(n)), map.get(&address(n).address()).copied());
        }
        assert_eq!(s.len(), map.len());
    }
}

#[test]
fn another_seed_spreads_the_same_addresses_otherwise() {
    for_either!(another_seed_spreads_the_same_addresses_otherwise_of);
}
fn another_seed_spreads_the_same_addresses_otherwise_of<W: Word>() {
    let homes = |seed| {
        let s = Stations::<W>::new(1000, seed);
        (0..100).map(|n| s.slot(address(n))).collect::<Vec<_>>()
    };
    assert_eq!(homes(1), homes(1));
    let same = homes(1).iter().zip(homes(2)).filter(|(a, b)| **a == *b).count();
    assert!(same < 5, "{same} of 100 in 4096 slots");
}

/// A table that tells others, with room for some.
fn shared() -> Stations<u128> {
    let mut s = Stations::new(20, 3);
    s.clock = Clock::new(6400, 300);
    s.clock.advance(10_000);
    s
}

#[test]
fn news_count_if_they_are_newer_whatever_they_say() {
    let mut s = shared();
    let (a, at) = (address(1), |port| Place { port, seen: 5 });
    assert_eq!(s.told(a, at(1), 9000, 5), Told::Taken);
    assert_eq!((s.told(a, at(2), 8999, 5), find(&s, a).unwrap().port), (Told::Old, 1));
    assert_eq!((s.told(a, at(1), 9000, 5), s.told(a, at(0), 9000, 5)), (Told::Old, Told::Old));
    assert_eq!((s.told(a, at(2), 9000, 5), find(&s, a).unwrap().port), (Told::Taken, 2));
    // Heard here, after all that: the newest of all.
    assert_eq!((learn(&mut s, a, 3, 5), s.clock.ticks()), (Learned::Moved, 10_000));
    assert_eq!(s.told(a, at(1), 9999, 5), Told::Old);
    // A counter that is a little ahead: what is heard here next is newer still.
    assert_eq!((s.told(a, at(1), 10_050, 5), learn(&mut s, a, 3, 5)), (Told::Taken, Learned::Moved));
    assert_eq!(s.clock.ticks(), 10_051);
}

#[test]
fn others_are_told_again_in_time_and_by_one_of_two_who_hear_it() {
    let mut s = shared();
    let a = address(1);
    assert_eq!(learn(&mut s, a, 1, 5), Learned::New);
    s.clock.advance(10_299);
    assert_eq!(learn(&mut s, a, 1, 6), Learned::Known);
    s.clock.advance(10_300);
    assert_eq!(learn(&mut s, a, 1, 7), Learned::Due);
    s.clock.advance(10_590);
    assert_eq!(s.told(a, Place { port: 1, seen: 8 }, 10_580, 9), Told::Taken);
    assert_eq!(find(&s, a), Some(Place { port: 1, seen: 8 }));
    assert_eq!(s.told(a, Place { port: 1, seen: 7 }, 10_581, 9), Told::Taken);
    assert_eq!(find(&s, a), Some(Place { port: 1, seen: 8 }), "it is no older for being told of");
    s.clock.advance(10_879);
    assert_eq!(learn(&mut s, a, 1, 9), Learned::Known, "who told of it last was another");
    s.clock.advance(10_881);
    assert_eq!(learn(&mut s, a, 1, 10), Learned::Due);
}

#[test]
fn whose_stations_they_are() {
    let mut s = shared();
    learn(&mut s, address(1), 1, 5);
    s.told(address(2), Place { port: 2, seen: 5 }, 9000, 5);
    let told = |s: &Stations<u128>| {
        let mut all: Vec<_> =
            (0..s.lines()).flat_map(|l| s.entries(l)).map(|e| (e.key(), e.since().told)).collect();
        all.sort_unstable_by_key(|e| e.0.bits());
        all
    };
    assert_eq!(told(&s), [(address(1), false), (address(2), true)]);
    s.told(address(1), Place { port: 1, seen: 5 }, 10_001, 5);
    learn(&mut s, address(2), 2, 6);
    assert_eq!(told(&s), [(address(1), false), (address(2), false)], "heard here, whoever else hears it");
    s.told(address(1), Place { port: 0, seen: 5 }, 10_002, 5);
    assert_eq!(told(&s)[0], (address(1), true), "it moved there");
    let mut full = Stations::<u128>::new(1, 1);
    assert_eq!(full.told(address(1), Place { port: 0, seen: 0 }, 1, 0), Told::Taken);
    assert_eq!(full.told(address(2), Place { port: 0, seen: 0 }, 1, 0), Told::Full);
}
