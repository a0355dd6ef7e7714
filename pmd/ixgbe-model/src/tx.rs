//! The transmit side: descriptors, payload, offloads, wire, write-back (82599 7.2).

use ixgbe_defs::{Context, MAX_FRAME_BYTES, Queue, TxData, TxDesc, TxKind, regs, tx_cmd, tx_popts};
use zerocopy::transmute;

use crate::count::{Count, Direction, PerQueue, Place};
use crate::mac::{CRC, send};
use crate::malformed::Malformed;
use crate::modes::Lie;
use crate::offload::{self, SHORTEST};
use crate::queue::{AHEAD, Ctx, Ring};
use crate::regs::RegisterFile;
use crate::wire::Wire;

/// Buffers of one packet (82599 7.2.3.3: what the die holds of a queue).
const SEGMENTS: usize = regs::TX_ON_DIE_DESCRIPTORS as usize;

struct TxQueue {
    ring: Ring,
    write_back_at: usize,
    head_address: Option<u64>,
    contexts: [Option<Context>; 2],
    /// Buffers of the packet that is being put together.
    segments: Vec<(u64, usize)>,
    first: TxData,
    total: usize,
    /// Indices that are done and asked for a report.
    done: Vec<u32>,
    disorder: bool,
    head: u32,
    worked: bool,
}

impl TxQueue {
    fn load(ctx: &Ctx<'_>, queue: Queue) -> Option<Self> {
        let ring = Ring::load(ctx.file, Direction::Tx, queue);
        if ring.size == 0 || !ctx.config.tx_on {
            return None;
        }
        let low = ctx.file.get(regs::tdwbal(queue));
        let address = u64::from(low & !3) | u64::from(ctx.file.get(regs::tdwbah(queue))) << 32;
        let control = ctx.file.get(regs::txdctl(queue));
        Some(Self {
            write_back_at: ((control & regs::txdctl_bits::WTHRESH_MASK) >> regs::txdctl_bits::WTHRESH_SHIFT)
                as usize,
            head_address: (low & regs::tdwbal_bits::HEAD_WB_EN != 0).then_some(address),
            contexts: [None; 2],
            segments: Vec::with_capacity(SEGMENTS),
            first: TxData::default(),
            total: 0,
            done: Vec::with_capacity(ring.size as usize),
            disorder: false,
            head: ring.next,
            worked: false,
            ring,
        })
    }

    /// Fetches a batch if the die has room for it.
    #[inline]
    fn top_up(&mut self, ctx: &mut Ctx<'_>) {
        let room = SEGMENTS - self.ring.on_die.min(SEGMENTS);
        if room < ctx.params.tx_fetch && self.ring.on_die > 0 {
            return;
        }
        let available = self.ring.available(ctx.file);
        let n = self.ring.fetch(ctx, ctx.params.tx_fetch.min(room), available);
        // Those further back are brought closer when their turn is near: see `run`.
        for i in self.ring.on_die - n..self.ring.on_die.min(AHEAD) {
            ctx.file.port.prefetch_read(self.ring.peek(i)[0]);
        }
    }

    /// Sends up to `most` packets.
    fn run<W: Wire>(&mut self, ctx: &mut Ctx<'_>, wire: &mut W, scratch: &mut Vec<u8>, most: usize) -> usize {
        let mut sent = 0;
        self.worked = false;
        while sent < most && !self.ring.hung {
            if self.ring.on_die == 0 {
                self.top_up(ctx);
            }
            let Some((index, words)) = self.ring.pop() else { break };
            if self.ring.on_die >= AHEAD {
                ctx.file.port.prefetch_read(self.ring.peek(AHEAD - 1)[0]);
            }
            self.worked = true;
            let desc: TxDesc = transmute!(words.map(u64::to_le));
            match self.step(ctx, wire, scratch, index, desc) {
                Ok(whole) => sent += usize::from(whole),
                Err(m) => self.hang(ctx, m),
            }
        }
        if self.worked || !self.done.is_empty() {
            self.end_burst(ctx);
        }
        sent
    }

