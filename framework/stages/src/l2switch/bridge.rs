//! What a bridge does with a burst.

use graph::Exits;
use mem::{BURST, Batch, PoolId};

use super::ageing::Ageing;
use super::members::{Members, front};
use super::peers::{News, Peer};
use super::ports::Ports;
use super::stations::{Learned, Stations};
use super::word::{Key, Place, Word};
use super::{L2SwitchConfig, L2SwitchExit, LEN, Notes, TableFull};
use crate::StageError;

/// What the first step leaves for the next, per packet.
#[derive(Clone, Copy)]
struct Head {
    to: Key,
    slot: usize,
    /// The place of the port it came from; [`SKIP`] if its exit is set.
    from: u8,
}
const SKIP: u8 = u8::MAX;
/// A packet whose exit is set: to all, which is no station's address.
const DONE: Head = Head { to: Key::of(u64::MAX), slot: 0, from: SKIP };

/// A bridge with a table of entries `W`, that knows VLANs if `V`.
pub(super) struct Bridge<W, const V: bool> {
    pub ports: Ports,
    /// Of each VLAN, if there are any.
    members: Option<Members>,
    pub stations: Stations<W>,
    table_full: TableFull,
    pub ageing: Ageing,
    pool: PoolId,
    heads: Box<[Head; BURST]>,
    pub notes: Notes,
    pub peer: Option<Peer>,
    /// For each place of a port, when it was last emptied: news from before do not count.
    pub since: [u64; 64],
}

impl<W: Word, const V: bool> Bridge<W, V> {
    pub fn new(
        config: &L2SwitchConfig,
        pool: PoolId,
        hz: u64,
        seed: u64,
        peer: Option<Peer>,
    ) -> Result<Self, StageError> {
        let ports = Ports::default().with(&config.ports, &config.isolated)?;
        let mut ageing = Ageing::new(config.ageing, hz)?;
        let mut stations = Stations::new(config.table, seed);
        if W::SHARED {
            stations.clock = ageing.clock();
        }
        if peer.is_some() {
            ageing = ageing.shared();
        }
        Ok(Self {
            members: config.vlans.clone().map(|v| Members::new(&ports, v)),
            ports,
            stations,
            table_full: config.table_full,
            ageing,
            pool,
            heads: Box::new([DONE; BURST]),
            notes: Notes::default(),
            peer,
            since: [0; 64],
        })
    }

    /// See [`super::L2Switch::set_ports`].
    pub fn set_ports(&mut self, ports: &[u16], isolated: &[u16]) -> Result<(), StageError> {
        let new = self.ports.with(ports, isolated)?;
        let old = core::mem::replace(&mut self.ports, new);
        self.members = self.members.take().map(|m| m.of(&self.ports));
        let time = self.stations.clock.ticks();
        for (place, port) in old.all() {
            if !self.ports.kept(&old, place) {
                self.since[usize::from(place)] = time;
                self.tell(News::Gone { port, time });
            }
        }
        let stays = |p: Place| self.ports.kept(&old, p.port);
        self.notes.flushed += self.stations.sweep(0, self.stations.lines(), |e| stays(e.place()));
        Ok(())
    }
    /// See [`super::L2Switch::set_vlans`].
    pub fn set_vlans(&mut self, vlans: crate::VlanPorts) {
        let members = Members::new(&self.ports, vlans);
        let stays = |e: W| members.of_vid(e.key().vid()) >> e.place().port & 1 == 1;
        self.notes.flushed += self.stations.sweep(0, self.stations.lines(), stays);
        self.members = Some(members);
    }

    /// The port at which a station was last heard.
    pub fn port_of(&mut self, key: Key, now: u64) -> Option<u16> {
        self.advance(now);
        let place = self.stations.find(key, self.stations.slot(key)).filter(|&p| self.ageing.fresh(p))?;
        Some(self.ports.number(place.port))
    }

