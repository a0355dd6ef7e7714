//! What traffic is made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use config::Rate;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use wire::MacAddr;

use crate::sizes::Sizes;

/// Most flows.
pub const MOST_FLOWS: u32 = 65_536;

/// How fast frames are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as they are asked for.
    Max,
    /// At a rate.
    At(Rate),
}

impl FromStr for Pace {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == "max" {
            return Ok(Self::Max);
        }
        config::rate(s).map(Self::At).map_err(|e| format!("{e}, or max"))
    }
}

/// The addresses that flows are between: each flow takes the next of both prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// From here ...
        src: Ipv4Net,
        /// ... to here.
        dst: Ipv4Net,
    },
    /// IPv6.
    V6 {
        /// From here ...
        src: Ipv6Net,
        /// ... to here.
        dst: Ipv6Net,
    },
}

impl Addresses {
    /// The halves of 198.18.0.0/15, which RFC 2544 (C.2.2) sets aside for this.
    pub const V4: Self = Self::V4 {
        src: Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 16),
        dst: Ipv4Net::new_assert(Ipv4Addr::new(198, 19, 0, 0), 16),
    };
    /// Two parts of 2001:2::/48, which RFC 5180 (8) sets aside for this.
    pub const V6: Self = Self::V6 {
        src: Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 0), 64),
        dst: Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 2, 0, 2, 0, 0, 0, 0), 64),
    };

    /// From and to these; what is not given is a default of the other's IP.
    ///
    /// # Errors
    /// One of IPv4 and one of IPv6.
    pub fn new(src: Option<IpNet>, dst: Option<IpNet>) -> Result<Self, String> {
        let (Self::V4 { src: src4, dst: dst4 }, Self::V6 { src: src6, dst: dst6 }) = (Self::V4, Self::V6)
        else {
            return Ok(Self::V4);
        };
        match (src, dst) {
            (None, None) => Ok(Self::V4),
            (Some(IpNet::V4(src)), None) => Ok(Self::V4 { src, dst: dst4 }),
            (None, Some(IpNet::V4(dst))) => Ok(Self::V4 { src: src4, dst }),
            (Some(IpNet::V4(src)), Some(IpNet::V4(dst))) => Ok(Self::V4 { src, dst }),
            (Some(IpNet::V6(src)), None) => Ok(Self::V6 { src, dst: dst6 }),
            (None, Some(IpNet::V6(dst))) => Ok(Self::V6 { src: src6, dst }),
            (Some(IpNet::V6(src)), Some(IpNet::V6(dst))) => Ok(Self::V6 { src, dst }),
            (Some(src), Some(dst)) => Err(format!("{src} and {dst}: use two of IPv4 or two of IPv6")),
        }
    }
}

/// A prefix, or a single address: `198.18.0.0/16`, `10.0.0.1`, `2001:2::/64`.
///
/// # Errors
/// What would be right.
pub fn prefix(s: &str) -> Result<IpNet, String> {
    let wrong = || format!("{s:?} is no prefix: write 198.18.0.0/16, 10.0.0.1 or 2001:2::/64");
    s.parse::<IpNet>().or_else(|_| s.parse::<IpAddr>().map(IpNet::from)).map_err(|_| wrong())
}

/// What traffic is made.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How many flows take turns, 1 to [`MOST_FLOWS`].
    pub flows: u32,
    /// How long frames are.
    pub sizes: Sizes,
    /// How fast they are made.
    pub pace: Pace,
    /// How many, of all flows together; `None` for no end.
    pub count: Option<u64>,
    /// Most frames of one call, 1 to 64.
    pub burst: usize,
    /// How late a frame may be made. What is later is let go and counted.
    pub catch_up: Duration,
    /// Between which addresses.
    pub addresses: Addresses,
    /// The Ethernet address that frames come from.
    pub src_mac: MacAddr,
    /// The Ethernet address that frames go to.
    pub dst_mac: MacAddr,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            flows: 64,
            sizes: Sizes::one(64).expect("a size that there is"),
            pace: Pace::Max,
            count: None,
            burst: 32,
            catch_up: Duration::from_millis(1),
            addresses: Addresses::V4,
            src_mac: MacAddr::new([0x02, 0, 0, 0, 0, 1]),
            dst_mac: MacAddr::new([0x02, 0, 0, 0, 0, 2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_and_paired() {
        let net = |s| Some(prefix(s).unwrap());
        let v4 = Addresses::new(net("10.1.2.3/8"), None).unwrap();
        assert!(
            matches!(v4, Addresses::V4 { src, dst } if src.to_string() == "10.1.2.3/8" && dst.to_string() == "198.19.0.0/16")
        );
        assert!(
            matches!(Addresses::new(None, net("2001:db8::1")), Ok(Addresses::V6 { dst, .. }) if dst.prefix_len() == 128)
        );
        assert_eq!(Addresses::new(None, None), Ok(Addresses::V4));
        let e = Addresses::new(net("10.0.0.0/8"), net("2001:2::/64")).unwrap_err();
        assert!(e.contains("two of IPv4 or two of IPv6"), "{e}");
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "2001::/129", "eth0"] {
            assert!(prefix(wrong).unwrap_err().contains("198.18.0.0/16"), "{wrong}");
        }
    }

    #[test]
    fn paces_are_read() {
        assert_eq!("max".parse(), Ok(Pace::Max));
        assert_eq!("1.5M".parse(), Ok(Pace::At(Rate::Packets(1.5e6))));
        assert_eq!("10Gbps".parse(), Ok(Pace::At(Rate::Bits(1e10))));
        assert!("fast".parse::<Pace>().unwrap_err().ends_with("or max"));
    }
}
