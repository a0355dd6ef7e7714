//! What joins the stations: the command under test, or a Linux bridge.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{BINARY, Ended, PATIENCE, Process};
use crate::rig::{Net, is_reference, packets};

/// How a run shares its work out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One worker does everything.
    RunToCompletion,
    /// One receives, two process, one sends.
    Pipeline,
    /// Two do everything, each with a queue of every port.
    TwoWorkers,
}

/// A test of a scenario in each run mode. The scenario is a function of the same name.
macro_rules! each_mode {
    ($($scenario:ident)*) => { $(
        mod $scenario {
            use crate::switch::Mode;
            #[test]
            fn run_to_completion() {
                super::$scenario(Mode::RunToCompletion);
            }
            #[test]
            fn pipeline() {
                super::$scenario(Mode::Pipeline);
            }
        }
    )* };
}
pub(crate) use each_mode;

/// A configuration, from parts that a test may change.
#[derive(Clone, Debug)]
pub struct Setup {
    pub mode: Mode,
    /// The keys of `[memory]`.
    pub memory: String,
    /// The keys of `[telemetry]`; `DIR` is the rig's directory, `NAME` the file's stem.
    pub telemetry: String,
    /// Name, driver and the driver's keys of each port.
    pub ports: Vec<(String, String)>,
    /// Names of the ports that are received from; all unless it is set.
    pub receive: Option<Vec<String>>,
    /// Stages and edges.
    pub stages: String,
    /// Keys of each worker.
    pub idle: &'static str,
}

impl Setup {
    /// Without ports and stages.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            memory: String::new(),
            telemetry: "listen = \"127.0.0.1:9464\"\ncontrol = \"DIR/NAME.sock\"".to_owned(),
            ports: Vec::new(),
            receive: None,
            stages: String::new(),
            // There are more workers than cores, and stations beside them.
            idle: "idle = \"sleep\"\nidle_bound = \"50us\"\n",
        }
    }

    /// A learning switch between the stations of `net`.
    pub fn switch(net: &Net, mode: Mode) -> Self {
        let queues = if mode == Mode::TwoWorkers { 2 } else { 1 };
        let keys = |i| format!("driver = \"packet\"\ninterface = \"p{i}\"\nqueues = {queues}");
        let port = |i| (format!("p{i}"), keys(i));
        let ports = (0..net.stations.len()).map(port).collect();
        let stages = "[[stage]]\nname = \"sw\"\nkind = \"l2switch\"\n".to_owned();
        Self { ports, stages, ..Self::new(mode) }
    }

    /// As the file says it.
    pub fn text(&self, dir: &Path) -> String {
        let telemetry = self.telemetry.replace("DIR", dir.to_str().expect("a plain path"));
        let mut text = format!("version = 1\n[memory]\n{}\n[telemetry]\n{telemetry}\n", self.memory);
        for (name, keys) in &self.ports {
            text += &format!("[[port]]\nname = \"{name}\"\n{keys}\n");
        }
        let all: Vec<_> = self.ports.iter().map(|p| p.0.clone()).collect();
        let from = self.receive.as_ref().unwrap_or(&all);
        let rx = format!("rx = {from:?}\n");
        let queue =
            |n: u8| format!("rx = {:?}\n", from.iter().map(|p| format!("{p}:{n}")).collect::<Vec<_>>());
        let idle = self.idle;
        let worker = |role: &str, more: &str| format!("[[worker]]\nrole = \"{role}\"\n{more}{idle}");
        let everything = |rx: &str| worker("run-to-completion", rx);
        text += &match self.mode {
            Mode::RunToCompletion => everything(&rx),
            Mode::TwoWorkers => [everything(&queue(0)), everything(&queue(1))].concat(),
            Mode::Pipeline => {
                [worker("rx", &rx), worker("process", ""), worker("process", ""), worker("tx", "")].concat()
            }
        };
        text + &self.stages
    }
}

