//! The register file as a driver sees it: side effects of single accesses (82599 8.2.3).
//!
//! What a register *does* to the data path is done by the engine, which looks when `changes` moves.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hw::{Reg, Registers};
use ixgbe_defs::{BAR_BYTES, Queue, regs, stats};

use crate::count::{Cause, Count, Direction, PerQueue, Place, Published, TOTALS};
use crate::dma::Port;
use crate::tx::Malformed;

/// What an access to a register means.
#[derive(Clone, Copy)]
enum Kind {
    /// No register of this device, or one that the model does not have.
    Unknown,
    /// Reads what was written.
    Plain,
    /// Written by the device alone.
    ReadOnly,
    /// Another name of the register.
    Alias(Reg),
    /// A tail: the doorbell of a queue.
    Tail(Direction, Queue),
    /// A head: the device's, unless the queue is off.
    Head(Direction, Queue),
    /// RXDCTL or TXDCTL: ENABLE reads what the engine has done.
    Enable(Direction, Queue),
    /// EERD.
    EepromRead,
    /// SWSM: reading takes SMBI.
    Semaphore,
    /// EICR: reading clears, writing 1 clears.
    Causes,
    /// EICS: writing 1 sets causes.
    CausesSet,
    /// EIMS: writing 1 sets.
    MaskSet,
    /// EIMC: writing 1 clears EIMS; reads 0.
    MaskClear,
    /// AUTOC: RESTART_AN clears itself.
    AutoNegotiation,
    /// RDRXCTL: DMAIDONE is the device's.
    ReceiveDma,
    /// A 32-bit statistic.
    Narrow(Place),
    /// The low half of a 36-bit statistic.
    Low(Place),
    /// Its high half.
    High(Place),
    /// A statistic of which this model sees none: reads 0.
    Zero,
}

fn rx_block(offset: u32, base: u32, first: u8) -> Kind {
    let n = ((offset - base) >> 6) as u8;
    let Some(queue) = Queue::new(first + n) else { return Kind::Unknown };
    let counter = u32::from(n);
    match offset & 0x3F {
        0x00 | 0x04 | 0x08 | 0x0C | 0x14 | 0x2C => Kind::Plain,
        0x10 => Kind::Head(Direction::Rx, queue),
        0x18 => Kind::Tail(Direction::Rx, queue),
        0x28 => Kind::Enable(Direction::Rx, queue),
        0x30 if first == 0 && n < 16 => Kind::Narrow(Place::queue(PerQueue::RxPackets, counter)),
        0x34 if first == 0 && n < 16 => Kind::Low(Place::queue(PerQueue::RxBytes, counter)),
        0x38 if first == 0 && n < 16 => Kind::High(Place::queue(PerQueue::RxBytes, counter)),
        0x30 if first == 0 && n < 32 => Kind::Narrow(Place::queue(PerQueue::RxDropped, counter - 16)),
        _ => Kind::Unknown,
    }
}

fn tx_block(offset: u32) -> Kind {
    let n = ((offset - 0x6000) >> 6) as u8;
    let Some(queue) = Queue::new(n) else { return Kind::Unknown };
    match offset & 0x3F {
        0x00 | 0x04 | 0x08 | 0x0C | 0x38 | 0x3C => Kind::Plain,
        0x10 => Kind::Head(Direction::Tx, queue),
        0x18 => Kind::Tail(Direction::Tx, queue),
        0x28 => Kind::Enable(Direction::Tx, queue),
        0x30 if n < 16 => Kind::Narrow(Place::queue(PerQueue::TxPackets, u32::from(n))),
        _ => Kind::Unknown,
    }
}

