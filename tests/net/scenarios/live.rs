//! Changes while packets flow: nothing is lost but what is counted, and flows keep their order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Net, is_bridge};
use crate::switch::{Mode, Running, Setup, each_mode};
use crate::traffic::{flow_while, iperf, ping, ping_output};

each_mode!(ports_come_and_go batching_changes);

/// A port for interface `p{i}`, as a control message has it.
fn port(i: usize) -> Value {
    json!({ "name": format!("p{i}"), "driver": "packet", "interface": format!("p{i}") })
}

fn ports_come_and_go(mode: Mode) {
    let Some(net) = Net::new(3).filter(|_| !is_bridge()) else { return };
    let mut setup = Setup::switch(&net, mode);
    setup.ports.pop();
    let mut running = Running::start(&net, &setup);
    // The third interface is one run's after the other.
    running.shares(2);
    let [a, b, c] = &net.stations[..] else { unreachable!() };
    let (sent, arrived, ()) = flow_while(a, b, Duration::from_micros(300), || {
        for _ in 0..3 {
            let lost = ping_output(c, &a.ip(), "-c 1 -W 0.2");
            assert_ne!(lost.code(), Some(0), "{}", lost.stdout);
            let added = running.ask(json!({ "command": "add_port", "port": port(2) }));
            assert_eq!(added.as_ref().map(|a| &a["port"]), Ok(&"p2".into()), "{added:?}");
            ping(c, &a.ip(), "");
            ping(b, &c.ip(), "");
            let removed = running.ask(json!({ "command": "remove_port", "name": "p2" }));
            assert_eq!(removed, Ok(json!({ "port": "p2" })));
        }
    });
    arrived.assert_whole(&net, sent);
    running.stop();
}

fn batching_changes(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let running = Running::start(&net, &Setup::switch(&net, mode));
    let [a, b] = &net.stations[..] else { unreachable!() };
    let (sent, arrived, ()) = flow_while(a, b, Duration::from_micros(300), || {
        for (packets, delay) in [(1, "0s"), (64, "200us"), (1024, "2ms"), (32, "0s")] {
            for name in ["p0", "p1"] {
                let change =
                    json!({ "command": "set_batching", "port": name, "packets": packets, "delay": delay });
                let set = running.ask(change);
                assert_eq!(set.as_ref().map(|s| &s["packets"]), Ok(&packets.into()), "{set:?}");
            }
            ping(b, &a.ip(), "");
        }
        iperf(b, a, "-t 1");
    });
    arrived.assert_whole(&net, sent);
    running.stop();
}

/// Between two workers that each do everything, so that order has to be kept while a queue is with neither.
#[test]
fn queues_move_between_workers() {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let mut setup = Setup::switch(&net, Mode::TwoWorkers);
    setup.stages = "[[stage]]\nname = \"f\"\nkind = \"forward\"\n".to_owned();
    let running = Running::start(&net, &setup);
    let [a, b] = &net.stations[..] else { unreachable!() };
    let (sent, arrived, ()) = flow_while(a, b, Duration::from_micros(200), || {
        for round in 0..12 {
            let (queue, worker) = (format!("p{}:0", round / 2 % 2), round % 2);
            let moved = running.ask(json!({ "command": "move_queue", "queue": queue, "worker": worker }));
            assert_eq!(moved.as_ref().map(|m| &m["worker"]), Ok(&worker.into()), "{moved:?}");
            ping(b, &a.ip(), "");
        }
    });
    arrived.assert_whole(&net, sent);
    running.stop();
}
