//! The receive side: frames that are due.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mem::{Batch, Local, Meta, PoolId};
use meter::QueueMeter;
use port::{PortError, RxQueue, RxSetup, WorkerEnv};

use crate::counts::Made;
use crate::frame::Frames;
use crate::ip::Ip;
use crate::pace::Pacer;
use crate::run::{Family, Gate, Len, Run};
use crate::sizes::Sizes;
use crate::tag::{Mark, NUMBERS};

/// Where the flows of a queue are: whose turn it is, which of its frames comes, and how long that is.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    first: u32,
    end: u32,
    flow: u32,
    number: u64,
    /// As [`Sizes::of`] has it, without its division: of this flow, and of the first.
    turn: usize,
    row: usize,
    turns: usize,
}

impl Cursor {
    /// At the first frame of flow `first`, of the flows from there to before `end`.
    pub fn new(first: u32, end: u32, sizes: &Sizes) -> Self {
        let turns = sizes.turns();
        let row = first as usize % turns;
        Self { first, end, flow: first, number: 0, turn: row, row, turns }
    }

    #[inline]
    fn step(&mut self) {
        self.flow += 1;
        self.turn = if self.turn + 1 == self.turns { 0 } else { self.turn + 1 };
        if self.flow == self.end {
            self.flow = self.first;
            self.number += 1;
            self.row = if self.row + 1 == self.turns { 0 } else { self.row + 1 };
            if self.number == NUMBERS {
                self.number = 0;
                self.row = self.first as usize % self.turns;
            }
            self.turn = self.row;
        }
    }
}

/// Which frames come, and when.
pub struct Order {
    pub cursor: Cursor,
    pub sizes: Sizes,
    pub pacer: Option<Pacer>,
}

impl Order {
    /// How many of the next frames are due, `most` at most.
    #[inline]
    fn due(&mut self, most: usize, now: u64) -> usize {
        let Some(pacer) = &mut self.pacer else { return most };
        let (mut ahead, sizes) = (self.cursor, &self.sizes);
        let next = std::iter::repeat_with(|| {
            let size = sizes.at_turn(ahead.turn);
            ahead.step();
            size
        });
        pacer.due(now, next.take(most))
    }

    /// Writes the frames of a batch from index `from` on. Returns the bits they take on the wire.
    #[inline]
    fn write<I: Ip>(
        &mut self,
        frames: &Frames<I>,
        lens: &[Len],
        out: &mut Batch,
        from: usize,
        now: u64,
    ) -> u64 {
        let mut bits = 0;
        let one_size = lens.len() == 1;
        for mut p in out.iter_mut().skip(from) {
            let size = self.sizes.at_turn(self.cursor.turn);
            let mark = Mark { flow: self.cursor.flow, number: self.cursor.number, time: now };
            let len = lens.get(size).copied().unwrap_or_default();
            if one_size {
                frames.write(p.bytes_mut(), mark, size);
            } else if let Some(bytes) = p.resize(len.bytes) {
                frames.write(bytes, mark, size);
            }
            if let Some(pacer) = &mut self.pacer {
                pacer.charge(size);
            }
            bits += len.wire_bits;
            self.cursor.step();
        }
        bits
    }

    /// Frames that were let go because they were too late.
    fn skipped(&self) -> u64 {
        self.pacer.as_ref().map_or(0, Pacer::skipped)
    }
}

/// What a receive queue keeps while it travels: detached, it is its own setup.
pub struct Source {
    pub port: u16,
    pub burst: usize,
    /// Frames that are still to be made.
    pub left: u64,
    pub order: Order,
    pub gate: Arc<Gate>,
    pub run: Arc<Run>,
    pub made: Arc<Made>,
}

impl RxSetup for Source {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        match env.pool() {
            Ok(pool) => Ok(env.boxed_rx(SourceRx { source: *self, pool })),
            Err(e) => Err((e, self)),
        }
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

/// A receive queue on its worker.
struct SourceRx {
    source: Source,
    pool: PoolId,
}

impl RxQueue for SourceRx {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let s = &mut self.source;
        if !s.gate.is_open() {
            s.order.pacer.iter_mut().for_each(Pacer::rest);
            return 0;
        }
        let now = hw::cycles();
        let most = out.room().min(s.burst).min(usize::try_from(s.left).unwrap_or(usize::MAX));
        let (want, from) = (s.order.due(most, now), out.len());
        let meta = Meta { port: s.port, ..Meta::default() };
        let n = out.fill(self.pool, want, s.run.longest() as u16, meta);
        if n == 0 {
            return 0;
        }
        let bits = match &s.run.family {
            Family::V4(frames) => s.order.write(frames, &s.run.lens, out, from, now),
            Family::V6(frames) => s.order.write(frames, &s.run.lens, out, from, now),
        };
        s.left -= n as u64;
        s.made.pulse.beat(n, bits, now);
        s.made.skipped.store(s.order.skipped(), Ordering::Relaxed);
        n
    }
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, _: &mut QueueMeter) {}
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_agrees_with_what_the_checker_works_out() {
        let sizes: Sizes = "imix".parse().unwrap();
        let mut c = Cursor::new(5, 12, &sizes);
        let mut made = Vec::new();
        for _ in 0..1000 {
            assert_eq!(sizes.at_turn(c.turn), sizes.of(c.flow, c.number), "{c:?}");
            made.push((c.flow, c.number));
            c.step();
        }
        assert_eq!((made[0], made[6], made[7]), ((5, 0), (11, 0), (5, 1)));
        c.number = NUMBERS - 1;
        (c.row, c.turn) = (sizes.turns() - 1, 0);
        while c.number != 0 {
            c.step();
        }
        for _ in 0..100 {
            assert_eq!(sizes.at_turn(c.turn), sizes.of(c.flow, c.number), "after the numbers began again");
            c.step();
        }
    }
}
