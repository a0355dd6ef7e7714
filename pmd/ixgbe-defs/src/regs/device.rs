//! Registers of the device as a whole: control, EEPROM, semaphores, interrupts, security block, MAC.

use hw::Reg;

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
