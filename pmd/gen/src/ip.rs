//! What IPv4 and IPv6 do differently.

use ipnet::{Ipv4Net, Ipv6Net};
use wire::checksum::{Sum, update};
use wire::{EtherType, Fragment, IpProtocol, Ipv4Header, Ipv6Header};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IP header without options, as it lies in a frame.
pub trait Ip:
    FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy + Send + Sync + 'static
{
    /// What says in the Ethernet header that it follows.
    const ETHER_TYPE: EtherType;
    /// Its addresses.
    type Address: IntoBytes + Immutable + Copy + Send + Sync;

    /// A header between no addresses, in front of `udp_len` bytes of UDP; `None` if that is too long.
    fn between_none(udp_len: usize) -> Option<Self>;
    /// Puts addresses in, whose 16-bit words sum up to `sum`, in a header that was between none.
    fn set_addresses(&mut self, src: Self::Address, dst: Self::Address, sum: u16);
    /// The sum of both addresses' 16-bit words, modulo 2^16 - 1.
    fn address_sum(&self) -> u16;
    /// It is of this version, UDP follows at once, and all of it.
    fn is_plain(&self) -> bool;
    /// Its own checksum is right, if it has one.
    fn checksum_ok(&self) -> bool;
    /// Bytes that follow, by its own length field, if it is plain.
    fn payload_len(&self) -> usize;
}

impl Ip for Ipv4Header {
    const ETHER_TYPE: EtherType = EtherType::IPV4;
    type Address = [u8; 4];

    fn between_none(udp_len: usize) -> Option<Self> {
        Self::new(IpProtocol::UDP, [0; 4], [0; 4], udp_len)
    }
    #[inline]
    fn set_addresses(&mut self, src: [u8; 4], dst: [u8; 4], sum: u16) {
        (self.src, self.dst) = (src, dst);
        self.checksum = update(self.checksum.get(), 0, sum).into();
    }
    #[inline]
    fn address_sum(&self) -> u16 {
        Sum::default().plus(&self.src).plus(&self.dst).folded()
    }
    #[inline]
    fn is_plain(&self) -> bool {
        self.version() == 4
            && self.header_len() == Self::LEN
            && self.protocol == IpProtocol::UDP
            && self.fragment() == Fragment::Whole
    }
    #[inline]
    fn checksum_ok(&self) -> bool {
        Sum::default().plus(self.as_bytes()).is_ok()
    }
    #[inline]
    fn payload_len(&self) -> usize {
        usize::from(self.total_len.get()).saturating_sub(Self::LEN)
    }
}

impl Ip for Ipv6Header {
    const ETHER_TYPE: EtherType = EtherType::IPV6;
    type Address = [u8; 16];

    fn between_none(udp_len: usize) -> Option<Self> {
        Self::new(IpProtocol::UDP, [0; 16], [0; 16], udp_len)
    }
    #[inline]
    fn set_addresses(&mut self, src: [u8; 16], dst: [u8; 16], _: u16) {
        (self.src, self.dst) = (src, dst);
    }
    #[inline]
    fn address_sum(&self) -> u16 {
        Sum::default().plus(&self.src).plus(&self.dst).folded()
    }
    #[inline]
    fn is_plain(&self) -> bool {
        self.version() == 6 && self.next_header == IpProtocol::UDP
    }
    #[inline]
    fn checksum_ok(&self) -> bool {
        true
    }
    #[inline]
    fn payload_len(&self) -> usize {
        self.payload_len.get().into()
    }
}

/// The address of station `i` of a prefix: the first is number 0. Begins again at the first where there are no more.
pub fn station4(net: Ipv4Net, i: u32) -> [u8; 4] {
    let stations = 1u64 << (32 - net.prefix_len());
    // Neither the network's own address nor that for all of its stations, if it is large enough to have them.
    let (first, usable) = if stations > 2 { (1, stations - 2) } else { (0, stations) };
    let base = u32::from(net.network());
    (base | (first + u64::from(i) % usable) as u32).to_be_bytes()
}

/// As [`station4`]. The first address of a prefix is that of its routers (RFC 4291, 2.6.1).
pub fn station6(net: Ipv6Net, i: u32) -> [u8; 16] {
    let bits = 128 - u32::from(net.prefix_len());
    let stations = 1u64 << bits.min(48);
    let (first, usable) = if stations > 2 { (1, stations - 1) } else { (0, stations) };
    let base = u128::from(net.network());
    (base | u128::from(first + u64::from(i) % usable)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn stations_stay_inside_their_prefix() {
        let v4 = |net: &str, i| Ipv4Addr::from(station4(net.parse().unwrap(), i)).to_string();
        assert_eq!(v4("198.18.0.0/16", 0), "198.18.0.1");
        assert_eq!(v4("198.18.0.0/16", 65_533), "198.18.255.254");
        assert_eq!(v4("198.18.0.0/16", 65_534), "198.18.0.1");
        assert_eq!((v4("10.0.0.9/32", 7), v4("10.0.0.9/31", 0)), ("10.0.0.9".into(), "10.0.0.8".into()));
        assert_eq!(v4("10.1.2.3/8", 1), "10.0.0.2");
        assert_eq!(v4("0.0.0.0/0", 5), "0.0.0.6");
        let v6 = |net: &str, i| Ipv6Addr::from(station6(net.parse().unwrap(), i)).to_string();
        assert_eq!(v6("2001:2:0:1::/64", 0), "2001:2:0:1::1");
        assert_eq!(v6("2001:2::7/128", 9), "2001:2::7");
        assert_eq!(v6("::/0", 65_535), "::1:0");
    }
}
