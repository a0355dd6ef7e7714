//! Up to 64 packets, owned together.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr;

use hw::LINE;
use meter::{DropCounts, DropReason};

use crate::row::{Outgoing, Parcel, Row};
use crate::{BURST, Flags, Local, Meta, PacketBuf, Pkt, PoolId, Slot};

/// Up to [`BURST`] packets of any pools of one memory. Stays on its worker.
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<ringwright_mem::Batch>();
/// ```
#[repr(C, align(64))]
pub struct Batch {
    rows: [MaybeUninit<Row>; BURST],
    len: usize,
    /// False only if no row has [`Flags::CHAIN`].
    chained: bool,
    /// What is known of the rows' ports without looking.
    ports: Cell<Ports>,
    local: Local,
}

/// What is known of the ports of a batch's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ports {
    /// All have this one (or there are none).
    One(u16),
    /// Nothing is known.
    Any,
}

impl Ports {
    /// What is known once packets of `other` follow.
    #[inline]
    fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }
}

impl Batch {
    /// An empty batch on the worker of `local`.
    pub fn new(local: &Local) -> Self {
        let rows = [const { MaybeUninit::uninit() }; BURST];
        Self { rows, len: 0, chained: false, ports: Cell::new(Ports::Any), local: local.clone() }
    }
    /// Packets in the batch.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }
    /// No packets.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Packets that still fit.
    #[inline]
    pub const fn room(&self) -> usize {
        BURST - self.len
    }
    /// The worker's handle on memory.
    #[inline]
    pub const fn local(&self) -> &Local {
        &self.local
    }

    #[inline]
    fn rows(&self) -> &[Row] {
        // SAFETY: the first `len` rows are initialised.
        unsafe { self.rows.get_unchecked(..self.len).assume_init_ref() }
    }
    #[inline]
    fn rows_mut(&mut self) -> &mut [Row] {
        // SAFETY: the first `len` rows are initialised.
        unsafe { self.rows.get_unchecked_mut(..self.len).assume_init_mut() }
    }
    /// Packets with these ports are about to be added.
    #[inline]
    fn note_ports(&self, ports: Ports) {
        self.ports.set(if self.len == 0 { ports } else { self.ports.get().join(ports) });
    }
    /// Adds a row whose frame lies in its buffer; there must be room.
    #[inline]
    pub(crate) fn push_row(&mut self, row: Row) {
        self.chained |= row.flags.has(Flags::CHAIN);
        self.note_ports(Ports::One(row.port));
        self.rows[self.len].write(row);
        self.len += 1;
    }

    /// Adds a packet that lies at the start of a buffer's room. A device chose `len`: one that cannot be, or a full
    /// batch, gives the slot back.
    ///
    /// # Errors
    /// The slot.
    #[inline]
    pub fn push(&mut self, slot: Slot, len: u16, meta: Meta) -> Result<(), Slot> {
        let layout = self.local.layout();
        if len > layout.room() || self.len == BURST {
            return Err(slot);
        }
        let off = layout.headroom();
        let flags = meta.flags.without(Flags::CHAIN);
        self.push_row(Row { slot, off, len, flags, port: meta.port, hash: meta.hash });
        Ok(())
    }

    /// Adds up to `want` packets of `len` bytes in fresh buffers of `pool`; their bytes are whatever the buffers held.
    /// Fewer when the batch or the pool has no more, none when a buffer has no room for `len`. Returns how many.
    #[inline]
    pub fn fill(&mut self, pool: PoolId, want: usize, len: u16, meta: Meta) -> usize {
        let layout = self.local.layout();
        if len > layout.room() {
            return 0;
        }
        let (off, flags) = (layout.headroom(), meta.flags.without(Flags::CHAIN));
        let Some(slot) = Slot::from_line(1) else { return 0 };
        let like = Row { slot, off, len, flags, port: meta.port, hash: meta.hash }.into_words();
        self.note_ports(Ports::One(meta.port));
        let had = self.len;
        self.local.take_lines(pool, want.min(BURST - had), |lines| {
            for (row, &line) in self.rows[self.len..].iter_mut().zip(lines) {
                // SAFETY: the words of `like` with another buffer; lines of a pool are never 0, as line 0 lies in the
                // granule that no arena covers.
                unsafe { row.as_mut_ptr().cast::<[u32; 4]>().write([line, like[1], like[2], like[3]]) };
            }
            self.len += lines.len();
        });
        self.len - had
    }

