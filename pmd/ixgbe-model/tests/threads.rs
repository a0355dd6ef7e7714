//! A device on a thread of its own, against descriptors written by hand: the two sides share memory for real, which
//! is what Miri is here to judge.
// UNSAFETY: writes and reads the packet memory that the device is given.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hw::{Arena, Bar, Bus, Doorbell, GRANULE, Pages, Window};
use ixgbe_defs::{Queue, RxDesc, TxData, TxDesc, regs, tx_cmd};
use ring::{DescRing, RingSize};
use ringwright_ixgbe_model::{
    Arrival, Cable, Count, Device, Engine, Lies, Mode, Parameters, Script, Wire, spawn,
};

const SIZE: u32 = 16;
const STRIDE: usize = 2048;

/// The least a driver can be: forwards every frame from the buffer it came in.
struct Forwarder {
    device: Device,
    bar: Bar,
    rx: DescRing<RxDesc>,
    tx: DescRing<TxDesc>,
    rx_bell: Doorbell,
    tx_bell: Doorbell,
    packets: Arc<Arena>,
    /// Buffers that are the driver's.
    free: Vec<u32>,
    posted: [u32; SIZE as usize],
    inflight: [u32; SIZE as usize],
    at: [u32; 4],
}

impl Forwarder {
    fn new<W: Wire>(window: &Arc<Window>, params: Parameters, wire: W) -> (Self, Engine<W>) {
        let arena = || window.arena(GRANULE, None, Pages::Any).expect("an arena");
        let (device, engine) = Device::new(params, arena(), wire).expect("a device");
        let (bus, packets) = (device.bus(), arena());
        bus.map(&packets).expect("a free place");
        let bar = bus.bar(0).expect("registers");
        let q = Queue::new(0).expect("a queue");
        let size = RingSize::try_from(SIZE).expect("a size");
        let memory = || bus.dma(SIZE as usize * 16, None).expect("memory");
        let forwarder = Self {
            rx: DescRing::new(memory(), size).expect("fits"),
            tx: DescRing::new(memory(), size).expect("fits"),
            rx_bell: bar.doorbell(regs::rdt(q)).expect("a register"),
            tx_bell: bar.doorbell(regs::tdt(q)).expect("a register"),
            free: (0..2 * SIZE).collect(),
            posted: [0; SIZE as usize],
            inflight: [0; SIZE as usize],
            at: [0; 4],
            device,
            bar,
            packets,
        };
        (forwarder, engine)
    }

    fn start(&self) {
        let q = Queue::new(0).expect("a queue");
        let bus = self.device.bus();
        self.bar.write32(regs::CTRL, regs::ctrl::RST);
        let wait = |reg, mask, want: u32| {
            while self.bar.read32(reg) & mask != want {
                bus.pause();
            }
        };
        wait(regs::CTRL, regs::ctrl::RST, 0);
        wait(regs::RDRXCTL, regs::rdrxctl::DMAIDONE, regs::rdrxctl::DMAIDONE);
        self.bar.write32(regs::FCTRL, regs::fctrl::UPE);
        self.bar.write32(regs::rdbal(q), self.rx.iova().to_bits() as u32);
        self.bar.write32(regs::rdlen(q), SIZE * 16);
        self.bar.write32(regs::srrctl(q), 2 | regs::srrctl_bits::DESCTYPE_ADVANCED);
        self.bar.write32(regs::tdbal(q), self.tx.iova().to_bits() as u32);
        self.bar.write32(regs::tdlen(q), SIZE * 16);
        self.bar.modify32(regs::DMATXCTL, regs::dmatxctl::TE, regs::dmatxctl::TE);
        let enable = regs::rxdctl_bits::ENABLE;
        self.bar.write32(regs::rxdctl(q), enable);
        self.bar.write32(regs::txdctl(q), enable);
        wait(regs::rxdctl(q), enable, enable);
        wait(regs::txdctl(q), enable, enable);
        self.bar.write32(regs::RXCTRL, regs::rxctrl::RXEN);
    }

