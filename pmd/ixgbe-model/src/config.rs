//! The engine's private copy of what the registers say, so that no frame costs an atomic load.

use ixgbe_defs::{Queue, regs, stats};

use crate::filters::{Filters, Rss};
use crate::regs::RegisterFile;

pub(crate) struct Config {
    /// RXEN set.
    pub(crate) rx_on: bool,
    /// The receive path takes no frames; what is in it still reaches memory (82599 4.6.7.1, 8.2.3.13.1).
    pub(crate) rx_halted: bool,
    /// TE set.
    pub(crate) tx_on: bool,
    /// Longest frame with CRC, without a VLAN tag.
    pub(crate) max_frame: usize,
    pub(crate) store_bad: bool,
    pub(crate) strip_crc: bool,
    pub(crate) pad: bool,
    /// The hash goes into the descriptor.
    pub(crate) report_hash: bool,
    /// The ether type of inserted tags.
    pub(crate) insert_type: u16,
    /// Bytes of the receive packet buffer.
    pub(crate) packet_buffer: usize,
    pub(crate) filters: Filters,
    pub(crate) rss: Option<Rss>,
    rx_counter: [u8; Queue::COUNT as usize],
    tx_counter: [u8; Queue::COUNT as usize],
    /// The tables' change count that this is a copy of.
    tables: u64,
}

/// The longest frame without `HLREG0.JUMBOEN` (82599 8.2.3.22.13).
const STANDARD_FRAME: usize = 1518;

impl Config {
    pub(crate) fn load(file: &RegisterFile) -> Self {
        let tables = file.table_changes();
        let counter = |at: fn(u32) -> hw::Reg| {
            core::array::from_fn(|q| (file.get(at(q as u32 / 4)) >> (q % 4 * 8) & 0xF) as u8)
        };
        let mut config = Self {
            rx_on: false,
            rx_halted: false,
            tx_on: false,
            max_frame: 0,
            store_bad: false,
            strip_crc: true,
            pad: true,
            report_hash: false,
            insert_type: 0,
            packet_buffer: 0,
            filters: Filters::load(file),
            rss: Rss::load(file),
            rx_counter: counter(stats::rqsmr),
            tx_counter: counter(stats::tqsm),
            tables,
        };
        config.switch(file);
        config
    }

    /// Becomes what the registers say now; tables are copied again only if one has changed.
    pub(crate) fn refresh(&mut self, file: &RegisterFile) {
        if self.tables != file.table_changes() {
            *self = Self::load(file);
        } else {
            self.switch(file);
        }
    }

    fn switch(&mut self, file: &RegisterFile) {
        let hlreg0 = file.get(regs::HLREG0);
        let mfs = (file.get(regs::MAXFRS) >> regs::maxfrs::MFS_SHIFT) as usize;
        let halted = file.get(regs::SECRXCTRL) & regs::secrxctrl::RX_DIS != 0;
        let master = file.get(regs::CTRL) & regs::ctrl::MASTER_DISABLE == 0;
        let dmatx = file.get(regs::DMATXCTL);
        let jumbo = hlreg0 & regs::hlreg0::JUMBOEN != 0;
        let kib = (file.get(regs::rxpbsize(0)) & regs::PBSIZE_MASK) >> regs::PBSIZE_SHIFT;
        self.rx_halted = halted;
        self.rx_on = master && file.get(regs::RXCTRL) & regs::rxctrl::RXEN != 0;
        self.tx_on = master && dmatx & regs::dmatxctl::TE != 0;
        self.max_frame = if jumbo { mfs.min(ixgbe_defs::MAX_FRAME_BYTES) } else { STANDARD_FRAME };
        self.store_bad = file.get(regs::FCTRL) & regs::fctrl::SBP != 0;
        self.strip_crc = hlreg0 & regs::hlreg0::RXCRCSTRP != 0;
        self.pad = hlreg0 & regs::hlreg0::TXPADEN != 0;
        self.report_hash = file.get(regs::RXCSUM) & regs::rxcsum::PCSD != 0;
        self.insert_type = (dmatx >> regs::dmatxctl::VT_SHIFT) as u16;
        self.packet_buffer = kib as usize * 1024;
        self.filters.switch(file);
    }

    #[inline]
    pub(crate) fn rx_counter(&self, q: Queue) -> u32 {
        u32::from(self.rx_counter[q.index()])
    }
    #[inline]
    pub(crate) fn tx_counter(&self, q: Queue) -> u32 {
        u32::from(self.tx_counter[q.index()])
    }
}
