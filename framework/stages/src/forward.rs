//! Every packet to its port's partner.

use graph::{Exits, Leads, Stage};
use mem::Batch;
use meter::DropReason;

use crate::{PortMap, exits};

exits! {
    /// Ways out of [`Forward`].
    ForwardExit {
        /// To the partner.
        Out = "out" => Leads::Marked,
        /// The port has none.
        NoRoute = "no_route" => Leads::Drop(DropReason::NoRoute),
    }
}

/// Sends every packet out of its port's partner, unseen.
#[derive(Clone, Debug)]
pub struct Forward {
    map: PortMap,
}

impl Forward {
    /// By `map`.
    pub const fn new(map: PortMap) -> Self {
        Self { map }
    }
    /// Changes partners, between two breaths.
    pub fn set_map(&mut self, map: PortMap) {
        self.map = map;
    }
}

impl Stage for Forward {
    type Exit = ForwardExit;
    const KIND: &'static str = "forward";

    #[inline]
    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, ForwardExit>) {
        exits.set_all(ForwardExit::Out);
        self.map.mark(batch, |i| exits.set(i, ForwardExit::NoRoute));
    }
}
