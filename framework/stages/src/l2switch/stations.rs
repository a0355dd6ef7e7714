//! Where stations are: a bounded table of addresses, nearly always one load a look-up.
//!
//! Each station has a slot of its own by its hash, eight slots are a cache line, and a quarter of the slots are used when
//! the table is full. A station whose slot is taken lives elsewhere in that line; when the line is full, in a line that a
//! second hash names; when that is full too, a station that can live elsewhere makes way. So a table takes as many
//! stations as it says; were there ever no way, it counts as full for that station.
//!
//! Both hashes are keyed: multiply-shift with a random odd factor (Dietzfelbinger, Hagerup, Katajainen and Penttonen,
//! 1997), by which any two addresses meet with probability at most two in the number of slots, whoever chose them. Who
//! can choose addresses but not the key cannot make them meet; and if some do, a look-up still ends after two lines: the
//! worst is a station that is not learned, never a slow table.

/// Most stations in a table.
pub(crate) const MOST: usize = 1 << 20;

/// Slots of a cache line.
const WAYS: usize = hw::LINE / size_of::<u64>();

/// An address in the upper 48 bits of a word, as it is kept: the table's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// Of the upper six bytes of a big-endian word; the lower two may be anything.
    #[inline(always)]
    pub const fn of(word: u64) -> Self {
        Self(word & !0xffff)
    }
    /// The address as a number below 2^48.
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.0 >> 16
    }
    /// To a group of stations: the lowest bit of the first byte.
    #[inline(always)]
    pub const fn is_group(self) -> bool {
        self.0 >> 56 & 1 == 1
    }
    /// One station's: no group, and not zero.
    #[inline(always)]
    pub const fn is_station(self) -> bool {
        !self.is_group() && self.0 != 0
    }
}

/// A station's place and when it was last heard there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A port, by its number within the bridge.
    pub port: u8,
    /// In the bridge's unit of time, modulo 256.
    pub seen: u8,
}

/// A slot: address, port, time. Zero is empty, for no station has address zero.
#[inline(always)]
const fn entry(key: Key, place: Place) -> u64 {
    key.0 | (place.port as u64) << 8 | place.seen as u64
}
#[inline(always)]
const fn key(entry: u64) -> Key {
    Key::of(entry)
}
#[inline(always)]
const fn place(entry: u64) -> Place {
    Place { port: (entry >> 8) as u8, seen: entry as u8 }
}

/// What [`Stations::learn`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It was known there.
    Known,
    /// It was not known.
    New,
    /// It was known at another port.
    Moved,
    /// There is no room.
    Full,
}

/// The table.
pub(crate) struct Stations {
    /// Slots from `start` on, which is where a cache line begins.
    words: Box<[u64]>,
    start: usize,
    shift: u32,
    odd: [u64; 2],
    len: usize,
    most: usize,
}

