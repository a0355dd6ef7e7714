//! What is looked at while workers breathe: links, inputs, faults.

use port::Input;

use crate::Runtime;

impl Runtime {
    /// Looks at every started port: notes in the log when its link goes up or down and when it fails for good, and reads
    /// its device's counts before they wrap. To be called about every 100 ms.
    pub fn watch(&mut self) {
        for p in self.ports.iter_mut().filter(|p| p.started) {
            let _span = tracing::error_span!("port", name = &*p.name).entered();
            let link = p.open.link();
            match (p.seen_up, link.up) {
                (Some(true), false) => {
                    tracing::warn!("link down: what is sent there is dropped until it is up again")
                }
                (Some(false) | None, true) => tracing::info!(speed_bps = link.speed_bps, "link up"),
                (None, false) => tracing::info!("link not up yet"),
                _ => {}
            }
            p.seen_up = Some(link.up);
            if p.fault.is_none() {
                p.fault = p.open.fault();
                if let Some(fault) = &p.fault {
                    tracing::error!("{fault}");
                }
            }
            p.open.device_counts();
        }
    }

    /// Whether all that could come in was delivered: some port has an end, and none has more.
    pub fn is_exhausted(&mut self) -> bool {
        let mut ended = false;
        for p in self.ports.iter_mut().filter(|p| p.started) {
            match p.open.input() {
                Input::None => {}
                Input::Exhausted => ended = true,
                Input::Endless | Input::More => return false,
            }
        }
        ended
    }

    /// What went wrong for good, by port; also after the stop.
    pub fn faults(&self) -> Vec<String> {
        self.ports.iter().filter_map(|p| Some(format!("port {}: {}", p.name, p.fault.as_ref()?))).collect()
    }
}
