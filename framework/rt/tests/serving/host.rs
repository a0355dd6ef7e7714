//! An instance that is not there, its socket's folder, and a plain HTTP client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use meter::{Direction, Meter, QueueMeter, Snapshot, WorkerMeter};
use ringwright_rt::control::{Code, Command, Control, Host, Limits, Observation, QueueName, Refusal};
use ringwright_rt::telemetry::{self, Exporter};
use ringwright_rt::{DeviceStatus, LinkStatus, PortStatus, QueueSide, QueueStatus, Status};
use serde_json::{Value, json};

/// How long anything may take on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Remembers what it was told. `p0` and `p1` are its first ports, each with one queue, on workers 0 and 1.
pub struct Fake {
    pub ports: Vec<(String, usize)>,
    pub commands: Vec<Command>,
    pub observed: u64,
    /// Each call waits for this before it returns.
    pub gate: Option<Receiver<()>>,
    pub stopping: bool,
}

impl Fake {
    pub fn new() -> Arc<Mutex<Self>> {
        let ports = vec![("p0".to_owned(), 0), ("p1".to_owned(), 1)];
        Arc::new(Mutex::new(Self { ports, commands: Vec::new(), observed: 0, gate: None, stopping: false }))
    }

    /// One whose calls wait until something is sent.
    pub fn gated() -> (Arc<Mutex<Self>>, Sender<()>) {
        let (open, gate) = channel();
        let fake = Self::new();
        fake.lock().unwrap().gate = Some(gate);
        (fake, open)
    }

    fn wait(&self) {
        if let Some(gate) = &self.gate {
            let _ = gate.recv_timeout(PATIENCE);
        }
    }

    fn port(&mut self, name: &str) -> Result<&mut (String, usize), Refusal> {
        let names: Vec<_> = self.ports.iter().map(|p| p.0.clone()).collect();
        let found = self.ports.iter_mut().find(|p| p.0 == name);
        found.ok_or_else(|| Refusal::no_such_port(name, names.iter().map(String::as_str)))
    }
}

fn worker(n: usize) -> Result<usize, Refusal> {
    let no = || Refusal::new(Code::NO_SUCH_WORKER, format!("there is no worker {n}; there are 0 and 1"));
    (n < 2).then_some(n).ok_or_else(no)
}

impl Host for Fake {
    fn observe(&mut self) -> Observation {
        self.wait();
        self.observed += 1;
        let mut meter = QueueMeter::default();
        meter.burst(32, 32 * 60 * self.observed);
        let name: Arc<str> = "p0".into();
        let meters = Snapshot {
            queues: vec![((name, 0, Direction::Rx), meter)],
            workers: vec![(0, WorkerMeter::default())],
            stages: Vec::new(),
        };
        let port = |(name, worker): &(String, usize)| PortStatus {
            name: name.clone(),
            driver: "null",
            node: None,
            link: LinkStatus { up: true, speed_bps: None },
            rx: (&meter).into(),
            tx: Default::default(),
            drops: Default::default(),
            device: DeviceStatus::default(),
            queues: vec![QueueStatus {
                id: 0,
                worker: Some(*worker),
                rx: QueueSide::from(&meter),
                tx: QueueSide::default(),
            }],
        };
        let ports = self.ports.iter().map(port).collect();
        Observation { status: Status { schema: 1, version: "0.1.0", ports, ..Status::default() }, meters }
    }

    fn execute(&mut self, command: Command) -> Result<Value, Refusal> {
        self.wait();
        self.commands.push(command.clone());
        match command {
            Command::AddPort { port, worker: w } => {
                let text = |key: &str| port.get(key).and_then(|v| v.as_str()).map(str::to_owned);
                let missing = |key| Refusal::new(Code::BAD_CONFIG, format!("{key}: is missing"));
                let (name, w) = (text("name").ok_or_else(|| missing("name"))?, worker(w.unwrap_or(0))?);
                text("driver").ok_or_else(|| missing("driver"))?;
                if self.port(&name).is_ok() {
                    return Err(Refusal::new(
                        Code::PORT_EXISTS,
                        format!("a port is called {name:?} already"),
                    ));
                }
                self.ports.push((name.clone(), w));
                Ok(json!({"port": name, "queues": 1, "worker": w}))
            }
            Command::RemovePort { name } => {
                self.port(&name)?;
                self.ports.retain(|p| p.0 != name);
                Ok(json!({"port": name}))
            }
            Command::MoveQueue { queue: QueueName { port, queue }, worker: w } => {
                let w = worker(w)?;
                let from = std::mem::replace(&mut self.port(&port)?.1, w);
                Ok(json!({"queue": format!("{port}:{queue}"), "from": from, "worker": w}))
            }
            Command::SetBatching { port, packets, delay } => {
                self.port(&port)?;
                let delay = delay.unwrap_or(Duration::from_micros(2));
                let delay = format!("{}us", delay.as_micros());
                Ok(json!({"port": port, "packets": packets.map_or(32, u16::from), "delay": delay}))
            }
            Command::SetLog { filter } => Ok(json!({"filter": filter})),
            Command::Shutdown => {
                self.stopping = true;
                Ok(json!({"stopping": true}))
            }
            other => Err(Refusal::new(Code::UNSUPPORTED, other.name())),
        }
    }
}

/// A folder of this process that goes away; those of dead processes go first.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = std::env::temp_dir();
        for entry in fs::read_dir(&base).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let pid = name.strip_prefix("rw-serving-").and_then(|rest| rest.split('-').next());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = base.join(format!("rw-serving-{}-{n}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A control socket with a host behind it.
pub struct Rig {
    pub control: Option<Control>,
    pub path: PathBuf,
    _dir: Folder,
}

impl Rig {
    pub fn new(host: Arc<Mutex<dyn Host>>, limits: Limits) -> Self {
        let dir = Folder::new();
        let path = dir.at("sw.sock");
        let control = Control::start(&path, host, limits).unwrap();
        Self { control: Some(control), path, _dir: dir }
    }
    pub fn connect(&self) -> Line {
        Line::connect(&self.path)
    }
}

/// A client that sends what it is told to.
pub struct Line(pub BufReader<UnixStream>);

impl Line {
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }
    /// The next answer; `None` at the end.
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(e) => panic!("no answer: {e}"),
        }
    }
    pub fn ask(&mut self, request: &str) -> Value {
        self.send(format!("{request}\n").as_bytes()).unwrap();
        self.next().expect("an answer")
    }
    /// The code of the next answer, a refusal.
    pub fn code(&mut self) -> String {
        let answer = self.next().expect("an answer");
        assert_eq!((&answer["ok"], &answer["version"]), (&json!(false), &json!(1)), "{answer}");
        answer["error"]["code"].as_str().expect("a code").to_owned()
    }
}

/// An exporter with a host behind it.
pub fn exporter(host: Arc<Mutex<dyn Host>>, limits: telemetry::Limits) -> Exporter {
    Exporter::start("127.0.0.1:0".parse().unwrap(), false, host, limits).unwrap()
}

/// An HTTP answer: status, head (lower case), body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

pub fn read_answer(stream: TcpStream) -> Answer {
    let mut text = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = BufReader::new(stream);
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// Sends a request that has `more` headers (each with its end of line), and reads the answer.
pub fn fetch(to: SocketAddr, method: &str, path: &str, more: &str) -> Answer {
    let mut stream = TcpStream::connect(to).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    read_answer(stream)
}

pub fn get(to: SocketAddr, path: &str) -> Answer {
    fetch(to, "GET", path, "")
}