impl Stations {
    /// Room for `most`, at most [`MOST`]; `seed` keys the hash.
    pub fn new(most: usize, seed: u64) -> Self {
        let slots = (4 * most).next_power_of_two().max(2 * WAYS);
        let words = vec![0u64; slots + WAYS - 1].into_boxed_slice();
        let start = words.as_ptr().align_offset(hw::LINE).min(WAYS - 1);
        // Two words from one (the output step of SplitMix64: Steele, Lea and Flood, 2014).
        let odd = [1u64, 2].map(|n| {
            let z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) | 1
        });
        Self { words, start, shift: 64 - slots.trailing_zeros(), odd, len: 0, most }
    }

    /// Stations in the table.
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Cache lines.
    pub const fn lines(&self) -> usize {
        1 << (64 - self.shift) >> WAYS.trailing_zeros()
    }
    #[inline(always)]
    fn slots(&self) -> &[u64] {
        &self.words[self.start..]
    }
    #[inline(always)]
    fn slots_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.start..]
    }

    /// The slot that is `key`'s own.
    #[inline(always)]
    pub fn slot(&self, key: Key) -> usize {
        (key.0.wrapping_mul(self.odd[0]) >> self.shift) as usize
    }
    /// Its slot in another line.
    fn second(&self, key: Key) -> usize {
        let slot = (key.0.wrapping_mul(self.odd[1]) >> self.shift) as usize;
        if slot / WAYS == self.slot(key) / WAYS { slot ^ WAYS } else { slot }
    }
    /// The slots of the line that `slot` lies in, `slot` first.
    fn line(slot: usize) -> impl Iterator<Item = usize> {
        (0..WAYS).map(move |way| slot ^ way)
    }
    /// All slots that `key` may be in.
    fn all_slots(&self, key: Key) -> impl Iterator<Item = usize> + use<> {
        Self::line(self.slot(key)).chain(Self::line(self.second(key)))
    }

    /// Brings the line of `slot` closer.
    #[inline(always)]
    pub fn prefetch(&self, slot: usize) {
        hw::prefetch_read(self.slots().as_ptr().wrapping_add(slot));
    }

    /// Where the station was last heard; `slot` is its own.
    #[inline(always)]
    pub fn find(&self, key: Key, slot: usize) -> Option<Place> {
        match self.slots().get(slot) {
            // Who sends to address zero does not mean an empty slot.
            Some(&e) if self::key(e) == key && e != 0 => Some(place(e)),
            _ => self.find_elsewhere(key),
        }
    }

    #[inline(never)]
    fn find_elsewhere(&self, key: Key) -> Option<Place> {
        let slots = self.slots();
        self.all_slots(key).map(|s| slots[s]).find(|&e| self::key(e) == key && e != 0).map(place)
    }

    /// Notes that the station was heard at `at`; `slot` is its own.
    #[inline(always)]
    pub fn learn(&mut self, key: Key, slot: usize, at: Place) -> Learned {
        // Nothing is written for a station that stays where it is: the line stays clean.
        match self.slots().get(slot) {
            Some(&e) if e == entry(key, at) => Learned::Known,
            _ => self.change(key, at),
        }
    }

    #[inline(never)]
    fn change(&mut self, key: Key, at: Place) -> Learned {
        if let Some(s) = self.all_slots(key).find(|&s| self::key(self.slots()[s]) == key) {
            let old = core::mem::replace(&mut self.slots_mut()[s], entry(key, at));
            return if place(old).port == at.port { Learned::Known } else { Learned::Moved };
        }
        let room = (self.len < self.most).then(|| self.room(key)).flatten();
        let Some(s) = room else { return Learned::Full };
        self.slots_mut()[s] = entry(key, at);
        self.len += 1;
        Learned::New
    }

    /// An empty slot for `key`.
    fn room(&mut self, key: Key) -> Option<usize> {
        let slots = self.slots();
        let empty = self.all_slots(key).find(|&s| slots[s] == 0);
        empty.or_else(|| self.all_slots(key).find(|&s| self.move_away(s)))
    }

    /// Moves the station in `from` to its other line, if that has room.
    fn move_away(&mut self, from: usize) -> bool {
        let e = self.slots()[from];
        let (slots, all) = (self.slots(), self.all_slots(key(e)));
        let to = all.filter(|s| s / WAYS != from / WAYS).find(|&s| slots[s] == 0);
        if let Some(to) = to {
            self.slots_mut()[to] = e;
        }
        to.is_some()
    }

    /// Looks at `n` lines from number `from` on, round the end, and forgets the stations that `keep` is false for.
    /// Returns how many.
    pub fn sweep(&mut self, from: usize, n: usize, keep: impl Fn(Place) -> bool) -> u64 {
        let mask = self.lines() - 1;
        let mut gone = 0;
        for line in from..from + n {
            for slot in Self::line((line & mask) * WAYS) {
                let e = &mut self.slots_mut()[slot];
                if *e != 0 && !keep(place(*e)) {
                    *e = 0;
                    gone += 1;
                }
            }
        }
        self.len -= gone;
        gone as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const SIZES: &[usize] = if cfg!(miri) { &[1, 7, 40] } else { &[1, 7, 8, 100, 4096, 37_449] };

    fn address(n: usize) -> Key {
        Key::of((0x0200_0000_0000 | n as u64) << 16)
    }
    fn learn(s: &mut Stations, key: Key, port: u8, seen: u8) -> Learned {
        s.learn(key, s.slot(key), Place { port, seen })
    }
    fn find(s: &Stations, key: Key) -> Option<Place> {
        s.find(key, s.slot(key))
    }

    #[test]
    fn a_table_takes_as_many_stations_as_it_says_and_no_more() {
        for (&most, seed) in SIZES.iter().zip(7..) {
            let mut s = Stations::new(most, seed);
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
    fn of_lines(s: &Stations, first: usize, second: usize) -> impl Iterator<Item = Key> {
        (0..4000).map(address).filter(move |&k| (s.slot(k) / WAYS, s.second(k) / WAYS) == (first, second))
    }

    #[test]
    fn stations_that_meet_in_full_lines_make_way_for_each_other() {
        let mut s = Stations::new(8, 5);
        assert_eq!(s.lines(), 4);
        s.most = 4 * WAYS;
        // Lines 0 and 1 are full, of stations that could live in 2 and 3 as well.
        let mut all: Vec<Key> = of_lines(&s, 0, 2).take(WAYS).chain(of_lines(&s, 1, 3).take(WAYS)).collect();
        all.extend(of_lines(&s, 0, 1).take(2 * WAYS));
        assert_eq!(all.len(), 4 * WAYS);
        for &k in &all {
            assert_eq!(learn(&mut s, k, 3, 0), Learned::New);
        }
        assert!(all.iter().all(|&k| find(&s, k).is_some()), "none was lost on its way");
        s.most += 1;
        let more = of_lines(&s, 0, 1).nth(2 * WAYS).unwrap();
        assert_eq!(learn(&mut s, more, 3, 0), Learned::Full, "nobody can make way any more");
    }

    #[test]
    fn every_station_has_two_lines() {
        for most in [1, 8, 100] {
            let s = Stations::new(most, 9);
            assert!(
                (0..if cfg!(miri) { 50 } else { 500 })
                    .map(address)
                    .all(|k| s.slot(k) / WAYS != s.second(k) / WAYS),
                "of {most}"
            );
            assert!(
                (0..if cfg!(miri) { 50 } else { 500 })
                    .map(address)
                    .all(|k| s.all_slots(k).all(|slot| slot < s.lines() * WAYS))
            );
        }
    }

    #[test]
    fn the_table_behaves_as_a_map() {
        let mut s = Stations::new(60, 1);
        let mut map = BTreeMap::<u64, Place>::new();
        let mut random = 1u64;
        for round in 0..if cfg!(miri) { 120 } else { 40_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (a, port, seen) =
                (address((random >> 33) as usize % 90), (random >> 60) as u8 & 3, (random >> 50) as u8 & 7);
            if round % 50 == 49 {
                let before = map.len();
                map.retain(|_, p| p.seen != seen);
                let gone = s.sweep(random as usize % s.lines(), s.lines(), |p| p.seen != seen);
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
        let homes = |seed| {
            let s = Stations::new(1000, seed);
            (0..100).map(|n| s.slot(address(n))).collect::<Vec<_>>()
        };
        assert_eq!(homes(1), homes(1));
        let same = homes(1).iter().zip(homes(2)).filter(|(a, b)| **a == *b).count();
        assert!(same < 5, "{same} of 100 in 4096 slots");
    }
}
