//! The receive side behind the filters: packet buffer, descriptors, write-back (82599 7.1).

use ixgbe_defs::{MAX_FRAME_BYTES, Queue, RxDesc, RxWriteBack, regs, rx_status};

use crate::count::{Count, Direction, PerQueue, Place};
use crate::mac::{CRC, admit};
use crate::modes::Lie;
use crate::packet_buffer::{Held, PacketBuffer};
use crate::queue::{AHEAD, Ctx, ON_DIE, Ring};
use crate::regs::RegisterFile;
use crate::wire::{Arrival, Wire};

struct RxQueue {
    ring: Ring,
    buffer: usize,
    drop: bool,
    strip_vlan: bool,
    /// Written-back descriptors to be, from index `done_from` on.
    done: Vec<[u64; 2]>,
    done_from: u32,
    disorder: bool,
}

/// What became of a frame.
#[derive(PartialEq, Eq)]
enum Placed {
    Done,
    NoDescriptor,
}

impl RxQueue {
    fn load(ctx: &Ctx<'_>, queue: Queue) -> Option<Self> {
        let srrctl = ctx.file.get(regs::srrctl(queue));
        let ring = Ring::load(ctx.file, Direction::Rx, queue);
        let kib = (srrctl & regs::srrctl_bits::BSIZEPACKET_MASK) as usize;
        let advanced = srrctl & regs::srrctl_bits::DESCTYPE_MASK == regs::srrctl_bits::DESCTYPE_ADVANCED;
        if !(1..=16).contains(&kib) || !advanced || ring.size == 0 {
            return None;
        }
        Some(Self {
            buffer: kib * 1024,
            drop: srrctl & regs::srrctl_bits::DROP_EN != 0,
            strip_vlan: ctx.file.get(regs::rxdctl(queue)) & regs::rxdctl_bits::VME != 0,
            done: Vec::with_capacity(ring.size as usize),
            done_from: ring.next,
            disorder: false,
            ring,
        })
    }

    /// Fetches one batch if the die has room for it and the driver has posted as much, or what there is if the die is
    /// empty.
    #[inline]
    fn top_up(&mut self, ctx: &mut Ctx<'_>) -> usize {
        let batch = ctx.params.rx_fetch;
        if self.ring.on_die + batch > ctx.params.rx_cache {
            return 0;
        }
        let available = self.ring.available(ctx.file);
        if available == 0 || (available as usize) < batch && self.ring.on_die > 0 {
            return 0;
        }
        self.fetch(ctx, available)
    }

    fn fetch(&mut self, ctx: &mut Ctx<'_>, available: u32) -> usize {
        let n = self.ring.fetch(ctx, ctx.params.rx_fetch, available);
        // Those further back are brought closer when their turn is near: see `take`.
        for i in self.ring.on_die - n..self.ring.on_die.min(AHEAD) {
            ctx.file.port.prefetch_write(self.ring.peek(i)[0]);
        }
        n
    }

    /// Takes the next buffer. A descriptor that a lie has marked done may be the driver's again: it is passed over,
    /// and not written.
    #[inline]
    fn take(&mut self, ctx: &mut Ctx<'_>) -> Option<u64> {
        loop {
            let (index, [address, owner]) = self.ring.pop()?;
            if self.ring.on_die >= AHEAD {
                ctx.file.port.prefetch_write(self.ring.peek(AHEAD - 1)[0]);
            }
            if !ctx.liar.lying() || owner & u64::from(rx_status::DD) == 0 {
                return Some(address);
            }
            self.write_back(ctx);
            self.done_from = self.ring.after(index, 1);
        }
    }

    /// Makes sure that `n` buffers are on the die.
    #[inline]
    fn reserve(&mut self, ctx: &mut Ctx<'_>, n: usize) -> bool {
        while self.ring.on_die < n {
            let available = self.ring.available(ctx.file);
            if self.fetch(ctx, available) == 0 {
                return false;
            }
        }
        true
    }

    #[inline(always)]
    fn place(&mut self, ctx: &mut Ctx<'_>, frame: &[u8], fields: RxWriteBack) -> Placed {
        if frame.len() > self.buffer || ctx.liar.lying() {
            return self.place_any(ctx, frame, fields);
        }
        if !self.reserve(ctx, 1) {
            return Placed::NoDescriptor;
        }
        let Some(address) = self.take(ctx) else { return Placed::NoDescriptor };
        if let Err(r) = ctx.file.port.write_payload(self.ring.site(), address, frame) {
            self.ring.refuse(ctx.totals, r);
            return Placed::Done;
        }
        let status = fields.status | rx_status::DD | rx_status::EOP;
        self.finish(ctx, RxWriteBack { status, len: frame.len() as u16, ..fields });
        self.count(ctx, frame.len());
        Placed::Done
    }

