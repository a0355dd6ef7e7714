//! Header views: checked once, then they cannot panic.
//!
//! A view is made over `&[u8]` or `&mut [u8]`. Making it checks every length that its accessors rely on; from there on
//! nothing indexes, nothing allocates, and nothing can panic, whatever the bytes say.
//!
//! - [`Layers`]: where layers 2, 3 and 4 of a frame are, found in one pass. Offload set-up, RSS and filters use this.
//! - [`Ethernet`], [`Vlan`], [`Arp`], [`Ipv4`], [`Ipv6`], [`Tcp`], [`Udp`], [`Icmp`]: views. Each dereferences to its header
//!   ([`EthernetHeader`], ...), whose fields are plain and big-endian where the wire is.
//! - [`checksum`]: the Internet checksum in full and incrementally, pseudo headers, and layer 4 of a whole frame.
//! - [`rss`]: the Toeplitz hash. [`flow`]: a cheap hash that spreads flows over workers.
//! - [`vlan`]: also puts tags into frames and takes them out.
//!
//! Life of a view:
//! 1. `View::parse(bytes)` checks the fixed header, then each length field against the bytes that are there.
//!    What does not fit is a [`Malformed`] kind, to be counted.
//! 2. Fields are read (and written, over `&mut [u8]`) through the header; options by an iterator that ends at the first
//!    malformed one.
//! 3. `into_payload` hands on the rest, cut to the length that the header states, for the next view.
//!
//! ```
//! use ringwright_wire::{Ethernet, EtherType, Ipv4, IpProtocol, Layers};
//! # let mut frame = [0u8; 60];
//! # frame[12] = 8; frame[14] = 0x45; frame[17] = 28; frame[23] = 17; frame[39] = 8; frame[22] = 64;
//! let layers = Layers::parse(&frame);
//! assert_eq!(layers.protocol(), Some(IpProtocol::UDP));
//! if let Ok(ethernet) = Ethernet::parse(&mut frame[..])
//!     && ethernet.ether_type == EtherType::IPV4
//!     && let Ok(mut ip) = Ipv4::parse(ethernet.into_payload())
//! {
//!     ip.ttl = ip.ttl.saturating_sub(1);
//!     ip.fill_checksum();
//! }
//! ```
//!
//! Limits, stated: Ethernet II framing only (an 802.3 length field is no ether type); at most two VLAN tags and eight IPv6 extension headers; no
//! jumbograms (RFC 2675); IPv4 AH, ESP and tunnels are not looked into; ARP for IPv4 over Ethernet only. A view says that lengths
//! fit, not that a checksum is right: that is asked for on its own.
#![forbid(unsafe_code)]

mod arp;
pub mod checksum;
mod ethernet;
pub mod flow;
mod icmp;
mod ip;
mod ipv4;
mod ipv6;
mod l4;
mod layers;
mod mac;
mod options;
pub mod rss;
mod tcp;
mod udp;
mod view;
pub mod vlan;

pub use arp::{Arp, ArpHeader, ArpOperation};
pub use ethernet::{EtherType, Ethernet, EthernetHeader};
pub use icmp::{Icmp, IcmpHeader, icmpv4, icmpv6};
pub use ip::{Fragment, IpProtocol, IpVersion};
pub use ipv4::{Ipv4, Ipv4Header, ipv4_option};
pub use ipv6::{Extension, Extensions, Ipv6, Ipv6Header, MAX_EXTENSIONS, Upper};
pub use layers::{Depth, Layers};
pub use mac::{MacAddr, MacAddrError};
pub use options::{HeaderOption, Options};
pub use tcp::{Tcp, TcpFlags, TcpHeader, tcp_option};
pub use udp::{Udp, UdpHeader};
pub use vlan::{Tci, Vlan, VlanHeader, VlanId};

/// The traits that headers have, `IntoBytes::as_bytes` first of all, come from here.
pub use zerocopy;

/// Why bytes are not the header they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than the fixed part of the header.
    #[error("fewer bytes than the header has")]
    TooShort,
    /// The version or type fields are those of something else.
    #[error("the version or type is not the one expected")]
    WrongKind,
    /// A header length (IHL, data offset) below the fixed part or beyond the bytes.
    #[error("the header length is impossible")]
    BadHeaderLength,
    /// A total or payload length below the header's or beyond the bytes.
    #[error("the length field does not fit the bytes")]
    BadLength,
    /// An option or extension header that is cut off or stands where it must not.
    #[error("an option or extension header is cut off or misplaced")]
    BadExtension,
    /// More VLAN tags or extension headers than are followed.
    #[error("more VLAN tags or extension headers than are followed")]
    TooManyHeaders,
}
