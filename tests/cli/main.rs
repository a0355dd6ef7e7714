//! The `ringwright` command as its users meet it: the built binary is run, and what it says, where it says it, and how it
//! ends is compared with what is promised.
//!
//! Nothing here asserts speed. Runs last 300 ms and go one after the other, since each binds busy threads to cores; runs
//! that a signal is to end would end by themselves after a minute. What a machine does not have is said as `SKIPPED: why`.
#![forbid(unsafe_code)]

mod ctl;
mod failures;
mod logs;
mod output;
mod rig;
mod runs;
mod signals;
mod traffic;
mod usage;