fn kind(reg: Reg) -> Kind {
    let at = reg.0;
    match at {
        0x01000..=0x01FFF => rx_block(at, 0x01000, 0),
        0x0D000..=0x0DFFF => rx_block(at, 0x0D000, 64),
        0x06000..=0x07FFF => tx_block(at),
        0x00004 => Kind::Alias(regs::CTRL),
        0x02100..=0x0213C => Kind::Alias(Reg(0x01014 + (at - 0x02100) * 16)),
        0x05400..=0x0547C => Kind::Alias(Reg(regs::ral(0).0 + (at - 0x05400))),
        0x05C00..=0x05C7C => Kind::Alias(Reg(regs::reta(0).0 + (at - 0x05C00))),
        0x05C80..=0x05CA4 => Kind::Alias(Reg(regs::rssrk(0).0 + (at - 0x05C80))),
        0x05818 => Kind::Alias(regs::MRQC),
        0x08680..=0x086BC => Kind::Alias(stats::qptc((at - 0x08680) / 4)),
        0x0A000..=0x0A9FC | 0x05200..=0x053FC | 0x0EA00..=0x0EAFC | 0x0EB00..=0x0EB7C | 0x0EB80..=0x0EBA4 => {
            Kind::Plain
        }
        0x02300..=0x0237C | 0x08600..=0x0867C => Kind::Plain,
        0x03200..=0x0320C | 0x03220..=0x0323C | 0x03260..=0x0327C | 0x032A0 => Kind::Plain,
        0x03C00..=0x03C1C | 0x0CC00..=0x0CC1C | 0x04950..=0x0496C => Kind::Plain,
        0x00AA0..=0x00AA4 | 0x00AB0..=0x00AB4 => Kind::Plain,
        _ => single(reg),
    }
}

fn single(reg: Reg) -> Kind {
    use regs::{
        AUTOC, AUTOC2, CTRL, CTRL_EXT, DMATXCTL, DTXMXSZRQ, EEC, EERD, EICR, EICS, EIMC, EIMS, FCCFG, FCTRL,
        FWSM, GCR_EXT, HLREG0, LINKS, MAXFRS, MCSTCTRL, MFLCN, MRQC, MTQC, RDRXCTL, RFCTL, RTTDCS, RXCSUM,
        RXCTRL, SECRXCTRL, SECRXSTAT, STATUS, SW_FW_SYNC, SWSM, VLNCTRL,
    };
    match reg {
        CTRL | CTRL_EXT | SW_FW_SYNC | GCR_EXT | FCTRL | VLNCTRL | MCSTCTRL | RXCSUM | RFCTL | MRQC
        | RXCTRL | DTXMXSZRQ | DMATXCTL | MTQC | RTTDCS | SECRXCTRL | HLREG0 | MAXFRS | AUTOC2 | MFLCN
        | FCCFG => Kind::Plain,
        STATUS | EEC | FWSM | SECRXSTAT | LINKS => Kind::ReadOnly,
        EERD => Kind::EepromRead,
        SWSM => Kind::Semaphore,
        EICR => Kind::Causes,
        EICS => Kind::CausesSet,
        EIMS => Kind::MaskSet,
        EIMC => Kind::MaskClear,
        AUTOC => Kind::AutoNegotiation,
        RDRXCTL => Kind::ReceiveDma,
        _ => statistic(reg),
    }
}

