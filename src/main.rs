//! The `ringwright` command. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
#![forbid(unsafe_code)]

mod ctl;
mod demo;
mod r#gen;
mod log;
mod ports;
mod run;
mod speaker;
mod units;

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use speaker::{Speaker, Voice};

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.";

/// A kernel-bypass packet I/O framework that shows where every cycle of a packet goes.
#[derive(Parser)]
#[command(name = "ringwright", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: log::LogArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Two software 82599s, joined by a switch, with a generator and a checker on their wires. Needs no NIC.
    Demo(DemoArgs),
    /// Runs a configuration until it is stopped, its time is up, or its inputs are exhausted.
    Run(RunArgs),
    /// Makes traffic over any port, and checks what comes back. Says how fast it could be at most first.
    Gen(r#gen::GenArgs),
    /// Reads a configuration, says what is wrong with it, and how many buffers it takes. Opens nothing.
    Check(CheckArgs),
    /// Lists what ports can be made of on this machine.
    Ports(PortsArgs),
    /// Asks and changes an instance that runs, over its control socket.
    Ctl(ctl::CtlArgs),
}

#[derive(Args)]
struct PortsArgs {
    /// Put one JSON object on stdout instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct RunArgs {
    /// The configuration, in TOML.
    config: PathBuf,
    /// How long to run: 10s, 5m, 500ms; without it until stopped.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Put the status as one JSON object on stdout instead of the summary.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CheckArgs {
    /// The configuration, in TOML.
    config: PathBuf,
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
    /// Flows each way, 1 to 4096.
    #[arg(long, value_name = "N", default_value = "64", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    flows: u16,
    /// Cores of the workers, one worker each: 1 or 0,1; by default the last core that may be used.
    #[arg(long = "worker-core", value_name = "CORES", value_delimiter = ',', allow_negative_numbers = true, value_parser = core)]
    worker_cores: Vec<usize>,
    /// Core of the devices and their wires; by default the first core that may be used.
    #[arg(long, value_name = "CORE", allow_negative_numbers = true)]
    device_core: Option<usize>,
    /// Pages of packet memory: 1G, 2M, 4K, or any: the largest that is there and that it fills at least half.
    #[arg(long, value_name = "SIZE", default_value = "any")]
    pages: hw::Pages,
    /// Memory node of packets and rings; by default that of the first worker's core.
    #[arg(long, value_name = "NODE", allow_negative_numbers = true)]
    node: Option<u16>,
    /// Packet buffers, 64 or more.
    #[arg(long, value_name = "N", default_value = "8192", allow_negative_numbers = true)]
    buffers: usize,
    /// Descriptors of each ring, a power of two from 8 to 8192.
    #[arg(long, value_name = "N", default_value = "512", allow_negative_numbers = true, value_parser = ring_size)]
    ring: ring::RingSize,
}

fn duration(s: &str) -> Result<Duration, String> {
    let d = humantime::parse_duration(s).map_err(|e| format!("{e}; use 500ms, 10s or 5m"))?;
    if d.is_zero() { Err("a run of no time; use 500ms, 10s or 5m".to_owned()) } else { Ok(d) }
}

fn ring_size(s: &str) -> Result<ring::RingSize, String> {
    let n = s.parse::<u32>().ok().filter(|n| *n <= demo::LONGEST_RING);
    n.and_then(|n| n.try_into().ok())
        .ok_or_else(|| format!("use a power of two from 8 to {}", demo::LONGEST_RING))
}

fn core(s: &str) -> Result<usize, String> {
    s.trim().parse().map_err(|_| "use the number of a core, or several with commas between: 0,1".to_owned())
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let speaker = Speaker::new(cli.log.log_format);
    let code = {
        let voice = speaker.voice();
        let log = log::Log::start(&cli.log, &voice);
        let signals = Signals::default();
        signals.arm(&voice);
        match cli.command {
            Command::Demo(args) => run_demo(&args, &signals, &voice),
            Command::Run(args) => run_config(&args, &signals, log, &voice),
            Command::Gen(args) => run_gen(&args, &signals, &voice),
            Command::Check(args) => check_config(&args, &voice),
            Command::Ports(args) => match ports::Ports::list() {
                Ok(ports) => finish(&ports, &ports, args.json, true, &voice),
                Err(e) => fail(&e, false, &voice),
            },
            Command::Ctl(args) => {
                // There is nothing to end in good order.
                signals.over.store(true, Ordering::SeqCst);
                ctl::run(&args, &voice)
            }
        }
    };
    speaker.finish();
    code
}

