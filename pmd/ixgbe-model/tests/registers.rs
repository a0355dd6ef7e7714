//! Registers as a driver sees them.

mod rig;

use hw::Bus;
use ixgbe_defs::{regs, stats};
use rig::{Rig, frame, parameters, queue};
use ringwright_ixgbe_model::{Mode, Script, Stall};

#[test]
fn reset_clears_itself_and_everything_else_and_the_device_settles() {
    let rig = Rig::cold(parameters(), Script::default());
    rig.bar.write32(regs::FCTRL, regs::fctrl::UPE);
    rig.bar.write32(regs::CTRL, regs::ctrl::RST);
    assert_ne!(rig.bar.read32(regs::CTRL) & regs::ctrl::RST, 0, "not before the device moves");
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::CTRL) & regs::ctrl::RST, 0);
    assert_eq!((rig.bar.read32(regs::FCTRL), rig.bar.read32(regs::EEC) & regs::eec::AUTO_RD), (0, 0));
    rig.bus.pause();
    assert_ne!(rig.bar.read32(regs::EEC) & regs::eec::AUTO_RD, 0);
    assert_ne!(rig.bar.read32(regs::RDRXCTL) & regs::rdrxctl::DMAIDONE, 0);
    assert_eq!(rig.bar.read32(regs::ral(0)), 0x0000_0002);
    assert_eq!(rig.bar.read32(regs::rah_alias(0)), 0x0100 | regs::rah_bits::AV);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::LINKS), regs::links::UP | regs::links::SPEED_10G);
    assert_eq!(rig.model.device().stray(), 0);
}

#[test]
fn a_stalled_reset_never_ends_and_nothing_moves() {
    let mut rig = Rig::new(parameters());
    rig.post(8);
    rig.model.device().set_mode(Mode::Stalled(Stall { reset: true, ..Stall::default() }));
    rig.bar.write32(regs::CTRL, regs::ctrl::RST);
    rig.model.wire(|w| w.push(frame(1, 60)));
    for _ in 0..100 {
        assert_eq!(rig.model.step(), 0);
    }
    assert_ne!(rig.bar.read32(regs::CTRL) & regs::ctrl::RST, 0);
    rig.model.device().set_mode(Mode::Normal);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::CTRL) & regs::ctrl::RST, 0);
}

#[test]
fn enable_reads_what_the_device_has_done() {
    let rig = Rig::cold(parameters(), Script::default());
    let enable = regs::rxdctl_bits::ENABLE;
    rig.rx_queue(queue(0), &rig.rx, 2);
    rig.tx_queue(queue(0), &rig.tx, 0);
    assert_eq!(rig.bar.read32(regs::rxdctl(queue(0))) & enable, 0);
    rig.bus.pause();
    assert_ne!(rig.bar.read32(regs::rxdctl(queue(0))) & enable, 0);
    assert_eq!(rig.bar.read32(regs::txdctl(queue(0))) & enable, 0, "not without DMATXCTL.TE");
    rig.bar.modify32(regs::DMATXCTL, regs::dmatxctl::TE, regs::dmatxctl::TE);
    rig.bus.pause();
    assert_ne!(rig.bar.read32(regs::txdctl(queue(0))) & enable, 0);
    rig.bar.modify32(regs::rxdctl(queue(0)), enable, 0);
    assert_ne!(rig.bar.read32(regs::rxdctl(queue(0))) & enable, 0);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::rxdctl(queue(0))) & enable, 0);
}

#[test]
fn a_queue_without_a_ring_or_with_a_bad_buffer_size_stays_off() {
    let rig = Rig::cold(parameters(), Script::default());
    rig.bar.write32(regs::rxdctl(queue(5)), regs::rxdctl_bits::ENABLE);
    rig.rx_queue(queue(6), &rig.rx, 17);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::rxdctl(queue(5))) & regs::rxdctl_bits::ENABLE, 0);
    assert_eq!(rig.bar.read32(regs::rxdctl(queue(6))) & regs::rxdctl_bits::ENABLE, 0);
}

#[test]
fn interrupt_registers_set_and_clear_by_ones() {
    let rig = Rig::cold(parameters(), Script::default());
    rig.bar.write32(regs::EIMS, 0b1100);
    rig.bar.write32(regs::EIMC, 0b0100);
    assert_eq!((rig.bar.read32(regs::EIMS), rig.bar.read32(regs::EIMC)), (0b1000, 0));
    rig.bar.write32(regs::EICS, 0b111);
    rig.bar.write32(regs::EICR, 0b010);
    assert_eq!((rig.bar.read32(regs::EICR), rig.bar.read32(regs::EICR)), (0b101, 0));
}

