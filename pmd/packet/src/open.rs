//! Making the sockets of a port, all of its queues at once.

use std::io::{Error, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::layout::{RingRequest, VERSION_3, fanout, option};
use crate::mapping::Mapping;
use crate::rx_ring::{RxRing, RxShape, RxSocket};
use crate::sys::{self, Filter};
use crate::tx_ring::{TxRing, TxShape, TxSockets};

/// What a port's sockets are to be.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Queues each way.
    pub queues: u16,
    /// The interface.
    pub ifindex: u32,
    /// `PACKET_FANOUT_*`.
    pub fanout: u16,
    /// Send past the queueing discipline.
    pub qdisc_bypass: bool,
    pub rx: RxShape,
    pub tx: TxShape,
}

/// The rings of all queues, and what the control side keeps of them.
pub struct Opened {
    pub rx: Vec<(RxRing, Arc<RxSocket>)>,
    pub tx: Vec<(TxRing, Arc<TxSockets>)>,
}

/// A step, and what the kernel said about it.
#[derive(Debug)]
pub struct Failed {
    pub step: &'static str,
    pub error: Error,
}

fn step<T>(step: &'static str, result: Result<T>) -> core::result::Result<T, Failed> {
    result.map_err(|error| Failed { step, error })
}

fn set<T: zerocopy::IntoBytes + zerocopy::Immutable>(fd: BorrowedFd<'_>, name: i32, value: &T) -> Result<()> {
    sys::set(fd, libc::SOL_PACKET, name, value)
}

/// Opens all sockets. The receiving ones filter everything out until [`let_in`], so that no frame is seen by a socket
/// before all have their place.
pub fn open(plan: &Plan) -> core::result::Result<Opened, Failed> {
    let mut rx = Vec::new();
    let mut group = None;
    for _ in 0..plan.queues {
        let socket = Arc::new(RxSocket::new(receiver(plan)?, plan.rx));
        if plan.queues > 1 {
            let joined = join(socket.fd(), plan.fanout, group);
            group = Some(step("sharing frames out among queues (PACKET_FANOUT)", joined)?);
        }
        rx.push((RxRing::new(Arc::clone(&socket)), socket));
    }
    let mut tx = Vec::new();
    for _ in 0..plan.queues {
        let sockets = Arc::new(transmitter(plan)?);
        tx.push((TxRing::new(Arc::clone(&sockets), plan.tx, plan.qdisc_bypass), sockets));
    }
    Ok(Opened { rx, tx })
}

/// Lets frames in, all of them or those that are not for somebody else.
pub fn let_in<'s>(sockets: impl IntoIterator<Item = &'s Arc<RxSocket>>, promiscuous: bool) -> Result<()> {
    let which = if promiscuous { Filter::Everything } else { Filter::NotOthers };
    sockets.into_iter().try_for_each(|s| sys::filter(s.fd(), which))
}

/// A receiving socket with its ring.
fn receiver(plan: &Plan) -> core::result::Result<Mapping, Failed> {
    let fd = step("opening a packet socket", sys::packet_socket())?;
    common(fd.as_fd(), &plan.rx.request(), option::RX_RING)?;
    // Linux 4.20; an older kernel marks such frames, and the queue drops them.
    let _ = set(fd.as_fd(), option::IGNORE_OUTGOING, &1u32);
    step("filtering", sys::filter(fd.as_fd(), Filter::Nothing))?;
    step("binding to the interface", sys::bind(fd.as_fd(), plan.ifindex, true))?;
    step("mapping the receive ring", Mapping::new(fd, plan.rx.len()))
}

/// The sockets of a transmit queue. They have no protocol, so that they receive nothing.
fn transmitter(plan: &Plan) -> core::result::Result<TxSockets, Failed> {
    let fd = step("opening a packet socket", sys::packet_socket())?;
    common(fd.as_fd(), &plan.tx.request(), option::TX_RING)?;
    sending(fd.as_fd(), plan)?;
    let ring = step("mapping the transmit ring", Mapping::new(fd, plan.tx.len()))?;
    let plain = step("opening a packet socket", sys::packet_socket())?;
    step("asking for offloads (PACKET_VNET_HDR)", set(plain.as_fd(), option::VNET_HDR, &1u32))?;
    sending(plain.as_fd(), plan)?;
    Ok(TxSockets { ring, plain })
}

/// The version, the header for offloads, a ring.
fn common(fd: BorrowedFd<'_>, ring: &RingRequest, which: i32) -> core::result::Result<(), Failed> {
    step("asking for TPACKET_V3", set(fd, option::VERSION, &VERSION_3))?;
    step("asking for offloads (PACKET_VNET_HDR)", set(fd, option::VNET_HDR, &1u32))?;
    let what = if which == option::RX_RING { "making the receive ring" } else { "making the transmit ring" };
    step(what, set(fd, which, ring))
}

fn sending(fd: BorrowedFd<'_>, plan: &Plan) -> core::result::Result<(), Failed> {
    step("passing by the queueing discipline", set(fd, option::QDISC_BYPASS, &u32::from(plan.qdisc_bypass)))?;
    // Room for a full ring of packets in a device that has not sent them yet. The first call needs CAP_NET_ADMIN, the
    // second stops at net.core.wmem_max: then a slow device says that it is full somewhat earlier.
    let room = plan.tx.slots().saturating_mul(4096).min(64 << 20);
    if sys::set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &room).is_err() {
        let _ = sys::set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &room);
    }
    step("binding to the interface", sys::bind(fd, plan.ifindex, false))
}

/// Joins a group of sockets that share frames out: the one given, or a new one of a number that nobody has. Returns its
/// number.
fn join(fd: BorrowedFd<'_>, how: u16, group: Option<u16>) -> Result<u16> {
    let flags = how | fanout::FLAG_IGNORE_OUTGOING;
    let [id, flags] = match group {
        Some(id) => [id, flags],
        None => [0, flags | fanout::FLAG_UNIQUEID],
    };
    set(fd, option::FANOUT, &(u32::from(flags) << 16 | u32::from(id)))?;
    // The number is in the lower half.
    sys::get::<u32>(fd, libc::SOL_PACKET, option::FANOUT).map(|v| v as u16)
}

/// Lets all who are still handling a frame for some packet socket finish: the kernel waits for them as a packet socket is
/// closed.
pub fn settle() {
    let probe: Result<OwnedFd> = sys::packet_socket();
    drop(probe);
}
