//! Reset and initialization, in the data sheet's order (4.6.3).

use std::time::Duration;

use hw::{Bus, HwError, Iova, Reg};
use ixgbe_defs::device::Controller;
use ixgbe_defs::{Queue, regs};
use port::PortConfig;
use ring::RingSize;

use crate::device::Device;
use crate::{MAX_QUEUES, RssBy};

/// Bytes of the frame check sequence.
pub const CRC: u32 = 4;
/// The longest frame without JUMBOEN, check sequence included (8.2.3.22.8).
const STANDARD_FRAME: u32 = 1518;
/// Receive packet buffer in KiB: 82599 3.4.5, X540 3.4.5.
const fn rx_buffer(controller: Controller) -> u32 {
    match controller {
        Controller::X540 => 384,
        _ => 512,
    }
}
/// Transmit packet buffer in KiB (3.4.5).
const TX_BUFFER: u32 = 160;

/// 4.6.3.1: all causes masked, those of the queues' vectors too.
fn mask_interrupts<B: Bus>(d: &Device<B>) {
    d.bar.write32(regs::EIMC, regs::eicr::ALL);
    for n in 0..2 {
        d.bar.write32(regs::eimc_ex(n), u32::MAX);
    }
    // A load flushes the posted stores, and clears what is pending (8.2.3.5.1).
    let _ = d.bar.read32(regs::EICR);
}

/// Resets the device: 4.6.3 with 4.2.1.6.1 and 5.2.5.3.2. Afterwards it has forgotten all rings and buffers.
pub fn reset<B: Bus>(d: &Device<B>) -> Result<(), HwError> {
    use regs::ctrl::{LRST, MASTER_DISABLE, RST};
    mask_interrupts(d);
    // 5.2.5.3.2: no new request starts, and those under way end, before the reset.
    d.bar.modify32(regs::CTRL, MASTER_DISABLE, MASTER_DISABLE);
    if d.wait_for("ending its requests", regs::STATUS, regs::status::MASTER_ENABLED, false).is_err() {
        // 4.2.1.7 for requests that do not end: flush the data path, and let the reset below cut the rest.
        tracing::warn!("requests of the device do not end; flushing its data path before the reset");
        d.bar.modify32(regs::GCR_EXT, regs::gcr_ext::BUFFERS_CLEAR, regs::gcr_ext::BUFFERS_CLEAR);
        d.rest(Duration::from_micros(20));
        d.bar.modify32(regs::GCR_EXT, regs::gcr_ext::BUFFERS_CLEAR, 0);
    }
    d.bar.modify32(regs::CTRL, RST | LRST, RST | LRST);
    // No access for 1 ms, no initialization for 10 ms (4.2.1.6.1).
    d.rest(Duration::from_millis(1));
    d.wait_for("its reset (CTRL.RST)", regs::CTRL, RST | LRST, false)?;
    d.rest(Duration::from_millis(10));
    d.bar.modify32(regs::CTRL, MASTER_DISABLE, 0);
    mask_interrupts(d);
    d.wait_for("reading its EEPROM (EEC.AUTO_RD)", regs::EEC, regs::eec::AUTO_RD, true)?;
    d.wait_for("setting up its DMA (RDRXCTL.DMAIDONE)", regs::RDRXCTL, regs::rdrxctl::DMAIDONE, true)?;
    // Firmware is told that a driver is here (8.2.3.1.3).
    d.bar.modify32(regs::CTRL_EXT, regs::ctrl_ext::DRV_LOAD, regs::ctrl_ext::DRV_LOAD);
    Ok(())
}

/// The device's address, which the EEPROM read has put into the first receive address (4.6.3, 8.2.3.7.8).
pub fn address<B: Bus>(d: &Device<B>) -> Option<[u8; 6]> {
    let [low, high] = [regs::ral(0), regs::rah(0)].map(|r| d.bar.read32(r));
    if high & regs::rah_bits::AV == 0 {
        return None;
    }
    let ([a, b, c, x], [e, f, ..]) = (low.to_le_bytes(), high.to_le_bytes());
    Some([a, b, c, x, e, f])
}

/// What is common to all queues, receive and transmit off: packet buffers (4.6.11.3.4), then 4.6.7 and 4.6.8 as far as
/// the queues.
pub fn globals<B: Bus>(d: &Device<B>, cfg: &PortConfig, rss: RssBy) {
    packet_buffers(d);
    flow_control_off(d);
    counters_by_queue(d);
    receive(d, cfg);
    crate::filters::rss(d, cfg.queues, rss);
    transmit(d);
}

