//! The `ringwright` command. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
#![forbid(unsafe_code)]

mod demo;

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use tracing::level_filters::LevelFilter;

/// A kernel-bypass packet I/O framework that shows where every cycle of a packet goes.
#[derive(Parser)]
#[command(name = "ringwright", version, arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What is logged on stderr: off, error, warn, info.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", env = "RINGWRIGHT_LOG")]
    log: LevelFilter,
}

#[derive(Subcommand)]
enum Command {
    /// Two software 82599s, joined by a switch, with a generator and a checker on their wires. Needs no NIC.
    Demo(DemoArgs),
}

#[derive(Args)]
struct DemoArgs {
    /// How long to run: 10s, 5m, 500ms.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Frame size in bytes with the check sequence, 64 to 9600, or imix.
    #[arg(long, value_name = "SIZE", default_value = "64", allow_negative_numbers = true)]
    frame: demo::Frames,
    /// The PCIe link that figures of bus load are modelled for: gen3x8, gen4x16, ...
    #[arg(long, value_name = "LINK", default_value = "gen3x8")]
    link: pcie::Link,
    /// Put one JSON object (status and check) on stdout instead of the summary.
    #[arg(long)]
    json: bool,
    /// Flows each way.
    #[arg(long, value_name = "N", default_value = "64", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    flows: u16,
    /// Cores of the workers, one worker each; by default the last core that may be used.
    #[arg(long = "worker-core", value_name = "CORE", value_delimiter = ',', allow_negative_numbers = true)]
    worker_cores: Vec<usize>,
    /// Core of the devices and their wires; by default the first core that may be used.
    #[arg(long, value_name = "CORE", allow_negative_numbers = true)]
    device_core: Option<usize>,
    /// Pages of packet memory: 1G, 2M, 4K, or any: the largest that is there.
    #[arg(long, value_name = "SIZE", default_value = "any")]
    pages: hw::Pages,
    /// Memory node of packets and rings; by default that of the first worker's core.
    #[arg(long, value_name = "NODE", allow_negative_numbers = true)]
    node: Option<u16>,
    /// Packet buffers.
    #[arg(long, value_name = "N", default_value = "8192", allow_negative_numbers = true)]
    buffers: usize,
    /// Descriptors of each ring, a power of two.
    #[arg(long, value_name = "N", default_value = "512", allow_negative_numbers = true, value_parser = ring_size)]
    ring: ring::RingSize,
}

fn duration(s: &str) -> Result<Duration, String> {
    let d = humantime::parse_duration(s).map_err(|e| format!("{e}; use 500ms, 10s or 5m"))?;
    if d.is_zero() { Err("a run of no time; use 500ms, 10s or 5m".to_owned()) } else { Ok(d) }
}

fn ring_size(s: &str) -> Result<ring::RingSize, String> {
    let n: u32 = s.parse().map_err(|_| "use a power of two from 8 to 32768".to_owned())?;
    ring::RingSize::try_from(n).map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_max_level(cli.log)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        // Whatever is wrong with stderr is no reason to panic, which telling stderr about it would be.
        .log_internal_errors(false)
        .init();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process at once: whoever insists means it.
        let armed = signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        if let Err(e) = armed {
            tracing::warn!("signal {signal} will end the process at once: {e}");
        }
    }
    match cli.command {
        Command::Demo(args) => run_demo(&args, &stop),
    }
}

fn run_demo(args: &DemoArgs, stop: &AtomicBool) -> ExitCode {
    let options = demo::Options {
        duration: args.duration,
        frames: args.frame,
        flows: args.flows,
        link: args.link,
        pages: args.pages,
        node: args.node.map(hw::Node::new),
        buffers: args.buffers,
        ring: args.ring,
        worker_cores: args.worker_cores.clone(),
        device_core: args.device_core,
    };
    match demo::run(&options, stop, |r| say(r.line())) {
        Ok(report) => finish(&report, args.json),
        Err(e) => {
            say(format_args!("ringwright: {e}"));
            if e.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// A line on stderr. If nobody can be told, the work goes on all the same: unlike `eprintln!` this does not panic.
fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Results go to stdout. A reader that has gone away is no reason to fail; a disk that is full is.
fn finish(report: &demo::Report, json: bool) -> ExitCode {
    for l in &report.status.lints {
        say(format_args!("{}: {}", l.lint, l.message));
    }
    let text = if json {
        match serde_json::to_string_pretty(report) {
            Ok(text) => text,
            Err(e) => {
                say(format_args!("ringwright: {e}"));
                return ExitCode::FAILURE;
            }
        }
    } else {
        format!("\n{report}")
    };
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            say(format_args!("ringwright: the results could not be written to stdout: {e}"));
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
