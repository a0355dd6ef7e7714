//! The transmit side: what Linux receives from the interface.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::Arc;

use mem::{BURST, Batch, Flags, Local, MAX_SEGMENTS, Pkt};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortError, TxQueue, TxSetup, WorkerEnv};
use virtio_defs::VirtioNetHdr;
use wire::vlan::TAG_LEN;
use wire::{EtherType, Tci};
use zerocopy::IntoBytes;

use crate::mailbox::Mailbox;
use crate::vnet::{ADDRESSES, ETHERNET, sent};

/// Longest frame that is sent: 64 KiB of IP behind Ethernet's header with tags.
const LONGEST: usize = 65_536 + 64;

/// The queue on its way. Nothing is ever in flight: the kernel has copied a frame when it has taken it.
pub struct TxState {
    file: Arc<File>,
    mailbox: Arc<Mailbox>,
}

impl TxState {
    pub const fn new(file: Arc<File>, mailbox: Arc<Mailbox>) -> Self {
        Self { file, mailbox }
    }
}

impl TxSetup for TxState {
    fn attach(self: Box<Self>, env: &WorkerEnv) -> Result<Box<dyn TxQueue>, (PortError, Box<dyn TxSetup>)> {
        let (local, drops) = (env.local.clone(), DropCounts::default());
        Ok(env.boxed_tx(Tx { state: *self, local, drops, dropped_bytes: 0, full: 0 }))
    }
    fn reclaim(self: Box<Self>, _: &Local) {}
}

struct Tx {
    state: TxState,
    local: Local,
    drops: DropCounts,
    dropped_bytes: u64,
    full: u64,
}

/// Why a packet was not sent.
enum Not {
    /// It never can be.
    Drop(DropReason),
    /// The kernel has no room now.
    Now,
    /// The interface is down, or gone.
    Down,
}

impl TxQueue for Tx {
    fn tx_burst(&mut self, from: &mut Batch, _now: u64) -> usize {
        if let Some(file) = self.state.mailbox.take() {
            self.state.file = file;
        }
        let total = from.len();
        let mut reasons = [None; BURST];
        let mut done = 0;
        while let Some(p) = from.pkt(done) {
            match send(&self.state.file, &p) {
                Ok(()) => done += 1,
                Err(Not::Drop(reason)) => {
                    reasons[done] = Some(reason);
                    done += 1;
                }
                Err(Not::Now) => break,
                Err(Not::Down) => {
                    // The others would meet with the same; the next burst tries again.
                    reasons[done..total].fill(Some(DropReason::LinkDown));
                    done = total;
                }
            }
        }
        let (mut at, mut dropped) = (0, 0);
        from.drain_while(|p| {
            if at == done {
                return Err(p);
            }
            if let Some(reason) = reasons[at] {
                self.drops.add(reason, 1);
                self.dropped_bytes += u64::from(p.total_len(&self.local));
                dropped += 1;
            }
            at += 1;
            p.free(&self.local);
            Ok(())
        });
        self.full += u64::from(done < total);
        done - dropped
    }
    fn flush(&mut self, _now: u64, _idle: bool) {}
    fn reap(&mut self) -> usize {
        0
    }
    fn inflight(&self) -> usize {
        0
    }
    fn counts(&self, sum: &mut QueueMeter) {
        sum.full += self.full;
        sum.bytes = sum.bytes.saturating_sub(self.dropped_bytes);
        sum.drops.merge(&self.drops);
    }
    fn detach(self: Box<Self>) -> Box<dyn TxSetup> {
        Box::new(self.state)
    }
}

/// Gives one packet to the kernel.
#[inline]
fn send(file: &File, p: &Pkt<'_>) -> Result<(), Not> {
    let (flags, first, total) = (p.flags(), p.bytes(), p.total_len());
    if total > LONGEST {
        return Err(Not::Drop(DropReason::TooLong));
    }
    if first.len() < ETHERNET {
        return Err(Not::Drop(DropReason::TooShort));
    }
    let odd = Flags::VLAN.with(Flags::TX_L3).with(Flags::TX_L4).with(Flags::TSO).with(Flags::USO);
    if !flags.has(odd.with(Flags::CHAIN)) {
        return write(file, &[IoSlice::new(VirtioNetHdr::default().as_bytes()), IoSlice::new(first)], false);
    }
    let ext = p.ext();
    let header = sent(flags, &ext, first, total).map_err(Not::Drop)?;
    // The header, the frame in up to 64 pieces, the first of them perhaps with a tag in it.
    let mut parts = [IoSlice::new(&[]); MAX_SEGMENTS + 3];
    parts[0] = IoSlice::new(header.as_bytes());
    let mut n = 1;
    let mut add = |bytes| {
        if let Some(part) = parts.get_mut(n) {
            *part = IoSlice::new(bytes);
            n += 1;
        }
    };
    let tag = tag(ext.vlan);
    let mut pieces = p.segments();
    if flags.has(Flags::VLAN)
        && let Some((addresses, rest)) = pieces.next().and_then(|first| first.split_at_checked(ADDRESSES))
    {
        [addresses, &tag, rest].into_iter().for_each(&mut add);
    }
    pieces.for_each(&mut add);
    write(file, parts.get(..n).unwrap_or_default(), flags.has(odd))
}

/// Type and tag, as they stand in a frame (IEEE 802.1Q, 9.3).
fn tag(vlan: u16) -> [u8; TAG_LEN] {
    let mut tag = [0; TAG_LEN];
    tag[..2].copy_from_slice(&EtherType::VLAN.value().to_be_bytes());
    tag[2..].copy_from_slice(&Tci::from_raw(vlan).raw().to_be_bytes());
    tag
}

fn write(mut file: &File, parts: &[IoSlice<'_>], odd: bool) -> Result<(), Not> {
    loop {
        match file.write_vectored(parts) {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(refused(&e, odd)),
        }
    }
}

/// What an error of `tun_get_user` (tun.c) says.
#[cold]
fn refused(e: &io::Error, odd: bool) -> Not {
    match e.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Not::Now,
        Some(libc::EIO | libc::EBADFD) => Not::Down,
        // The kernel looks at what the header says more closely than we do.
        _ if odd => Not::Drop(DropReason::UnsupportedOffload),
        _ => Not::Drop(DropReason::BadLength),
    }
}
