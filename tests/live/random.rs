//! Changes in a random order, all from one seed, while packets flow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwright::graph::OnFull;
use ringwright::stages::Forward;

use super::changes::{PLENTY, receivers};
use super::rig::{FLOWS, MODES, Mode, Rig, config, pairs};

struct Random(u64);
impl Random {
    /// Below `n` (xorshift, Marsaglia 2003).
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// One change, in words.
fn change(rig: &mut Rig, mode: Mode, random: &mut Random, extra: &mut Vec<u16>, names: &mut usize) -> String {
    match random.below(8) {
        // Two ports, each the other's partner, so that there is traffic between them.
        0 | 1 if extra.len() < 4 => {
            let base = rig.knobs.len() as u16;
            for _ in 0..2 {
                *names += 1;
                let name = format!("x{}", *names % 5);
                let name = if rig.runtime.port(&name).is_ok() { format!("y{names}") } else { name };
                let port = rig.port(&name);
                let on_full = if random.below(2) == 0 { OnFull::Drop } else { OnFull::Wait };
                let to = [None, Some(receivers(mode)[0]), Some(receivers(mode)[1])][random.below(3)];
                let number = rig.runtime.add_port_live(&name, Box::new(port), config(), on_full, to);
                extra.push(number.expect("it comes"));
            }
            let told = rig.runtime.with_graph(None, move |g| {
                if let Some(f) = g.stage_mut::<Forward>("fwd") {
                    f.set_map(pairs(base + 2));
                }
            });
            told.expect("they answer");
            rig.knobs[usize::from(base)..].iter().for_each(|k| k.budget.store(PLENTY, Ordering::Relaxed));
            format!("added {base} and {}", base + 1)
        }
        2 | 3 if !extra.is_empty() => {
            let port = extra.swap_remove(random.below(extra.len()));
            rig.runtime.remove_port(port).expect("it goes");
            format!("removed {port}")
        }
        4 => {
            let packets = 1 + random.below(64) as u16;
            rig.runtime.set_batching(random.below(2) as u16, packets, Duration::from_micros(3)).expect("set");
            format!("batching {packets}")
        }
        _ => {
            let ports: Vec<u16> = [0, 1].into_iter().chain(extra.iter().copied()).collect();
            let (port, queue) = (ports[random.below(ports.len())], random.below(2) as u16);
            let to = receivers(mode)[random.below(2)];
            rig.runtime.move_queue(port, queue, to).expect("it moves");
            format!("moved {port}:{queue} to {to}")
        }
    }
}

fn any_changes(seed: u64, steps: usize) {
    for mode in MODES {
        let mut random = Random(seed | 1);
        // Ports 0 and 1 always wait, so that nothing between them may be lost whatever happens around them.
        let mut rig = Rig::new(2, OnFull::Wait).start(mode);
        rig.make(PLENTY);
        let (mut extra, mut names, mut done) = (Vec::new(), 0, Vec::new());
        for _ in 0..steps {
            rig.flow(50 + random.below(200) as u64);
            done.push(change(&mut rig, mode, &mut random, &mut extra, &mut names));
        }
        rig.flow(200);
        let status = rig.runtime.stop();
        let seen = rig.wires.seen();
        assert_eq!(seen.wrong, [""; 0], "seed {seed}, {mode:?}: {done:#?}");
        assert_eq!(status.conservation.unexplained, Some(0), "seed {seed}, {mode:?}: {done:#?}\n{status:#?}");
        let c = status.conservation;
        assert_eq!(c.received, c.sent + c.dropped, "seed {seed}, {mode:?}");
        assert_eq!(seen.frames, c.sent);
        let first = seen.last.keys().filter(|f| f.0 < 2).count();
        assert_eq!(first, 2 * usize::from(FLOWS), "all flows of the first two ports came through");
        let home = status.pools.iter().all(|p| p.available == p.capacity);
        assert!(home, "seed {seed}, {mode:?}: {:?}", status.pools);
    }
}

#[test]
fn changes_in_any_order_lose_nothing_and_keep_every_flow_in_order() {
    for seed in [82_599, 7_021_993] {
        any_changes(seed, 25);
    }
}

#[test]
#[ignore = "takes a minute"]
fn many_changes_in_any_order() {
    for seed in 1..25 {
        any_changes(seed * 0x9e37_79b9, 60);
    }
}
