//! Everything that was counted, as one object: the same for the command line, the API and the control socket.

use std::collections::BTreeMap;

use meter::{DropCounts, QueueMeter, StageMeter, WorkerMeter};
use serde::Serialize;

use crate::{Conservation, Idle, Role};

/// Drops by reason; reasons that did not happen are absent.
pub type DropMap = BTreeMap<&'static str, u64>;

pub(crate) fn drop_map(d: &DropCounts) -> DropMap {
    d.iter().map(|(r, n)| (r.name(), n)).collect()
}

/// A runtime's status. All counters are integers since start; cycles are ticks of the time stamp counter.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Of this object: fields are only ever added.
    pub schema: u32,
    /// Of Ringwright.
    pub version: &'static str,
    /// Seconds since start.
    pub elapsed_s: f64,
    /// Ticks per second.
    pub tsc_hz: u64,
    /// Ports, by number.
    pub ports: Vec<PortStatus>,
    /// Workers.
    pub workers: Vec<WorkerStatus>,
    /// Stages of all workers.
    pub stages: Vec<StageStatus>,
    /// Rings between workers.
    pub handoffs: Vec<HandoffStatus>,
    /// Pools.
    pub pools: Vec<PoolStatus>,
    /// Whether every packet is accounted for.
    pub conservation: Conservation,
    /// What is not as it should be.
    pub lints: Vec<Lint>,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes, without frame check sequences.
    pub bytes: u64,
}

impl From<&QueueMeter> for Traffic {
    fn from(m: &QueueMeter) -> Self {
        Self { packets: m.packets, bytes: m.bytes }
    }
}

/// A port.
#[derive(Clone, Debug, Serialize)]
pub struct PortStatus {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: &'static str,
    /// Its node; absent if unknown.
    pub node: Option<u16>,
    /// Its link.
    pub link: LinkStatus,
    /// All receive queues.
    pub rx: Traffic,
    /// All transmit queues.
    pub tx: Traffic,
    /// Drops at all its queues.
    pub drops: DropMap,
    /// What the device itself counted; what it does not count is absent.
    pub device: DeviceStatus,
    /// Its queues.
    pub queues: Vec<QueueStatus>,
}

/// A link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkStatus {
    /// Frames can pass.
    pub up: bool,
    /// Bits per second; null if unknown.
    pub speed_bps: Option<u64>,
}

/// A device's own counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// Good frames for this port that came in, whatever became of them.
    pub rx_good: Option<u64>,
    /// Frames put into receive queues.
    pub rx_delivered: Option<u64>,
    /// Frames sent.
    pub tx_sent: Option<u64>,
    /// Good frames lost for want of room.
    pub rx_missed: Option<u64>,
    /// Frames thrown away for faults of their own.
    pub rx_errors: Option<u64>,
}

impl DeviceStatus {
    /// Good frames that the device neither delivered nor says it missed. While traffic flows some may only wait in it.
    pub(crate) fn unaccounted(&self) -> Option<u64> {
        Some(self.rx_good?.abs_diff(self.rx_delivered? + self.rx_missed?))
    }
}

/// A queue pair.
#[derive(Clone, Debug, Serialize)]
pub struct QueueStatus {
    /// Its number.
    pub id: u16,
    /// The worker that has its receive side; null if none has.
    pub worker: Option<usize>,
    /// The receive side.
    pub rx: QueueSide,
    /// The transmit side.
    pub tx: QueueSide,
}

/// One side of a queue pair.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueSide {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Calls.
    pub polls: u64,
    /// Calls that moved nothing.
    pub empty_polls: u64,
    /// Bursts by size: 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64.
    pub bursts: [u64; 7],
    /// Tail writes.
    pub doorbells: u64,
    /// Calls that left packets behind.
    pub full: u64,
    /// Drops at the queue.
    pub drops: DropMap,
}

impl From<&QueueMeter> for QueueSide {
    fn from(m: &QueueMeter) -> Self {
        Self {
            packets: m.packets,
            bytes: m.bytes,
            polls: m.polls,
            empty_polls: m.empty_polls,
            bursts: m.bursts,
            doorbells: m.doorbells,
            full: m.full,
            drops: drop_map(&m.drops),
        }
    }
}

/// A worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStatus {
    /// Its number.
    pub id: usize,
    /// The core it is bound to; null if it is not.
    pub core: Option<usize>,
    /// What it does.
    pub role: &'static str,
    /// Breaths.
    pub polls: u64,
    /// Breaths that received nothing.
    pub empty_polls: u64,
    /// Packets received.
    pub packets: u64,
    /// Where its cycles went.
    pub cycles: CyclesStatus,
    /// Cycles of useful breaths by packet; null before the first.
    pub cycles_per_packet: Option<CyclesPerPacket>,
    /// What it does when there is nothing to do.
    pub idle: IdleStatus,
}