fn statistic(reg: Reg) -> Kind {
    let narrow = |c: Count| Kind::Narrow(c.into());
    match reg {
        stats::CRCERRS => narrow(Count::RxBadCrc),
        stats::PRC64 => narrow(Count::RxSize64),
        stats::PRC127 => narrow(Count::RxSize127),
        stats::PRC255 => narrow(Count::RxSize255),
        stats::PRC511 => narrow(Count::RxSize511),
        stats::PRC1023 => narrow(Count::RxSize1023),
        stats::PRC1522 => narrow(Count::RxSizeMax),
        stats::GPRC => narrow(Count::RxGood),
        stats::BPRC => narrow(Count::RxBroadcast),
        stats::MPRC => narrow(Count::RxMulticast),
        stats::GPTC | stats::TPT => narrow(Count::TxGood),
        stats::GORCL => Kind::Low(Count::RxGoodBytes.into()),
        stats::GORCH => Kind::High(Count::RxGoodBytes.into()),
        stats::GOTCL => Kind::Low(Count::TxGoodBytes.into()),
        stats::GOTCH => Kind::High(Count::TxGoodBytes.into()),
        stats::RUC => narrow(Count::RxUndersize),
        stats::RFC => narrow(Count::RxFragment),
        stats::ROC => narrow(Count::RxOversize),
        stats::RJC => narrow(Count::RxJabber),
        stats::TORL => Kind::Low(Count::RxBytes.into()),
        stats::TORH => Kind::High(Count::RxBytes.into()),
        stats::TPR => narrow(Count::RxFrames),
        stats::PTC64 => narrow(Count::TxSize64),
        stats::PTC127 => narrow(Count::TxSize127),
        stats::PTC255 => narrow(Count::TxSize255),
        stats::PTC511 => narrow(Count::TxSize511),
        stats::PTC1023 => narrow(Count::TxSize1023),
        stats::PTC1522 => narrow(Count::TxSizeMax),
        stats::MPTC => narrow(Count::TxMulticast),
        stats::BPTC => narrow(Count::TxBroadcast),
        stats::XEC => narrow(Count::RxBadChecksum),
        stats::RXDGPC => narrow(Count::RxToHost),
        stats::RXDGBCL => Kind::Low(Count::RxToHostBytes.into()),
        stats::RXDGBCH => Kind::High(Count::RxToHostBytes.into()),
        stats::TXDGPC => narrow(Count::TxFromHost),
        stats::TXDGBCL => Kind::Low(Count::TxFromHostBytes.into()),
        stats::TXDGBCH => Kind::High(Count::TxFromHostBytes.into()),
        stats::ILLERRC | stats::ERRBC | stats::MLFC | stats::MRFC | stats::RLEC => Kind::Zero,
        Reg(0x08700..=0x0877C) => {
            let place = Place::queue(PerQueue::TxBytes, (reg.0 - 0x08700) / 8);
            if reg.0 & 4 == 0 { Kind::Low(place) } else { Kind::High(place) }
        }
        r if r == stats::mpc(0) => narrow(Count::RxMissed),
        Reg(0x03FA4..=0x03FBC) => Kind::Zero,
        _ => Kind::Unknown,
    }
}

/// What was counted when a statistic was last read.
struct Cleared {
    base: [u64; TOTALS],
    latched: [Option<u64>; TOTALS],
}

/// Malformed descriptors that are kept; beyond them they are only counted.
const MALFORMED_KEPT: usize = 64;

/// The registers, shared between driver and engine.
pub(crate) struct RegisterFile {
    words: Box<[AtomicU32]>,
    /// ENABLE bits as the engine has them, receive then transmit.
    enabled: [AtomicU64; 4],
    /// Moves with every store that the engine has to look at. Tails are not among them: it polls those.
    changes: AtomicU64,
    cleared: Mutex<Cleared>,
    eeprom: [u16; 64],
    stray: AtomicU64,
    malformed: Mutex<Vec<(Queue, Malformed)>>,
    pub(crate) published: Published,
    pub(crate) port: Port,
}

impl RegisterFile {
    pub(crate) fn new(port: Port) -> Self {
        let file = Self {
            words: (0..BAR_BYTES / 4).map(|_| AtomicU32::new(0)).collect(),
            enabled: [const { AtomicU64::new(0) }; 4],
            changes: AtomicU64::new(1),
            cleared: Mutex::new(Cleared { base: [0; TOTALS], latched: [None; TOTALS] }),
            eeprom: eeprom(),
            stray: AtomicU64::new(0),
            malformed: Mutex::new(Vec::new()),
            published: Published::new(),
            port,
        };
        file.defaults();
        file
    }

    /// Everything as after a reset (82599 4.2.1.6.1 and the initial values of 8.2.3). Statistics start again.
    pub(crate) fn reset(&self) {
        // CTRL comes last: a driver that sees its RST bit gone may write everything else.
        for w in &self.words[1..] {
            if w.load(Ordering::Relaxed) != 0 {
                w.store(0, Ordering::Relaxed);
            }
        }
        for e in &self.enabled {
            e.store(0, Ordering::Relaxed);
        }
        let mut cleared = self.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        for (base, now) in cleared.base.iter_mut().zip(self.published.all()) {
            *base = now;
        }
        cleared.latched = [None; TOTALS];
        drop(cleared);
        self.defaults();
        self.set(regs::CTRL, 0);
    }

