//! Where stations are: a bounded table of addresses, one cache line a look-up.
//!
//! A bucket is one line: seven stations, and a byte of each one's hash to find it by without a loop. A station lives in
//! its home bucket, or in its second one when the first is full; when both are, one that has a place elsewhere makes
//! way. Buckets are at most half full when the table is, so this does not fail in practice (twelve more would have to be
//! full by chance); if it does, the table counts as full for that station.
//!
//! The hash is keyed. Whoever can choose addresses but not the key cannot make them meet in one bucket, and if some do,
//! a look-up still is two lines at most: the worst is a station that is not learned, never a slow table.

/// Most stations in a table.
pub(crate) const MOST: usize = 1 << 20;

const WAYS: usize = 7;
const LOW: u64 = 0x0101_0101_0101_0101;
/// A tag has this bit set; a way whose tag has not is empty.
const USED: u64 = 0x80 * LOW;
/// The eighth byte belongs to no way.
const ALL_WAYS: u64 = USED >> 8;

/// One line: per way a tag byte, and address, port and time as `address << 16 | port << 8 | seen`.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Bucket {
    tags: u64,
    ways: [u64; WAYS],
}
const _: () = assert!(size_of::<Bucket>() == hw::LINE);

impl Bucket {
    /// Which way holds `address`.
    #[inline(always)]
    fn position(&self, tag: u64, address: u64) -> Option<usize> {
        // Bytes that equal the tag become zero; the lowest zero byte is found exactly, higher ones are candidates.
        let x = self.tags ^ (tag * LOW);
        let mut found = x.wrapping_sub(LOW) & !x & USED;
        while found != 0 {
            let way = found.trailing_zeros() as usize / 8;
            if self.ways.get(way).is_some_and(|w| w >> 16 == address) {
                return Some(way);
            }
            found &= found - 1;
        }
        None
    }
    #[inline]
    const fn free(&self) -> Option<usize> {
        let free = !self.tags & ALL_WAYS;
        if free == 0 { None } else { Some(free.trailing_zeros() as usize / 8) }
    }
    const fn put(&mut self, way: usize, tag: u64, entry: u64) {
        self.clear(way);
        self.tags |= tag << (8 * way);
        self.ways[way] = entry;
    }
    const fn clear(&mut self, way: usize) {
        self.tags &= !(0xff << (8 * way));
    }
    /// The ways in use.
    fn used(&self) -> impl Iterator<Item = usize> + use<> {
        let tags = self.tags;
        (0..WAYS).filter(move |w| (tags >> (8 * w)) & 0x80 != 0)
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

impl Place {
    #[inline(always)]
    const fn of(entry: u64) -> Self {
        Self { port: (entry >> 8) as u8, seen: entry as u8 }
    }
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
#[derive(Clone)]
pub(crate) struct Stations {
    buckets: Box<[Bucket]>,
    key: [u64; 2],
    len: usize,
    most: usize,
}

impl Stations {
    /// Room for `most`, at most [`MOST`]; `seed` keys the hash.
    pub fn new(most: usize, seed: u64) -> Self {
        let buckets = (2 * most).div_ceil(WAYS).next_power_of_two().max(2);
        // Two words from one (the output step of SplitMix64: Steele, Lea and Flood, 2014).
        let word = |n: u64| {
            let z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let buckets = vec![Bucket::default(); buckets].into_boxed_slice();
        Self { buckets, key: [word(1), word(2) | 1], len: 0, most }
    }

    /// Stations in the table.
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Buckets, each one line.
    pub const fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// A keyed hash of an address: both halves of a product with the key, folded.
    #[inline(always)]
    pub fn hash(&self, address: u64) -> u64 {
        let p = u128::from(address ^ self.key[0]) * u128::from(self.key[1]);
        (p >> 64) as u64 ^ p as u64
    }
    #[inline(always)]
    fn tag(hash: u64) -> u64 {
        (hash >> 56) | 0x80
    }
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }
    #[inline(always)]
    fn second(&self, hash: u64) -> usize {
        let b = (hash >> 32) as usize & (self.buckets.len() - 1);
        if b == self.home(hash) { b ^ 1 } else { b }
    }

    /// Brings the home bucket of `hash` closer.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        hw::prefetch_read(&raw const self.buckets[self.home(hash)]);
    }

    /// Where `address` was last heard.
    #[inline(always)]
    pub fn find(&self, address: u64, hash: u64) -> Option<Place> {
        let home = &self.buckets[self.home(hash)];
        match home.position(Self::tag(hash), address) {
            Some(way) => Some(Place::of(home.ways[way])),
            None => self.find_second(address, hash),
        }
    }

    #[inline(never)]
    fn find_second(&self, address: u64, hash: u64) -> Option<Place> {
        let second = &self.buckets[self.second(hash)];
        second.position(Self::tag(hash), address).map(|way| Place::of(second.ways[way]))
    }

    /// Notes that `address` was heard at `place`.
    #[inline(always)]
    pub fn learn(&mut self, address: u64, hash: u64, place: Place) -> Learned {
        let entry = address << 16 | u64::from(place.port) << 8 | u64::from(place.seen);
        let home = &self.buckets[self.home(hash)];
        match home.position(Self::tag(hash), address) {
            // Nothing is written for a station that stays where it is: the line stays clean.
            Some(way) if home.ways[way] == entry => Learned::Known,
            _ => self.change(entry, hash),
        }
    }

    #[inline(never)]
    fn change(&mut self, entry: u64, hash: u64) -> Learned {
        let tag = Self::tag(hash);
        for b in [self.home(hash), self.second(hash)] {
            if let Some(way) = self.buckets[b].position(tag, entry >> 16) {
                let old = core::mem::replace(&mut self.buckets[b].ways[way], entry);
                return if Place::of(old).port == Place::of(entry).port {
                    Learned::Known
                } else {
                    Learned::Moved
                };
            }
        }
        let room = (self.len < self.most).then(|| self.room(hash)).flatten();
        let Some((b, way)) = room else { return Learned::Full };
        self.buckets[b].put(way, tag, entry);
        self.len += 1;
        Learned::New
    }

    /// A free way for `hash`.
    fn room(&mut self, hash: u64) -> Option<(usize, usize)> {
        let both = [self.home(hash), self.second(hash)];
        let free = |s: &Self, b: usize| s.buckets[b].free().map(|way| (b, way));
        both.iter().find_map(|&b| free(self, b)).or_else(|| {
            both.iter().find_map(|&b| (0..WAYS).find_map(|way| self.move_away(b, way).map(|()| (b, way))))
        })
    }

    /// Moves a station to the other one of its two buckets, if that has room.
    fn move_away(&mut self, from: usize, way: usize) -> Option<()> {
        let entry = self.buckets[from].ways[way];
        let hash = self.hash(entry >> 16);
        let home = self.home(hash);
        let other = if home == from { self.second(hash) } else { home };
        let free = self.buckets[other].free()?;
        self.buckets[other].put(free, Self::tag(hash), entry);
        self.buckets[from].clear(way);
        Some(())
    }

    /// Looks at `n` buckets from number `from` on, round the end, and forgets the stations that `keep` is false for.
    /// Returns how many.
    pub fn sweep(&mut self, from: usize, n: usize, keep: impl Fn(Place) -> bool) -> u64 {
        let mask = self.buckets.len() - 1;
        let mut gone = 0;
        for b in from..from + n {
            let bucket = &mut self.buckets[b & mask];
            for way in bucket.used() {
                if !keep(Place::of(bucket.ways[way])) {
                    bucket.clear(way);
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

    fn address(n: usize) -> u64 {
        0x0200_0000_0000 | n as u64
    }
    fn learn(s: &mut Stations, address: u64, port: u8, seen: u8) -> Learned {
        s.learn(address, s.hash(address), Place { port, seen })
    }
    fn find(s: &Stations, address: u64) -> Option<Place> {
        s.find(address, s.hash(address))
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

    #[test]
    fn stations_that_meet_in_full_buckets_make_way_for_each_other() {
        // Two buckets are the only two of every station: the table is full when both are.
        let mut s = Stations::new(1, 5);
        s.most = 2 * WAYS + 1;
        let new = (0..40).filter(|&n| learn(&mut s, address(n), 3, 0) == Learned::New).count();
        assert_eq!((new, s.len()), (2 * WAYS, 2 * WAYS), "every way is used");
        // In four, some stations can go elsewhere: all ways fill up although each station has but two buckets.
        let mut s = Stations::new(14, 5);
        s.most = 4 * WAYS;
        let new = (0..400).filter(|&n| learn(&mut s, address(n), 3, 0) == Learned::New).count();
        assert_eq!((s.buckets(), new), (4, 4 * WAYS));
        assert_eq!(
            (0..400).filter(|&n| find(&s, address(n)).is_some()).count(),
            4 * WAYS,
            "none was lost on its way"
        );
    }

    #[test]
    fn the_table_behaves_as_a_map() {
        let mut s = Stations::new(60, 1);
        let mut map = BTreeMap::new();
        let mut random = 1u64;
        for round in 0..if cfg!(miri) { 400 } else { 40_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (a, port, seen) =
                (address((random >> 33) as usize % 90), (random >> 60) as u8 & 3, (random >> 50) as u8 & 7);
            if round % 50 == 49 {
                let before = map.len();
                map.retain(|_, p: &mut Place| p.seen != seen);
                let gone = s.sweep(random as usize % s.buckets(), s.buckets(), |p| p.seen != seen);
                assert_eq!(gone as usize, before - map.len());
            }
            let place = Place { port, seen };
            let expected = match map.get(&a) {
                Some(p) if p.port == port => Learned::Known,
                Some(_) => Learned::Moved,
                None if map.len() < 60 => Learned::New,
                None => Learned::Full,
            };
            assert_eq!(learn(&mut s, a, port, seen), expected, "round {round}");
            if expected != Learned::Full {
                map.insert(a, place);
            }
            for n in 0..90 {
                assert_eq!(find(&s, address(n)), map.get(&address(n)).copied());
            }
            assert_eq!(s.len(), map.len());
        }
    }

    #[test]
    fn another_seed_spreads_the_same_addresses_otherwise() {
        let homes = |seed| {
            let s = Stations::new(1000, seed);
            (0..100).map(|n| s.home(s.hash(address(n)))).collect::<Vec<_>>()
        };
        assert_eq!(homes(1), homes(1));
        let same = homes(1).iter().zip(homes(2)).filter(|(a, b)| **a == *b).count();
        assert!(same < 10, "{same} of 100 in 512 buckets");
    }

    #[test]
    fn a_tag_next_to_an_equal_one_is_no_station() {
        // The subtraction borrows into the next byte when that differs from the tag in its lowest bit only.
        let mut b = Bucket::default();
        b.put(0, 0x90, 7 << 16);
        b.put(1, 0x91, 8 << 16);
        assert_eq!((b.position(0x90, 7), b.position(0x91, 8)), (Some(0), Some(1)));
        assert_eq!((b.position(0x90, 8), b.position(0x90, 9), b.position(0x80, 0)), (Some(1), None, None));
    }
}