/// What runs in the middle.
pub enum Switch<'n> {
    Bridge(&'n Net),
    Ringwright(Running<'n>),
}

impl<'n> Switch<'n> {
    /// Joins the stations of `net` by a learning switch, and waits until it is ready.
    #[track_caller]
    pub fn start(net: &'n Net, mode: Mode) -> Self {
        if is_reference() {
            Self::bridge(net)
        } else {
            Self::Ringwright(Running::start(net, &Setup::switch(net, mode)))
        }
    }

    fn bridge(net: &'n Net) -> Self {
        // Without spanning tree and group membership: the switch under test has neither.
        let mut lines =
            "link add name bridge0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n".to_owned();
        for station in &net.stations {
            lines += &format!("link set p{} master bridge0\n", station.index);
        }
        net.middle.ip(&format!("{lines}link set dev bridge0 mtu {} up\n", net.mtu));
        Self::Bridge(net)
    }

    /// Takes the interface of station `index` in, which was made anew.
    pub fn rejoin(&mut self, index: usize) {
        match self {
            Self::Bridge(net) => net.middle.ip(&format!("link set p{index} master bridge0\n")),
            // The command finds it by itself; the kernel counts from 0 again.
            Self::Ringwright(running) => running.before[index] = None,
        }
    }

    /// Whether port `index` is up, as status says; `None` for the bridge, which says nothing.
    #[track_caller]
    pub fn is_up(&self, index: usize) -> Option<bool> {
        match self {
            Self::Bridge(_) => None,
            Self::Ringwright(running) => running.status()["ports"][index]["link"]["up"].as_bool(),
        }
    }

    /// Ends it, with its accounts; `None` for the bridge, which has none.
    #[track_caller]
    pub fn stop(self) -> Option<Value> {
        match self {
            Self::Bridge(net) => {
                net.middle.ip("link del dev bridge0\n");
                net.assert_counted(0);
                None
            }
            Self::Ringwright(running) => Some(running.stop()),
        }
    }
}

/// A run of the command in the middle.
pub struct Running<'n> {
    net: &'n Net,
    /// None once it was ended.
    process: Option<Process>,
    pub control: PathBuf,
    /// What the kernel had received at each interface when the run was ready, which need not have been seen; `None` for
    /// an interface whose counts are not the run's.
    before: Vec<Option<u64>>,
}

/// Which build of the command is tested.
pub fn binary() -> String {
    std::env::var("RINGWRIGHT_NET_BINARY").unwrap_or_else(|_| BINARY.to_owned())
}

/// The control socket answers once every port is started and every worker runs.
#[track_caller]
fn until_ready(mut process: Process, control: &Path) -> Process {
    let deadline = Instant::now() + PATIENCE;
    while UnixStream::connect(control).is_err() {
        let runs = process.is_running();
        if !runs || Instant::now() > deadline {
            if runs {
                process.signal("KILL");
            }
            let Ended { status, stderr, .. } = process.end();
            panic!("not ready, {status}: {stderr}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    process
}

/// Writes a configuration to `NAME.toml` and returns its path.
pub fn write(dir: &Path, name: &str, text: &str) -> String {
    let file = dir.join(name).with_extension("toml");
    fs::write(&file, text).expect("a directory of ours");
    file.to_str().expect("a plain path").to_owned()
}

impl<'n> Running<'n> {
    /// Runs `setup` and waits until packets are taken.
    #[track_caller]
    pub fn start(net: &'n Net, setup: &Setup) -> Self {
        Self::named(net, "sw", setup)
    }

    /// Runs `setup` under a name of its own.
    #[track_caller]
    pub fn named(net: &'n Net, name: &str, setup: &Setup) -> Self {
        let file = write(&net.dir, name, &setup.text(&net.dir));
        let control = net.dir.join(name).with_extension("sock");
        let process = net.middle.start(&[&binary(), "run", "--json", "--log", "info", &file]);
        let process = until_ready(process, &control);
        let mut running = Self { net, process: Some(process), control, before: Vec::new() };
        running.before = running.received_by_kernel();
        running
    }

    /// What each interface of the middle that is there has received.
    fn received_by_kernel(&self) -> Vec<Option<u64>> {
        let shown = self.net.middle.ask(&["-s", "link", "show", "type", "veth"]);
        let all = shown.as_array().expect("interfaces");
        all.iter().map(|i| i["stats64"]["rx"]["packets"].as_u64()).collect()
    }

    /// The status object, from the control socket.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.ask(json!({ "command": "status" })).expect("a status")
    }

    /// What the control socket answers to a request, on a connection of its own.
    ///
    /// # Errors
    /// The error that it answers.
    #[track_caller]
    pub fn ask(&self, request: Value) -> Result<Value, Value> {
        Control::connect(&self.control).ask(request)
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("it runs until it is ended")
    }

    pub fn signal(&self, name: &str) {
        self.process().signal(name);
    }

    pub fn id(&self) -> u32 {
        self.process().id()
    }

    #[track_caller]
    pub fn assert_runs(&mut self) {
        assert!(self.process.as_mut().is_some_and(Process::is_running), "it has ended");
    }

    /// The kernel's counts of interface `index` are not this run's alone.
    pub fn shares(&mut self, index: usize) {
        self.before[index] = None;
    }

    /// Ends it as an operator would, with its accounts.
    #[track_caller]
    pub fn stop(self) -> Value {
        self.stop_within(PATIENCE)
    }

    #[track_caller]
    pub fn stop_within(mut self, limit: Duration) -> Value {
        let last = self.received_by_kernel();
        let process = self.process.take().expect("it runs until it is ended");
        process.signal("TERM");
        let status = accounted_for(process.end_within(limit));
        let all = self.before.iter().zip(last).enumerate();
        for (i, before, last) in all.filter_map(|(i, (before, last))| Some((i, (*before)?, last?))) {
            agrees_with_kernel(self.net, &status, i, last - before);
        }
        self.net.assert_counted(lost(&status));
        status
    }

    /// Waits for its end, whatever it is.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        self.process.take().expect("it runs until it is ended").end()
    }
}

impl Drop for Running<'_> {
    /// A test that fails shows what became of the packets.
    fn drop(&mut self) {
        let Some(mut process) = self.process.take().filter(|_| thread::panicking()) else { return };
        if !process.is_running() {
            return eprintln!("the run had ended: {}", process.end().stderr);
        }
        process.signal("TERM");
        let deadline = Instant::now() + Duration::from_secs(5);
        while process.is_running() {
            if Instant::now() > deadline {
                return eprintln!("the run does not end");
            }
            thread::sleep(Duration::from_millis(10));
        }
        let ended = process.end();
        let status: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        eprintln!("the run: {}\n{}", status["conservation"], ended.stderr);
        for port in status["ports"].as_array().into_iter().flatten() {
            let [name, rx, tx, drops, device] = ["name", "rx", "tx", "drops", "device"].map(|k| &port[k]);
            eprintln!("{name}: rx {rx}, tx {tx}, dropped {drops}, device {device}");
        }
        for ring in status["handoffs"].as_array().into_iter().flatten() {
            eprintln!(
                "{} to {}: {} packets, dropped {}",
                ring["from"], ring["to"], ring["packets"], ring["drops"]
            );
        }
        for stage in status["stages"].as_array().into_iter().flatten() {
            eprintln!("{}: dropped {}", stage["name"], stage["drops"]);
        }
    }
}

