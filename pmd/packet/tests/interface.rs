//! Interfaces that are missing, down, taken, deleted, renamed; rights that are missing; what is put back.

mod rig;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use mem::Flags;
use meter::DropReason;
use rig::peer::Peer;
use rig::{Bench, cable, config, frame, ip, isolated, refused, wait_for};

/// The environment variable that has this program hold a port, and the keys of the port.
const HOLD: &str = "RINGWRIGHT_TEST_HOLDS";

/// Not a test by itself: another process, which holds a port until it is killed.
#[test]
fn holds_a_port_when_told_to() {
    let Ok(keys) = std::env::var(HOLD) else { return };
    let b = Bench::new(&keys);
    println!("holds it");
    std::thread::sleep(std::time::Duration::from_secs(60));
    drop(b);
}

/// Starts another process with a port in the thread's namespace.
fn another(keys: &str) -> Child {
    let me = std::env::current_exe().unwrap();
    let mut child = Command::new(me)
        .args(["--exact", "holds_a_port_when_told_to", "--nocapture", "--test-threads=1"])
        .env(HOLD, keys)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.lines().any(|l| l.unwrap().ends_with("holds it")));
    child
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    isolated(|| {
        cable("eth7", "far");
        let e = refused("interface = \"eth8\"");
        assert!(
            e.starts_with(
                "packet: interface: there is no interface \"eth8\"; did you mean eth7? (there are lo, "
            ),
            "{e}"
        );
        assert!(e.contains("eth7") && e.contains("far"), "{e}");
        assert!(
            refused("interface = \"a name that no interface can have\"").contains("there is no interface")
        );
    });
}

#[test]
fn an_interface_without_ethernet_frames_is_refused() {
    isolated(|| {
        ip("tuntap add name tun7 mode tun");
        assert!(refused("interface = \"tun7\"").contains("has no Ethernet frames"));
    });
}

#[test]
fn frames_that_fit_no_chain_are_refused_with_what_would_do() {
    isolated(|| {
        cable("va", "vb");
        ip("link set va mtu 65535");
        let small = rig::memory_of(512, 256);
        let e = rig::open(&small, "interface = \"va\"").err().unwrap().to_string();
        assert!(e.contains("MTU of 65535") && e.contains("raise [memory] frame_room to 1025"), "{e}");
        // A block must hold one.
        let memory = rig::memory();
        let mut port = rig::open(&memory, "interface = \"va\"\nblock = \"64K\"").unwrap();
        let e = port.start(&config(1)).err().unwrap().to_string();
        assert!(
            e.starts_with("packet: block: a block of 65536 bytes does not hold the longest frame"),
            "{e}"
        );
    });
}

#[test]
fn without_the_right_to_open_sockets_the_error_names_it() {
    isolated(|| {
        cable("va", "vb");
        const CAP_NET_RAW: u32 = 13;
        rig::without_capability(CAP_NET_RAW);
        let e = refused("interface = \"va\"");
        assert!(e.contains("CAP_NET_RAW") && e.contains("setcap cap_net_raw,cap_net_admin+ep"), "{e}");
    });
}

#[test]
fn a_port_waits_for_an_interface_that_is_down() {
    isolated(|| {
        ip("link add name va type veth peer name vb");
        ip("link set vb up");
        let mut b = Bench::with(rig::memory(), "interface = \"va\"", &config(2));
        assert!(!b.port.link().up);
        b.put(&frame(60, 1));
        assert_eq!((b.send(), b.batch.len()), (0, 0));
        assert_eq!(b.counts_tx().drops.of(DropReason::LinkDown), 1);
        ip("link set va up");
        wait_for("the link", || b.port.link().up);
        let peer = Peer::new("vb");
        peer.send(&frame(60, 2));
        assert_eq!(b.receive(1), [frame(60, 2)]);
        b.put(&frame(60, 3));
        assert_eq!(b.send(), 1);
        assert_eq!(peer.receive(), frame(60, 3));
        b.stop();
    });
}

#[test]
fn a_port_goes_on_after_its_interface_was_down_or_without_carrier() {
    isolated(|| {
        cable("va", "vb");
        let peer = Peer::new("vb");
        let mut b = Bench::with(rig::memory(), "interface = \"va\"", &config(2));
        for (round, (down, up)) in
            [("link set va down", "link set va up"), ("link set vb down", "link set vb up")]
                .into_iter()
                .enumerate()
        {
            let round = round as u64;
            peer.send(&frame(60, round));
            ip(down);
            // The kernel says so a moment later.
            wait_for(down, || !b.port.link().up);
            assert_eq!(b.receive(1), [frame(60, round)], "what came in before");
            (0..3).for_each(|i| b.put(&frame(60, i)));
            assert_eq!((b.send(), b.batch.len()), (0, 0));
            assert_eq!(b.counts_tx().drops.of(DropReason::LinkDown), 3 * (round + 1));
            ip(up);
            wait_for("the link", || b.port.link().up);
            peer.receive_within(std::time::Duration::from_millis(1));
            peer.send(&frame(70, round));
            assert_eq!(b.receive(1), [frame(70, round)]);
            b.put(&frame(80, round));
            assert_eq!(b.send(), 1);
            assert_eq!(peer.receive(), frame(80, round));
        }
        assert!(b.port.fault().is_none());
        let (device, _) = b.stop();
        assert_eq!(device.rx_good, Some(4));
    });
}

