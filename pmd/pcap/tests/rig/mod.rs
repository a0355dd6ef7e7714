//! Memory, a worker, and a port of the driver, driven as a runtime drives it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hw::{Pages, Window};
use mem::{Batch, Layout, Local, Memory, Meta};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{Driver, Input, OpenEnv, OpenPort, PortConfig, PortError, Queues, RxQueue, TxQueue, WorkerEnv};
use ringwright_pcap::{CaptureReader, Next, Pcap};
use tempfile::TempDir;

pub const BUFFERS: usize = 1024;
/// Bytes that a buffer has for a frame.
pub const ROOM: usize = 2048;
/// How long anything may take on a machine that has a lot else to do.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A frame that was read: bytes, length on the wire, stamp.
pub type Owned = (Vec<u8>, u32, Option<u64>);

/// A folder of this test's own, gone after it.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A committed capture.
pub fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures").join(name)
}

/// All committed captures with this ending.
pub fn captures(ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(capture("")).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<_> = all.filter(|p| p.extension().is_some_and(|e| e == ending)).collect();
    all.sort();
    assert!(all.len() >= 5, "{all:?}");
    all
}

/// All frames, and what was said at the end.
pub fn frames(bytes: &[u8]) -> (Vec<Owned>, Result<(), String>) {
    let mut reader = CaptureReader::new(bytes);
    let mut all = Vec::new();
    loop {
        match reader.peek() {
            Ok(Next::Frame(f)) => all.push((f.bytes.to_vec(), f.original, f.time)),
            Ok(Next::End) => return (all, Ok(())),
            Ok(Next::Later) => panic!("bytes in memory do not come later"),
            Err(e) => return (all, Err(e.to_string())),
        }
        reader.advance();
    }
}

/// The frames of a capture that is whole.
pub fn whole(path: impl AsRef<Path>) -> Vec<Owned> {
    let (frames, end) = frames(&fs::read(path.as_ref()).unwrap());
    assert_eq!(end, Ok(()), "{}", path.as_ref().display());
    frames
}

/// Waits for something that another thread does.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

pub struct Bench {
    pub driver: Pcap,
    pub memory: Arc<Memory>,
    pub env: WorkerEnv,
    pub dir: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let memory = Memory::new(Window::on_heap(8 << 20), Layout::for_frame_room(ROOM).unwrap());
        memory.add_pool(BUFFERS, None, Pages::Any).unwrap();
        let env = WorkerEnv { local: Local::new(&memory), node: None, metered: true };
        Self { driver: Pcap::new(), memory, env, dir: folder() }
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    /// Writes a file of the folder.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
    pub fn open(&self, keys: &str) -> Result<Box<dyn OpenPort>, PortError> {
        let env = OpenEnv { memory: Arc::clone(&self.memory), name: "p0".into() };
        self.driver.open(&keys.parse().unwrap(), &env)
    }
    #[track_caller]
    pub fn refused(&self, keys: &str) -> String {
        self.open(keys).err().expect("refused").to_string()
    }
    #[track_caller]
    pub fn start(&self, keys: &str) -> Running<'_> {
        self.start_with(keys, PortConfig { tx_ring: 64.try_into().unwrap(), ..PortConfig::new(3) })
    }
    #[track_caller]
    pub fn start_with(&self, keys: &str, cfg: PortConfig) -> Running<'_> {
        let mut port = self.open(keys).unwrap();
        let Queues { rx, tx } = port.start(&cfg).unwrap();
        let mut r =
            Running { bench: self, port, rx: Vec::new(), tx: Vec::new(), batch: Batch::new(&self.env.local) };
        r.rx.extend(rx.into_iter().map(|q| q.attach(&self.env).map_err(|e| e.0).unwrap()));
        r.tx.extend(tx.into_iter().map(|q| q.attach(&self.env).map_err(|e| e.0).unwrap()));
        r
    }
    /// All buffers are back.
    #[track_caller]
    pub fn assert_home(&self) {
        assert_eq!(self.memory.depot() + self.env.local.cached(), BUFFERS);
        assert_eq!(self.env.local.lost(), 0);
    }
}

