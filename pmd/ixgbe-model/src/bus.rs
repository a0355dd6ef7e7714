//! How a driver reaches the model.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hw::{Arena, Bar, Bus, DmaPool, DmaRegion, HwError, Node, Registers};
use ixgbe_defs::Queue;

use crate::Parameters;
use crate::count::{Count, Direction, Tally};
use crate::dma::{Event, Fault, Port};
use crate::engine::{Control, Engine, Shared};
use crate::malformed::Malformed;
use crate::modes::Mode;
use crate::regs::RegisterFile;
use crate::wire::Wire;

/// A handle on a device: its switches and what it counted. Any thread may hold one.
#[derive(Clone)]
pub struct Device(Arc<Shared>);

impl Device {
    /// A device after power-on, and its engine. Ring memory ([`Bus::dma`]) comes out of `rings`, which is mapped for
    /// the device; other arenas of the same window are mapped by [`Bus::map`].
    ///
    /// # Errors
    /// If `rings` cannot be mapped.
    pub fn new<W: Wire>(
        params: Parameters,
        rings: Arc<Arena>,
        wire: W,
    ) -> Result<(Self, Engine<W>), HwError> {
        let params = params.in_bounds();
        let port = Port::new(rings.window().len(), params.logged);
        port.iommu.map(&rings)?;
        let control = Control { mode: Mode::Normal, link: true, swallow: [0; 2] };
        let file = RegisterFile::new(port);
        let shared =
            Arc::new(Shared { file, control: Mutex::new(control), rings: DmaPool::new(rings), params });
        Ok((Self(Arc::clone(&shared)), Engine::new(shared, wire)))
    }

    /// The bus for an engine that runs on a thread of its own.
    pub fn bus(&self) -> ModelBus {
        ModelBus(self.clone())
    }

    fn control(&self, change: impl FnOnce(&mut Control)) {
        change(&mut self.0.control.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.file.changed();
    }

    /// How it behaves from its next step on.
    pub fn set_mode(&self, mode: Mode) {
        self.control(|c| c.mode = mode);
    }

    /// Plugs the cable in or out. Without a link nothing moves; the wire keeps what it has.
    pub fn set_link(&self, up: bool) {
        self.control(|c| c.link = up);
    }

    /// Makes the next `n` good frames of a direction vanish inside the device: counted as received (GPRC) but never
    /// given to the host, or reported as sent but neither counted (GPTC) nor put on the wire.
    pub fn swallow(&self, d: Direction, n: u64) {
        self.control(|c| c.swallow[d as usize] += n);
    }

    /// What was counted since power-on. A running engine publishes when it is idle, and every few bursts.
    pub fn count(&self, c: Count) -> u64 {
        match c {
            // Refused accesses are counted where they happen.
            Count::Faults => self.0.file.port.fault_count(),
            c => self.0.file.published.total(c),
        }
    }

    /// Bus operations of a queue, by cause, register accesses included. Published as [`Device::count`].
    pub fn tally(&self, d: Direction, q: Queue) -> Tally {
        self.0.file.published.read_tally(d, q)
    }

    /// The first accesses that the IOMMU refused.
    pub fn faults(&self) -> Vec<Fault> {
        self.0.file.port.faults()
    }

    /// What hung transmit queues, in order.
    pub fn malformed(&self) -> Vec<(Queue, Malformed)> {
        self.0.file.all_malformed()
    }

    /// Register accesses that named no register this device has.
    pub fn stray(&self) -> u64 {
        self.0.file.stray()
    }

    /// Takes the log of all accesses since last asked; empty unless [`Parameters::logged`].
    pub fn take_log(&self) -> Vec<Event> {
        self.0.file.port.take_log()
    }

    /// The ring memory.
    pub fn rings(&self) -> &Arc<DmaPool> {
        &self.0.rings
    }
}

/// The registers through a [`Bar`].
struct Window(Arc<Shared>);

impl Registers for Window {
    fn len(&self) -> usize {
        self.0.file.len()
    }
    #[inline]
    fn read32(&self, reg: hw::Reg) -> u32 {
        self.0.file.read32(reg)
    }
    #[inline]
    fn write32(&self, reg: hw::Reg, value: u32) {
        self.0.file.write32(reg, value);
    }
}

/// The bus of a device whose engine runs on a thread of its own.
#[derive(Clone)]
pub struct ModelBus(Device);

impl Bus for ModelBus {
    fn bar(&self, index: u8) -> Result<Bar, HwError> {
        if index != 0 {
            return Err(HwError::NoBar(index));
        }
        Ok(Bar::software(Arc::new(Window(Arc::clone(&self.0.0)))))
    }
    fn dma(&self, bytes: usize, _: Option<Node>) -> Result<DmaRegion, HwError> {
        self.0.0.rings.take(bytes)
    }
    fn map(&self, arena: &Arc<Arena>) -> Result<(), HwError> {
        self.0.0.file.port.iommu.map(arena)
    }
    fn unmap(&self, arena: &Arc<Arena>) {
        self.0.0.file.port.iommu.unmap(arena);
    }
    fn pause(&self) {
        // An interpreter's clock counts what is interpreted: the engine must get somewhere meanwhile.
        std::thread::sleep(Duration::from_micros(if cfg!(miri) { 50_000 } else { 20 }));
    }
}

/// A device that moves only when told to: by [`Stepped::step`], and by a driver that waits ([`Bus::pause`]).
pub struct Stepped<W> {
    device: Device,
    engine: Arc<Mutex<Engine<W>>>,
}

impl<W> Clone for Stepped<W> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone(), engine: Arc::clone(&self.engine) }
    }
}

impl<W: Wire + 'static> Stepped<W> {
    /// A device after power-on; arguments as for [`Device::new`].
    ///
    /// # Errors
    /// If `rings` cannot be mapped.
    pub fn new(params: Parameters, rings: Arc<Arena>, wire: W) -> Result<Self, HwError> {
        let (device, engine) = Device::new(params, rings, wire)?;
        Ok(Self { device, engine: Arc::new(Mutex::new(engine)) })
    }

    /// The handle.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    fn engine(&self) -> MutexGuard<'_, Engine<W>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step ([`Engine::step`]).
    pub fn step(&self) -> usize {
        self.engine().step()
    }

    /// Steps until a step moves nothing, `most` times at most. Returns the frames that moved.
    pub fn settle(&self, most: usize) -> usize {
        (0..most).map(|_| self.step()).take_while(|n| *n > 0).sum()
    }

    /// Lends the wire.
    pub fn wire<R>(&self, f: impl FnOnce(&mut W) -> R) -> R {
        f(self.engine().wire_mut())
    }

    /// The bus: its `pause` is a step.
    pub fn bus(&self) -> SteppedBus<W> {
        SteppedBus(self.clone())
    }
}

/// The bus of a [`Stepped`] device.
pub struct SteppedBus<W>(Stepped<W>);

impl<W: Wire + 'static> Bus for SteppedBus<W> {
    fn bar(&self, index: u8) -> Result<Bar, HwError> {
        self.0.device.bus().bar(index)
    }
    fn dma(&self, bytes: usize, node: Option<Node>) -> Result<DmaRegion, HwError> {
        self.0.device.bus().dma(bytes, node)
    }
    fn map(&self, arena: &Arc<Arena>) -> Result<(), HwError> {
        self.0.device.bus().map(arena)
    }
    fn unmap(&self, arena: &Arc<Arena>) {
        self.0.device.bus().unmap(arena);
    }
    fn pause(&self) {
        self.0.step();
    }
}
