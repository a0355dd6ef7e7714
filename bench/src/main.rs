//! Benchmarks of Ringwright beside its peers, and the gate on instructions per packet.
//!
//! Main types: [`harness::Candidate`] (something measured in blocks), [`harness::Blocks`] (what a run gave),
//! [`harness::report::Report`] (what is printed), [`manifest::Manifest`] (what must be known to read it).
//!
//! A run:
//! 1. The program starts itself again in a session of its own and raises that session's autogroup.
//! 2. Peers are started where they are installed; the manifest is printed first.
//! 3. Blocks of all candidates interleave; blocks that lost a core or changed class are dropped and counted.
//! 4. Tables of medians, spreads and paired ratios go to stdout, or one JSON object with `--json`.
//!
//! Limits: Linux only; no hardware counters are read (cycles are TSC ticks over wall time); it says nothing about NICs.
//! Exit codes: 0 done, 1 failed or regressed, 2 wrong usage.
#![forbid(unsafe_code)]

mod cpu;
mod distance;
mod error;
mod gate;
mod harness;
mod manifest;
mod peers;
mod run;
mod session;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use error::BenchError;

#[derive(Parser)]
#[command(
    name = "ringwright-bench",
    version,
    about = "Benchmarks beside peers, and the gate on instructions per packet"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Bench>,
}

#[derive(Subcommand)]
enum Bench {
    /// All that follow, one after the other; also without a command
    All(run::all::Args),
    /// Round trip of a cache line between two cores, and its class
    Distance(run::distance::Args),
    /// Rings between two cores, beside DPDK's rte_ring
    Ring(run::ring::Args),
    /// Forwarding between two null ports on one core, beside DPDK's testpmd
    Null(run::null::Args),
    /// Forwarding between two veth pairs on one core, beside DPDK's net_af_packet and the kernel's bridge
    Packet(run::packet::Args),
    /// Taking buffers from a pool and giving them back
    Pool(run::pool::Args),
    /// `ringwright demo` in rounds: two software NICs and a switch on two cores
    Demo(run::demo::Args),
    /// Packets per second with and without scrapes of the metrics
    Scrape(run::scrape::Args),
    /// Instructions per packet under valgrind, compared with stored values
    Instructions(gate::Args),
}

impl Bench {
    fn run(&self) -> Result<ExitCode, BenchError> {
        match self {
            Self::All(args) => run::all::run(args),
            Self::Distance(args) => run::distance::run(args),
            Self::Ring(args) => run::ring::run(args),
            Self::Null(args) => run::null::run(args),
            Self::Packet(args) => run::packet::run(args),
            Self::Pool(args) => run::pool::run(args),
            Self::Demo(args) => run::demo::run(args),
            Self::Scrape(args) => run::scrape::run(args),
            Self::Instructions(args) => gate::run(args),
        }
    }

    /// Instruction counts do not depend on priority, and valgrind's child must stay as it is; `all` measures nothing
    /// itself.
    const fn is_timed(&self) -> bool {
        !matches!(self, Self::Instructions(_) | Self::All(_))
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command.unwrap_or_else(|| Bench::All(run::all::Args::default()));
    if command.is_timed()
        && let Some(code) = session::enter()
    {
        return code;
    }
    command.run().unwrap_or_else(|e| {
        eprintln!("ringwright-bench: {e}");
        ExitCode::from(if matches!(e, BenchError::Usage(_)) { 2 } else { 1 })
    })
}
