//! What the model itself costs: cycles of `Engine::step` per frame in and out, driver time apart.
//!
//! One thread runs a bare forwarder and the device in turn, so everything is warm: what another core's cache adds is
//! not in these figures. Medians of interleaved rounds; run with `cargo bench -p ringwright-ixgbe-model`.
#![forbid(unsafe_code)]

use hw::{Bus, Pages, Window};
use ixgbe_defs::{Queue, RxDesc, TxData, TxDesc, regs, tx_cmd};
use ring::{DescRing, RingSize};
use ringwright_ixgbe_model::{Arrival, Device, Engine, Parameters, Wire};

const SIZE: u32 = 1024;
const STRIDE: u64 = 2112;
const BURST: u32 = 32;

/// Numbered frames in, nothing but a look at the number out.
struct Line {
    frame: Vec<u8>,
    next: u64,
    out: u64,
    budget: u32,
}

impl Wire for Line {
    #[inline]
    fn rx_next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        self.budget = self.budget.checked_sub(1)?;
        let len = self.frame.len();
        room[..len].copy_from_slice(&self.frame);
        room[len - 8..len].copy_from_slice(&self.next.to_le_bytes());
        self.next += 1;
        Some(Arrival::good(len))
    }
    #[inline]
    fn tx_frame(&mut self, frame: &[u8]) {
        let n = frame.last_chunk().map_or(0, |n| u64::from_le_bytes(*n));
        assert_eq!(n, self.out, "in order");
        self.out += 1;
    }
}

struct Bench {
    engine: Engine<Line>,
    rx: DescRing<RxDesc>,
    tx: DescRing<TxDesc>,
    bar: hw::Bar,
    at: [u32; 4],
    buffers: u64,
}

impl Bench {
    fn new(frame: Vec<u8>) -> Self {
        let window = Window::reserve(1 << 30).expect("addresses");
        let arena = |n| window.arena(n, None, Pages::Any).expect("memory");
        let wire = Line { frame, next: 0, out: 0, budget: 0 };
        let (device, engine) = Device::new(Parameters::default(), arena(1 << 20), wire).expect("a device");
        let (bus, packets) = (device.bus(), arena(SIZE as usize * STRIDE as usize));
        bus.map(&packets).expect("a free place");
        let size = RingSize::try_from(SIZE).expect("a size");
        let memory = || bus.dma(SIZE as usize * 16, None).expect("memory");
        let (rx, tx) =
            (DescRing::new(memory(), size).expect("fits"), DescRing::new(memory(), size).expect("fits"));
        let bar = bus.bar(0).expect("registers");
        let buffers = packets.iova().to_bits();
        let mut b = Self { engine, rx, tx, bar, at: [0; 4], buffers };
        b.start();
        b
    }

    fn start(&mut self) {
        let q = Queue::new(0).expect("a queue");
        self.bar.write32(regs::FCTRL, regs::fctrl::UPE);
        self.bar.write32(regs::rdbal(q), self.rx.iova().to_bits() as u32);
        self.bar.write32(regs::rdlen(q), SIZE * 16);
        self.bar.write32(regs::srrctl(q), 2 | regs::srrctl_bits::DESCTYPE_ADVANCED);
        self.bar.write32(regs::tdbal(q), self.tx.iova().to_bits() as u32);
        self.bar.write32(regs::tdlen(q), SIZE * 16);
        self.bar.modify32(regs::DMATXCTL, regs::dmatxctl::TE, regs::dmatxctl::TE);
        self.bar.write32(regs::rxdctl(q), regs::rxdctl_bits::ENABLE);
        self.bar.write32(regs::txdctl(q), regs::txdctl_bits::ENABLE);
        self.bar.write32(regs::RXCTRL, regs::rxctrl::RXEN);
        for _ in 0..4 {
            self.engine.step();
        }
        for _ in 0..SIZE - 1 {
            self.post();
        }
        self.bar.write32(regs::rdt(q), self.at[1] % SIZE);
    }

    /// Buffer and descriptor share their number: what came in at a place goes out from it.
    fn post(&mut self) {
        let buffer = self.buffers + u64::from(self.at[1] % SIZE) * STRIDE;
        self.rx.store(self.at[1], RxDesc::post(buffer, 0));
        self.at[1] += 1;
    }

    /// One burst through device and forwarder. Returns the cycles that the device took.
    fn burst(&mut self) -> u64 {
        let q = const { Queue::new(0).unwrap() };
        self.engine.wire_mut().budget = BURST;
        let t0 = hw::cycles();
        self.engine.step();
        let mut cycles = hw::cycles() - t0;
        while let Some(d) = self.rx.poll(self.at[0]).filter(|_| self.at[0] != self.at[1]) {
            let cmd = tx_cmd::EOP | tx_cmd::IFCS | if self.at[0] % 32 == 31 { tx_cmd::RS } else { 0 };
            let buffer = self.buffers + u64::from(self.at[0] % SIZE) * STRIDE;
            let t = TxData { buffer, len: d.len(), cmd, payload_len: d.len().into(), ..TxData::default() };
            self.tx.store(self.at[3], TxDesc::data(t));
            (self.at[0], self.at[3]) = (self.at[0] + 1, self.at[3] + 1);
        }
        self.bar.write32(regs::tdt(q), self.at[3] % SIZE);
        self.engine.wire_mut().budget = 0;
        let t0 = hw::cycles();
        self.engine.step();
        cycles += hw::cycles() - t0;
        for _ in 0..BURST {
            self.post();
        }
        self.bar.write32(regs::rdt(q), self.at[1] % SIZE);
        cycles
    }
}

fn l2(len: usize) -> Vec<u8> {
    let mut f = vec![0x5A; len];
    f[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5]);
    f
}

fn udp(len: usize) -> Vec<u8> {
    let mut f = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(7, 9)
        .write(&mut f, &vec![0x5A; len - 42])
        .expect("a frame");
    f
}

fn main() {
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let cases =
        [("60 B", l2(60)), ("60 B, UDP", udp(60)), ("512 B, UDP", udp(512)), ("1514 B, UDP", udp(1514))];
    let mut benches: Vec<_> = cases.into_iter().map(|(n, f)| (n, Bench::new(f), Vec::new())).collect();
    for _ in 0..400 {
        for (_, b, samples) in &mut benches {
            samples.push((0..20).map(|_| b.burst()).sum::<u64>() as f64 / f64::from(20 * BURST));
        }
    }
    let hz = hw::tsc_hz() as f64;
    for (name, _, samples) in &mut benches {
        samples.sort_by(f64::total_cmp);
        let at = |p: f64| samples[(samples.len() as f64 * p) as usize];
        println!(
            "{name:12} in and out: median {:6.1} cycles a frame (10 % {:.1}, 90 % {:.1}) = {:.1} M frames/s each way",
            at(0.5),
            at(0.1),
            at(0.9),
            hz / at(0.5) / 1e6
        );
    }
}
