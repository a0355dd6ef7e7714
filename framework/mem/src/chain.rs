//! Frames longer than one buffer.

use crate::{Batch, Local, MAX_SEGMENTS, Meta, Slot, row::Row};

/// A frame under construction, buffer by buffer. Owned by whoever builds it; a chain that is let go is freed.
///
/// The links are kept in the [`crate::Ext`] of each buffer; the head owns the rest.
pub struct Chain {
    head: Slot,
    head_len: u16,
    tail: Slot,
    segs: u16,
    total: u32,
    local: Local,
    done: bool,
}

impl Chain {
    /// Starts with one buffer of which the device filled `len` bytes.
    ///
    /// # Errors
    /// The slot, if `len` is more than a buffer holds.
    pub fn new(local: &Local, slot: Slot, len: u16) -> Result<Self, Slot> {
        if len > local.layout().room() {
            return Err(slot);
        }
        let tail = slot.alias();
        Ok(Self {
            head: slot,
            head_len: len,
            tail,
            segs: 1,
            total: len.into(),
            local: local.clone(),
            done: false,
        })
    }

    /// Adds one more buffer with `len` bytes.
    ///
    /// # Errors
    /// The slot, if `len` is more than a buffer holds or the frame has [`MAX_SEGMENTS`] already.
    pub fn push(&mut self, slot: Slot, len: u16) -> Result<(), Slot> {
        if len > self.local.layout().room() || usize::from(self.segs) == MAX_SEGMENTS {
            return Err(slot);
        }
        self.local.edit_ext(&self.tail, |e| e.next = slot.line());
        self.local.edit_ext(&slot, |e| {
            e.next = 0;
            e.seg_len = len;
        });
        self.tail = slot;
        self.segs += 1;
        self.total += u32::from(len);
        Ok(())
    }

    /// Buffers so far.
    pub const fn segments(&self) -> usize {
        self.segs as usize
    }
    /// Bytes so far.
    pub const fn total_len(&self) -> u32 {
        self.total
    }

    /// Puts the finished frame into a batch.
    ///
    /// # Errors
    /// The chain, if the batch is full.
    pub fn finish(mut self, batch: &mut Batch, meta: Meta) -> Result<(), Self> {
        if batch.room() == 0 {
            return Err(self);
        }
        let (segs, total) = (self.segs, self.total);
        let flags = if segs > 1 { meta.flags.with(crate::Flags::CHAIN) } else { meta.flags };
        self.local.edit_ext(&self.head, |e| {
            e.segs = segs;
            e.total = total;
            if segs == 1 {
                e.next = 0;
            }
        });
        self.done = true;
        let off = self.local.layout().headroom();
        let slot = self.head.alias();
        batch.push_row(Row { slot, off, len: self.head_len, flags, port: meta.port, hash: meta.hash });
        Ok(())
    }

    /// Gives all buffers back; whoever built the chain counts why.
    pub fn free(self) {}
}

impl Drop for Chain {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if self.segs > 1 {
            self.local.free_chain(self.head.alias());
        } else {
            self.local.put(self.head.alias());
        }
    }
}
