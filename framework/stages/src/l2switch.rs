//! A learning bridge (IEEE 802.1Q-2018, 8.6 to 8.8, without spanning tree), alone or one part of several, with VLANs or without.
//!
//! A burst is taken in steps: all sources, all destinations, then what must be flooded. So all frames of a
//! burst from one station to another go the same way, and stay in order among each other; of one burst, what leaves by a
//! port as the original comes before what leaves by it as a copy.
//!
//! With VLANs ([`L2SwitchConfig::vlans`]) each frame is in the VLAN that its 802.1Q tag names, a station is known by VLAN and address, and a flood
//! goes to the ports in the VLAN only. The tags are there because [`crate::Vlan`] put them in; it takes them out behind the bridge.
//!
//! Workers that share a bridge have a table each ([`Peer`]): a station that one hears or that moves is known to all a breath later, and is forgotten
//! on all no earlier than the ageing time after it was last heard by any.

mod ageing;
mod bridge;
mod clock;
mod members;
mod peers;
mod ports;
mod stations;
mod told;
mod word;

use core::time::Duration;

use config::{KeyError, Keys};
use graph::{Exits, Leads, Stage};
use mem::{Batch, PoolId};
use meter::DropReason;
use toml::Table;
use wire::{EthernetHeader, MacAddr, VlanId};

use crate::{PortNames, StageError, VlanPorts, exits};
use bridge::Bridge;
pub use peers::Peer;
use word::Key;

