//! Links: generations, lanes, and the bandwidth of one direction at three layers.

use std::fmt;
use std::str::FromStr;

use crate::{PcieError, TlpSize};

/// Bits per second of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// Bits per second.
    pub const fn bits_per_second(self) -> f64 {
        self.0
    }

    /// Bytes per second.
    pub const fn bytes_per_second(self) -> f64 {
        self.0 / 8.0
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} Gb/s", self.0 / 1e9)
    }
}

/// A generation of PCI Express, 1 to 6: the speed of a lane and its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u8);

impl Generation {
    /// Generation `number`, 1 to 6.
    pub const fn new(number: u32) -> Result<Self, PcieError> {
        match number {
            1..=6 => Ok(Self(number as u8)),
            _ => Err(PcieError::Generation(number)),
        }
    }

    /// 1 to 6.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// True of generation 6: TLPs travel in flits of fixed size, without framing and LCRC of their own.
    pub const fn has_flits(self) -> bool {
        self.0 == 6
    }

    /// Bits per second on one lane: 2.5, 5, 8, 16, 32 and 64 GT/s.
    const fn lane(self) -> f64 {
        match self.0 {
            1 => 2.5e9,
            2 => 5e9,
            g => 1e9 * (1_u32 << g) as f64,
        }
    }

    /// The share of the lane's bits that the encoding leaves: 8b/10b (Base 4.2.1), 128b/130b (Base 4.2.2), all of them
    /// in flits.
    const fn encoding(self) -> f64 {
        match self.0 {
            1 | 2 => 8.0 / 10.0,
            3..=5 => 128.0 / 130.0,
            _ => 1.0,
        }
    }

    /// Symbol times that a receiver may take inside: the last term of the Ack and UpdateFC guidelines.
    const fn internal_delay(self) -> f64 {
        match self.0 {
            1 => 19.0,
            2 => 70.0,
            _ => 115.0,
        }
    }
}

/// Lanes of a link: 1, 2, 4, 8, 12, 16 or 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lanes(u8);

impl Lanes {
    /// `count` lanes.
    pub const fn new(count: u32) -> Result<Self, PcieError> {
        match count {
            1 | 2 | 4 | 8 | 12 | 16 | 32 => Ok(Self(count as u8)),
            _ => Err(PcieError::Lanes(count)),
        }
    }

    /// How many.
    pub const fn count(self) -> u8 {
        self.0
    }
}

/// What keeps the data link layer's own packets (DLLPs: Ack, UpdateFC) and skip sets on a link, off its TLPs.
///
/// A receiver sends an Ack and credits at the latest every so many symbol times ([`Link::ack_interval`]); DLLPs that
/// answer one direction's TLPs take bandwidth of the other. In flits (generation 6) they ride in bytes of their own
/// and cost TLPs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overhead {
    /// Skip sets only: the opposite direction carries no TLPs that would want an answer. The most a link can carry.
    OneWay,
    /// An Ack and one UpdateFC each interval, of 8 bytes each: both directions busy.
    #[default]
    Spec,
    /// An Ack and two UpdateFC (posted and non-posted credits) each interval: the opposite direction mixes writes and
    /// reads.
    SpecTwoCredits,
    /// As the published pcie-bench model has it: the interval, which counts symbol times of each lane, is taken as
    /// bytes of the whole link, so that DLLPs weigh as many times too much as there are lanes. The authors' own
    /// measurements (55.44 Gb/s of 1,792-byte reads on Gen3 x8) exceed it. For comparison with the paper only; of
    /// generation 6 it keeps the model's guess of 242 bytes in 256.
    PcieBench,
}

/// A PCI Express link: generation and lanes. Written `gen3x8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its generation.
    pub generation: Generation,
    /// Its lanes.
    pub lanes: Lanes,
}

