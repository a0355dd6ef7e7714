//! How long frames are, and in which order the lengths follow each other.

use std::fmt;
use std::str::FromStr;

/// Bytes of the frame check sequence: sizes include it, buffers do not.
pub(crate) const FCS: usize = 4;
/// Preamble, start delimiter and gap (IEEE 802.3, 4.4.2), which a frame takes on the wire beside its size.
const BESIDE: usize = 20;
/// The shortest Ethernet frame (IEEE 802.3, 3.2.7), and the longest that an IPv4 or IPv6 length field can state.
const SHORTEST: usize = 64;
const LONGEST: usize = 65_535;
/// Frames after which the order of the sizes begins again, at most.
const MOST_TURNS: usize = 4096;
/// The field's usual mix ("simple IMIX"), the same as the demo's.
const IMIX: &str = "64:7,594:4,1518:1";

/// Sizes of frames in bytes with the frame check sequence, each with how often it comes.
///
/// Written as `64`, `64:7,594:4,1518:1` or `imix`, which is the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    sizes: Vec<(usize, usize)>,
    /// Which size each frame of a flow has: index into `sizes`, spread as evenly as can be.
    turns: Vec<u8>,
}

impl Sizes {
    /// Frames of one size.
    ///
    /// # Errors
    /// A size that no frame has.
    pub fn one(size: usize) -> Result<Self, String> {
        Self::mixed(vec![(size, 1)])
    }

    /// Frames of several sizes, each with its weight.
    ///
    /// # Errors
    /// A size that no frame has, or weights that cannot be told apart in a few thousand frames.
    pub fn mixed(sizes: Vec<(usize, usize)>) -> Result<Self, String> {
        if sizes.is_empty() || sizes.len() > usize::from(u8::MAX) {
            return Err(format!("{} sizes: use 1 to {}", sizes.len(), u8::MAX));
        }
        if let Some((size, _)) = sizes.iter().find(|(s, _)| !(SHORTEST..=LONGEST).contains(s)) {
            return Err(format!(
                "a frame of {size} bytes: use {SHORTEST} to {LONGEST}, with the {FCS} of the check sequence"
            ));
        }
        let divisor = sizes.iter().fold(0, |d, (_, weight)| gcd(d, *weight)).max(1);
        let sizes: Vec<_> = sizes.into_iter().map(|(s, w)| (s, w / divisor)).collect();
        let total = sizes.iter().fold(0usize, |sum, (_, w)| sum.saturating_add(*w));
        if sizes.iter().any(|(_, w)| *w == 0) || total > MOST_TURNS {
            return Err(format!("weights: use whole numbers from 1, {MOST_TURNS} together at most"));
        }
        let turns = turns(&sizes, total);
        Ok(Self { sizes, turns })
    }

    /// Each size, in bytes with the frame check sequence.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> {
        self.sizes.iter().map(|(size, _)| *size)
    }
    /// The longest, in bytes with the frame check sequence.
    pub fn longest(&self) -> usize {
        self.iter().max().unwrap_or(SHORTEST)
    }
    /// The shortest, in bytes with the frame check sequence.
    pub fn shortest(&self) -> usize {
        self.iter().min().unwrap_or(SHORTEST)
    }
    /// Frames after which the order begins again.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }
    /// Which size comes at turn `turn`, which is below [`Self::turns`].
    #[inline]
    pub(crate) fn at_turn(&self, turn: usize) -> usize {
        self.turns.get(turn).map_or(0, |i| usize::from(*i))
    }
    /// Which size frame `number` of `flow` has. Flows begin at different turns, so that neighbours differ.
    #[inline]
    pub(crate) fn of(&self, flow: u32, number: u64) -> usize {
        let n = self.turns.len() as u64;
        if n == 1 { 0 } else { self.at_turn(((number + u64::from(flow)) % n) as usize) }
    }
    /// Bits that a frame takes on the wire, on average over all turns: check sequence, preamble and gap included.
    pub fn mean_wire_bits(&self) -> f64 {
        let bits: usize = self.sizes.iter().map(|(s, w)| wire_bits(*s) as usize * w).sum();
        bits as f64 / self.turns.len() as f64
    }
}

