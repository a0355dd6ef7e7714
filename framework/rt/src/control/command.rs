//! What can be asked for, and why it may be refused.

use core::fmt;
use core::num::NonZeroU16;
use core::str::FromStr;
use core::time::Duration;
use std::borrow::Cow;

use config::{KeyError, Keys};
use serde::{Deserialize, Serialize, Serializer};
use toml::Table;

/// What a client may ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Who is there: version, process, name, commands.
    Hello,
    /// The status object.
    Status,
    /// A change.
    Change(Command),
}

/// A change to a running instance. Serialised it is a request without its version and id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Command {
    /// Opens a port and gives its queues to a worker.
    AddPort {
        /// A `[[port]]` table as in configuration. Its keys have not been looked at.
        port: Table,
        /// The worker that gets the queues; the host chooses if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<usize>,
    },
    /// Drains a port, takes its queues from their workers and closes it.
    RemovePort {
        /// Its name.
        name: String,
    },
    /// Gives a queue pair to another worker; the order of its packets is kept.
    MoveQueue {
        /// Which.
        queue: QueueName,
        /// To whom.
        worker: usize,
    },
    /// Sets when tail writes happen at the latest. What is absent stays as it is; one of both is there.
    SetBatching {
        /// The port, all its transmit queues.
        port: String,
        /// After this many packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        packets: Option<NonZeroU16>,
        /// When the first has waited this long.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_time")]
        delay: Option<Duration>,
    },
    /// Sets what is logged.
    SetLog {
        /// A level (`info`), or levels by target (`warn,ringwright_rt=info`). The text has not been looked at, but that
        /// a client that said `level` named one.
        filter: String,
    },
    /// Ends the instance in good order, as SIGTERM does.
    Shutdown,
}

fn as_time<S: Serializer>(delay: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match delay {
        Some(d) => to.collect_str(&humantime::format_duration(*d)),
        None => to.serialize_none(),
    }
}

/// Words for levels of the log.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// The log levels' key and its like.
const SET_LOG: [&str; 2] = ["level", "filter"];

impl Request {
    /// Names of all commands.
    pub const NAMES: [&'static str; 8] =
        ["hello", "status", "add_port", "remove_port", "move_queue", "set_batching", "set_log", "shutdown"];

    /// Its name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Status => "status",
            Self::Change(c) => c.name(),
        }
    }

    /// The request `name` with `args`.
    ///
    /// # Errors
    /// A command that there is not, a key that is unknown, missing or wrong: with what was probably meant.
    pub fn read(name: &str, args: &Table) -> Result<Self, Refusal> {
        let read = || {
            let keys = |known: &[&str]| Keys::new(args, known);
            Ok(Self::Change(match name {
                "hello" => return keys(&[]).map(|_| Self::Hello),
                "status" => return keys(&[]).map(|_| Self::Status),
                "shutdown" => keys(&[]).map(|_| Command::Shutdown)?,
                "add_port" => add_port(args, keys(&["port", "worker"])?)?,
                "remove_port" => {
                    let name = keys(&["name"])?.need_text("name", "the port to remove")?;
                    Command::RemovePort { name: name.to_owned() }
                }
                "move_queue" => move_queue(keys(&["queue", "worker"])?)?,
                "set_batching" => set_batching(keys(&["port", "packets", "delay"])?)?,
                _ => set_log(keys(&SET_LOG)?)?,
            }))
        };
        if !Self::NAMES.contains(&name) {
            return Err(unknown(name));
        }
        read().map_err(|e: KeyError| Refusal::new(Code::BAD_REQUEST, format!("{name}: {e}")))
    }
}

fn unknown(name: &str) -> Refusal {
    let near = config::suggest(name, Request::NAMES);
    let advice = near.map_or_else(
        || format!("there are {}", Request::NAMES.join(", ")),
        |near| format!("did you mean {near}?"),
    );
    Refusal::new(Code::UNKNOWN_COMMAND, format!("{name:?} is no command; {advice}"))
}

fn worker(keys: Keys<'_>) -> Result<usize, KeyError> {
    Ok(keys.number("worker", 0, 0..=1023)? as usize)
}

fn add_port(args: &Table, keys: Keys<'_>) -> Result<Command, KeyError> {
    let worker = keys.has("worker").then(|| worker(keys)).transpose()?;
    match args.get("port") {
        Some(toml::Value::Table(port)) => Ok(Command::AddPort { port: port.clone(), worker }),
        Some(other) => Err(KeyError::new("port", format!("{other} is not a table with the port's keys"))),
        None => Err(KeyError::new("port", "is missing: a [[port]] table as in configuration")),
    }
}

