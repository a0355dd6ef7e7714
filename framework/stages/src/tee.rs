//! A second way for every packet.

use graph::{Exits, Leads, Stage};
use mem::{Batch, PoolId};

use crate::exits;

exits! {
    /// Ways out of [`Tee`].
    TeeExit {
        /// The packets.
        Out = "out" => Leads::Open,
        /// Their copies.
        Copy = "copy" => Leads::Open,
    }
}

/// Sends packets on and a copy of each out of exit `copy`, marked as the original is. A copy counts as created; without
/// a buffer it counts as dropped (`no_buffer`), and the original still goes.
#[derive(Clone, Copy, Debug)]
pub struct Tee {
    pool: PoolId,
}

impl Tee {
    /// Copies into buffers of `pool`.
    pub const fn new(pool: PoolId) -> Self {
        Self { pool }
    }
}

impl Stage for Tee {
    type Exit = TeeExit;
    const KIND: &'static str = "tee";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, TeeExit>) {
        exits.set_all(TeeExit::Out);
        for i in 0..batch.len() {
            let port = batch.pkt(i).map_or(0, |p| p.port());
            exits.copy(batch, i, self.pool, port, TeeExit::Copy);
        }
    }
}
