//! One packet: borrowed from a batch, or owned outside any.

use core::cell::Cell;
use core::mem::ManuallyDrop;

use hw::LINE;
use meter::{DropCounts, DropReason};

use crate::batch::Ports;
use crate::row::Row;
use crate::{Ext, Flags, Local, MAX_SEGMENTS, PoolId, Slot};

/// One packet of a batch, borrowed.
pub struct Pkt<'b> {
    row: &'b mut Row,
    local: &'b Local,
    ports: &'b Cell<Ports>,
}

impl<'b> Pkt<'b> {
    #[inline]
    pub(crate) const fn new(row: &'b mut Row, local: &'b Local, ports: &'b Cell<Ports>) -> Self {
        Self { row, local, ports }
    }
    /// Bytes of the first buffer.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet without bytes is a packet")]
    pub const fn len(&self) -> usize {
        self.row.len as usize
    }
    /// Bytes of the whole frame.
    #[inline]
    pub fn total_len(&self) -> usize {
        if self.row.flags.has(Flags::CHAIN) {
            self.local.ext(&self.row.slot).total as usize
        } else {
            self.len()
        }
    }
    /// What is known.
    #[inline]
    pub const fn flags(&self) -> Flags {
        self.row.flags
    }
    /// Changes what is known. Whether it is a chain stays as it is.
    #[inline]
    pub const fn set_flags(&mut self, flags: Flags) {
        self.row.set_flags(flags);
    }
    /// The port it came from, or is marked for.
    #[inline]
    pub const fn port(&self) -> u16 {
        self.row.port
    }
    /// Marks it for a port.
    #[inline]
    pub fn set_port(&mut self, port: u16) {
        self.row.port = port;
        self.ports.set(Ports::Any);
    }
    /// The receive-side-scaling hash, if [`Flags::HASH`].
    #[inline]
    pub const fn hash(&self) -> u32 {
        self.row.hash
    }
    /// What is kept beside the buffer.
    #[inline]
    pub fn ext(&self) -> Ext {
        self.local.ext(&self.row.slot)
    }
    /// Writes what is kept beside the buffer.
    #[inline]
    pub fn set_ext(&mut self, ext: Ext) {
        self.local.set_ext(&self.row.slot, ext);
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        let at = self.row.slot.line() as usize * LINE + usize::from(self.row.off);
        // SAFETY: the slot's buffer lies in the window and `off` inside the buffer.
        unsafe { self.local.base().as_ptr().add(at) }
    }
    /// The frame's first buffer: all of it unless [`Flags::CHAIN`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the row owns its buffer; `off + len` stays inside it: `push`, `prepend`, `trim` and `resize` see to it.
        unsafe { core::slice::from_raw_parts(self.start(), self.len()) }
    }
    /// The frame's first buffer, to change.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`; `&mut self` makes it the only view.
        unsafe { core::slice::from_raw_parts_mut(self.start(), self.len()) }
    }
    /// All buffers of the frame, in order.
    pub fn segments(&self) -> Segments<'_> {
        Segments {
            first: Some(self.bytes()),
            next: chain_next(self.row, self.local),
            local: self.local,
            left: MAX_SEGMENTS,
        }
    }

    /// Buffer `i` of the frame, to change; `None` if it has fewer.
    pub fn segment_mut(&mut self, i: usize) -> Option<&mut [u8]> {
        let Some(after) = i.checked_sub(1) else { return Some(self.bytes_mut()) };
        let mut slot = chain_next(self.row, self.local)?;
        for _ in 0..after.min(MAX_SEGMENTS) {
            slot = Slot::from_line(self.local.ext(&slot).next)?;
        }
        let len = self.local.ext(&slot).seg_len.into();
        // SAFETY: the packet owns its chain, `&mut self` makes this the only view of it, and `Chain` checked that the
        // length fits in the buffer.
        Some(unsafe { core::slice::from_raw_parts_mut(segment_start(self.local, &slot), len) })
    }

    #[inline]
    fn add_total(&mut self, n: i32) {
        if self.row.flags.has(Flags::CHAIN) {
            self.local.edit_ext(&self.row.slot, |e| e.total = e.total.wrapping_add_signed(n));
        }
    }
    /// Grows by `n` bytes at the front, into the headroom, and returns them; `None` if that is too little.
    #[inline]
    pub fn prepend(&mut self, n: u16) -> Option<&mut [u8]> {
        let len = self.row.len.checked_add(n)?;
        self.row.off = self.row.off.checked_sub(n)?;
        self.row.len = len;
        self.add_total(i32::from(n));
        Some(&mut self.bytes_mut()[..usize::from(n)])
    }
    /// Takes `n` bytes from the front of the first buffer; `None` if it has fewer.
    #[inline]
    pub fn trim(&mut self, n: u16) -> Option<()> {
        self.row.len = self.row.len.checked_sub(n)?;
        self.row.off += n;
        self.add_total(-i32::from(n));
        Some(())
    }
    /// Makes the first buffer of a frame `len` bytes long; what is new is whatever the buffer held. `None` for a chain
    /// or a buffer that is too small.
    #[inline]
    pub fn resize(&mut self, len: u16) -> Option<&mut [u8]> {
        let end = usize::from(self.row.off) + usize::from(len);
        if self.row.flags.has(Flags::CHAIN) || end > self.local.layout().stride() {
            return None;
        }
        self.row.len = len;
        Some(self.bytes_mut())
    }
    /// Makes at least `n` bytes contiguous in the first buffer, copying from the next ones. False if the frame is
    /// shorter, or the buffer too small.
    pub fn pull(&mut self, n: usize) -> bool {
        if n <= self.len() {
            return true;
        }
        let room = self.local.layout().stride() - usize::from(self.row.off);
        if n > room || n > self.total_len() {
            return false;
        }
        while self.len() < n {
            if !self.pull_from_next(n - self.len()) {
                return false;
            }
        }
        true
    }

    /// Moves up to `want` bytes out of the second buffer, and frees it when it is empty.
    fn pull_from_next(&mut self, want: usize) -> bool {
        let Some(next) = chain_next(self.row, self.local) else { return false };
        let mut ext = self.local.ext(&next);
        let n = want.min(usize::from(ext.seg_len));
        let from = segment_start(self.local, &next);
        // SAFETY: `pull` checked the room after this buffer's bytes; `n` is at most the other's length; the two
        // buffers are different and both are this packet's.
        unsafe {
            self.start().add(self.len()).copy_from_nonoverlapping(from, n);
            from.copy_from(from.add(n), usize::from(ext.seg_len) - n);
        }
        self.row.len += n as u16;
        ext.seg_len -= n as u16;
        let (left, after) = (ext.seg_len, ext.next);
        self.local.edit_ext(&next, |e| e.seg_len = left);
        if left == 0 {
            let mut segs = 0;
            self.local.edit_ext(&self.row.slot, |e| {
                e.next = after;
                e.segs -= 1;
                segs = e.segs;
            });
            self.local.put(next);
            if segs == 1 {
                self.row.flags = self.row.flags.without(Flags::CHAIN);
            }
        }
        true
    }
}