    /// As [`RxQueue::place`], for frames of several buffers and devices that lie.
    #[inline(never)]
    fn place_any(&mut self, ctx: &mut Ctx<'_>, frame: &[u8], fields: RxWriteBack) -> Placed {
        let need = frame.len().div_ceil(self.buffer);
        let lie = ctx.liar.rx();
        if !self.reserve(ctx, need + usize::from(lie == Some(Lie::Spurious))) {
            return Placed::NoDescriptor;
        }
        if let Some(lie) = lie {
            self.lie_before(ctx, lie);
        }
        for (i, chunk) in frame.chunks(self.buffer).enumerate() {
            let Some(address) = self.take(ctx) else { break };
            if let Err(r) = ctx.file.port.write_payload(self.ring.site(), address, chunk) {
                self.ring.refuse(ctx.totals, r);
                return Placed::Done;
            }
            let last = i + 1 == need;
            let status = if last { fields.status | rx_status::DD | rx_status::EOP } else { rx_status::DD };
            let mut w = RxWriteBack { status, len: chunk.len() as u16, ..RxWriteBack::default() };
            if last {
                w = RxWriteBack { status, len: chunk.len() as u16, ..fields };
            }
            if let Some(lie) = lie {
                self.lie_about(ctx, lie, last, &mut w);
            }
            self.finish(ctx, w);
        }
        self.count(ctx, frame.len());
        Placed::Done
    }

    #[inline]
    fn count(&self, ctx: &mut Ctx<'_>, len: usize) {
        let (counter, bytes) = (ctx.config.rx_counter(self.ring.queue), (len + CRC) as u64);
        ctx.totals.add(Place::queue(PerQueue::RxPackets, counter), 1);
        ctx.totals.add(Place::queue(PerQueue::RxBytes, counter), bytes);
        ctx.totals.add(Count::RxToHost, 1);
        ctx.totals.add(Count::RxToHostBytes, bytes);
    }

    #[inline]
    fn finish(&mut self, ctx: &mut Ctx<'_>, w: RxWriteBack) {
        self.done.push(words(&RxDesc::write_back(w)));
        if self.done.len() >= ctx.params.rx_write_back {
            self.write_back(ctx);
        }
    }

    /// Writes back what is done, a group at a time.
    fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.liar.stall.rx || self.ring.hung {
            return;
        }
        let reverse = core::mem::take(&mut self.disorder);
        let mut at = 0;
        while at < self.done.len() {
            let to_end = (self.ring.size - self.done_from) as usize;
            let n = (self.done.len() - at).min(ctx.params.rx_write_back).min(to_end);
            let iova = self.ring.iova(self.done_from);
            let group = &self.done[at..at + n];
            if let Err(r) = ctx.file.port.write_descs(self.ring.site(), iova, group, reverse) {
                self.ring.refuse(ctx.totals, r);
                break;
            }
            self.done_from = self.ring.after(self.done_from, n as u32);
            at += n;
        }
        self.done.clear();
    }

    #[cold]
    fn lie_before(&mut self, ctx: &mut Ctx<'_>, lie: Lie) {
        ctx.totals.add(Count::Lies, 1);
        let random = ctx.liar.rng.next();
        match lie {
            Lie::Spurious if self.take(ctx).is_some() => {
                let len = (random >> 40) as u16;
                self.finish(
                    ctx,
                    RxWriteBack { status: rx_status::DD | rx_status::EOP, len, ..RxWriteBack::default() },
                );
            }
            Lie::NotPosted => {
                // One past the tail is nobody's: the driver keeps one entry free.
                let tail = ctx.file.get(self.ring.tail_reg());
                if tail < self.ring.size {
                    let iova = self.ring.iova(tail) + 8;
                    let word = random << 32 | u64::from(rx_status::DD | rx_status::EOP);
                    let _ = ctx.file.port.write_owner(self.ring.site(), iova, word);
                }
            }
            Lie::Disorder => self.disorder = true,
            _ => {}
        }
    }

    #[cold]
    fn lie_about(&self, ctx: &mut Ctx<'_>, lie: Lie, last: bool, w: &mut RxWriteBack) {
        let random = ctx.liar.rng.next();
        match lie {
            Lie::LongLength => {
                let over = self.buffer as u16 + 1;
                w.len = over + (random % u64::from(u16::MAX - over)) as u16;
            }
            Lie::NoLength => w.len = 0,
            Lie::WrongLength => w.len = (random % self.buffer as u64) as u16 + 1,
            Lie::NoEnd => w.status &= !rx_status::EOP,
            Lie::Garbage => {
                let end = if last { rx_status::EOP } else { 0 };
                let status = random as u32 & !rx_status::EOP | rx_status::DD | end;
                let made_up = RxDesc::write_back(RxWriteBack {
                    rss_type: ixgbe_defs::RssType((random >> 20) as u8),
                    packet_type: ixgbe_defs::PacketType((random >> 24) as u16),
                    rss_hash: (random >> 32) as u32,
                    status,
                    errors: (random >> 40) as u32,
                    len: w.len,
                    vlan: (random >> 48) as u16,
                });
                *w = made_up.written_back();
            }
            _ => {}
        }
    }
}