#[test]
fn the_semaphore_is_taken_by_reading_it() {
    let rig = Rig::cold(parameters(), Script::default());
    assert_eq!(rig.bar.read32(regs::SWSM) & regs::swsm::SMBI, 0);
    assert_ne!(rig.bar.read32(regs::SWSM) & regs::swsm::SMBI, 0, "taken");
    rig.bar.write32(regs::SWSM, 0);
    assert_eq!(rig.bar.read32(regs::SWSM) & regs::swsm::SMBI, 0);
}

#[test]
fn eeprom_words_are_read_and_add_up() {
    let rig = Rig::cold(parameters(), Script::default());
    let mut sum = 0u16;
    for word in 0..=0x3F {
        rig.bar.write32(regs::EERD, regs::eerd::START | word << regs::eerd::ADDR_SHIFT);
        let r = rig.bar.read32(regs::EERD);
        assert_ne!(r & regs::eerd::DONE, 0);
        sum = sum.wrapping_add((r >> regs::eerd::DATA_SHIFT) as u16);
    }
    assert_eq!(sum, 0xBABA);
}

#[test]
fn statistics_clear_when_read_and_pairs_when_the_high_half_is() {
    let mut rig = Rig::new(parameters());
    rig.post(16);
    rig.model.wire(|w| (0..3).for_each(|n| w.push(frame(n, 60))));
    rig.model.settle(9);
    assert_eq!((rig.bar.read32(stats::GPRC), rig.bar.read32(stats::GPRC)), (3, 0));
    assert_eq!((rig.bar.read32(stats::GORCL), rig.bar.read32(stats::GORCL)), (192, 192));
    assert_eq!((rig.bar.read32(stats::GORCH), rig.bar.read32(stats::GORCL)), (0, 0));
    assert_eq!((rig.bar.read32(stats::PRC64), rig.bar.read32(stats::TPR)), (3, 3));
    assert_eq!((rig.bar.read32(stats::qprc(0)), rig.bar.read32(stats::qbrc_l(0))), (3, 192));
    rig.model.wire(|w| w.push(frame(9, 200)));
    rig.model.settle(9);
    assert_eq!((rig.bar.read32(stats::GPRC), rig.bar.read32(stats::PRC255)), (1, 1));
    assert_eq!(rig.model.device().stray(), 0);
}

#[test]
fn queue_counters_follow_their_map() {
    let mut rig = Rig::new(parameters());
    rig.bar.write32(stats::rqsmr(0), 0x0000_0007);
    rig.bar.write32(stats::tqsm(0), 0x0000_000F);
    rig.post(4);
    rig.model.wire(|w| w.push(frame(1, 100)));
    rig.put_frame(&frame(2, 96));
    rig.ring_tx();
    rig.model.settle(9);
    assert_eq!((rig.bar.read32(stats::qprc(0)), rig.bar.read32(stats::qprc(7))), (0, 1));
    assert_eq!((rig.bar.read32(stats::qbrc_l(7)), rig.bar.read32(stats::qptc_alias(15))), (104, 1));
    assert_eq!(rig.bar.read32(stats::qbtc_l(15)), 100);
}

#[test]
fn the_link_follows_the_cable_and_restarting_negotiation_ends() {
    let rig = Rig::new(parameters());
    rig.bar.read32(regs::EICR);
    rig.model.device().set_link(false);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::LINKS) & regs::links::UP, 0);
    assert_ne!(rig.bar.read32(regs::EICR) & regs::eicr::LSC, 0);
    rig.model.device().set_link(true);
    rig.bar.modify32(regs::AUTOC, regs::autoc::RESTART_AN, regs::autoc::RESTART_AN);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::AUTOC) & regs::autoc::RESTART_AN, 0);
    rig.bus.pause();
    assert_ne!(rig.bar.read32(regs::LINKS) & regs::links::UP, 0);
}

#[test]
fn master_disable_and_data_path_halt_are_reported_once_done() {
    let rig = Rig::new(parameters());
    rig.bar.write32(regs::CTRL, regs::ctrl::MASTER_DISABLE);
    rig.bar.modify32(regs::SECRXCTRL, regs::secrxctrl::RX_DIS, regs::secrxctrl::RX_DIS);
    assert_ne!(rig.bar.read32(regs::STATUS) & regs::status::MASTER_ENABLED, 0);
    assert_eq!(rig.bar.read32(regs::SECRXSTAT) & regs::secrxstat::SECRX_RDY, 0);
    rig.bus.pause();
    assert_eq!(rig.bar.read32(regs::STATUS) & regs::status::MASTER_ENABLED, 0);
    assert_ne!(rig.bar.read32(regs::SECRXSTAT) & regs::secrxstat::SECRX_RDY, 0);
}

#[test]
fn a_register_that_is_not_there_reads_zero_and_is_noticed() {
    let rig = Rig::cold(parameters(), Script::default());
    rig.bar.write32(hw::Reg(0x1F000), 5);
    assert_eq!((rig.bar.read32(hw::Reg(0x1F000)), rig.model.device().stray()), (0, 2));
    assert!(rig.model.bus().bar(1).is_err());
}
