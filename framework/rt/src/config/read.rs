//! From a table to sections.

use core::time::Duration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{KeyError, Keys, suggest};
use graph::OnFull;
use ring::RingSize;
use toml::{Table, Value};

use super::text::join;
use super::{
    Config, ConfigError, EdgeSection, Kinds, MemorySection, PortNames, PortSection, Problem, QueueName,
    StageSection, TelemetrySection, Text, WorkerSection,
};
use crate::{Idle, Role};

/// Most ports, workers, stages or edges: a row has 16 bits for its port, and nobody writes more by hand.
const MOST: usize = 1024;
const PORT_KEYS: [&str; 9] =
    ["name", "driver", "queues", "rx_ring", "tx_ring", "doorbell", "prefetch", "on_full", "max_frame"];
const WORKER_KEYS: [&str; 7] = ["core", "role", "rx", "tx", "idle", "idle_bound", "stages"];
const SECTIONS: [&str; 7] = ["version", "memory", "telemetry", "port", "worker", "stage", "edge"];
/// Where a configuration's control socket is unless it says otherwise; NAME is the file's stem.
const SOCKET: &str = "/run/ringwright/NAME.sock";
/// A distance that "auto" stands for until it is measured.
const PREFETCH: u8 = 4;

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(file: &Path, kinds: Kinds<'_>) -> Result<Self, ConfigError> {
        let shown = file.display().to_string();
        let source = std::fs::read_to_string(file).map_err(|e| ConfigError::unreadable(&shown, &e))?;
        let stem = file.file_stem().map_or_else(|| "ringwright".into(), |s| s.to_string_lossy().into_owned());
        Self::parse(&shown, &stem, &source, kinds)
    }

    /// Reads and checks `source`, the contents of `file`; `name` is what the configuration is called.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(file: &str, name: &str, source: &str, kinds: Kinds<'_>) -> Result<Self, ConfigError> {
        let text = Text::parse(file, source)?;
        let mut r = Reader { text: &text, kinds, problems: Vec::new() };
        let top = r.text.table();
        r.section("", top, &SECTIONS, |k| match k.number("version", 0, 1..=1)? {
            1 => Ok(()),
            _ => Err(KeyError::new("version", "is missing: write version = 1")),
        });
        let memory = r.one("memory", &["pages", "buffers", "frame_room"], read_memory);
        let telemetry =
            r.one("telemetry", &["listen", "allow_remote", "control"], |k| read_telemetry(k, name));
        let ports: Vec<PortSection> = r.each("port", |r, at, t| r.port(at, t));
        // Also those that are wrong otherwise: one fault is not to look like several.
        let named = top.get("port").and_then(Value::as_array).into_iter().flatten();
        let names = PortNames::new(named.filter_map(|p| p.get("name")?.as_str()));
        r.twice("port", ports.iter().map(|p| &*p.name));
        let workers = r.each("worker", |r, at, t| r.section(at, t, &WORKER_KEYS, |k| read_worker(k, &names)));
        let stages: Vec<StageSection> = r.each("stage", |r, at, t| r.stage(at, t));
        r.twice("stage", stages.iter().map(|s| &*s.name));
        let edges = r.each("edge", |r, at, t| r.section(at, t, &["from", "to"], read_edge));
        let problems = r.problems;
        match (memory, telemetry) {
            (Some(memory), Some(telemetry)) if problems.is_empty() => {
                let name = name.to_owned();
                Ok(Self { name, memory, telemetry, ports, workers, stages, edges, text })
            }
            _ => Err(text.error(problems)),
        }
    }
}