/// Asserts that a run ended well and that nothing it received is unaccounted for.
#[track_caller]
pub fn accounted_for(ended: Ended) -> Value {
    let ended = ended.expect(0);
    let status = ended.json();
    assert_balanced(&status);
    status
}

/// Asserts the sum of rule 7, in a status whose counts no longer change.
#[track_caller]
pub fn assert_balanced(status: &Value) {
    let sums = &status["conservation"];
    let n = |key: &str| sums[key].as_u64().unwrap_or_else(|| panic!("{key} is no count: {sums}"));
    assert_eq!(n("unexplained"), 0, "{sums}\n{status:#}");
    assert_eq!(
        n("received") + n("created"),
        n("sent") + n("consumed") + n("held") + n("dropped"),
        "the sums do not balance: {sums}\n{status:#}"
    );
    let ports = status["ports"].as_array().expect("ports");
    let sum = |side: &str| ports.iter().map(|p| p[side]["packets"].as_u64().expect("a count")).sum::<u64>();
    // What a port had counted that was removed is in the sums alone.
    assert!(sum("rx") <= n("received") && sum("tx") <= n("sent"), "ports against their sum: {status:#}");
}

/// Packets that a run says were lost: dropped for want of room, or never received.
pub fn lost(status: &Value) -> u64 {
    let n = |v: &Value| v.as_u64().unwrap_or(0);
    let ports = status["ports"].as_array().into_iter().flatten();
    let at_ports = ports.map(|p| {
        let drops = p["drops"].as_object().into_iter().flatten().map(|(_, v)| n(v)).sum::<u64>();
        n(&p["device"]["rx_missed"]) + drops
    });
    at_ports.sum::<u64>() + n(&status["conservation"]["dropped"])
}

/// What the kernel counted at interface `index`: nobody else sends there, and what came in while the run was on, `least` of
/// it before it was told to end, was received, or was missed and said to be.
#[track_caller]
fn agrees_with_kernel(net: &Net, status: &Value, index: usize, least: u64) {
    let name = format!("p{index}");
    let ports = status["ports"].as_array().expect("ports");
    let Some(port) = ports.iter().find(|p| p["name"] == name) else { return };
    let n = |v: &Value| v.as_u64().unwrap_or(0);
    let sent = packets(&net.middle, &name, "tx");
    assert_eq!(n(&port["tx"]["packets"]), sent, "the kernel sent {sent} at {name}: {port:#}");
    let came = packets(&net.middle, &name, "rx");
    let seen = n(&port["rx"]["packets"]) + n(&port["device"]["rx_missed"]);
    assert!((least..=came).contains(&seen), "{least} of {came} came to {name}, {seen} were seen: {port:#}");
}

/// A connection to a control socket: a JSON object a line, each way.
pub struct Control {
    stream: BufReader<UnixStream>,
}

impl Control {
    #[track_caller]
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        Self { stream: BufReader::new(stream) }
    }

    #[track_caller]
    pub fn ask(&mut self, mut request: Value) -> Result<Value, Value> {
        request["version"] = 1.into();
        writeln!(self.stream.get_ref(), "{request}").expect("somebody reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("an answer");
        let mut answer: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        match answer["ok"] == true {
            true => Ok(answer["result"].take()),
            false => Err(answer["error"].take()),
        }
    }
}
