//! Why something crossed the bus, which way, and who says so.

use std::fmt;
use std::str::FromStr;

use crate::PcieError;

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bus {
    /// Device to host.
    Upstream,
    /// Host to device.
    Downstream,
}

impl Bus {
    /// As in metrics: `upstream`, `downstream`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Downstream => "downstream",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Upstream => Self::Downstream,
            Self::Downstream => Self::Upstream,
        }
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Memory read: a request one way, completions with the data the other way.
    Read,
    /// Memory write: posted, its data in the request. Message-signalled interrupts are such writes.
    Write,
}

/// Why something crossed the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Cause {
    /// A register store by a driver: doorbells above all.
    MmioWrite,
    /// A register load by a driver.
    MmioRead,
    /// Descriptors fetched by the device.
    DescRead,
    /// An index or event word read by the device (virtio's avail and event indices).
    IndexRead,
    /// Packet bytes read: transmit.
    PayloadRead,
    /// Packet bytes written: receive.
    PayloadWrite,
    /// Descriptors written back, completion entries, used-ring entries.
    CompletionWrite,
    /// An index written by the device (virtio's used index, a head write-back).
    IndexWrite,
    /// An interrupt message (MSI, MSI-X): a write of 4 bytes.
    Interrupt,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::MmioWrite,
        Self::MmioRead,
        Self::DescRead,
        Self::IndexRead,
        Self::PayloadRead,
        Self::PayloadWrite,
        Self::CompletionWrite,
        Self::IndexWrite,
        Self::Interrupt,
    ];

    /// As in metrics and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MmioWrite => "mmio_write",
            Self::MmioRead => "mmio_read",
            Self::DescRead => "desc_read",
            Self::IndexRead => "index_read",
            Self::PayloadRead => "payload_read",
            Self::PayloadWrite => "payload_write",
            Self::CompletionWrite => "completion_write",
            Self::IndexWrite => "index_write",
            Self::Interrupt => "interrupt",
        }
    }

    /// Read or write.
    pub const fn operation(self) -> Operation {
        match self {
            Self::MmioRead | Self::DescRead | Self::IndexRead | Self::PayloadRead => Operation::Read,
            Self::MmioWrite
            | Self::PayloadWrite
            | Self::CompletionWrite
            | Self::IndexWrite
            | Self::Interrupt => Operation::Write,
        }
    }

    /// The way its requests go; completions come back the opposite way. Only the host's register accesses go
    /// downstream.
    pub const fn requests(self) -> Bus {
        match self {
            Self::MmioWrite | Self::MmioRead => Bus::Downstream,
            _ => Bus::Upstream,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Cause {
    type Err = PcieError;

    fn from_str(s: &str) -> Result<Self, PcieError> {
        Self::ALL.into_iter().find(|c| c.name() == s).ok_or_else(|| PcieError::Cause(s.to_owned()))
    }
}

/// Who counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A driver, exactly: what it rang, posted and asked for.
    Driver,
    /// A model of the device: the device itself decides.
    Model,
    /// A software device, exactly: what it did.
    Device,
    /// Counters of the host's hardware.
    Hardware,
}

impl Source {
    /// As in metrics and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Model => "model",
            Self::Device => "device",
            Self::Hardware => "hardware",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
