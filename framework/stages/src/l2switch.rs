//! A learning bridge (IEEE 802.1Q-2018, 8.6 to 8.8, without VLANs and spanning tree).
//!
//! A burst is taken in steps: all sources, all destinations, then what must be flooded. So all frames of a
//! burst from one station to another go the same way, and stay in order among each other; of one burst, what leaves by a
//! port as the original comes before what leaves by it as a copy.

mod ageing;
mod ports;
mod stations;

use core::time::Duration;

use graph::{Exits, Leads, Stage};
use mem::{BURST, Batch, PoolId};
use meter::DropReason;
use wire::{EthernetHeader, MacAddr};

use crate::{StageError, exits};
use ageing::Ageing;
use ports::Ports;
use stations::{Key, Learned, Place, Stations};

exits! {
    /// Ways out of [`L2Switch`].
    L2SwitchExit {
        /// To the ports that the bridge chose.
        Out = "out" => Leads::Marked,
        /// A rule of the bridge says no: hairpin, isolation, a source that is no station, a port not of the bridge.
        Filtered = "filtered" => Leads::Drop(DropReason::Filtered),
        /// To 01-80-C2-00-00-0X, which bridges do not relay (8.6.3, table 8-1): spanning tree, LLDP, pause frames.
        Reserved = "reserved" => Leads::Drop(DropReason::Filtered),
        /// The source found no room in the table, and the policy is to drop.
        TableFull = "table_full" => Leads::Drop(DropReason::TableFull),
        /// No whole Ethernet header.
        TooShort = "too_short" => Leads::Drop(DropReason::TooShort),
    }
}

/// What happens to a frame whose source finds no room in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFull {
    /// It goes its way; frames back to its source are flooded.
    #[default]
    Flood,
    /// It is dropped, with reason `table_full`: only stations that are known may speak.
    Drop,
}

/// What a bridge is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L2SwitchConfig {
    /// Its ports, at most 64.
    pub ports: Vec<u16>,
    /// Those of them that may not reach each other.
    pub isolated: Vec<u16>,
    /// Most stations in the table.
    pub table: usize,
    /// What happens when it is full.
    pub table_full: TableFull,
    /// After how much silence a station is forgotten: at the earliest after this time, at the latest 1/64 later.
    pub ageing: Duration,
}

impl L2SwitchConfig {
    /// `ports`, none isolated; 4096 stations, forgotten after 300 seconds (8.8.3).
    pub fn new(ports: &[u16]) -> Self {
        Self {
            ports: ports.to_vec(),
            isolated: Vec::new(),
            table: 4096,
            table_full: TableFull::default(),
            ageing: Duration::from_secs(300),
        }
    }
}

/// Bytes of an Ethernet header.
const LEN: usize = EthernetHeader::LEN;

/// What happened that is no drop, or why one was filtered.
#[derive(Clone, Copy, Default)]
struct Notes {
    learned: u64,
    moved: u64,
    aged: u64,
    flushed: u64,
    table_full: u64,
    flooded: u64,
    group: u64,
    hairpin: u64,
    unreachable: u64,
    bad_source: u64,
    unknown_port: u64,
}

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

/// A learning bridge between ports of one worker.
pub struct L2Switch {
    ports: Ports,
    stations: Stations,
    table_full: TableFull,
    ageing: Ageing,
    pool: PoolId,
    heads: Box<[Head; BURST]>,
    notes: Notes,
}

impl L2Switch {
    /// A bridge that copies floods into buffers of `pool`. `hz` is the rate of the time stamps, [`hw::tsc_hz`]; `seed`
    /// keys the table's hash and should be random where peers are not trusted.
    ///
    /// # Errors
    /// Ports, table or ageing time that cannot be: see [`StageError`].
    pub fn new(config: &L2SwitchConfig, pool: PoolId, hz: u64, seed: u64) -> Result<Self, StageError> {
        let L2SwitchConfig { table, ageing, table_full, .. } = *config;
        if !(1..=stations::MOST).contains(&table) {
            return Err(StageError::Table { asked: table, most: stations::MOST });
        }
        Ok(Self {
            ports: Ports::default().with(&config.ports, &config.isolated)?,
            stations: Stations::new(table, seed),
            table_full,
            ageing: Ageing::new(ageing, hz)?,
            pool,
            heads: Box::new([DONE; BURST]),
            notes: Notes::default(),
        })
    }

