//! The device on a thread of its own, as it is in life. For Miri above all: two sides share memory for real.

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ixgbe_model::{Arrival, Device, Lies, Mode, ModelBus, Parameters, Wire, spawn};
use mem::{Batch, Memory};
use port::{OpenPort, PortConfig, WorkerEnv};
use rig::{ID, Live, bytes, config, frame, memory, open_env, worker};
use ringwright_ixgbe::Ixgbe;

/// Sends numbered frames, a window of them at a time, and checks that they come back in order.
struct Loop {
    frames: u32,
    sent: u32,
    back: Arc<AtomicU32>,
    wrong: Arc<AtomicU32>,
}

fn length(n: u32) -> usize {
    if cfg!(miri) { [60, 61, 2049][n as usize % 3] } else { [60, 1500, 64, 5000, 61][n as usize % 5] }
}

impl Wire for Loop {
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        if self.sent == self.frames || self.sent - self.back.load(Ordering::Relaxed) >= 16 {
            return None;
        }
        let f = frame(length(self.sent), self.sent);
        room[..f.len()].copy_from_slice(&f);
        self.sent += 1;
        Some(Arrival::good(f.len()))
    }
    fn tx_frame(&mut self, got: &[u8]) {
        let n = self.back.load(Ordering::Relaxed);
        if got != frame(length(n), n) {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.back.store(n + 1, Ordering::Release);
    }
}

struct Setup {
    device: Device,
    memory: Arc<Memory>,
    env: WorkerEnv,
    port: Ixgbe<ModelBus>,
    back: Arc<AtomicU32>,
    wrong: Arc<AtomicU32>,
    thread: ixgbe_model::ModelThread<Loop>,
}

fn setup(frames: u32) -> Setup {
    let (memory, rings) = memory(rig::BUFFERS);
    let (back, wrong) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let wire = Loop { frames, sent: 0, back: Arc::clone(&back), wrong: Arc::clone(&wrong) };
    let (device, engine) = Device::new(Parameters::default(), rings, wire).unwrap();
    let thread = spawn("82599", vec![engine], || {}).unwrap();
    let port = Ixgbe::open(device.bus(), ID, &open_env(&memory)).unwrap();
    let env = worker(&memory);
    Setup { device, memory, env, port, back, wrong, thread }
}

fn breathe(live: &mut Live, batch: &mut Batch, now: u64) -> usize {
    let n = live.rx[0].rx_burst(batch);
    live.tx[0].tx_burst(batch, now);
    live.tx[0].flush(now, n == 0);
    live.tx[0].reap();
    if n == 0 {
        std::thread::yield_now();
    }
    n
}

fn finish(mut s: Setup, live: Live) {
    s.port.rx_off().unwrap();
    s.port.stop(live.detach(), &s.env.local).unwrap();
    assert_eq!(s.memory.depot() + s.env.local.cached(), s.memory.capacity());
    assert_eq!((s.device.faults(), s.device.malformed(), s.device.stray()), (vec![], vec![], 0));
    drop(s.thread);
}

#[test]
fn a_device_on_its_own_thread_loses_changes_and_reorders_nothing() {
    let frames = if cfg!(miri) { 18 } else { 20_000 };
    let mut s = setup(frames);
    let cfg = PortConfig { doorbell_delay: 1000, ..config() };
    let mut live = Live::attach(s.port.start(&cfg).unwrap(), &s.env);
    let mut batch = Batch::new(&s.env.local);
    let mut now = 0;
    while s.back.load(Ordering::Acquire) < frames {
        now += 100;
        breathe(&mut live, &mut batch, now);
    }
    assert_eq!(s.wrong.load(Ordering::Relaxed), 0);
    assert_eq!((live.rx_counts().packets, live.tx_counts().packets), (frames.into(), frames.into()));
    assert_eq!(live.rx_counts().drops.total() + live.tx_counts().drops.total(), 0);
    finish(s, live);
}

#[test]
fn queues_move_between_threads_while_the_device_runs() {
    let frames = if cfg!(miri) { 12 } else { 6_000 };
    let mut s = setup(frames);
    let mut queues = Some(s.port.start(&config()).unwrap());
    while s.back.load(Ordering::Acquire) < frames {
        let (mine, memory, back) = (queues.take().unwrap(), Arc::clone(&s.memory), Arc::clone(&s.back));
        let moved = std::thread::spawn(move || {
            let env = worker(&memory);
            let (mut live, mut batch) = (Live::attach(mine, &env), Batch::new(&env.local));
            let until = (back.load(Ordering::Acquire) + frames / 4).min(frames);
            while back.load(Ordering::Acquire) < until || !batch.is_empty() {
                breathe(&mut live, &mut batch, 0);
            }
            live.detach()
        });
        queues = Some(moved.join().unwrap());
    }
    assert_eq!(s.wrong.load(Ordering::Relaxed), 0);
    let live = Live::attach(queues.unwrap(), &s.env);
    finish(s, live);
}

/// How long without a frame means that no more come.
const QUIET: Duration = Duration::from_millis(if cfg!(miri) { 0 } else { 500 });

#[test]
fn a_liar_on_its_own_thread_is_survived() {
    let frames = if cfg!(miri) { 12 } else { 5_000 };
    let mut s = setup(frames);
    let mut live = Live::attach(s.port.start(&config()).unwrap(), &s.env);
    let mut batch = Batch::new(&s.env.local);
    s.device.set_mode(Mode::Lying(Lies::all(11, 3)));
    let (mut seen, mut idle, mut last) = (0, 0, Instant::now());
    while idle < 50 || last.elapsed() < QUIET {
        let n = live.rx[0].rx_burst(&mut batch);
        seen += batch.iter_mut().map(|p| usize::from(!bytes(&p).is_empty())).sum::<usize>();
        live.tx[0].tx_burst(&mut batch, 0);
        live.tx[0].reap();
        rig::free(&mut batch);
        idle = if n == 0 { idle + 1 } else { 0 };
        if n > 0 {
            last = Instant::now();
        }
        std::thread::yield_now();
    }
    assert!(seen > 0 || cfg!(miri));
    finish(s, live);
}
