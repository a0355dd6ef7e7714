//! The frames of the demo: how long they are, and what is in them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Ethernet (14), IPv4 (20) and UDP (8) headers.
const HEADERS: usize = 42;
/// Behind the headers: the flow (u16) and the frame's number in its flow (u64), both big endian.
const FLOW: usize = HEADERS;
pub(super) const NUMBER: usize = FLOW + 2;
pub(super) const FILL: usize = NUMBER + 8;
/// Bytes of the shortest frame in its buffer.
const HEAD: usize = 60;
/// The frame check sequence, which sizes include and buffers do not.
const FCS: usize = 4;
/// The field's usual mix: 7 of 64, 4 of 594, 1 of 1518 bytes (simple IMIX), spread over a dozen.
const IMIX: [u8; 12] = [0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1];
const IMIX_SIZES: [usize; 3] = [64, 594, 1518];

/// The sizes of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// All of one size, in bytes with the frame check sequence.
    Fixed(usize),
    /// The simple Internet mix.
    Imix,
}

impl Frames {
    const LEAST: usize = 64;
    const MOST: usize = 9600;

    /// Bytes of the longest, without the frame check sequence.
    pub const fn longest(self) -> usize {
        match self {
            Self::Fixed(n) => n - FCS,
            Self::Imix => 1518 - FCS,
        }
    }
    /// Which of its sizes the frame with a given number in its flow has, and bytes of that.
    #[inline]
    const fn size(self, number: u64) -> (usize, usize) {
        match self {
            Self::Fixed(n) => (0, n - FCS),
            Self::Imix => {
                let which = IMIX[(number % 12) as usize] as usize;
                (which, IMIX_SIZES[which] - FCS)
            }
        }
    }
    fn lens(self) -> Vec<usize> {
        match self {
            Self::Fixed(n) => vec![n - FCS],
            Self::Imix => IMIX_SIZES.map(|n| n - FCS).into(),
        }
    }
}

impl FromStr for Frames {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == "imix" {
            return Ok(Self::Imix);
        }
        let why = || {
            format!("use {} to {} bytes (with the 4 of the check sequence), or imix", Self::LEAST, Self::MOST)
        };
        let n: usize = s.parse().map_err(|_| why())?;
        if (Self::LEAST..=Self::MOST).contains(&n) { Ok(Self::Fixed(n)) } else { Err(why()) }
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(n) => write!(f, "{n} B frames"),
            Self::Imix => f.write_str("IMIX (7:4:1 of 64, 594, 1518 B)"),
        }
    }
}

/// The frames that one side sends: a template per flow, all of the longest size.
pub struct Pattern {
    frames: Frames,
    pub(super) flows: u16,
    stride: usize,
    templates: Box<[u8]>,
    /// For each size, how each flow's frames of it begin, with number 0.
    heads: Box<[Words]>,
}

impl Pattern {
    /// Frames from stations behind port `side` to those behind the other.
    pub fn new(side: u8, frames: Frames, flows: u16) -> Arc<Self> {
        let stride = frames.longest();
        let mut templates = vec![0; stride * usize::from(flows)].into_boxed_slice();
        for (flow, t) in templates.chunks_exact_mut(stride).enumerate() {
            headers(t, side, flow as u16);
            // Bytes that no two places of a frame, and no two flows, are likely to share by mistake.
            for (i, b) in t[FILL..].iter_mut().enumerate() {
                *b = (i * 7 + flow * 13 + usize::from(side) * 101) as u8;
            }
        }
        let mut heads = Vec::new();
        for len in frames.lens() {
            for mut head in templates.chunks_exact(stride).filter_map(|t| t.first_chunk().copied()) {
                set_lengths(&mut head, len);
                heads.push(words(&head));
            }
        }
        Arc::new(Self { frames, flows, stride, templates, heads: heads.into() })
    }

