//! Tags of stations pass as they are.

use crate::process::skip;
use crate::rig::{Net, Offloads, bulk};
use crate::switch::{Mode, Switch, each_mode};
use crate::tags::{Tag, customer, service, tag};
use crate::traffic::{Sniffer, ping, transfer};

each_mode!(tags_pass_untouched);

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
            transfer(a, b, b.ip().parse().expect("an address"), bulk() / 4);
            transfer(b, a, a.ip6().parse().expect("an address"), bulk() / 4);
            // Beside the tags, frames without.
            ping(c, &d.ip(), "");
        }
    }
    switch.stop();
}
