//! Where stations are: a bounded table of addresses, nearly always one load a look-up.
//!
//! Each station has a slot of its own by its hash, four or eight slots are a cache line, and a quarter of the slots are used when
//! the table is full. A station whose slot is taken lives elsewhere in that line; when the line is full, in a line that a
//! second hash names; when that is full too, a station that can live elsewhere makes way. So a table takes as many
//! stations as it says; were there ever no way, it counts as full for that station.
//!
//! Both hashes are keyed: multiply-shift with a random odd factor (Dietzfelbinger, Hagerup, Katajainen and Penttonen,
//! 1997), by which any two addresses meet with probability at most two in the number of slots, whoever chose them. Who
//! can choose addresses but not the key cannot make them meet; and if some do, a look-up still ends after two lines: the
//! worst is a station that is not learned, never a slow table.

use super::clock::Clock;
use super::word::{Key, Place, Since, Word};
use crate::random::Random;

/// Most stations in a table.
pub(crate) const MOST: usize = 1 << 20;

/// What [`Stations::learn`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It was known there.
    Known,
    /// So it was, but others have not heard of it for a while.
    Due,
    /// It was not known.
    New,
    /// It was known at another port.
    Moved,
    /// There is no room.
    Full,
}

/// What [`Stations::told`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was believed.
    Taken,
    /// Newer was known.
    Old,
    /// There is no room.
    Full,
}

/// The table, of entries `W`.
pub(crate) struct Stations<W> {
    /// Slots from `start` on, which is where a cache line begins.
    words: Box<[W]>,
    start: usize,
    shift: u32,
    odd: [u64; 2],
    len: usize,
    most: usize,
    /// For entries that have it.
    pub clock: Clock,
}

impl<W: Word> Stations<W> {
    /// Slots of a cache line.
    pub const WAYS: usize = hw::LINE / size_of::<W>();

    /// Room for `most`, at most [`MOST`]; `seed` keys the hash.
    pub fn new(most: usize, seed: u64) -> Self {
        let slots = (4 * most).next_power_of_two().max(2 * Self::WAYS);
        let words = vec![W::EMPTY; slots + Self::WAYS - 1].into_boxed_slice();
        let start = words.as_ptr().align_offset(hw::LINE).min(Self::WAYS - 1);
        let mut random = Random::new(seed);
        let odd = [(); 2].map(|()| random.next() | 1);
        let shift = 64 - slots.trailing_zeros();
        Self { words, start, shift, odd, len: 0, most, clock: Clock::default() }
    }

    /// Stations in the table.
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Cache lines.
    pub const fn lines(&self) -> usize {
        1 << (64 - self.shift) >> Self::WAYS.trailing_zeros()
    }
    #[inline(always)]
    fn slots(&self) -> &[W] {
        &self.words[self.start..]
    }
    #[inline(always)]
    fn slots_mut(&mut self) -> &mut [W] {
        &mut self.words[self.start..]
    }