pub fn read_key(path: &Path) -> String {
    format!("read = {:?}\n", path.to_str().unwrap())
}
pub fn write_key(path: &Path) -> String {
    format!("write = {:?}\n", path.to_str().unwrap())
}

/// A started port with its queues on this thread.
pub struct Running<'b> {
    pub bench: &'b Bench,
    pub port: Box<dyn OpenPort>,
    pub rx: Vec<Box<dyn RxQueue>>,
    pub tx: Vec<Box<dyn TxQueue>>,
    pub batch: Batch,
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
    /// Receives everything there is; what was received, in order.
    pub fn receive_all(&mut self) -> Vec<Owned> {
        let mut all = Vec::new();
        until("the input ends", || {
            self.rx[0].rx_burst(&mut self.batch);
            let ended = self.port.input() == Input::Exhausted && self.batch.is_empty();
            for p in self.batch.iter_mut() {
                assert_eq!(p.port(), 3);
                let bytes: Vec<u8> = p.segments().flatten().copied().collect();
                let time = p.flags().has(mem::Flags::TIME).then(|| p.ext().time);
                all.push((bytes, p.total_len() as u32, time));
            }
            self.batch.free_sent();
            ended
        });
        all
    }
    /// Receives everything there is, and sends it by the first transmit queue of `to`, or of this port.
    pub fn pump(&mut self, mut to: Option<&mut Running<'_>>) {
        until("the input ends and the output has it", || {
            if self.batch.is_empty() {
                self.rx[0].rx_burst(&mut self.batch);
            }
            let tx = match &mut to {
                Some(to) => &mut to.tx[0],
                None => &mut self.tx[0],
            };
            tx.tx_burst(&mut self.batch, 0);
            tx.flush(0, true);
            tx.reap();
            self.port.input() == Input::Exhausted && self.batch.is_empty() && tx.inflight() == 0
        });
    }
    /// Makes packets of these bytes and sends them; waits until they are through.
    pub fn send(&mut self, queue: usize, frames: &[Vec<u8>]) {
        for f in frames {
            self.fill(f);
            until("a queue takes a packet", || {
                self.tx[queue].reap();
                self.tx[queue].tx_burst(&mut self.batch, 0);
                self.batch.is_empty()
            });
        }
        self.drain();
    }
    /// Adds a packet to the batch.
    pub fn fill(&mut self, bytes: &[u8]) {
        let pool = self.bench.env.pool().unwrap();
        assert_eq!(self.batch.fill(pool, 1, bytes.len() as u16, Meta::default()), 1);
        let last = self.batch.len() - 1;
        self.batch.pkt(last).unwrap().bytes_mut().copy_from_slice(bytes);
    }
    /// Waits until nothing is in flight.
    pub fn drain(&mut self) {
        for q in &mut self.tx {
            until("what was sent is written", || {
                q.reap();
                q.inflight() == 0
            });
        }
    }
    /// Stops as a runtime does, and checks that every packet and buffer is accounted for. Returns the last counts.
    #[track_caller]
    pub fn stop(mut self) -> (QueueMeter, QueueMeter, Option<String>) {
        self.port.rx_off().unwrap();
        self.batch.drop_all(DropReason::Stopping, &mut DropCounts::default());
        until("queues drain", || {
            self.tx.iter_mut().for_each(|q| {
                q.reap();
            });
            self.tx.iter().all(|q| q.inflight() == 0)
        });
        let (rx, tx) = (self.rx_counts(), self.tx_counts());
        let device = self.port.device_counts();
        assert_eq!(device.rx_delivered.unwrap_or(0), rx.packets + rx.drops.total());
        assert_eq!(device.rx_good, device.rx_delivered);
        assert_eq!(device.tx_sent.unwrap_or(0), tx.packets);
        let queues = Queues {
            rx: self.rx.into_iter().map(|q| q.detach()).collect(),
            tx: self.tx.into_iter().map(|q| q.detach()).collect(),
        };
        self.port.stop(queues, &self.bench.env.local).unwrap();
        self.bench.assert_home();
        (rx, tx, self.port.fault())
    }
}
