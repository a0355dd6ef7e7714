//! `ringwright ctl`: asks and changes an instance that runs.

mod find;
mod show;

use std::io::{ErrorKind, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use rt::control::{Client, ClientError, Command, QueueName, Request};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::speaker::Voice;

/// How long an answer may take: queues may have to drain.
const PATIENCE: Duration = Duration::from_secs(30);

/// The arguments of `ringwright ctl`.
#[derive(Args, Debug)]
pub struct CtlArgs {
    /// The instance's control socket; by default the only one that answers in /run/ringwright (or, when not root, in
    /// $XDG_RUNTIME_DIR/ringwright).
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The instance's name, which is its configuration file's without .toml.
    #[arg(long, global = true, value_name = "NAME")]
    name: Option<String>,
    /// Put the result on stdout as one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Ask,
}

#[derive(Subcommand, Debug)]
enum Ask {
    /// Who is there: version, process, commands.
    Hello,
    /// What has been counted so far.
    Status {
        /// Show it again each time this has passed, with rates, until interrupted: 1s, 500ms.
        #[arg(long, value_name = "TIME", value_parser = interval)]
        watch: Option<Duration>,
    },
    /// Open a port: name=p2 driver=packet interface=eth2 queues=2 doorbell.packets=16
    AddPort {
        /// Keys of a [[port]] table as in configuration, each KEY=VALUE; strings need no quotes.
        #[arg(required = true, value_name = "KEY=VALUE")]
        keys: Vec<String>,
        /// The worker that gets the port's queues.
        #[arg(long, value_name = "N")]
        worker: Option<usize>,
    },
    /// Drain a port and close it.
    RemovePort {
        /// Its name.
        port: String,
    },
    /// Give a queue to another worker.
    MoveQueue {
        /// The queue: p0:0
        queue: QueueName,
        /// The worker's number.
        worker: usize,
    },
    /// Set when a port's tail writes happen at the latest.
    #[command(group(ArgGroup::new("batching").required(true).multiple(true)))]
    SetBatching {
        /// The port.
        port: String,
        /// After this many packets.
        #[arg(long, value_name = "N", group = "batching")]
        packets: Option<NonZeroU16>,
        /// When the first has waited this long: 2us, 1ms, or 0.
        #[arg(long, value_name = "TIME", group = "batching", value_parser = config::time)]
        delay: Option<Duration>,
    },
    /// Set what the instance logs: info, or warn,ringwright_rt=info
    SetLog {
        /// A level, or levels by target.
        filter: crate::log::Filter,
    },
    /// End the instance in good order.
    Shutdown,
}

fn interval(s: &str) -> Result<Duration, String> {
    let time = config::time(s)?;
    if time.is_zero() { Err("use 1s, 500ms or 1m".to_owned()) } else { Ok(time) }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum CtlError {
    /// The instance, or the way to it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// No instance was named, and there is not just one.
    #[error(transparent)]
    Find(#[from] find::FindError),
    /// A key of `add-port`.
    #[error("{0}")]
    Keys(String),
    /// More than one object.
    #[error("--json puts one object on stdout, and --watch would put many: use one of both")]
    WatchJson,
    /// The result was not what this version knows.
    #[error("the instance's result is no JSON: {0}")]
    Result(#[from] serde_json::Error),
    /// Stdout.
    #[error("the result could not be written to stdout: {0}")]
    Stdout(#[from] std::io::Error),
}

impl CtlError {
    const fn is_usage(&self) -> bool {
        match self {
            Self::Keys(_) | Self::WatchJson => true,
            Self::Find(e) => e.is_usage(),
            _ => false,
        }
    }
}

/// Runs it. Exit codes: 0 done, 1 refused or nobody there, 2 wrong usage.
pub fn run(args: &CtlArgs, voice: &Voice) -> ExitCode {
    match ask(args) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read it has seen enough.
        Err(CtlError::Stdout(e)) if e.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            voice.say(format_args!("ringwright: {e}"));
            if e.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn ask(args: &CtlArgs) -> Result<(), CtlError> {
    if args.json && matches!(args.command, Ask::Status { watch: Some(_) }) {
        return Err(CtlError::WatchJson);
    }
    let request = args.command.request()?;
    let socket = find::socket(args.socket.as_deref(), args.name.as_deref())?;
    let mut client = Client::connect(&socket, PATIENCE)?;
    let result = client.request(&request)?;
    if args.json {
        return put(result.get());
    }
    let Ask::Status { watch } = &args.command else {
        return put(&show::done(&request, &read(&result)?));
    };
    let hello = read(&client.request(&Request::Hello)?)?;
    let mut last = read(&result)?;
    put(&show::status(&hello, &last, None))?;
    while let Some(interval) = watch {
        std::thread::sleep(*interval);
        let now = read(&client.request(&Request::Status)?)?;
        put(&format!("\n{}", show::status(&hello, &now, Some(&last))))?;
        last = now;
    }
    Ok(())
}

fn read(result: &RawValue) -> Result<Value, CtlError> {
    Ok(serde_json::from_str(result.get())?)
}

fn put(text: &str) -> Result<(), CtlError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

impl Ask {
    fn request(&self) -> Result<Request, CtlError> {
        Ok(Request::Change(match self {
            Self::Hello => return Ok(Request::Hello),
            Self::Status { .. } => return Ok(Request::Status),
            Self::AddPort { keys, worker } => {
                Command::AddPort { port: table(keys).map_err(CtlError::Keys)?, worker: *worker }
            }
            Self::RemovePort { port } => Command::RemovePort { name: port.clone() },
            Self::MoveQueue { queue, worker } => Command::MoveQueue { queue: queue.clone(), worker: *worker },
            Self::SetBatching { port, packets, delay } => {
                Command::SetBatching { port: port.clone(), packets: *packets, delay: *delay }
            }
            Self::SetLog { filter } => Command::SetLog { filter: filter.to_string() },
            Self::Shutdown => Command::Shutdown,
        }))
    }
}

/// `KEY=VALUE`s as a table. A value is TOML if it can be, else a string.
fn table(keys: &[String]) -> Result<toml::Table, String> {
    let mut text = String::new();
    for part in keys {
        let (key, value) = part
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| format!("{part:?} is not KEY=VALUE, as driver=packet"))?;
        let line = format!("{key} = {value}\n");
        if !value.contains('\n') && line.parse::<toml::Table>().is_ok() {
            text += &line;
        } else {
            text += &format!("{key} = {}\n", toml::Value::from(value));
        }
    }
    text.parse().map_err(|e: toml::de::Error| format!("the port's keys: {}", e.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[&str]) -> Result<toml::Table, String> {
        table(&keys.iter().map(|k| (*k).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn keys_of_a_port_are_what_they_look_like() {
        let got = read(&[
            "name=p2",
            "driver=packet",
            "interface=eth2.5",
            "queues=2",
            "promiscuous=false",
            "doorbell.packets=16",
            "doorbell.delay=2us",
            "fanout=\"hash\"",
            "path=/tmp/a b=c.pcap",
            "sizes=[64, 128]",
            "note=it's \"so\"\nhere",
        ]);
        let wanted = r#"
            name = "p2"
            driver = "packet"
            interface = "eth2.5"
            queues = 2
            promiscuous = false
            doorbell = { packets = 16, delay = "2us" }
            fanout = "hash"
            path = "/tmp/a b=c.pcap"
            sizes = [64, 128]
            note = "it's \"so\"\nhere"
        "#;
        assert_eq!(got, Ok(wanted.parse().unwrap()));
    }

    #[test]
    fn keys_that_cannot_be() {
        for (keys, said) in [
            (&["name"][..], "\"name\" is not KEY=VALUE"),
            (&["=p2"], "is not KEY=VALUE"),
            (&["name=p2", "name=p3"], "the port's keys: duplicate key"),
            (&["a b=1"], "the port's keys: "),
            (&["x=1\n[y]\nz=2"], "the port's keys: "),
        ] {
            match read(keys) {
                Err(e) => assert!(e.contains(said), "{keys:?}: {e}"),
                // A line break is part of the value, not a way to more keys.
                Ok(t) => assert_eq!(t.keys().collect::<Vec<_>>(), ["x"], "{t}"),
            }
        }
    }
}