/// 4.6.11.3.4 for one traffic class: all of both buffers is its.
fn packet_buffers<B: Bus>(d: &Device<B>) {
    let bar = &d.bar;
    bar.modify32(regs::RTTDCS, regs::rttdcs::ARBDIS, regs::rttdcs::ARBDIS);
    bar.write32(regs::MTQC, 0);
    for n in 0..8 {
        let all = |kib: u32| if n == 0 { kib } else { 0 };
        bar.write32(regs::rxpbsize(n), all(rx_buffer(d.controller)) << regs::PBSIZE_SHIFT);
        bar.write32(regs::txpbsize(n), all(TX_BUFFER) << regs::PBSIZE_SHIFT);
        bar.write32(regs::txpbthresh(n), all(TX_BUFFER));
    }
    bar.write32(regs::DTXMXSZRQ, 0xFFF);
    bar.modify32(regs::RTTDCS, regs::rttdcs::ARBDIS, 0);
}

/// 3.7.7: pause frames are neither sent nor obeyed.
fn flow_control_off<B: Bus>(d: &Device<B>) {
    for n in 0..8 {
        d.bar.write32(regs::fcrtl(n), 0);
        d.bar.write32(regs::fcrth(n), 0);
    }
    for n in 0..4 {
        d.bar.write32(regs::fcttv(n), 0);
    }
    for r in [regs::FCRTV, regs::FCCFG, regs::MFLCN] {
        d.bar.write32(r, 0);
    }
}

/// 8.2.3.23.71, 8.2.3.23.73: counter n counts queue n.
fn counters_by_queue<B: Bus>(d: &Device<B>) {
    for n in 0..u32::from(Queue::COUNT) / 4 {
        let of = |q: u32| if q < u32::from(MAX_QUEUES) { q } else { 0 };
        let map = (0..4).fold(0, |m, i| m | of(4 * n + i) << (8 * i));
        d.bar.write32(ixgbe_defs::stats::rqsmr(n), map);
        d.bar.write32(ixgbe_defs::stats::tqsm(n), map);
    }
}

/// 4.6.7: lengths, check sequence, checksums, no coalescing.
fn receive<B: Bus>(d: &Device<B>, cfg: &PortConfig) {
    use regs::{hlreg0, rdrxctl};
    let longest = u32::from(cfg.max_frame) + CRC;
    let jumbo = if longest > STANDARD_FRAME { hlreg0::JUMBOEN } else { 0 };
    let always = hlreg0::TXCRCEN | hlreg0::RXCRCSTRP | hlreg0::TXPADEN;
    d.bar.modify32(regs::HLREG0, always | hlreg0::JUMBOEN | hlreg0::LPBK, always | jumbo);
    d.bar.write32(regs::MAXFRS, longest << regs::maxfrs::MFS_SHIFT);
    d.bar.write32(regs::RXCSUM, regs::rxcsum::PCSD);
    d.bar.modify32(regs::RFCTL, regs::rfctl::RSC_DIS, regs::rfctl::RSC_DIS);
    d.bar.write32(regs::psrtype(0), 0);
    let change = rdrxctl::CRC_STRIP | rdrxctl::RSCFRSTSIZE_MASK | rdrxctl::RSCACKC | rdrxctl::FCOE_WRFIX;
    d.bar.modify32(regs::RDRXCTL, change, change & !rdrxctl::RSCFRSTSIZE_MASK);
}

/// 4.6.8: the transmit path is on before its queues are.
fn transmit<B: Bus>(d: &Device<B>) {
    d.bar.modify32(regs::DMATXCTL, regs::dmatxctl::TE | regs::dmatxctl::GDV, regs::dmatxctl::TE);
}

fn ring_registers<B: Bus>(d: &Device<B>, [low, high, len]: [Reg; 3], base: Iova, size: RingSize) {
    d.bar.write32(low, base.to_bits() as u32);
    d.bar.write32(high, (base.to_bits() >> 32) as u32);
    d.bar.write32(len, size.get() * ixgbe_defs::DESC_BYTES as u32);
}

/// How a receive queue is set up.
#[derive(Clone, Copy)]
pub struct RxQueueConfig {
    /// KiB that the device may fill of a buffer.
    pub kib: u32,
    /// A frame that finds no descriptor is dropped, lest it hold up the other queues.
    pub drop: bool,
    /// VLAN tags are taken out.
    pub strip: bool,
}

