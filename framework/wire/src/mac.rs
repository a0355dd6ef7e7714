//! MAC addresses (IEEE 802-2014, 8.2: EUI-48).
use core::fmt;
use core::str::FromStr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A 48-bit MAC address in the order of the wire. Shown and parsed as `02:00:00:00:00:01`.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr([u8; 6]);

/// A text that is no MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no MAC address: write six pairs of hex digits, as in 02:00:00:00:00:01")]
pub struct MacAddrError(String);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// `00:00:00:00:00:00`, which no station has.
    pub const ZERO: Self = Self([0; 6]);

    /// From its bytes, first on the wire first.
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
    /// Its bytes, first on the wire first.
    pub const fn bytes(self) -> [u8; 6] {
        self.0
    }
    /// As a number below 2^48, first byte on top: a key for tables.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
    /// To a group of stations: the group bit is set. Broadcast is such a group.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
    /// To all stations.
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }
    /// To one station: the group bit is clear. [`MacAddr::ZERO`] counts as one.
    #[inline]
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast()
    }
    /// Assigned locally, not by a manufacturer.
    #[inline]
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }
    /// All zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.to_u64() == 0
    }
    /// One that a port may call its own: unicast and not zero.
    pub const fn is_station(self) -> bool {
        self.is_unicast() && !self.is_zero()
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddr {
    type Err = MacAddrError;
    /// Six pairs of hex digits with `:` between all or `-` between all.
    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut bytes = [0u8; 6];
        let mut parts = text.split(separator);
        for byte in &mut bytes {
            *byte = parts.next().and_then(hex_pair).ok_or_else(|| MacAddrError(text.to_owned()))?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(MacAddrError(text.to_owned())),
        }
    }
}

fn hex_pair(part: &str) -> Option<u8> {
    // `from_str_radix` alone would take "+1".
    let digits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u8::from_str_radix(part, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_both_ways() {
        let mac: MacAddr = "02:00:5E:10:00:ff".parse().unwrap();
        assert_eq!(mac.bytes(), [2, 0, 0x5e, 0x10, 0, 0xff]);
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        assert_eq!("02-00-5e-10-00-ff".parse(), Ok(mac));
        assert_eq!(mac.to_u64(), 0x0200_5e10_00ff);
        for bad in [
            "",
            "02:00:5e:10:00",
            "02:00:5e:10:00:ff:00",
            "+2:00:5e:10:00:ff",
            "2:0:5e:10:0:ff",
            "02:00-5e:10:00:ff",
        ] {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn kinds_of_addresses() {
        let group = MacAddr::new([0x01, 0x80, 0xc2, 0, 0, 0]);
        assert!(group.is_multicast() && !group.is_broadcast() && !group.is_station());
        assert!(MacAddr::BROADCAST.is_multicast() && MacAddr::BROADCAST.is_broadcast());
        let local = MacAddr::new([2, 0, 0, 0, 0, 1]);
        assert!(local.is_unicast() && local.is_local() && local.is_station());
        assert!(MacAddr::ZERO.is_unicast() && MacAddr::ZERO.is_zero() && !MacAddr::ZERO.is_station());
    }
}
