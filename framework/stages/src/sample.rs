//! One packet in so many, as a copy.

use config::{KeyError, Keys};
use graph::{Exits, Leads, Stage};
use mem::{Batch, Flags, PacketBuf, PoolId};
use toml::Table;

use crate::random::Random;
use crate::{StageError, exits};

exits! {
    /// Ways out of [`Sample`].
    SampleExit {
        /// All packets, unchanged.
        Out = "out" => Leads::Open,
        /// Copies of some.
        Sample = "sample" => Leads::Open,
    }
}

/// Which packets are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Each with a chance of one in so many, whatever became of those before: what is seen is no part of any pattern of the traffic.
    OneIn(u32),
    /// The first, and from there on every so manieth.
    Every(u32),
}

/// What a sampler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleConfig {
    /// Which packets.
    pub choice: Choice,
    /// Bytes of a copy at most; `None` for all. A copy that is cut is never longer than one buffer.
    pub length: Option<u16>,
    /// For [`Choice::OneIn`]: the same seed chooses the same packets. `None` leaves it to whoever makes the stage.
    pub seed: Option<u64>,
}

impl SampleConfig {
    /// Its keys.
    pub const KEYS: &'static [&'static str] = &["one_in", "every", "length", "seed"];

    /// From the keys of `table`.
    ///
    /// # Errors
    /// An unknown key, a value that cannot be, both ways to choose or neither.
    pub fn read(table: &Table) -> Result<Self, KeyError> {
        let keys = Keys::new(table, Self::KEYS)?;
        let number = |key| keys.number(key, 1, 1..=u32::MAX.into()).map(|n| n as u32);
        let choice = match (keys.has("one_in"), keys.has("every")) {
            (true, false) => Choice::OneIn(number("one_in")?),
            (false, true) => Choice::Every(number("every")?),
            (true, true) => {
                return Err(KeyError::new("every", "cannot be told together with one_in: choose one"));
            }
            (false, false) => {
                let what = "is missing: write one_in = 1000 for a random packet in 1000, or every = 1000";
                return Err(KeyError::new("one_in", what));
            }
        };
        let length = keys.number("length", 0, 1..=u16::MAX.into())?;
        let seed = keys.number("seed", 0, 0..=i64::MAX as u64)?;
        Ok(Self {
            choice,
            length: keys.has("length").then_some(length as u16),
            seed: keys.has("seed").then_some(seed),
        })
    }
}

/// Sends packets on, and a copy of some out of exit `sample`, marked as the original is. A copy counts as created; without a buffer it
/// counts as dropped (`no_buffer`), and the original still goes.
///
/// A copy that is cut short is to look at, not to send on: it is in one buffer, and work that a device was to do on the whole is asked for no
/// more.
#[derive(Clone, Debug)]
pub struct Sample {
    choice: Choice,
    length: usize,
    pool: PoolId,
    random: Random,
    /// Packets that go by before the next is copied.
    skip: u64,
    sampled: u64,
}

impl Sample {
    /// Copies into buffers of `pool`. `seed` is used if the configuration has none.
    ///
    /// # Errors
    /// [`StageError::Sample`] for one in none, or copies of no bytes.
    pub fn new(config: &SampleConfig, pool: PoolId, seed: u64) -> Result<Self, StageError> {
        let (Choice::OneIn(n) | Choice::Every(n)) = config.choice;
        if n == 0 || config.length == Some(0) {
            return Err(StageError::Sample);
        }
        let mut stage = Self {
            choice: config.choice,
            length: config.length.map_or(usize::MAX, usize::from),
            pool,
            random: Random::new(config.seed.unwrap_or(seed)),
            skip: 0,
            sampled: 0,
        };
        if let Choice::OneIn(_) = stage.choice {
            stage.skip = stage.gap();
        }
        Ok(stage)
    }

    /// Packets between two that are copied: of a geometric distribution, or always as many.
    fn gap(&mut self) -> u64 {
        match self.choice {
            Choice::Every(n) => u64::from(n) - 1,
            // By inversion: the chance of more than `k` is that of `k + 1` misses in a row.
            Choice::OneIn(n) => (self.random.unit().ln() / (-1.0 / f64::from(n)).ln_1p()) as u64,
        }
    }

    fn sample(&mut self, i: usize, batch: &mut Batch, exits: &mut Exits<'_, SampleExit>) {
        self.sampled += 1;
        let port = batch.pkt(i).map_or(0, |p| p.port());
        match cut(batch, i, self.pool, self.length) {
            Some(copy) => exits.create(copy, batch, SampleExit::Sample),
            None => exits.copy(batch, i, self.pool, port, SampleExit::Sample),
        }
    }
}

