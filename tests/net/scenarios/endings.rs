//! The ends of a run: under load, and by force.

use std::time::Duration;

use crate::process::{has, skip};
use crate::rig::{Net, is_bridge, packets, promiscuity};
use crate::switch::{Mode, Running, Setup, each_mode};
use crate::traffic::{iperf_server, ping};

each_mode!(stopped_under_load killed);

fn stopped_under_load(mode: Mode) {
    if !has("iperf3") {
        return skip("iperf3 is not installed: deploy/setup.sh test");
    }
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let running = Running::start(&net, &Setup::switch(&net, mode));
    let [a, b] = &net.stations[..] else { unreachable!() };
    assert_eq!([0, 1].map(|i| promiscuity(&net.middle, &format!("p{i}"))), [1, 1]);
    let server = iperf_server(b);
    let client = a.ns.start(&["iperf3", "-c", &b.ip(), "-t", "60", "--bidir", "-P", "2"]);
    net.until(|| match packets(&net.middle, "p0", "rx") {
        5000.. => Ok(()),
        n => Err(format!("{n} packets")),
    });
    // Drained within 2 s; the rest is for a machine that has a lot else to do.
    let status = running.stop_within(Duration::from_secs(8));
    assert!(status["conservation"]["received"].as_u64() > Some(5000), "{}", status["conservation"]);
    assert_eq!([0, 1].map(|i| promiscuity(&net.middle, &format!("p{i}"))), [0, 0], "as it was");
    drop((client, server));
}

fn killed(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let [a, b] = &net.stations[..] else { unreachable!() };
    for _ in 0..2 {
        let running = Running::start(&net, &Setup::switch(&net, mode));
        ping(a, &b.ip(), "");
        running.signal("KILL");
        assert_eq!(running.end().code(), None);
        assert_eq!([0, 1].map(|i| promiscuity(&net.middle, &format!("p{i}"))), [0, 0], "as it was");
    }
    // At once, with the same socket, the same address and the same interfaces.
    let mut running = Running::start(&net, &Setup::switch(&net, mode));
    ping(a, &b.ip(), "");
    // The kernel's counts are of all three.
    (0..2).for_each(|i| running.shares(i));
    running.stop();
    assert!(!net.dir.join("sw.sock").exists(), "a run that ends well takes its socket away");
}
