//! The sections of a configuration.

use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use graph::OnFull;
use port::Driver;
use ring::RingSize;
use toml::Table;

use super::{ConfigError, PortNames, StageKind, Text};
use crate::{Idle, Role};

/// What there is to configure: drivers and kinds of stages.
#[derive(Clone, Copy)]
pub struct Kinds<'k> {
    /// Drivers.
    pub drivers: &'k [Box<dyn Driver>],
    /// Kinds of stages.
    pub stages: &'k [Box<dyn StageKind>],
}

impl Kinds<'_> {
    /// The driver called `name`.
    pub fn driver(&self, name: &str) -> Option<&dyn Driver> {
        self.drivers.iter().find(|d| d.name() == name).map(|d| &**d)
    }
    /// The kind of stage called `name`.
    pub fn stage(&self, name: &str) -> Option<&dyn StageKind> {
        self.stages.iter().find(|s| s.kind() == name).map(|s| &**s)
    }
}

/// A whole configuration, checked as far as it can be without opening anything.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it is called: its file's stem.
    pub name: String,
    /// `[memory]`.
    pub memory: MemorySection,
    /// `[telemetry]`.
    pub telemetry: TelemetrySection,
    /// `[[port]]`, by number.
    pub ports: Vec<PortSection>,
    /// `[[worker]]`.
    pub workers: Vec<WorkerSection>,
    /// `[[stage]]`.
    pub stages: Vec<StageSection>,
    /// `[[edge]]`; without any, a straight line.
    pub edges: Vec<EdgeSection>,
    /// Its text, for messages.
    pub text: Text,
}

impl Config {
    /// The ports' names.
    pub fn names(&self) -> PortNames {
        PortNames::new(self.ports.iter().map(|p| &*p.name))
    }
    /// Says that `problem` is with `key` of port `number`.
    pub fn port_error(&self, number: usize, key: &str, problem: &str) -> ConfigError {
        let path = format!("port[{number}].{key}");
        let name = self.ports.get(number).map_or("", |p| &p.name);
        self.text.error(vec![self.text.problem(&path, format!("port {name}: {key}: {problem}"))])
    }
}

/// Packet memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySection {
    /// Pages it lies on.
    pub pages: hw::Pages,
    /// Buffers per node.
    pub buffers: usize,
    /// Bytes of one buffer that a device may fill.
    pub frame_room: u16,
}

/// How the runtime is seen and told things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetrySection {
    /// Where metrics and status are served; `None` for nowhere.
    pub listen: Option<SocketAddr>,
    /// Whether that may be an address that others reach.
    pub allow_remote: bool,
    /// The control socket; `None` for none.
    pub control: Option<PathBuf>,
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortSection {
    /// Its name.
    pub name: Arc<str>,
    /// Its driver.
    pub driver: String,
    /// Queue pairs.
    pub queues: u16,
    /// Receive descriptors of a queue.
    pub rx_ring: RingSize,
    /// Transmit descriptors of a queue.
    pub tx_ring: RingSize,
    /// Tail writes at the latest after this many packets ...
    pub doorbell_packets: u16,
    /// ... or after the first has waited this long.
    pub doorbell_delay: Duration,
    /// How many packets ahead headers are prefetched.
    pub prefetch: u8,
    /// What happens when a transmit queue is full; `None` leaves it to the driver: files wait, others drop.
    pub on_full: Option<OnFull>,
    /// Longest frame in bytes, without the check sequence; `None` leaves it to the driver.
    pub max_frame: Option<u16>,
    /// The driver's own keys.
    pub own: Table,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSection {
    /// The core it is bound to; `None` leaves it to the kernel.
    pub core: Option<usize>,
    /// What it does.
    pub role: Role,
    /// Queues it receives from.
    pub rx: Vec<QueueName>,
    /// Ports it sends to; `None` for those that nobody else names.
    pub tx: Option<Vec<u16>>,
    /// What it does when there is nothing to do.
    pub idle: Idle,
    /// Its stages, in a straight line; `None` for all, as the edges say.
    pub stages: Option<Vec<String>>,
}

/// A queue, or all queues of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The port's number.
    pub port: u16,
    /// The queue's number; `None` for all.
    pub queue: Option<u16>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSection {
    /// Its name.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: String,
    /// The kind's own keys.
    pub own: Table,
}

/// A way from one stage to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeSection {
    /// `rx`, `rx:PORT`, `STAGE`, `STAGE:EXIT`.
    pub from: String,
    /// A stage, `tx:PORT`, `tx`, `drop:REASON`.
    pub to: String,
}
