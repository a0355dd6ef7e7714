//! A device that writes anything anywhere into the rings of the ixgbe driver, between any of its calls.
//!
//! Flags: -max_len=2000
// UNSAFETY: plays the device, which writes ring memory behind the driver's back.
#![allow(unsafe_code)]
#![no_main]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use hw::{Arena, Bar, Bus, DmaPool, DmaRegion, GRANULE, HwError, Node, Pages, Reg, Registers, Window};
use ixgbe::{Ixgbe, PciId};
use ixgbe_defs::{BAR_BYTES, RxDesc, RxWriteBack, regs, rx_status};
use libfuzzer_sys::fuzz_target;
use mem::{Batch, Layout, Local, Memory};
use meter::{DropCounts, DropReason};
use port::{OpenEnv, OpenPort, PortConfig, Queues, RxQueue, TxQueue, WorkerEnv};

const BUFFERS: usize = 128;
const RING: u32 = 16;

/// Registers that keep what is written, of a device that is always ready.
struct Words(Box<[AtomicU32]>);

impl Registers for Words {
    fn len(&self) -> usize {
        BAR_BYTES
    }
    fn read32(&self, reg: Reg) -> u32 {
        match reg {
            regs::STATUS | regs::CTRL => 0,
            regs::EEC => regs::eec::AUTO_RD,
            regs::RDRXCTL => regs::rdrxctl::DMAIDONE,
            regs::SECRXSTAT => regs::secrxstat::SECRX_RDY,
            _ => self.0[reg.0 as usize / 4].load(Ordering::Relaxed),
        }
    }
    fn write32(&self, reg: Reg, value: u32) {
        self.0[reg.0 as usize / 4].store(value, Ordering::Relaxed);
    }
}

#[derive(Clone)]
struct Fuzzed {
    words: Arc<Words>,
    rings: Arc<DmaPool>,
    /// Offsets of the rings in their arena, in the order they were made.
    made: Arc<Mutex<Vec<usize>>>,
}

impl Bus for Fuzzed {
    fn bar(&self, _: u8) -> Result<Bar, HwError> {
        Ok(Bar::software(Arc::clone(&self.words) as Arc<dyn Registers>))
    }
    fn dma(&self, bytes: usize, _: Option<Node>) -> Result<DmaRegion, HwError> {
        let region = self.rings.take(bytes)?;
        let offset = region.iova().to_bits() as usize - self.rings.arena().offset();
        self.made.lock().expect("one thread").push(offset);
        Ok(region)
    }
    fn map(&self, _: &Arc<Arena>) -> Result<(), HwError> {
        Ok(())
    }
    fn unmap(&self, _: &Arc<Arena>) {}
    fn pause(&self) {}
}

impl Fuzzed {
    /// Writes a descriptor, body first.
    fn write(&self, ring: usize, at: u32, words: [u64; 2]) {
        let offset = self.made.lock().expect("one thread")[ring] + (at % RING) as usize * 16;
        for (i, w) in words.into_iter().enumerate() {
            // SAFETY: inside the ring's memory, aligned, and reached by both sides as 64-bit atomics only.
            let word =
                unsafe { AtomicU64::from_ptr(self.rings.arena().base().add(offset + 8 * i).cast().as_ptr()) };
            word.store(w.to_le(), Ordering::Release);
        }
    }
}

struct World {
    bus: Fuzzed,
    memory: Arc<Memory>,
    local: Local,
    rx: Box<dyn RxQueue>,
    tx: Box<dyn TxQueue>,
    batch: Batch,
    drops: DropCounts,
    /// Where an honest device would be.
    at: u32,
}

/// Bytes of input, and zeros after them.
struct Input<'a>(&'a [u8]);
impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }
    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

