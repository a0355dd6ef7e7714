//! Interfaces that go down, or away, and come back while the switch runs.

use std::time::Duration;

use crate::rig::Net;
use crate::switch::{Mode, Switch, each_mode};
use crate::traffic::{flow_while, ping, ping_output, until_reached};

each_mode!(down_and_up down_at_start deleted_and_made_anew);

/// Waits until status says that port `index` is up, or down.
#[track_caller]
fn until_up(net: &Net, switch: &Switch<'_>, index: usize, up: bool) {
    net.until(|| match switch.is_up(index) {
        Some(is) if is != up => Err(format!("port {index}: up is {is}, not {up}")),
        _ => Ok(()),
    });
}

/// What the others send each other while `meanwhile` happens to a port: all of it arrives.
#[track_caller]
fn undisturbed(net: &Net, meanwhile: impl FnOnce()) {
    let [a, _, c] = &net.stations[..] else { unreachable!() };
    let (sent, arrived, ()) = flow_while(a, c, Duration::from_micros(500), meanwhile);
    arrived.assert_whole(net, sent);
}

fn down_and_up(mode: Mode) {
    let Some(net) = Net::new(3) else { return };
    let switch = Switch::start(&net, mode);
    let [a, b, c] = &net.stations[..] else { unreachable!() };
    for (x, y) in net.pairs() {
        ping(x, &y.ip(), "");
    }
    for end in [&net.middle, &b.ns] {
        // The port itself, then the other end of its wire: it has no carrier.
        let interface = if end.name() == net.middle.name() { "p1" } else { "eth0" };
        undisturbed(&net, || {
            end.ip(&format!("link set {interface} down\n"));
            until_up(&net, &switch, 1, false);
            // What is sent to it while it is down goes nowhere, and is accounted for.
            let lost = ping_output(a, &b.ip(), "-c 5 -i 0.01 -W 0.2");
            assert!(lost.stdout.contains(" 100% packet loss"), "{}", lost.stdout);
            end.ip(&format!("link set {interface} up\n"));
            until_up(&net, &switch, 1, true);
        });
        until_reached(b, &c.ip());
        ping(a, &b.ip(), "");
    }
    switch.stop();
}

fn down_at_start(mode: Mode) {
    let Some(net) = Net::new(3) else { return };
    net.middle.ip("link set p1 down\n");
    let switch = Switch::start(&net, mode);
    let [a, b, c] = &net.stations[..] else { unreachable!() };
    until_up(&net, &switch, 1, false);
    ping(a, &c.ip(), "");
    net.middle.ip("link set p1 up\n");
    until_up(&net, &switch, 1, true);
    until_reached(b, &c.ip());
    ping(a, &b.ip(), "");
    switch.stop();
}

fn deleted_and_made_anew(mode: Mode) {
    let Some(net) = Net::new(3) else { return };
    let mut switch = Switch::start(&net, mode);
    let [a, b, _] = &net.stations[..] else { unreachable!() };
    for (x, y) in net.pairs() {
        ping(x, &y.ip(), "");
    }
    undisturbed(&net, || {
        net.middle.ip("link del p1\n");
        until_up(&net, &switch, 1, false);
        net.wire(1).expect("the name is free");
        switch.rejoin(1);
        until_up(&net, &switch, 1, true);
    });
    until_reached(b, &a.ip());
    for (x, y) in net.pairs() {
        ping(x, &y.ip(), "");
    }
    switch.stop();
}
