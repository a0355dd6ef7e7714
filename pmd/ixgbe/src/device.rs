//! The device behind its bus: registers, and waiting for it.

use std::time::{Duration, Instant};

use hw::{Bar, Bus, HwError, Reg};
use ixgbe_defs::device::{Controller, VENDOR, identify};
use ixgbe_defs::{BAR_BYTES, regs};
use port::PortError;

use crate::{NAME, PciId};

/// How often a device is asked at least before it is given up, however slow the process is.
const PATIENCE: u32 = 100;
/// How long a device is given: far more than the 10 ms of 4.2.1.6.1 and 4.6.3, as a model may have to wait for a core, and
/// an interpreted one is slow.
const LIMIT: Duration = Duration::from_millis(if cfg!(miri) { 180_000 } else { 1000 });

/// A device that has been identified.
pub struct Device<B> {
    pub bus: B,
    pub bar: Bar,
    pub controller: Controller,
}

fn unknown(problem: String) -> PortError {
    PortError::Device { driver: NAME, problem }
}

impl<B: Bus> Device<B> {
    /// Checks that the device is one of these, and answers.
    pub fn find(bus: B, id: PciId) -> Result<Self, PortError> {
        let PciId { vendor, device } = id;
        let known = identify(device).filter(|_| vendor == VENDOR).ok_or_else(|| {
            unknown(format!("{vendor:04x}:{device:04x} is no 82599 or X540 function that this driver knows"))
        })?;
        let bar = bus.bar(0)?;
        if bar.len() < BAR_BYTES {
            return Err(unknown(format!("BAR 0 has {} bytes, not {BAR_BYTES}", bar.len())));
        }
        // Loads from a function that is gone or powered down give all ones; STATUS has bits that are always 0 (8.2.3.1.2).
        if bar.read32(regs::STATUS) == u32::MAX {
            return Err(unknown(
                "the device does not answer (registers read all ones); check its power state".into(),
            ));
        }
        Ok(Self { bus, bar, controller: known.controller })
    }

    /// Asks again and again until all of `bits` of `reg` are `set`, or all are clear.
    pub fn wait_for(&self, what: &'static str, reg: Reg, bits: u32, set: bool) -> Result<(), HwError> {
        let want = if set { bits } else { 0 };
        let start = Instant::now();
        let mut asked = 0;
        while self.bar.read32(reg) & bits != want {
            if asked >= PATIENCE && start.elapsed() >= LIMIT {
                return Err(HwError::Timeout(what));
            }
            self.bus.pause();
            asked += 1;
        }
        Ok(())
    }

    /// Lets `time` pass.
    pub fn rest(&self, time: Duration) {
        let start = Instant::now();
        // A fuzzed device needs no time, and a run of it must not take any.
        while !cfg!(fuzzing) && start.elapsed() < time {
            self.bus.pause();
        }
    }
}