/// The first bytes of packet `i`, at most `length`. `None` if those are all, or there is no buffer.
fn cut(batch: &mut Batch, i: usize, pool: PoolId, length: usize) -> Option<PacketBuf> {
    let local = batch.local().clone();
    let packet = batch.pkt(i).filter(|p| p.total_len() > length)?;
    let mut copy = PacketBuf::fresh(&local, pool)?;
    let mut to = copy.pkt();
    let room = length.min(local.layout().room().into());
    let mut left = to.resize(room as u16).unwrap_or_default();
    for from in packet.segments() {
        let n = from.len().min(left.len());
        let (now, later) = left.split_at_mut(n);
        now.copy_from_slice(&from[..n]);
        left = later;
    }
    to.set_port(packet.port());
    to.set_ext(packet.ext());
    let undone = Flags::TX_L3.with(Flags::TX_L4).with(Flags::TSO).with(Flags::USO).with(Flags::HASH);
    to.set_flags(packet.flags().without(undone).without(Flags::CHAIN));
    Some(copy)
}

impl Stage for Sample {
    type Exit = SampleExit;
    const KIND: &'static str = "sample";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, SampleExit>) {
        exits.set_all(SampleExit::Out);
        let (n, mut next) = (batch.len() as u64, self.skip);
        while next < n {
            self.sample(next as usize, batch, exits);
            next = next.saturating_add(1).saturating_add(self.gap());
        }
        self.skip = next - n;
    }

    fn notes(&self) -> Vec<(&'static str, u64)> {
        vec![("sampled", self.sampled)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mem::{Layout, Local, Memory};

    fn sampler(choice: Choice) -> Sample {
        let memory = Memory::new(hw::Window::on_heap(2 << 20), Layout::for_frame_room(128).unwrap());
        let pool = memory.add_pool(64, None, hw::Pages::Any).unwrap().id();
        drop(Local::new(&memory));
        Sample::new(&SampleConfig { choice, length: None, seed: Some(7) }, pool, 0).unwrap()
    }

    #[test]
    fn gaps_are_geometric() {
        for n in [1u32, 2, 10, 1000] {
            let mut s = sampler(Choice::OneIn(n));
            let many = if cfg!(miri) { 200 } else { 200_000 };
            let gaps: Vec<f64> = (0..many).map(|_| s.gap() as f64).collect();
            let mean = gaps.iter().sum::<f64>() / f64::from(many);
            // Misses before a hit of chance 1/n: n - 1 in the mean, with variance n (n - 1); within five of its deviations.
            let (expected, n) = (f64::from(n) - 1.0, f64::from(n));
            let wide = 5.0 * (n * (n - 1.0) / f64::from(many)).sqrt();
            assert!((mean - expected).abs() <= wide, "one in {n}: {mean}");
            let none = gaps.iter().filter(|&&g| g == 0.0).count() as f64 / f64::from(many);
            let wide = 5.0 * (1.0 / n * (1.0 - 1.0 / n) / f64::from(many)).sqrt();
            assert!((none - 1.0 / n).abs() <= wide, "one in {n}: {none} at once");
        }
        assert!((0..100).all(|_| sampler(Choice::OneIn(u32::MAX)).gap() < u64::MAX / 2));
        assert_eq!([1, 2, 50].map(|n| sampler(Choice::Every(n)).gap()), [0, 1, 49]);
    }

    #[test]
    fn configuration_is_read_or_refused() {
        let read = |text: &str| SampleConfig::read(&text.parse().unwrap()).map_err(|e| e.to_string());
        let random = SampleConfig { choice: Choice::OneIn(1000), length: Some(128), seed: Some(3) };
        assert_eq!(read("one_in = 1000\nlength = 128\nseed = 3"), Ok(random));
        assert_eq!(
            read("every = 7"),
            Ok(SampleConfig { choice: Choice::Every(7), length: None, seed: None })
        );
        assert!(read("").unwrap_err().starts_with("one_in: is missing: write one_in = 1000"));
        assert_eq!(
            read("every = 1\none_in = 2").unwrap_err(),
            "every: cannot be told together with one_in: choose one"
        );
        assert_eq!(read("every = 0").unwrap_err(), "every: 0 is not a whole number from 1 to 4294967295");
        assert_eq!(
            read("every = 1\nlength = 70000").unwrap_err(),
            "length: 70000 is not a whole number from 1 to 65535"
        );
        assert_eq!(read("evry = 1").unwrap_err(), "evry: is not known; did you mean every?");
    }
}
