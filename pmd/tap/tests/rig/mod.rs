//! A network namespace for each test, and ports driven as a runtime drives them.
//!
//! The namespace is that of a thread: it goes with the thread, and with the process even by kill -9.
// UNSAFETY: a namespace and a socket option, by system calls without a safe wrapper.
#![allow(unsafe_code, dead_code)]

use std::fs;
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hw::{Pages, Window};
use mem::{Batch, Flags, Layout, Local, Memory, Meta};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{Driver, OpenEnv, OpenPort, PortConfig, PortError, Queues, RxQueue, TxQueue, WorkerEnv};
use ringwright_tap::Tap;

pub const BUFFERS: usize = 2048;
/// How long anything may take on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test in a network namespace of its own, with nothing in it but the loopback interface.
pub fn isolated(f: impl FnOnce() + Send + 'static) {
    // SAFETY: reads a number.
    if unsafe { libc::geteuid() } != 0 || !fs::exists("/dev/net/tun").unwrap_or(false) {
        eprintln!("SKIPPED: not root, or no /dev/net/tun");
        return;
    }
    let test = std::thread::spawn(|| {
        new_namespace();
        f();
    });
    if let Err(panic) = test.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The calling thread, and those that it starts, get an empty namespace in which nobody speaks by himself.
pub fn new_namespace() {
    // SAFETY: touches nothing but the thread's namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
    sysctl("net/ipv6/conf/default/disable_ipv6", "1");
}

/// Sets a switch of the calling thread's namespace.
pub fn sysctl(name: &str, value: &str) {
    fs::write(format!("/proc/sys/{name}"), value).unwrap();
}

pub fn output(command: &str) -> Output {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap();
    Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{command}: {e}"))
}

/// Runs a command in the calling thread's namespace.
#[track_caller]
pub fn run(command: &str) -> String {
    let out = output(command);
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

pub fn exists(interface: &str) -> bool {
    output(&format!("ip link show {interface}")).status.success()
}

#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Has the kernel cut what is sent by `socket` into datagrams of `size` bytes (udp(7), `UDP_SEGMENT`).
pub fn segment(socket: &std::net::UdpSocket, size: i32) {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the option reads an int, which lives.
    let r = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), len)
    };
    assert_eq!(r, 0, "{}", std::io::Error::last_os_error());
}

pub struct Bench {
    pub memory: Arc<Memory>,
    pub env: WorkerEnv,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_room(2048)
    }
    pub fn with_room(room: usize) -> Self {
        let memory = Memory::new(Window::on_heap(16 << 20), Layout::for_frame_room(room).unwrap());
        memory.add_pool(BUFFERS, None, Pages::Any).unwrap();
        let env = WorkerEnv { local: Local::new(&memory), node: None, metered: true };
        Self { memory, env }
    }
    pub fn open(&self, keys: &str) -> Result<Box<dyn OpenPort>, PortError> {
        let env = OpenEnv { memory: Arc::clone(&self.memory), name: "p0".into() };
        Tap.open(&keys.parse().unwrap(), &env)
    }
    #[track_caller]
    pub fn refused(&self, keys: &str) -> String {
        self.open(keys).err().expect("refused").to_string()
    }
    /// A started port on the interface `name`.
    #[track_caller]
    pub fn start(&self, name: &str) -> Running<'_> {
        self.start_with(name, "", 1)
    }
    #[track_caller]
    pub fn start_with(&self, name: &str, keys: &str, queues: u16) -> Running<'_> {
        let mut port = self.open(&format!("interface = {name:?}\n{keys}")).unwrap();
        let q = port.start(&PortConfig { queues, ..PortConfig::new(3) }).unwrap();
        let mut r =
            Running { bench: self, port, rx: Vec::new(), tx: Vec::new(), batch: Batch::new(&self.env.local) };
        r.rx.extend(q.rx.into_iter().map(|q| q.attach(&self.env).map_err(|e| e.0).unwrap()));
        r.tx.extend(q.tx.into_iter().map(|q| q.attach(&self.env).map_err(|e| e.0).unwrap()));
        r
    }
}