/// Bits that a frame of `size` bytes takes on the wire.
pub(crate) const fn wire_bits(size: usize) -> u64 {
    (size + BESIDE) as u64 * 8
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Spreads the sizes evenly: at each turn every size earns its weight, and the one that has earned most comes and pays
/// for all.
fn turns(sizes: &[(usize, usize)], total: usize) -> Vec<u8> {
    let mut earned = vec![0isize; sizes.len()];
    let mut turns = Vec::with_capacity(total);
    for _ in 0..total {
        earned.iter_mut().zip(sizes).for_each(|(e, (_, w))| *e += *w as isize);
        // The first of the richest.
        let richest = (0..sizes.len()).rev().max_by_key(|&i| earned[i]).unwrap_or(0);
        earned[richest] -= total as isize;
        turns.push(richest as u8);
    }
    turns
}

impl FromStr for Sizes {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let wrong = || format!("{s:?} is no size: write 64, 64:7,594:4 (sizes with weights), or imix");
        let text = if s == "imix" { IMIX } else { s };
        let part = |part: &str| {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            Some((size.trim().parse().ok()?, weight.trim().parse().ok()?))
        };
        Self::mixed(text.split(',').map(part).collect::<Option<_>>().ok_or_else(wrong)?)
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(size, _)] = self.sizes[..] {
            return write!(f, "{size} B");
        }
        let list: Vec<_> = self.sizes.iter().map(|(s, w)| format!("{s}:{w}")).collect();
        write!(f, "{} B", list.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        let shown = |s: &str| s.parse::<Sizes>().unwrap().to_string();
        assert_eq!(shown("64"), "64 B");
        assert_eq!(shown("imix"), "64:7,594:4,1518:1 B");
        assert_eq!(shown("128:2,64:4"), "128:1,64:2 B", "weights are only what they are to each other");
        for (wrong, says) in [
            ("63", "64 to 65535"),
            ("65536", "64 to 65535"),
            ("64:0,65:1", "from 1"),
            ("64:9999,65:1", "4096 together"),
            ("18446744073709551615:1", "64 to 65535"),
            ("64:18446744073709551615,65:1", "4096 together"),
            ("", "imix"),
            ("big", "imix"),
            ("64:1:2", "imix"),
            ("-64", "imix"),
        ] {
            let e = wrong.parse::<Sizes>().unwrap_err();
            assert!(e.contains(says), "{wrong}: {e}");
        }
    }

    #[test]
    fn each_size_comes_as_often_as_its_weight_and_evenly() {
        let imix: Sizes = "imix".parse().unwrap();
        assert_eq!(imix.turns(), 12);
        let count = |i: usize| (0..12).filter(|&t| imix.at_turn(t) == i).count();
        assert_eq!([0, 1, 2].map(count), [7, 4, 1]);
        let longest_run = imix.turns.chunk_by(|a, b| a == b).map(<[u8]>::len).max();
        assert!(longest_run <= Some(2), "{:?}", imix.turns);
        assert_eq!(imix.of(3, 11), imix.at_turn(2), "flows begin at different turns");
        assert_eq!((imix.shortest(), imix.longest()), (64, 1518));
    }

    #[test]
    fn bits_on_the_wire_count_preamble_and_gap() {
        assert_eq!(wire_bits(64), 672, "14.88 million a second at 10 Gbit/s");
        let imix: Sizes = "imix".parse().unwrap();
        let mean = (7.0 * 672.0 + 4.0 * 4912.0 + 12304.0) / 12.0;
        assert!((imix.mean_wire_bits() - mean).abs() < 1e-9);
    }
}
