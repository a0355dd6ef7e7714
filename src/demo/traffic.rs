//! What is at the end of the demo's wires: a generator and a checker that know each other's frames.
//!
//! A frame is a function of its side, flow and number, so the checker needs nothing but the frame to say whether it
//! arrived once, unchanged and in order.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ixgbe_model::{Arrival, Wire};

/// Ethernet (14), IPv4 (20) and UDP (8) headers.
const HEADERS: usize = 42;
/// Behind the headers: the flow (u16) and the frame's number in its flow (u64), both big endian.
const FLOW: usize = HEADERS;
const NUMBER: usize = FLOW + 2;
const FILL: usize = NUMBER + 8;
/// Bytes of the shortest frame in its buffer.
const HEAD: usize = 60;
/// The frame check sequence, which sizes include and buffers do not.
const FCS: usize = 4;
/// The field's usual mix: 7 of 64, 4 of 594, 1 of 1518 bytes (simple IMIX), spread over a dozen.
const IMIX: [usize; 12] = [64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 64, 594];

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
    /// Bytes of the frame with a given number in its flow.
    fn len(self, number: u64) -> usize {
        match self {
            Self::Fixed(n) => n - FCS,
            Self::Imix => IMIX[(number % 12) as usize] - FCS,
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
    flows: u16,
    stride: usize,
    templates: Box<[u8]>,
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
        Arc::new(Self { frames, flows, stride, templates })
    }

    fn template(&self, flow: u16) -> &[u8] {
        let at = usize::from(flow) * self.stride;
        &self.templates[at..at + self.stride]
    }

    /// The first bytes of a frame, which the shortest has as well: of fixed size, so that they are moved and compared
    /// without a call.
    #[inline]
    fn head(&self, flow: u16, number: u64, len: usize) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head.copy_from_slice(&self.template(flow)[..HEAD]);
        head[NUMBER..FILL].copy_from_slice(&number.to_be_bytes());
        if matches!(self.frames, Frames::Imix) {
            set_lengths(&mut head, len);
        }
        head
    }

    #[inline]
    fn write(&self, flow: u16, number: u64, room: &mut [u8]) -> usize {
        let len = self.frames.len(number);
        room[..HEAD].copy_from_slice(&self.head(flow, number, len));
        if len > HEAD {
            room[HEAD..len].copy_from_slice(&self.template(flow)[HEAD..len]);
        }
        len
    }

    /// The flow and number of an untouched frame of this pattern.
    #[inline]
    fn read(&self, frame: &[u8]) -> Option<(u16, u64)> {
        let (head, rest) = frame.split_first_chunk::<HEAD>()?;
        let flow = u16::from_be_bytes([head[FLOW], head[FLOW + 1]]);
        let number = u64::from_be_bytes(*head[NUMBER..FILL].as_array()?);
        let len = frame.len();
        if flow >= self.flows || len != self.frames.len(number) || *head != self.head(flow, number, len) {
            return None;
        }
        (rest.is_empty() || *rest == self.template(flow)[HEAD..len]).then_some((flow, number))
    }
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
    lengths(t);
}

fn lengths(frame: &mut [u8]) {
    let len = frame.len();
    set_lengths(frame, len);
}

