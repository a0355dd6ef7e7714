//! VLANs (IEEE 802.1Q-2018): access and trunk ports, as two stages around a bridge.
//!
//! ```text
//! rx -> vlan, side "in" -> l2switch, vlans = true -> vlan, side "out" -> tx
//! ```
//!
//! 1. Side `in` says for each frame which VLAN it is in, by the port it came from and its tag, and puts the tag in if it has none. From here on each
//!    frame has one.
//! 2. The bridge chooses ports within the VLAN.
//! 3. Side `out` takes the tag out where the frame's VLAN has none at the port it is marked for.
//!
//! | frame comes in | by an access port | by a trunk port |
//! |---|---|---|
//! | without a tag, or tagged with a priority only (VLAN 0) | in the port's VLAN; it keeps its priority | in the native VLAN; `filtered` without one |
//! | with a tag | `filtered` | in the tag's VLAN, if the port is in it; else `filtered` |
//!
//! Only 802.1Q's tag (type 0x8100) counts, in front of all others: a frame with a service tag is one without, as the standard has it, and gets a tag
//! in front of that. A tag that the device took out ([`Flags::VLAN`]) stays out; side `in` puts one into the bytes, or, where there is no room in
//! front of them, keeps it beside them as well. Side `out` takes out either.
//!
//! What is known of a frame for the device that sends it (where its checksum begins, the length of its link header) goes along by four bytes.
//!
//! Limits: no GVRP or MVRP; VLANs are not translated; the priority of a frame whose tag is taken out is lost.

mod ports;

use config::{KeyError, Keys};
use graph::{Exits, Leads, Stage};
use mem::{Batch, Flags, Pkt};
use meter::DropReason;
use toml::Table;
use wire::vlan::{TAG_LEN, insert, remove};
use wire::{EtherType, EthernetHeader, Tci, VlanId};

use crate::{PortNames, exits};
use ports::Rule;
pub use ports::VlanPorts;

exits! {
    /// Ways out of [`Vlan`].
    VlanExit {
        /// In a VLAN that the port is in.
        Out = "out" => Leads::Open,
        /// In one that it is not in, or in none; a port that is in none.
        Filtered = "filtered" => Leads::Drop(DropReason::Filtered),
        /// No whole Ethernet header, or a tag that is cut off.
        TooShort = "too_short" => Leads::Drop(DropReason::TooShort),
    }
}

/// Which half a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the bridge: by the port a frame came from.
    In,
    /// Behind it: by the port it is marked for.
    Out,
}

/// What a half is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanConfig {
    /// Which ports are in which VLAN: the same for both halves, and for the bridge between them.
    pub ports: VlanPorts,
    /// Which half it is.
    pub side: Side,
}

impl VlanConfig {
    /// Its keys.
    pub const KEYS: &'static [&'static str] = &["side", "access", "trunk", "native"];

    /// From `side = "in"` or `"out"`, `access = { p0 = 10 }`, `trunk = { p1 = [10, 20, "100-199"] }` and `native = { p1 = 1 }`.
    ///
    /// # Errors
    /// An unknown key, a port that is not there, what is no VLAN, a port that is both.
    pub fn read(table: &Table, names: &PortNames<'_>) -> Result<Self, KeyError> {
        let keys = Keys::new(table, Self::KEYS)?;
        keys.need_text("side", "\"in\" before the bridge, \"out\" behind it")?;
        let words = [("in", Side::In), ("out", Side::Out)];
        Ok(Self { side: keys.word("side", Side::In, &words)?, ports: VlanPorts::read(table, names)? })
    }
}

/// How a frame says which VLAN it is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// Not at all.
    None,
    /// In its bytes.
    Inside(Tci),
    /// Beside them.
    Beside(Tci),
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
    tagged: u64,
    untagged: u64,
    no_vlan: u64,
    not_member: u64,
    unknown_port: u64,
}

/// One half of VLANs around a bridge.
#[derive(Clone, Debug)]
pub struct Vlan {
    config: VlanConfig,
    notes: Notes,
}

impl Vlan {
    /// The half that `config` says.
    pub const fn new(config: VlanConfig) -> Self {
        Self { config, notes: Notes { tagged: 0, untagged: 0, no_vlan: 0, not_member: 0, unknown_port: 0 } }
    }
    /// Changes which ports are in which VLAN, between two breaths.
    pub fn set_ports(&mut self, ports: VlanPorts) {
        self.config.ports = ports;
    }

    /// What becomes of one frame.
    #[inline(always)]
    fn one(&mut self, side: Side, p: &mut Pkt<'_>) -> VlanExit {
        let Some(rule) = self.config.ports.rule(p.port()) else {
            self.notes.unknown_port += 1;
            return VlanExit::Filtered;
        };
        let Some(tag) = tag_of(p) else { return VlanExit::TooShort };
        let done = match side {
            Side::In => enter(rule, tag, p, &mut self.notes),
            Side::Out => leave(rule, tag, p, &mut self.notes),
        };
        if done { VlanExit::Out } else { VlanExit::Filtered }
    }

    #[inline(always)]
    fn all(&mut self, side: Side, batch: &mut Batch, exits: &mut Exits<'_, VlanExit>) {
        exits.set_all(VlanExit::Out);
        for (i, mut p) in batch.iter_mut().enumerate() {
            let exit = self.one(side, &mut p);
            if exit != VlanExit::Out {
                exits.set(i, exit);
            }
        }
    }
}