/// A started port with its queues on this thread.
pub struct Running<'b> {
    pub bench: &'b Bench,
    pub port: Box<dyn OpenPort>,
    pub rx: Vec<Box<dyn RxQueue>>,
    pub tx: Vec<Box<dyn TxQueue>>,
    pub batch: Batch,
}

/// A frame that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub bytes: Vec<u8>,
    pub flags: Flags,
    pub ext: mem::Ext,
}

impl Running<'_> {
    pub fn rx_counts(&self) -> QueueMeter {
        let mut m = QueueMeter::default();
        self.rx.iter().for_each(|q| q.counts(&mut m));
        m
    }
    pub fn tx_counts(&self) -> QueueMeter {
        let mut m = QueueMeter::default();
        self.tx.iter().for_each(|q| q.counts(&mut m));
        m
    }
    /// What there is now on one queue.
    pub fn receive(&mut self, queue: usize) -> Vec<Got> {
        let mut all = Vec::new();
        let mut batch = Batch::new(&self.bench.env.local);
        while self.rx[queue].rx_burst(&mut batch) > 0 {
            for p in batch.iter_mut() {
                assert_eq!(p.port(), 3);
                let bytes: Vec<u8> = p.segments().flatten().copied().collect();
                assert_eq!(bytes.len(), p.total_len());
                let known = Flags::TX_L4.with(Flags::TSO).with(Flags::USO);
                let ext = if p.flags().has(known) { p.ext() } else { mem::Ext::default() };
                all.push(Got { bytes, flags: p.flags().without(Flags::CHAIN), ext });
            }
            batch.free_sent();
        }
        all
    }
    /// Adds a packet to the batch.
    pub fn fill(&mut self, bytes: &[u8]) {
        let pool = self.bench.env.pool().unwrap();
        assert_eq!(self.batch.fill(pool, 1, bytes.len() as u16, Meta::default()), 1);
        let last = self.batch.len() - 1;
        self.batch.pkt(last).unwrap().bytes_mut().copy_from_slice(bytes);
    }
    /// Sends one packet by one queue; how many went.
    pub fn send(&mut self, queue: usize, bytes: &[u8]) -> usize {
        self.fill(bytes);
        let n = self.tx[queue].tx_burst(&mut self.batch, 0);
        assert!(self.batch.is_empty());
        n
    }
    /// Sends what one queue of `from` has to this port.
    pub fn forward(&mut self, from: &mut Running<'_>, queue: usize) -> usize {
        let mut n = 0;
        while from.rx[queue].rx_burst(&mut from.batch) > 0 {
            n += self.tx[queue].tx_burst(&mut from.batch, 0);
            from.batch.drop_all(DropReason::TxFull, &mut DropCounts::default());
        }
        n
    }
    /// Stops as a runtime does; every packet and buffer is accounted for, by the kernel's counts if they are known.
    #[track_caller]
    pub fn stop(mut self) -> (QueueMeter, QueueMeter) {
        self.port.rx_off().unwrap();
        for q in &mut self.rx {
            while q.rx_burst(&mut self.batch) > 0 {
                self.batch.free_sent();
            }
        }
        let (rx, tx) = (self.rx_counts(), self.tx_counts());
        let device = self.port.device_counts();
        if let (Some(delivered), Some(sent)) = (device.rx_delivered, device.tx_sent) {
            assert_eq!(delivered, rx.packets + rx.drops.total());
            assert_eq!(sent, tx.packets);
        }
        let queues = Queues {
            rx: self.rx.into_iter().map(|q| q.detach()).collect(),
            tx: self.tx.into_iter().map(|q| q.detach()).collect(),
        };
        self.port.stop(queues, &self.bench.env.local).unwrap();
        assert_eq!(self.bench.env.local.lost(), 0);
        (rx, tx)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.memory.depot() + self.env.local.cached(), BUFFERS, "all buffers are back");
        }
    }
}
