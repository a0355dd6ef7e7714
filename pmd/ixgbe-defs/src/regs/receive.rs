//! Registers of the receive side: filters, RSS, queues.

use hw::Reg;

use crate::Queue;

/// Filter control (8.2.3.7.1).
pub const FCTRL: Reg = Reg(0x05080);
/// Bits of [`FCTRL`].
pub mod fctrl {
    /// Store bad packets.
    pub const SBP: u32 = 1 << 1;
    /// Multicast promiscuous.
    pub const MPE: u32 = 1 << 8;
    /// Unicast promiscuous.
    pub const UPE: u32 = 1 << 9;
    /// Broadcast accept.
    pub const BAM: u32 = 1 << 10;
}
/// VLAN control (8.2.3.7.2).
pub const VLNCTRL: Reg = Reg(0x05088);
/// Bits of [`VLNCTRL`].
pub mod vlnctrl {
    /// VLAN ether type; 0x8100 after reset.
    pub const VET_MASK: u32 = 0xFFFF;
    /// What the canonical form bit is compared with.
    pub const CFI: u32 = 1 << 28;
    /// Compare the canonical form bit.
    pub const CFIEN: u32 = 1 << 29;
    /// Filter by [`super::vfta`].
    pub const VFE: u32 = 1 << 30;
}
/// Multicast control (8.2.3.7.3).
pub const MCSTCTRL: Reg = Reg(0x05090);
/// Bits of [`MCSTCTRL`].
pub mod mcstctrl {
    /// Which 12 bits of the address index [`super::mta`]: 0 = 47:36, 1 = 46:35, 2 = 45:34, 3 = 43:32.
    pub const MO_MASK: u32 = 0b11;
    /// Filter by [`super::mta`].
    pub const MFE: u32 = 1 << 2;
}
/// Packet split receive type (8.2.3.7.4): `n` below 64.
pub const fn psrtype(n: u32) -> Reg {
    Reg(0x0EA00 + 4 * n)
}
/// Receive checksum control (8.2.3.7.5).
pub const RXCSUM: Reg = Reg(0x05000);
/// Bits of [`RXCSUM`].
pub mod rxcsum {
    /// Report the fragment checksum of UDP fragments.
    pub const IPPCSE: u32 = 1 << 12;
    /// 1: the RSS hash is written back; 0: fragment checksum and IP identification are, in its place.
    pub const PCSD: u32 = 1 << 13;
}
/// Receive filter control (8.2.3.7.6).
pub const RFCTL: Reg = Reg(0x05008);
/// Bits of [`RFCTL`].
pub mod rfctl {
    /// Receive-side coalescing off.
    pub const RSC_DIS: u32 = 1 << 5;
}
/// Multicast table array (8.2.3.7.7): `n` below 128, 32 hash bits each.
pub const fn mta(n: u32) -> Reg {
    Reg(0x05200 + 4 * n)
}
/// Receive address, low (8.2.3.7.8): `n` below 128. First byte on the wire in bits 7:0.
pub const fn ral(n: u32) -> Reg {
    Reg(0x0A200 + 8 * n)
}
/// Receive address, high (8.2.3.7.9): `n` below 128.
pub const fn rah(n: u32) -> Reg {
    Reg(0x0A204 + 8 * n)
}
/// Receive addresses 0 to 15 also answer here (8.2.3.7.8).
pub const fn ral_alias(n: u32) -> Reg {
    Reg(0x05400 + 8 * n)
}
/// As [`ral_alias`], high (8.2.3.7.9).
pub const fn rah_alias(n: u32) -> Reg {
    Reg(0x05404 + 8 * n)
}
/// Receive addresses of the device.
pub const RECEIVE_ADDRESSES: u32 = 128;
/// Bits of [`rah`].
pub mod rah_bits {
    /// The last two bytes of the address.
    pub const ADDRESS_MASK: u32 = 0xFFFF;
    /// The address is valid.
    pub const AV: u32 = 1 << 31;
}
/// Pool select of a receive address (8.2.3.7.10): `n` below 256, two registers per address.
pub const fn mpsar(n: u32) -> Reg {
    Reg(0x0A600 + 4 * n)
}
/// VLAN filter table array (8.2.3.7.11): `n` below 128, bit `vid & 31` of register `vid >> 5`.
pub const fn vfta(n: u32) -> Reg {
    Reg(0x0A000 + 4 * n)
}
/// Multiple receive queues command (8.2.3.7.12).
pub const MRQC: Reg = Reg(0x0EC80);
/// [`MRQC`] also answers here (8.2.3.7.12).
pub const MRQC_ALIAS: Reg = Reg(0x05818);
/// Bits of [`MRQC`].
pub mod mrqc {
    /// Mode.
    pub const MRQE_MASK: u32 = 0xF;
    /// Mode: RSS only, one set of up to 16 queues.
    pub const MRQE_RSS: u32 = 0b0001;
    /// Hash TCP over IPv4 by addresses and ports.
    pub const TCP_IPV4: u32 = 1 << 16;
    /// Hash IPv4 by addresses.
    pub const IPV4: u32 = 1 << 17;
    /// Hash IPv6 by addresses.
    pub const IPV6: u32 = 1 << 20;
    /// Hash TCP over IPv6 by addresses and ports.
    pub const TCP_IPV6: u32 = 1 << 21;
    /// Hash UDP over IPv4 by addresses and ports.
    pub const UDP_IPV4: u32 = 1 << 22;
    /// Hash UDP over IPv6 by addresses and ports.
    pub const UDP_IPV6: u32 = 1 << 23;
}
/// RSS random key (8.2.3.7.14): `n` below 10; key byte 0 in bits 7:0 of register 0.
pub const fn rssrk(n: u32) -> Reg {
    Reg(0x0EB80 + 4 * n)
}
/// [`rssrk`] also answers here (8.2.3.7.14).
pub const fn rssrk_alias(n: u32) -> Reg {
    Reg(0x05C80 + 4 * n)
}
/// Redirection table (8.2.3.7.15): `n` below 32; entry `4n + i` in bits 3:0 of byte `i`.
pub const fn reta(n: u32) -> Reg {
    Reg(0x0EB00 + 4 * n)
}
/// [`reta`] also answers here (8.2.3.7.15).
pub const fn reta_alias(n: u32) -> Reg {
    Reg(0x05C00 + 4 * n)
}
/// Entries of the redirection table.
pub const RETA_ENTRIES: usize = 128;
/// Bytes of the RSS key.
pub const RSS_KEY_BYTES: usize = 40;

