//! What stations say to each other, and what arrived.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use serde_json::Value;

use crate::process::{Ended, PATIENCE, Process};
use crate::rig::{Namespace, Net, Station};

// --- ping ---

/// Pings `to` from `from`, once; it must be answered. Once, because `ping` waits for `-W` only while nothing was answered,
/// and then for two round trips of those that were.
#[track_caller]
pub fn ping(from: &Station, to: &str, options: &str) {
    let ended = ping_output(from, to, &format!("-c 1 -W 10 {options}"));
    assert!(ended.code() == Some(0), "ping {options} {to}: {}{}", ended.stdout, ended.stderr);
}

/// What a ping says, whatever it is.
#[track_caller]
pub fn ping_output(from: &Station, to: &str, options: &str) -> Ended {
    let words: Vec<_> = ["ping", "-n"].into_iter().chain(options.split_whitespace()).chain([to]).collect();
    from.ns.run(&words)
}

/// Waits until `from` reaches `to`: an interface that just came up, a neighbour that was just given up.
#[track_caller]
pub fn until_reached(from: &Station, to: &str) {
    let ended = ping_output(from, to, "-c 1 -w 20 -i 0.05");
    assert!(ended.code() == Some(0), "ping {to}: {}{}", ended.stdout, ended.stderr);
}

// --- UDP with numbers ---

/// What arrived of a numbered flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The numbers, in the order of arrival.
    pub numbers: Vec<u64>,
}

impl Arrived {
    /// Numbers that came behind a higher one, or twice.
    pub fn out_of_order(&self) -> usize {
        self.numbers.windows(2).filter(|w| w[1] <= w[0]).count()
    }
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }
    /// Asserts that what came of `count` is in order, each once. What did not come must have been counted by whoever lost
    /// it: that is seen when the switch stops.
    #[track_caller]
    pub fn assert_whole(&self, net: &Net, count: u64) {
        assert_eq!(self.out_of_order(), 0, "order");
        net.miss(count - self.len());
    }
}

/// Bytes of a numbered datagram: as in a common mix, small enough for any wire.
const DATAGRAM: usize = 200;

/// A UDP socket of a station. What arrives while nobody reads waits: 8 MiB of it.
pub fn socket(ns: &Namespace, at: &str) -> UdpSocket {
    ns.inside(|| {
        let socket = UdpSocket::bind(at).unwrap_or_else(|e| panic!("{at}: {e}"));
        set_socket_recv_buffer_size_force(&socket, 8 << 20).expect("root");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
        socket
    })
}

/// Sends numbers from `first`, `count` of them, one each `gap`.
pub fn send_numbers(socket: &UdpSocket, to: SocketAddr, first: u64, count: u64, gap: Duration) {
    let started = Instant::now();
    let mut datagram = [0; DATAGRAM];
    for i in 0..count {
        datagram[..8].copy_from_slice(&(first + i).to_be_bytes());
        // A full queue of the sender's own kernel is no loss on the way: it is tried again.
        while socket.send_to(&datagram, to).is_err() {
            thread::sleep(Duration::from_micros(100));
        }
        let due = gap * u32::try_from(i + 1).expect("short");
        if let Some(early) = due.checked_sub(started.elapsed()).filter(|d| *d > Duration::from_micros(60)) {
            thread::sleep(early);
        }
    }
}

/// Reads numbers until nothing came for 300 ms after `done` was set.
pub fn receive_numbers(socket: &UdpSocket, done: &AtomicBool) -> Arrived {
    let mut arrived = Arrived::default();
    let mut datagram = [0; 2 * DATAGRAM];
    let mut quiet = 0;
    while quiet < 3 {
        match socket.recv(&mut datagram) {
            Ok(len) => {
                quiet = 0;
                let number = datagram.first_chunk().filter(|_| len == DATAGRAM);
                arrived.numbers.extend(number.map(|n| u64::from_be_bytes(*n)));
            }
            Err(_) if done.load(Ordering::Relaxed) => quiet += 1,
            Err(_) => {}
        }
    }
    arrived
}

