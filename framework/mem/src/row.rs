//! A packet's 16 bytes in a batch.

use core::cell::Cell;
use core::marker::PhantomData;
use core::num::NonZeroU32;

use hw::{Iova, LINE};

use crate::{Local, MAX_SEGMENTS};

/// One buffer: the number of its first cache line in the window. Whoever holds it owns the buffer.
///
/// Not `Copy`, not `Clone`. Belongs to the [`crate::Memory`] it was taken from. `Send`, but not `Sync`: who can name it
/// may write its [`crate::Ext`].
///
/// ```compile_fail,E0277
/// fn sync<T: Sync>() {}
/// sync::<ringwright_mem::Slot>();
/// ```
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
#[must_use = "a slot that is let go is a buffer lost"]
pub struct Slot(NonZeroU32, PhantomData<Cell<()>>);

impl Slot {
    /// Line 0 lies in the granule that no arena covers.
    #[inline]
    pub(crate) const fn from_line(line: u32) -> Option<Self> {
        match NonZeroU32::new(line) {
            Some(n) => Some(Self(n, PhantomData)),
            None => None,
        }
    }
    /// # Safety
    /// `line` is not 0.
    #[inline]
    pub(crate) const unsafe fn from_line_unchecked(line: u32) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { NonZeroU32::new_unchecked(line) }, PhantomData)
    }
    #[inline]
    pub(crate) const fn line(&self) -> u32 {
        self.0.get()
    }
    /// A second name for the same buffer, for code here that moves ownership bit by bit.
    #[inline]
    pub(crate) const fn alias(&self) -> Self {
        Self(self.0, PhantomData)
    }
}

/// What is known about a packet, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Flags(pub u16);

impl Flags {
    /// The frame has more than one buffer; [`crate::Ext`] says which.
    pub const CHAIN: Self = Self(1 << 0);
    /// Received with a VLAN tag that the device took out; it is in [`crate::Ext::vlan`]. To be sent with it put in.
    pub const VLAN: Self = Self(1 << 1);
    /// The device checked the IPv4 header checksum and it is right.
    pub const L3_GOOD: Self = Self(1 << 2);
    /// The device checked the IPv4 header checksum and it is wrong.
    pub const L3_BAD: Self = Self(1 << 3);
    /// The device checked the TCP, UDP or SCTP checksum and it is right.
    pub const L4_GOOD: Self = Self(1 << 4);
    /// The device checked the TCP, UDP or SCTP checksum and it is wrong.
    pub const L4_BAD: Self = Self(1 << 5);
    /// `hash` holds a receive-side-scaling hash.
    pub const HASH: Self = Self(1 << 6);
    /// To be sent with the IPv4 header checksum put in ([`crate::Ext::l2_len`], `l3_len`).
    pub const TX_L3: Self = Self(1 << 7);
    /// To be sent with the TCP or UDP checksum put in; the pseudo header's sum is in its place.
    pub const TX_L4: Self = Self(1 << 8);
    /// To be cut into TCP segments of [`crate::Ext::mss`] bytes, checksums as for [`Flags::TX_L4`].
    pub const TSO: Self = Self(1 << 9);
    /// To be cut into UDP datagrams of [`crate::Ext::mss`] bytes, checksums as for [`Flags::TX_L4`].
    pub const USO: Self = Self(1 << 11);
    /// [`crate::Ext::time`] holds when it was received.
    pub const TIME: Self = Self(1 << 10);

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// Both together.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Without the bits of `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What a device said about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The receive-side-scaling hash, if [`Flags::HASH`].
    pub hash: u32,
    /// What is known.
    pub flags: Flags,
    /// The port it came from; stages write the port it shall leave by.
    pub port: u16,
}

/// One packet of a batch: which buffer, where in it, what is known.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Row {
    pub slot: Slot,
    pub off: u16,
    pub len: u16,
    pub flags: Flags,
    pub port: u16,
    pub hash: u32,
}
impl Row {
    /// The word whose upper half is the length.
    pub const LEN_WORD: usize = 1;

    /// The row's memory, for code that handles whole rows.
    #[inline]
    pub const fn words(&self) -> [u32; 4] {
        // SAFETY: 16 bytes of plain integers without padding.
        unsafe { core::mem::transmute_copy(self) }
    }
    /// As [`Row::words`]; the buffer's ownership goes with them.
    #[inline]
    pub const fn into_words(self) -> [u32; 4] {
        // SAFETY: as `words`.
        unsafe { core::mem::transmute(self) }
    }
    /// Changes what is known. Whether it is a chain stays as it is.
    #[inline]
    pub const fn set_flags(&mut self, flags: Flags) {
        let chain = self.flags.0 & Flags::CHAIN.0;
        self.flags = Flags(flags.without(Flags::CHAIN).0 | chain);
    }
}
#[cfg(target_endian = "big")]
compile_error!("rows are handled as little-endian words");
const _: () = assert!(size_of::<Row>() == 16 && size_of::<Option<Slot>>() == 4);