fn words(d: &RxDesc) -> [u64; 2] {
    [d.buffer(), d.owner()]
}

/// The receive side of an engine.
pub(crate) struct RxSide {
    queues: Vec<Option<Box<RxQueue>>>,
    live: Vec<usize>,
    buffer: PacketBuffer,
}

impl RxSide {
    pub(crate) fn new() -> Self {
        let queues = (0..Queue::COUNT).map(|_| None).collect();
        Self { queues, live: Vec::with_capacity(Queue::COUNT.into()), buffer: PacketBuffer::new() }
    }

    /// Forgets everything: a reset.
    pub(crate) fn clear(&mut self) {
        self.queues.iter_mut().for_each(|q| *q = None);
        self.live.clear();
        self.buffer.clear();
    }

    /// Switches queues as the driver asks (82599 4.6.7.1).
    pub(crate) fn switch(&mut self, ctx: &mut Ctx<'_>) {
        for (q, on) in ctx.file.to_switch(Direction::Rx) {
            let slot = &mut self.queues[q.index()];
            if on {
                let Some(loaded) = RxQueue::load(ctx, q) else { continue };
                *slot = Some(Box::new(loaded));
                self.live.push(q.index());
            } else if let Some(mut live) = slot.take() {
                live.write_back(ctx);
                live.ring.publish(ctx.file);
                ctx.file.set(live.ring.head_reg(), live.done_from);
                self.live.retain(|l| *l != q.index());
            }
            ctx.file.set_enabled(Direction::Rx, q, on);
        }
    }

    /// Up to a burst of frames. Returns how many moved.
    pub(crate) fn run<W: Wire>(&mut self, ctx: &mut Ctx<'_>, wire: &mut W, room: &mut [u8]) -> usize {
        for q in &self.live {
            if let Some(q) = &mut self.queues[*q] {
                q.top_up(ctx);
            }
        }
        let mut moved = self.drain(ctx);
        while moved < ctx.params.burst
            && !ctx.config.rx_halted
            && (!ctx.params.pause || self.buffer.is_empty())
        {
            let Some(arrival) = wire.rx_next(room) else { break };
            moved += 1;
            self.arrive(ctx, room, arrival);
        }
        self.end_burst(ctx);
        moved
    }

    /// No frame is between the wire and memory.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Frames that were held back, in their order: one that still finds no descriptor holds up all behind it.
    fn drain(&mut self, ctx: &mut Ctx<'_>) -> usize {
        let mut moved = 0;
        while moved < ctx.params.burst {
            let Some((frame, held)) = self.buffer.front() else { break };
            let placed = self.queues[held.ticket.queue.index()]
                .as_deref_mut()
                .filter(|q| !q.ring.hung)
                .map(|q| q.place(ctx, frame, held.ticket.fields));
            match placed {
                Some(Placed::NoDescriptor) => break,
                Some(Placed::Done) => {}
                None => ctx.totals.add(Count::RxNoQueue, 1),
            }
            self.buffer.pop();
            moved += 1;
        }
        moved
    }

    fn end_burst(&mut self, ctx: &mut Ctx<'_>) {
        for q in &self.live {
            let Some(q) = &mut self.queues[*q] else { continue };
            if !q.done.is_empty() {
                q.write_back(ctx);
            }
            if q.ring.dirty {
                ctx.file.set(q.ring.head_reg(), q.done_from);
            }
        }
    }

    pub(crate) fn publish(&mut self, file: &RegisterFile) {
        for q in &self.live {
            if let Some(q) = &mut self.queues[*q] {
                q.ring.publish(file);
            }
        }
    }

    #[inline(always)]
    fn arrive(&mut self, ctx: &mut Ctx<'_>, room: &mut [u8], arrival: Arrival) {
        let strips = |q: Queue| self.queues[q.index()].as_ref().is_some_and(|q| q.strip_vlan);
        let Some((start, len, ticket)) = admit(ctx, room, arrival, strips) else { return };
        if ctx.swallow(Direction::Rx) {
            return ctx.totals.add(Count::RxSwallowed, 1);
        }
        let frame = &room[start..start + len];
        let Some(q) = self.queues[ticket.queue.index()].as_deref_mut().filter(|q| !q.ring.hung) else {
            return ctx.totals.add(Count::RxNoQueue, 1);
        };
        if self.buffer.is_empty() {
            if q.place(ctx, frame, ticket.fields) == Placed::Done {
                return;
            }
            if q.drop {
                ctx.totals.add(Count::RxNoDescriptor, 1);
                let counter = ctx.config.rx_counter(ticket.queue);
                return ctx.totals.add(Place::queue(PerQueue::RxDropped, counter), 1);
            }
        }
        if !self.buffer.push(frame, Held { ticket }, ctx.config.packet_buffer) {
            ctx.totals.add(Count::RxMissed, 1);
            ctx.file.update(regs::EICR, 0, regs::eicr::RX_MISS);
        }
    }
}

const _: () = assert!(MAX_FRAME_BYTES.div_ceil(1024) < ON_DIE);
