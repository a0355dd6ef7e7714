//! Namespaces, virtual cables, raw peers, and a worker to run queues on.
//!
//! A test runs on a thread with a network namespace of its own, which goes when the thread ends, even by kill -9. Nothing
//! of it is seen outside, and nothing is left behind.
// UNSAFETY: packet sockets and namespaces, by the system calls that the driver under test does not share.
#![allow(unsafe_code, dead_code)]

pub mod bpf;
pub mod peer;

use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hw::{Pages, Window};
use mem::{Batch, Layout, Local, Memory};
use meter::{DropReason, QueueMeter};
use port::{
    DeviceCounts, Driver, OpenEnv, OpenPort, PortConfig, PortError, Queues, RxQueue, TxQueue, WorkerEnv,
};
use ringwright_packet::Packet;

/// Runs a test in a network namespace of its own. Without the rights for one it says so and does nothing.
pub fn isolated(f: impl FnOnce() + Send + 'static) {
    // SAFETY: reads a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: not root, no network namespaces");
        return;
    }
    if let Err(panic) = std::thread::spawn(|| {
        new_namespace();
        f();
    })
    .join()
    {
        std::panic::resume_unwind(panic);
    }
}

/// The calling thread gets a namespace with nothing in it but the loopback interface.
fn new_namespace() {
    // SAFETY: touches nothing but the thread's namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
    // What an interface says by itself as it comes up is not part of any test.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

/// Runs `ip` in the thread's namespace.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Runs a program in the thread's namespace.
pub fn run(program: &str, arguments: &str) {
    let out = Command::new(program).args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&out.stderr));
}

/// What a program prints.
pub fn output(program: &str, arguments: &str) -> String {
    let out = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A cable between interfaces `a` and `b`, both up.
pub fn cable(a: &str, b: &str) {
    ip(&format!("link add name {a} type veth peer name {b}"));
    ip(&format!("link set {a} up"));
    ip(&format!("link set {b} up"));
}

/// Waits until something holds.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "{what} does not come about");
        std::thread::sleep(Duration::from_millis(1));
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Another machine: a namespace with a thread that runs what it is told there.
pub struct Host {
    /// The thread's number, by which `ip` names the namespace.
    pub id: i32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    pub fn new() -> Self {
        let (jobs, todo) = channel::<Job>();
        let (to, id) = channel();
        let thread = std::thread::spawn(move || {
            new_namespace();
            // SAFETY: reads a number.
            to.send(unsafe { libc::gettid() }).unwrap();
            todo.into_iter().for_each(|job| job());
        });
        Self { id: id.recv().unwrap(), jobs: Some(jobs), thread: Some(thread) }
    }
    /// Moves an interface of the calling thread's namespace over.
    pub fn take(&self, interface: &str) {
        ip(&format!("link set {interface} netns {}", self.id));
    }
    /// Runs something there and waits for what it gives.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin(f).recv().expect("the host's thread did not panic")
    }
    /// Runs something there.
    pub fn begin<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::sync::mpsc::Receiver<T> {
        let (to, result) = channel();
        let job: Job = Box::new(move || drop(to.send(f())));
        self.jobs.as_ref().unwrap().send(job).unwrap();
        result
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        // After a failure it may wait for ever; it ends with the process.
        if !std::thread::panicking() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

pub const BUFFERS: usize = 8192;

pub fn memory() -> Arc<Memory> {
    memory_of(BUFFERS, 2048)
}

pub fn memory_of(buffers: usize, frame_room: usize) -> Arc<Memory> {
    let layout = Layout::for_frame_room(frame_room).unwrap();
    let memory = Memory::new(
        Window::on_heap((buffers * layout.stride()).next_multiple_of(2 << 20) + (8 << 20)),
        layout,
    );
    memory.add_pool(buffers, None, Pages::Any).unwrap();
    memory
}

pub fn worker(memory: &Arc<Memory>) -> WorkerEnv {
    WorkerEnv { local: Local::new(memory), node: None, metered: true }
}

pub fn open(memory: &Arc<Memory>, keys: &str) -> Result<Box<dyn OpenPort>, PortError> {
    let env = OpenEnv { memory: Arc::clone(memory), name: "p0".into() };
    Packet.open(&keys.parse().unwrap(), &env)
}

/// The error of opening a port, in words.
pub fn refused(keys: &str) -> String {
    open(&memory(), keys).err().expect("refused").to_string()
}

pub fn config(queues: u16) -> PortConfig {
    PortConfig { queues, ..PortConfig::new(3) }
}

/// A started port with its queues on the calling thread.
pub struct Bench {
    pub memory: Arc<Memory>,
    pub env: WorkerEnv,
    pub port: Box<dyn OpenPort>,
    pub rx: Vec<Box<dyn RxQueue>>,
    pub tx: Vec<Box<dyn TxQueue>>,
    pub batch: Batch,
    buffers: usize,
}

impl Bench {
    pub fn new(keys: &str) -> Self {
        Self::with(memory(), keys, &config(1))
    }
    pub fn with(memory: Arc<Memory>, keys: &str, cfg: &PortConfig) -> Self {
        let env = worker(&memory);
        Self::on(memory, env, keys, cfg)
    }
    /// Beside another one, on the same memory and worker.
    pub fn beside(&self, keys: &str, cfg: &PortConfig) -> Self {
        let env = WorkerEnv { local: self.env.local.clone(), node: None, metered: true };
        Self::on(Arc::clone(&self.memory), env, keys, cfg)
    }
    fn on(memory: Arc<Memory>, env: WorkerEnv, keys: &str, cfg: &PortConfig) -> Self {
        let mut port = open(&memory, keys).unwrap();
        let Queues { rx, tx } = port.start(cfg).unwrap();
        let rx = rx.into_iter().map(|q| q.attach(&env).map_err(|e| e.0).unwrap()).collect();
        let tx = tx.into_iter().map(|q| q.attach(&env).map_err(|e| e.0).unwrap()).collect();
        let batch = Batch::new(&env.local);
        let buffers = memory.capacity();
        Self { memory, env, port, rx, tx, batch, buffers }
    }

    /// Receives until `n` frames are there.
    pub fn receive(&mut self, n: usize) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        wait_for(&format!("receiving {n} frames"), || {
            got.extend(self.poll());
            got.len() >= n
        });
        got
    }
    /// Receives what is there, all queues once.
    pub fn poll(&mut self) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        for rx in &mut self.rx {
            rx.rx_burst(&mut self.batch);
            for p in self.batch.iter_mut() {
                assert_eq!(p.port(), 3);
                let bytes: Vec<u8> = p.segments().flatten().copied().collect();
                assert_eq!(bytes.len(), p.total_len());
                got.push(bytes);
            }
            self.batch.free_sent();
        }
        got
    }
    /// Nothing comes in for some milliseconds.
    pub fn quiet(&mut self) {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(self.poll(), Vec::<Vec<u8>>::new(), "nothing");
        }
    }
    /// Puts a frame into the batch, in one buffer or several.
    pub fn put(&mut self, frame: &[u8]) {
        let (local, pool) = (&self.env.local, self.env.pool().unwrap());
        let room = usize::from(local.layout().room());
        let mut chain: Option<mem::Chain> = None;
        for part in frame.chunks(room) {
            let slot = local.take(pool).unwrap();
            chain = Some(match chain {
                None => mem::Chain::new(local, slot, part.len() as u16).ok().unwrap(),
                Some(mut c) => {
                    c.push(slot, part.len() as u16).unwrap();
                    c
                }
            });
        }
        chain.unwrap().finish(&mut self.batch, mem::Meta::default()).ok().unwrap();
        let mut p = self.batch.pkt(self.batch.len() - 1).unwrap();
        for (i, part) in frame.chunks(room).enumerate() {
            p.segment_mut(i).unwrap().copy_from_slice(part);
        }
    }
    /// Sends the batch by queue 0; what stays is the caller's.
    pub fn send(&mut self) -> usize {
        let n = self.tx[0].tx_burst(&mut self.batch, hw::cycles());
        self.tx[0].flush(hw::cycles(), true);
        n
    }
    pub fn counts_rx(&self) -> QueueMeter {
        let mut sum = QueueMeter::default();
        for q in &self.rx {
            q.counts(&mut sum);
        }
        sum
    }
    pub fn counts_tx(&self) -> QueueMeter {
        let mut sum = QueueMeter::default();
        for q in &self.tx {
            q.counts(&mut sum);
        }
        sum
    }
    /// Ends the port as a runtime does, and checks that nothing is missing. Returns what the device counted, and what the
    /// receive queues did.
    pub fn stop(mut self) -> (DeviceCounts, QueueMeter) {
        self.port.rx_off().unwrap();
        while !self.poll().is_empty() {}
        let (device, rx, tx) = (self.port.device_counts(), self.counts_rx(), self.counts_tx());
        assert_eq!(
            device.rx_delivered,
            Some(rx.packets + rx.drops.total()),
            "what the kernel delivered is what the queues had: {device:?} {:?}",
            rx.drops.iter().collect::<Vec<_>>()
        );
        assert_eq!(device.rx_good.zip(device.rx_delivered).map(|(g, d)| g - d), device.rx_missed);
        assert_eq!(tx.drops.of(DropReason::NoBuffer), 0);
        let queues = Queues {
            rx: self.rx.drain(..).map(|q| q.detach()).collect(),
            tx: self.tx.drain(..).map(|q| q.detach()).collect(),
        };
        self.port.stop(queues, &self.env.local).unwrap();
        assert_eq!(self.memory.depot() + self.env.local.cached(), self.buffers, "all buffers are back");
        assert_eq!(self.env.local.lost(), 0);
        (device, rx)
    }
}