/// What signals do: the first ends the run in good order, the second at once. Once the run is over and only its results
/// are left to be written, the first ends the process: whoever reads them may have stopped reading.
#[derive(Default)]
struct Signals {
    stop: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Signals {
    fn arm(&self, voice: &Voice) {
        for signal in [SIGINT, SIGTERM] {
            let (stop, over) = (Arc::clone(&self.stop), Arc::clone(&self.over));
            let armed = flag::register_conditional_default(signal, over)
                .and_then(|_| flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop)))
                .and_then(|_| flag::register(signal, stop));
            if let Err(e) = armed {
                voice.say(format_args!("signal {signal} will end the process at once: {e}"));
            }
        }
    }
}

fn run_demo(args: &DemoArgs, signals: &Signals, voice: &Voice) -> ExitCode {
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
    let result = demo::run(&options, &signals.stop, |r| voice.say(r.line()));
    signals.over.store(true, Ordering::SeqCst);
    match result {
        Ok(report) => finish(&report, &report, args.json, report.is_clean(), voice),
        Err(e) => fail(&e, e.is_usage(), voice),
    }
}

fn run_config(args: &RunArgs, signals: &Signals, log: log::Log, voice: &Voice) -> ExitCode {
    let result = run::run(&args.config, args.duration, &signals.stop, log, |p| voice.say(p));
    signals.over.store(true, Ordering::SeqCst);
    match result {
        Ok(outcome) => {
            for fault in &outcome.faults {
                voice.say(format_args!("ringwright: {fault}"));
            }
            let clean = outcome.faults.is_empty() && outcome.status.conservation.unexplained == Some(0);
            finish(&outcome.status, &run::Summary(&outcome.status), args.json, clean, voice)
        }
        Err(e) => fail(&e, e.is_usage(), voice),
    }
}

fn run_gen(args: &r#gen::GenArgs, signals: &Signals, voice: &Voice) -> ExitCode {
    let drivers = ringwright::drivers::all();
    let result = r#gen::run(args, &drivers, &signals.stop, |line| voice.say(line));
    signals.over.store(true, Ordering::SeqCst);
    match result {
        Ok(outcome) => {
            for fault in &outcome.faults {
                voice.say(format_args!("ringwright: {fault}"));
            }
            finish(&outcome.report, &outcome.report, args.json(), outcome.is_done(), voice)
        }
        Err(e) => fail(&e, e.is_usage(), voice),
    }
}

fn check_config(args: &CheckArgs, voice: &Voice) -> ExitCode {
    match run::check(&args.config) {
        Ok(text) => put(&text, true, voice),
        Err(e) => fail(&e, e.is_usage(), voice),
    }
}

fn fail(e: &impl Display, usage: bool, voice: &Voice) -> ExitCode {
    voice.say(format_args!("ringwright: {e}"));
    if usage { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The results, as JSON or for people.
fn finish(json: &impl Serialize, text: &impl Display, as_json: bool, clean: bool, voice: &Voice) -> ExitCode {
    if !as_json {
        return put(&format_args!("\n{text}"), clean, voice);
    }
    match serde_json::to_string_pretty(json) {
        Ok(text) => put(&text, clean, voice),
        Err(e) => fail(&e, false, voice),
    }
}

/// Results go to stdout. A reader that has gone away is no reason to fail; a disk that is full is.
fn put(text: &impl Display, clean: bool, voice: &Voice) -> ExitCode {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            fail(&format_args!("the results could not be written to stdout: {e}"), false, voice)
        }
        _ if clean => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