    #[cold]
    fn hang(&mut self, ctx: &mut Ctx<'_>, m: Malformed) {
        ctx.totals.add(Count::TxMalformed, 1);
        ctx.file.malformed(self.ring.queue, m);
        self.ring.hung = true;
    }

    /// One descriptor. True if it ended a packet.
    #[inline]
    fn step<W: Wire>(
        &mut self,
        ctx: &mut Ctx<'_>,
        wire: &mut W,
        scratch: &mut Vec<u8>,
        index: u32,
        desc: TxDesc,
    ) -> Result<bool, Malformed> {
        self.head = self.ring.after(index, 1);
        match desc.kind() {
            TxKind::Data => {}
            TxKind::Context => {
                let c = desc.as_context();
                self.contexts[usize::from(c.index & 1)] = Some(c);
                return Ok(false);
            }
            _ if ctx.liar.lying() && desc.owner() >> 32 & 1 != 0 => {
                // A lie has marked it done: its buffer may be the driver's again.
                self.segments.clear();
                return Ok(false);
            }
            _ => return Err(Malformed::Kind),
        }
        let d = desc.as_data();
        let (end, mut lie) = (d.cmd & tx_cmd::EOP != 0, None);
        if self.segments.is_empty() && offload::is_plain(&d) && !ctx.liar.lying() {
            self.plain(ctx, wire, &d);
        } else {
            self.gather(&d)?;
            if end {
                lie = ctx.liar.tx();
                self.packet(ctx, wire, scratch, lie)?;
                self.segments.clear();
            }
        }
        if let Some(lie) = lie {
            self.lie(ctx, lie);
        }
        if !self.ring.hung && (d.cmd & tx_cmd::RS != 0 || lie == Some(Lie::Unasked)) {
            self.done.push(index);
            if self.done.len() >= self.write_back_at.max(1) {
                self.write_back(ctx);
            }
        }
        Ok(end)
    }

    #[inline]
    fn gather(&mut self, d: &TxData) -> Result<(), Malformed> {
        if self.segments.is_empty() {
            (self.first, self.total) = (*d, 0);
        }
        self.total += usize::from(d.len);
        match () {
            () if d.len == 0 => Err(Malformed::NoBytes),
            () if self.segments.len() == SEGMENTS => Err(Malformed::TooManyBuffers),
            () if self.total + CRC > MAX_FRAME_BYTES => Err(Malformed::TooLong),
            () => {
                self.segments.push((d.buffer, d.len.into()));
                Ok(())
            }
        }
    }

    #[inline]
    fn check(&self, lying: bool) -> Result<(), Malformed> {
        let f = &self.first;
        match () {
            () if f.cmd & tx_cmd::TSE != 0 => Err(Malformed::Segmentation),
            // A liar has lost track of where packets begin.
            () if f.payload_len as usize != self.total && !lying => Err(Malformed::PayloadLength),
            () if f.cmd & tx_cmd::IFCS == 0 && !lying => Err(Malformed::NoCrc),
            () if self.total < 14 => Err(Malformed::TooShort),
            () => Ok(()),
        }
    }

    /// Reads, changes and sends the packet that has been put together.
    fn packet<W: Wire>(
        &mut self,
        ctx: &mut Ctx<'_>,
        wire: &mut W,
        scratch: &mut Vec<u8>,
        lie: Option<Lie>,
    ) -> Result<(), Malformed> {
        self.check(ctx.liar.lying())?;
        if lie == Some(Lie::Unsent) {
            return Ok(());
        }
        let changes =
            self.first.cmd & tx_cmd::VLE != 0 || self.first.popts & (tx_popts::IXSM | tx_popts::TXSM) != 0;
        let pad = ctx.config.pad && self.total < SHORTEST;
        let vanish = ctx.swallow(Direction::Tx);
        if let ([(address, len)], false, false) = (&self.segments[..], changes, pad) {
            let (address, len) = (*address, *len);
            // SAFETY: the slice is gone at the end of this block; the descriptor is written back later.
            match unsafe { ctx.file.port.read_payload(self.ring.site(), address, len) } {
                Ok(frame) if !vanish => send(ctx.totals, wire, frame),
                Ok(_) => {}
                Err(r) => self.ring.refuse(ctx.totals, r),
            }
        } else if self.assemble(ctx, scratch)? && !vanish {
            send(ctx.totals, wire, scratch);
        }
        if !self.ring.hung {
            self.count(ctx, self.total, vanish);
        }
        Ok(())
    }