/// The tag of a frame; `None` if it is too short to say.
#[inline(always)]
fn tag_of(p: &mut Pkt<'_>) -> Option<Tag> {
    const WHOLE: usize = EthernetHeader::LEN + TAG_LEN;
    if p.len() < WHOLE {
        gather(p)?;
    }
    if p.flags().has(Flags::VLAN) {
        return Some(Tag::Beside(Tci::from_raw(p.ext().vlan)));
    }
    match *p.bytes() {
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x81, 0x00, c0, c1, _, _, ..] => {
            Some(Tag::Inside(Tci::from_raw(u16::from_be_bytes([c0, c1]))))
        }
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x81, 0x00, ..] => None,
        _ => Some(Tag::None),
    }
}

/// Brings the header and the tag together, if they are in several buffers; `None` for no whole header.
#[cold]
fn gather(p: &mut Pkt<'_>) -> Option<()> {
    p.pull(p.total_len().min(EthernetHeader::LEN + TAG_LEN));
    (p.len() >= EthernetHeader::LEN).then_some(())
}

/// A frame comes in: it gets the tag of its VLAN. False if it is in none that the port is in.
#[inline(always)]
fn enter(rule: &Rule, tag: Tag, p: &mut Pkt<'_>, notes: &mut Notes) -> bool {
    let (Tag::Inside(tci) | Tag::Beside(tci)) = tag else {
        return admit(rule, notes).is_some_and(|vid| {
            put(p, Tci::new(0, false, vid));
            notes.tagged += 1;
            true
        });
    };
    let vid = tci.id().value();
    if vid == 0 {
        return admit(rule, notes).is_some_and(|vid| {
            rewrite(p, tag, Tci::new(tci.priority(), tci.drop_eligible(), vid));
            true
        });
    }
    let member = rule.tagged.has(vid) || (rule.native && rule.untagged == vid);
    notes.not_member += u64::from(!member);
    member
}

/// The VLAN of frames without a tag.
#[inline(always)]
fn admit(rule: &Rule, notes: &mut Notes) -> Option<VlanId> {
    notes.no_vlan += u64::from(rule.untagged == 0);
    VlanId::new(rule.untagged).filter(|v| v.value() != 0)
}

/// A frame goes out: its tag is taken out if its VLAN has none here. False if the port is not in it.
#[inline(always)]
fn leave(rule: &Rule, tag: Tag, p: &mut Pkt<'_>, notes: &mut Notes) -> bool {
    let (Tag::Inside(tci) | Tag::Beside(tci)) = tag else {
        notes.no_vlan += 1;
        return false;
    };
    let vid = tci.id().value();
    if vid != 0 && vid == rule.untagged {
        take(p, tag);
        notes.untagged += 1;
        return true;
    }
    notes.not_member += u64::from(!rule.tagged.has(vid));
    rule.tagged.has(vid)
}

/// Puts a tag in front of all others.
#[inline(always)]
fn put(p: &mut Pkt<'_>, tci: Tci) {
    if p.prepend(TAG_LEN as u16).is_some() {
        // It has whole addresses: it was looked at.
        let done = insert(p.bytes_mut(), EtherType::VLAN, tci);
        debug_assert!(done);
        shift(p, TAG_LEN as i8);
    } else {
        beside(p, tci);
    }
}
/// Keeps a tag beside the bytes.
#[cold]
fn beside(p: &mut Pkt<'_>, tci: Tci) {
    let mut ext = p.ext();
    ext.vlan = tci.raw();
    p.set_ext(ext);
    p.set_flags(p.flags().with(Flags::VLAN));
}
/// Changes a tag where it is.
#[cold]
fn rewrite(p: &mut Pkt<'_>, tag: Tag, tci: Tci) {
    if let Tag::Beside(_) = tag {
        return beside(p, tci);
    }
    if let Some(field) = p.bytes_mut().get_mut(EthernetHeader::LEN..).and_then(|b| b.first_chunk_mut()) {
        *field = tci.raw().to_be_bytes();
    }
}
/// Takes the tag out.
#[inline(always)]
fn take(p: &mut Pkt<'_>, tag: Tag) {
    if let Tag::Beside(_) = tag {
        p.set_flags(p.flags().without(Flags::VLAN));
    } else if remove(p.bytes_mut()).is_some() {
        // The tag was in the first buffer, so there are four bytes to take.
        let done = p.trim(TAG_LEN as u16);
        debug_assert!(done.is_some());
        shift(p, -(TAG_LEN as i8));
    }
}

/// All behind the addresses has moved by `by` bytes.
#[inline(always)]
fn shift(p: &mut Pkt<'_>, by: i8) {
    let sums = Flags::TX_L4.with(Flags::TSO).with(Flags::USO);
    if p.flags().has(sums.with(Flags::TX_L3)) {
        shift_ext(p, by, p.flags().has(sums));
    }
}
#[cold]
fn shift_ext(p: &mut Pkt<'_>, by: i8, sums: bool) {
    let mut ext = p.ext();
    if sums {
        ext.csum_start = ext.csum_start.saturating_add_signed(by.into());
    }
    if ext.l2_len != 0 {
        ext.l2_len = ext.l2_len.saturating_add_signed(by);
    }
    p.set_ext(ext);
}

impl Stage for Vlan {
    type Exit = VlanExit;
    const KIND: &'static str = "vlan";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, VlanExit>) {
        match self.config.side {
            Side::In => self.all(Side::In, batch, exits),
            Side::Out => self.all(Side::Out, batch, exits),
        }
    }

    fn notes(&self) -> Vec<(&'static str, u64)> {
        let n = &self.notes;
        let moved = match self.config.side {
            Side::In => ("tagged", n.tagged),
            Side::Out => ("untagged", n.untagged),
        };
        vec![moved, ("no_vlan", n.no_vlan), ("not_member", n.not_member), ("unknown_port", n.unknown_port)]
    }
}