const fn rx_block(queue: Queue) -> u32 {
    let n = queue.get() as u32;
    if n < 64 { 0x01000 + 0x40 * n } else { 0x0D000 + 0x40 * (n - 64) }
}
/// Receive ring base, low (8.2.3.8.1). Bits 6:0 are ignored.
pub const fn rdbal(queue: Queue) -> Reg {
    Reg(rx_block(queue))
}
/// Receive ring base, high (8.2.3.8.2).
pub const fn rdbah(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x04)
}
/// Receive ring length in bytes (8.2.3.8.3): bits 19:7.
pub const fn rdlen(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x08)
}
/// Receive head (8.2.3.8.4): bits 15:0, written by the device.
pub const fn rdh(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x10)
}
/// Split receive control (8.2.3.8.7).
pub const fn srrctl(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x14)
}
/// [`srrctl`] of queues 0 to 15 also answers here (8.2.3.8.7).
pub const fn srrctl_alias(n: u32) -> Reg {
    Reg(0x02100 + 4 * n)
}
/// Receive tail (8.2.3.8.5): bits 15:0; one past the last descriptor the device may use.
pub const fn rdt(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x18)
}
/// Receive descriptor control (8.2.3.8.6).
pub const fn rxdctl(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x28)
}
/// Receive-side coalescing control (8.2.3.8.13).
pub const fn rscctl(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x2C)
}
/// Receive DCA control (8.2.3.11.1). 4.6.7 has its bit 12 cleared.
pub const fn dca_rxctrl(queue: Queue) -> Reg {
    Reg(rx_block(queue) + 0x0C)
}
/// Bits of [`dca_rxctrl`].
pub mod dca_rxctrl_bits {
    /// 1 after reset; software clears it (4.6.7).
    pub const CLEAR_AT_INIT: u32 = 1 << 12;
}
/// Ring length mask of [`rdlen`] and [`tdlen`](super::tdlen).
pub const RING_LEN_MASK: u32 = 0x000F_FF80;
/// Index mask of [`rdh`], [`rdt`], [`tdh`](super::tdh) and [`tdt`](super::tdt).
pub const INDEX_MASK: u32 = 0xFFFF;
/// Bits of [`srrctl`].
pub mod srrctl_bits {
    /// Buffer size in KiB, 1 to 16.
    pub const BSIZEPACKET_MASK: u32 = 0x1F;
    /// Header buffer size in units of 64 bytes.
    pub const BSIZEHEADER_MASK: u32 = 0x3F << 8;
    /// Descriptor type.
    pub const DESCTYPE_MASK: u32 = 0b111 << 25;
    /// Advanced descriptor, one buffer.
    pub const DESCTYPE_ADVANCED: u32 = 0b001 << 25;
    /// Drop a packet that finds no descriptor, rather than hold it in the packet buffer.
    pub const DROP_EN: u32 = 1 << 28;
}
/// Bits of [`rxdctl`].
pub mod rxdctl_bits {
    /// Queue enable; reads 1 once the queue is enabled, 0 once it is disabled (4.6.7.1).
    pub const ENABLE: u32 = 1 << 25;
    /// VLAN mode: strip the tag.
    pub const VME: u32 = 1 << 30;
}
/// Receive DMA control (8.2.3.8.8).
pub const RDRXCTL: Reg = Reg(0x02F00);
/// Bits of [`RDRXCTL`].
pub mod rdrxctl {
    /// Strip the CRC; must equal `HLREG0.RXCRCSTRP`.
    pub const CRC_STRIP: u32 = 1 << 1;
    /// DMA initialization is done. Read-only.
    pub const DMAIDONE: u32 = 1 << 3;
    /// Coalescing: first buffer size; 0 as 4.6.7 asks.
    pub const RSCFRSTSIZE_MASK: u32 = 0x1F << 17;
    /// Coalescing: acknowledge change; 1 as 4.6.7 asks.
    pub const RSCACKC: u32 = 1 << 25;
    /// FCoE write-back fix; 1 as 4.6.7 asks.
    pub const FCOE_WRFIX: u32 = 1 << 26;
}
/// Receive packet buffer size (8.2.3.8.9): `n` below 8.
pub const fn rxpbsize(n: u32) -> Reg {
    Reg(0x03C00 + 4 * n)
}
/// Shift of the size in KiB (10 bits) in [`rxpbsize`] and [`txpbsize`](super::txpbsize).
pub const PBSIZE_SHIFT: u32 = 10;
/// Mask of the size in [`rxpbsize`] and [`txpbsize`](super::txpbsize).
pub const PBSIZE_MASK: u32 = 0x3FF << PBSIZE_SHIFT;
/// Receive control (8.2.3.8.10).
pub const RXCTRL: Reg = Reg(0x03000);
/// Bits of [`RXCTRL`].
pub mod rxctrl {
    /// Receive enable.
    pub const RXEN: u32 = 1 << 0;
}
