//! Receive queues (7.1): posting buffers, and taking what the device says about frames.

use hw::Doorbell;
use ixgbe_defs::{RssType, RxDesc, rx_error, rx_status};
use mem::{Batch, Chain, Ext, Flags, Local, Meta, PoolId};
use meter::{DropCounts, DropReason, QueueMeter};
use port::{PortConfig, PortError, RxQueue, RxSetup, WorkerEnv};
use ring::Pos;

use crate::guard::Guarded;

/// Buffers are posted when this many entries are free: one tail write for as many.
const REFILL: u32 = 32;

/// What a frame can be.
#[derive(Clone, Copy)]
pub struct RxLimits {
    /// KiB that the device may fill of a buffer.
    pub kib: u32,
    /// Bytes of the longest frame.
    pub longest: u32,
    /// Descriptors of the longest frame.
    pub segments: u32,
}

/// A receive queue between workers: its ring, its posted buffers, its positions.
pub struct RxState {
    held: Guarded<RxDesc>,
    tail: Doorbell,
    /// The entry that the device finishes next.
    head: Pos,
    /// The entry that is posted next.
    next: Pos,
    limits: RxLimits,
    port: u16,
    /// How many packets ahead is prefetched; 0 for the plain loop.
    prefetch: u32,
    strip: bool,
    refill: u32,
    /// In the rest of a frame that was too long.
    skipping: bool,
}

impl RxState {
    pub fn new(
        held: Guarded<RxDesc>,
        tail: Doorbell,
        cfg: &PortConfig,
        limits: RxLimits,
        start: Pos,
    ) -> Self {
        let size = cfg.rx_ring.get();
        let start = start & !(size - 1);
        Self {
            held,
            tail,
            head: start,
            next: start,
            limits,
            port: cfg.port,
            prefetch: u32::from(cfg.prefetch).min(size / 2),
            strip: cfg.vlan_strip,
            refill: REFILL.min(size / 4),
            skipping: false,
        }
    }

    /// Posts buffers while there are any. The tail never meets the head (7.1.9): one entry stays free.
    fn post(&mut self, local: &Local, pool: PoolId) {
        let Some(ring) = &mut self.held.ring else { return };
        let size = ring.size();
        let mut free = size.get() - 1 - self.next.wrapping_sub(self.head);
        while free > 0 {
            let slots = local.take_bulk(pool, free as usize);
            let n = slots.len() as u32;
            for slot in slots {
                if self.prefetch > 0 && self.next.is_multiple_of(4) {
                    ring.prefetch_write(self.next.wrapping_add(8));
                }
                ring.store(self.next, RxDesc::post(local.fill_iova(&slot).to_bits(), 0));
                self.held.slots[size.index(self.next)] = Some(slot);
                self.next = self.next.wrapping_add(1);
            }
            if n == 0 {
                break;
            }
            free -= n;
        }
    }

    /// Tells the device how far it may go. 8.2.3.8.5: the tail is one past the last entry posted.
    fn ring_bell(&mut self) {
        if let Some(ring) = &self.held.ring {
            self.tail.ring(ring.size().index(self.next) as u32);
        }
    }

    /// Takes back what was posted and not yet told.
    fn unpost(&mut self, local: &Local) {
        local.put_bulk(self.held.slots.iter_mut().filter_map(Option::take));
        self.next = self.head;
    }
}

impl RxSetup for RxState {
    fn attach(
        mut self: Box<Self>,
        env: &WorkerEnv,
    ) -> Result<Box<dyn RxQueue>, (PortError, Box<dyn RxSetup>)> {
        let pool = match env.pool() {
            Ok(pool) => pool,
            Err(e) => return Err((e, self)),
        };
        let first = self.next == self.head;
        self.post(&env.local, pool);
        let (have, need) = (self.next.wrapping_sub(self.head) as usize, self.held.slots.len() - 1);
        if first && have < need {
            self.unpost(&env.local);
            return Err((PortError::NoBuffers { need, have }, self));
        }
        self.ring_bell();
        Ok(env.boxed_rx(Rx {
            state: *self,
            local: env.local.clone(),
            pool,
            drops: DropCounts::default(),
            doorbells: 1,
        }))
    }

    fn reclaim(self: Box<Self>, local: &Local) {
        self.held.give_back(local);
    }
}

/// A receive queue on its worker.
struct Rx {
    state: RxState,
    local: Local,
    pool: PoolId,
    drops: DropCounts,
    doorbells: u64,
}