impl World {
    /// A write-back that is nearly right, where the device should be.
    fn plausible(&mut self, input: &mut Input<'_>) {
        let how = input.byte();
        let end = if how & 1 == 0 { rx_status::EOP } else { 0 };
        let vlan = if how & 2 == 0 { rx_status::VP } else { 0 };
        let len = match how >> 2 & 3 {
            0 => 2048,
            1 => 60,
            2 => u16::from(input.byte()),
            _ => input.word() as u16,
        };
        let w = RxWriteBack { status: rx_status::DD | end | vlan, len, vlan: 5, ..RxWriteBack::default() };
        let d = RxDesc::write_back(w);
        self.bus.write(0, self.at, [d.buffer(), d.owner()]);
        self.at += 1;
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 8 {
            0..=2 => self.plausible(input),
            3 => {
                let at = input.byte().into();
                self.bus.write(0, at, [input.word(), input.word()]);
            }
            4 => {
                let at = input.byte().into();
                self.bus.write(1, at, [input.word(), input.word()]);
            }
            5 => self.receive(),
            6 => {
                self.tx.tx_burst(&mut self.batch, 0);
                self.batch.drop_all(DropReason::TxFull, &mut self.drops);
            }
            _ => {
                self.tx.reap();
            }
        }
        self.census();
    }

    fn receive(&mut self) {
        let had = self.batch.len();
        let n = self.rx.rx_burst(&mut self.batch);
        assert_eq!(self.batch.len(), had + n);
        for p in self.batch.iter_mut() {
            let total: usize = p.segments().map(<[u8]>::len).sum();
            assert!((1..=9604).contains(&total) && total == p.total_len(), "{total} bytes");
        }
        if self.batch.room() < 16 {
            self.batch.drop_all(DropReason::Stopping, &mut self.drops);
        }
    }

    fn census(&mut self) {
        let batched: usize = self.batch.iter_mut().map(|p| p.segments().count()).sum();
        let home = self.memory.depot() + self.local.cached();
        assert_eq!(home + batched + self.rx.posted() + self.tx.inflight(), BUFFERS, "a buffer is missing");
    }
}

/// Packet memory and ring memory, kept from input to input: after each, all of it has come home.
fn fixture() -> (Arc<Memory>, Arc<DmaPool>) {
    static FIXTURE: LazyLock<(Arc<Memory>, Arc<DmaPool>)> = LazyLock::new(|| {
        let window = Window::on_heap(3 * GRANULE);
        let rings = window.arena(GRANULE, None, Pages::Any).expect("room for an arena");
        let memory = Memory::new(window, Layout::for_frame_room(2048).expect("a layout"));
        memory.add_pool(BUFFERS, None, Pages::Any).expect("room for a pool");
        (memory, DmaPool::new(rings))
    });
    FIXTURE.clone()
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (memory, rings) = fixture();
    let bus = Fuzzed {
        words: Arc::new(Words((0..BAR_BYTES / 4).map(|_| AtomicU32::new(0)).collect())),
        rings,
        made: Arc::default(),
    };
    let env = OpenEnv { memory: Arc::clone(&memory), name: "fuzzed".into() };
    let id = PciId { vendor: 0x8086, device: 0x10FB };
    let mut port = Ixgbe::open(bus.clone(), id, &env).expect("a device that is always ready");
    let ring = RING.try_into().expect("a power of two");
    let cfg =
        PortConfig { rx_ring: ring, tx_ring: ring, max_frame: 9600, vlan_strip: true, ..PortConfig::new(0) };
    let mut queues = port.start(&cfg).expect("a configuration that can be");
    let worker = WorkerEnv { local: Local::new(&memory), node: None, metered: true };
    let rx = queues.rx.pop().expect("a queue").attach(&worker).map_err(|e| e.0).expect("buffers");
    let tx = queues.tx.pop().expect("a queue").attach(&worker).map_err(|e| e.0).expect("no reason not to");
    let (batch, drops) = (Batch::new(&worker.local), DropCounts::default());
    let mut world =
        World { bus, memory: Arc::clone(&memory), local: worker.local.clone(), rx, tx, batch, drops, at: 0 };
    while !input.0.is_empty() {
        world.step(&mut input);
    }
    let World { rx, tx, mut batch, mut drops, .. } = world;
    batch.drop_all(DropReason::Stopping, &mut drops);
    let queues = Queues { rx: vec![rx.detach()], tx: vec![tx.detach()] };
    port.stop(queues, &worker.local).expect("a device that resets");
    assert_eq!(memory.depot() + worker.local.cached(), BUFFERS, "every buffer came home");
    assert_eq!(worker.local.lost(), 0);
});