fn move_queue(keys: Keys<'_>) -> Result<Command, KeyError> {
    let queue = keys.need_text("queue", "the queue to move, as p0:0")?;
    let queue = queue.parse().map_err(|e: String| KeyError::new("queue", e))?;
    if !keys.has("worker") {
        return Err(KeyError::new("worker", "is missing: the number of the worker that gets the queue"));
    }
    Ok(Command::MoveQueue { queue, worker: worker(keys)? })
}

fn set_batching(keys: Keys<'_>) -> Result<Command, KeyError> {
    let port = keys.need_text("port", "the port to set")?.to_owned();
    let packets = keys.number("packets", 1, 1..=u64::from(u16::MAX))?;
    let packets = keys.has("packets").then(|| NonZeroU16::new(packets as u16)).flatten();
    let delay = keys.time("delay", Duration::ZERO)?;
    let delay = keys.has("delay").then_some(delay);
    if packets.is_none() && delay.is_none() {
        return Err(KeyError::new("packets", "is missing, and so is delay: one of both is needed"));
    }
    Ok(Command::SetBatching { port, packets, delay })
}

fn set_log(keys: Keys<'_>) -> Result<Command, KeyError> {
    let levels = LEVELS.map(|l| (l, l));
    let filter = match (keys.has("level"), keys.has("filter")) {
        (true, false) => keys.word("level", "", &levels)?,
        (false, true) => keys.need_text("filter", "what to log, as warn,ringwright_rt=info")?,
        (true, true) => return Err(KeyError::new("filter", "is beside level: use one of both")),
        (false, false) => {
            return Err(KeyError::new("level", "is missing: off, error, warn or info; or use filter"));
        }
    };
    Ok(Command::SetLog { filter: filter.to_owned() })
}

impl Command {
    /// Its name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AddPort { .. } => "add_port",
            Self::RemovePort { .. } => "remove_port",
            Self::MoveQueue { .. } => "move_queue",
            Self::SetBatching { .. } => "set_batching",
            Self::SetLog { .. } => "set_log",
            Self::Shutdown => "shutdown",
        }
    }
}

/// A queue pair of a port, written `p0:0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueName {
    /// The port's name.
    pub port: String,
    /// The queue's number.
    pub queue: u16,
}

impl FromStr for QueueName {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let parts = s.split_once(':').filter(|(port, _)| !port.is_empty());
        let read = parts.and_then(|(port, q)| Some(Self { port: port.to_owned(), queue: q.parse().ok()? }));
        read.ok_or_else(|| format!("{s:?} is no queue: write PORT:NUMBER, as p0:0"))
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.port, self.queue)
    }
}

impl Serialize for QueueName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// What kind of refusal it is: a word that programs can rely on. There may be others than those named here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(Cow<'static, str>);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($text));)*
            /// Every code that is named here.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

codes! {
    /// The line is not one JSON object.
    BAD_JSON = "bad_json",
    /// No protocol version, or one that is not spoken here.
    BAD_VERSION = "bad_version",
    /// There is no such command.
    UNKNOWN_COMMAND = "unknown_command",
    /// A key of the request is unknown, missing, or has a value that cannot be.
    BAD_REQUEST = "bad_request",
    /// The line is too long; the connection ends.
    LINE_TOO_LONG = "line_too_long",
    /// The line was begun and not ended in time, or nothing was asked for long; the connection ends.
    TOO_SLOW = "too_slow",
    /// There are too many clients; the connection ends.
    TOO_MANY_CLIENTS = "too_many_clients",
    /// This user may not.
    DENIED = "denied",
    /// No port has this name.
    NO_SUCH_PORT = "no_such_port",
    /// The port has no such queue.
    NO_SUCH_QUEUE = "no_such_queue",
    /// No worker has this number.
    NO_SUCH_WORKER = "no_such_worker",
    /// A port has this name already.
    PORT_EXISTS = "port_exists",
    /// The port's table says something that cannot be.
    BAD_CONFIG = "bad_config",
    /// Not with this port, driver or mode.
    UNSUPPORTED = "unsupported",
    /// The instance is stopping.
    STOPPING = "stopping",
    /// It was tried and did not work.
    FAILED = "failed",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// For programs.
    pub code: Code,
    /// For people: what is wrong, and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal of kind `code`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// No port is called `name`; `ports` are those that there are.
    pub fn no_such_port<'p>(name: &str, ports: impl IntoIterator<Item = &'p str>) -> Self {
        let ports: Vec<_> = ports.into_iter().collect();
        let advice = match config::suggest(name, ports.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None if ports.is_empty() => "there are no ports".to_owned(),
            None => format!("there are {}", ports.join(", ")),
        };
        Self::new(Code::NO_SUCH_PORT, format!("no port is called {name:?}; {advice}"))
    }
}

#[cfg(test)]
mod tests;