/// A packet on its way into a transmit ring. Owned: give it back with `Err`, or take its slots.
#[must_use = "an outgoing packet that is let go is a buffer lost"]
pub struct Outgoing(pub(crate) Row);

impl Outgoing {
    /// Bytes of the first buffer.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet without bytes is a packet")]
    pub const fn len(&self) -> u16 {
        self.0.len
    }
    /// What is known and wanted.
    #[inline]
    pub const fn flags(&self) -> Flags {
        self.0.flags
    }
    /// Where the device finds the first buffer's bytes.
    #[inline]
    pub fn iova(&self, local: &Local) -> Iova {
        local.iova(self.0.slot.line() as usize * LINE + usize::from(self.0.off))
    }
    /// The packet's buffer; for packets without [`Flags::CHAIN`].
    #[inline]
    pub fn into_slot(self) -> Slot {
        debug_assert!(!self.0.flags.has(Flags::CHAIN), "a chain has several");
        self.0.slot
    }
    /// Gives its buffers back; the caller counts why.
    #[inline]
    pub fn free(self, local: &Local) {
        local.free_row(self.0);
    }
    /// What few packets need: VLAN tag, header lengths, segment size.
    #[inline]
    pub fn ext(&self, local: &Local) -> crate::Ext {
        local.ext(&self.0.slot)
    }
    /// Buffers in the frame.
    #[inline]
    pub fn segments(&self, local: &Local) -> usize {
        if self.0.flags.has(Flags::CHAIN) { usize::from(self.ext(local).segments()) } else { 1 }
    }
    /// Bytes in all.
    #[inline]
    pub fn total_len(&self, local: &Local) -> u32 {
        if self.0.flags.has(Flags::CHAIN) { self.ext(local).total_len() } else { u32::from(self.0.len) }
    }
    /// Takes the frame apart: `f` gets each buffer, with where the device finds its bytes and how many there are.
    #[inline]
    pub fn for_each_segment(self, local: &Local, mut f: impl FnMut(Iova, u16, Slot)) {
        let chain = self.0.flags.has(Flags::CHAIN);
        let iova = self.iova(local);
        let mut next = if chain { local.ext(&self.0.slot).next } else { 0 };
        f(iova, self.0.len, self.0.slot);
        let mut left = MAX_SEGMENTS;
        while let (Some(slot), true) = (Slot::from_line(next), left > 1) {
            let ext = local.ext(&slot);
            let at = local.iova(slot.line() as usize * LINE + usize::from(local.layout().headroom()));
            next = ext.next;
            left -= 1;
            f(at, ext.seg_len, slot);
        }
    }
}

/// A packet on its way to another worker of the same [`crate::Memory`]: what a hand-off ring carries.
///
/// Not `Copy`: whoever holds it owns the packet. There is no worker here whose magazines could take the buffers back,
/// so one that is let go is missing in the census for ever; empty a ring with [`Parcel::free`] before it goes.
#[derive(Debug)]
#[must_use = "a parcel that is let go is a buffer lost"]
pub struct Parcel(pub(crate) Row);

impl From<Outgoing> for Parcel {
    #[inline]
    fn from(packet: Outgoing) -> Self {
        Self(packet.0)
    }
}
impl From<Parcel> for Outgoing {
    #[inline]
    fn from(parcel: Parcel) -> Self {
        Self(parcel.0)
    }
}

impl Parcel {
    /// Bytes of the first buffer.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet without bytes is a packet")]
    pub const fn len(&self) -> u16 {
        self.0.len
    }
    /// Marks it with the port it came from.
    #[inline]
    pub const fn set_port(&mut self, port: u16) {
        self.0.port = port;
    }
    /// Changes what is known. Whether it is a chain stays as it is.
    #[inline]
    pub const fn set_flags(&mut self, flags: Flags) {
        self.0.set_flags(flags);
    }
    /// What is known.
    #[inline]
    pub const fn flags(&self) -> Flags {
        self.0.flags
    }
    /// Gives its buffers back; the caller counts why.
    pub fn free(self, local: &Local) {
        local.free_row(self.0);
    }
}