impl PortSection {
    /// A port from a table as in `[[port]]`: of a file, or of a control message.
    ///
    /// # Errors
    /// The key that is wrong.
    pub fn from_table(table: &Table, kinds: Kinds<'_>) -> Result<Self, KeyError> {
        let (common, own): (Table, Table) =
            table.clone().into_iter().partition(|(k, _)| PORT_KEYS.contains(&k.as_str()));
        let keys = Keys::new(&common, &PORT_KEYS)?;
        let name = read_name(&keys)?;
        let driver = keys.need_text("driver", "packet, tap, pcap, null, ...")?;
        let Some(known) = kinds.driver(driver) else {
            let names: Vec<_> = kinds.drivers.iter().map(|d| d.name()).collect();
            return Err(KeyError::new("driver", no_such("driver", driver, &names)));
        };
        let all: Vec<&str> = PORT_KEYS.iter().chain(known.keys()).copied().collect();
        Keys::new(table, &all)?;
        let empty = Table::new();
        let doorbell = match common.get("doorbell") {
            None => &empty,
            Some(Value::Table(t)) => t,
            Some(v) => {
                let problem = format!("{v} is not a table: {{ packets = 32, delay = \"2us\" }}");
                return Err(KeyError::new("doorbell", problem));
            }
        };
        let inside = |e: KeyError| KeyError::new(format!("doorbell.{}", e.key), e.problem);
        let bell = Keys::new(doorbell, &["packets", "delay"]).map_err(inside)?;
        let prefetch = match common.get("prefetch").and_then(Value::as_str) {
            Some("auto") => PREFETCH,
            _ => keys
                .number("prefetch", PREFETCH.into(), 0..=64)
                .map_err(|e| KeyError::new("prefetch", format!("{}, nor \"auto\"", e.problem)))?
                as u8,
        };
        Ok(Self {
            name,
            driver: driver.to_owned(),
            queues: keys.number("queues", 1, 1..=64)? as u16,
            rx_ring: read_ring(&keys, "rx_ring")?,
            tx_ring: read_ring(&keys, "tx_ring")?,
            doorbell_packets: bell.number("packets", 32, 1..=1024).map_err(inside)? as u16,
            doorbell_delay: bell.time("delay", Duration::ZERO).map_err(inside)?,
            prefetch,
            on_full: keys.word(
                "on_full",
                None,
                &[("drop", Some(OnFull::Drop)), ("wait", Some(OnFull::Wait))],
            )?,
            max_frame: match keys.number("max_frame", 0, 60..=65_535)? {
                0 => None,
                n => Some(n as u16),
            },
            own,
        })
    }
}

/// Reads sections and gathers what is wrong with them.
struct Reader<'t> {
    text: &'t Text,
    kinds: Kinds<'t>,
    problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    /// What `read` makes of the table at `at`; what is wrong is noted.
    fn section<T>(
        &mut self,
        at: &str,
        table: &Table,
        known: &[&str],
        read: impl FnOnce(&Keys<'_>) -> Result<T, KeyError>,
    ) -> Option<T> {
        let result = Keys::new(table, known).and_then(|k| read(&k));
        result.map_err(|e| self.note(at, &e)).ok()
    }

    fn note(&mut self, at: &str, e: &KeyError) {
        let path = join(at, &e.key);
        // An unknown or missing key is wrong as a key.
        let as_key = e.problem.starts_with("is ");
        let problem = if as_key {
            self.text.key_problem(&path, e.to_string())
        } else {
            self.text.problem(&path, e.to_string())
        };
        self.problems.push(problem);
    }

    fn one<T>(
        &mut self,
        name: &str,
        known: &[&str],
        read: impl FnOnce(&Keys<'_>) -> Result<T, KeyError>,
    ) -> Option<T> {
        match self.text.table().get(name) {
            None => self.section(name, &Table::new(), known, read),
            Some(Value::Table(t)) => self.section(name, t, known, read),
            Some(_) => {
                self.problems
                    .push(self.text.key_problem(name, format!("{name} is a section: write [{name}]")));
                None
            }
        }
    }

    fn each<T>(&mut self, name: &str, mut read: impl FnMut(&mut Self, &str, &Table) -> Option<T>) -> Vec<T> {
        let all = match self.text.table().get(name) {
            None => return Vec::new(),
            Some(Value::Array(all)) if all.len() <= MOST => all,
            Some(_) => {
                let message = format!("{name} is a list of at most {MOST}: write [[{name}]] for each");
                self.problems.push(self.text.key_problem(name, message));
                return Vec::new();
            }
        };
        let mut read_one = |(i, v): (usize, &Value)| {
            let at = format!("{name}[{i}]");
            let Value::Table(t) = v else {
                self.problems
                    .push(self.text.problem(&at, format!("{name} is a list of tables: write [[{name}]]")));
                return None;
            };
            read(self, &at, t)
        };
        all.iter().enumerate().filter_map(&mut read_one).collect()
    }

    fn twice<'n>(&mut self, section: &str, names: impl Iterator<Item = &'n str>) {
        let names: Vec<_> = names.collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                let path = format!("{section}[{i}].name");
                self.problems
                    .push(self.text.problem(&path, format!("there are two {section}s called {name:?}")));
            }
        }
    }

    fn port(&mut self, at: &str, table: &Table) -> Option<PortSection> {
        PortSection::from_table(table, self.kinds).map_err(|e| self.note(at, &e)).ok()
    }

    fn stage(&mut self, at: &str, table: &Table) -> Option<StageSection> {
        let (common, own): (Table, Table) =
            table.clone().into_iter().partition(|(k, _)| ["name", "kind"].contains(&k.as_str()));
        let kinds = self.kinds;
        let section = self.section(at, &common, &["name", "kind"], |k| {
            let kind = k.need_text("kind", "l2switch, forward, filter, ...")?;
            let Some(known) = kinds.stage(kind) else {
                let names: Vec<_> = kinds.stages.iter().map(|d| d.kind()).collect();
                return Err(KeyError::new("kind", no_such("kind of stage", kind, &names)));
            };
            Ok((StageSection { name: read_name(k)?, kind: kind.to_owned(), own }, known.keys()))
        });
        let (section, known) = section?;
        self.section(at, &section.own, known, |_| Ok(()))?;
        Some(section)
    }
}