    /// Packet `i`.
    #[inline]
    pub fn pkt(&mut self, i: usize) -> Option<Pkt<'_>> {
        // SAFETY: the first `len` rows are initialised.
        let row = unsafe { self.rows.get_mut(..self.len)?.get_mut(i)?.assume_init_mut() };
        Some(Pkt::new(row, &self.local, &self.ports))
    }
    /// All packets, in order.
    #[inline]
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = Pkt<'_>> {
        let (local, ports) = (&self.local, &self.ports);
        // SAFETY: the first `len` rows are initialised.
        let rows = unsafe { self.rows.get_unchecked_mut(..self.len).assume_init_mut() };
        rows.iter_mut().map(move |r| Pkt::new(r, local, ports))
    }
    /// Brings the headers of all packets closer.
    #[inline]
    pub fn prefetch(&self) {
        for r in self.rows() {
            // The address only feeds a prefetch, which any address suits.
            hw::prefetch_read(
                self.local.base().as_ptr().wrapping_add(r.slot.line() as usize * LINE + usize::from(r.off)),
            );
        }
    }
    /// The port of all packets, if they agree and there is one.
    #[inline]
    pub fn one_port(&self) -> Option<u16> {
        let first = self.rows().first()?.port;
        match self.ports.get() {
            Ports::One(port) => Some(port),
            Ports::Any => self.rows().iter().all(|r| r.port == first).then(|| {
                self.ports.set(Ports::One(first));
                first
            }),
        }
    }
    /// Marks all packets for `port`.
    #[inline]
    pub fn mark(&mut self, port: u16) {
        self.rows_mut().iter_mut().for_each(|r| r.port = port);
        self.ports.set(Ports::One(port));
    }
    /// Bytes of the packets from index `from` on.
    #[inline]
    pub fn bytes_from(&self, from: usize) -> u64 {
        let rows = self.rows().get(from..).unwrap_or_default();
        if self.chained {
            return self.chain_bytes(rows);
        }
        // Whole rows at a time, as the vector units like them; only one of the words means something.
        let mut sum = [0u32; 4];
        for r in rows {
            for (s, w) in sum.iter_mut().zip(r.words()) {
                *s += w >> 16;
            }
        }
        sum[Row::LEN_WORD].into()
    }

    #[cold]
    fn chain_bytes(&self, rows: &[Row]) -> u64 {
        let total = |r: &Row| self.local.ext(&r.slot).total;
        rows.iter().map(|r| u64::from(if r.flags.has(Flags::CHAIN) { total(r) } else { r.len.into() })).sum()
    }

    /// Takes packets from the front while `f` accepts them: a transmit ring that still has room. Returns how many.
    #[inline]
    pub fn drain_while(&mut self, mut f: impl FnMut(Outgoing) -> Result<(), Outgoing>) -> usize {
        let total = core::mem::replace(&mut self.len, 0); // a panic in `f` leaks, it never frees twice
        let mut n = 0;
        while n < total {
            // SAFETY: row `n` is initialised; it moves to `f`, or is written back below.
            let row = unsafe { self.rows[n].assume_init_read() };
            match f(Outgoing(row)) {
                Ok(()) => n += 1,
                Err(Outgoing(row)) => {
                    self.rows[n].write(row);
                    break;
                }
            }
        }
        self.close_gap(n, total);
        n
    }

    /// Offers every packet to `f`, in order; those that it gives back stay, in order. Returns how many it kept.
    #[inline]
    pub fn drain_each(&mut self, mut f: impl FnMut(Outgoing) -> Result<(), Outgoing>) -> usize {
        let total = core::mem::replace(&mut self.len, 0); // a panic in `f` leaks, it never frees twice
        let mut left = 0;
        for i in 0..total {
            // SAFETY: row `i` is initialised; it moves to `f`, or back to a place that was moved from.
            let row = unsafe { self.rows[i].assume_init_read() };
            if let Err(Outgoing(row)) = f(Outgoing(row)) {
                self.rows[left].write(row);
                left += 1;
            }
        }
        self.len = left;
        self.chained &= left > 0;
        total - left
    }

    /// Rows `from..to` become the rows of the batch.
    #[inline]
    fn close_gap(&mut self, from: usize, to: usize) {
        if from > 0 && from < to {
            let p = self.rows.as_mut_ptr();
            // SAFETY: in bounds (`to <= BURST`); the old places are no longer counted.
            unsafe { ptr::copy(p.add(from), p, to - from) };
        }
        self.len = to - from;
        self.chained &= self.len > 0;
    }

    /// Sends packet `i` to batch `to[exit[i]]`, each of which must have room for all. This one is empty afterwards.
    ///
    /// # Panics
    /// If a batch is full or of another worker: a fault of the graph, never of a packet.
    #[inline]
    pub fn scatter(&mut self, exit: &[u8; BURST], to: &mut [Self]) {
        let n = self.len;
        assert!(
            to.iter().all(|b| b.local.same(&self.local) && b.room() >= n),
            "room in batches of this worker"
        );
        assert!(exit[..n].iter().all(|&e| usize::from(e) < to.len()), "exits that exist");
        self.len = 0;
        for (row, &e) in self.rows[..n].iter().zip(exit) {
            // SAFETY: an initialised row; `len` is zero already, so it moves exactly once.
            to[usize::from(e)].push_row(unsafe { row.assume_init_read() });
        }
    }

    /// Moves packets from the front into `to` until it is full; the rest stays. Returns how many moved.
    ///
    /// # Panics
    /// If `to` is of another worker.
    #[inline]
    pub fn append_to(&mut self, to: &mut Self) -> usize {
        assert!(to.local.same(&self.local), "batches of one worker");
        let (n, total) = (self.len.min(to.room()), self.len);
        if n > 0 {
            to.note_ports(self.ports.get());
            to.chained |= self.chained;
        }
        // SAFETY: different batches; rows `0..n` are initialised and are given up just below.
        unsafe { ptr::copy_nonoverlapping(self.rows.as_ptr(), to.rows.as_mut_ptr().add(to.len), n) };
        to.len += n;
        self.close_gap(n, total);
        n
    }

    /// Drops all packets and counts why. Returns how many.
    pub fn drop_all(&mut self, reason: DropReason, drops: &mut DropCounts) -> usize {
        let n = self.len;
        drops.add(reason, n as u64);
        self.free();
        n
    }

    /// Frees packets that have left: for the transmit side of ports without a device.
    #[inline]
    pub fn free_sent(&mut self) -> usize {
        let n = self.len;
        self.free();
        n
    }

    #[inline]
    fn free(&mut self) {
        if self.chained {
            return self.free_chains();
        }
        let n = core::mem::replace(&mut self.len, 0);
        // SAFETY: the first `n` rows are initialised; `len` is zero already, so their slots move exactly once.
        self.local.put_rows(unsafe { self.rows.get_unchecked(..n).assume_init_ref() }, |r| r.slot.line());
    }

    #[cold]
    fn free_chains(&mut self) {
        while let Some(p) = self.pop_row() {
            self.local.free_row(p);
        }
        self.chained = false;
    }

    #[inline]
    fn pop_row(&mut self) -> Option<Row> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: an initialised row that is no longer counted in `len`.
        Some(unsafe { self.rows[self.len].assume_init_read() })
    }

    /// Parks the last packet outside any batch: for the slow path and for tests.
    pub fn pop(&mut self) -> Option<PacketBuf> {
        let row = self.pop_row()?;
        Some(PacketBuf::new(row, self.local.clone()))
    }

    /// Takes a parked packet in.
    ///
    /// # Errors
    /// The packet, if the batch is full.
    pub fn push_buf(&mut self, packet: PacketBuf) -> Result<(), PacketBuf> {
        if self.room() == 0 || !packet.local().same(&self.local) {
            return Err(packet);
        }
        self.push_row(packet.into_row());
        Ok(())
    }

    /// Takes in a packet that another worker sent.
    ///
    /// # Errors
    /// The packet, if the batch is full.
    #[inline]
    pub fn push_parcel(&mut self, parcel: Parcel) -> Result<(), Parcel> {
        if self.len == BURST {
            return Err(parcel);
        }
        self.push_row(parcel.0);
        Ok(())
    }

    /// Takes in packets that another worker sent while there is room. Returns how many.
    #[inline]
    pub fn take_parcels(&mut self, parcels: &mut impl Iterator<Item = Parcel>) -> usize {
        let had = self.len;
        while self.len < BURST
            && let Some(parcel) = parcels.next()
        {
            self.push_row(parcel.0);
        }
        self.len - had
    }

    /// A copy of packet `i` in buffers of `pool`; `None` if there is no such packet or no buffer.
    pub fn copy(&self, i: usize, pool: PoolId) -> Option<PacketBuf> {
        PacketBuf::copy_of(self.rows().get(i)?, &self.local, pool)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.len > 0 {
            self.local.lose(self.len);
            self.free();
        }
    }
}