    fn buffer(&self, n: u32) -> (u64, NonNull<u8>) {
        let at = n as usize * STRIDE;
        // SAFETY: inside the arena, which has room for all buffers.
        (self.packets.iova().to_bits() + at as u64, unsafe { self.packets.base().add(at) })
    }

    /// One round: post, receive and send on, reap. Returns the frames that came in.
    fn breathe(&mut self) -> usize {
        let (mut posted, mut received) = (false, 0);
        while self.at[1].wrapping_sub(self.at[0]) < SIZE - 1 {
            let Some(n) = self.free.pop() else { break };
            self.rx.store(self.at[1], RxDesc::post(self.buffer(n).0, 0));
            self.posted[(self.at[1] % SIZE) as usize] = n;
            self.at[1] += 1;
            posted = true;
        }
        if posted {
            self.rx_bell.ring(self.at[1] % SIZE);
        }
        while self.at[0] != self.at[1] && self.at[3].wrapping_sub(self.at[2]) < SIZE - 1 {
            let Some(d) = self.rx.poll(self.at[0]) else { break };
            let n = self.posted[(self.at[0] % SIZE) as usize];
            self.at[0] += 1;
            received += 1;
            self.send(n, usize::from(d.len()));
        }
        if received > 0 {
            self.tx_bell.ring(self.at[3] % SIZE);
        }
        while self.at[2] != self.at[3] && self.tx.poll(self.at[2]).is_some() {
            self.free.push(self.inflight[(self.at[2] % SIZE) as usize]);
            self.at[2] += 1;
        }
        received
    }

    fn send(&mut self, n: u32, len: usize) {
        if !(14..=STRIDE).contains(&len) {
            return self.free.push(n);
        }
        let (buffer, at) = self.buffer(n);
        // SAFETY: the buffer is the driver's since its descriptor was done.
        let frame = unsafe { core::slice::from_raw_parts_mut(at.as_ptr(), len) };
        frame.swap(0, 6);
        let cmd = tx_cmd::EOP | tx_cmd::IFCS | tx_cmd::RS;
        let d = TxData { buffer, len: len as u16, cmd, payload_len: len as u32, ..TxData::default() };
        self.tx.store(self.at[3], TxDesc::data(d));
        self.inflight[(self.at[3] % SIZE) as usize] = n;
        self.at[3] += 1;
    }
}

/// Sends numbered frames, a window of them at a time, and checks that they come back once and in order.
struct Counter {
    frames: u32,
    sent: u32,
    back: u32,
}

impl Wire for Counter {
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        if self.sent == self.frames || self.sent - self.back >= 24 {
            return None;
        }
        let len = 60 + (self.sent as usize * 13) % 900;
        room[..len].fill(self.sent as u8);
        room[0] = 2;
        room[6] = 4;
        room[14..18].copy_from_slice(&self.sent.to_le_bytes());
        self.sent += 1;
        Some(Arrival::good(len))
    }
    fn tx_frame(&mut self, frame: &[u8]) {
        assert_eq!(frame[14..18], self.back.to_le_bytes(), "in order, once");
        assert_eq!((frame[0], frame[6]), (4, 2), "what the driver wrote");
        assert_eq!(frame.len(), 60 + (self.back as usize * 13) % 900);
        assert!(frame[18..].iter().all(|b| *b == self.back as u8), "unchanged");
        self.back += 1;
    }
}

#[test]
fn frames_go_through_a_device_on_another_thread() {
    let frames = if cfg!(miri) { 60 } else { 3_000 };
    let window = Window::on_heap(8 * GRANULE);
    let wire = Counter { frames, sent: 0, back: 0 };
    let (mut driver, engine) =
        Forwarder::new(&window, Parameters { pause: true, ..Parameters::default() }, wire);
    let thread = spawn("model", vec![engine], || ()).expect("a thread");
    driver.start();
    let mut forwarded = 0;
    while forwarded < frames {
        match driver.breathe() {
            0 => std::thread::yield_now(),
            n => forwarded += n as u32,
        }
    }
    while driver.at[2] != driver.at[3] {
        driver.breathe();
        std::thread::yield_now();
    }
    let engines = thread.stop();
    assert_eq!(engines[0].wire().back, frames);
    assert!(driver.device.faults().is_empty());
    assert_eq!(driver.device.stray(), 0);
}

