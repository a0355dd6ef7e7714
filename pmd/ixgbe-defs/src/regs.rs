//! Registers (82599 8.2.3) and, beside each, a module of its bits. Fields wider than a bit come as mask and shift.

use hw::Reg;

use crate::Queue;

/// Device control (8.2.3.1.1).
pub const CTRL: Reg = Reg(0x00000);
/// Bits of [`CTRL`].
pub mod ctrl {
    /// PCIe master disable: the device starts no new request; `STATUS.MASTER_ENABLED` clears when none is left.
    pub const MASTER_DISABLE: u32 = 1 << 2;
    /// Link reset; clears itself.
    pub const LRST: u32 = 1 << 3;
    /// Device reset; clears itself. Wait 1 ms before the next access, 10 ms before initialization (4.2.1.6.1).
    pub const RST: u32 = 1 << 26;
}
/// Device status (8.2.3.1.2). Read-only.
pub const STATUS: Reg = Reg(0x00008);
/// Bits of [`STATUS`].
pub mod status {
    /// Which of the two ports this is.
    pub const LAN_ID_MASK: u32 = 0b11 << 2;
    /// Shift of the port number.
    pub const LAN_ID_SHIFT: u32 = 2;
    /// The link is up.
    pub const LINK_UP: u32 = 1 << 7;
    /// PCIe master requests are allowed or pending.
    pub const MASTER_ENABLED: u32 = 1 << 19;
}
/// Extended device control (8.2.3.1.3).
pub const CTRL_EXT: Reg = Reg(0x00018);
/// Bits of [`CTRL_EXT`].
pub mod ctrl_ext {
    /// No-snoop disable; set at the end of receive initialization (4.6.7).
    pub const NS_DIS: u32 = 1 << 16;
    /// Relaxed-ordering disable.
    pub const RO_DIS: u32 = 1 << 17;
    /// A driver is loaded (tells firmware).
    pub const DRV_LOAD: u32 = 1 << 28;
}

/// EEPROM/flash control (8.2.3.2.1).
pub const EEC: Reg = Reg(0x10010);
/// Bits of [`EEC`].
pub mod eec {
    /// An EEPROM is present.
    pub const EE_PRES: u32 = 1 << 8;
    /// The automatic read of the EEPROM after reset is done.
    pub const AUTO_RD: u32 = 1 << 9;
}
/// EEPROM read (8.2.3.2.2): write START and a word address, poll DONE.
pub const EERD: Reg = Reg(0x10014);
/// Bits of [`EERD`].
pub mod eerd {
    /// Start the read.
    pub const START: u32 = 1 << 0;
    /// The data is there.
    pub const DONE: u32 = 1 << 1;
    /// Shift of the 14-bit word address.
    pub const ADDR_SHIFT: u32 = 2;
    /// Mask of the word address.
    pub const ADDR_MASK: u32 = 0x3FFF << ADDR_SHIFT;
    /// Shift of the 16-bit data.
    pub const DATA_SHIFT: u32 = 16;
}
/// Software semaphore (8.2.3.4.9).
pub const SWSM: Reg = Reg(0x10140);
/// Bits of [`SWSM`].
pub mod swsm {
    /// Between drivers of the two ports: a read that returns 0 sets it and takes it; write 0 to free it.
    pub const SMBI: u32 = 1 << 0;
    /// Between software and firmware: write 1, and it is ours if it reads 1.
    pub const SWESMBI: u32 = 1 << 1;
}
/// Firmware semaphore (8.2.3.4.10).
pub const FWSM: Reg = Reg(0x10148);
/// Software-firmware synchronization (8.2.3.4.11).
pub const SW_FW_SYNC: Reg = Reg(0x10160);
/// PCIe control, extended (8.2.3.4.12).
pub const GCR_EXT: Reg = Reg(0x11050);
/// Bits of [`GCR_EXT`].
pub mod gcr_ext {
    /// Flushes the data path before a reset with the link down (4.2.1.7, master disable).
    pub const BUFFERS_CLEAR: u32 = 1 << 30;
}

