//! From meters to a [`Status`].

use meter::{Direction, DropCounts, QueueMeter, Snapshot, WorkerMeter};
use port::DeviceCounts;

use crate::control::Observation;
use crate::runtime::{PortEntry, Runtime};
use crate::status::{
    DeviceStatus, HandoffStatus, LinkStatus, PoolStatus, PortStatus, QueueStatus, StageStatus, Status,
    WorkerStatus, drop_map,
};
use crate::{Idle, Role};

impl Runtime {
    /// What has been counted. Costs the workers nothing: it reads what they published within the last millisecond.
    pub fn status(&mut self) -> Status {
        let snap = self.registry.snapshot();
        self.status_of(&snap)
    }

    /// What has been counted, with the meters that it was counted by: all of one moment.
    pub fn observe(&mut self) -> Observation {
        let meters = self.registry.snapshot();
        Observation { status: self.status_of(&meters), meters }
    }

    fn status_of(&mut self, snap: &Snapshot) -> Status {
        let mut status = Status {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            elapsed_s: self.started.elapsed().as_secs_f64(),
            tsc_hz: hw::tsc_hz(),
            lints: self.lints.clone(),
            ..Status::default()
        };
        let owner = |port: u16, q: u16| self.workers.iter().position(|w| w.rx.contains(&(port, q)));
        let owners: Vec<Vec<_>> =
            self.ports.iter().map(|p| (0..p.cfg.queues).map(|q| owner(p.cfg.port, q)).collect()).collect();
        let live = self.ports.iter_mut().zip(owners);
        status.ports.extend(live.filter_map(|(p, owners)| port_status(p, snap, &owners)));
        status.handoffs = self.handoffs();
        let mut workers = WorkerMeter::default();
        for (id, m) in &snap.workers {
            let entry = self.workers.iter().find(|w| w.id == *id);
            let (core, role, idle) =
                entry.map_or((None, Role::default(), Idle::default()), |w| (w.core, w.shape.role, w.idle));
            status.workers.push(WorkerStatus::new(*id, core, role, idle, m));
            workers.cache_hits += m.cache_hits;
            workers.cache_misses += m.cache_misses;
            workers.cached += m.cached;
            workers.batched += m.batched;
            workers.parked += m.parked;
        }
        let mut dropped = DropCounts::default();
        let c = &mut status.conservation;
        for ((worker, name, kind), m) in &snap.stages {
            status.stages.push(StageStatus::new(*worker, name, kind, m));
            c.created += m.created;
            c.consumed += m.consumed;
            dropped.merge(&m.drops);
        }
        for ((_, _, direction), m) in &snap.queues {
            match direction {
                Direction::Rx => c.received += m.packets,
                Direction::Tx => {
                    c.sent += m.packets;
                    dropped.merge(&m.drops);
                }
            }
        }
        c.sent -= self.past.unsent;
        c.dropped = dropped.total() + self.rings.dropped() + self.past.dropped + self.past.unsent;
        c.held = workers.batched + workers.parked + self.rings.held();
        // Whoever is last on a packet's way starts first; that is not their order.
        status.workers.sort_by_key(|w| w.id);
        status.stages.sort_by_key(|s| s.worker);
        let one = self.memory.pools().count() == 1;
        for pool in self.memory.pools() {
            status.pools.push(PoolStatus {
                node: pool.node().map(hw::Node::id),
                pages: pool.arena().pages().name(),
                capacity: pool.capacity(),
                available: pool.depot() + if one { workers.cached as usize } else { 0 },
                cache_hits: workers.cache_hits,
                cache_misses: workers.cache_misses,
            });
        }
        status
    }

    fn handoffs(&self) -> Vec<HandoffStatus> {
        let status = |r: &crate::rings::RingEntry| HandoffStatus {
            from: r.way.from,
            to: r.way.to,
            port: r.way.port.map(|p| self.name(p).to_string()),
            packets: r.view.sent(),
            drops: drop_map(&r.drops()),
            occupancy: r.view.held(),
            capacity: r.view.capacity(),
        };
        self.rings.all.iter().map(status).collect()
    }
}

pub(crate) fn device_status(d: &DeviceCounts) -> DeviceStatus {
    DeviceStatus {
        rx_good: d.rx_good,
        rx_delivered: d.rx_delivered,
        tx_sent: d.tx_sent,
        rx_missed: d.rx_missed,
        rx_errors: d.rx_errors,
    }
}

/// `None` for a port that has been removed.
fn port_status(p: &mut PortEntry, snap: &Snapshot, owners: &[Option<usize>]) -> Option<PortStatus> {
    let open = p.open.as_mut()?;
    let (rx, tx) = (snap.port(&p.name, Direction::Rx), snap.port(&p.name, Direction::Tx));
    let mut drops = rx.drops;
    drops.merge(&tx.drops);
    let link = open.link();
    // A name that is used again goes on counting.
    let side = |id: u16, direction: Direction| {
        let mine =
            snap.queues.iter().filter(|((n, q, dir), _)| *n == p.name && *q == id && *dir == direction);
        let mut sum = QueueMeter::default();
        mine.for_each(|(_, m)| sum.merge(m));
        (&sum).into()
    };
    Some(PortStatus {
        name: p.name.to_string(),
        driver: open.info().driver,
        node: open.info().node.map(hw::Node::id),
        link: LinkStatus { up: link.up, speed_bps: link.speed_bps },
        rx: (&rx).into(),
        tx: (&tx).into(),
        drops: drop_map(&drops),
        device: device_status(&open.device_counts()),
        queues: (0..p.cfg.queues)
            .map(|id| QueueStatus {
                id,
                worker: owners.get(usize::from(id)).copied().flatten(),
                rx: side(id, Direction::Rx),
                tx: side(id, Direction::Tx),
            })
            .collect(),
    })
}
