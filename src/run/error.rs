//! Why a configuration does not run.

use port::PortError;
use rt::RtError;
use rt::config::{Config, ConfigError};
use rt::control::ServeError;

/// Why a configuration did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Memory.
    #[error(transparent)]
    Hw(#[from] hw::HwError),
    /// Packet memory.
    #[error(transparent)]
    Mem(#[from] mem::MemError),
    /// A port that could not be opened.
    #[error("port {name}: {source}")]
    Port {
        /// Its name.
        name: String,
        /// Why.
        source: PortError,
    },
    /// Start.
    #[error(transparent)]
    Rt(#[from] RtError),
    /// The exporter or the control socket.
    #[error("[telemetry] {key}: {source}; {key} = \"\" turns it off")]
    Service {
        /// The key that asks for it.
        key: &'static str,
        /// Why it did not start.
        source: ServeError,
    },
}

impl RunError {
    /// Says where in the file the key is that a driver refuses; other errors stay as they are.
    pub fn port(config: &Config, number: usize, source: PortError) -> Self {
        match &source {
            PortError::Config { key, problem, .. } => Self::Config(config.port_error(number, key, problem)),
            PortError::Queues { .. } => {
                Self::Config(config.port_error(number, "queues", &source.to_string()))
            }
            PortError::Frame { .. } => {
                Self::Config(config.port_error(number, "max_frame", &source.to_string()))
            }
            PortError::RingLength { .. } => {
                Self::Config(config.port_error(number, "rx_ring", &source.to_string()))
            }
            _ => Self::Port { name: config.ports[number].name.to_string(), source },
        }
    }

    /// A service that `key` asks for did not start.
    pub const fn service(key: &'static str, source: ServeError) -> Self {
        Self::Service { key, source }
    }

    /// Whether what was asked for can never be on this machine, rather than not now.
    pub const fn is_usage(&self) -> bool {
        use hw::HwError::NoSuchNode;
        use mem::MemError;
        matches!(
            self,
            Self::Config(_)
                | Self::Hw(NoSuchNode { .. })
                | Self::Mem(
                    MemError::BadCapacity { .. }
                        | MemError::BadLayout { .. }
                        | MemError::Hw(NoSuchNode { .. })
                )
                | Self::Rt(RtError::PoolTooSmall(_))
        )
    }
}
