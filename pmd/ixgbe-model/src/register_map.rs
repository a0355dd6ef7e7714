//! Which register is what (82599 8.2.2, 8.2.3).

use hw::Reg;
use ixgbe_defs::{Queue, regs, stats};

use crate::count::{Count, Direction, PerQueue, Place};

/// What an access to a register means.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// No register of this device, or one that the model does not have.
    Unknown,
    /// Reads what was written.
    Plain,
    /// As plain; part of a table that the engine copies only when one has changed.
    Table,
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

pub(crate) fn kind(reg: Reg) -> Kind {
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
        0x0A600..=0x0A9FC | 0x0EA00..=0x0EAFC => Kind::Plain,
        0x0A000..=0x0A5FC | 0x05200..=0x053FC | 0x0EB00..=0x0EB7C | 0x0EB80..=0x0EBA4 => Kind::Table,
        0x02300..=0x0237C | 0x08600..=0x0867C | 0x0EC80 => Kind::Table,
        0x03200..=0x0320C | 0x03220..=0x0323C | 0x03260..=0x0327C | 0x032A0 => Kind::Plain,
        0x03C00..=0x03C1C | 0x0CC00..=0x0CC1C | 0x04950..=0x0496C => Kind::Plain,
        0x00AA0..=0x00AA4 | 0x00AB0..=0x00AB4 => Kind::Plain,
        _ => single(reg),
    }
}

fn single(reg: Reg) -> Kind {
    use regs::{
        AUTOC, AUTOC2, CTRL, CTRL_EXT, DMATXCTL, DTXMXSZRQ, EEC, EERD, EICR, EICS, EIMC, EIMS, FCCFG, FCTRL,
        FWSM, GCR_EXT, HLREG0, LINKS, MAXFRS, MCSTCTRL, MFLCN, MTQC, RDRXCTL, RFCTL, RTTDCS, RXCSUM, RXCTRL,
        SECRXCTRL, SECRXSTAT, STATUS, SW_FW_SYNC, SWSM, VLNCTRL,
    };
    match reg {
        CTRL | CTRL_EXT | SW_FW_SYNC | GCR_EXT | FCTRL | VLNCTRL | MCSTCTRL | RXCSUM | RFCTL | RXCTRL
        | DTXMXSZRQ | DMATXCTL | MTQC | RTTDCS | SECRXCTRL | HLREG0 | MAXFRS | AUTOC2 | MFLCN | FCCFG => {
            Kind::Plain
        }
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

/// Where there are registers, so that a reset need not look at the whole window.
pub(crate) const USED: [core::ops::Range<usize>; 15] = [
    0x00000..0x00020,
    0x00800..0x00AB8,
    0x01000..0x02380,
    0x02F00..0x02F5C,
    0x03000..0x03284,
    0x032A0..0x032A4,
    0x03C00..0x03D04,
    0x04240..0x042B0,
    0x04900..0x04A84,
    0x05000..0x05400,
    0x06000..0x08D08,
    0x0A000..0x0AA00,
    0x0CC00..0x0E000,
    0x0EA00..0x0EC84,
    0x10010..0x11054,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a look at the whole window")]
    fn every_register_that_keeps_something_is_reset() {
        for at in (0..ixgbe_defs::BAR_BYTES as u32).step_by(4) {
            let keeps = !matches!(
                kind(Reg(at)),
                Kind::Unknown | Kind::Alias(_) | Kind::Zero | Kind::Narrow(_) | Kind::Low(_) | Kind::High(_)
            );
            assert!(!keeps || USED.iter().any(|r| r.contains(&(at as usize))), "{at:#x}");
        }
    }

    #[test]
    fn other_names_lead_to_registers() {
        for at in (0..ixgbe_defs::BAR_BYTES as u32).step_by(if cfg!(miri) { 64 } else { 4 }) {
            if let Kind::Alias(to) = kind(Reg(at)) {
                assert!(matches!(kind(to), Kind::Plain | Kind::Table | Kind::Narrow(_)), "{at:#x} -> {to:?}");
            }
        }
        assert!(
            matches!(kind(regs::srrctl_alias(15)), Kind::Alias(r) if Some(r) == Queue::new(15).map(regs::srrctl))
        );
        assert!(matches!(kind(regs::rah_alias(15)), Kind::Alias(r) if r == regs::rah(15)));
        assert!(matches!(kind(regs::reta_alias(31)), Kind::Alias(r) if r == regs::reta(31)));
        assert!(matches!(kind(regs::rssrk_alias(9)), Kind::Alias(r) if r == regs::rssrk(9)));
        assert!(matches!(kind(stats::qptc_alias(15)), Kind::Alias(r) if r == stats::qptc(15)));
    }
}
