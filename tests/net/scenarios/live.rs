//! Changes while packets flow: nothing is lost but what is counted, and flows keep their order.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Net, is_bridge};
use crate::switch::{Mode, Running, Setup, accounted_for, binary, each_mode};
use crate::traffic::{Iperf, flow_while, iperf, ping, ping_output};

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
        for _ in 0..2 {
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
    let load = Iperf::start(b, a, "-t 2 --bidir");
    let (sent, arrived, moves) = flow_while(a, b, Duration::from_micros(200), || {
        let mut moves = 0;
        let mut place = [[0, 1], [0, 1]];
        while !load.is_over() || moves < 8 {
            let (port, number) = (moves % 2, moves / 2 % 2);
            let (queue, worker) = (format!("p{port}:{number}"), 1 - place[port][number]);
            let moved = running.ask(json!({ "command": "move_queue", "queue": queue, "worker": worker }));
            let was = place[port][number];
            assert_eq!(moved, Ok(json!({ "queue": queue, "from": was, "worker": worker })));
            place[port][number] = worker;
            moves += 1;
            thread::sleep(Duration::from_millis(20));
        }
        moves
    });
    assert!(moves >= 8, "{moves}");
    arrived.assert_whole(&net, sent);
    load.end();
    running.stop();
}

/// All of it by the command that operators have.
#[test]
fn the_control_command_changes_and_ends_a_run() {
    let Some(net) = Net::new(3).filter(|_| !is_bridge()) else { return };
    let mut setup = Setup::switch(&net, Mode::RunToCompletion);
    setup.ports.pop();
    let running = Running::start(&net, &setup);
    let [a, b, c] = &net.stations[..] else { unreachable!() };
    let binary = binary();
    let socket = running.control.to_str().expect("a plain path").to_owned();
    let ctl = |words: &[&str]| {
        let all = [&[&*binary, "ctl", "--json", "--socket", &socket], words].concat();
        net.middle.run(&all).expect(0).json()
    };
    ping(a, &b.ip(), "");
    assert_eq!(ctl(&["add-port", "name=p2", "driver=packet", "interface=p2"])["port"], "p2");
    ping(c, &a.ip(), "");
    assert_eq!(ctl(&["set-batching", "p2", "--packets", "8", "--delay", "20us"])["packets"], 8);
    assert_eq!(ctl(&["status"])["ports"][2]["link"]["up"], true);
    assert_eq!(ctl(&["remove-port", "p2"])["port"], "p2");
    ping(b, &a.ip(), "");
    assert_eq!(ctl(&["shutdown"])["stopping"], true);
    accounted_for(running.end());
    for (name, promiscuity) in [("p0", 0), ("p1", 0), ("p2", 0)] {
        assert_eq!(crate::rig::promiscuity(&net.middle, name), promiscuity, "{name} is as it was");
    }
}
