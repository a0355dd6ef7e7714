//! Bulk transfers: every byte arrives as it was sent, whether kernels leave cutting and summing to devices or not.

use std::net::IpAddr;

use serde_json::Value;

use crate::process::{has, skip};
use crate::rig::{Net, Offloads, Shape, bulk};
use crate::switch::{Mode, Switch, each_mode};
use crate::traffic::{iperf, transfer};

each_mode!(whole_bytes large_frames measured);

fn whole_bytes(mode: Mode) {
    let Some(net) = Net::new(2) else { return };
    let switch = Switch::start(&net, mode);
    both_families(&net, &[Offloads::Default, Offloads::Off]);
    switch.stop();
}

fn large_frames(mode: Mode) {
    let shape = Shape { stations: 2, mtu: 9000, duplicate_detection: false };
    let Some(net) = Net::of(shape) else { return };
    let switch = Switch::start(&net, mode);
    both_families(&net, &[Offloads::Off]);
    switch.stop();
}

#[track_caller]
fn both_families(net: &Net, ways: &[Offloads]) {
    let [a, b] = &net.stations[..] else { unreachable!() };
    let address = |s: String| s.parse::<IpAddr>().expect("an address");
    for &offloads in ways {
        net.set_offloads(offloads);
        // One each way, so that either end sends with either family in turn.
        transfer(a, b, address(b.ip()), bulk());
        transfer(b, a, address(a.ip6()), bulk());
    }
}

fn measured(mode: Mode) {
    if !has("iperf3") {
        return skip("iperf3 is not installed: deploy/setup.sh test");
    }
    let Some(net) = Net::new(2) else { return };
    let switch = Switch::start(&net, mode);
    let [a, b] = &net.stations[..] else { unreachable!() };
    let report = iperf(a, b, "-t 1 --bidir");
    for way in ["sum_received", "sum_received_bidir_reverse"] {
        let bytes = report["end"][way]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 1 << 20, "{way}: {}", report["end"]);
    }
    // More than some machines carry: what is lost is lost where it is counted.
    let report = iperf(a, b, "-u -b 300M -l 1200 -t 1 --bidir");
    let packets = |v: &Value| v["packets"].as_u64().unwrap_or(0);
    assert!(packets(&report["end"]["sum"]) > 1000, "{}", report["end"]);
    switch.stop();
}
