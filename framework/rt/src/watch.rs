//! What the control side looks at while packets flow: links, faults, and whether more comes in.

use std::time::Instant;

use port::{Input, Link};

use crate::mailbox::DEADLINE;
use crate::runtime::Runtime;

/// What was last seen of a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// `None` before the first look.
    pub link: Option<Link>,
    pub fault: Option<String>,
}

impl Runtime {
    /// Looks at links, faults and the devices' counts: to be called about every 100 ms. A link that comes or goes, and a
    /// fault, are said in the log once.
    pub fn watch(&mut self) {
        for port in 0..self.ports.len() {
            self.watch_port(port);
        }
    }

    fn watch_port(&mut self, port: usize) {
        let p = &mut self.ports[port];
        let Some(open) = p.open.as_mut().filter(|_| p.started) else { return };
        let link = open.link();
        // Devices count in few bits: whoever adds up must look often.
        open.device_counts();
        let _inside = p.span.clone().entered();
        let was = p.watched.link.replace(link);
        match (was.map(|l| l.up), link.up) {
            (Some(false) | None, true) => tracing::info!(speed_bps = link.speed_bps, "link up"),
            (Some(true), false) => {
                tracing::warn!("link down: packets for it go nowhere until it is up again")
            }
            (None, false) => tracing::info!("link down: packets for it go nowhere until it is up again"),
            _ => {}
        }
        self.note_fault(port);
    }

    /// Notes a port's fault, once.
    pub(crate) fn note_fault(&mut self, port: usize) {
        let p = &mut self.ports[port];
        let fault = p.open.as_mut().and_then(|open| open.fault());
        if let Some(fault) = fault
            && p.watched.fault.as_ref() != Some(&fault)
        {
            let _inside = p.span.enter();
            tracing::error!("{fault}");
            self.faults.push(format!("port {}: {fault}", p.name));
            p.watched.fault = Some(fault);
        }
    }

    /// What went wrong for good so far: the run has failed, even if the rest goes on.
    pub fn faults(&self) -> Vec<String> {
        self.faults.clone()
    }

    /// Whether all that could come in has come in, and has left again: some port had an end to what it gives, none has more,
    /// and no packet is on its way. Never while a port has no end. A port that no worker receives from gives nothing.
    pub fn is_exhausted(&mut self) -> bool {
        let workers = &self.workers;
        let heard = |port: usize| workers.iter().any(|w| w.rx.iter().any(|q| usize::from(q.0) == port));
        let ports = self.ports.iter_mut().enumerate().filter(|(i, _)| heard(*i));
        let inputs: Vec<Input> =
            ports.filter_map(|(_, p)| p.open.as_mut()).map(|open| open.input()).collect();
        let over = |i: &Input| matches!(i, Input::None | Input::Exhausted);
        inputs.contains(&Input::Exhausted) && inputs.iter().all(over) && self.is_empty()
    }

    /// Whether no packet is on its way. Asked along the way that packets take, so that none is overtaken; for when nothing
    /// more comes in.
    fn is_empty(&self) -> bool {
        let until = Instant::now() + DEADLINE;
        for place in 0..=2 {
            for w in self.workers.iter().filter(|w| w.shape.role.place() == place) {
                if w.mailbox.ask(until, (), |worker, ()| worker.held()).ok() != Some((0, 0)) {
                    return false;
                }
                if self.rings.all.iter().any(|r| r.way.from == w.id && r.view.held() > 0) {
                    return false;
                }
            }
        }
        true
    }
}