    fn defaults(&self) {
        const INITIAL: [(Reg, u32); 12] = [
            (regs::EEC, regs::eec::EE_PRES),
            (regs::STATUS, regs::status::MASTER_ENABLED),
            (regs::HLREG0, regs::hlreg0::RESET),
            (regs::MAXFRS, 1518 << regs::maxfrs::MFS_SHIFT),
            (regs::VLNCTRL, 0x8100),
            (regs::DMATXCTL, 0x8100 << regs::dmatxctl::VT_SHIFT),
            (regs::rxpbsize(0), 512 << regs::PBSIZE_SHIFT),
            (regs::txpbsize(0), 160 << regs::PBSIZE_SHIFT),
            (regs::AUTOC, regs::autoc::LMS_10G_SERIAL),
            (regs::AUTOC2, regs::autoc2::SERIAL_10G_SFI),
            (regs::DTXMXSZRQ, 0x10),
            (regs::SECRXCTRL, regs::secrxctrl::SECRX_DIS),
        ];
        for (reg, value) in INITIAL {
            self.set(reg, value);
        }
        for q in (0..Queue::COUNT).filter_map(Queue::new) {
            self.set(regs::srrctl(q), 0x402);
            self.set(regs::dca_rxctrl(q), regs::dca_rxctrl_bits::CLEAR_AT_INIT);
        }
    }

    fn word(&self, reg: Reg) -> &AtomicU32 {
        &self.words[reg.0 as usize / 4]
    }