/// All datagrams that have come or come within 300 ms of the last.
pub fn receive_all(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let (mut all, mut quiet) = (Vec::new(), 0);
    let mut datagram = vec![0; 65_536];
    while quiet < 3 {
        match socket.recv(&mut datagram) {
            Ok(len) => {
                quiet = 0;
                all.push(datagram[..len].to_vec());
            }
            Err(_) => quiet += 1,
        }
    }
    all
}

/// A numbered flow from one station to another while `meanwhile` happens; it ends with that.
pub fn flow_while<T>(
    from: &Station,
    to: &Station,
    gap: Duration,
    meanwhile: impl FnOnce() -> T,
) -> (u64, Arrived, T) {
    let (sender, receiver) = (socket(&from.ns, "0.0.0.0:0"), socket(&to.ns, "0.0.0.0:7000"));
    let target: SocketAddr = format!("{}:7000", to.ip()).parse().expect("an address");
    let (over, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|s| {
        let read = s.spawn(|| receive_numbers(&receiver, &done));
        let write = s.spawn(|| {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                send_numbers(&sender, target, sent, 16, gap);
                sent += 16;
            }
            done.store(true, Ordering::Relaxed);
            sent
        });
        let ends = EndOnDrop(&over, &done);
        let value = meanwhile();
        over.store(true, Ordering::Relaxed);
        let sent = write.join().expect("no panic");
        let arrived = read.join().expect("no panic");
        drop(ends);
        (sent, arrived, value)
    })
}

/// Ends threads of a scope that a panic leaves.
struct EndOnDrop<'a>(&'a AtomicBool, &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.store(true, Ordering::Relaxed);
    }
}

// --- TCP ---

/// What a bulk transfer carries: each block of 64 KiB has its number and then the same noise, so that a byte that is
/// changed, missing, doubled or out of place shows.
struct Blocks {
    block: Vec<u8>,
    number: u64,
}

const BLOCK: usize = 64 << 10;

impl Blocks {
    fn new() -> Self {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut noise = || {
            // Xorshift (Marsaglia 2003).
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x.to_le_bytes()
        };
        Self { block: (0..BLOCK / 8).flat_map(|_| noise()).collect(), number: 0 }
    }
    fn next(&mut self) -> &[u8] {
        self.block[..8].copy_from_slice(&self.number.to_be_bytes());
        self.number += 1;
        &self.block
    }
}

/// Sends `bytes`, rounded down to whole blocks, from one station to an address of another, by TCP, and compares each.
#[track_caller]
pub fn transfer(from: &Station, to: &Station, at: IpAddr, bytes: u64) {
    let blocks = bytes / BLOCK as u64;
    let listener = to.ns.inside(|| TcpListener::bind((at, 7001)).expect("a free port"));
    thread::scope(|s| {
        let reader = s.spawn(move || receive_blocks(&accept(&listener), blocks));
        let writer = s.spawn(move || {
            from.enter_and(|| {
                let mut stream = TcpStream::connect_timeout(&(at, 7001).into(), PATIENCE)?;
                stream.set_write_timeout(Some(PATIENCE))?;
                let mut content = Blocks::new();
                for _ in 0..blocks {
                    stream.write_all(content.next())?;
                }
                Ok(())
            })
        });
        let sent: std::io::Result<()> = writer.join().expect("no panic");
        let same = reader.join().expect("no panic");
        assert!(sent.is_ok(), "{} to {at}: {sent:?}; received: {same:?}", from.ip());
        assert_eq!(same, Ok(blocks), "{} to {at}", from.ip());
    });
}

