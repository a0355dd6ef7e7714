//! Why no traffic was made.

use port::PortError;
use rt::RtError;

/// Why no traffic was made.
#[derive(Debug, thiserror::Error)]
pub enum GenError {
    /// Memory.
    #[error(transparent)]
    Hw(#[from] hw::HwError),
    /// Packet memory.
    #[error(transparent)]
    Mem(#[from] mem::MemError),
    /// A port that could not be opened.
    #[error("{option}: {source}")]
    Port {
        /// Whose it was to be.
        option: &'static str,
        /// Why.
        source: PortError,
    },
    /// Start.
    #[error(transparent)]
    Rt(#[from] RtError),
    /// What was asked for can never be.
    #[error("{0}")]
    Usage(String),
}

impl GenError {
    /// A port that `option` names could not be opened.
    pub fn port(option: &'static str) -> impl Fn(PortError) -> Self {
        move |source| Self::Port { option, source }
    }

    /// Whether what was asked for can never be on this machine, rather than not now.
    pub const fn is_usage(&self) -> bool {
        use hw::HwError::NoSuchNode;
        use mem::MemError;
        match self {
            Self::Usage(_)
            | Self::Hw(NoSuchNode { .. })
            | Self::Mem(
                MemError::BadCapacity { .. } | MemError::BadLayout { .. } | MemError::Hw(NoSuchNode { .. }),
            )
            | Self::Rt(RtError::PoolTooSmall(_)) => true,
            Self::Port { source, .. } | Self::Rt(RtError::Port { source, .. }) => is_asked(source),
            _ => false,
        }
    }
}

/// The port's keys or its numbers are wrong, not the device.
const fn is_asked(e: &PortError) -> bool {
    use PortError::{Config, Frame, Queues, RingLength};
    matches!(e, Config { .. } | Frame { .. } | Queues { .. } | RingLength { .. })
}