    /// Sends a packet that needs nothing but to be sent: [`offload::is_plain`].
    #[inline]
    fn plain<W: Wire>(&mut self, ctx: &mut Ctx<'_>, wire: &mut W, d: &TxData) {
        let (len, vanish) = (usize::from(d.len), ctx.swallow(Direction::Tx));
        // SAFETY: the slice is gone at the end of this block; the descriptor is written back later.
        match unsafe { ctx.file.port.read_payload(self.ring.site(), d.buffer, len) } {
            Ok(frame) if !vanish => send(ctx.totals, wire, frame),
            Ok(_) => {}
            Err(r) => return self.ring.refuse(ctx.totals, r),
        }
        self.count(ctx, len, vanish);
    }

    #[inline]
    fn count(&self, ctx: &mut Ctx<'_>, len: usize, vanish: bool) {
        let bytes = (len + CRC) as u64;
        ctx.totals.add(Count::TxFromHost, 1);
        ctx.totals.add(Count::TxFromHostBytes, bytes);
        if vanish {
            return ctx.totals.add(Count::TxSwallowed, 1);
        }
        let counter = ctx.config.tx_counter(self.ring.queue);
        ctx.totals.add(Place::queue(PerQueue::TxPackets, counter), 1);
        ctx.totals.add(Place::queue(PerQueue::TxBytes, counter), bytes);
    }

    /// Copies the packet into `scratch` and changes it there. False if its memory could not be read.
    fn assemble(&mut self, ctx: &mut Ctx<'_>, scratch: &mut Vec<u8>) -> Result<bool, Malformed> {
        scratch.clear();
        for i in 0..self.segments.len() {
            let (address, len) = self.segments[i];
            // SAFETY: the slice is gone at the end of this block; the descriptor is written back later.
            match unsafe { ctx.file.port.read_payload(self.ring.site(), address, len) } {
                Ok(bytes) => scratch.extend_from_slice(bytes),
                Err(r) => {
                    self.ring.refuse(ctx.totals, r);
                    return Ok(false);
                }
            }
        }
        let (f, context) = (self.first, self.contexts[usize::from(self.first.index & 1)]);
        if f.popts & (tx_popts::IXSM | tx_popts::TXSM) != 0 {
            let c = context.ok_or(Malformed::NoContext)?;
            offload::checksums(scratch, f.popts, &c).map_err(|_| Malformed::Offload)?;
        }
        if f.cmd & tx_cmd::VLE != 0 {
            let c = context.ok_or(Malformed::NoContext)?;
            offload::insert_tag(scratch, ctx.config.insert_type, c.vlan);
        }
        if ctx.config.pad && scratch.len() < SHORTEST {
            scratch.resize(SHORTEST, 0);
        }
        Ok(true)
    }

    #[cold]
    fn lie(&mut self, ctx: &mut Ctx<'_>, lie: Lie) {
        ctx.totals.add(Count::Lies, 1);
        match lie {
            Lie::Disorder => self.disorder = true,
            Lie::NotPosted => {
                let tail = ctx.file.get(self.ring.tail_reg());
                if tail < self.ring.size {
                    let iova = self.ring.iova(tail) + 8;
                    let _ = ctx.file.port.write_owner(self.ring.site(), iova, TxDesc::write_back().owner());
                }
            }
            _ => {}
        }
    }

