//! What IPv4 and IPv6 share.
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Which IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// Which part of its datagram a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// All of it.
    #[default]
    Whole,
    /// The first part: it has the layer 4 header, but not all of what its checksum covers.
    First,
    /// Another part: no layer 4 header.
    Later,
}

/// IPv4's protocol or IPv6's next header (IANA "Assigned Internet Protocol Numbers"). Any value is representable.
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
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4.
    pub const ICMPV4: Self = Self(1);
    /// IGMP.
    pub const IGMP: Self = Self(2);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// IPv6 routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// GRE.
    pub const GRE: Self = Self(47);
    /// Encapsulating security payload.
    pub const ESP: Self = Self(50);
    /// Authentication header.
    pub const AH: Self = Self(51);
    /// ICMP for IPv6.
    pub const ICMPV6: Self = Self(58);
    /// Nothing follows.
    pub const NO_NEXT: Self = Self(59);
    /// IPv6 destination options.
    pub const DESTINATION: Self = Self(60);
    /// SCTP.
    pub const SCTP: Self = Self(132);
    /// IPv6 mobility header.
    pub const MOBILITY: Self = Self(135);
    /// Host identity protocol.
    pub const HIP: Self = Self(139);
    /// Shim6.
    pub const SHIM6: Self = Self(140);

    /// An IPv6 extension header that can be stepped over (RFC 7045 section 3; ESP hides what follows it).
    #[inline]
    pub const fn is_extension(self) -> bool {
        matches!(
            self,
            Self::HOP_BY_HOP
                | Self::ROUTING
                | Self::FRAGMENT
                | Self::AH
                | Self::DESTINATION
                | Self::MOBILITY
                | Self::HIP
                | Self::SHIM6
        )
    }
}

impl fmt::Debug for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ICMPV4 => f.write_str("icmp"),
            Self::TCP => f.write_str("tcp"),
            Self::UDP => f.write_str("udp"),
            Self::ICMPV6 => f.write_str("icmpv6"),
            Self(other) => write!(f, "protocol {other}"),
        }
    }
}
