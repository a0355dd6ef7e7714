//! What the kernel and we lay into shared memory and pass to each other: `<linux/if_packet.h>`, `<linux/virtio_net.h>`,
//! `<linux/filter.h>`. No logic.

use zerocopy::native_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Options of packet sockets, level `SOL_PACKET` (packet(7)).
pub mod option {
    pub const ADD_MEMBERSHIP: i32 = 1;
    pub const DROP_MEMBERSHIP: i32 = 2;
    pub const RX_RING: i32 = 5;
    pub const STATISTICS: i32 = 6;
    pub const VERSION: i32 = 10;
    pub const TX_RING: i32 = 13;
    pub const VNET_HDR: i32 = 15;
    pub const FANOUT: i32 = 18;
    pub const QDISC_BYPASS: i32 = 20;
    pub const IGNORE_OUTGOING: i32 = 23;
}

/// `TPACKET_V3`, in the numbering of `PACKET_VERSION`.
pub const VERSION_3: u32 = 2;
/// `PACKET_MR_PROMISC`.
pub const MR_PROMISC: u16 = 1;

/// `PACKET_FANOUT_*`.
pub mod fanout {
    pub const HASH: u16 = 0;
    pub const LB: u16 = 1;
    pub const CPU: u16 = 2;
    pub const QM: u16 = 5;
    /// The kernel picks an identifier that nobody has (Linux 4.12).
    pub const FLAG_UNIQUEID: u16 = 0x2000;
    /// As `PACKET_IGNORE_OUTGOING`, for the group (Linux 5.16).
    pub const FLAG_IGNORE_OUTGOING: u16 = 0x4000;
}

/// `TP_STATUS_*` of received frames and blocks.
pub mod rx_status {
    /// Ours; 0 is the kernel's.
    pub const USER: u32 = 1;
    pub const VLAN_VALID: u32 = 1 << 4;
    pub const VLAN_TPID_VALID: u32 = 1 << 6;
}

/// `TP_STATUS_*` of frames to be sent.
pub mod tx_status {
    /// Ours.
    pub const AVAILABLE: u32 = 0;
    pub const SEND_REQUEST: u32 = 1;
    /// The kernel could not make a packet of it, and goes no further.
    pub const WRONG_FORMAT: u32 = 1 << 2;
    /// Bits that say what the time stamp is.
    pub const STAMPS: u32 = 7 << 29;
}

/// `struct tpacket_req3`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RingRequest {
    pub block_size: u32,
    pub block_nr: u32,
    pub frame_size: u32,
    pub frame_nr: u32,
    /// Milliseconds.
    pub retire_blk_tov: u32,
    pub sizeof_priv: u32,
    pub feature_req_word: u32,
}

/// `struct tpacket_stats_v3`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Stats {
    /// Frames meant for the socket, those dropped among them.
    pub packets: u32,
    pub drops: u32,
    pub freezes: u32,
}

/// `struct packet_mreq`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Membership {
    pub ifindex: i32,
    pub kind: u16,
    pub alen: u16,
    pub address: [u8; 8],
}

/// `struct tpacket_block_desc` with `struct tpacket_hdr_v1` in it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlockHeader {
    pub version: U32,
    pub offset_to_priv: U32,
    pub status: U32,
    pub num_pkts: U32,
    pub offset_to_first_pkt: U32,
    pub blk_len: U32,
    pub seq_num: [U32; 2],
    pub ts_first_pkt: [U32; 2],
    pub ts_last_pkt: [U32; 2],
}

impl BlockHeader {
    pub const LEN: usize = size_of::<Self>();
    pub const STATUS: usize = core::mem::offset_of!(Self, status);
    pub const NUM_PKTS: usize = core::mem::offset_of!(Self, num_pkts);
}

/// `struct tpacket3_hdr`, the head of a frame in a ring.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FrameHeader {
    pub next_offset: U32,
    pub sec: U32,
    pub nsec: U32,
    /// Bytes that are here.
    pub snaplen: U32,
    /// Bytes of the frame.
    pub len: U32,
    pub status: U32,
    /// Where the frame's bytes start, from this header.
    pub mac: U16,
    pub net: U16,
    pub rxhash: U32,
    pub vlan_tci: U32,
    pub vlan_tpid: U16,
    pub padding: [u8; 10],
}

impl FrameHeader {
    pub const LEN: usize = size_of::<Self>();
    pub const NEXT_OFFSET: usize = core::mem::offset_of!(Self, next_offset);
    pub const FRAME_LEN: usize = core::mem::offset_of!(Self, len);
    pub const STATUS: usize = core::mem::offset_of!(Self, status);
}

/// `struct sockaddr_ll`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LinkAddress {
    pub family: U16,
    /// Big endian.
    pub protocol: [u8; 2],
    pub ifindex: U32,
    pub hatype: U16,
    pub pkttype: u8,
    pub halen: u8,
    pub addr: [u8; 8],
}

impl LinkAddress {
    pub const LEN: usize = size_of::<Self>();
}

/// `PACKET_OUTGOING`: a frame that this machine sent.
pub const OUTGOING: u8 = 4;
/// `PACKET_OTHERHOST`: a frame for somebody else.
pub const OTHERHOST: u32 = 3;

/// `struct virtio_net_hdr`, in the byte order of the machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    /// On the way out: bytes that go into the linear part of the kernel's packet.
    pub hdr_len: U16,
    /// Bytes of payload of a segment.
    pub gso_size: U16,
    pub csum_start: U16,
    pub csum_offset: U16,
}

impl VnetHeader {
    pub const LEN: usize = size_of::<Self>();
}

/// `VIRTIO_NET_HDR_*`.
pub mod vnet {
    pub const NEEDS_CSUM: u8 = 1;
    pub const DATA_VALID: u8 = 2;
    pub const GSO_NONE: u8 = 0;
    pub const GSO_TCPV4: u8 = 1;
    pub const GSO_TCPV6: u8 = 4;
    pub const GSO_UDP_L4: u8 = 5;
    /// Beside a TCP type: with the CWR bit set.
    pub const GSO_ECN: u8 = 0x80;
}

const _: () = assert!(BlockHeader::LEN == 48 && FrameHeader::LEN == 48 && LinkAddress::LEN == 20);
const _: () =
    assert!(VnetHeader::LEN == 10 && size_of::<RingRequest>() == 28 && size_of::<Membership>() == 16);
const _: () = assert!(BlockHeader::STATUS == 8 && BlockHeader::NUM_PKTS == 12 && FrameHeader::STATUS == 20);
