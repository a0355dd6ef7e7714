//! IPv6 from nothing: addresses checked for duplicates, neighbours found, all by multicast.

use serde_json::Value;

use crate::rig::{Net, Shape, Station};
use crate::switch::{Mode, Switch, each_mode};
use crate::traffic::ping;

each_mode!(neighbours_are_found_and_duplicates_noticed);

const SHAPE: Shape = Shape { stations: 3, mtu: 1500, duplicate_detection: true };

/// The addresses of a station with this flag.
fn with_flag(station: &Station, flag: &str) -> usize {
    let shown = station.ns.ask(&["-6", "addr", "show", "dev", "eth0"]);
    let all = shown[0]["addr_info"].as_array().expect("addresses");
    all.iter().filter(|a| a[flag] == true).count()
}

fn link_local(station: &Station) -> String {
    let shown = station.ns.ask(&["-6", "addr", "show", "dev", "eth0", "scope", "link"]);
    // Addresses of another scope are listed too, as empty objects.
    let mut all = shown[0]["addr_info"].as_array().expect("addresses").iter();
    all.find_map(|a| a["local"].as_str()).unwrap_or_else(|| panic!("{shown}")).to_owned()
}

#[track_caller]
fn until_settled(net: &Net) {
    net.until(|| match net.stations.iter().map(|s| with_flag(s, "tentative")).sum() {
        0 => Ok(()),
        n => Err(format!("{n} addresses are tentative")),
    });
}

fn neighbours_are_found_and_duplicates_noticed(mode: Mode) {
    let Some(net) = Net::of(SHAPE) else { return };
    let switch = Switch::start(&net, mode);
    until_settled(&net);
    for (a, b) in net.pairs() {
        assert_eq!(with_flag(a, "dadfailed"), 0);
        ping(a, &format!("{}%eth0", link_local(b)), "-6");
        ping(a, &b.ip6(), "-6");
        let known = a.ns.ask(&["-6", "neigh", "show", &b.ip6()]);
        assert_eq!(known[0]["lladdr"], Value::from(b.mac()), "{known}");
    }
    let [a, b, _] = &net.stations[..] else { unreachable!() };
    b.ns.ip(&format!("addr add {}/64 dev eth0\n", a.ip6()));
    net.until(|| match with_flag(b, "dadfailed") {
        1 => Ok(()),
        _ => Err("the second with an address does not notice the first".to_owned()),
    });
    switch.stop();
}