    /// Changes the ports, between two breaths. Stations at ports that leave are forgotten; one pass over the table.
    ///
    /// # Errors
    /// Ports that cannot be; the old ones stay.
    pub fn set_ports(&mut self, ports: &[u16], isolated: &[u16]) -> Result<(), StageError> {
        let old = core::mem::take(&mut self.ports);
        self.ports = match old.with(ports, isolated) {
            Ok(new) => new,
            Err(e) => {
                self.ports = old;
                return Err(e);
            }
        };
        let stays = |p: Place| self.ports.kept(&old, p.port);
        self.notes.flushed += self.stations.sweep(0, self.stations.lines(), stays);
        Ok(())
    }

    /// Stations in the table.
    pub const fn stations(&self) -> usize {
        self.stations.len()
    }
    /// The port at which `station` was last heard, if that is known and not too long ago at time `now`.
    pub fn port_of(&mut self, station: MacAddr, now: u64) -> Option<u16> {
        self.advance(now);
        let key = Key::of(station.to_u64() << 16);
        let place = self.stations.find(key, self.stations.slot(key)).filter(|&p| self.ageing.fresh(p))?;
        Some(self.ports.number(place.port))
    }

    /// Moves the clock on.
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.notes.aged += self.ageing.advance(now, &mut self.stations);
    }

    /// Step 1: sources are learned, destinations' lines of the table brought closer. Returns the packets whose first
    /// buffer has no whole header.
    #[inline(always)]
    fn hear_all(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) -> u64 {
        let mut short = 0;
        for (i, p) in batch.iter_mut().enumerate() {
            match p.bytes().first_chunk() {
                Some(header) => self.hear(i, p.port(), header, exits),
                None => short |= 1 << i,
            }
        }
        short
    }

    #[inline(always)]
    fn hear(&mut self, i: usize, port: u16, header: &[u8; LEN], exits: &mut Exits<'_, L2SwitchExit>) {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        // Both addresses with the two bytes that follow: one load each.
        let to = Key::of(u64::from_be_bytes([d0, d1, d2, d3, d4, d5, s0, s1]));
        let source = Key::of(u64::from_be_bytes([s0, s1, s2, s3, s4, s5, t0, t1]));
        let head = &mut self.heads[i % BURST];
        let Some(from) = self.ports.place(port).filter(|_| source.is_station()) else {
            *head = DONE;
            exits.set(i, L2SwitchExit::Filtered);
            if source.is_station() {
                self.notes.unknown_port += 1
            } else {
                self.notes.bad_source += 1
            }
            return;
        };
        let slot = self.stations.slot(to);
        self.stations.prefetch(slot);
        *head = Head { to, slot, from };
        let at = Place { port: from, seen: self.ageing.stamp() };
        let learned = self.stations.learn(source, self.stations.slot(source), at);
        if learned != Learned::Known {
            self.learned(i, learned, exits);
        }
    }

    #[cold]
    fn learned(&mut self, i: usize, learned: Learned, exits: &mut Exits<'_, L2SwitchExit>) {
        match learned {
            Learned::Known => {}
            Learned::New => self.notes.learned += 1,
            // The clock never goes back, so who was heard last is where he is.
            Learned::Moved => self.notes.moved += 1,
            Learned::Full => {
                self.notes.table_full += 1;
                if self.table_full == TableFull::Drop {
                    self.heads[i] = DONE;
                    exits.set(i, L2SwitchExit::TableFull);
                }
            }
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
            match p.bytes().first_chunk() {
                Some(header) => self.hear(i, p.port(), header, exits),
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
                Some(place) if self.ports.reach(head.from) >> (place.port % 64) & 1 == 1 => {
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
            let mut ports = self.ports.numbers(self.ports.reach(from));
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

impl Stage for L2Switch {
    type Exit = L2SwitchExit;
    const KIND: &'static str = "l2switch";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        self.advance(exits.now());
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

    fn tick(&mut self, now: u64) {
        self.advance(now);
        self.notes.aged += self.ageing.tick(&mut self.stations);
    }

    fn notes(&self) -> Vec<(&'static str, u64)> {
        let n = &self.notes;
        vec![
            ("stations", self.stations.len() as u64),
            ("learned", n.learned),
            ("moved", n.moved),
            ("aged", n.aged),
            ("flushed", n.flushed),
            ("table_full", n.table_full),
            ("flooded", n.flooded),
            ("group", n.group),
            ("hairpin", n.hairpin),
            ("unreachable", n.unreachable),
            ("bad_source", n.bad_source),
            ("unknown_port", n.unknown_port),
        ]
    }
}