/// 4.6.7.1: a receive queue comes up without descriptors. Its tail moves when a worker attaches it.
pub fn rx_queue<B: Bus>(
    d: &Device<B>,
    q: Queue,
    base: Iova,
    size: RingSize,
    cfg: RxQueueConfig,
) -> Result<(), HwError> {
    use regs::{rxdctl_bits as ctl, srrctl_bits as srr};
    d.bar.write32(regs::rxdctl(q), 0);
    d.wait_for("a receive queue to go off", regs::rxdctl(q), ctl::ENABLE, false)?;
    ring_registers(d, [regs::rdbal(q), regs::rdbah(q), regs::rdlen(q)], base, size);
    let drop = if cfg.drop { srr::DROP_EN } else { 0 };
    d.bar.write32(regs::srrctl(q), cfg.kib & srr::BSIZEPACKET_MASK | srr::DESCTYPE_ADVANCED | drop);
    d.bar.write32(regs::rscctl(q), 0);
    d.bar.modify32(regs::dca_rxctrl(q), regs::dca_rxctrl_bits::CLEAR_AT_INIT, 0);
    d.bar.write32(regs::rdh(q), 0);
    d.bar.write32(regs::rdt(q), 0);
    let strip = if cfg.strip { ctl::VME } else { 0 };
    d.bar.write32(regs::rxdctl(q), ctl::ENABLE | strip);
    d.wait_for("a receive queue to come on (RXDCTL.ENABLE)", regs::rxdctl(q), ctl::ENABLE, true)
}

/// Descriptors that the device prefetches (7.2.3.4): below 32 on the die it fetches if at least 8 are posted, which is
/// two cache lines; fewer are fetched when the die has none. WTHRESH is 0, as not every descriptor has RS (7.2.3.5).
const PTHRESH: u32 = 32;
const HTHRESH: u32 = 8;
const _: () = assert!(PTHRESH <= regs::TX_ON_DIE_DESCRIPTORS);

/// 4.6.8.1: a transmit queue.
pub fn tx_queue<B: Bus>(d: &Device<B>, q: Queue, base: Iova, size: RingSize) -> Result<(), HwError> {
    use regs::txdctl_bits as ctl;
    d.bar.write32(regs::txdctl(q), 0);
    d.wait_for("a transmit queue to go off", regs::txdctl(q), ctl::ENABLE, false)?;
    ring_registers(d, [regs::tdbal(q), regs::tdbah(q), regs::tdlen(q)], base, size);
    // Descriptors are written back, not the head (7.2.3.5.2).
    d.bar.write32(regs::tdwbal(q), 0);
    d.bar.write32(regs::tdwbah(q), 0);
    d.bar.write32(regs::tdh(q), 0);
    d.bar.write32(regs::tdt(q), 0);
    d.bar.write32(regs::txdctl(q), ctl::ENABLE | PTHRESH | HTHRESH << ctl::HTHRESH_SHIFT);
    d.wait_for("a transmit queue to come on (TXDCTL.ENABLE)", regs::txdctl(q), ctl::ENABLE, true)
}

/// The last steps of 4.6.7, or their reverse: the data path is halted while RXEN changes.
pub fn switch_receive<B: Bus>(d: &Device<B>, on: bool) -> Result<(), HwError> {
    let halt = regs::secrxctrl::RX_DIS;
    d.bar.modify32(regs::SECRXCTRL, halt, halt);
    let empty = d.wait_for(
        "emptying its receive path (SECRXSTAT.SECRX_RDY)",
        regs::SECRXSTAT,
        regs::secrxstat::SECRX_RDY,
        true,
    );
    let enable = if on { regs::rxctrl::RXEN } else { 0 };
    d.bar.modify32(regs::RXCTRL, regs::rxctrl::RXEN, enable);
    d.bar.modify32(regs::SECRXCTRL, halt, 0);
    d.bar.modify32(regs::CTRL_EXT, regs::ctrl_ext::NS_DIS, regs::ctrl_ext::NS_DIS);
    empty
}

/// 4.6.4: auto-negotiation starts again, in the link mode of the EEPROM. The X540's PHY negotiates by itself.
pub fn restart_link<B: Bus>(d: &Device<B>) {
    if d.controller == Controller::I82599 {
        d.bar.modify32(regs::AUTOC, regs::autoc::RESTART_AN, regs::autoc::RESTART_AN);
    }
}
