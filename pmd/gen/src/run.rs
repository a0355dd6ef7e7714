//! What both sides of a port know of the frames that are under way between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mem::Flags;
use wire::{Ipv4Header, Ipv6Header};

use crate::counts::{Checked, Counts, Made};
use crate::frame::{Frames, Seen};
use crate::profile::{Addresses, Profile};
use crate::sizes::{FCS, wire_bits};

/// Frames of either IP. Which is decided once per burst.
pub enum Family {
    V4(Frames<Ipv4Header>),
    V6(Frames<Ipv6Header>),
}

/// How long frames of one size are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Len {
    /// Bytes in the buffer.
    pub bytes: u16,
    /// Bits on the wire.
    pub wire_bits: u64,
}

/// From one start of a port to its stop: frames that only this run makes and knows.
pub struct Run {
    pub family: Family,
    /// By size.
    pub lens: Vec<Len>,
    longest: u16,
    pub made: Vec<Arc<Made>>,
    pub checked: Vec<Arc<Checked>>,
}

impl Run {
    /// A run of `profile` over `queues` queues; `None` if a size does not fit the headers. `seed` is random.
    pub fn new(profile: &Profile, queues: u16, seed: u64) -> Option<Arc<Self>> {
        let family = match profile.addresses {
            Addresses::V4 { src, dst } => Family::V4(Frames::v4(profile, src, dst, seed)?),
            Addresses::V6 { src, dst } => Family::V6(Frames::v6(profile, src, dst, seed)?),
        };
        let bytes = |size: usize| u16::try_from(size - FCS).ok();
        let len = |size| Some(Len { bytes: bytes(size)?, wire_bits: wire_bits(size) });
        Some(Arc::new(Self {
            family,
            lens: profile.sizes.iter().map(len).collect::<Option<_>>()?,
            longest: bytes(profile.sizes.longest())?,
            made: (0..queues).map(|_| Arc::default()).collect(),
            checked: (0..queues).map(|_| Arc::default()).collect(),
        }))
    }

    /// Bytes of the longest frame, without check sequence.
    pub const fn longest(&self) -> usize {
        self.longest as usize
    }

    /// What a received frame is.
    #[inline]
    pub fn read(&self, frame: &[u8], flags: Flags) -> Seen {
        match &self.family {
            Family::V4(f) => f.read(frame, flags),
            Family::V6(f) => f.read(frame, flags),
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.made, &self.checked, hw::tsc_hz())
    }
}

/// Whether frames are made. One writer, the control side; the queues look once per burst.
pub struct Gate {
    /// They shall be.
    making: AtomicBool,
    /// The port receives.
    receiving: AtomicBool,
}

impl Gate {
    /// Closed until the port starts.
    pub const fn new() -> Self {
        Self { making: AtomicBool::new(true), receiving: AtomicBool::new(false) }
    }
    pub fn set_making(&self, on: bool) {
        self.making.store(on, Ordering::Relaxed);
    }
    pub fn set_receiving(&self, on: bool) {
        self.receiving.store(on, Ordering::Relaxed);
    }
    #[inline]
    pub fn is_open(&self) -> bool {
        self.making.load(Ordering::Relaxed) && self.receiving.load(Ordering::Relaxed)
    }
}
