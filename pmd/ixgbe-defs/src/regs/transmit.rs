//! Registers of the transmit side.

use hw::Reg;

use crate::Queue;

/// Largest sum of outstanding transmit reads (8.2.3.9.1), in units of 256 bytes; 0xFFF with DCB off.
pub const DTXMXSZRQ: Reg = Reg(0x08100);
/// Transmit DMA control (8.2.3.9.2).
pub const DMATXCTL: Reg = Reg(0x04A80);
/// Bits of [`DMATXCTL`].
pub mod dmatxctl {
    /// Transmit enable.
    pub const TE: u32 = 1 << 0;
    /// Double VLAN.
    pub const GDV: u32 = 1 << 3;
    /// Shift of the VLAN ether type that is inserted; 0x8100 after reset.
    pub const VT_SHIFT: u32 = 16;
}
const fn tx_block(queue: Queue) -> u32 {
    0x06000 + 0x40 * queue.get() as u32
}
/// Transmit ring base, low (8.2.3.9.5). Bits 6:0 are ignored.
pub const fn tdbal(queue: Queue) -> Reg {
    Reg(tx_block(queue))
}
/// Transmit ring base, high (8.2.3.9.6).
pub const fn tdbah(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x04)
}
/// Transmit ring length in bytes (8.2.3.9.7): bits 19:7.
pub const fn tdlen(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x08)
}
/// Transmit DCA control (8.2.3.11.2).
pub const fn dca_txctrl(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x0C)
}
/// Bits of [`dca_txctrl`].
pub mod dca_txctrl_bits {
    /// Descriptor write-back with relaxed ordering; must be 0 with head write-back (7.2.3.5.2).
    pub const DESC_WRO_EN: u32 = 1 << 11;
}
/// Transmit head (8.2.3.9.8): bits 15:0, written by the device.
pub const fn tdh(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x10)
}
/// Transmit tail (8.2.3.9.9): bits 15:0; one past the last descriptor the device may use.
pub const fn tdt(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x18)
}
/// Transmit descriptor control (8.2.3.9.10).
pub const fn txdctl(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x28)
}
/// Bits of [`txdctl`].
pub mod txdctl_bits {
    /// Prefetch when fewer than this many descriptors are on the device.
    pub const PTHRESH_MASK: u32 = 0x7F;
    /// Shift of the least descriptors worth a prefetch.
    pub const HTHRESH_SHIFT: u32 = 8;
    /// Mask of the least descriptors worth a prefetch.
    pub const HTHRESH_MASK: u32 = 0x7F << HTHRESH_SHIFT;
    /// Shift of the number of descriptors that are written back together; 0 unless every descriptor has RS (7.2.3.5).
    pub const WTHRESH_SHIFT: u32 = 16;
    /// Mask of the number of descriptors that are written back together.
    pub const WTHRESH_MASK: u32 = 0x7F << WTHRESH_SHIFT;
    /// Queue enable; reads 1 once the queue is enabled, 0 once it is disabled (4.6.8.1).
    pub const ENABLE: u32 = 1 << 25;
    /// Write back what is due now; clears itself.
    pub const SWFLSH: u32 = 1 << 26;
}
/// Descriptors of one queue that the device holds: PTHRESH and WTHRESH together stay within it (7.2.3.4).
pub const TX_ON_DIE_DESCRIPTORS: u32 = 40;
/// Head write-back address, low (8.2.3.9.11); bits 31:2.
pub const fn tdwbal(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x38)
}
/// Head write-back address, high (8.2.3.9.12).
pub const fn tdwbah(queue: Queue) -> Reg {
    Reg(tx_block(queue) + 0x3C)
}
/// Bits of [`tdwbal`].
pub mod tdwbal_bits {
    /// Write the head to memory instead of descriptors (7.2.3.5.2).
    pub const HEAD_WB_EN: u32 = 1 << 0;
}
/// Transmit packet buffer size (8.2.3.9.13): `n` below 8.
pub const fn txpbsize(n: u32) -> Reg {
    Reg(0x0CC00 + 4 * n)
}
/// Multiple transmit queues command (8.2.3.9.15).
pub const MTQC: Reg = Reg(0x08120);
/// Transmit packet buffer threshold in KiB (8.2.3.9.16): `n` below 8.
pub const fn txpbthresh(n: u32) -> Reg {
    Reg(0x04950 + 4 * n)
}
/// DCB transmit descriptor plane control (8.2.3.10.2).
pub const RTTDCS: Reg = Reg(0x04900);
/// Bits of [`RTTDCS`].
pub mod rttdcs {
    /// The arbiter is off; set round changes of the transmit set-up (4.6.11.3.4).
    pub const ARBDIS: u32 = 1 << 6;
}
