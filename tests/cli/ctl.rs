//! `ringwright ctl` against an instance that lives in this process: the library's own server, with a host that only
//! remembers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ringwright::rt::control::{Code, Command, Control, Host, Limits, Observation, Refusal};
use ringwright::rt::telemetry::{self, Exporter};
use ringwright::rt::{DeviceStatus, LinkStatus, PortStatus, QueueSide, QueueStatus, Status, Traffic};
use serde_json::{Value, json};

use crate::rig::{self, BINARY, PATIENCE, Process, program};

/// Remembers what it was told.
#[derive(Default)]
struct Memory(Vec<Command>);

impl Host for Memory {
    fn observe(&mut self) -> Observation {
        let port = PortStatus {
            name: "p0".into(),
            driver: "packet",
            node: None,
            link: LinkStatus { up: true, speed_bps: Some(10_000_000_000) },
            rx: Traffic { packets: 1_234_567, bytes: 74_074_020 },
            tx: Traffic::default(),
            drops: Default::default(),
            device: DeviceStatus::default(),
            queues: vec![QueueStatus {
                id: 0,
                worker: Some(1),
                rx: QueueSide::default(),
                tx: QueueSide::default(),
            }],
        };
        let status = Status {
            schema: 1,
            version: "0.1.0",
            elapsed_s: 1.0 / 3.0,
            ports: vec![port],
            ..Status::default()
        };
        Observation { status, ..Observation::default() }
    }

    fn execute(&mut self, command: Command) -> Result<Value, Refusal> {
        self.0.push(command.clone());
        match command {
            Command::RemovePort { name } if name != "p0" => Err(Refusal::no_such_port(&name, ["p0"])),
            Command::RemovePort { name } => Ok(json!({"port": name})),
            Command::MoveQueue { queue, worker } => {
                Ok(json!({"queue": queue.to_string(), "from": 0, "worker": worker}))
            }
            Command::AddPort { port, worker } => {
                Ok(json!({"port": port["name"].as_str(), "queues": 1, "worker": worker}))
            }
            Command::SetBatching { port, packets, .. } => {
                Ok(json!({"port": port, "packets": packets, "delay": "5us"}))
            }
            Command::SetLog { filter } => Ok(json!({"filter": filter})),
            Command::Shutdown => Ok(json!({"stopping": true})),
            other => Err(Refusal::new(Code::UNSUPPORTED, other.name())),
        }
    }
}

/// An instance with a socket.
struct Instance {
    host: Arc<Mutex<Memory>>,
    control: Control,
    base: PathBuf,
}