    /// Moves the clock on.
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.notes.aged += self.ageing.advance(now, &mut self.stations);
        if W::SHARED {
            self.stations.clock.advance(now);
        }
    }

    /// The time goes on, and others may have something to tell.
    pub fn tick(&mut self, now: u64) {
        self.advance(now);
        self.notes.aged += self.ageing.tick(&mut self.stations);
        self.listen();
        self.catch_up();
    }

    #[inline]
    pub fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        self.advance(exits.now());
        self.listen();
        exits.set_all(L2SwitchExit::Out);
        let short = self.hear_all(batch, exits);
        if short != 0 {
            self.hear_short(short, batch, exits);
        }
        let unknown = self.forward(batch, exits);
        if unknown != 0 {
            self.flood(unknown, batch, exits);
        }
    }

    /// The ports that a frame in VLAN `vid` from the port at place `from` may leave by, a bit each.
    #[inline(always)]
    fn reach(&self, from: u8, vid: u16) -> u64 {
        self.ports.reach(from) & self.inside(vid)
    }
    /// The ports in `vid`; all without VLANs.
    #[inline(always)]
    pub fn inside(&self, vid: u16) -> u64 {
        match &self.members {
            Some(members) if V => members.of_vid(vid),
            _ => u64::MAX,
        }
    }

    /// Step 1: sources are learned, destinations' lines of the table brought closer. Returns the packets whose first
    /// buffer has no whole header.
    #[inline(always)]
    fn hear_all(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) -> u64 {
        let mut short = 0;
        for (i, p) in batch.iter_mut().enumerate() {
            match front::<V>(&p) {
                Some((header, vid)) => self.hear(i, p.port(), header, vid, exits),
                None => short |= 1 << i,
            }
        }
        short
    }

    #[inline(always)]
    fn hear(
        &mut self,
        i: usize,
        port: u16,
        header: &[u8; LEN],
        vid: u16,
        exits: &mut Exits<'_, L2SwitchExit>,
    ) {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        // Both addresses with the two bytes that follow: one load each.
        let to = Key::of(u64::from_be_bytes([d0, d1, d2, d3, d4, d5, s0, s1])).in_vlan(vid);
        let source = Key::of(u64::from_be_bytes([s0, s1, s2, s3, s4, s5, t0, t1])).in_vlan(vid);
        let Some(from) = self.ports.place(port).filter(|_| source.is_station()) else {
            self.heads[i % BURST] = DONE;
            exits.set(i, L2SwitchExit::Filtered);
            if source.is_station() {
                self.notes.unknown_port += 1
            } else {
                self.notes.bad_source += 1
            }
            return;
        };
        if V && self.inside(vid) >> (from % 64) & 1 == 0 {
            return self.outsider(i, vid, exits);
        }
        let slot = self.stations.slot(to);
        self.stations.prefetch(slot);
        self.heads[i % BURST] = Head { to, slot, from };
        let at = Place { port: from, seen: self.ageing.stamp() };
        let learned = self.stations.learn(source, self.stations.slot(source), at);
        if learned != Learned::Known {
            self.learned(i, source, from, learned, exits);
        }
    }

    /// A frame of no VLAN, or of one that its port is not in.
    #[cold]
    fn outsider(&mut self, i: usize, vid: u16, exits: &mut Exits<'_, L2SwitchExit>) {
        self.heads[i] = DONE;
        exits.set(i, L2SwitchExit::Filtered);
        if vid == 0 { self.notes.no_vlan += 1 } else { self.notes.not_member += 1 }
    }

    #[cold]
    fn learned(
        &mut self,
        i: usize,
        station: Key,
        from: u8,
        learned: Learned,
        exits: &mut Exits<'_, L2SwitchExit>,
    ) {
        match learned {
            Learned::Known | Learned::Due => {}
            Learned::New => self.notes.learned += 1,
            // The clock never goes back, so who was heard last is where he is.
            Learned::Moved => self.notes.moved += 1,
            Learned::Full => {
                self.notes.table_full += 1;
                if self.table_full == TableFull::Drop {
                    self.heads[i] = DONE;
                    exits.set(i, L2SwitchExit::TableFull);
                }
                return;
            }
        }
        if W::SHARED {
            self.announce(station, from);
        }
    }

    /// Step 1 for the rest: a header in several buffers, or none.
    #[cold]
    fn hear_short(&mut self, mut short: u64, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        while short != 0 {
            let i = short.trailing_zeros() as usize;
            short &= short - 1;
            let Some(mut p) = batch.pkt(i) else { return };
            p.pull(LEN);
            if V {
                p.pull(LEN + wire::vlan::TAG_LEN);
            }
            match front::<V>(&p) {
                Some((header, vid)) => self.hear(i, p.port(), header, vid, exits),
                None => {
                    self.heads[i] = DONE;
                    exits.set(i, L2SwitchExit::TooShort);
                }
            }
        }
    }

    /// Step 2: destinations. Returns the packets for stations that are not known.
    #[inline(always)]
    fn forward(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) -> u64 {
        let mut unknown = 0;
        for ((i, mut p), head) in batch.iter_mut().enumerate().zip(self.heads.iter()) {
            match self.stations.find(head.to, head.slot).filter(|&p| self.ageing.fresh(p)) {
                Some(place) if self.reach(head.from, head.to.vid()) >> (place.port % 64) & 1 == 1 => {
                    p.set_port(self.ports.number(place.port));
                }
                Some(place) => {
                    exits.set(i, L2SwitchExit::Filtered);
                    self.notes.hairpin += u64::from(place.port == head.from);
                    self.notes.unreachable += u64::from(place.port != head.from);
                }
                None => unknown |= 1 << i,
            }
        }
        unknown
    }

    /// Step 3: what goes to all. The packet itself to the first port, copies to the others.
    #[cold]
    fn flood(&mut self, mut unknown: u64, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        while unknown != 0 {
            let i = unknown.trailing_zeros() as usize;
            unknown &= unknown - 1;
            let Head { to, from, .. } = self.heads[i];
            if from == SKIP {
                continue;
            }
            if is_reserved(to) {
                exits.set(i, L2SwitchExit::Reserved);
                continue;
            }
            let mut ports = self.ports.numbers(self.reach(from, to.vid()));
            let (Some(first), Some(mut p)) = (ports.next(), batch.pkt(i)) else {
                exits.set(i, L2SwitchExit::Filtered);
                self.notes.unreachable += 1;
                continue;
            };
            p.set_port(first);
            if to.is_group() {
                self.notes.group += 1
            } else {
                self.notes.flooded += 1
            }
            for port in ports {
                exits.copy(batch, i, self.pool, port, L2SwitchExit::Out);
            }
        }
    }
}

/// 01-80-C2-00-00-00 to 0F.
const fn is_reserved(to: Key) -> bool {
    to.address() & !0xf == 0x0180_c200_0000
}