/// What a write-back says about a packet, without a branch: 7.1.6.2, status and errors.
#[inline]
fn meta_of(d: &RxDesc, port: u16) -> Meta {
    const fn bit(word: u32, mask: u32) -> u16 {
        (word >> mask.trailing_zeros() & 1) as u16
    }
    const { assert!(Flags::L3_BAD.0 == Flags::L3_GOOD.0 << 1 && Flags::L4_BAD.0 == Flags::L4_GOOD.0 << 1) };
    let (status, errors) = (d.status(), d.errors());
    let l3 = (bit(status, rx_status::IPCS) * Flags::L3_GOOD.0) << bit(errors, rx_error::IPE);
    let l4 = (bit(status, rx_status::L4CS) * Flags::L4_GOOD.0) << bit(errors, rx_error::L4E);
    let hash = u16::from(d.rss_type() != RssType::NONE) * Flags::HASH.0;
    Meta { hash: d.rss_hash(), flags: Flags(l3 | l4 | hash), port }
}

/// Frames of several descriptors, or parts of broken ones.
struct Span {
    descriptors: u32,
    /// The last one, if they are a frame.
    frame: Option<RxDesc>,
    /// More of it follows.
    unfinished: bool,
}

impl Rx {
    /// Takes packets until the batch is full or the device has no more.
    #[inline]
    fn receive(&mut self, out: &mut Batch) -> usize {
        let had = out.len();
        while out.room() > 0 {
            let s = &mut self.state;
            let Some(ring) = &s.held.ring else { break };
            if s.head == s.next {
                break;
            }
            let Some(d) = ring.poll(s.head) else { break };
            let size = ring.size();
            if s.prefetch > 0 {
                let ahead = s.head.wrapping_add(s.prefetch);
                if ahead.is_multiple_of(4) {
                    ring.prefetch(ahead.wrapping_add(4));
                }
                if let Some(slot) = &s.held.slots[size.index(ahead)] {
                    self.local.prefetch(slot);
                    if s.strip {
                        self.local.prefetch_ext(slot);
                    }
                }
            }
            if d.status() & rx_status::EOP == 0 || s.skipping {
                if self.long(out) { continue } else { break }
            }
            let Some(slot) = s.held.slots[size.index(s.head)].take() else { break };
            s.head = s.head.wrapping_add(1);
            let len = d.len();
            if len == 0 || u32::from(len) > s.limits.kib * 1024 || d.errors() & rx_error::RXE != 0 {
                self.local.put(slot);
                self.refuse(&d);
                continue;
            }
            let mut meta = meta_of(&d, s.port);
            if s.strip && d.status() & rx_status::VP != 0 {
                meta.flags = meta.flags.with(Flags::VLAN);
                self.local.set_ext(&slot, Ext::tagged(d.vlan()));
            }
            if let Err(slot) = out.push(slot, len, meta) {
                self.local.put(slot);
                self.refuse(&d);
            }
        }
        out.len() - had
    }

    /// Counts a frame of one descriptor that cannot be.
    #[cold]
    fn refuse(&mut self, d: &RxDesc) {
        let bad = d.errors() & rx_error::RXE != 0;
        self.drops.add(if bad { DropReason::BadDescriptor } else { DropReason::BadLength }, 1);
    }

    /// Handles a frame of several descriptors at the head. False if it is not complete yet.
    #[cold]
    fn long(&mut self, out: &mut Batch) -> bool {
        let Some(span) = self.span() else { return false };
        match span.frame {
            Some(last) => self.chain(out, span.descriptors, &last),
            None => {
                // One drop for a frame, however many pieces it is taken away in.
                if !self.state.skipping {
                    self.drops.add(DropReason::BadLength, 1);
                }
                self.recycle(span.descriptors);
            }
        }
        self.state.skipping = span.unfinished;
        true
    }

    /// Looks how far the frame at the head goes; `None` if its end is not there yet.
    ///
    /// The device fills all buffers but the last (7.1.6.1), so one that is not full and not the last is the end of
    /// whatever that was. One that goes on beyond the longest frame is taken away as far as it is there.
    fn span(&self) -> Option<Span> {
        let s = &self.state;
        let (ring, full) = (s.held.ring.as_ref()?, s.limits.kib * 1024);
        let mut total = 0;
        for i in 0..s.next.wrapping_sub(s.head) {
            let d = ring.poll(s.head.wrapping_add(i))?;
            let (len, end) = (u32::from(d.len()), d.status() & rx_status::EOP != 0);
            let broken = |unfinished| Some(Span { descriptors: i + 1, frame: None, unfinished });
            total += len;
            if s.skipping {
                return broken(!end);
            }
            if end {
                let fine =
                    (1..=full).contains(&len) && total <= s.limits.longest && d.errors() & rx_error::RXE == 0;
                return Some(Span { descriptors: i + 1, frame: fine.then_some(d), unfinished: false });
            }
            if len != full {
                return broken(false);
            }
            if i + 1 >= s.limits.segments {
                return broken(true);
            }
        }
        None
    }