    /// Write-back of what waits for company at the end of a burst without work: hardware flushes by its timer
    /// (82599 7.2.3.5.1).
    fn end_burst(&mut self, ctx: &mut Ctx<'_>) {
        if !self.worked {
            self.write_back(ctx);
        }
        if self.worked {
            ctx.file.set(self.ring.head_reg(), self.head);
        }
    }

    /// Reports what is done: descriptors, in runs of neighbours, or the head.
    fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.liar.stall.tx || self.ring.hung || self.done.is_empty() {
            return;
        }
        let reverse = core::mem::take(&mut self.disorder);
        let result = match self.head_address {
            Some(address) => ctx.file.port.write_index(self.ring.site(), address, self.head),
            None => self.write_descriptors(ctx, reverse),
        };
        if let Err(r) = result {
            self.ring.refuse(ctx.totals, r);
        }
        self.done.clear();
    }

    fn write_descriptors(&mut self, ctx: &Ctx<'_>, reverse: bool) -> Result<(), crate::dma::Refused> {
        let back: [u64; 2] = [0, TxDesc::write_back().owner()];
        let (mut at, group) = (0, [back; SEGMENTS]);
        while let Some(from) = self.done.get(at).copied() {
            let next = |i: usize| self.done.get(at + i).is_some_and(|d| *d == from + i as u32);
            let n = (1..SEGMENTS).find(|i| !next(*i)).unwrap_or(SEGMENTS);
            let iova = self.ring.iova(from);
            ctx.file.port.write_descs(self.ring.site(), iova, &group[..n], reverse)?;
            at += n;
        }
        Ok(())
    }
}

/// The transmit side of an engine.
pub(crate) struct TxSide {
    queues: Vec<Option<Box<TxQueue>>>,
    live: Vec<usize>,
    scratch: Vec<u8>,
}

impl TxSide {
    pub(crate) fn new() -> Self {
        Self {
            queues: (0..Queue::COUNT).map(|_| None).collect(),
            live: Vec::with_capacity(Queue::COUNT.into()),
            scratch: Vec::with_capacity(MAX_FRAME_BYTES + 8),
        }
    }

    /// Forgets everything: a reset.
    pub(crate) fn clear(&mut self) {
        self.queues.iter_mut().for_each(|q| *q = None);
        self.live.clear();
    }

    /// Switches queues as the driver asks (82599 4.6.8.1): one that goes off reports first what it has sent.
    pub(crate) fn switch(&mut self, ctx: &mut Ctx<'_>) {
        for (q, on) in ctx.file.to_switch(Direction::Tx) {
            let slot = &mut self.queues[q.index()];
            if on {
                let Some(loaded) = TxQueue::load(ctx, q) else { continue };
                *slot = Some(Box::new(loaded));
                self.live.push(q.index());
            } else if let Some(mut live) = slot.take() {
                live.write_back(ctx);
                live.ring.publish(ctx.file);
                ctx.file.set(live.ring.head_reg(), live.head);
                self.live.retain(|l| *l != q.index());
            }
            ctx.file.set_enabled(Direction::Tx, q, on);
        }
        let flush = regs::txdctl_bits::SWFLSH;
        for q in &self.live {
            let Some(q) = &mut self.queues[*q] else { continue };
            let control = regs::txdctl(q.ring.queue);
            if ctx.file.get(control) & flush != 0 {
                q.write_back(ctx);
                ctx.file.update(control, flush, 0);
            }
        }
    }

    /// Up to a burst of packets of each queue. Returns how many left.
    pub(crate) fn run<W: Wire>(&mut self, ctx: &mut Ctx<'_>, wire: &mut W) -> usize {
        let mut sent = 0;
        for q in &self.live {
            if let Some(q) = &mut self.queues[*q] {
                q.top_up(ctx);
                sent += q.run(ctx, wire, &mut self.scratch, ctx.params.burst);
            }
        }
        sent
    }

    pub(crate) fn publish(&mut self, file: &RegisterFile) {
        for q in &self.live {
            if let Some(q) = &mut self.queues[*q] {
                q.ring.publish(file);
            }
        }
    }
}
