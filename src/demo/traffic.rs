//! What is at the end of the demo's wires: a generator and a checker that know each other's frames.
//!
//! A frame is a function of its side, flow and number, so the checker needs nothing but the frame to say whether it
//! arrived once, unchanged and in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ixgbe_model::{Arrival, Wire};

use super::pattern::Pattern;

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
    use super::super::pattern::{FILL, Frames, NUMBER};
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