    /// Gives the buffers of the next `n` entries back.
    fn recycle(&mut self, n: u32) {
        let s = &mut self.state;
        let Some(size) = s.held.ring.as_ref().map(|r| r.size()) else { return };
        let entries = (0..n).map(|i| size.index(s.head.wrapping_add(i)));
        let slots = &mut s.held.slots;
        self.local.put_bulk(entries.filter_map(|i| slots[i].take()));
        s.head = s.head.wrapping_add(n);
    }

    /// Joins the buffers of the next `n` entries, which `span` has checked.
    fn chain(&mut self, out: &mut Batch, n: u32, last: &RxDesc) {
        let s = &mut self.state;
        let Some(size) = s.held.ring.as_ref().map(|r| r.size()) else { return };
        let mut frame: Option<Chain> = None;
        for i in 0..n {
            let Some(slot) = s.held.slots[size.index(s.head)].take() else { break };
            s.head = s.head.wrapping_add(1);
            let len = if i + 1 == n { last.len() } else { (s.limits.kib * 1024) as u16 };
            let result = match &mut frame {
                None => Chain::new(&self.local, slot, len).map(|c| frame = Some(c)),
                Some(c) => c.push(slot, len),
            };
            if let Err(slot) = result {
                self.local.put(slot);
            }
        }
        let (strip, tagged) = (s.strip, last.status() & rx_status::VP != 0);
        let mut meta = meta_of(last, s.port);
        if strip && tagged {
            meta.flags = meta.flags.with(Flags::VLAN);
        }
        let fits = frame.is_some_and(|c| c.segments() == n as usize && c.finish(out, meta).is_ok());
        match out.len().checked_sub(1).and_then(|i| out.pkt(i)) {
            Some(mut p) if fits => {
                if strip && tagged {
                    p.set_ext(Ext::tagged(last.vlan()));
                }
            }
            _ => self.drops.add(DropReason::BadLength, 1),
        }
    }
}

impl RxQueue for Rx {
    #[inline]
    fn rx_burst(&mut self, out: &mut Batch) -> usize {
        let n = self.receive(out);
        let s = &mut self.state;
        let posted = s.next.wrapping_sub(s.head);
        let free = s.held.slots.len() as u32 - 1 - posted;
        if free >= s.refill {
            let before = s.next;
            s.post(&self.local, self.pool);
            if s.next != before {
                s.ring_bell();
                self.doorbells += 1;
            }
        }
        n
    }

    fn posted(&self) -> usize {
        self.state.next.wrapping_sub(self.state.head) as usize
    }

    fn counts(&self, sum: &mut QueueMeter) {
        sum.doorbells += self.doorbells;
        sum.drops.merge(&self.drops);
    }

    fn detach(self: Box<Self>) -> Box<dyn RxSetup> {
        Box::new(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ixgbe_defs::RxWriteBack;

    #[test]
    fn what_the_device_checked_becomes_flags() {
        let flags = |status, errors, rss_type| {
            let w = RxWriteBack { status, errors, rss_type, rss_hash: 7, ..RxWriteBack::default() };
            meta_of(&RxDesc::write_back(w), 3).flags
        };
        let (ip, l4) = (rx_status::IPCS, rx_status::L4CS);
        assert_eq!(flags(0, rx_error::IPE | rx_error::L4E, RssType::NONE), Flags::default(), "not checked");
        assert_eq!(flags(ip | l4, 0, RssType::NONE), Flags::L3_GOOD.with(Flags::L4_GOOD));
        assert_eq!(
            flags(ip | l4, rx_error::IPE, RssType::IPV4),
            Flags::L3_BAD.with(Flags::L4_GOOD).with(Flags::HASH)
        );
        assert_eq!(flags(ip | l4, rx_error::L4E, RssType::NONE), Flags::L3_GOOD.with(Flags::L4_BAD));
        let m = meta_of(&RxDesc::write_back(RxWriteBack { rss_hash: 7, ..RxWriteBack::default() }), 3);
        assert_eq!((m.hash, m.port), (7, 3));
    }
}
