//! VLAN tags: 802.1Q and QinQ (IEEE 802.1Q-2018, 9.3 to 9.6), read in place, put in and taken out.
//!
//! [`insert`] and [`remove`] move only the 12 bytes of the addresses: a buffer with four bytes of head room takes a tag without
//! its payload being touched.
use crate::view::view;
use crate::{EtherType, Malformed};
use core::fmt;
use zerocopy::{ByteSlice, FromBytes, Immutable, IntoBytes, KnownLayout, Ref, SplitByteSlice, Unaligned};

/// Bytes that a tag adds to a frame.
pub const TAG_LEN: usize = 4;
/// Bytes of the two addresses, which stand before the first tag.
const ADDRESSES: usize = 12;

/// A VLAN number, 0 to 4095. 0 tags a priority only; 4095 is reserved (802.1Q table 9-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(u16);

impl VlanId {
    /// The number, if it is below 4096.
    pub const fn new(id: u16) -> Option<Self> {
        if id < 4096 { Some(Self(id)) } else { None }
    }
    /// As a number.
    #[inline]
    pub const fn value(self) -> u16 {
        self.0
    }
}

/// Tag control information: priority (3 bits), drop eligible (1 bit), VLAN (12 bits).
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(transparent)]
pub struct Tci([u8; 2]);

impl Tci {
    /// From its parts; of `priority` the low three bits count.
    pub const fn new(priority: u8, drop_eligible: bool, id: VlanId) -> Self {
        Self::from_raw(((priority & 7) as u16) << 13 | (drop_eligible as u16) << 12 | id.0)
    }
    /// From the 16 bits as a NIC reports them.
    pub const fn from_raw(raw: u16) -> Self {
        Self(raw.to_be_bytes())
    }
    /// The 16 bits, as a NIC takes them.
    #[inline]
    pub const fn raw(self) -> u16 {
        u16::from_be_bytes(self.0)
    }
    /// The VLAN.
    #[inline]
    pub const fn id(self) -> VlanId {
        VlanId(self.raw() & 0xfff)
    }
    /// Priority code point, 0 to 7.
    #[inline]
    pub const fn priority(self) -> u8 {
        self.0[0] >> 5
    }
    /// Drop eligible indicator.
    #[inline]
    pub const fn drop_eligible(self) -> bool {
        self.0[0] & 0x10 != 0
    }
}

impl fmt::Debug for Tci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dei = if self.drop_eligible() { " dei" } else { "" };
        write!(f, "vlan {} priority {}{dei}", self.id().0, self.priority())
    }
}

/// The four bytes after a tag's ether type.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct VlanHeader {
    /// Priority and VLAN.
    pub tci: Tci,
    /// What follows.
    pub ether_type: EtherType,
}

/// View of what follows an ether type that [`EtherType::is_vlan`].
#[derive(Debug)]
pub struct Vlan<B: ByteSlice> {
    header: Ref<B, VlanHeader>,
    payload: B,
}
view!(Vlan, VlanHeader);

impl<B: SplitByteSlice> Vlan<B> {
    /// Over the payload of the header in front. [`Malformed::TooShort`] below 4 bytes.
    #[inline]
    pub fn parse(bytes: B) -> Result<Self, Malformed> {
        let (header, payload) = Ref::from_prefix(bytes).map_err(|_| Malformed::TooShort)?;
        Ok(Self { header, payload })
    }
}

/// Puts a tag in front of all others. `room` begins four bytes before the frame; afterwards the frame begins at `room[0]`.
/// False, and nothing written, when the frame has no whole addresses.
#[must_use]
#[inline]
pub fn insert(room: &mut [u8], tpid: EtherType, tci: Tci) -> bool {
    let Some(front) = room.first_chunk_mut::<{ ADDRESSES + TAG_LEN }>() else { return false };
    front.copy_within(TAG_LEN.., 0);
    let tag = u32::from(tpid.value()) << 16 | u32::from(tci.raw());
    front[ADDRESSES..].copy_from_slice(&tag.to_be_bytes());
    true
}

/// Takes the outermost tag off; afterwards the frame begins at `frame[4]` (and `frame[..4]` is left over). `None`, and nothing
/// written, when it has no whole tag.
#[inline]
pub fn remove(frame: &mut [u8]) -> Option<(EtherType, Tci)> {
    // A tag is whole when the ether type behind it is there as well.
    let front = frame.first_chunk_mut::<{ ADDRESSES + TAG_LEN + 2 }>()?;
    let [.., t0, t1, c0, c1, _, _] = *front;
    let (tpid, tci) = (EtherType::new(u16::from_be_bytes([t0, t1])), Tci([c0, c1]));
    if !tpid.is_vlan() {
        return None;
    }
    front.copy_within(..ADDRESSES, TAG_LEN);
    Some((tpid, tci))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_a_tci() {
        let tci = Tci::new(5, true, VlanId::new(0x123).unwrap());
        assert_eq!(tci.raw(), 0xb123);
        assert_eq!((tci.priority(), tci.drop_eligible(), tci.id().value()), (5, true, 0x123));
        assert_eq!(format!("{tci:?}"), "vlan 291 priority 5 dei");
        assert_eq!(VlanId::new(4096), None);
    }

    #[test]
    fn a_tag_goes_in_and_comes_out() {
        let plain = *b"....DDDDDDSSSSSS\x08\x00payload";
        let mut room = plain;
        let outer = Tci::new(1, false, VlanId::new(100).unwrap());
        assert!(insert(&mut room, EtherType::QINQ, outer));
        assert_eq!(&room, b"DDDDDDSSSSSS\x88\xa8\x20\x64\x08\x00payload");
        assert_eq!(remove(&mut room), Some((EtherType::QINQ, outer)));
        assert_eq!(room[4..], plain[4..]);
        assert_eq!(remove(&mut room[4..]), None, "no tag left");
    }

    #[test]
    fn what_is_too_short_stays_as_it_is() {
        let mut short = *b"....DDDDDDSSSSS";
        assert!(!insert(&mut short, EtherType::VLAN, Tci::default()));
        assert_eq!(&short, b"....DDDDDDSSSSS");
        let mut cut = *b"DDDDDDSSSSSS\x81\x00\x00\x05\x08";
        assert_eq!(remove(&mut cut), None);
        assert_eq!(Vlan::parse(&cut[14..]).unwrap_err(), Malformed::TooShort);
    }
}