#[inline]
fn chain_next(row: &Row, local: &Local) -> Option<Slot> {
    if row.flags.has(Flags::CHAIN) { Slot::from_line(local.ext(&row.slot).next) } else { None }
}

#[inline]
fn segment_start(local: &Local, slot: &Slot) -> *mut u8 {
    let at = slot.line() as usize * LINE + usize::from(local.layout().headroom());
    // SAFETY: the slot's buffer lies in the window.
    unsafe { local.base().as_ptr().add(at) }
}

/// The buffers of a frame, in order.
pub struct Segments<'p> {
    first: Option<&'p [u8]>,
    next: Option<Slot>,
    local: &'p Local,
    left: usize,
}

impl<'p> Iterator for Segments<'p> {
    type Item = &'p [u8];
    fn next(&mut self) -> Option<&'p [u8]> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let slot = self.next.take()?;
        self.left = self.left.checked_sub(1)?;
        let ext = self.local.ext(&slot);
        self.next = Slot::from_line(ext.next);
        // SAFETY: the packet owns its chain; `Chain` checked that the length fits in the buffer.
        Some(unsafe { core::slice::from_raw_parts(segment_start(self.local, &slot), ext.seg_len.into()) })
    }
}

/// One packet, owned, outside any batch: for the slow path and for tests.
///
/// Letting it go frees the packet, and counts it as lost ([`Local::lost`]).
pub struct PacketBuf {
    row: ManuallyDrop<Row>,
    local: Local,
    /// For [`Pkt`], which tells its batch; nobody reads this one.
    ports: Cell<Ports>,
}