/// How a worker idles. Sleeps are measured from the end of the breath before to the start of the one after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct IdleStatus {
    /// `busy`, `pause`, `sleep`.
    pub strategy: &'static str,
    /// Microseconds that a sleep may take; null for those that do not sleep.
    pub bound_us: Option<f64>,
    /// Sleeps.
    pub sleeps: u64,
    /// Sleeps that took longer than they may.
    pub over_bound: u64,
    /// Microseconds of the longest; null before the first.
    pub longest_us: Option<u64>,
    /// 99th percentile in microseconds; null before the first.
    pub p99_us: Option<f64>,
}

impl IdleStatus {
    pub(crate) fn new(idle: Idle, m: &WorkerMeter) -> Self {
        let bound_us = match idle {
            Idle::Sleep { bound } => Some(bound.as_secs_f64() * 1e6),
            Idle::Busy | Idle::Pause => None,
        };
        Self {
            strategy: idle.name(),
            bound_us,
            sleeps: m.sleeps,
            over_bound: m.over_bound,
            longest_us: (m.sleeps > 0).then_some(m.longest_sleep),
            p99_us: m.sleep_gaps.quantile(0.99),
        }
    }
}

/// Where a worker's cycles went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CyclesStatus {
    /// Breaths that moved nothing.
    pub idle: u64,
    /// Breaths that did.
    pub useful: u64,
    /// Waiting for memory: not measured yet, hence null.
    pub stall: Option<u64>,
}

/// Useful cycles by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CyclesPerPacket {
    /// All useful cycles by all packets.
    pub mean: f64,
    /// Median over packets, from a histogram with buckets of a quarter octave.
    pub p50: f64,
    /// 99th percentile over packets.
    pub p99: f64,
}

impl WorkerStatus {
    pub(crate) fn new(id: usize, core: Option<usize>, role: Role, idle: Idle, m: &WorkerMeter) -> Self {
        let h = &m.cycles_per_packet;
        let cycles_per_packet = h.quantile(0.5).zip(h.quantile(0.99)).map(|(p50, p99)| CyclesPerPacket {
            mean: m.useful_cycles as f64 / m.packets as f64,
            p50,
            p99,
        });
        Self {
            id,
            core,
            role: role.name(),
            polls: m.polls,
            empty_polls: m.empty_polls,
            packets: m.packets,
            cycles: CyclesStatus { idle: m.idle_cycles, useful: m.useful_cycles, stall: None },
            cycles_per_packet,
            idle: IdleStatus::new(idle, m),
        }
    }
}

/// A ring from one worker to another.
#[derive(Clone, Debug, Serialize)]
pub struct HandoffStatus {
    /// The worker that fills it.
    pub from: usize,
    /// The worker that empties it.
    pub to: usize,
    /// The port that its packets are for; absent between receiving and processing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Packets that went in.
    pub packets: u64,
    /// Packets dropped at it.
    pub drops: DropMap,
    /// Packets in it.
    pub occupancy: u64,
    /// Packets that it holds when full.
    pub capacity: usize,
}

/// A stage on one worker.
#[derive(Clone, Debug, Serialize)]
pub struct StageStatus {
    /// The worker.
    pub worker: usize,
    /// The stage's name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// Packets.
    pub packets: u64,
    /// Calls.
    pub calls: u64,
    /// Cycles, from those of its calls that were timed (a random one breath in sixteen); null before the first.
    pub cycles: Option<u64>,
    /// Packets it made.
    pub created: u64,
    /// Packets it ended on purpose.
    pub consumed: u64,
    /// Drops at the stage.
    pub drops: DropMap,
}

impl StageStatus {
    pub(crate) fn new(worker: usize, name: &str, kind: &'static str, m: &StageMeter) -> Self {
        let scale = |timed: u64| (m.timed_cycles as f64 * m.packets as f64 / timed as f64) as u64;
        Self {
            worker,
            name: name.to_owned(),
            kind,
            packets: m.packets,
            calls: m.calls,
            cycles: (m.timed_packets > 0).then(|| scale(m.timed_packets)),
            created: m.created,
            consumed: m.consumed,
            drops: drop_map(&m.drops),
        }
    }
}

/// A pool.
#[derive(Clone, Debug, Serialize)]
pub struct PoolStatus {
    /// Its node; null if unknown.
    pub node: Option<u16>,
    /// Its pages: `1G`, `2M`, `4K`.
    pub pages: &'static str,
    /// All buffers.
    pub capacity: usize,
    /// Buffers in the depot and in magazines.
    pub available: usize,
    /// Buffers that passed through magazines.
    pub cache_hits: u64,
    /// Trips to the depot.
    pub cache_misses: u64,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lint {
    /// Which lint.
    pub lint: &'static str,
    /// What it is about.
    pub object: String,
    /// What to do.
    pub message: String,
}

impl Lint {
    /// Says it in the log.
    pub fn log(&self) {
        tracing::warn!("{}: {}", self.lint, self.message);
    }
}
