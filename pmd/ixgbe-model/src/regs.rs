//! The register file as a driver sees it: side effects of single accesses (82599 8.2.3).
//!
//! What a register *does* to the data path is done by the engine, which looks when `changes` moves.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hw::{Reg, Registers};
use ixgbe_defs::{BAR_BYTES, Queue, regs};

use crate::count::{Cause, Direction, Place, Published, TOTALS};
use crate::dma::Port;
use crate::malformed::Malformed;
use crate::register_map::{self, Kind, kind as kind_of};

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
    /// ENABLE bits as the driver wants them, receive then transmit.
    asked: [AtomicU64; 4],
    /// ENABLE bits as the engine has them.
    enabled: [AtomicU64; 4],
    /// Moves with every store that the engine has to look at. Tails are not among them: it polls those.
    changes: AtomicU64,
    /// Moves with every store to a table: addresses, hashes, VLANs, RSS, counter maps.
    table_changes: AtomicU64,
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
            // SAFETY: all zeroes is a valid atomic, and so are many of them.
            words: unsafe { Box::new_zeroed_slice(BAR_BYTES / 4).assume_init() },
            asked: [const { AtomicU64::new(0) }; 4],
            enabled: [const { AtomicU64::new(0) }; 4],
            changes: AtomicU64::new(1),
            table_changes: AtomicU64::new(1),
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
        for range in register_map::USED {
            for w in &self.words[(range.start / 4).max(1)..range.end / 4] {
                w.store(0, Ordering::Relaxed);
            }
        }
        for e in self.enabled.iter().chain(&self.asked) {
            e.store(0, Ordering::Relaxed);
        }
        self.tables_changed();
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
    pub(crate) fn tables_changed(&self) {
        self.table_changes.fetch_add(1, Ordering::Release);
    }
    /// As [`RegisterFile::changes`], of the tables.
    pub(crate) fn table_changes(&self) -> u64 {
        self.table_changes.load(Ordering::Acquire)
    }
    /// The queues that the driver wants switched, on or off.
    pub(crate) fn to_switch(&self, d: Direction) -> impl Iterator<Item = (Queue, bool)> {
        let first = d as usize * 2;
        let both = [first, first + 1].map(|w| {
            let asked = self.asked[w].load(Ordering::Acquire);
            (asked, asked ^ self.enabled[w].load(Ordering::Acquire))
        });
        let asked = u128::from(both[1].0) << 64 | u128::from(both[0].0);
        let mut left = u128::from(both[1].1) << 64 | u128::from(both[0].1);
        core::iter::from_fn(move || {
            let n = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            Some((Queue::new(n as u8)?, asked & 1u128.checked_shl(n)? != 0))
        })
    }
    /// The engine has switched a queue.
    pub(crate) fn set_enabled(&self, d: Direction, q: Queue, on: bool) {
        set_bit(&self.enabled, d, q, on);
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
            Kind::Alias(other) => self.read_kind(other, kind_of(other)),
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
            | Kind::Table
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
            Kind::Alias(other) => return self.write_kind(other, kind_of(other), value),
            Kind::Plain | Kind::Semaphore => self.set(reg, value),
            Kind::Table => {
                self.set(reg, value);
                self.tables_changed();
            }
            Kind::Enable(d, q) => {
                self.set(reg, value);
                set_bit(&self.asked, d, q, value & ENABLE != 0);
            }
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
        let kind = kind_of(reg);
        self.note(Cause::MmioRead, reg, kind);
        self.read_kind(reg, kind)
    }
    fn write32(&self, reg: Reg, value: u32) {
        let kind = kind_of(reg);
        self.note(Cause::MmioWrite, reg, kind);
        self.write_kind(reg, kind, value);
    }
}

const ENABLE: u32 = regs::rxdctl_bits::ENABLE;
const _: () = assert!(ENABLE == regs::txdctl_bits::ENABLE);

fn set_bit(words: &[AtomicU64; 4], d: Direction, q: Queue, on: bool) {
    let (word, bit) = enabled_at(d, q);
    if on {
        words[word].fetch_or(bit, Ordering::AcqRel);
    } else {
        words[word].fetch_and(!bit, Ordering::AcqRel);
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
