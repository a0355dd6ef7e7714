//! The end of the way.

use graph::{Exit, ExitInfo, Exits, Leads, Stage};
use mem::Batch;
use meter::DropReason;

/// Ways out of [`Drop`]: the drop reasons, each by its name and in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropExit(pub DropReason);

const REASONS: [ExitInfo; DropReason::ALL.len()] = {
    let mut exits = [ExitInfo { name: "", leads: Leads::Open }; DropReason::ALL.len()];
    let mut i = 0;
    while i < exits.len() {
        let reason = DropReason::ALL[i];
        exits[i] = ExitInfo { name: reason.name(), leads: Leads::Drop(reason) };
        i += 1;
    }
    exits
};

impl From<DropExit> for u8 {
    #[inline(always)]
    fn from(exit: DropExit) -> Self {
        exit.0 as Self
    }
}
impl Exit for DropExit {
    const EXITS: &'static [ExitInfo] = &REASONS;
}

/// Drops every packet, for one reason.
#[derive(Clone, Copy, Debug)]
pub struct Drop {
    reason: DropReason,
}

impl Drop {
    /// For `reason`.
    pub const fn new(reason: DropReason) -> Self {
        Self { reason }
    }
}

impl Default for Drop {
    /// With reason `filtered`.
    fn default() -> Self {
        Self::new(DropReason::Filtered)
    }
}

impl Stage for Drop {
    type Exit = DropExit;
    const KIND: &'static str = "drop";

    #[inline]
    fn process(&mut self, _: &mut Batch, exits: &mut Exits<'_, DropExit>) {
        exits.set_all(DropExit(self.reason));
    }
}