    /// The engine's view of a register.
    #[inline]
    pub(crate) fn get(&self, reg: Reg) -> u32 {
        self.word(reg).load(Ordering::Acquire)
    }
    /// The engine's store: no side effect.
    #[inline]
    pub(crate) fn set(&self, reg: Reg, value: u32) {
        self.word(reg).store(value, Ordering::Release);
    }
    /// The engine sets and clears bits.
    pub(crate) fn update(&self, reg: Reg, clear: u32, set: u32) {
        let word = self.word(reg);
        let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |v| Some(v & !clear | set));
    }
    /// A number that moves with every change the engine has to look at.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
    /// Makes the engine look.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
    /// Whether the driver asks for the queue to be on.
    pub(crate) fn asked(&self, d: Direction, q: Queue) -> bool {
        self.get(control_of(d, q)) & ENABLE != 0
    }
    /// The engine has switched a queue.
    pub(crate) fn set_enabled(&self, d: Direction, q: Queue, on: bool) {
        let (word, bit) = enabled_at(d, q);
        if on {
            self.enabled[word].fetch_or(bit, Ordering::AcqRel);
        } else {
            self.enabled[word].fetch_and(!bit, Ordering::AcqRel);
        }
    }
    fn enabled(&self, d: Direction, q: Queue) -> bool {
        let (word, bit) = enabled_at(d, q);
        self.enabled[word].load(Ordering::Acquire) & bit != 0
    }

    /// Register accesses that named no register this device has.
    pub(crate) fn stray(&self) -> u64 {
        self.stray.load(Ordering::Relaxed)
    }

    /// A transmit queue hangs. Once per queue and enable, so the list stays short.
    pub(crate) fn malformed(&self, q: Queue, m: Malformed) {
        let mut list = self.malformed.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < MALFORMED_KEPT {
            list.push((q, m));
        }
    }
    /// What hung transmit queues, in order.
    pub(crate) fn all_malformed(&self) -> Vec<(Queue, Malformed)> {
        self.malformed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn since(&self, at: Place, clear: bool) -> u64 {
        let mut c = self.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        let now = c.latched[at.index()].take().unwrap_or_else(|| self.published.total(at));
        let value = now - c.base[at.index()];
        if clear {
            c.base[at.index()] = now;
        } else {
            c.latched[at.index()] = Some(now);
        }
        value
    }

    fn note(&self, cause: Cause, reg: Reg, kind: Kind) {
        let queue = match kind {
            Kind::Tail(d, q) | Kind::Head(d, q) | Kind::Enable(d, q) => Some((d, q)),
            _ => None,
        };
        if let Some((d, q)) = queue {
            self.published.mmio(d, q, cause);
        }
        self.port.mmio(cause, queue, reg);
    }

    fn read_kind(&self, reg: Reg, kind: Kind) -> u32 {
        match kind {
            Kind::Alias(other) => self.read_kind(other, self::kind(other)),
            Kind::Enable(d, q) => self.get(reg) & !ENABLE | if self.enabled(d, q) { ENABLE } else { 0 },
            Kind::Semaphore => self.word(reg).fetch_or(regs::swsm::SMBI, Ordering::AcqRel),
            Kind::Causes => self.word(reg).swap(0, Ordering::AcqRel),
            Kind::Narrow(at) => u32::try_from(self.since(at, true)).unwrap_or(u32::MAX),
            Kind::Low(at) => self.since(at, false) as u32,
            Kind::High(at) => (self.since(at, true) >> 32) as u32 & 0xF,
            Kind::CausesSet | Kind::MaskClear | Kind::Zero => 0,
            Kind::Unknown => {
                self.stray.fetch_add(1, Ordering::Relaxed);
                0
            }
            Kind::Plain
            | Kind::ReadOnly
            | Kind::Tail(..)
            | Kind::Head(..)
            | Kind::EepromRead
            | Kind::MaskSet
            | Kind::AutoNegotiation
            | Kind::ReceiveDma => self.get(reg),
        }
    }

    fn write_kind(&self, reg: Reg, kind: Kind, value: u32) {
        match kind {
            Kind::Tail(..) => return self.set(reg, value & regs::INDEX_MASK),
            Kind::Alias(other) => return self.write_kind(other, self::kind(other), value),
            Kind::Plain | Kind::Enable(..) | Kind::Semaphore => self.set(reg, value),
            Kind::Head(d, q) if !self.enabled(d, q) => self.set(reg, value & regs::INDEX_MASK),
            Kind::EepromRead => self.set(reg, self.eeprom_read(value)),
            Kind::Causes => self.update(reg, value, 0),
            Kind::CausesSet => self.update(regs::EICR, 0, value),
            Kind::MaskSet => self.update(reg, 0, value),
            Kind::MaskClear => self.update(regs::EIMS, value, 0),
            Kind::AutoNegotiation => self.set(reg, value),
            Kind::ReceiveDma => self.update(reg, !regs::rdrxctl::DMAIDONE, value & !regs::rdrxctl::DMAIDONE),
            Kind::Unknown => {
                self.stray.fetch_add(1, Ordering::Relaxed);
            }
            Kind::ReadOnly | Kind::Head(..) | Kind::Narrow(_) | Kind::Low(_) | Kind::High(_) | Kind::Zero => {
            }
        }
        self.changed();
    }

    fn eeprom_read(&self, asked: u32) -> u32 {
        use regs::eerd::{ADDR_MASK, ADDR_SHIFT, DATA_SHIFT, DONE, START};
        if asked & START == 0 {
            return asked & !DONE;
        }
        let word = ((asked & ADDR_MASK) >> ADDR_SHIFT) as usize;
        let data = self.eeprom.get(word).copied().unwrap_or(u16::MAX);
        asked & ADDR_MASK | DONE | u32::from(data) << DATA_SHIFT
    }
}

impl Registers for RegisterFile {
    fn len(&self) -> usize {
        BAR_BYTES
    }
    fn read32(&self, reg: Reg) -> u32 {
        let kind = kind(reg);
        self.note(Cause::MmioRead, reg, kind);
        self.read_kind(reg, kind)
    }
    fn write32(&self, reg: Reg, value: u32) {
        let kind = kind(reg);
        self.note(Cause::MmioWrite, reg, kind);
        self.write_kind(reg, kind, value);
    }
}

const ENABLE: u32 = regs::rxdctl_bits::ENABLE;
const _: () = assert!(ENABLE == regs::txdctl_bits::ENABLE);

const fn control_of(d: Direction, q: Queue) -> Reg {
    match d {
        Direction::Rx => regs::rxdctl(q),
        Direction::Tx => regs::txdctl(q),
    }
}

const fn enabled_at(d: Direction, q: Queue) -> (usize, u64) {
    (d as usize * 2 + q.index() / 64, 1 << (q.index() % 64))
}

/// Blank, with the checksum of 82599 6.2.5.1: words 0 to 0x3F sum to 0xBABA.
fn eeprom() -> [u16; 64] {
    let mut words = [0; 64];
    words[0x3F] = 0xBABA;
    words
}
