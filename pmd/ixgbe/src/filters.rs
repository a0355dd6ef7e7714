//! Who a frame is for, and which queue gets it: addresses, multicast, promiscuity (7.1.1), RSS (7.1.2.8).

use hw::{Bar, Bus};
use ixgbe_defs::regs;
use port::PortError;

use crate::control::Ixgbe;
use crate::device::Device;
use crate::{NAME, RssBy};

/// 4.6.7: whatever a reset leaves in the tables is cleared. The first address, the device's own, stays.
pub fn clear(bar: &Bar) {
    for n in 1..regs::RECEIVE_ADDRESSES {
        bar.write32(regs::rah(n), 0);
        bar.write32(regs::ral(n), 0);
    }
    for n in 0..128 {
        bar.write32(regs::mta(n), 0);
        bar.write32(regs::vfta(n), 0);
    }
    // 7.1.1.2: VLAN tags are not filtered, and have the usual ether type.
    bar.modify32(regs::VLNCTRL, regs::vlnctrl::VFE | regs::vlnctrl::CFIEN, 0);
    // 7.1.1.1.2: the table is indexed by bits 47:36.
    bar.write32(regs::MCSTCTRL, regs::mcstctrl::MFE);
}

/// 8.2.3.7.1: broadcasts always, bad frames never, everything if `on`.
pub fn promiscuous(bar: &Bar, on: bool) {
    use regs::fctrl::{BAM, MPE, SBP, UPE};
    let all = if on { MPE | UPE } else { 0 };
    bar.modify32(regs::FCTRL, BAM | MPE | SBP | UPE, BAM | all);
}

/// Toeplitz over addresses and ports, spread evenly over `queues`. Also with one queue: the hash is worth having.
pub fn rss<B: Bus>(d: &Device<B>, queues: u16, by: RssBy) {
    use regs::mrqc::{IPV4, IPV6, MRQE_RSS, TCP_IPV4, TCP_IPV6, UDP_IPV4, UDP_IPV6};
    let key = wire::rss::RssKey::MICROSOFT.0;
    for (n, word) in key.as_chunks::<4>().0.iter().enumerate() {
        d.bar.write32(regs::rssrk(n as u32), u32::from_le_bytes(*word));
    }
    for n in 0..regs::RETA_ENTRIES as u32 / 4 {
        let entry = |i: u32| ((4 * n + i) % u32::from(queues)) << (8 * i);
        d.bar.write32(regs::reta(n), (0..4).fold(0, |w, i| w | entry(i)));
    }
    let udp = if by == RssBy::Ports { UDP_IPV4 | UDP_IPV6 } else { 0 };
    d.bar.write32(regs::MRQC, MRQE_RSS | IPV4 | IPV6 | TCP_IPV4 | TCP_IPV6 | udp);
}

fn refuse(problem: &str) -> PortError {
    PortError::Config { driver: NAME, key: "address".into(), problem: problem.into() }
}

/// 7.1.1.1.2: which bit of the table stands for a multicast address, with MCSTCTRL.MO = 0.
const fn hash_of(address: [u8; 6]) -> (u32, u32) {
    let bits = (address[4] as u32 >> 4) | (address[5] as u32) << 4;
    (bits >> 5, 1 << (bits & 31))
}

impl<B: Bus + 'static> Ixgbe<B> {
    fn entry(&self, address: [u8; 6]) -> Option<u32> {
        (0..regs::RECEIVE_ADDRESSES).find(|&n| self.receive_address(n) == Some(address))
    }

    fn receive_address(&self, n: u32) -> Option<[u8; 6]> {
        let bar = &self.device.bar;
        let [[e, f, ..], [a, b, c, d]] = [regs::rah(n), regs::ral(n)].map(|r| bar.read32(r).to_le_bytes());
        (bar.read32(regs::rah(n)) & regs::rah_bits::AV != 0).then_some([a, b, c, d, e, f])
    }

    /// Receives frames for `address` too, beside the device's own. Lasts until the device is started again.
    ///
    /// # Errors
    /// If it is a multicast address, or all 127 places are taken.
    pub fn add_address(&mut self, address: [u8; 6]) -> Result<(), PortError> {
        if address[0] & 1 != 0 {
            return Err(refuse("is a multicast address: join its group instead"));
        }
        if self.entry(address).is_some() {
            return Ok(());
        }
        let free = (1..regs::RECEIVE_ADDRESSES).find(|&n| self.receive_address(n).is_none());
        let n =
            free.ok_or_else(|| refuse("finds all 127 places taken: remove one, or receive promiscuously"))?;
        let [a, b, c, d, e, f] = address;
        // 8.2.3.7.9: low first, the valid bit last.
        self.device.bar.write32(regs::ral(n), u32::from_le_bytes([a, b, c, d]));
        self.device.bar.write32(regs::rah(n), u32::from_le_bytes([e, f, 0, 0]) | regs::rah_bits::AV);
        Ok(())
    }

    /// No longer receives frames for `address`. Returns whether it did; the device's own address stays.
    pub fn remove_address(&mut self, address: [u8; 6]) -> bool {
        let Some(n) = self.entry(address).filter(|&n| n > 0) else { return false };
        self.device.bar.write32(regs::rah(n), 0);
        self.device.bar.write32(regs::ral(n), 0);
        true
    }

    /// Receives frames for exactly these multicast groups, and for those that share a hash with one (7.1.1.1.2): such
    /// frames come in too. Lasts until the device is started again.
    pub fn set_groups(&mut self, groups: &[[u8; 6]]) {
        let mut table = [0u32; 128];
        for &g in groups {
            let (register, bit) = hash_of(g);
            table[register as usize] |= bit;
        }
        for (n, bits) in table.into_iter().enumerate() {
            self.device.bar.write32(regs::mta(n as u32), bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_hashed_by_the_last_twelve_bits_on_the_wire() {
        // 01:00:5e:00:00:01: bits 47:36 of the address, its first byte in bits 7:0, are 0x010.
        assert_eq!(hash_of([0x01, 0x00, 0x5e, 0x00, 0x00, 0x01]), (0, 1 << 16));
        assert_eq!(hash_of([0x33, 0x33, 0xff, 0x12, 0xab, 0xcd]), (0xcda >> 5, 1 << (0xcda & 31)));
    }
}
