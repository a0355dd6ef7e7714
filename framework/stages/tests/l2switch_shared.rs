//! A bridge of several workers: what one hears all know.

#[path = "../../graph/tests/rig/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use graph::{self, Graph, GraphBuilder, OnFull, To};
use mem::{Batch, Layout, Local, Memory, Meta};
use rig::{Rig, frame};
use ringwright_stages::{L2Switch, L2SwitchConfig, Peer, VlanPorts};
use wire::MacAddr;

const HZ: u64 = 1000;
const PORTS: [u16; 4] = [10, 11, 12, 13];
const ALL: [u8; 6] = [0xff; 6];

fn st(n: u16) -> [u8; 6] {
    [2, 0, 0, 0, (n >> 8) as u8, n as u8]
}

/// Workers, all on this thread.
struct Team {
    rig: Rig,
    graphs: Vec<Graph>,
}

impl Team {
    fn new(peers: Vec<Peer>, change: impl FnOnce(&mut L2SwitchConfig)) -> Self {
        let mut rig = Rig::new(1024);
        let mut config = L2SwitchConfig::new(&PORTS);
        config.table = 256;
        config.ageing = Duration::from_secs(64);
        change(&mut config);
        let graphs = (1..).zip(peers).map(|(seed, peer)| {
            let mut b = GraphBuilder::new(&rig.local);
            let switch = L2Switch::shared(&config, rig.pool, HZ, seed, peer).unwrap();
            let sw = b.add("sw", Box::new(switch));
            b.build(To::Node(sw)).unwrap()
        });
        let mut graphs: Vec<_> = graphs.collect();
        for graph in &mut graphs {
            PORTS.iter().for_each(|&p| rig.add_tx(graph, p, OnFull::Drop));
        }
        rig.now = 1_000_000;
        Self { rig, graphs }
    }
    fn of(n: usize) -> Self {
        Self::new(Peer::family(n), |_| ())
    }
    /// Worker `w` gets a frame; returns the ports it leaves by.
    fn say(&mut self, w: usize, port: u16, dst: [u8; 6], src: [u8; 6]) -> Vec<u16> {
        let mut batch = Batch::new(&self.rig.local);
        assert_eq!(batch.fill(self.rig.pool, 1, 60, Meta { port, ..Meta::default() }), 1);
        batch.pkt(0).unwrap().bytes_mut().copy_from_slice(&frame(dst, src, 7));
        self.graphs[w].inject(&mut batch, self.rig.now);
        self.graphs[w].breathe(self.rig.now, false);
        PORTS.into_iter().filter(|&p| !self.rig.sent(p).is_empty()).collect()
    }
    /// A millisecond, or so many, go by.
    fn tick(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.rig.now += 1;
            self.graphs.iter_mut().for_each(|g| g.tick(self.rig.now));
        }
    }
    fn switch(&mut self, w: usize) -> &mut L2Switch {
        self.graphs[w].stage_mut("sw").unwrap()
    }
    /// Where worker `w` thinks that station `n` is.
    fn port_of(&mut self, w: usize, n: u16) -> Option<u16> {
        let now = self.rig.now;
        self.switch(w).port_of(MacAddr::new(st(n)), now)
    }
    fn all_say(&mut self, n: u16) -> Vec<Option<u16>> {
        (0..self.graphs.len()).map(|w| self.port_of(w, n)).collect()
    }
    fn note(&self, w: usize, name: &str) -> u64 {
        let notes = self.graphs[w].stages().next().unwrap().3;
        notes.iter().find(|n| n.0 == name).unwrap_or_else(|| panic!("a note {name:?}")).1
    }
    fn finish(self) {
        let Self { rig, mut graphs } = self;
        for g in &mut graphs {
            g.breathe(rig.now, false);
            g.breathe(rig.now, false);
            assert_eq!((g.batched(), g.inflight()), (0, 0));
        }
        drop(graphs);
        assert_eq!((rig.home(), rig.local.lost()), (1024, 0));
    }
}