impl Instance {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        sweep();
        let base = std::env::temp_dir().join(format!("rw-ctl-{}-{n}", std::process::id()));
        let host = Arc::new(Mutex::new(Memory::default()));
        let control = Control::start(&base.join("sw.sock"), host.clone(), Limits::default()).unwrap();
        Self { host, control, base }
    }

    /// The command with these words, told which socket.
    fn ctl(&self, words: &[&str]) -> rig::Ended {
        let mut c = program(&[BINARY, "ctl", "--socket"]);
        c.arg(self.control.path()).args(words);
        Process::start(&mut c).end()
    }

    fn told(&self) -> Command {
        self.host.lock().unwrap().0.pop().expect("a command")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// Removes folders of processes that are gone.
fn sweep() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix("rw-ctl-").and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[test]
fn each_command_does_one_thing_and_says_so() {
    let i = Instance::new();
    for (words, said, told) in [
        (
            &["add-port", "name=p2", "driver=packet", "doorbell.packets=4", "--worker", "1"][..],
            "port p2 is open, its queues (1) are with worker 1\n",
            r#"{"command":"add_port","port":{"doorbell":{"packets":4},"driver":"packet","name":"p2"},"worker":1}"#,
        ),
        (&["remove-port", "p0"], "port p0 is closed\n", r#"{"command":"remove_port","name":"p0"}"#),
        (
            &["move-queue", "p0:3", "1"],
            "queue p0:3 went from worker 0 to worker 1\n",
            r#"{"command":"move_queue","queue":"p0:3","worker":1}"#,
        ),
        (
            &["set-batching", "p0", "--packets", "16", "--delay", "5us"],
            "port p0: tail writes after 16 packets or 5us\n",
            r#"{"command":"set_batching","port":"p0","packets":16,"delay":"5us"}"#,
        ),
        (
            &["set-log", "warn,ringwright_rt=info"],
            "log: warn,ringwright_rt=info\n",
            r#"{"command":"set_log","filter":"warn,ringwright_rt=info"}"#,
        ),
        (&["shutdown"], "it is stopping\n", r#"{"command":"shutdown"}"#),
    ] {
        let ended = i.ctl(words).expect(0);
        assert_eq!((&*ended.stdout, &*ended.stderr), (said, ""), "{words:?}");
        let wanted: Value = serde_json::from_str(told).unwrap();
        assert_eq!(serde_json::to_value(i.told()).unwrap(), wanted);
    }
    let hello = i.ctl(&["hello"]).expect(0).stdout;
    assert!(hello.starts_with(&format!("sw (process {}): ringwright ", std::process::id())), "{hello}");
}

#[test]
fn json_is_exactly_the_result_and_all_views_agree() {
    let i = Instance::new();
    let e =
        Exporter::start("127.0.0.1:0".parse().unwrap(), false, i.host.clone(), telemetry::Limits::default())
            .unwrap();
    let by_cli = i.ctl(&["status", "--json"]).expect(0);
    let by_api = fetch(e.address(), "/api/v1/status");
    assert_eq!(by_cli.stdout, by_api, "byte for byte");
    assert_eq!(by_cli.json()["ports"][0]["rx"]["packets"], 1_234_567);
    assert_eq!(i.ctl(&["--json", "shutdown"]).expect(0).stdout, "{\"stopping\":true}\n");
}

fn fetch(to: std::net::SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn status_is_a_table_and_can_be_watched() {
    let i = Instance::new();
    let shown = i.ctl(&["status"]).expect(0).stdout;
    for words in ["sw (process ", "1 234 567", "up 10G", "0:1", "unexplained: not known while it runs"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let mut c = program(&[BINARY, "ctl", "--socket"]);
    c.arg(i.control.path()).args(["status", "--watch", "10ms"]);
    let mut watching = Process::start(&mut c);
    watching.until_written("rx/s");
    watching.signal("INT");
    assert_eq!(watching.end().code(), None, "the first signal ends it");
}

#[test]
fn refusals_and_absence_are_failures() {
    let i = Instance::new();
    let refused = i.ctl(&["remove-port", "p1"]).expect(1);
    assert_eq!(refused.stdout, "");
    assert_eq!(refused.stderr, "ringwright: no port is called \"p1\"; did you mean p0?\n");
    let nobody = rig::run("ctl --socket /nonexistent/sw.sock status --json").expect(1);
    assert_eq!(nobody.stdout, "");
    assert!(nobody.stderr.contains("no instance runs there"), "{}", nobody.stderr);
}

#[test]
fn wrong_usage_is_told_apart_and_reaches_nobody() {
    let i = Instance::new();
    for (words, said) in [
        (&["move-queue", "p0", "1"][..], "write PORT:NUMBER, as p0:0"),
        (&["move-queue", "p0:0", "one"], "one"),
        (&["set-batching", "p0"], "--packets"),
        (&["set-batching", "p0", "--packets", "0"], "0"),
        (&["set-batching", "p0", "--delay", "fast"], "write 50us"),
        (&["set-log", "loud"], "use off, error, warn, info or debug"),
        (&["add-port"], "KEY=VALUE"),
        (&["add-port", "p2"], "\"p2\" is not KEY=VALUE"),
        (&["status", "--watch", "0"], "use 1s"),
        (&["status", "--watch", "1s", "--json"], "use one of both"),
        (&["--json", "status", "--watch", "1s"], "use one of both"),
        (&["status", "--name", "sw"], "use one of both"),
        (&["reboot"], "unrecognized subcommand"),
    ] {
        let ended = i.ctl(words).expect(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
    assert!(i.host.lock().unwrap().0.is_empty());
    let named = rig::run("ctl --name ../sw status").expect(2);
    assert!(named.stderr.contains("\"../sw\" is no name"), "{}", named.stderr);
}
