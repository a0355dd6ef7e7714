//! The receiving side.

use std::sync::Arc;

use mem::{Batch, Local, Parcel};
use meter::QueueMeter;
use port::{PortError, RxQueue, RxSetup, WorkerEnv};
use ring::Consumer;

use crate::counts::{Counts, Taken};

/// The end of a hand-off that is emptied.
///
/// One that is let go without [`RxSetup::reclaim`] loses the buffers of what is in its ring.
#[must_use = "packets in its ring are lost with it"]
pub struct Inlet {
    ring: Consumer<Parcel>,
    taken: Taken,
}

impl Inlet {
    pub(crate) fn new(ring: Consumer<Parcel>, counts: &Arc<Counts>) -> Self {
        Self { ring, taken: Taken::new(counts) }
    }
}

impl RxSetup for Inlet {
    fn attach(self: Box<Self>, _: &WorkerEnv) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        let before = self.taken.so_far();
        Ok(Box::new(InletRx { inlet: *self, before }))
    }
    /// Frees what is left in the ring, and counts it as dropped (`stopping`). The sending side must have left.
    fn reclaim(mut self: Box<Self>, local: &Local) {
        let mut n = 0;
        while let Some(parcel) = self.ring.take(1).next() {
            parcel.free(local);
            n += 1;
        }
        self.taken.stop(n);
    }
}

struct InletRx {
    inlet: Inlet,
    before: u64,
}

impl RxQueue for InletRx {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let n = out.take_parcels(&mut self.inlet.ring.take(out.room()));
        if n > 0 {
            // Whoever wrote the headers did so on another core.
            out.prefetch();
            self.inlet.taken.add(n);
        }
        n
    }
    /// What is in the ring is no empty buffer: [`crate::View::held`] has it.
    fn posted(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        sum.packets += self.inlet.taken.so_far() - self.before;
    }
    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.inlet)
    }
}