    /// The slot that is `key`'s own.
    #[inline(always)]
    pub fn slot(&self, key: Key) -> usize {
        (key.bits().wrapping_mul(self.odd[0]) >> self.shift) as usize
    }
    /// Its slot in another line.
    fn second(&self, key: Key) -> usize {
        let slot = (key.bits().wrapping_mul(self.odd[1]) >> self.shift) as usize;
        if slot / Self::WAYS == self.slot(key) / Self::WAYS { slot ^ Self::WAYS } else { slot }
    }
    /// The slots of the line that `slot` lies in, `slot` first.
    fn line(slot: usize) -> impl Iterator<Item = usize> {
        (0..Self::WAYS).map(move |way| slot ^ way)
    }
    /// All slots that `key` may be in.
    fn all_slots(&self, key: Key) -> impl Iterator<Item = usize> + use<W> {
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
            Some(&e) if e.key() == key && e != W::EMPTY => Some(e.place()),
            _ => self.find_elsewhere(key),
        }
    }

    #[inline(never)]
    fn find_elsewhere(&self, key: Key) -> Option<Place> {
        self.held(key).map(|s| self.slots()[s].place())
    }
    /// The slot that holds the station.
    fn held(&self, key: Key) -> Option<usize> {
        let slots = self.slots();
        self.all_slots(key).find(|&s| slots[s].key() == key && slots[s] != W::EMPTY)
    }

    /// Notes that the station was heard at `at`; `slot` is its own.
    #[inline(always)]
    pub fn learn(&mut self, key: Key, slot: usize, at: Place) -> Learned {
        // Nothing is written for a station that stays where it is: the line stays clean.
        match self.slots().get(slot) {
            Some(e) if e.is(key, at) => Learned::Known,
            _ => self.change(key, at),
        }
    }

    #[inline(never)]
    fn change(&mut self, key: Key, at: Place) -> Learned {
        if let Some(s) = self.held(key) {
            let old = self.slots()[s];
            let moved = old.place().port != at.port;
            let (since, learned) = match (W::SHARED, moved) {
                (false, true) => (Since::default(), Learned::Moved),
                (false, false) => (Since::default(), Learned::Known),
                (true, _) => self.clock.heard(old.since(), moved),
            };
            self.slots_mut()[s] = W::new(key, at, since);
            return learned;
        }
        if self.insert(key, at, self.clock.since(false)) { Learned::New } else { Learned::Full }
    }

    /// Notes that another worker heard the station at `at` at `time`, if nothing newer is known. `now` is the stamp of this moment.
    pub fn told(&mut self, key: Key, at: Place, time: u64, now: u8) -> Told {
        let since = Since { time, told: true };
        let Some(s) = self.held(key) else {
            return if self.insert(key, at, since) { Told::Taken } else { Told::Full };
        };
        let (old, place) = (self.slots()[s].since(), self.slots()[s].place());
        if !Clock::newer((time, at.port), (old.time, place.port)) {
            return Told::Old;
        }
        let new = if place.port == at.port {
            // Who hears it too goes on telling others about it.
            let young = |seen: u8| now.wrapping_sub(seen);
            let seen = if young(at.seen) < young(place.seen) { at.seen } else { place.seen };
            W::new(key, Place { seen, ..at }, Since { told: old.told, ..since })
        } else {
            W::new(key, at, since)
        };
        self.slots_mut()[s] = new;
        Told::Taken
    }

    /// Puts in a station that is not there; false without room.
    fn insert(&mut self, key: Key, at: Place, since: Since) -> bool {
        let room = (self.len < self.most).then(|| self.room(key)).flatten();
        let Some(s) = room else { return false };
        self.slots_mut()[s] = W::new(key, at, since);
        self.len += 1;
        true
    }

    /// An empty slot for `key`.
    fn room(&mut self, key: Key) -> Option<usize> {
        let slots = self.slots();
        let empty = self.all_slots(key).find(|&s| slots[s] == W::EMPTY);
        empty.or_else(|| self.all_slots(key).find(|&s| self.move_away(s)))
    }

    /// Moves the station in `from` to its other line, if that has room.
    fn move_away(&mut self, from: usize) -> bool {
        let e = self.slots()[from];
        let (slots, all) = (self.slots(), self.all_slots(e.key()));
        let to = all.filter(|s| s / Self::WAYS != from / Self::WAYS).find(|&s| slots[s] == W::EMPTY);
        if let Some(to) = to {
            self.slots_mut()[to] = e;
        }
        to.is_some()
    }

    /// Looks at `n` lines from number `from` on, round the end, and forgets the stations that `keep` is false for.
    /// Returns how many.
    pub fn sweep(&mut self, from: usize, n: usize, keep: impl Fn(W) -> bool) -> u64 {
        let mut gone = 0;
        for line in from..from + n {
            for slot in self.slots_of(line) {
                let e = &mut self.slots_mut()[slot];
                if *e != W::EMPTY && !keep(*e) {
                    *e = W::EMPTY;
                    gone += 1;
                }
            }
        }
        self.len -= gone;
        gone as u64
    }
    /// The entries of line number `line`, round the end.
    pub fn entries(&self, line: usize) -> impl Iterator<Item = W> {
        self.slots_of(line).map(|s| self.slots()[s]).filter(|&e| e != W::EMPTY)
    }
    fn slots_of(&self, line: usize) -> impl Iterator<Item = usize> + use<W> {
        Self::line((line & (self.lines() - 1)) * Self::WAYS)
    }
}

#[cfg(test)]
mod tests;
