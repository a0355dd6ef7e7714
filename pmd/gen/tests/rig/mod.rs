//! A generator, a way that does something to its frames, and the way back: all on the test's own thread, through the traits of
//! ports only.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::VecDeque;
use std::sync::Arc;

use hw::{Pages, Window};
use mem::{Batch, Chain, Layout, Local, Memory, Meta, Parcel};
use meter::{DropCounts, DropReason, QueueMeter};
use null::Null;
use port::{
    DeviceCounts, Driver, Link, OpenEnv, OpenPort, PortConfig, PortError, PortInfo, Queues, RxQueue, TxQueue,
    TxSetup, WorkerEnv,
};
use ringwright_gen::{GenPort, Handle, Profile};

pub const BUFFERS: usize = 1024;

pub fn memory() -> Arc<Memory> {
    let memory = Memory::new(Window::on_heap(8 << 20), Layout::for_frame_room(2048).unwrap());
    memory.add_pool(BUFFERS, None, Pages::Any).unwrap();
    memory
}

pub fn worker(memory: &Arc<Memory>) -> WorkerEnv {
    WorkerEnv { local: Local::new(memory), node: None, metered: true }
}

pub fn open_env(memory: &Arc<Memory>, name: &str) -> OpenEnv {
    OpenEnv { memory: Arc::clone(memory), name: name.into() }
}

pub fn config(port: u16, queues: u16) -> PortConfig {
    PortConfig { queues, rx_ring: 512.try_into().unwrap(), ..PortConfig::new(port) }
}

pub fn home(memory: &Memory, env: &WorkerEnv) -> bool {
    memory.depot() + env.local.cached() == BUFFERS && env.local.lost() == 0
}

/// What is done to a frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Pass,
    Lose,
    Twice,
    /// It goes on after this many others.
    Late(u32),
    /// A byte of it is changed.
    Change(usize),
    /// It comes in as two buffers, the first of this many bytes.
    Split(u16),
    /// A frame of somebody else goes before it.
    Foreign,
}

/// Says what happens to frame `n` of those that pass.
pub type Plan = Box<dyn FnMut(u64) -> Fault + Send>;

/// A port whose transmit queue does what a plan says, and nothing else than the port that it is around.
pub struct Faulty {
    port: Box<dyn OpenPort>,
    plan: Option<Plan>,
}

impl Faulty {
    pub fn new(port: Box<dyn OpenPort>, plan: Plan) -> Self {
        Self { port, plan: Some(plan) }
    }
}

impl OpenPort for Faulty {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }
    fn start(&mut self, cfg: &PortConfig) -> Result<Queues, PortError> {
        let Queues { rx, tx } = self.port.start(cfg)?;
        let mut plan = self.plan.take();
        let faulty = |setup| -> Box<dyn TxSetup> {
            Box::new(FaultySetup { setup, plan: plan.take().expect("one queue") })
        };
        Ok(Queues { rx, tx: tx.into_iter().map(faulty).collect() })
    }
    fn link(&mut self) -> Link {
        self.port.link()
    }
    fn device_counts(&mut self) -> DeviceCounts {
        self.port.device_counts()
    }
    fn set_promiscuous(&mut self, on: bool) -> Result<(), PortError> {
        self.port.set_promiscuous(on)
    }
    fn rx_off(&mut self) -> Result<(), PortError> {
        self.port.rx_off()
    }
    fn stop(&mut self, queues: Queues, local: &Local) -> Result<(), PortError> {
        self.port.stop(queues, local)
    }
}

struct FaultySetup {
    setup: Box<dyn TxSetup>,
    plan: Plan,
}

impl TxSetup for FaultySetup {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        let Self { setup, plan } = *self;
        match setup.attach(env) {
            Ok(queue) => Ok(Box::new(FaultyTx {
                queue,
                plan,
                local: env.local.clone(),
                late: VecDeque::new(),
                one: Batch::new(&env.local),
                seen: 0,
                drops: DropCounts::default(),
            })),
            Err((e, setup)) => Err((e, Box::new(Self { setup, plan }))),
        }
    }
    fn reclaim(self: Box<Self>, local: &Local) {
        self.setup.reclaim(local);
    }
}

struct FaultyTx {
    queue: Box<dyn TxQueue>,
    plan: Plan,
    local: Local,
    /// Those that wait, each for so many others.
    late: VecDeque<(u32, Parcel)>,
    one: Batch,
    seen: u64,
    drops: DropCounts,
}

impl FaultyTx {
    fn pass(&mut self, parcel: Parcel) {
        self.one.push_parcel(parcel).expect("room");
        let fault = (self.plan)(self.seen);
        self.seen += 1;
        let pool = self.local.memory().pool_on(None).expect("a pool").id();
        match fault {
            Fault::Pass => {}
            Fault::Lose => {
                self.one.drop_all(DropReason::Filtered, &mut self.drops);
            }
            Fault::Twice => {
                let copy = self.one.copy(0, pool).expect("a buffer");
                assert!(self.one.push_buf(copy).is_ok());
            }
            Fault::Late(others) => {
                let late = &mut self.late;
                self.one.drain_while(|p| {
                    late.push_back((others, p.into()));
                    Ok(())
                });
                return;
            }
            Fault::Change(at) => self.one.pkt(0).expect("a frame").bytes_mut()[at] ^= 0x40,
            Fault::Split(at) => self.split(at),
            Fault::Foreign => {
                self.one.fill(pool, 1, 60, Meta::default());
                let at = self.one.len() - 1;
                self.one.pkt(at).expect("a frame").bytes_mut().fill(0x11);
            }
        }
        self.send();
        self.send_late(false);
    }

