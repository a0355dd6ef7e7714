//! A learning bridge (IEEE 802.1Q-2018, 8.6 to 8.8, without VLANs and spanning tree).
//!
//! A burst is taken in steps: all headers, all sources, all destinations, then what must be flooded. So all frames of a
//! burst from one station to another go the same way, and stay in order among each other; of one burst, what leaves by a
//! port as the original comes before what leaves by it as a copy.

mod ageing;
mod ports;
mod stations;

use core::time::Duration;

use graph::{Exits, Leads, Stage};
use mem::{BURST, Batch, PoolId};
use meter::DropReason;
use wire::{Ethernet, EthernetHeader, MacAddr};

use crate::{StageError, exits};
use ageing::Ageing;
use ports::Ports;
use stations::{Learned, Place, Stations};

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

/// What a burst's step leaves for the next, per packet.
#[derive(Clone, Copy, Default)]
struct Head {
    dst: u64,
    src: u64,
    dst_hash: u64,
    src_hash: u64,
    from: u8,
}

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
            heads: Box::new([Head::default(); BURST]),
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
        let stays = |p: Place| self.ports.number(p.port) == old.number(p.port);
        self.notes.flushed += self.stations.sweep(0, self.stations.buckets(), stays);
        Ok(())
    }

    /// Stations in the table.
    pub const fn stations(&self) -> usize {
        self.stations.len()
    }
    /// The port at which `station` was last heard, if that is known and not too long ago at time `now`.
    pub fn port_of(&mut self, station: MacAddr, now: u64) -> Option<u16> {
        self.advance(now);
        let address = station.to_u64();
        let place =
            self.stations.find(address, self.stations.hash(address)).filter(|&p| self.ageing.fresh(p))?;
        self.ports.number(place.port)
    }

    /// Moves the clock on.
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.notes.aged += self.ageing.advance(now, &mut self.stations);
    }

    /// Step 1: headers, hashes, and the table's lines on their way. Returns the packets that go on, a bit each.
    #[inline(always)]
    fn read(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) -> u64 {
        let mut live = 0;
        for ((i, mut p), head) in batch.iter_mut().enumerate().zip(self.heads.iter_mut()) {
            if p.len() < EthernetHeader::LEN {
                p.pull(EthernetHeader::LEN);
            }
            let Ok(frame) = Ethernet::parse(p.bytes()) else {
                exits.set(i, L2SwitchExit::TooShort);
                continue;
            };
            let Some(from) = self.ports.place(p.port()) else {
                exits.set(i, L2SwitchExit::Filtered);
                self.notes.unknown_port += 1;
                continue;
            };
            if !frame.src.is_station() {
                exits.set(i, L2SwitchExit::Filtered);
                self.notes.bad_source += 1;
                continue;
            }
            let (dst, src) = (frame.dst.to_u64(), frame.src.to_u64());
            *head =
                Head { dst, src, dst_hash: self.stations.hash(dst), src_hash: self.stations.hash(src), from };
            self.stations.prefetch(head.dst_hash);
            self.stations.prefetch(head.src_hash);
            live |= 1 << i;
        }
        live
    }

    /// Step 2: sources. Returns the packets that go on.
    #[inline(always)]
    fn learn(&mut self, mut live: u64, n: usize, exits: &mut Exits<'_, L2SwitchExit>) -> u64 {
        let seen = self.ageing.stamp();
        for (i, head) in self.heads[..n].iter().enumerate() {
            if live >> i & 1 == 0 {
                continue;
            }
            match self.stations.learn(head.src, head.src_hash, Place { port: head.from, seen }) {
                Learned::Known => {}
                Learned::New => self.notes.learned += 1,
                Learned::Moved => self.notes.moved += 1,
                Learned::Full => {
                    self.notes.table_full += 1;
                    if self.table_full == TableFull::Drop {
                        exits.set(i, L2SwitchExit::TableFull);
                        live &= !(1 << i);
                    }
                }
            }
        }
        live
    }

    /// Step 3: destinations. Returns the packets that must be flooded.
    #[inline(always)]
    fn forward(&mut self, live: u64, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) -> u64 {
        let mut flood = 0;
        for ((i, mut p), head) in batch.iter_mut().enumerate().zip(self.heads.iter()) {
            if live >> i & 1 == 0 {
                continue;
            }
            let place = self.stations.find(head.dst, head.dst_hash).filter(|&p| self.ageing.fresh(p));
            let Some(place) = place else {
                flood |= 1 << i;
                continue;
            };
            let reach = self.ports.reach(head.from);
            match self.ports.number(place.port) {
                Some(port) if reach >> place.port & 1 == 1 => p.set_port(port),
                _ => {
                    exits.set(i, L2SwitchExit::Filtered);
                    self.notes.hairpin += u64::from(place.port == head.from);
                    self.notes.unreachable += u64::from(place.port != head.from);
                }
            }
        }
        flood
    }

    /// Step 4: what goes to all. The packet itself to the first port, copies to the others.
    #[cold]
    fn flood(&mut self, mut flood: u64, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        while flood != 0 {
            let i = flood.trailing_zeros() as usize;
            flood &= flood - 1;
            let Head { dst, from, .. } = self.heads[i];
            if is_reserved(dst) {
                exits.set(i, L2SwitchExit::Reserved);
                continue;
            }
            let reach = self.ports.reach(from);
            let mut to = self.ports.numbers(reach);
            let (Some(first), Some(mut p)) = (to.next(), batch.pkt(i)) else {
                exits.set(i, L2SwitchExit::Filtered);
                self.notes.unreachable += 1;
                continue;
            };
            p.set_port(first);
            if is_group(dst) {
                self.notes.group += 1
            } else {
                self.notes.flooded += 1
            }
            for port in to {
                exits.copy(batch, i, self.pool, port, L2SwitchExit::Out);
            }
        }
    }
}

/// The group bit: the lowest of the first byte.
const fn is_group(address: u64) -> bool {
    address >> 40 & 1 == 1
}
/// 01-80-C2-00-00-00 to 0F.
const fn is_reserved(address: u64) -> bool {
    address >> 4 == 0x0180_c200_000
}

impl Stage for L2Switch {
    type Exit = L2SwitchExit;
    const KIND: &'static str = "l2switch";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        self.advance(exits.now());
        let live = self.read(batch, exits);
        let live = self.learn(live, batch.len(), exits);
        let flood = self.forward(live, batch, exits);
        if flood != 0 {
            self.flood(flood, batch, exits);
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