/// Interrupt cause (8.2.3.5.1). Reading clears it; so does writing 1s.
pub const EICR: Reg = Reg(0x00800);
/// Interrupt cause set (8.2.3.5.2). Write-only.
pub const EICS: Reg = Reg(0x00808);
/// Interrupt mask set and read (8.2.3.5.3).
pub const EIMS: Reg = Reg(0x00880);
/// Interrupt mask clear (8.2.3.5.4). Write-only.
pub const EIMC: Reg = Reg(0x00888);
/// Interrupt mask set of queue vectors (8.2.3.5.8): `n` is 0 or 1.
pub const fn eims_ex(n: u32) -> Reg {
    Reg(0x00AA0 + 4 * n)
}
/// Interrupt mask clear of queue vectors (8.2.3.5.9): `n` is 0 or 1.
pub const fn eimc_ex(n: u32) -> Reg {
    Reg(0x00AB0 + 4 * n)
}
/// Bits of [`EICR`], [`EICS`], [`EIMS`] and [`EIMC`].
pub mod eicr {
    /// Receive and transmit queue causes.
    pub const QUEUES_MASK: u32 = 0xFFFF;
    /// A packet was missed: the packet buffer was full.
    pub const RX_MISS: u32 = 1 << 17;
    /// A PCIe exception: poisoned or aborted completion.
    pub const PCI_EXCEPTION: u32 = 1 << 18;
    /// The link changed.
    pub const LSC: u32 = 1 << 20;
    /// Descriptor handler error (ECC).
    pub const DHER: u32 = 1 << 29;
    /// All causes: what initialization masks (4.6.3.1).
    pub const ALL: u32 = 0x7FFF_FFFF;
}

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
/// Ring length mask of [`rdlen`] and [`tdlen`].
pub const RING_LEN_MASK: u32 = 0x000F_FF80;
/// Index mask of [`rdh`], [`rdt`], [`tdh`] and [`tdt`].
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
/// Shift of the size in KiB (10 bits) in [`rxpbsize`] and [`txpbsize`].
pub const PBSIZE_SHIFT: u32 = 10;
/// Mask of the size in [`rxpbsize`] and [`txpbsize`].
pub const PBSIZE_MASK: u32 = 0x3FF << PBSIZE_SHIFT;
/// Receive control (8.2.3.8.10).
pub const RXCTRL: Reg = Reg(0x03000);
/// Bits of [`RXCTRL`].
pub mod rxctrl {
    /// Receive enable.
    pub const RXEN: u32 = 1 << 0;
}

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

/// Security receive control (8.2.3.12.5).
pub const SECRXCTRL: Reg = Reg(0x08D00);
/// Bits of [`SECRXCTRL`].
pub mod secrxctrl {
    /// The security block is off.
    pub const SECRX_DIS: u32 = 1 << 0;
    /// The receive data path halts (4.6.7: before RXEN is changed).
    pub const RX_DIS: u32 = 1 << 1;
}
/// Security receive status (8.2.3.12.6). Read-only.
pub const SECRXSTAT: Reg = Reg(0x08D04);
/// Bits of [`SECRXSTAT`].
pub mod secrxstat {
    /// The data path is empty.
    pub const SECRX_RDY: u32 = 1 << 0;
}

