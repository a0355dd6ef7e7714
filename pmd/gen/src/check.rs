//! What became of the frames that were made.

use std::sync::Arc;

use mem::{Batch, Flags, Pkt};

use crate::counts::{Checked, Tally};
use crate::frame::Seen;
use crate::run::Run;
use crate::sizes::{FCS, wire_bits};
use crate::tag::Mark;
use crate::window::{Place, Windows};

/// Looks at frames, one after the other.
pub struct Checker {
    run: Arc<Run>,
    windows: Windows,
    counts: Arc<Checked>,
    /// Frames of several buffers are put together here.
    whole: Vec<u8>,
}

impl Checker {
    /// Of the frames of `run`; counts into `counts`.
    pub fn new(run: &Arc<Run>, flows: u32, counts: &Arc<Checked>) -> Self {
        let whole = Vec::with_capacity(run.longest() + SPARE);
        Self { run: Arc::clone(run), windows: Windows::new(flows), counts: Arc::clone(counts), whole }
    }

    /// Checks all frames of a batch, which arrived at `now`.
    #[inline]
    pub fn check(&mut self, batch: &mut Batch, now: u64) {
        let mut tally = Tally::default();
        batch.prefetch();
        for p in batch.iter_mut() {
            self.one(&p, now, &mut tally);
        }
        self.counts.publish(&tally, now);
    }

    #[inline]
    fn one(&mut self, p: &Pkt<'_>, now: u64, tally: &mut Tally) {
        let seen = if p.flags().has(Flags::CHAIN) {
            self.read_chain(p)
        } else {
            self.run.read(p.bytes(), p.flags())
        };
        match seen {
            Seen::Intact(mark) => self.intact(mark, now, tally),
            Seen::Changed(mark) => self.changed(mark, tally),
            Seen::Foreign => {
                tally.foreign += 1;
                return;
            }
        }
        tally.ours += 1;
        tally.bits += wire_bits(p.total_len() + FCS);
    }

    #[inline]
    fn intact(&mut self, mark: Mark, now: u64, tally: &mut Tally) {
        match self.windows.place(mark.flow, mark.number) {
            Place::InOrder => tally.ordered += 1,
            Place::Reordered { extent } => {
                tally.reordered += 1;
                tally.extents += extent;
                tally.extent_max = tally.extent_max.max(extent);
            }
            Place::Repeated => return tally.repeated += 1,
            Place::TooLate => return tally.too_late += 1,
            Place::Impossible => return tally.changed += 1,
        }
        if let Some(ticks) = mark.age(now) {
            self.counts.latency.add(ticks);
        }
    }

    /// A changed frame has arrived as well, if it can be told which it is.
    #[cold]
    fn changed(&mut self, mark: Option<Mark>, tally: &mut Tally) {
        tally.changed += 1;
        let place = mark.map(|m| self.windows.place(m.flow, m.number));
        let new = matches!(place, None | Some(Place::InOrder | Place::Reordered { .. }));
        tally.changed_new += usize::from(new);
    }

    #[cold]
    fn read_chain(&mut self, p: &Pkt<'_>) -> Seen {
        if p.total_len() > self.run.longest() + SPARE {
            return Seen::Foreign;
        }
        self.whole.clear();
        p.segments().for_each(|s| self.whole.extend_from_slice(s));
        self.run.read(&self.whole, p.flags())
    }
}

/// Bytes that a frame may have gained on its way: tags, options, padding.
const SPARE: usize = 256;
