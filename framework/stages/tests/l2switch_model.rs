//! The bridge against a plain one: random bursts in, the same frames out of every port in the same order.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::time::Duration;

use graph::{self, GraphBuilder, OnFull, To};
use rig::{Frame, Rig, frame, number};
use ringwright_stages::{L2Switch, L2SwitchConfig, TableFull};

const PORTS: [u16; 4] = [4, 5, 6, 7];
const SEEDS: u64 = if cfg!(miri) { 1 } else { 3 };
/// A 64th of the ageing time, in ticks.
const UNIT: u64 = 10;

/// The rules, without any thought of speed.
struct Plain {
    config: L2SwitchConfig,
    stations: BTreeMap<[u8; 6], (u16, u64)>,
}

impl Plain {
    fn learn(&mut self, port: u16, src: [u8; 6], unit: u64) -> bool {
        let room = self.stations.len() < self.config.table;
        let known = self.stations.contains_key(&src);
        if known || room {
            self.stations.insert(src, (port, unit));
        }
        known || room || self.config.table_full == TableFull::Flood
    }
    fn reaches(&self, from: u16, to: u16) -> bool {
        let alone = |p| self.config.isolated.contains(&p);
        from != to && !(alone(from) && alone(to))
    }
    fn ways(&self, from: u16, dst: [u8; 6], unit: u64) -> Vec<u16> {
        let ports = self.config.ports.iter().copied();
        match self.stations.get(&dst) {
            Some(&(to, seen)) if unit - seen <= 64 => {
                ports.filter(|&p| p == to && self.reaches(from, to)).collect()
            }
            _ if dst[..5] == [0x01, 0x80, 0xc2, 0, 0] && dst[5] < 16 => vec![],
            _ => ports.filter(|&p| self.reaches(from, p)).collect(),
        }
    }

    /// What leaves by each port, originals before copies.
    fn burst(&mut self, port: u16, frames: &[Frame], unit: u64) -> BTreeMap<u16, Vec<Frame>> {
        let mut out: BTreeMap<u16, Vec<Frame>> = PORTS.map(|p| (p, Vec::new())).into();
        let mut copies = Vec::new();
        let mut goes = Vec::new();
        for f in frames {
            let src = f.get(6..12).and_then(|s| <[u8; 6]>::try_from(s).ok()).filter(|_| f.len() >= 14);
            let station = src.is_some_and(|s| s[0] & 1 == 0 && s != [0; 6]);
            goes.push(station && self.learn(port, src.unwrap(), unit));
        }
        for (f, _) in frames.iter().zip(goes).filter(|g| g.1) {
            let ways = self.ways(port, f[..6].try_into().unwrap(), unit);
            if let Some((first, others)) = ways.split_first() {
                out.get_mut(first).unwrap().push(f.clone());
                copies.extend(others.iter().map(|&p| (p, f.clone())));
            }
        }
        copies.into_iter().for_each(|(p, f)| out.get_mut(&p).unwrap().push(f));
        out
    }
}

/// A linear congruential generator (Knuth's MMIX constants), its upper bits.
struct Random(u64);
impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    fn address(&mut self, stations: u64) -> [u8; 6] {
        match self.below(40) {
            0 => [0xff; 6],
            1 => [0x01, 0x80, 0xc2, 0, 0, self.below(20) as u8],
            2 => [0x33, 0x33, 0, 0, 0, 1],
            3 => [0; 6],
            _ => [2, 0, 0, 0, self.below(2) as u8, self.below(stations) as u8],
        }
    }
    fn frame(&mut self, stations: u64, number: u32) -> Frame {
        let mut f = frame(self.address(stations), self.address(stations), number);
        if self.below(50) == 0 {
            f.truncate(self.below(18) as usize);
        }
        f
    }
}

/// All frames of one source, one destination and one port of entry leave every port in the order they came.
fn pairs_keep_their_order(out: &[Frame]) {
    let mut last = BTreeMap::new();
    for f in out.iter().filter(|f| f.len() >= 18) {
        let before = last.insert(f[..12].to_vec(), number(f));
        assert!(before.is_none_or(|b| b < number(f)), "{f:?}");
    }
}

fn compare(seed: u64, config: L2SwitchConfig, stations: u64, time: bool) {
    let mut random = Random(seed);
    let mut rig = Rig::new(1024);
    let mut b = GraphBuilder::new(&rig.local);
    let sw = b.add("sw", Box::new(L2Switch::new(&config, rig.pool, 1000, seed).unwrap()));
    let mut graph = b.build(To::Node(sw)).unwrap();
    rig.add_ports(&mut graph, &PORTS, OnFull::Drop);
    let mut plain = Plain { config, stations: BTreeMap::new() };
    rig.now = 1_000_000;
    for round in 0..if cfg!(miri) { 8 } else { 1500 } {
        let port = PORTS[random.below(4) as usize];
        let frames: Vec<Frame> =
            (0..1 + random.below(64)).map(|n| random.frame(stations, round * 64 + n as u32)).collect();
        let expected = plain.burst(port, &frames, rig.now / UNIT);
        rig.arrive(port, frames);
        rig.run(&mut graph);
        for (p, expected) in expected {
            let sent = rig.sent(p);
            pairs_keep_their_order(&sent);
            let at = sent
                .iter()
                .zip(&expected)
                .position(|(a, b)| a != b)
                .unwrap_or(sent.len().min(expected.len()));
            assert!(
                sent == expected,
                "seed {seed}, round {round}, from {port}, out of {p}, frame {at}: {:x?}, and should be {:x?}",
                sent.get(at),
                expected.get(at)
            );
        }
        if time {
            let most = if random.below(10) == 0 { 80 * UNIT } else { UNIT };
            rig.now += random.below(most);
            (0..random.below(4)).for_each(|_| graph.tick(rig.now));
        }
    }
    let totals = rig.totals(&graph);
    assert!(totals.created > 20 && totals.dropped > 0, "{totals:?}: the run saw floods and drops");
    rig.finish(graph);
}

#[test]
fn a_table_with_room_and_time_that_goes_by() {
    for seed in 1..1 + SEEDS {
        let mut c = L2SwitchConfig::new(&PORTS);
        // Room for all of twice sixty.
        (c.isolated, c.table) = (vec![5, 7], 120);
        // 640 ticks.
        c.ageing = Duration::from_millis(64 * UNIT);
        compare(seed, c, 60, true);
    }
}

#[test]
fn a_table_that_is_full_and_floods() {
    for seed in 4..4 + SEEDS {
        let mut c = L2SwitchConfig::new(&PORTS);
        c.table = 20;
        compare(seed, c, 30, false);
    }
}

#[test]
fn a_table_that_is_full_and_drops() {
    for seed in 7..7 + SEEDS {
        let mut c = L2SwitchConfig::new(&PORTS);
        (c.table, c.table_full, c.isolated) = (20, TableFull::Drop, vec![4, 6]);
        compare(seed, c, 30, false);
    }
}
