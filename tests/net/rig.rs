//! Namespaces, the wires between them, and what runs inside.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::process::{Ended, PATIENCE, Process, has, is_root, program, skip};

/// Where `ip` keeps the names of namespaces.
const NAMES: &str = "/run/netns";
/// What the rig itself calls. Tests name what they need beside it.
const TOOLS: [&str; 5] = ["ip", "tc", "ethtool", "ping", "tcpdump"];
const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

/// Whether the switch is a Linux bridge, to check the scenarios rather than the command.
pub fn is_reference() -> bool {
    std::env::var_os("RINGWRIGHT_NET_REFERENCE").is_some_and(|v| v == "1")
}

/// How much a bulk transfer carries.
pub fn bulk() -> u64 {
    let set = std::env::var("RINGWRIGHT_NET_BYTES").ok();
    set.map_or(64 << 20, |n| n.parse().expect("RINGWRIGHT_NET_BYTES is a number of bytes"))
}

/// A network namespace of ours; gone when this is.
pub struct Namespace {
    name: String,
}

impl Namespace {
    fn add(name: String) -> Result<Self, String> {
        tell("ip", &["netns", "add", &name])?;
        let made = Self { name };
        // Nothing may be said on a wire but what a test says: no router solicitations, no group reports of the middle.
        made.batch("link set lo up")?;
        Ok(made)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The words of a command that runs in here.
    fn words<'w>(&'w self, words: &[&'w str]) -> Vec<&'w str> {
        ["ip", "netns", "exec", &self.name].iter().chain(words).copied().collect()
    }

    /// A command that runs in here. `ip` becomes it, so its process is the command's own.
    pub fn command(&self, words: &[&str]) -> Command {
        program(&self.words(words))
    }

    /// Starts a command in here.
    pub fn start(&self, words: &[&str]) -> Process {
        Process::start(&mut self.command(words))
    }

    /// Runs a command in here to its end.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Ended {
        self.run_within(PATIENCE, words)
    }

    #[track_caller]
    pub fn run_within(&self, limit: Duration, words: &[&str]) -> Ended {
        self.start(words).end_within(limit)
    }

    /// `ip` with these lines, on this namespace.
    fn batch(&self, lines: &str) -> Result<(), String> {
        batch(&["-n", &self.name], lines)
    }

    /// `ip` with these lines, on this namespace; they are right.
    #[track_caller]
    pub fn ip(&self, lines: &str) {
        self.batch(lines).unwrap_or_else(|e| panic!("{}: {lines}: {e}", self.name));
    }

    /// What `ip -j` says here.
    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> Value {
        let all = [&["ip", "-n", &self.name, "-j"], words].concat();
        let ended = Process::start(&mut program(&all)).end().expect(0);
        if ended.stdout.trim().is_empty() {
            Value::Array(Vec::new())
        } else {
            serde_json::from_str(&ended.stdout).expect("JSON")
        }
    }

    /// Sets a value of this namespace's `/proc/sys/net`, if this kernel has it.
    #[track_caller]
    pub fn sysctl(&self, key: &str, value: &str) {
        let file = Path::new("/proc/sys/net").join(key);
        self.inside(|| {
            if file.exists() {
                fs::write(&file, value).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            }
        });
    }

    /// Runs `f` on a thread of its own in here: sockets that it opens are this namespace's.
    #[track_caller]
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        thread::scope(|s| {
            let thread = s.spawn(|| {
                self.enter();
                f()
            });
            thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
        })
    }

    /// Moves the calling thread in here.
    pub fn enter(&self) {
        let file = File::open(Path::new(NAMES).join(&self.name)).expect("a namespace of ours");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Ends what still runs in a namespace, and deletes it.
fn remove(name: &str) {
    let listed = Command::new("ip").args(["netns", "pids", name]).stderr(Stdio::null()).output();
    for pid in listed.iter().flat_map(|o| str::from_utf8(&o.stdout).unwrap_or("").split_whitespace()) {
        let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
    }
    let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
}

/// Runs a command that must succeed.
fn tell(name: &str, args: &[&str]) -> Result<(), String> {
    let out =
        Command::new(name).args(args).stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    let why = || format!("{name} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim());
    if out.status.success() { Ok(()) } else { Err(why()) }
}

/// One `ip` for many lines.
fn batch(options: &[&str], lines: &str) -> Result<(), String> {
    let mut ip = Command::new("ip");
    ip.args(options).args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut ip = ip.spawn().map_err(|e| format!("ip: {e}"))?;
    ip.stdin.take().expect("asked for").write_all(lines.as_bytes()).map_err(|e| format!("ip: {e}"))?;
    let out = ip.wait_with_output().map_err(|e| format!("ip: {e}"))?;
    if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).trim().to_owned()) }
}