/// The first to connect; whoever does not within the limit is an error of the reader's next call.
fn accept(listener: &TcpListener) -> Option<TcpStream> {
    listener.set_nonblocking(true).ok()?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            return Some(stream);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Reads until the end; how many blocks came, each as it was sent.
fn receive_blocks(stream: &Option<TcpStream>, blocks: u64) -> Result<u64, String> {
    let mut stream = stream.as_ref().ok_or("nobody connected")?;
    let mut content = Blocks::new();
    let mut block = vec![0; BLOCK];
    for n in 0..blocks {
        stream.read_exact(&mut block).map_err(|e| format!("block {n}: {e}"))?;
        let wanted = content.next();
        if block != wanted {
            let at = block.iter().zip(wanted).position(|(a, b)| a != b);
            return Err(format!("block {n} differs at byte {at:?}"));
        }
    }
    match stream.read(&mut block[..1]) {
        Ok(0) => Ok(blocks),
        more => Err(format!("and then: {more:?}")),
    }
}

impl Station {
    /// Runs `f` on the calling thread, moved in here for good: for threads of a test's own.
    fn enter_and<T>(&self, f: impl FnOnce() -> T) -> T {
        self.ns.enter();
        f()
    }
}

// --- iperf3 ---

/// An iperf3 server of a station, for one client.
pub fn iperf_server(at: &Station) -> Process {
    let mut server = at.ns.start(&["iperf3", "-s", "-1", "-4", "-B", &at.ip()]);
    // Port 5201, in state 10 (LISTEN): what it prints may wait in a buffer.
    let sockets = format!("/proc/{}/net/tcp", server.id());
    let listens = |text: String| text.lines().any(|l| l.contains(":1451 ") && l.contains(" 0A "));
    let deadline = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&sockets).is_ok_and(listens) {
        assert!(server.is_running() && Instant::now() < deadline, "iperf3 -s does not listen");
        thread::sleep(Duration::from_millis(5));
    }
    server
}

/// An iperf3 between two stations that goes on beside a test.
pub struct Iperf {
    client: RefCell<Process>,
    _server: Process,
}

impl Iperf {
    #[track_caller]
    pub fn start(from: &Station, to: &Station, options: &str) -> Self {
        let server = iperf_server(to);
        let target = to.ip();
        let words = ["iperf3", "-J", "-c", &target].into_iter().chain(options.split_whitespace());
        let client = from.ns.start(&words.collect::<Vec<_>>());
        Self { client: RefCell::new(client), _server: server }
    }

    pub fn is_over(&self) -> bool {
        !self.client.borrow_mut().is_running()
    }

    /// Its report.
    #[track_caller]
    pub fn end(self) -> Value {
        let report = self.client.into_inner().end().json();
        assert_eq!(report["error"], Value::Null, "iperf3: {}", report["error"]);
        report
    }
}

/// Runs iperf3 between two stations and returns its report.
#[track_caller]
pub fn iperf(from: &Station, to: &Station, options: &str) -> Value {
    Iperf::start(from, to, options).end()
}

// --- Frames on a wire ---

/// A tcpdump in a namespace, which prints a line for each frame that matches.
pub struct Sniffer {
    process: Process,
}

impl Sniffer {
    /// Watches `interface` for frames that match; `direction` is `in`, `out` or `inout`.
    #[track_caller]
    pub fn start(ns: &Namespace, interface: &str, direction: &str, filter: &str) -> Self {
        // As much as is printed: a ring of whole segments would have room for very few.
        Self::with(ns, interface, direction, filter, &["-s", "200"])
    }

    /// With more options.
    #[track_caller]
    pub fn with(ns: &Namespace, interface: &str, direction: &str, filter: &str, more: &[&str]) -> Self {
        let mut sniffer = Self::starting(ns, interface, direction, filter, more);
        sniffer.process.until_said("listening on");
        sniffer
    }

    /// One at each station's wire, for what comes in.
    #[track_caller]
    pub fn each<'s>(stations: impl IntoIterator<Item = &'s Station>, filter: &str) -> Vec<Self> {
        let start = |s: &Station| Self::starting(&s.ns, "eth0", "in", filter, &["-s", "200"]);
        let mut all: Vec<_> = stations.into_iter().map(start).collect();
        all.iter_mut().for_each(|sniffer| sniffer.process.until_said("listening on"));
        all
    }

    fn starting(ns: &Namespace, interface: &str, direction: &str, filter: &str, more: &[&str]) -> Self {
        let words = ["tcpdump", "-n", "-e", "-l", "-i", interface, "-Q", direction, "--immediate-mode"];
        Self { process: ns.start(&[&words, more, &[filter]].concat()) }
    }

    /// Ends it: a line for each frame.
    #[track_caller]
    pub fn stop(self) -> Vec<String> {
        // What has arrived is in its socket; it is read before the signal is looked at.
        thread::sleep(Duration::from_millis(50));
        self.process.signal("INT");
        let ended = self.process.end().expect(0);
        assert!(ended.stderr.contains("\n0 packets dropped by kernel"), "{}", ended.stderr);
        ended.stdout.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
    }
}