impl PacketBuf {
    pub(crate) fn new(row: Row, local: Local) -> Self {
        local.park();
        Self { row: ManuallyDrop::new(row), local, ports: Cell::new(Ports::Any) }
    }
    pub(crate) const fn local(&self) -> &Local {
        &self.local
    }
    fn take_row(&mut self) -> Row {
        self.local.unpark();
        let Row { off, len, flags, port, hash, .. } = *self.row;
        Row { slot: self.row.slot.alias(), off, len, flags, port, hash }
    }
    pub(crate) fn into_row(self) -> Row {
        let mut this = ManuallyDrop::new(self);
        let row = this.take_row();
        // SAFETY: `this` is never dropped, so the handle is dropped here once.
        unsafe { core::ptr::drop_in_place(&raw mut this.local) };
        row
    }

    /// An empty packet in a buffer of `pool`, for the caller to fill ([`Pkt::resize`]); `None` if there is no buffer.
    pub fn fresh(local: &Local, pool: PoolId) -> Option<Self> {
        let slot = local.take(pool)?;
        let off = local.layout().headroom();
        Some(Self::new(Row { slot, off, len: 0, flags: Flags::default(), port: 0, hash: 0 }, local.clone()))
    }

    /// A copy of a packet with all it is known for, its bytes at the same places of their buffers.
    pub(crate) fn copy_of(row: &Row, local: &Local, pool: PoolId) -> Option<Self> {
        let mut from = Row { slot: row.slot.alias(), ..*row };
        let ports = Cell::new(Ports::Any);
        let from = Pkt::new(&mut from, local, &ports);
        let ext = from.ext();
        let segs = if row.flags.has(Flags::CHAIN) { usize::from(ext.segs) } else { 1 };
        let mut fresh = local.take_bulk(pool, segs);
        if fresh.len() < segs {
            return None;
        }
        let head = fresh.next()?;
        let mut last = head.alias();
        local.edit_ext(&head, |e| *e = Ext { next: 0, ..ext });
        for (i, bytes) in from.segments().enumerate() {
            let mut off = usize::from(row.off);
            if i > 0 {
                let slot = fresh.next()?;
                local.edit_ext(&last, |e| e.next = slot.line());
                local.edit_ext(&slot, |e| *e = Ext { seg_len: bytes.len() as u16, ..Ext::default() });
                last = slot;
                off = local.layout().headroom().into();
            }
            let to = last.line() as usize * LINE + off;
            // SAFETY: a fresh buffer of the same shape as the one that holds the bytes, at the same offset in it.
            unsafe { local.base().as_ptr().add(to).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        Some(Self::new(Row { slot: head, ..*row }, local.clone()))
    }

    /// The packet, to read and change.
    pub fn pkt(&mut self) -> Pkt<'_> {
        Pkt::new(&mut self.row, &self.local, &self.ports)
    }
    /// Drops it and counts why.
    pub fn drop_with(self, reason: DropReason, drops: &mut DropCounts) {
        drops.add(reason, 1);
        let local = self.local.clone();
        local.free_row(self.into_row());
    }
    /// Ends it on purpose: it was answered, or its bytes live on in another packet. The caller counts it as consumed.
    pub fn consume(self) {
        let local = self.local.clone();
        local.free_row(self.into_row());
    }
}

impl Drop for PacketBuf {
    fn drop(&mut self) {
        self.local.lose(1);
        let row = self.take_row();
        self.local.free_row(row);
    }
}