/// A frame of `len` bytes from one made-up address to another, with a number in it.
pub fn frame(len: usize, number: u64) -> Vec<u8> {
    let mut f = vec![0; len.max(22)];
    f[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    // For local experiments (IEEE 802).
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f[14..22].copy_from_slice(&number.to_be_bytes());
    for (i, b) in f.iter_mut().enumerate().skip(22) {
        *b = (i as u64 * 31 + number) as u8;
    }
    f
}

/// Whether an interface is promiscuous because somebody asked for it.
pub fn promiscuity(interface: &str) -> u32 {
    let text = output("ip", &format!("-d link show {interface}"));
    text.split("promiscuity ").nth(1).and_then(|t| t.split(' ').next()?.parse().ok()).unwrap()
}

/// The calling thread gives up a capability (capabilities(7)).
pub fn without_capability(number: u32) {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let mut sets = [[0u32; 3]; 2];
    // SAFETY: both structs are as version 3 of the call has them.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()), 0);
        sets[number as usize / 32].iter_mut().for_each(|set| *set &= !(1 << (number % 32)));
        assert_eq!(libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()), 0);
    }
}

/// For [`peer`].
fn set<T>(fd: &impl AsRawFd, level: i32, name: i32, value: &T) {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: as many bytes as the value has.
    let r = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), len) };
    assert_eq!(r, 0, "option {name}: {}", std::io::Error::last_os_error());
}

/// Has the kernel cut what is sent by a UDP socket into datagrams of `size` bytes (udp(7), `UDP_SEGMENT`).
pub fn cut_up(socket: &std::net::UdpSocket, size: i32) {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &size);
}
