//! What is for several stations reaches each of them once.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crate::rig::{Net, Station};
use crate::switch::{Mode, Switch, each_mode};
use crate::traffic::{Arrived, Sniffer, ping, receive_numbers, send_numbers, socket};

each_mode!(groups_and_broadcast);

const COUNT: u64 = 200;
const GROUP: &str = "239.7.7.7";
const GROUP6: &str = "ff15::77";

/// What the receivers get of a flow to `target`, which is all there is on the wires.
fn flow(from: &UdpSocket, target: &str, receivers: &[&UdpSocket]) -> Vec<Arrived> {
    let done = AtomicBool::new(false);
    thread::scope(|s| {
        let all: Vec<_> = receivers.iter().map(|r| s.spawn(|| receive_numbers(r, &done))).collect();
        send_numbers(from, target.parse().expect("an address"), 0, COUNT, Duration::from_micros(200));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        all.into_iter().map(|r| r.join().expect("no panic")).collect()
    })
}

/// A socket that hears a group.
fn member(station: &Station) -> UdpSocket {
    let socket = socket(&station.ns, "0.0.0.0:7100");
    let (group, own) = (GROUP.parse().expect("a group"), station.ip().parse().expect("an address"));
    socket.join_multicast_v4(&group, &own).expect("a group");
    socket
}

fn member6(station: &Station) -> UdpSocket {
    let socket = socket(&station.ns, "[::]:7101");
    let number = station.ns.ask(&["link", "show", "eth0"])[0]["ifindex"].as_u64().expect("a number");
    socket.join_multicast_v6(&GROUP6.parse().expect("a group"), number as u32).expect("a group");
    socket
}

fn groups_and_broadcast(mode: Mode) {
    let Some(net) = Net::new(4) else { return };
    let switch = Switch::start(&net, mode);
    let [a, b, c, d] = &net.stations[..] else { unreachable!() };
    a.ns.ip("route add 224.0.0.0/4 dev eth0\n");
    let sender = socket(&a.ns, "0.0.0.0:0");
    let members = [member(b), member(c)];
    // Who did not join has the frames on his wire, for the switch does not listen to who joins; his kernel leaves them.
    let (deaf, wire) = (socket(&d.ns, "0.0.0.0:7100"), Sniffer::start(&d.ns, "eth0", "in", "udp port 7100"));
    let heard = flow(&sender, &format!("{GROUP}:7100"), &[&members[0], &members[1], &deaf]);
    for member in &heard[..2] {
        member.assert_whole(&net, COUNT);
    }
    assert_eq!(heard[2], Arrived::default());
    assert_eq!(wire.stop().len() as u64, COUNT);

    let sender6 = socket(&a.ns, "[::]:0");
    let number = a.ns.ask(&["link", "show", "eth0"])[0]["ifindex"].as_u64().expect("a number");
    let members = [member6(b), member6(c)];
    for member in flow(&sender6, &format!("[{GROUP6}%{number}]:7101"), &[&members[0], &members[1]]) {
        member.assert_whole(&net, COUNT);
    }

    sender.set_broadcast(true).expect("a socket of ours");
    let all = [b, c, d].map(|s| socket(&s.ns, "0.0.0.0:7102"));
    for station in flow(&sender, "10.77.0.255:7102", &all.each_ref()) {
        station.assert_whole(&net, COUNT);
    }
    // Who has an address is asked by broadcast.
    for (x, y) in net.pairs() {
        x.forget_neighbours();
        ping(x, &y.ip(), "");
    }
    switch.stop();
}
