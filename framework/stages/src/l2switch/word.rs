//! What the table keeps of a station: 8 bytes for a bridge that is alone and knows no VLANs, else 16.

/// A station: its address in the upper 48 bits, its VLAN (0 without) below. The table's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// Of the upper six bytes of a big-endian word; the lower two may be anything.
    #[inline(always)]
    pub const fn of(word: u64) -> Self {
        Self(word & !0xffff)
    }
    /// The same address in VLAN `vid`.
    #[inline(always)]
    pub const fn in_vlan(self, vid: u16) -> Self {
        Self(self.0 | vid as u64)
    }
    /// All of it.
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.0
    }
    /// From all of it.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
    /// Its VLAN.
    #[inline(always)]
    pub const fn vid(self) -> u16 {
        self.0 as u16
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
        !self.is_group() && self.address() != 0
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
    const fn bits(self) -> u64 {
        (self.port as u64) << 8 | self.seen as u64
    }
    #[inline(always)]
    const fn from_bits(bits: u64) -> Self {
        Self { port: (bits >> 8) as u8, seen: bits as u8 }
    }
}

/// When a station was last the subject of news, and whose they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Since {
    /// Modulo [`Since::MASK`] + 1, in a unit of the bridge's choice.
    pub time: u64,
    /// Another worker's: it was not heard here since.
    pub told: bool,
}

impl Since {
    /// Times are below this, or equal.
    pub const MASK: u64 = (1 << 47) - 1;
}

/// An entry of the table. The empty one is that of no station, as no station has address zero.
pub(crate) trait Word: Copy + PartialEq {
    const EMPTY: Self;
    /// It has room for [`Since`].
    const SHARED: bool;
    fn new(key: Key, place: Place, since: Since) -> Self;
    fn key(self) -> Key;
    fn place(self) -> Place;
    fn since(self) -> Since;
    /// It is `key`'s, at `place`.
    fn is(self, key: Key, place: Place) -> bool;
}

impl Word for u64 {
    const EMPTY: Self = 0;
    const SHARED: bool = false;
    #[inline(always)]
    fn new(key: Key, place: Place, _: Since) -> Self {
        key.bits() | place.bits()
    }
    #[inline(always)]
    fn key(self) -> Key {
        Key::of(self)
    }
    #[inline(always)]
    fn place(self) -> Place {
        Place::from_bits(self)
    }
    #[inline(always)]
    fn since(self) -> Since {
        Since::default()
    }
    #[inline(always)]
    fn is(self, key: Key, place: Place) -> bool {
        self == key.bits() | place.bits()
    }
}

/// Key, then time, whose it was, and place.
impl Word for u128 {
    const EMPTY: Self = 0;
    const SHARED: bool = true;
    #[inline(always)]
    fn new(key: Key, place: Place, since: Since) -> Self {
        let low = (since.time & Since::MASK) << 17 | (since.told as u64) << 16 | place.bits();
        (key.bits() as Self) << 64 | low as Self
    }
    #[inline(always)]
    fn key(self) -> Key {
        Key::from_bits((self >> 64) as u64)
    }
    #[inline(always)]
    fn place(self) -> Place {
        Place::from_bits(self as u64)
    }
    #[inline(always)]
    fn since(self) -> Since {
        let low = self as u64;
        Since { time: low >> 17, told: low >> 16 & 1 == 1 }
    }
    #[inline(always)]
    fn is(self, key: Key, place: Place) -> bool {
        self.key() == key && self as u16 == place.bits() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_it_was_written() {
        let key = Key::of(0x0200_5e10_00ff_ffff);
        let place = Place { port: 63, seen: 255 };
        let since = Since { time: Since::MASK, told: true };
        let e = <u64 as Word>::new(key, place, since);
        assert_eq!(
            (Word::key(e), e.place(), e.since(), e.is(key, place)),
            (key, place, Since::default(), true)
        );
        let key = key.in_vlan(4094);
        for told in [true, false] {
            let since = Since { time: 0x1234_5678_9abc, told };
            let e = <u128 as Word>::new(key, place, since);
            assert_eq!((e.key(), e.place(), e.since()), (key, place, since));
            assert_eq!((e.key().vid(), e.key().address()), (4094, 0x0200_5e10_00ff));
            assert!(
                e.is(key, place) && !e.is(key, Place { seen: 1, ..place }) && !e.is(key.in_vlan(1), place)
            );
        }
        assert!(!Key::of(0xffff).in_vlan(7).is_station() && !Key::of(1 << 56).is_station());
    }
}
