//! The engine: the one owner of the data path. It looks at the registers, moves frames, and publishes what it counted.

use std::sync::{Arc, Mutex, PoisonError};

use hw::DmaPool;
use ixgbe_defs::{MAX_FRAME_BYTES, regs};

use crate::Parameters;
use crate::config::Config;
use crate::count::{Count, Totals};
use crate::modes::{Liar, Mode};
use crate::queue::Ctx;
use crate::regs::RegisterFile;
use crate::rx::RxSide;
use crate::tx::TxSide;
use crate::wire::Wire;

/// What a test or a demo sets from outside.
#[derive(Clone, Copy)]
pub(crate) struct Control {
    pub(crate) mode: Mode,
    pub(crate) link: bool,
    pub(crate) swallow: [u64; 2],
}

/// What the engine shares with drivers and handles.
pub(crate) struct Shared {
    pub(crate) file: RegisterFile,
    pub(crate) control: Mutex<Control>,
    pub(crate) rings: Arc<DmaPool>,
    pub(crate) params: Parameters,
}

/// How many working steps may pass before counters are published; an idle step always publishes.
const UNPUBLISHED: u32 = 16;

/// The data path of one device, with what is at the end of its cable.
pub struct Engine<W> {
    shared: Arc<Shared>,
    wire: W,
    rx: RxSide,
    tx: TxSide,
    config: Config,
    totals: Totals,
    mode: Mode,
    liar: Liar,
    link: bool,
    swallow: [u64; 2],
    room: Box<[u8]>,
    /// The value of the registers' change count that has been acted on.
    seen: u64,
    /// Steps until the device has settled after a reset.
    settle: u32,
    in_reset: bool,
    unpublished: u32,
}

/// Steps from a reset to a link: one for the EEPROM and the DMA unit, one for the link.
const SETTLE: u32 = 2;

impl<W: Wire> Engine<W> {
    pub(crate) fn new(shared: Arc<Shared>, wire: W) -> Self {
        Self {
            config: Config::load(&shared.file),
            wire,
            rx: RxSide::new(),
            tx: TxSide::new(),
            totals: Totals::new(),
            mode: Mode::Normal,
            liar: Liar::new(Mode::Normal),
            link: false,
            swallow: [0; 2],
            room: vec![0; MAX_FRAME_BYTES + 8].into(),
            seen: 0,
            settle: SETTLE,
            in_reset: false,
            unpublished: 0,
            shared,
        }
    }

    /// What is at the end of the cable.
    pub const fn wire(&self) -> &W {
        &self.wire
    }

    /// What is at the end of the cable, to be changed.
    pub const fn wire_mut(&mut self) -> &mut W {
        &mut self.wire
    }

    /// One unit of work: what the registers ask for, then up to a burst of frames in, then up to a burst of each queue
    /// out. Returns the frames that moved. Deterministic: nothing but registers, memory and wire decides what it does.
    pub fn step(&mut self) -> usize {
        self.shared.file.port.iommu.let_go();
        let changes = self.shared.file.changes();
        if changes != self.seen || self.settle > 0 {
            self.seen = changes;
            self.look();
        }
        if self.in_reset || !self.link {
            return 0;
        }
        let moved = self.run();
        self.unpublished += u32::from(moved > 0);
        if moved == 0 || self.unpublished >= UNPUBLISHED || self.shared.params.logged {
            self.publish();
        }
        moved
    }

    fn run(&mut self) -> usize {
        let mut ctx = Ctx {
            file: &self.shared.file,
            config: &self.config,
            totals: &mut self.totals,
            liar: &mut self.liar,
            params: &self.shared.params,
            swallow: &mut self.swallow,
        };
        let mut moved = 0;
        if self.config.rx_on {
            moved += self.rx.run(&mut ctx, &mut self.wire, &mut self.room);
        }
        if self.config.tx_on {
            moved += self.tx.run(&mut ctx, &mut self.wire);
        }
        if moved > 0 {
            self.wire.end_burst();
        }
        if self.config.rx_halted {
            self.report_empty();
        }
        moved
    }