    /// Sends those whose time has come, or all.
    fn send_late(&mut self, all: bool) {
        let mut rest = VecDeque::new();
        for (left, parcel) in std::mem::take(&mut self.late) {
            if left <= 1 || all {
                self.one.push_parcel(parcel).expect("room");
                self.send();
            } else {
                rest.push_back((left - 1, parcel));
            }
        }
        self.late = rest;
    }

    fn send(&mut self) {
        self.queue.tx_burst(&mut self.one, 0);
        assert!(self.one.is_empty(), "the pair has room");
    }

    fn split(&mut self, at: u16) {
        let frame = self.one.pkt(0).expect("a frame").bytes().to_vec();
        let pool = self.local.memory().pool_on(None).expect("a pool").id();
        self.one.free_sent();
        let mut slots = self.local.take_bulk(pool, 2);
        let (head, tail) = (slots.next().expect("a buffer"), slots.next().expect("a buffer"));
        let mut chain = Chain::new(&self.local, head, at).expect("it fits");
        chain.push(tail, frame.len() as u16 - at).expect("it fits");
        assert!(chain.finish(&mut self.one, Meta::default()).is_ok());
        let mut p = self.one.pkt(0).expect("a frame");
        let (first, second) = frame.split_at(at.into());
        p.segment_mut(0).expect("one").copy_from_slice(first);
        p.segment_mut(1).expect("two").copy_from_slice(second);
    }
}

impl TxQueue for FaultyTx {
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        let mut parcels = Vec::new();
        let n = from.drain_while(|p| {
            parcels.push(p.into());
            Ok(())
        });
        parcels.into_iter().for_each(|p| self.pass(p));
        n
    }
    fn flush(&mut self, _now: u64, idle: bool) {
        if idle {
            self.send_late(true);
        }
    }
    fn reap(&mut self) -> usize {
        self.queue.reap()
    }
    fn inflight(&self) -> usize {
        self.queue.inflight()
    }
    fn counts(&self, sum: &mut QueueMeter) {
        self.queue.counts(sum);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        assert!(self.late.is_empty(), "flushed before it left");
        Box::new(FaultySetup { setup: self.queue.detach(), plan: self.plan })
    }
}

/// A generator whose frames go into one port of a pair and come back by the other.
pub struct Loop {
    pub memory: Arc<Memory>,
    pub env: WorkerEnv,
    pub handle: Handle,
    ports: [Box<dyn OpenPort>; 3],
    queues: Vec<Queues>,
}

impl Loop {
    pub fn new(profile: Profile, plan: impl FnMut(u64) -> Fault + Send + 'static) -> Self {
        let memory = memory();
        let port = GenPort::new(profile, &open_env(&memory, "gen")).unwrap();
        let handle = port.handle();
        let driver = Null::new();
        let pair = |name, peer: &str| {
            driver.open(&format!("peer = {peer:?}").parse().unwrap(), &open_env(&memory, name)).unwrap()
        };
        let there = Faulty::new(pair("there", "back"), Box::new(plan));
        let mut ports: [Box<dyn OpenPort>; 3] = [Box::new(port), Box::new(there), pair("back", "there")];
        let queues = (0..).zip(&mut ports).map(|(i, p)| p.start(&config(i, 1)).unwrap()).collect();
        Self { env: worker(&memory), memory, handle, ports, queues }
    }

    /// Lets `f` breathe, then takes all apart and sees that every buffer is home.
    pub fn run(mut self, f: impl FnOnce(&mut Ends)) {
        let env = &self.env;
        let mut rx = self.queues.iter_mut().map(|q| q.rx.remove(0).attach(env).map_err(|e| e.0).unwrap());
        let (made, _, back) = (rx.next().unwrap(), rx.next().unwrap(), rx.next().unwrap());
        let mut tx = self.queues.iter_mut().map(|q| q.tx.remove(0).attach(env).map_err(|e| e.0).unwrap());
        let (checked, there) = (tx.next().unwrap(), tx.next().unwrap());
        let mut ends = Ends { made, there, back, checked, batch: Batch::new(&env.local) };
        f(&mut ends);
        let Ends { made, there, back, checked, batch } = ends;
        assert!(batch.is_empty());
        self.queues[0] = Queues { rx: vec![made.detach()], tx: vec![checked.detach()] };
        self.queues[1].tx = vec![there.detach()];
        self.queues[2].rx = vec![back.detach()];
        for (mut port, queues) in self.ports.into_iter().zip(self.queues) {
            port.rx_off().unwrap();
            port.stop(queues, &self.env.local).unwrap();
        }
        assert!(home(&self.memory, &self.env));
    }
}

pub struct Ends {
    made: Box<dyn RxQueue>,
    there: Box<dyn TxQueue>,
    back: Box<dyn RxQueue>,
    checked: Box<dyn TxQueue>,
    batch: Batch,
}

impl Ends {
    /// One round. True if something moved.
    pub fn breathe(&mut self) -> bool {
        let made = self.made.rx_burst(&mut self.batch);
        self.there.tx_burst(&mut self.batch, 0);
        let mut back = 0;
        loop {
            let n = self.back.rx_burst(&mut self.batch);
            if n == 0 {
                break;
            }
            back += n;
            assert_eq!(self.checked.tx_burst(&mut self.batch, 0), n);
        }
        if made == 0 {
            self.there.flush(0, true);
        }
        made + back > 0
    }

    /// Rounds until nothing moves any more.
    pub fn settle(&mut self) {
        while self.breathe() {}
        while self.breathe() {}
    }
}
