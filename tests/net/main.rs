//! Real traffic through `ringwright run`: kernels with addresses of their own, in network namespaces, on the wires of a
//! switch that is the command under test.
//!
//! A rig ([`rig::Net`]) is two to four stations and a middle, each a namespace `rw-PID-x`, joined by veth pairs. What runs in
//! the middle is [`switch::Switch`]: the command in one of its run modes, or, with `RINGWRIGHT_NET_REFERENCE=1` in the
//! environment, a Linux bridge. The bridge is what the scenarios are checked against: one that fails there expects too much.
//!
//! Every run of the command ends with its accounts: received + created = sent + consumed + held + dropped, nothing
//! unexplained, the kernel's counters of the same interfaces agreeing, nothing said of a panic, exit code 0.
//!
//! Rigs are used one at a time, also across processes. All of it needs root and the tools of `deploy/setup.sh test`; what is
//! missing is said as `SKIPPED: why`. `RINGWRIGHT_NET_BYTES` sets how much the bulk transfers carry (64 MiB by default),
//! `RINGWRIGHT_NET_BINARY` tests another build of the command.
#![forbid(unsafe_code)]

#[path = "../cli/rig.rs"]
#[expect(dead_code, reason = "shared with the tests of the command line, which use all of it")]
mod process;
mod rig;
mod switch;
mod tags;
mod traffic;

mod scenarios;
