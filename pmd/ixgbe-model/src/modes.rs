//! How the device behaves: as the data sheet says, lying, or stalled.

/// How the device behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As the data sheet says.
    #[default]
    Normal,
    /// Lies in what it writes back. It never touches memory that is not its own: a buffer it has reported done is
    /// left alone, whether the report was true or not.
    Lying(Lies),
    /// Does its work but does not report it.
    Stalled(Stall),
}

/// Which lies, how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies {
    /// Start of the random sequence; the same seed tells the same lies.
    pub seed: u64,
    /// About one frame in this many is lied about.
    pub one_in: u32,
    /// The lies to choose from: a set of [`Lie`]s.
    pub kinds: u32,
}

impl Lies {
    /// All kinds of lies.
    pub const fn all(seed: u64, one_in: u32) -> Self {
        Self { seed, one_in, kinds: u32::MAX }
    }
    /// One kind only.
    pub const fn only(lie: Lie, seed: u64, one_in: u32) -> Self {
        Self { seed, one_in, kinds: 1 << lie as u32 }
    }
}

/// A lie that the device tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Lie {
    /// A length larger than the buffer.
    LongLength,
    /// A length of 0.
    NoLength,
    /// Some other length that fits the buffer.
    WrongLength,
    /// EOP left out of the last descriptor.
    NoEnd,
    /// Status, errors, type, hash and tag made up; DD and EOP as they should be.
    Garbage,
    /// Owner words of one write-back in reverse order.
    Disorder,
    /// A posted descriptor done without a frame.
    Spurious,
    /// DD in a descriptor that was not posted.
    NotPosted,
    /// Transmit: reported done, never sent.
    Unsent,
    /// Transmit: DD in a descriptor that did not ask for it.
    Unasked,
}

impl Lie {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::LongLength,
        Self::NoLength,
        Self::WrongLength,
        Self::NoEnd,
        Self::Garbage,
        Self::Disorder,
        Self::Spurious,
        Self::NotPosted,
        Self::Unsent,
        Self::Unasked,
    ];
    const RX: u32 = 0b00_1111_1111;
    const TX: u32 = 0b11_1010_0000;
}

/// What is held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Receive write-backs.
    pub rx: bool,
    /// Transmit write-backs.
    pub tx: bool,
    /// The end of a reset: `CTRL.RST` stays set.
    pub reset: bool,
}

/// A small random sequence (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15 | 1)
    }
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub(crate) const fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * n as u64) >> 32) as u32
    }
}

/// The engine's view of the mode.
pub(crate) struct Liar {
    lies: Option<Lies>,
    /// A lie may still lie in a ring.
    has_lied: bool,
    pub(crate) stall: Stall,
    pub(crate) rng: Rng,
}

impl Liar {
    pub(crate) fn new(mode: Mode) -> Self {
        let lies = if let Mode::Lying(l) = mode { Some(l) } else { None };
        let stall = if let Mode::Stalled(s) = mode { s } else { Stall::default() };
        Self { lies, has_lied: lies.is_some(), stall, rng: Rng::new(lies.map_or(0, |l| l.seed)) }
    }
    /// The next mode of a device that may have lied before.
    pub(crate) fn after(&self, mode: Mode) -> Self {
        let new = Self::new(mode);
        Self { has_lied: self.has_lied || new.has_lied, ..new }
    }
    /// Whether descriptors may be in the ring that a lie has marked done.
    #[inline]
    pub(crate) const fn lying(&self) -> bool {
        self.has_lied
    }
    #[inline]
    pub(crate) fn rx(&mut self) -> Option<Lie> {
        self.lies?;
        self.draw(Lie::RX)
    }
    #[inline]
    pub(crate) fn tx(&mut self) -> Option<Lie> {
        self.lies?;
        self.draw(Lie::TX)
    }
    #[cold]
    fn draw(&mut self, side: u32) -> Option<Lie> {
        let lies = self.lies?;
        let kinds = lies.kinds & side;
        if kinds == 0 || self.rng.below(lies.one_in.max(1)) != 0 {
            return None;
        }
        let nth = self.rng.below(kinds.count_ones()) as usize;
        Lie::ALL.into_iter().filter(|l| kinds & 1 << *l as u32 != 0).nth(nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_tells_its_own_lies_and_all_of_them() {
        let mut liar = Liar::new(Mode::Lying(Lies::all(7, 3)));
        let (mut rx, mut tx, mut none) = ([0; 10], [0; 10], 0);
        for _ in 0..3000 {
            match liar.rx() {
                Some(l) => rx[l as usize] += 1,
                None => none += 1,
            }
            if let Some(l) = liar.tx() {
                tx[l as usize] += 1;
            }
        }
        assert!((1800..2200).contains(&none), "about two in three are true: {none}");
        assert!(rx[..8].iter().all(|&n| n > 50) && rx[8..] == [0, 0], "{rx:?}");
        assert!(
            tx[5] > 0 && tx[7] > 0 && tx[8] > 0 && tx[9] > 0 && tx.iter().filter(|&&n| n > 0).count() == 4,
            "{tx:?}"
        );
    }

    #[test]
    fn a_normal_device_tells_none_and_the_same_seed_tells_the_same() {
        assert!((0..100).all(|_| Liar::new(Mode::Normal).rx().is_none()));
        let told = |seed| {
            let mut l = Liar::new(Mode::Lying(Lies::all(seed, 2)));
            (0..50).map(|_| l.rx()).collect::<Vec<_>>()
        };
        assert_eq!(told(1), told(1));
        assert_ne!(told(1), told(2));
    }
}
