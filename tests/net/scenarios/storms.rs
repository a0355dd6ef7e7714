//! A loop on the wires: the switch has no spanning tree, so every broadcast goes round for ever.

use std::time::Duration;

use crate::rig::{Net, is_bridge};
use crate::switch::{Mode, Running, Setup, each_mode};
use crate::traffic::{ping_output, until_reached};

each_mode!(a_loop_is_survived);

fn a_loop_is_survived(mode: Mode) {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    net.middle.ip("link add l0 type veth peer name l1\nlink set l0 up\nlink set l1 up\n");
    let mut setup = Setup::switch(&net, mode);
    for name in ["l0", "l1"] {
        setup.ports.push((name.to_owned(), format!("driver = \"packet\"\ninterface = \"{name}\"")));
    }
    let running = Running::start(&net, &setup);
    let [a, b] = &net.stations[..] else { unreachable!() };
    // Who has this address? The question goes round, and nothing else may get through.
    let _ = ping_output(a, "10.77.0.99", "-c 1 -W 0.3");
    net.until(|| match running.status()["ports"][2]["rx"]["packets"].as_u64() {
        Some(1000..) => Ok(()),
        n => Err(format!("{n:?} frames went round")),
    });
    // Whoever breaks the loop has his network back.
    net.middle.ip("link set l0 down\n");
    until_reached(a, &b.ip());
    net.middle.ip("link set l0 up\n");
    let _ = ping_output(a, "10.77.0.99", "-c 1 -W 0.3");
    running.stop_within(Duration::from_secs(8));
}