/// Whether a process is still there.
fn lives(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// Removes what tests left that were killed.
fn sweep() {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().collect::<Vec<_>>();
    let dead = |name: &str| {
        name.strip_prefix("rw-")
            .and_then(|r| r.split('-').next())
            .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) && !lives(pid))
    };
    for entry in entries(Path::new(NAMES)) {
        if let Some(name) = entry.file_name().to_str().filter(|n| dead(n)) {
            remove(name);
        }
    }
    for entry in entries(&std::env::temp_dir()) {
        if entry.file_name().to_str().is_some_and(dead) {
            // A full disk of a test is a file system mounted below.
            let _ = Command::new("umount").arg(entry.path().join("small")).stderr(Stdio::null()).status();
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the frames of stations leave whole, or are left for devices to cut and to sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offloads {
    /// As Linux sets up a veth pair: frames up to 64 KiB, checksums to be filled in.
    Default,
    /// Every frame as it would be on a wire.
    Off,
}

/// A station: a kernel with a name, an address and one wire.
pub struct Station {
    pub ns: Namespace,
    /// Its place, which is that of its port too.
    pub index: usize,
}

impl Station {
    pub fn mac(&self) -> String {
        mac(self.index)
    }
    pub fn ip(&self) -> String {
        format!("10.77.0.{}", self.index + 1)
    }
    pub fn ip6(&self) -> String {
        format!("fd00:77::{}", self.index + 1)
    }
    /// Its packets and bytes as its own kernel counted them: `rx` or `tx`.
    #[track_caller]
    pub fn packets(&self, direction: &str) -> u64 {
        packets(&self.ns, "eth0", direction)
    }
    /// Learns who has which address anew.
    pub fn forget_neighbours(&self) {
        self.ns.ip("neigh flush all");
    }
}

/// The address of a station or, from 100, of a port in the middle.
pub fn mac(index: usize) -> String {
    format!("02:77:00:00:00:{:02x}", index + 1)
}

/// How many have asked an interface to receive frames for everyone.
#[track_caller]
pub fn promiscuity(ns: &Namespace, interface: &str) -> u64 {
    let said = ns.ask(&["-d", "link", "show", interface]);
    said[0]["promiscuity"].as_u64().unwrap_or_else(|| panic!("{interface}: {said}"))
}

/// Whether the switch is a bridge, so that what only the command does cannot be tested; then that was said.
pub fn is_bridge() -> bool {
    if is_reference() {
        skip("a Linux bridge takes the place of the command");
    }
    is_reference()
}

/// Packets that an interface counted, `rx` or `tx`.
#[track_caller]
pub fn packets(ns: &Namespace, interface: &str, direction: &str) -> u64 {
    let said = ns.ask(&["-s", "link", "show", interface]);
    said[0]["stats64"][direction]["packets"].as_u64().unwrap_or_else(|| panic!("{interface}: {said}"))
}

/// What a rig is made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub stations: usize,
    pub mtu: u32,
    /// Addresses are checked for duplicates before use, which takes a second or two.
    pub duplicate_detection: bool,
}

/// Stations and a middle, and the wires between them: `eth0` in a station, `p0` to `p3` in the middle.
pub struct Net {
    pub stations: Vec<Station>,
    pub middle: Namespace,
    /// For configurations, sockets and captures; gone when this is.
    pub dir: Dir,
    pub mtu: u32,
    /// Packets that a flow missed.
    missed: Cell<u64>,
    _turn: File,
}

impl Net {
    /// A rig with this many stations; `None` where that cannot be, which was then said.
    pub fn new(stations: usize) -> Option<Self> {
        Self::of(Shape { stations, mtu: 1500, duplicate_detection: false })
    }

    pub fn of(shape: Shape) -> Option<Self> {
        if !is_root() {
            skip("network namespaces need root");
            return None;
        }
        if let Some(missing) = TOOLS.into_iter().find(|t| !has(t)) {
            skip(&format!("{missing} is not installed: deploy/setup.sh test"));
            return None;
        }
        let turn = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("net.lock")).expect("a file");
        turn.lock().expect("a lock");
        sweep();
        match Self::build(shape, turn) {
            Ok(net) => Some(net),
            // A rig that cannot be made where a namespace can is a fault, of the rig or of the machine.
            Err(Failure::Namespace(why)) => {
                skip(&format!("no network namespaces here: {why}"));
                None
            }
            Err(Failure::Wires(why)) => panic!("the rig: {why}"),
        }
    }

    fn build(shape: Shape, turn: File) -> Result<Self, Failure> {
        let prefix = format!("rw-{}", std::process::id());
        let add = |letter: &str| Namespace::add(format!("{prefix}-{letter}")).map_err(Failure::Namespace);
        let middle = add("m")?;
        middle.sysctl("ipv6/conf/default/disable_ipv6", "1");
        middle.sysctl("ipv6/conf/all/disable_ipv6", "1");
        let stations = LETTERS[..shape.stations].iter().enumerate();
        let stations = stations.map(|(index, letter)| Ok(Station { ns: add(letter)?, index }));
        let stations = stations.collect::<Result<Vec<_>, _>>()?;
        let dir = Dir::new();
        let net = Self { stations, middle, dir, mtu: shape.mtu, missed: Cell::new(0), _turn: turn };
        for station in &net.stations {
            station.ns.sysctl("ipv6/conf/default/router_solicitations", "0");
            if !shape.duplicate_detection {
                station.ns.sysctl("ipv6/conf/default/accept_dad", "0");
                station.ns.sysctl("ipv6/conf/default/dad_transmits", "0");
            }
            net.wire(station.index).map_err(Failure::Wires)?;
        }
        Ok(net)
    }

    /// Lays the wire of station `index` and gives it its addresses.
    pub fn wire(&self, index: usize) -> Result<(), String> {
        let station = &self.stations[index];
        let (mtu, peer) = (self.mtu, station.ns.name());
        let (inner, outer) = (mac(100 + index), station.mac());
        self.middle.batch(&format!(
            "link add p{index} address {inner} mtu {mtu} type veth peer name eth0 address {outer} mtu {mtu} netns {peer}\n\
             link set p{index} up\n"
        ))?;
        station.ns.batch(&format!(
            "link set eth0 up\naddr add {}/24 brd 10.77.0.255 dev eth0\naddr add {}/64 dev eth0\n",
            station.ip(),
            station.ip6()
        ))
    }

    /// Every ordered pair of stations.
    pub fn pairs(&self) -> impl Iterator<Item = (&Station, &Station)> {
        let others = |a: &Station| {
            let a = a.index;
            self.stations.iter().filter(move |b| b.index != a)
        };
        self.stations.iter().flat_map(move |a| others(a).map(move |b| (a, b)))
    }

    /// How the stations' frames leave from now on.
    #[track_caller]
    pub fn set_offloads(&self, offloads: Offloads) {
        let on = if offloads == Offloads::Off { "off" } else { "on" };
        for station in &self.stations {
            let words = ["ethtool", "-K", "eth0", "tx", on, "tso", on, "gso", on, "gro", "off"];
            station.ns.run(&words).expect(0);
        }
    }

    /// Notes that packets of a flow did not arrive.
    pub fn miss(&self, packets: u64) {
        self.missed.set(self.missed.get() + packets);
    }

    /// Asserts that whoever lost packets has counted them: `counted` of them. Each may have been for all other stations.
    #[track_caller]
    pub fn assert_counted(&self, counted: u64) {
        let (missed, most) = (self.missed.get(), counted * (self.stations.len() as u64 - 1));
        assert!(missed <= most, "{missed} packets did not arrive, and {counted} were counted as lost");
    }

    /// Waits for `ready`, which says what is still amiss.
    #[track_caller]
    pub fn until(&self, mut ready: impl FnMut() -> Result<(), String>) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(why) = ready() {
            assert!(Instant::now() < deadline, "{why}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A directory of a test's own; gone when this is.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        let thread = format!("{:?}", thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let dir = std::env::temp_dir().join(format!("rw-{}-net{number}", std::process::id()));
        fs::create_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        Self(dir)
    }
}

impl Deref for Dir {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Why there is no rig.
enum Failure {
    Namespace(String),
    Wires(String),
}
