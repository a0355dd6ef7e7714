//! Stations find each other, one frame at a time.

use crate::rig::{Net, Offloads, Shape, is_bridge, mac};
use crate::switch::{Mode, Running, Setup, Switch, each_mode};
use crate::traffic::{Sniffer, ping, ping_output, transfer};

each_mode!(two_ports four_ports large_frames mixed_mtus back_to_back each_idle_strategy unknown_stations);

fn two_ports(mode: Mode) {
    let Some(net) = Net::new(2) else { return };
    let switch = Switch::start(&net, mode);
    for offloads in [Offloads::Default, Offloads::Off] {
        net.set_offloads(offloads);
        for (a, b) in net.pairs() {
            ping(a, &b.ip(), "");
            // Over one buffer, and in two fragments.
            ping(a, &b.ip(), "-s 1472 -M do");
            ping(a, &b.ip(), "-s 2800");
        }
    }
    switch.stop();
}

fn four_ports(mode: Mode) {
    let Some(net) = Net::new(4) else { return };
    let switch = Switch::start(&net, mode);
    for (a, b) in net.pairs() {
        ping(a, &b.ip(), "");
    }
    // Who has spoken is known: frames for him go to him alone.
    let [a, b, c, d] = &net.stations[..] else { unreachable!() };
    let elsewhere = Sniffer::each([c, d], "icmp");
    ping(a, &b.ip(), "");
    for sniffer in elsewhere {
        assert_eq!(sniffer.stop(), [""; 0]);
    }
    switch.stop();
}

fn large_frames(mode: Mode) {
    let shape = Shape { stations: 2, mtu: 9000, duplicate_detection: false };
    let Some(net) = Net::of(shape) else { return };
    let switch = Switch::start(&net, mode);
    for (a, b) in net.pairs() {
        ping(a, &b.ip(), "-s 8000 -M do");
        ping(a, &b.ip(), "-s 8972 -M do");
        ping(a, &b.ip6(), "-s 8952 -M do");
    }
    switch.stop();
}

/// What is longer than a wire takes is dropped, and said to be; all else passes.
fn mixed_mtus(mode: Mode) {
    let shape = Shape { stations: 2, mtu: 9000, duplicate_detection: false };
    let Some(net) = Net::of(shape) else { return };
    let [a, b] = &net.stations[..] else { unreachable!() };
    net.middle.ip("link set p1 mtu 1500\n");
    b.ns.ip("link set eth0 mtu 1500\n");
    let switch = Switch::start(&net, mode);
    ping(a, &b.ip(), "-s 1472 -M do");
    let lost = ping_output(a, &b.ip(), "-c 3 -i 0.01 -W 0.3 -s 4000 -M do");
    assert!(lost.stdout.contains(" 100% packet loss"), "{}", lost.stdout);
    for offloads in [Offloads::Default, Offloads::Off] {
        net.set_offloads(offloads);
        transfer(a, b, b.ip().parse().expect("an address"), 4 << 20);
        transfer(b, a, a.ip6().parse().expect("an address"), 4 << 20);
    }
    if let Some(status) = switch.stop() {
        assert_eq!(status["ports"][1]["drops"]["too_long"], 3, "{:#}", status["ports"][1]);
    }
}

/// As fast as the answers come: no answer may be left lying until the next frame comes.
fn back_to_back(mode: Mode) {
    let Some(net) = Net::new(2) else { return };
    let switch = Switch::start(&net, mode);
    let [a, b] = &net.stations[..] else { unreachable!() };
    // Until so many are answered.
    let ended = ping_output(a, &b.ip(), "-f -q -c 300 -w 20");
    assert_eq!(ended.code(), Some(0), "{}", ended.stdout);
    switch.stop();
}

fn each_idle_strategy(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let [a, b] = &net.stations[..] else { unreachable!() };
    for idle in ["idle = \"busy\"\n", "idle = \"pause\"\n", "idle = \"sleep\"\nidle_bound = \"1ms\"\n"] {
        let mut running = Running::start(&net, &Setup { idle, ..Setup::switch(&net, mode) });
        let ended = ping_output(a, &b.ip(), "-f -q -c 10 -w 20");
        assert_eq!(ended.code(), Some(0), "{idle}: {}", ended.stdout);
        // The kernel counts those before as well.
        (0..2).for_each(|i| running.shares(i));
        running.stop();
    }
}

/// A frame for a station that nobody has heard goes to everyone but its sender.
fn unknown_stations(mode: Mode) {
    let Some(net) = Net::new(4) else { return };
    let switch = Switch::start(&net, mode);
    let (a, others) = net.stations.split_first().expect("four");
    // Nobody has this address.
    a.ns.ip(&format!("neigh replace 10.77.0.99 lladdr {} nud permanent dev eth0\n", mac(0x98)));
    let filter = "udp port 9";
    let sent = Sniffer::start(&a.ns, "eth0", "out", filter);
    let back = Sniffer::start(&a.ns, "eth0", "in", filter);
    let heard = Sniffer::each(others, filter);
    let socket = crate::traffic::socket(&a.ns, "0.0.0.0:0");
    for _ in 0..20 {
        socket.send_to(b"is anybody there?", "10.77.0.99:9").expect("a way out");
    }
    net.until(|| match others.iter().map(|s| s.packets("rx")).min() {
        Some(20..) => Ok(()),
        n => Err(format!("{n:?} of 20 frames came")),
    });
    assert_eq!(sent.stop().len(), 20);
    for sniffer in heard {
        let lines = sniffer.stop();
        assert_eq!(lines.len(), 20, "each hears each once: {lines:#?}");
    }
    assert_eq!(back.stop(), [""; 0], "nothing comes back to where it came from");
    if let Some(status) = switch.stop() {
        let created = status["conservation"]["created"].as_u64().expect("a count");
        assert!(created >= 40, "20 frames, each copied twice: {created}");
    }
}
