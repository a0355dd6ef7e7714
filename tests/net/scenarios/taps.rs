//! Devices of the kernel's: what is written to one, the kernel receives; what the kernel sends, comes in.

use std::path::Path;
use std::time::Duration;

use super::files::{bytes, frames, group, has_order};
use crate::rig::{Net, is_bridge};
use crate::switch::{Mode, Running, Setup, each_mode};
use crate::traffic::{Sniffer, flow_while, ping};

each_mode!(a_file_played_into_a_device a_device_beside_wires);

fn a_file_played_into_a_device(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    for name in ["tcp-data", "vlan", "dns-udp"] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name).with_extension("pcap");
        let mut setup = Setup::new(mode);
        // Long enough after the device is there for tcpdump to be there too.
        let gate = net.dir.join("gate.pcap");
        let _ = std::fs::remove_file(&gate);
        assert!(std::process::Command::new("mkfifo").arg(&gate).status().is_ok_and(|s| s.success()));
        setup.ports.push(("file".to_owned(), format!("driver = \"pcap\"\nread = {gate:?}")));
        setup.ports.push(("tap".to_owned(), "driver = \"tap\"\ninterface = \"tap0\"".to_owned()));
        setup.stages = "[[stage]]\nname = \"f\"\nkind = \"forward\"\n".to_owned();
        let running = Running::start(&net, &setup);
        let sniffer = Sniffer::with(&net.middle, "tap0", "in", "", &["-xx", "-s", "4000"]);
        std::fs::copy(&file, &gate).expect("it is read");
        let mut was = bytes(&frames(&file));
        net.until(|| match running.status()["ports"][1]["tx"]["packets"].as_u64() {
            Some(n) if n == was.len() as u64 => Ok(()),
            n => Err(format!("{n:?} of {}", was.len())),
        });
        let mut is = bytes(&group(sniffer.stop()));
        if !has_order(mode, &file) {
            was.sort();
            is.sort();
        }
        assert_eq!(is, was, "{name}");
        running.stop();
    }
}

/// The kernel of the middle is a station by itself, at a device.
fn a_device_beside_wires(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let mut setup = Setup::switch(&net, mode);
    setup.ports.push(("tap".to_owned(), "driver = \"tap\"\ninterface = \"tap0\"".to_owned()));
    // Who has the device's address is answered at the device alone, not at every interface of the same kernel.
    net.middle.sysctl("ipv4/conf/all/arp_ignore", "1");
    let running = Running::start(&net, &setup);
    net.middle.ip("addr add 10.77.0.9/24 dev tap0\n");
    let [a, b] = &net.stations[..] else { unreachable!() };
    ping(a, "10.77.0.9", "");
    ping(b, "10.77.0.9", "-s 5000");
    let (sent, arrived, ()) = flow_while(a, b, Duration::from_micros(500), || ping(a, "10.77.0.9", ""));
    arrived.assert_whole(&net, sent);
    running.stop();
}
