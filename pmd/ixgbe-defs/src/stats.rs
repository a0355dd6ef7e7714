//! Statistics registers (82599 8.2.3.23).
//!
//! All of them clear when read (RC). 32-bit counters stick at 0xFFFF_FFFF. Byte counters of 36 bits come as a low and
//! a high register: read low first, then high (bits 3:0); the pair clears when *high* is read, so that the two halves
//! belong together. Queue counters are 16; [`rqsmr`] and [`tqsm`] map queues onto them, all onto counter 0 after reset.

use hw::Reg;

/// CRC errors, 64 bytes and longer.
pub const CRCERRS: Reg = Reg(0x04000);
/// Illegal bytes.
pub const ILLERRC: Reg = Reg(0x04004);
/// Error bytes.
pub const ERRBC: Reg = Reg(0x04008);
/// Missed packets of packet buffer `n` (0 to 7): no room in it, or reception off. The data sheet also says RXMPC.
pub const fn mpc(n: u32) -> Reg {
    Reg(0x03FA0 + 4 * n)
}
/// MAC local faults.
pub const MLFC: Reg = Reg(0x04034);
/// MAC remote faults.
pub const MRFC: Reg = Reg(0x04038);
/// Length errors: the length field does not match the frame.
pub const RLEC: Reg = Reg(0x04040);
/// Good packets received of 64 bytes, CRC included (as in all size classes).
pub const PRC64: Reg = Reg(0x0405C);
/// Good packets received of 65 to 127 bytes.
pub const PRC127: Reg = Reg(0x04060);
/// Good packets received of 128 to 255 bytes.
pub const PRC255: Reg = Reg(0x04064);
/// Good packets received of 256 to 511 bytes.
pub const PRC511: Reg = Reg(0x04068);
/// Good packets received of 512 to 1023 bytes.
pub const PRC1023: Reg = Reg(0x0406C);
/// Good packets received of 1024 bytes to the longest.
pub const PRC1522: Reg = Reg(0x04070);
/// Good packets received that pass the filters (8.2.3.23.26).
pub const GPRC: Reg = Reg(0x04074);
/// Good broadcasts received.
pub const BPRC: Reg = Reg(0x04078);
/// Good multicasts received.
pub const MPRC: Reg = Reg(0x0407C);
/// Good packets sent.
pub const GPTC: Reg = Reg(0x04080);
/// Good bytes received, low: from the destination address to the CRC inclusive.
pub const GORCL: Reg = Reg(0x04088);
/// Good bytes received, high. Reading it clears the pair.
pub const GORCH: Reg = Reg(0x0408C);
/// Good bytes sent, low: as received.
pub const GOTCL: Reg = Reg(0x04090);
/// Good bytes sent, high. Reading it clears the pair.
pub const GOTCH: Reg = Reg(0x04094);
/// Undersize: shorter than 64 bytes, good CRC.
pub const RUC: Reg = Reg(0x040A4);
/// Fragments: shorter than 64 bytes, bad CRC.
pub const RFC: Reg = Reg(0x040A8);
/// Oversize: longer than the limit, good CRC.
pub const ROC: Reg = Reg(0x040AC);
/// Jabber: longer than the limit, bad CRC.
pub const RJC: Reg = Reg(0x040B0);
/// All bytes received, low: good, bad and filtered.
pub const TORL: Reg = Reg(0x040C0);
/// All bytes received, high. Reading it clears the pair.
pub const TORH: Reg = Reg(0x040C4);
/// All packets received (8.2.3.23.59): good, bad and filtered.
pub const TPR: Reg = Reg(0x040D0);
/// All packets sent.
pub const TPT: Reg = Reg(0x040D4);
/// Packets sent of 64 bytes.
pub const PTC64: Reg = Reg(0x040D8);
/// Packets sent of 65 to 127 bytes.
pub const PTC127: Reg = Reg(0x040DC);
/// Packets sent of 128 to 255 bytes.
pub const PTC255: Reg = Reg(0x040E0);
/// Packets sent of 256 to 511 bytes.
pub const PTC511: Reg = Reg(0x040E4);
/// Packets sent of 512 to 1023 bytes.
pub const PTC1023: Reg = Reg(0x040E8);
/// Packets sent of 1024 bytes and more.
pub const PTC1522: Reg = Reg(0x040EC);
/// Multicasts sent.
pub const MPTC: Reg = Reg(0x040F0);
/// Broadcasts sent.
pub const BPTC: Reg = Reg(0x040F4);
/// Packets with a bad TCP, UDP or IP checksum.
pub const XEC: Reg = Reg(0x04120);
/// Good packets that went to host memory, all queues.
pub const RXDGPC: Reg = Reg(0x02F50);
/// Good bytes that went to host memory, low.
pub const RXDGBCL: Reg = Reg(0x02F54);
/// Good bytes that went to host memory, high. Reading it clears the pair.
pub const RXDGBCH: Reg = Reg(0x02F58);
/// Good packets that came from host memory, all queues.
pub const TXDGPC: Reg = Reg(0x087A0);
/// Good bytes that came from host memory, low.
pub const TXDGBCL: Reg = Reg(0x087A4);
/// Good bytes that came from host memory, high. Reading it clears the pair.
pub const TXDGBCH: Reg = Reg(0x087A8);

/// Queue counters of each kind.
pub const QUEUE_COUNTERS: u32 = 16;

/// Receive queue counter map (8.2.3.23.71): register `n` (0 to 31) holds the counters of queues `4n..4n + 4`, a byte
/// each, 4 bits used.
pub const fn rqsmr(n: u32) -> Reg {
    Reg(0x02300 + 4 * n)
}
/// Transmit queue counter map (8.2.3.23.73): laid out as [`rqsmr`].
pub const fn tqsm(n: u32) -> Reg {
    Reg(0x08600 + 4 * n)
}
/// Packets received by counter `n` (0 to 15).
pub const fn qprc(n: u32) -> Reg {
    Reg(0x01030 + 0x40 * n)
}
/// Bytes received by counter `n`, low.
pub const fn qbrc_l(n: u32) -> Reg {
    Reg(0x01034 + 0x40 * n)
}
/// Bytes received by counter `n`, high. Reading it clears the pair.
pub const fn qbrc_h(n: u32) -> Reg {
    Reg(0x01038 + 0x40 * n)
}
/// Packets dropped for want of descriptors by counter `n` (8.2.3.23.75): with `SRRCTL.DROP_EN`.
pub const fn qprdc(n: u32) -> Reg {
    Reg(0x01430 + 0x40 * n)
}
/// Packets sent by counter `n`.
pub const fn qptc(n: u32) -> Reg {
    Reg(0x06030 + 0x40 * n)
}
/// [`qptc`] also answers here.
pub const fn qptc_alias(n: u32) -> Reg {
    Reg(0x08680 + 4 * n)
}
/// Bytes sent by counter `n`, low.
pub const fn qbtc_l(n: u32) -> Reg {
    Reg(0x08700 + 8 * n)
}
/// Bytes sent by counter `n`, high. Reading it clears the pair.
pub const fn qbtc_h(n: u32) -> Reg {
    Reg(0x08704 + 8 * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_queue_counters_keep_clear_of_their_neighbours() {
        assert_eq!((qprc(15), qbrc_h(15)), (Reg(0x013F0), Reg(0x013F8)));
        assert!(qprc(15) < qprdc(0));
        assert_eq!(
            (qptc(15), qbtc_h(15), rqsmr(31), tqsm(31)),
            (Reg(0x063F0), Reg(0x0877C), Reg(0x0237C), Reg(0x0867C))
        );
    }
}
