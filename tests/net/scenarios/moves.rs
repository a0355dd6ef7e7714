//! A station that moves to another port.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::rig::{Net, mac};
use crate::switch::{Mode, Switch, each_mode};
use crate::traffic::{Arrived, Sniffer, ping, receive_numbers, send_numbers, socket};

each_mode!(traffic_follows_a_station);

/// Flows enough that each worker of a pipeline has some.
const FLOWS: usize = 8;
const COUNT: u64 = 200;
const ROAMING: usize = 0x50;

/// The roaming station's address and its frames' behind the wire of station `index`.
fn arrive(net: &Net, index: usize) {
    let lines = format!("link set eth0 address {}\naddr add 10.77.0.80/24 dev eth0\n", mac(ROAMING));
    net.stations[index].ns.ip(&lines);
}

fn leave(net: &Net, index: usize) {
    let lines = format!("addr del 10.77.0.80/24 dev eth0\nlink set eth0 address {}\n", mac(index));
    net.stations[index].ns.ip(&lines);
}

fn traffic_follows_a_station(mode: Mode) {
    let Some(net) = Net::new(3) else { return };
    let switch = Switch::start(&net, mode);
    let [a, b, c] = &net.stations[..] else { unreachable!() };
    let flows: Vec<_> = (0..FLOWS).map(|_| socket(&a.ns, "0.0.0.0:0")).collect();
    let target: SocketAddr = "10.77.0.80:7200".parse().expect("an address");
    // There, to another port, and back again.
    for (here, there) in [(b, c), (c, b), (b, c)] {
        arrive(&net, here.index);
        // Its first frame from here.
        ping(here, &a.ip(), "-I 10.77.0.80");
        let elsewhere = Sniffer::start(&there.ns, "eth0", "in", "udp port 7200");
        let receiver = socket(&here.ns, "10.77.0.80:7200");
        let done = AtomicBool::new(false);
        let arrived = thread::scope(|s| {
            let read = s.spawn(|| receive_numbers(&receiver, &done));
            let senders = flows.iter().enumerate().map(|(i, flow)| {
                s.spawn(move || {
                    send_numbers(flow, target, i as u64 * COUNT, COUNT, Duration::from_micros(500))
                })
            });
            senders.collect::<Vec<_>>().into_iter().for_each(|t| t.join().expect("no panic"));
            done.store(true, Ordering::Relaxed);
            read.join().expect("no panic")
        });
        for flow in 0..FLOWS as u64 {
            let (first, end) = (flow * COUNT, (flow + 1) * COUNT);
            let numbers = arrived.numbers.iter().copied().filter(|n| (first..end).contains(n));
            Arrived { numbers: numbers.collect() }.assert_whole(&net, COUNT);
        }
        assert_eq!(elsewhere.stop(), [""; 0], "nothing goes where it was");
        leave(&net, here.index);
    }
    switch.stop();
}