#[test]
fn what_one_learns_all_know_at_their_next_burst() {
    let mut t = Team::of(3);
    assert_eq!(t.say(0, 10, ALL, st(1)), [11, 12, 13]);
    assert_eq!(t.say(1, 11, st(1), st(2)), [10], "not flooded: it was told");
    assert_eq!(t.say(2, 12, st(2), st(3)), [11]);
    assert_eq!(
        (t.note(1, "told"), t.note(2, "told"), t.note(2, "stations"), t.note(2, "learned")),
        (1, 2, 3, 1)
    );
    assert_eq!(t.port_of(0, 3), None, "not yet");
    t.tick(1);
    assert_eq!(t.all_say(3), [Some(12); 3], "a tick will do");
    t.finish();
}

#[test]
fn a_station_that_moves_from_one_worker_to_another_is_followed_by_all() {
    let mut t = Team::of(3);
    t.say(0, 10, ALL, st(1));
    t.tick(1);
    t.say(1, 13, ALL, st(1));
    assert_eq!((t.note(1, "moved"), t.note(1, "learned")), (1, 0));
    assert_eq!((t.say(0, 11, st(1), st(2)), t.say(2, 12, st(1), st(3))), (vec![13], vec![13]));
    t.finish();
}

#[test]
fn of_two_moves_the_newer_counts_whoever_hears_of_it_first() {
    for order in [[0, 1, 2], [2, 1, 0]] {
        let mut t = Team::of(3);
        t.say(0, 10, ALL, st(1));
        t.tick(1);
        // Both hear it, neither has heard of the other.
        t.rig.now += 1;
        t.say(0, 11, ALL, st(1));
        t.rig.now += 1;
        let mut batch = Batch::new(&t.rig.local);
        batch.fill(t.rig.pool, 1, 60, Meta { port: 12, ..Meta::default() });
        batch.pkt(0).unwrap().bytes_mut().copy_from_slice(&frame(ALL, st(1), 7));
        t.graphs[1].inject(&mut batch, t.rig.now);
        for _ in 0..3 {
            order.iter().for_each(|&w| t.graphs[w].tick(t.rig.now));
        }
        assert_eq!(t.all_say(1), [Some(12); 3]);
        t.finish();
    }
}

#[test]
fn moves_at_one_moment_end_with_all_of_one_mind() {
    for first in 0..2 {
        let mut t = Team::of(3);
        // News are heard before a burst: these bursts are of one moment, and neither hears the other's.
        let [a, b] = [[0usize, 1], [1, 0]][first];
        t.say(a, 11, ALL, st(1));
        let mut batch = Batch::new(&t.rig.local);
        batch.fill(t.rig.pool, 1, 60, Meta { port: 12, ..Meta::default() });
        batch.pkt(0).unwrap().bytes_mut().copy_from_slice(&frame(ALL, st(1), 7));
        t.graphs[b].inject(&mut batch, t.rig.now);
        t.tick(2);
        let all = t.all_say(1);
        assert!(all[0].is_some() && all.iter().all(|p| *p == all[0]), "{all:?}");
        t.finish();
    }
}

#[test]
fn who_is_heard_by_one_is_forgotten_by_none_and_who_by_none_by_all() {
    for gap in [500, 1500, 3900] {
        let mut t = Team::of(3);
        for n in 1..4 {
            t.say(0, 10, ALL, st(n));
        }
        // Station 1 speaks every now and then, always to worker 1.
        let mut last = t.rig.now;
        while t.rig.now < 1_300_000 {
            t.tick(gap);
            t.say(1, 10, ALL, st(1));
            last = t.rig.now;
            assert_eq!(t.all_say(1), [Some(10); 3], "at {}", t.rig.now);
        }
        assert_eq!(t.all_say(2), [None; 3]);
        assert!((t.note(1, "stations"), t.note(2, "stations")) == (1, 1), "their slots are free");
        // A unit is a second; news are made of it at most every three.
        let told = t.note(2, "told");
        assert!((25..=105).contains(&told), "{told} in 300 s");
        while t.rig.now < last + 64_000 {
            assert_eq!(t.all_say(1), [Some(10); 3], "{} after the last", t.rig.now - last);
            t.tick(100);
        }
        t.tick(5100);
        assert_eq!(t.all_say(1), [None; 3], "at most a twelfth late");
        t.finish();
    }
}