#[test]
fn two_devices_share_a_thread_and_a_cable() {
    let frames = if cfg!(miri) { 24 } else { 1_000 };
    let (near, far) = Cable::pair(64, 2048);
    let windows = [(); 2].map(|()| Window::on_heap(8 * GRANULE));
    let pause = Parameters { pause: true, ..Parameters::default() };
    let (mut a, first) = Forwarder::new(&windows[0], pause, near);
    let (mut b, second) = Forwarder::new(&windows[1], pause, far);
    let thread = spawn("models", vec![first, second], || ()).expect("a thread");
    a.start();
    b.start();
    // One frame, sent by hand, then goes round and round.
    let n = a.free.pop().expect("a buffer");
    // SAFETY: a buffer of the driver's.
    unsafe { a.buffer(n).1.write_bytes(6, 60) };
    a.send(n, 60);
    a.tx_bell.ring(a.at[3] % SIZE);
    let mut passes = 0;
    while passes < frames {
        passes += a.breathe() + b.breathe();
        std::thread::yield_now();
    }
    drop(thread.stop());
    assert!(a.device.count(Count::RxToHost) >= frames as u64 / 2 - 1);
}

/// How long without a frame means that no more come.
const QUIET: Duration = Duration::from_secs(if cfg!(miri) { 60 } else { 2 });

#[test]
fn a_lying_device_on_another_thread_spoils_nothing_but_its_frames() {
    let frames = if cfg!(miri) { 40 } else { 3_000 };
    let window = Window::on_heap(8 * GRANULE);
    let mut wire = Script::default();
    (0..2 * frames).for_each(|n| {
        let mut f = [n as u8; 64];
        f[0] = 2;
        wire.push(f);
    });
    // Frames wait on the wire: what a quick device would miss never comes again.
    let params = Parameters { pause: true, ..Parameters::default() };
    let (mut driver, engine) = Forwarder::new(&window, params, wire);
    let thread = spawn("liar", vec![engine], || ()).expect("a thread");
    driver.start();
    driver.device.set_mode(Mode::Lying(Lies::all(3, 4)));
    // Twice as many are sent: a lie may take a frame's place. Lies may also use the ring up, and then no more come.
    let (mut seen, mut last) = (0, Instant::now());
    while seen < frames && last.elapsed() < QUIET {
        match driver.breathe() {
            0 => std::thread::yield_now(),
            n => (seen, last) = (seen + n, Instant::now()),
        }
    }
    assert!(seen > 0);
    driver.bar.write32(regs::CTRL, regs::ctrl::RST);
    while driver.bar.read32(regs::CTRL) & regs::ctrl::RST != 0 {
        driver.device.bus().pause();
    }
    drop(thread);
    assert!(driver.device.faults().is_empty(), "{:?}", driver.device.faults());
    assert!(driver.device.count(Count::Lies) > 0);
    let held = driver.at[1].wrapping_sub(driver.at[0]) + driver.at[3].wrapping_sub(driver.at[2]);
    assert_eq!(driver.free.len() as u32 + held, 2 * SIZE, "every buffer is somewhere");
}

#[test]
fn memory_is_let_go_while_the_device_runs() {
    let window = Window::on_heap(8 * GRANULE);
    let (driver, engine) = Forwarder::new(&window, Parameters::default(), Script::default());
    let _thread = spawn("model", vec![engine], || ()).expect("a thread");
    driver.start();
    let extra = window.arena(GRANULE, None, Pages::Any).expect("an arena");
    let bus = driver.device.bus();
    bus.map(&extra).expect("a free place");
    assert_eq!(Arc::strong_count(&extra), 2);
    bus.unmap(&extra);
    while Arc::strong_count(&extra) > 1 {
        bus.pause();
    }
}
