//! A stepped device with one queue pair, and hands to write its descriptors with: no driver.
// UNSAFETY: writes and reads the packet memory that the device is given.
#![allow(unsafe_code, dead_code)]

use std::sync::Arc;

use hw::{Arena, Bar, Bus, GRANULE, Pages, Window};
use ixgbe_defs::{Queue, RxDesc, TxData, TxDesc, regs, tx_cmd};
use ring::{DescRing, RingSize};
use ringwright_ixgbe_model::{Parameters, Script, Stepped, Wire};

pub const DESCRIPTORS: u32 = 32;
/// Bytes from one buffer to the next.
pub const STRIDE: u64 = 2048;
/// Transmit buffers start here, behind the receive buffers.
pub const TX_BUFFERS: u64 = 64 * STRIDE;

pub fn queue(n: u8) -> Queue {
    Queue::new(n).expect("a queue")
}

pub struct Rig<W = Script> {
    pub model: Stepped<W>,
    pub bus: Box<dyn Bus>,
    pub bar: Bar,
    pub packets: Arc<Arena>,
    pub rx: DescRing<RxDesc>,
    pub tx: DescRing<TxDesc>,
    pub rx_tail: u32,
    pub tx_tail: u32,
}

pub fn parameters() -> Parameters {
    Parameters { logged: true, ..Parameters::default() }
}

impl Rig {
    pub fn new(params: Parameters) -> Self {
        Self::with_wire(params, Script::default())
    }
}

impl<W: Wire + 'static> Rig<W> {
    /// Everything on: promiscuous, one queue pair, link up, nothing posted.
    pub fn with_wire(params: Parameters, wire: W) -> Self {
        let rig = Self::cold(params, wire);
        rig.bar.write32(regs::FCTRL, regs::fctrl::UPE | regs::fctrl::MPE | regs::fctrl::BAM);
        rig.rx_queue(queue(0), &rig.rx, 2);
        rig.bar.write32(regs::RXCTRL, regs::rxctrl::RXEN);
        rig.bar.modify32(regs::DMATXCTL, regs::dmatxctl::TE, regs::dmatxctl::TE);
        rig.tx_queue(queue(0), &rig.tx, 0);
        for _ in 0..4 {
            rig.model.step();
        }
        assert_ne!(rig.bar.read32(regs::LINKS) & regs::links::UP, 0);
        rig.model.device().take_log();
        rig
    }

    /// After power-on, with memory mapped.
    pub fn cold(params: Parameters, wire: W) -> Self {
        let window = Window::on_heap(4 * GRANULE);
        let rings = window.arena(GRANULE, None, Pages::Any).expect("an arena");
        let packets = window.arena(GRANULE, None, Pages::Any).expect("an arena");
        let model = Stepped::new(params, rings, wire).expect("a device");
        let bus = model.bus();
        bus.map(&packets).expect("a free place");
        let ring = |n: u32| {
            (bus.dma(n as usize * 16, None).expect("memory"), RingSize::try_from(n).expect("a size"))
        };
        let ((rx, n), (tx, _)) = (ring(DESCRIPTORS), ring(DESCRIPTORS));
        Self {
            bar: bus.bar(0).expect("registers"),
            bus: Box::new(bus),
            rx: DescRing::new(rx, n).expect("fits"),
            tx: DescRing::new(tx, n).expect("fits"),
            model,
            packets,
            rx_tail: 0,
            tx_tail: 0,
        }
    }

    pub fn rx_queue(&self, q: Queue, ring: &DescRing<RxDesc>, kib: u32) {
        let at = ring.iova().to_bits();
        self.bar.write32(regs::rdbal(q), at as u32);
        self.bar.write32(regs::rdbah(q), (at >> 32) as u32);
        self.bar.write32(regs::rdlen(q), ring.size().get() * 16);
        self.bar.write32(regs::srrctl(q), kib | regs::srrctl_bits::DESCTYPE_ADVANCED);
        self.bar.write32(regs::rxdctl(q), regs::rxdctl_bits::ENABLE);
    }

    pub fn tx_queue(&self, q: Queue, ring: &DescRing<TxDesc>, wthresh: u32) {
        let at = ring.iova().to_bits();
        self.bar.write32(regs::tdbal(q), at as u32);
        self.bar.write32(regs::tdbah(q), (at >> 32) as u32);
        self.bar.write32(regs::tdlen(q), ring.size().get() * 16);
        self.bar.write32(
            regs::txdctl(q),
            regs::txdctl_bits::ENABLE | wthresh << regs::txdctl_bits::WTHRESH_SHIFT,
        );
    }

    pub fn buffer(&self, n: u32) -> u64 {
        self.packets.iova().to_bits() + u64::from(n % DESCRIPTORS) * STRIDE
    }

    /// Posts `n` receive buffers and rings the doorbell.
    pub fn post(&mut self, n: u32) {
        for _ in 0..n {
            self.rx.store(self.rx_tail, RxDesc::post(self.buffer(self.rx_tail), 0));
            self.rx_tail += 1;
        }
        self.bar.write32(regs::rdt(queue(0)), self.rx_tail % DESCRIPTORS);
    }

    /// Writes packet memory.
    pub fn write(&self, iova: u64, bytes: &[u8]) {
        let at = (iova - self.packets.iova().to_bits()) as usize;
        assert!(at + bytes.len() <= self.packets.len());
        // SAFETY: inside the arena; the device is stepped by this thread, so nothing else touches it now.
        unsafe { self.packets.base().add(at).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Reads packet memory.
    pub fn read(&self, iova: u64, len: usize) -> Vec<u8> {
        let at = (iova - self.packets.iova().to_bits()) as usize;
        assert!(at + len <= self.packets.len());
        // SAFETY: as in `write`.
        unsafe { core::slice::from_raw_parts(self.packets.base().add(at).as_ptr(), len) }.to_vec()
    }

    /// Appends a transmit descriptor; no doorbell.
    pub fn put(&mut self, d: TxDesc) {
        self.tx.store(self.tx_tail, d);
        self.tx_tail += 1;
    }

    pub fn ring_tx(&self) {
        self.bar.write32(regs::tdt(queue(0)), self.tx_tail % DESCRIPTORS);
    }

    /// Puts one frame of one buffer, with RS; no doorbell.
    pub fn put_frame(&mut self, frame: &[u8]) {
        let buffer =
            self.packets.iova().to_bits() + TX_BUFFERS + u64::from(self.tx_tail % DESCRIPTORS) * STRIDE;
        self.write(buffer, frame);
        self.put(data(buffer, frame.len(), WHOLE));
    }

    /// The frame that was received at position `pos`: its descriptor and its bytes.
    pub fn received(&self, pos: u32) -> Option<(RxDesc, Vec<u8>)> {
        let d = self.rx.poll(pos)?;
        Some((d, self.read(self.buffer(pos), d.len().into())))
    }
}

pub const WHOLE: u8 = tx_cmd::EOP | tx_cmd::IFCS | tx_cmd::RS;

pub fn data(buffer: u64, len: usize, cmd: u8) -> TxDesc {
    TxDesc::data(TxData { buffer, len: len as u16, cmd, payload_len: len as u32, ..TxData::default() })
}

/// A frame of `len` bytes that says which it is.
pub fn frame(n: u8, len: usize) -> Vec<u8> {
    let mut f = vec![n; len];
    f[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9]);
    f[12..14].copy_from_slice(&[0x88, 0xB5]);
    f
}