exits! {
    /// Ways out of [`L2Switch`].
    L2SwitchExit {
        /// To the ports that the bridge chose.
        Out = "out" => Leads::Marked,
        /// A rule of the bridge says no: hairpin, isolation, a source that is no station, a port not of the bridge or of the VLAN.
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
    /// After how much silence a station is forgotten: at the earliest after this time, at the latest 1/64 later; with several workers 1/12.
    pub ageing: Duration,
    /// Which ports are in which VLAN, as the [`crate::Vlan`] stages around it were told. `None`: tags are not looked at.
    pub vlans: Option<VlanPorts>,
}

impl L2SwitchConfig {
    /// Its keys.
    pub const KEYS: &'static [&'static str] =
        &["ports", "isolated", "table", "table_full", "ageing", "vlans"];

    /// `ports`, none isolated, no VLANs; 4096 stations, forgotten after 300 seconds (8.8.3).
    pub fn new(ports: &[u16]) -> Self {
        Self {
            ports: ports.to_vec(),
            isolated: Vec::new(),
            table: 4096,
            table_full: TableFull::default(),
            ageing: Duration::from_secs(300),
            vlans: None,
        }
    }

    /// From the keys of `table`. Without `ports` all are of the bridge. With `vlans = true` they are in the VLANs that `vlans` says, which is what
    /// the [`crate::Vlan`] stages of the graph were told; all in all without.
    ///
    /// # Errors
    /// An unknown key, a port that is not there, a value that cannot be.
    pub fn read(table: &Table, names: &PortNames<'_>, vlans: Option<&VlanPorts>) -> Result<Self, KeyError> {
        let keys = Keys::new(table, Self::KEYS)?;
        let ports = match keys.texts("ports")? {
            Some(ports) => names.numbers("ports", &ports)?,
            None => names.all(),
        };
        let mut config = Self::new(&ports);
        config.isolated = names.numbers("isolated", &keys.texts("isolated")?.unwrap_or_default())?;
        config.table = keys.number("table", 4096, 1..=stations::MOST as u64)? as usize;
        let full = [("flood", TableFull::Flood), ("drop", TableFull::Drop)];
        config.table_full = keys.word("table_full", TableFull::Flood, &full)?;
        config.ageing = keys.time("ageing", config.ageing)?;
        if keys.flag("vlans", false)? {
            config.vlans = Some(vlans.cloned().unwrap_or_else(|| VlanPorts::everywhere(&ports)));
        }
        Ok(config)
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
    no_vlan: u64,
    not_member: u64,
    told: u64,
    told_full: u64,
}

/// A learning bridge between ports of one worker, or one worker's part of a bridge.
pub struct L2Switch {
    kind: Kind,
}

/// Entries are as small as they can be: a bridge that is alone and knows no VLANs is the fastest.
enum Kind {
    Alone(Bridge<u64, false>),
    Shared(Bridge<u128, false>),
    Vlans(Bridge<u128, true>),
}

/// Runs `$do` on the bridge, of whatever kind.
macro_rules! each {
    ($switch:expr, $bridge:ident => $do:expr) => {
        match $switch {
            Kind::Alone($bridge) => $do,
            Kind::Shared($bridge) => $do,
            Kind::Vlans($bridge) => $do,
        }
    };
}

impl L2Switch {
    /// A bridge that copies floods into buffers of `pool`. `hz` is the rate of the time stamps, [`hw::tsc_hz`]; `seed`
    /// keys the table's hash and should be random where peers are not trusted.
    ///
    /// # Errors
    /// Ports, table or ageing time that cannot be: see [`StageError`].
    pub fn new(config: &L2SwitchConfig, pool: PoolId, hz: u64, seed: u64) -> Result<Self, StageError> {
        Self::with(config, pool, hz, seed, None)
    }
    /// One worker's part of a bridge that several workers share. All are to be told the same.
    ///
    /// # Errors
    /// As for [`L2Switch::new`].
    pub fn shared(
        config: &L2SwitchConfig,
        pool: PoolId,
        hz: u64,
        seed: u64,
        peer: Peer,
    ) -> Result<Self, StageError> {
        Self::with(config, pool, hz, seed, Some(peer).filter(|p| !p.is_alone()))
    }

    fn with(
        config: &L2SwitchConfig,
        pool: PoolId,
        hz: u64,
        seed: u64,
        peer: Option<Peer>,
    ) -> Result<Self, StageError> {
        if !(1..=stations::MOST).contains(&config.table) {
            return Err(StageError::Table { asked: config.table, most: stations::MOST });
        }
        let kind = if config.vlans.is_some() {
            Kind::Vlans(Bridge::new(config, pool, hz, seed, peer)?)
        } else if peer.is_some() {
            Kind::Shared(Bridge::new(config, pool, hz, seed, peer)?)
        } else {
            Kind::Alone(Bridge::new(config, pool, hz, seed, peer)?)
        };
        Ok(Self { kind })
    }

    /// Changes the ports, between two breaths. Stations at ports that leave are forgotten, by the workers that share the bridge as well, each of
    /// which has to be told its new ports all the same; one pass over the table.
    ///
    /// # Errors
    /// Ports that cannot be; the old ones stay.
    pub fn set_ports(&mut self, ports: &[u16], isolated: &[u16]) -> Result<(), StageError> {
        each!(&mut self.kind, b => b.set_ports(ports, isolated))
    }
    /// Changes which ports are in which VLAN, between two breaths. Stations at ports that leave their VLAN are forgotten; one pass over the table.
    ///
    /// # Errors
    /// [`StageError::NoVlans`] if the bridge was made without.
    pub fn set_vlans(&mut self, vlans: VlanPorts) -> Result<(), StageError> {
        let Kind::Vlans(bridge) = &mut self.kind else { return Err(StageError::NoVlans) };
        bridge.set_vlans(vlans);
        Ok(())
    }

    /// Stations in the table.
    pub const fn stations(&self) -> usize {
        each!(&self.kind, b => b.stations.len())
    }
    /// The port at which `station` was last heard, if that is known and not too long ago at time `now`; of a bridge with VLANs in VLAN 1.
    pub fn port_of(&mut self, station: MacAddr, now: u64) -> Option<u16> {
        self.port_in(VlanId::new(1)?, station, now)
    }
    /// The same in VLAN `vlan`, which counts only for a bridge with VLANs.
    pub fn port_in(&mut self, vlan: VlanId, station: MacAddr, now: u64) -> Option<u16> {
        let key = Key::of(station.to_u64() << 16);
        match &mut self.kind {
            Kind::Alone(b) => b.port_of(key, now),
            Kind::Shared(b) => b.port_of(key, now),
            Kind::Vlans(b) => b.port_of(key.in_vlan(vlan.value()), now),
        }
    }
}

impl Stage for L2Switch {
    type Exit = L2SwitchExit;
    const KIND: &'static str = "l2switch";

    fn process(&mut self, batch: &mut Batch, exits: &mut Exits<'_, L2SwitchExit>) {
        each!(&mut self.kind, b => b.process(batch, exits));
    }

    fn tick(&mut self, now: u64) {
        each!(&mut self.kind, b => b.tick(now));
    }

    fn notes(&self) -> Vec<(&'static str, u64)> {
        let n = each!(&self.kind, b => b.notes);
        let mut notes = vec![
            ("stations", self.stations() as u64),
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
        ];
        if matches!(self.kind, Kind::Vlans(_)) {
            notes.extend([("no_vlan", n.no_vlan), ("not_member", n.not_member)]);
        }
        if let Some(peer) = each!(&self.kind, b => &b.peer) {
            notes.extend([("told", n.told), ("told_full", n.told_full), ("news_lost", peer.lost())]);
        }
        notes
    }
}