#[test]
fn a_port_goes_on_with_an_interface_that_was_deleted_and_made_again() {
    isolated(|| {
        cable("va", "vb");
        let mut b = Bench::with(rig::memory(), "interface = \"va\"\nretire = \"50ms\"", &config(2));
        for round in 0..3 {
            let peer = Peer::new("vb");
            // The second is in a block that is not full when the interface goes.
            (0..2).for_each(|i| peer.send(&frame(60, i)));
            ip("link del va");
            assert!(!b.port.link().up);
            b.put(&frame(60, 1));
            assert_eq!((b.send(), b.batch.len()), (0, 0));
            assert_eq!(b.counts_tx().drops.of(DropReason::LinkDown), round + 1);
            cable("va", "vb");
            wait_for("the link", || b.port.link().up);
            assert_eq!(rig::promiscuity("va"), 1);
            let peer = Peer::new("vb");
            peer.send(&frame(61, round));
            let got = b.receive(3);
            assert_eq!(got, [frame(60, 0), frame(60, 1), frame(61, round)], "old ones first");
            b.put(&frame(62, round));
            assert_eq!(b.send(), 1);
            assert_eq!(peer.receive(), frame(62, round));
        }
        assert!(b.port.fault().is_none());
        // Sockets that are done with are let go of at the next look.
        b.tx.iter_mut().for_each(|q| q.flush(0, true));
        b.port.link();
        let sockets = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap();
        assert_eq!(sockets.lines().count() - 1, 2 * 3, "{sockets}");
        let (device, _) = b.stop();
        assert_eq!(device.rx_good, Some(9));
    });
}

#[test]
fn a_port_stays_with_an_interface_that_is_renamed() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        ip("link set va name vz");
        assert!(b.port.link().up);
        peer.send(&frame(60, 1));
        assert_eq!(b.receive(1), [frame(60, 1)]);
        b.stop();
    });
}

#[test]
fn an_mtu_that_changes_is_kept_to() {
    isolated(|| {
        cable("va", "vb");
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\""));
        ip("link set va mtu 3000");
        ip("link set vb mtu 3000");
        b.port.link();
        b.put(&frame(3014, 1));
        b.put(&frame(3019, 1));
        assert_eq!(b.send(), 1);
        assert_eq!(peer.receive(), frame(3014, 1));
        ip("link set va mtu 1000");
        b.port.link();
        b.put(&frame(1018, 1));
        b.put(&frame(1019, 1));
        assert_eq!(b.send(), 1);
        assert_eq!(b.counts_tx().drops.of(DropReason::TooLong), 2);
        b.stop();
    });
}

#[test]
fn an_interface_has_one_ringwright_unless_it_is_shared() {
    isolated(|| {
        cable("va", "vb");
        let mut other = another("interface = \"va\"");
        let e = refused("interface = \"va\"");
        let want = format!("\"va\" is taken by another Ringwright, process {}", other.id());
        assert!(e.contains(&want) && e.contains("shared = true"), "{e}");
        assert_eq!(rig::promiscuity("va"), 1);
        let (peer, mut b) = (Peer::new("vb"), Bench::new("interface = \"va\"\nshared = true"));
        assert_eq!(rig::promiscuity("va"), 2);
        peer.send(&frame(60, 1));
        assert_eq!(b.receive(1), [frame(60, 1)], "both get every frame");
        b.stop();
        // What a process had is free as soon as it is gone, however it went.
        other.kill().unwrap();
        other.wait().unwrap();
        wait_for("promiscuous mode put back", || rig::promiscuity("va") == 0);
        let b = Bench::new("interface = \"va\"");
        assert!(refused("interface = \"va\"").contains("taken by another port of this process"));
        b.stop();
        Bench::new("interface = \"va\"").stop();
        assert_eq!(rig::promiscuity("va"), 0);
    });
}

#[test]
fn the_same_interface_number_in_another_namespace_is_another_interface() {
    isolated(|| {
        cable("va", "vb");
        let b = Bench::new("interface = \"va\"");
        let host = rig::Host::new();
        host.run(|| {
            cable("va", "vb");
            Bench::new("interface = \"va\"").stop();
        });
        b.stop();
    });
}

#[test]
fn the_loopback_interface_is_one_too() {
    isolated(|| {
        ip("link set lo up");
        let mut b = Bench::new("interface = \"lo\"");
        b.put(&frame(60, 1));
        assert_eq!(b.send(), 1);
        assert_eq!(b.receive(1), [frame(60, 1)]);
        // A sum that is left to a device that has none to put in.
        b.put(&frame(100, 2));
        b.batch.pkt(0).unwrap().set_flags(Flags::L4_GOOD);
        assert_eq!(b.send(), 1);
        assert_eq!(b.receive(1).len(), 1);
        b.stop();
    });
}

#[test]
fn all_interfaces_are_listed_with_what_they_are() {
    isolated(|| {
        cable("va", "vb");
        ip("link set va address 02:00:00:00:00:77 mtu 1400");
        ip("link set vb down");
        ip("link add name br7 type bridge");
        ip("tuntap add name tun7 mode tun");
        let all = ringwright_packet::interfaces().unwrap();
        let of = |name: &str| all.iter().find(|i| i.name == name).unwrap();
        let va = of("va");
        assert_eq!((va.mac, va.mtu, va.up, va.running), (Some([2, 0, 0, 0, 0, 0x77]), 1400, true, false));
        assert_eq!((va.driver.as_deref(), of("br7").driver.as_deref()), (Some("veth"), Some("bridge")));
        assert_eq!((of("vb").up, of("tun7").mac), (false, None));
        assert_eq!((of("lo").mtu, of("lo").driver.as_deref()), (65536, None));
        assert!(all.is_sorted_by_key(|i| i.index));
    });
}