/// MAC core control (8.2.3.22.8).
pub const HLREG0: Reg = Reg(0x04240);
/// Bits of [`HLREG0`].
pub mod hlreg0 {
    /// Append the CRC.
    pub const TXCRCEN: u32 = 1 << 0;
    /// Strip the CRC.
    pub const RXCRCSTRP: u32 = 1 << 1;
    /// Frames up to [`super::MAXFRS`] rather than 1518 bytes.
    pub const JUMBOEN: u32 = 1 << 2;
    /// Pad frames to 64 bytes.
    pub const TXPADEN: u32 = 1 << 10;
    /// Loopback.
    pub const LPBK: u32 = 1 << 15;
    /// After reset (8.2.3.22.8): CRC and padding on, MDC speed, length errors on.
    pub const RESET: u32 = TXCRCEN | RXCRCSTRP | TXPADEN | 1 << 16 | 1 << 27;
}
/// Longest frame (8.2.3.22.13).
pub const MAXFRS: Reg = Reg(0x04268);
/// Bits of [`MAXFRS`].
pub mod maxfrs {
    /// Shift of the length in bytes, CRC included, one VLAN tag (4 bytes) not counted.
    pub const MFS_SHIFT: u32 = 16;
}
/// Auto-negotiation control (8.2.3.22.19).
pub const AUTOC: Reg = Reg(0x042A0);
/// Bits of [`AUTOC`].
pub mod autoc {
    /// Restart; clears itself.
    pub const RESTART_AN: u32 = 1 << 12;
    /// Link mode select.
    pub const LMS_MASK: u32 = 0b111 << 13;
    /// 10 Gb/s serial (SFI).
    pub const LMS_10G_SERIAL: u32 = 0b011 << 13;
    /// 10 Gb/s parallel PMA/PMD.
    pub const PARALLEL_10G_MASK: u32 = 0b11 << 7;
}
/// Auto-negotiation control 2 (8.2.3.22.21).
pub const AUTOC2: Reg = Reg(0x042A8);
/// Bits of [`AUTOC2`].
pub mod autoc2 {
    /// 10 Gb/s serial PMA/PMD.
    pub const SERIAL_10G_MASK: u32 = 0b11 << 16;
    /// SFI.
    pub const SERIAL_10G_SFI: u32 = 0b10 << 16;
}
/// Link status (8.2.3.22.20). Read-only.
pub const LINKS: Reg = Reg(0x042A4);
/// Bits of [`LINKS`].
pub mod links {
    /// Speed.
    pub const SPEED_MASK: u32 = 0b11 << 28;
    /// 100 Mb/s.
    pub const SPEED_100M: u32 = 0b01 << 28;
    /// 1 Gb/s.
    pub const SPEED_1G: u32 = 0b10 << 28;
    /// 10 Gb/s.
    pub const SPEED_10G: u32 = 0b11 << 28;
    /// The link is up.
    pub const UP: u32 = 1 << 30;
}
/// MAC flow control (8.2.3.22.34).
pub const MFLCN: Reg = Reg(0x04294);
/// Flow control configuration (8.2.3.3.7).
pub const FCCFG: Reg = Reg(0x03D00);
/// Flow control receive threshold, low (8.2.3.3.3): `n` below 8.
pub const fn fcrtl(n: u32) -> Reg {
    Reg(0x03220 + 4 * n)
}
/// Flow control receive threshold, high (8.2.3.3.4): `n` below 8.
pub const fn fcrth(n: u32) -> Reg {
    Reg(0x03260 + 4 * n)
}
/// Flow control timer values (8.2.3.3.2): `n` below 4.
pub const fn fcttv(n: u32) -> Reg {
    Reg(0x03200 + 4 * n)
}
/// Flow control refresh threshold (8.2.3.3.5).
pub const FCRTV: Reg = Reg(0x032A0);

#[cfg(test)]
mod tests {
    use super::*;

    fn q(n: u8) -> Queue {
        Queue::new(n).expect("a queue of the device")
    }

    #[test]
    fn receive_queues_come_in_two_blocks() {
        assert_eq!((rdbal(q(0)), rdt(q(63))), (Reg(0x01000), Reg(0x01FD8)));
        assert_eq!((rdbal(q(64)), rxdctl(q(127))), (Reg(0x0D000), Reg(0x0DFE8)));
        assert_eq!(srrctl(q(64)), Reg(0x0D014));
    }

    #[test]
    fn transmit_queues_come_in_one_block() {
        assert_eq!((tdbal(q(0)), tdt(q(1)), tdwbah(q(127))), (Reg(0x06000), Reg(0x06058), Reg(0x07FFC)));
    }

    #[test]
    fn there_is_no_queue_128() {
        assert_eq!(Queue::new(128), None);
    }

    #[test]
    fn every_register_lies_in_the_window() {
        for r in [rah(127), mpsar(255), vfta(127), psrtype(63), GCR_EXT, SW_FW_SYNC, txpbsize(7)] {
            assert!(r.0 as usize + 4 <= crate::BAR_BYTES && r.0 % 4 == 0, "{r:?}");
        }
    }
}