#[test]
fn news_that_found_no_room_are_made_up_for() {
    let mut t = Team::new(Peer::family_with_room(2, 8), |_| ());
    for n in 0..200 {
        t.say(0, PORTS[usize::from(n) % 4], ALL, st(n));
    }
    let lost = t.note(0, "news_lost");
    assert_eq!((lost, t.note(0, "stations"), t.note(1, "stations")), (192, 200, 0));
    // Eight at a time.
    t.tick(60);
    for n in 0..200 {
        assert_eq!(t.port_of(1, n), Some(PORTS[usize::from(n) % 4]), "{n}");
    }
    assert_eq!((t.note(0, "news_lost"), t.note(1, "told_full")), (lost, 0));
    // Moves as well.
    for n in 0..200 {
        t.say(0, PORTS[usize::from(n + 1) % 4], ALL, st(n));
    }
    t.tick(60);
    assert!((0..200).all(|n| t.port_of(1, n) == Some(PORTS[usize::from(n + 1) % 4])));
    t.finish();
}

#[test]
fn a_port_that_leaves_is_forgotten_by_all() {
    for room in [1024, 1] {
        let mut t = Team::new(Peer::family_with_room(2, room), |_| ());
        t.say(0, 10, ALL, st(1));
        t.tick(1);
        t.say(1, 11, ALL, st(2));
        t.tick(1);
        t.say(0, 12, ALL, st(3)); // news that fill the smaller queue
        t.rig.now += 1;
        t.switch(0).set_ports(&[11, 12, 13], &[]).unwrap();
        t.tick(2);
        assert_eq!(t.all_say(1), [None; 2], "by worker 1 too, though its ports are the same yet");
        assert_eq!((t.all_say(2), t.all_say(3)), (vec![Some(11); 2], vec![Some(12); 2]));
        // Worker 1 still has the port and hears a station there; worker 0 has no such port.
        t.say(1, 10, ALL, st(4));
        t.tick(1);
        assert_eq!(t.all_say(4), [None, Some(10)]);
        t.switch(1).set_ports(&[11, 12, 13], &[]).unwrap();
        t.tick(1);
        assert_eq!(t.all_say(4), [None; 2]);
        // It comes back, and what was said of it before does not count.
        for w in 0..2 {
            t.switch(w).set_ports(&PORTS, &[]).unwrap();
        }
        t.tick(1);
        assert_eq!((t.all_say(1), t.all_say(4)), (vec![None; 2], vec![None; 2]));
        t.say(1, 10, ALL, st(1));
        t.tick(1);
        assert_eq!(t.all_say(1), [Some(10); 2]);
        t.finish();
    }
}

#[test]
fn a_worker_that_ends_is_told_no_more() {
    let mut peers = Peer::family_with_room(3, 4);
    drop(peers.pop());
    let mut t = Team::new(peers, |_| ());
    for n in 0..50 {
        t.say(0, 10, ALL, st(n));
        t.tick(1);
    }
    assert_eq!((t.note(0, "news_lost"), t.note(1, "stations")), (0, 50));
    t.finish();
}

#[test]
fn a_family_of_one_is_a_bridge_alone() {
    let mut t = Team::of(1);
    t.say(0, 10, ALL, st(1));
    assert_eq!(t.say(0, 11, st(1), st(2)), [10]);
    assert!(t.graphs[0].stages().next().unwrap().3.iter().all(|n| n.0 != "told"));
    t.finish();
}

