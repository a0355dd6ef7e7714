//! What a worker does, and what it does when there is nothing to do.

use core::time::Duration;

/// What a worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Receives, runs stages, sends.
    #[default]
    RunToCompletion,
    /// Receives and hands packets to `Process` workers.
    Rx,
    /// Runs stages.
    Process,
    /// Sends.
    Tx,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::RunToCompletion, Self::Rx, Self::Process, Self::Tx];
    /// How far along a packet's way: whoever is further starts first and stops last.
    pub(crate) const fn place(self) -> usize {
        match self {
            Self::RunToCompletion | Self::Rx => 0,
            Self::Process => 1,
            Self::Tx => 2,
        }
    }
    /// As in configuration and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunToCompletion => "run-to-completion",
            Self::Rx => "rx",
            Self::Process => "process",
            Self::Tx => "tx",
        }
    }
}

/// What a worker does when there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// It polls.
    #[default]
    Busy,
    /// It polls less often.
    Pause,
    /// It sleeps, never longer than the bound.
    Sleep {
        /// Longest time between two polls.
        bound: Duration,
    },
}

impl Idle {
    /// As in configuration and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Pause => "pause",
            Self::Sleep { .. } => "sleep",
        }
    }
}