fn no_such(what: &str, name: &str, known: &[&str]) -> String {
    match suggest(name, known.iter().copied()) {
        Some(near) => format!("there is no {what} {name:?}; did you mean {near:?}?"),
        None => format!("there is no {what} {name:?}; there are {}", known.join(", ")),
    }
}

fn read_name(keys: &Keys<'_>) -> Result<Arc<str>, KeyError> {
    let name = keys.need_text("name", "a name for messages and metrics")?;
    let good =
        |(i, c): (usize, char)| c.is_ascii_lowercase() || i > 0 && (c.is_ascii_digit() || "_-".contains(c));
    let reserved = ["rx", "tx", "drop"].contains(&name);
    if name.len() > 32 || !name.char_indices().all(good) || reserved {
        let problem = format!(
            "{name:?} is no name: a small letter, then at most 31 of a-z 0-9 _ -; not rx, tx or drop"
        );
        return Err(KeyError::new("name", problem));
    }
    Ok(name.into())
}

fn read_ring(keys: &Keys<'_>, key: &str) -> Result<RingSize, KeyError> {
    let n = keys.number(key, 1024, 8..=32_768)? as u32;
    RingSize::try_from(n).map_err(|_| KeyError::new(key, format!("{n} is not a power of two")))
}

fn read_memory(keys: &Keys<'_>) -> Result<MemorySection, KeyError> {
    let pages = keys.text("pages")?.unwrap_or("any");
    let pages = pages.parse().map_err(|e| KeyError::new("pages", format!("{pages:?}: {e}")))?;
    Ok(MemorySection {
        pages,
        buffers: keys.number("buffers", 16_384, 64..=1 << 26)? as usize,
        frame_room: keys.number("frame_room", 2048, 256..=16_000)? as u16,
    })
}

fn read_telemetry(keys: &Keys<'_>, name: &str) -> Result<TelemetrySection, KeyError> {
    let listen = match keys.text("listen")?.unwrap_or("127.0.0.1:9464") {
        "" => None,
        s => Some(s.parse::<SocketAddr>().map_err(|_| {
            KeyError::new(
                "listen",
                format!("{s:?} is not ADDRESS:PORT, as \"127.0.0.1:9464\"; \"\" turns it off"),
            )
        })?),
    };
    let allow_remote = keys.flag("allow_remote", false)?;
    if let Some(a) = listen.filter(|a| !a.ip().is_loopback() && !allow_remote) {
        let problem =
            format!("{a} can be reached from other machines: use 127.0.0.1, or set allow_remote = true");
        return Err(KeyError::new("listen", problem));
    }
    let control = match keys.text("control")?.unwrap_or(SOCKET) {
        "" => None,
        s => Some(PathBuf::from(s.replace("NAME", name))),
    };
    Ok(TelemetrySection { listen, allow_remote, control })
}