/// Bytes of a DLLP on the wire: 2 of framing, 4 of content, 2 of CRC (Base 3.4).
const DLLP: f64 = 8.0;
/// The share of skip ordered sets: 4 symbols every 1,538 (Base 4.2.7).
const SKIP: f64 = 4.0 / 1538.0;
/// Header, framing, sequence number and LCRC of a TLP as the Ack guideline counts them (Base 3.5.3.1).
const TLP_OVERHEAD: f64 = 28.0;
/// Bytes of TLPs in a flit of 256: the rest is 6 of DLLPs, 8 of CRC, 6 of error correction (Base 6.0).
const FLIT_TLP: f64 = 236.0 / 256.0;

impl Link {
    /// A link of generation 1 to 6 and 1, 2, 4, 8, 12, 16 or 32 lanes.
    pub fn new(generation: u32, lanes: u32) -> Result<Self, PcieError> {
        Ok(Self { generation: Generation::new(generation)?, lanes: Lanes::new(lanes)? })
    }

    /// Raw: the bits on all lanes, before decoding. Gen3 x8: 64 Gb/s.
    pub const fn signalling(self) -> Bandwidth {
        Bandwidth(self.generation.lane() * self.lanes.0 as f64)
    }

    /// Physical layer: raw without the encoding. Gen3 x8: 63.02 Gb/s (8 lanes at a rounded 7.87 make the 62.96 that is
    /// often quoted).
    pub const fn physical(self) -> Bandwidth {
        Bandwidth(self.signalling().0 * self.generation.encoding())
    }

    /// Transaction layer: what is left for TLPs (headers and framing included) in one direction. Gen3 x8 at 256 bytes
    /// of payload: 62.23 Gb/s by [`Overhead::Spec`], 57.88 Gb/s by [`Overhead::PcieBench`].
    ///
    /// The share lost to DLLPs is 8 bytes each per [`ack_interval`](Self::ack_interval), which passes one byte per
    /// lane and symbol time; in flits it is fixed.
    pub fn transaction_layer(self, max_payload: TlpSize, overhead: Overhead) -> Bandwidth {
        let interval = f64::from(self.ack_interval(max_payload));
        let passed = interval * f64::from(self.lanes.0);
        if self.generation.has_flits() && overhead != Overhead::PcieBench {
            return Bandwidth(self.physical().0 * FLIT_TLP);
        }
        let dllps = match overhead {
            Overhead::OneWay => 0.0,
            Overhead::Spec => 2.0 * DLLP / passed,
            Overhead::SpecTwoCredits => 3.0 * DLLP / passed,
            Overhead::PcieBench => 2.0 * DLLP / interval,
        };
        let guess = if self.generation.has_flits() { 242.0 / 256.0 } else { 1.0 };
        Bandwidth(self.physical().0 * guess * (1.0 - dllps - SKIP))
    }

    /// Symbol times of a lane between two Acks, and between two UpdateFC of a kind, under load (Base 3.5.3.1 and
    /// 2.6.1.2: the tables' entries are `(MPS + 28) * factor / lanes + delay`, rounded down). Gen3 x8 at 256: 203.
    pub fn ack_interval(self, max_payload: TlpSize) -> u32 {
        let lanes = f64::from(self.lanes.0);
        let factor = match (max_payload.bytes() <= 256, self.lanes.0) {
            (true, 0..=4) => 1.4,
            (true, 5..=8) => 2.5,
            (true, _) => 3.0,
            (false, 0..=8) => 1.0,
            (false, _) => 2.0,
        };
        let maximum = f64::from(max_payload.bytes()) + TLP_OVERHEAD;
        (maximum * factor / lanes + self.generation.internal_delay()) as u32
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("gen{}x{}", self.generation.0, self.lanes.0))
    }
}

impl FromStr for Link {
    type Err = PcieError;

    /// `genGxL`, in capitals or not.
    fn from_str(s: &str) -> Result<Self, PcieError> {
        let lower = s.to_ascii_lowercase();
        let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse::<u32>().ok(),
            false => None,
        };
        let parts = lower.strip_prefix("gen").and_then(|rest| rest.split_once('x'));
        match parts.and_then(|(g, l)| Some((number(g)?, number(l)?))) {
            Some((generation, lanes)) => Self::new(generation, lanes),
            None => Err(PcieError::LinkForm(s.to_owned())),
        }
    }
}
