//! What can be asked about ports while they run.

use std::time::Duration;

use crate::{RtError, Runtime};

impl Runtime {
    /// The worker that receives from `queue` of `port`; `None` if none does.
    pub fn receiver(&self, port: u16, queue: u16) -> Option<usize> {
        self.workers.iter().find(|w| w.rx.contains(&(port, queue))).map(|w| w.id)
    }

    /// When a port's doorbells are rung at the latest: after so many packets, or when the first has waited so long.
    ///
    /// # Errors
    /// No such port.
    pub fn batching(&self, port: u16) -> Result<(u16, Duration), RtError> {
        self.live_port(port)?;
        let cfg = &self.ports[usize::from(port)].cfg;
        let nanoseconds = u128::from(cfg.doorbell_delay) * 1_000_000_000 / u128::from(hw::tsc_hz().max(1));
        Ok((cfg.doorbell_packets, Duration::from_nanos(nanoseconds as u64)))
    }
}