/// Writes the lengths that IPv4 and UDP state, and the IPv4 header checksum (RFC 1071). No UDP checksum (RFC 768).
fn set_lengths(head: &mut [u8], len: usize) {
    head[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    head[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
    head[24..26].fill(0);
    let sum = wire::checksum::of(&head[14..34]);
    head[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// What a wire's two ends have counted. One writer: the thread that runs the devices.
#[derive(Default)]
pub struct Counts {
    /// Frames that the generator sent.
    pub generated: AtomicU64,
    /// Frames that arrived unchanged, each once and in the order of its flow.
    pub verified: AtomicU64,
    /// Frames that arrived unchanged, but after a later one of their flow.
    pub reordered: AtomicU64,
    /// Frames that had arrived before.
    pub duplicated: AtomicU64,
    /// Frames that are not as they were sent.
    pub changed: AtomicU64,
}

fn bump(c: &AtomicU64, n: u64) {
    // One writer: a load and a store are enough, and far cheaper than an atomic addition.
    c.store(c.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Where a flow is: the next number, and which of the 64 before it have arrived.
#[derive(Clone, Copy, Default)]
struct Progress {
    next: u64,
    seen: u64,
}

/// One end of a wire: sends one pattern, checks the other.
pub struct Tester {
    sends: Arc<Pattern>,
    expects: Arc<Pattern>,
    flow: u16,
    number: u64,
    progress: Box<[Progress]>,
    running: Arc<AtomicBool>,
    counts: Arc<Counts>,
    generated: u64,
    verified: u64,
}

impl Tester {
    /// Sends while `running`; counts into `counts`.
    pub fn new(
        sends: &Arc<Pattern>,
        expects: &Arc<Pattern>,
        running: &Arc<AtomicBool>,
        counts: &Arc<Counts>,
    ) -> Self {
        Self {
            sends: Arc::clone(sends),
            expects: Arc::clone(expects),
            flow: 0,
            number: 0,
            progress: vec![Progress::default(); usize::from(expects.flows)].into(),
            running: Arc::clone(running),
            counts: Arc::clone(counts),
            generated: 0,
            verified: 0,
        }
    }

    #[cold]
    fn out_of_order(&mut self, flow: u16, number: u64) {
        let p = &mut self.progress[usize::from(flow)];
        if number > p.next {
            // Those between are missing, unless they come later.
            let ahead = number - p.next;
            p.seen = if ahead < 64 { p.seen << ahead } else { 0 };
            p.seen = p.seen << 1 | 1;
            p.next = number + 1;
            self.verified += 1;
            return;
        }
        let back = p.next - 1 - number;
        if back >= 64 || p.seen >> back & 1 == 1 {
            bump(&self.counts.duplicated, 1);
        } else {
            p.seen |= 1 << back;
            bump(&self.counts.reordered, 1);
        }
    }
}

impl Wire for Tester {
    #[inline]
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        if !self.running.load(Ordering::Relaxed) {
            return None;
        }
        let len = self.sends.write(self.flow, self.number, room);
        self.generated += 1;
        self.flow += 1;
        if self.flow == self.sends.flows {
            self.flow = 0;
            self.number += 1;
        }
        Some(Arrival::good(len))
    }

    #[inline]
    fn tx_frame(&mut self, frame: &[u8]) {
        let Some((flow, number)) = self.expects.read(frame) else {
            return bump(&self.counts.changed, 1);
        };
        let p = &mut self.progress[usize::from(flow)];
        if number != p.next {
            return self.out_of_order(flow, number);
        }
        p.next += 1;
        p.seen = p.seen << 1 | 1;
        self.verified += 1;
    }

    fn end_burst(&mut self) {
        self.counts.generated.store(self.generated, Ordering::Relaxed);
        self.counts.verified.store(self.verified, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair {
        a: Tester,
        b: Tester,
        seen: Arc<Counts>,
    }

    fn pair(frames: Frames) -> Pair {
        let (up, down) = (Pattern::new(0, frames, 3), Pattern::new(1, frames, 3));
        let running = Arc::new(AtomicBool::new(true));
        let seen = Arc::new(Counts::default());
        let a = Tester::new(&up, &down, &running, &Arc::default());
        Pair { a, b: Tester::new(&down, &up, &running, &seen), seen }
    }

    fn next(t: &mut Tester) -> Vec<u8> {
        let mut room = vec![0; 10_000];
        let len = t.rx_next(&mut room).unwrap().len;
        room.truncate(len);
        room
    }

    fn tally(p: &mut Pair) -> [u64; 4] {
        p.b.end_burst();
        let c = &p.seen;
        [&c.verified, &c.reordered, &c.duplicated, &c.changed].map(|c| c.load(Ordering::Relaxed))
    }

    #[test]
    fn what_was_sent_is_recognised_at_every_size() {
        for frames in [Frames::Fixed(64), Frames::Fixed(1518), Frames::Fixed(9600), Frames::Imix] {
            let mut p = pair(frames);
            for _ in 0..100 {
                let f = next(&mut p.a);
                assert!(f.len() <= frames.longest());
                p.b.tx_frame(&f);
            }
            assert_eq!(tally(&mut p), [100, 0, 0, 0], "{frames}");
        }
    }

    #[test]
    fn any_changed_byte_is_seen() {
        for frames in [Frames::Fixed(64), Frames::Imix] {
            let mut p = pair(frames);
            let f = next(&mut p.a);
            for i in (0..f.len()).filter(|i| !(NUMBER..FILL).contains(i)) {
                let mut bad = f.clone();
                bad[i] ^= 0x10;
                p.b.tx_frame(&bad);
            }
            p.b.tx_frame(&f[..f.len() - 1]);
            assert_eq!(tally(&mut p), [0, 0, 0, f.len() as u64 - 8 + 1]);
        }
    }

    #[test]
    fn lost_reordered_and_repeated_frames_are_told_apart() {
        let mut p = pair(Frames::Fixed(64));
        let flow0: Vec<_> = (0..30).map(|_| next(&mut p.a)).step_by(3).collect();
        for i in [0, 1, 4, 2, 2, 1, 5] {
            p.b.tx_frame(&flow0[i]);
        }
        assert_eq!(tally(&mut p), [4, 1, 2, 0], "3 is missing, 2 came late, 2 and 1 came again");
    }

    #[test]
    fn impossible_sizes_say_what_is_possible() {
        assert_eq!("64".parse(), Ok(Frames::Fixed(64)));
        assert_eq!("imix".parse(), Ok(Frames::Imix));
        for bad in ["63", "9601", "0", "-1", "big", ""] {
            let e = bad.parse::<Frames>().unwrap_err();
            assert_eq!(e, "use 64 to 9600 bytes (with the 4 of the check sequence), or imix");
        }
    }

    #[test]
    fn frames_carry_right_checksums() {
        let mut p = pair(Frames::Imix);
        for _ in 0..24 {
            let f = next(&mut p.a);
            assert_eq!(wire::checksum::of(&f[14..34]), 0, "RFC 1071: a right header sums to zero");
            assert_eq!(usize::from(u16::from_be_bytes([f[16], f[17]])), f.len() - 14);
        }
    }
}
