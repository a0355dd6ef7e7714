//! Tags of stations pass as they are.

use crate::process::skip;
use crate::rig::{Net, Offloads, Station, bulk, is_bridge};
use crate::switch::{Mode, Running, Setup, Switch, each_mode};
use crate::tags::{Tag, customer, service, tag};
use crate::traffic::{Sniffer, ping, ping_output, transfer, until_reached};

each_mode!(tags_pass_untouched access_and_trunk_ports);

/// Tags the frames of two stations; whether that can be here.
fn tag_both(net: &Net, tags: &[Tag]) -> bool {
    for s in &net.stations[..2] {
        if let Err(why) = tag(net, s, tags) {
            skip(&format!("this kernel runs no classifier that tags: {}", why.trim()));
            return false;
        }
    }
    true
}

fn tags_pass_untouched(mode: Mode) {
    let Some(net) = Net::new(4) else { return };
    if !tag_both(&net, &[customer(5, 100)]) {
        return;
    }
    let switch = Switch::start(&net, mode);
    let [a, b, c, d] = &net.stations[..] else { unreachable!() };
    for (tags, seen) in [
        (&[customer(5, 100)][..], &["802.1Q", "vlan 100, p 5"][..]),
        (&[customer(1, 8), service(7)], &["802.1Q-QinQ", "vlan 7, p 0", "vlan 8, p 1"]),
    ] {
        assert!(tag_both(&net, tags));
        for s in [a, b] {
            // A packet socket sends no more than one tag beyond the MTU (packet(7)), so two tags take 4 bytes of it.
            let mtu = 1504 - 4 * tags.len();
            s.ns.ip(&format!(
                "route change 10.77.0.0/24 dev eth0 mtu {mtu}\nroute change fd00:77::/64 dev eth0 proto kernel metric 256 mtu {mtu}\n"
            ));
        }
        for offloads in [Offloads::Default, Offloads::Off] {
            net.set_offloads(offloads);
            let tagged = Sniffer::start(&b.ns, "eth0", "in", "vlan");
            // 1496 bytes, as long as they may be with two tags.
            ping(a, &b.ip(), "-s 1468 -M do");
            let lines = tagged.stop();
            let requests: Vec<_> = lines.iter().filter(|l| l.contains("echo request")).collect();
            assert_eq!(requests.len(), 1, "{lines:#?}");
            for words in seen {
                assert!(requests.iter().all(|l| l.contains(words)), "{words}: {requests:#?}");
            }
            transfer(a, b, b.ip().parse().expect("an address"), bulk() / 8);
            transfer(b, a, a.ip6().parse().expect("an address"), bulk() / 8);
            // Beside the tags, frames without.
            ping(c, &d.ip(), "");
        }
    }
    switch.stop();
}

/// Ports 0 and 3 in VLAN 10, port 2 in VLAN 20, port 1 a trunk of both.
const STAGES: &str = r#"
[[stage]]
name = "tag"
kind = "vlan"
side = "in"
access = { p0 = 10, p2 = 20, p3 = 10 }
trunk = { p1 = [10, 20] }
[[stage]]
name = "sw"
kind = "l2switch"
vlans = true
[[stage]]
name = "untag"
kind = "vlan"
side = "out"
access = { p0 = 10, p2 = 20, p3 = 10 }
trunk = { p1 = [10, 20] }
[[edge]]
from = "rx"
to = "tag"
[[edge]]
from = "tag"
to = "sw"
[[edge]]
from = "sw"
to = "untag"
[[edge]]
from = "untag"
to = "tx"
"#;

fn access_and_trunk_ports(mode: Mode) {
    // This kernel's bridge may know no VLANs.
    let Some(net) = Net::new(4).filter(|_| !is_bridge()) else { return };
    let [a, b, c, d] = &net.stations[..] else { unreachable!() };
    if let Err(why) = tag(&net, b, &[customer(0, 10)]) {
        return skip(&format!("this kernel runs no classifier that tags: {}", why.trim()));
    }
    let (stages, memory) = (STAGES.to_owned(), "buffers = 32768".to_owned());
    let running = Running::start(&net, &Setup { stages, memory, ..Setup::switch(&net, mode) });
    let apart = |x: &Station, y: &Station| {
        let ended = ping_output(x, &y.ip(), "-c 1 -W 0.1");
        assert_ne!(ended.code(), Some(0), "{} reaches {}", x.ip(), y.ip());
    };
    for offloads in [Offloads::Default, Offloads::Off] {
        net.set_offloads(offloads);
        ping(a, &d.ip(), "");
        ping(a, &b.ip(), "-s 1472 -M do");
        transfer(a, b, b.ip().parse().expect("an address"), bulk() / 16);
        transfer(b, d, d.ip6().parse().expect("an address"), bulk() / 16);
        // Not even a question reaches the other VLAN.
        let elsewhere = Sniffer::start(&c.ns, "eth0", "in", "arp");
        [a, b, d].into_iter().for_each(|s| apart(s, c));
        assert_eq!(elsewhere.stop(), [""; 0]);
    }
    // The trunk's station in the other VLAN.
    tag(&net, b, &[customer(0, 20)]).expect("as before");
    // It has just asked for the address in vain, and is not to give up on that.
    b.forget_neighbours();
    until_reached(b, &c.ip());
    transfer(c, b, b.ip6().parse().expect("an address"), bulk() / 16);
    apart(b, a);
    // And in none: a trunk takes no frames without a tag, unless it has a native VLAN.
    tag(&net, b, &[]).expect("as before");
    [a, c, d].into_iter().for_each(|s| apart(b, s));
    running.stop();
}