    /// Makes all counters visible.
    fn publish(&mut self) {
        self.unpublished = 0;
        let file = &self.shared.file;
        self.totals.publish(&file.published);
        self.rx.publish(file);
        self.tx.publish(file);
    }

    /// Does what registers and handles ask for.
    #[cold]
    fn look(&mut self) {
        self.take_control();
        if self.shared.file.get(regs::CTRL) & (regs::ctrl::RST | regs::ctrl::LRST) != 0 {
            return self.reset();
        }
        self.in_reset = false;
        self.settle();
        self.config.refresh(&self.shared.file);
        let shared = Arc::clone(&self.shared);
        let mut ctx = Ctx {
            file: &shared.file,
            config: &self.config,
            totals: &mut self.totals,
            liar: &mut self.liar,
            params: &shared.params,
            swallow: &mut self.swallow,
        };
        self.rx.switch(&mut ctx);
        self.tx.switch(&mut ctx);
        self.report();
    }

    fn take_control(&mut self) {
        let mut control = self.shared.control.lock().unwrap_or_else(PoisonError::into_inner);
        for (mine, given) in self.swallow.iter_mut().zip(&mut control.swallow) {
            *mine += core::mem::take(given);
        }
        let mode = control.mode;
        drop(control);
        if mode != self.mode {
            self.liar = self.liar.after(mode);
            self.mode = mode;
        }
    }

    /// 82599 4.2.1.6.1. Descriptors on the die are forgotten; nothing is written back.
    fn reset(&mut self) {
        self.rx.publish(&self.shared.file);
        self.tx.publish(&self.shared.file);
        self.rx.clear();
        self.tx.clear();
        self.link = false;
        self.in_reset = self.liar.stall.reset;
        if self.in_reset {
            return;
        }
        self.totals.add(Count::Resets, 1);
        self.totals.publish(&self.shared.file.published);
        self.config = Config::load(&self.shared.file);
        self.settle = SETTLE;
        self.shared.file.reset();
    }

    /// The EEPROM is read and the DMA unit is ready a step after a reset, the link a step later.
    fn settle(&mut self) {
        let (file, params) = (&self.shared.file, &self.shared.params);
        if self.settle == SETTLE {
            let [a, b, c, d, e, f] = params.address;
            file.set(regs::ral(0), u32::from_le_bytes([a, b, c, d]));
            file.set(regs::rah(0), u32::from(u16::from_le_bytes([e, f])) | regs::rah_bits::AV);
            file.tables_changed();
            file.update(regs::EEC, 0, regs::eec::AUTO_RD);
            file.update(regs::RDRXCTL, 0, regs::rdrxctl::DMAIDONE);
        }
        self.settle = self.settle.saturating_sub(1);
        if file.get(regs::AUTOC) & regs::autoc::RESTART_AN != 0 {
            file.update(regs::AUTOC, regs::autoc::RESTART_AN, 0);
            self.settle = self.settle.max(1);
        }
        let switched_on = self.shared.control.lock().unwrap_or_else(PoisonError::into_inner).link;
        let link = switched_on && self.settle == 0;
        if link != self.link {
            self.link = link;
            file.update(regs::EICR, 0, regs::eicr::LSC);
        }
    }

    /// What the device reports about itself: link, master, data path.
    fn report(&self) {
        let file = &self.shared.file;
        let (up, speed) = (regs::links::UP, regs::links::SPEED_10G);
        file.set(regs::LINKS, if self.link { up | speed } else { 0 });
        let master = file.get(regs::CTRL) & regs::ctrl::MASTER_DISABLE == 0;
        let bits = [(self.link, regs::status::LINK_UP), (master, regs::status::MASTER_ENABLED)];
        file.set(regs::STATUS, bits.iter().map(|(on, bit)| if *on { *bit } else { 0 }).sum());
        self.report_empty();
    }

    /// SECRX_RDY: the receive path takes nothing more and is empty (82599 8.2.3.13.2).
    fn report_empty(&self) {
        let ready = self.config.rx_halted && (self.rx.is_empty() || !self.config.rx_on);
        self.shared.file.set(regs::SECRXSTAT, if ready { regs::secrxstat::SECRX_RDY } else { 0 });
    }
}