#[test]
fn vlans_are_told_of_with_their_stations() {
    let vlans =
        VlanPorts::new(&[(10, 5)], &[(11, vec![5..=6]), (12, vec![5..=6]), (13, vec![6..=6])], &[]).unwrap();
    let mut t = Team::new(Peer::family(2), |c| c.vlans = Some(vlans.clone()));
    let say = |t: &mut Team, w: usize, port, vid: u8, dst: [u8; 6], src: [u8; 6]| {
        let mut f = [&dst[..], &src[..], &[0x81, 0, 0, vid, 8, 0]].concat();
        f.resize(60, 0);
        let mut batch = Batch::new(&t.rig.local);
        batch.fill(t.rig.pool, 1, 60, Meta { port, ..Meta::default() });
        batch.pkt(0).unwrap().bytes_mut().copy_from_slice(&f);
        t.graphs[w].inject(&mut batch, t.rig.now);
        PORTS.into_iter().filter(|&p| !t.rig.sent(p).is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(say(&mut t, 0, 11, 5, ALL, st(1)), [10, 12]);
    assert_eq!(say(&mut t, 0, 12, 6, ALL, st(1)), [11, 13]);
    assert_eq!(say(&mut t, 1, 12, 5, st(1), st(2)), [11]);
    assert_eq!(say(&mut t, 1, 13, 6, st(1), st(2)), [12]);
    t.finish();
}

/// Random talk to random workers, each of which hears news when it happens to.
#[test]
fn in_the_end_all_know_where_each_station_was_heard_last() {
    for (seed, room) in (1..if cfg!(miri) { 2 } else { 30 }).zip([1024, 3, 20].into_iter().cycle()) {
        let mut random: u64 = seed;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let n = 2 + below(3) as usize;
        let mut t = Team::new(Peer::family_with_room(n, room), |_| ());
        let mut last = BTreeMap::new();
        for _ in 0..400 {
            let (w, port, station) = (below(n as u64) as usize, PORTS[below(4) as usize], below(40) as u16);
            // Time goes on between any two frames: of one moment either might count.
            t.rig.now += 1;
            // A third of the workers' ticks come at their time.
            if below(3) == 0 {
                let w = below(n as u64) as usize;
                t.graphs[w].tick(t.rig.now);
            }
            t.say(w, port, ALL, st(station));
            last.insert(station, (port, t.rig.now));
        }
        t.tick(200);
        for (&station, &(port, when)) in &last {
            let all = t.all_say(station);
            assert_eq!(all, vec![all[0]; n], "seed {seed}, station {station}: of one mind");
            // Who moved and came back while news of it found no room may be looked for where it was, until it speaks.
            if all[0] != Some(port) {
                assert!(room < 1024, "seed {seed}, station {station}, heard at {when} at {port}: {all:?}");
                t.rig.now += 1;
                t.say(0, port, ALL, st(station));
                t.tick(1);
                assert_eq!(t.all_say(station), vec![Some(port); n]);
            }
        }
        let known: Vec<u64> = (0..n).map(|w| t.note(w, "stations")).collect();
        assert_eq!(known, vec![last.len() as u64; n]);
        t.finish();
    }
}

/// Workers on threads of their own.
#[test]
fn threads_agree_once_all_is_said() {
    const WORKERS: usize = 3;
    let rounds = if cfg!(miri) { 20 } else { 4000 };
    let memory = Memory::new(hw::Window::on_heap(4 << 20), Layout::for_frame_room(128).unwrap());
    let pool = memory.add_pool(2048, None, hw::Pages::Any).unwrap().id();
    let barrier = Arc::new(Barrier::new(WORKERS));
    let threads = (0u64..).zip(Peer::family_with_room(WORKERS, 64)).map(|(w, peer)| {
        let (memory, barrier) = (Arc::clone(&memory), Arc::clone(&barrier));
        std::thread::spawn(move || {
            let local = Local::new(&memory);
            let mut config = L2SwitchConfig::new(&PORTS);
            config.table = 64;
            let mut b = GraphBuilder::new(&local);
            let switch = L2Switch::shared(&config, pool, 1_000_000_000, w, peer).unwrap();
            let sw = b.add("sw", Box::new(switch));
            b.join(sw, "out", To::Drop(meter::DropReason::Filtered)).unwrap();
            let mut g = b.build(To::Node(sw)).unwrap();
            let mut random = w + 1;
            barrier.wait();
            for round in 0..rounds {
                let mut batch = Batch::new(&local);
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let port = PORTS[(random >> 40) as usize % 4];
                batch.fill(pool, 4, 60, Meta { port, ..Meta::default() });
                for (i, mut p) in batch.iter_mut().enumerate() {
                    p.bytes_mut().copy_from_slice(&frame(ALL, st((random >> (8 * i)) as u16 % 50), round));
                }
                g.inject(&mut batch, hw::cycles());
                if round % 16 == 0 {
                    g.tick(hw::cycles());
                }
            }
            // All is said; now all is heard.
            for _ in 0..40 {
                barrier.wait();
                g.tick(hw::cycles());
            }
            let now = hw::cycles();
            let switch = g.stage_mut::<L2Switch>("sw").unwrap();
            let all: Vec<_> = (0..50).map(|n| switch.port_of(MacAddr::new(st(n)), now)).collect();
            drop(g);
            local.flush();
            all
        })
    });
    let threads: Vec<_> = threads.collect();
    let known: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(known[0].iter().any(Option::is_some));
    for other in &known[1..] {
        assert_eq!(other, &known[0]);
    }
    assert_eq!(memory.depot(), 2048);
}