fn read_worker(keys: &Keys<'_>, names: &PortNames) -> Result<WorkerSection, KeyError> {
    let role = keys.word("role", Role::RunToCompletion, &Role::ALL.map(|r| (r.name(), r)))?;
    let rx = keys.texts("rx")?.unwrap_or_default();
    let rx = rx.iter().map(|q| read_queue(q, names)).collect::<Result<Vec<_>, _>>()?;
    let receives = matches!(role, Role::RunToCompletion | Role::Rx);
    if rx.is_empty() && receives {
        return Err(KeyError::new(
            "rx",
            format!("is missing: a worker of role {:?} receives, as rx = [\"p0\"]", role.name()),
        ));
    }
    if !rx.is_empty() && !receives {
        return Err(KeyError::new(
            "rx",
            format!("a worker of role {:?} receives from workers, not from ports", role.name()),
        ));
    }
    let tx = keys.texts("tx")?;
    if tx.is_some() && role == Role::Rx {
        return Err(KeyError::new("tx", "a worker of role \"rx\" sends to workers, not to ports"));
    }
    let tx = tx.map(|all| all.iter().map(|n| names.find("tx", n)).collect()).transpose()?;
    let stages = keys.texts("stages")?.map(|all| all.iter().map(|s| (*s).to_owned()).collect());
    if stages.is_some() && matches!(role, Role::Rx | Role::Tx) {
        return Err(KeyError::new(
            "stages",
            "stages run on workers of role \"process\" or \"run-to-completion\"",
        ));
    }
    let core = match keys.has("core") {
        true => Some(keys.number("core", 0, 0..=4095)? as usize),
        false => None,
    };
    Ok(WorkerSection { core, role, rx, tx, idle: read_idle(keys)?, stages })
}

fn read_idle(keys: &Keys<'_>) -> Result<Idle, KeyError> {
    let bound = keys.time("idle_bound", Duration::from_micros(50))?;
    if !(Duration::from_micros(1)..=Duration::from_secs(1)).contains(&bound) {
        return Err(KeyError::new("idle_bound", format!("{bound:?} is not from 1us to 1s")));
    }
    let words = [("busy", Idle::Busy), ("pause", Idle::Pause), ("sleep", Idle::Sleep { bound })];
    if keys.text("idle")? == Some("interrupt") {
        let problem = "\"interrupt\" is not there yet: use \"sleep\", which wakes within idle_bound";
        return Err(KeyError::new("idle", problem));
    }
    let idle = keys.word("idle", Idle::Busy, &words)?;
    if keys.has("idle_bound") && !matches!(idle, Idle::Sleep { .. }) {
        return Err(KeyError::new("idle_bound", "goes with idle = \"sleep\" only"));
    }
    Ok(idle)
}

/// `PORT` or `PORT:QUEUE`.
fn read_queue(s: &str, names: &PortNames) -> Result<QueueName, KeyError> {
    QueueName::parse(s, names).map_err(|problem| KeyError::new("rx", problem))
}

impl QueueName {
    /// Reads `PORT` or `PORT:QUEUE`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(s: &str, names: &PortNames) -> Result<Self, String> {
        let (name, queue) = match s.split_once(':') {
            None => (s, None),
            Some((name, q)) => {
                let wrong = |_| format!("{s:?} is not PORT or PORT:QUEUE, as \"p0:1\"");
                (name, Some(q.parse().map_err(wrong)?))
            }
        };
        let port = names.number(name).ok_or_else(|| names.no_such(name))?;
        Ok(Self { port, queue })
    }
}

fn read_edge(keys: &Keys<'_>) -> Result<EdgeSection, KeyError> {
    Ok(EdgeSection {
        from: keys.need_text("from", "rx, rx:PORT, STAGE or STAGE:EXIT")?.to_owned(),
        to: keys.need_text("to", "a stage, tx, tx:PORT or drop:REASON")?.to_owned(),
    })
}
