//! What does not run, and what is said about it. None of it depends on the run mode.

use crate::process::{Ended, has, skip};
use crate::rig::{Net, Shape, is_bridge, promiscuity};
use crate::switch::{Mode, Running, Setup, binary, write};
use crate::traffic::ping;

const MODE: Mode = Mode::RunToCompletion;

/// Runs `setup` in the middle, which must fail with `code`. `by` are the words of a command that runs it.
#[track_caller]
fn refused(net: &Net, setup: &Setup, code: i32, by: &[&str]) -> Ended {
    let (file, binary) = (write(&net.dir, "wrong", &setup.text(&net.dir)), binary());
    let ended = net.middle.run(&[by, &[&binary, "run", "--json", &file]].concat()).expect(code);
    assert_eq!(ended.stdout, "", "nothing ran");
    assert!(!net.dir.join("wrong.sock").exists(), "nothing is left");
    ended
}

#[track_caller]
fn says(ended: &Ended, all: &[&str]) {
    for words in all {
        assert!(ended.stderr.contains(words), "{words:?} is not said: {}", ended.stderr);
    }
}

#[test]
fn an_interface_that_is_not_there() {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let mut setup = Setup::switch(&net, MODE);
    setup.ports[1].1 = "driver = \"packet\"\ninterface = \"p7\"".to_owned();
    let ended = refused(&net, &setup, 2, &[]);
    // Where it stands, what is wrong, and what there is.
    says(&ended, &["wrong.toml:", "interface", "\"p7\"", "p0", "p1"]);
    assert_eq!(promiscuity(&net.middle, "p0"), 0, "the other one is as it was");
}

#[test]
fn an_interface_that_is_no_port() {
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    net.middle.ip("tuntap add tun0 mode tun\n");
    let mut setup = Setup::switch(&net, MODE);
    setup.ports[1].1 = "driver = \"packet\"\ninterface = \"tun0\"".to_owned();
    says(&refused(&net, &setup, 2, &[]), &["\"tun0\"", "Ethernet"]);
    // Two ports on one would each see what the other sends.
    setup.ports[1].1 = setup.ports[0].1.clone();
    says(&refused(&net, &setup, 2, &[]), &["\"p0\"", "another port"]);
}

#[test]
fn without_the_right_to_packet_sockets() {
    if !has("setpriv") {
        return skip("setpriv is not installed");
    }
    let Some(net) = Net::new(2).filter(|_| !is_bridge()) else { return };
    let by = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"];
    let ended = refused(&net, &Setup::switch(&net, MODE), 1, &by);
    says(&ended, &["CAP_NET_RAW", "p0"]);
}

#[test]
fn frames_that_do_not_fit_the_buffers() {
    let shape = Shape { stations: 2, mtu: 60_000, duplicate_detection: false };
    let Some(net) = Net::of(shape).filter(|_| !is_bridge()) else { return };
    let setup = Setup { memory: "frame_room = 256".to_owned(), ..Setup::switch(&net, MODE) };
    let ended = refused(&net, &setup, 2, &[]);
    says(&ended, &["MTU", "60000", "frame_room"]);
}

#[test]
fn what_another_instance_has() {
    let Some(net) = Net::new(3).filter(|_| !is_bridge()) else { return };
    let [a, b, _] = &net.stations[..] else { unreachable!() };
    let two = |ports: [usize; 2]| {
        let mut setup = Setup::switch(&net, MODE);
        setup.ports = ports.iter().map(|&i| setup.ports[i].clone()).collect();
        setup
    };
    let mut first = Running::start(&net, &two([0, 1]));
    let pid = first.id().to_string();
    // An interface that the first has.
    let second = two([1, 2]);
    says(&refused(&net, &second, 2, &[]), &["\"p1\"", "taken", &pid]);
    // Its control socket: free interfaces, the same name.
    let mut third = two([1, 2]);
    third.ports.remove(0);
    third.telemetry = third.telemetry.replace("NAME", "sw");
    says(&refused(&net, &third, 1, &[]), &["sw.sock", &pid]);
    // Its address for metrics.
    let mut fourth = third.clone();
    fourth.telemetry = fourth.telemetry.replace("sw.sock", "other.sock");
    says(&refused(&net, &fourth, 1, &[]), &["127.0.0.1:9464"]);
    // The first never noticed.
    first.assert_runs();
    ping(a, &b.ip(), "");
    first.stop();
}