    fn template(&self, flow: u16) -> &[u8] {
        let at = usize::from(flow) * self.stride;
        &self.templates[at..at + self.stride]
    }

    /// The first bytes of a frame, which the shortest has as well, and nothing behind them. In words, and never partly
    /// written twice: a load that spans two stores waits for both to reach the cache.
    #[inline]
    fn head(&self, flow: u16, number: u64, size: usize) -> Words {
        let mut head = self.heads[size * usize::from(self.flows) + usize::from(flow)];
        let n = number.to_be();
        head[NUMBER / 8] |= (n << 32).to_le();
        head[NUMBER / 8 + 1] |= (n >> 32).to_le();
        head
    }

    #[inline]
    pub fn write(&self, flow: u16, number: u64, room: &mut [u8]) -> usize {
        let (size, len) = self.frames.size(number);
        let head = self.head(flow, number, size);
        for (to, word) in room.as_chunks_mut().0.iter_mut().zip(head) {
            *to = word.to_ne_bytes();
        }
        if len > HEAD {
            room[HEAD..len].copy_from_slice(&self.template(flow)[HEAD..len]);
        }
        len
    }

    /// The flow and number of an untouched frame of this pattern.
    #[inline]
    pub fn read(&self, frame: &[u8]) -> Option<(u16, u64)> {
        let (head, rest) = frame.split_first_chunk::<HEAD>()?;
        let flow = u16::from_be_bytes([head[FLOW], head[FLOW + 1]]);
        let number = u64::from_be_bytes(*head[NUMBER..FILL].as_array()?);
        let (size, len) = self.frames.size(number);
        if flow >= self.flows || frame.len() != len {
            return None;
        }
        let expected = self.head(flow, number, size);
        let differ = words(head).iter().zip(expected).fold(0, |d, (a, b)| d | (a ^ b));
        if differ != 0 {
            return None;
        }
        (rest.is_empty() || *rest == self.template(flow)[HEAD..len]).then_some((flow, number))
    }
}

/// The first bytes of a frame as they lie in memory, and zeroes behind them.
type Words = [u64; HEAD.div_ceil(8)];
const _: () = assert!(NUMBER % 8 == 4 && HEAD % 8 == 4, "as `head` and `words` split them");

#[inline]
fn words(head: &[u8; HEAD]) -> Words {
    let (whole, rest) = head.as_chunks();
    let mut words = [0; HEAD.div_ceil(8)];
    for (word, bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words[HEAD / 8] = rest.first_chunk().map_or(0, |r| u64::from(u32::from_le_bytes(*r))).to_le();
    words
}

fn headers(t: &mut [u8], side: u8, flow: u16) {
    let mac = |side: u8| [0x02, 0, 0, side, (flow >> 8) as u8, flow as u8];
    let ip = |side: u8| [198, 18 + side, (flow >> 8) as u8, flow as u8];
    t[..6].copy_from_slice(&mac(1 - side));
    t[6..12].copy_from_slice(&mac(side));
    t[12..14].copy_from_slice(&[0x08, 0x00]);
    // RFC 791: version 4, 5 words, no options, do not fragment, TTL 64, UDP. RFC 2544: addresses of benchmarks.
    t[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17]);
    t[26..30].copy_from_slice(&ip(side));
    t[30..34].copy_from_slice(&ip(1 - side));
    t[34..36].copy_from_slice(&(1024 + flow).to_be_bytes());
    t[36..38].copy_from_slice(&9u16.to_be_bytes());
    t[FLOW..NUMBER].copy_from_slice(&flow.to_be_bytes());
}

/// Writes the lengths that IPv4 and UDP state, and the IPv4 header checksum (RFC 1071). No UDP checksum (RFC 768).
fn set_lengths(head: &mut [u8], len: usize) {
    head[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    head[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
    head[24..26].fill(0);
    let sum = wire::checksum::of(&head[14..34]);
    head[24..26].copy_from_slice(&sum.to_be_bytes());
}
