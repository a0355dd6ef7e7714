//! Interfaces that go down, away, or belong to somebody else; rights that are missing; the end.

mod rig;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use meter::DropReason;
use port::PortConfig;
use rig::{Bench, exists, isolated, output, run, until};

/// What a child process of a test is to do.
const CHILD: &str = "RINGWRIGHT_TAP_TEST_CHILD";

/// A broadcast that Linux receives and forgets.
const FRAME: [u8; 60] = {
    let mut f = [0xff; 60];
    (f[6], f[12], f[13]) = (2, 0x88, 0xb5); // an experimental type (IEEE 802)
    f
};

#[test]
fn a_port_has_what_its_keys_say_and_leaves_nothing() {
    isolated(|| {
        let bench = Bench::new();
        let keys = "mtu = 9000\nmac = \"02:00:00:00:00:77\"\nup = false";
        let mut r = bench.start_with("tap-x", keys, 1);
        assert_eq!((r.port.info().max_frame, r.port.info().mac), (9018, Some([2, 0, 0, 0, 0, 0x77])));
        let shown = run("ip link show tap-x");
        assert!(
            shown.contains("mtu 9000") && shown.contains("02:00:00:00:00:77") && !shown.contains("UP"),
            "{shown}"
        );
        assert!(!r.port.link().up);
        run("ip link set tap-x up");
        assert!(r.port.link().up);
        r.stop();
        assert!(!exists("tap-x"));
        // The kernel chooses numbers.
        let first = bench.open("").unwrap();
        let second = bench.open("").unwrap();
        assert!(exists("rw0") && exists("rw1"));
        assert_ne!(first.info().mac, second.info().mac);
        drop((first, second));
        assert!(!exists("rw0") && !exists("rw1"));
    });
}

#[test]
fn frames_that_no_buffers_hold_are_refused() {
    isolated(|| {
        let small = Bench::with_room(256);
        let e = small.refused("interface = \"tap-x\"\nmtu = 60000");
        assert!(e.contains("frames of 60018 bytes (MTU 60000) do not fit 64 buffers of"), "{e}");
        assert!(e.contains("raise [memory] frame_room, or set a smaller mtu"), "{e}");
        assert!(!exists("tap-x"));
        let mut port = small.open("interface = \"tap-x\"\nmtu = 1400").unwrap();
        assert_eq!(port.info().max_frame, 1518);
        assert!(
            port.start(&PortConfig { queues: 17, ..PortConfig::new(0) })
                .err()
                .unwrap()
                .to_string()
                .contains("17 queues")
        );
    });
}

#[test]
fn an_interface_that_is_down_drops_and_recovers() {
    isolated(|| {
        let bench = Bench::new();
        let mut r = bench.start("tap-x");
        assert!(r.port.link().up);
        assert_eq!(r.send(0, &FRAME), 1);
        run("ip link set tap-x down");
        assert!(!r.port.link().up);
        for _ in 0..10 {
            r.fill(&FRAME);
        }
        assert_eq!((r.tx[0].tx_burst(&mut r.batch, 0), r.batch.len()), (0, 0));
        assert_eq!(r.receive(0), []);
        run("ip link set tap-x up");
        assert!(r.port.link().up);
        assert_eq!(r.send(0, &FRAME), 1);
        // It may be renamed as well.
        run("ip link set tap-x down");
        run("ip link set tap-x name tap-y");
        run("ip link set tap-y up");
        assert!(r.port.link().up);
        assert_eq!(r.send(0, &FRAME), 1);
        let (_, tx) = r.stop();
        assert_eq!((tx.packets, tx.bytes, tx.drops.of(DropReason::LinkDown)), (3, 180, 10));
    });
}

#[test]
fn an_interface_that_is_deleted_is_made_again() {
    isolated(|| {
        let bench = Bench::new();
        let mut r = bench.start_with("tap-x", "mtu = 1234", 2);
        let mac = r.port.info().mac;
        assert_eq!(r.send(1, &FRAME), 1);
        assert_eq!(r.port.device_counts().tx_sent, Some(1));
        run("ip link del tap-x");
        assert_eq!(r.send(0, &FRAME), 0, "nobody has looked yet");
        assert_eq!((r.receive(0), r.receive(1)), (vec![], vec![]));
        assert!(r.port.link().up);
        assert!(run("ip link show tap-x").contains("mtu 1234"));
        assert_eq!(r.port.info().mac, mac);
        let shown = run("ip link show tap-x");
        let text: Vec<_> = mac.unwrap().iter().map(|b| format!("{b:02x}")).collect();
        assert!(shown.contains(&text.join(":")), "{shown}");
        for q in 0..2 {
            assert_eq!(r.send(q, &FRAME), 1);
        }
        run("ip addr add 10.9.3.1/24 dev tap-x");
        let _ = output("ping -c 1 -W 0.2 10.9.3.2");
        let got = [r.receive(0), r.receive(1)].concat();
        assert!(!got.is_empty(), "ARP comes by the new files");
        assert_eq!(r.port.device_counts(), port::DeviceCounts::default(), "unknown, not wrong");
        // While it cannot be made again the port is down.
        run("ip link del tap-x");
        run("ip link add tap-x type bridge");
        assert!(!r.port.link().up);
        assert!(!r.port.link().up);
        assert_eq!(r.send(0, &FRAME), 0);
        run("ip link del tap-x");
        assert!(r.port.link().up);
        assert_eq!(r.send(0, &FRAME), 1);
        let (_, tx) = r.stop();
        assert_eq!((tx.packets, tx.drops.of(DropReason::LinkDown)), (4, 2));
    });
}

#[test]
fn an_interface_of_others_is_refused() {
    isolated(|| {
        let bench = Bench::new();
        let first = bench.open("interface = \"tap-x\"").unwrap();
        let e = bench.refused("interface = \"tap-x\"");
        assert_eq!(e, "tap: tap-x is in use by another program; choose another interface");
        drop(first);
        run("ip link add tap-b type bridge");
        let e = bench.refused("interface = \"tap-b\"");
        assert!(e.contains("tap-b exists, and is no tap interface"), "{e}");
        // Made beforehand: with several queues, and with one.
        run("ip tuntap add dev tap-m mode tap multi_queue");
        bench.start_with("tap-m", "", 3).stop();
        assert!(exists("tap-m"), "it was there before, and stays");
        run("ip tuntap add dev tap-s mode tap");
        bench.start("tap-s").stop();
        let mut one = bench.open("interface = \"tap-s\"").unwrap();
        let e = one.start(&PortConfig { queues: 2, ..PortConfig::new(0) }).err().unwrap().to_string();
        assert!(e.contains("tap-s was made with one queue; make it anew with: ip tuntap add dev tap-s mode tap multi_queue"), "{e}");
        drop(one);
        assert!(exists("tap-s"));
        bench.start_with("tap-p", "persist = true", 1).stop();
        assert!(exists("tap-p"), "it was told to stay");
        bench.start_with("tap-p", "", 1).stop();
    });
}

#[test]
fn an_interface_that_another_program_has_open_is_refused() {
    isolated(|| {
        let bench = Bench::new();
        for flags in ["0x5002", "0x5102"] {
            // IFF_TAP, IFF_NO_PI, IFF_VNET_HDR, and IFF_MULTI_QUEUE.
            let program = format!(
                "import fcntl,struct,sys,time\\nf=open('/dev/net/tun','r+b',buffering=0)\\nfcntl.ioctl(f,0x400454ca,struct.pack('16sH14x',b'tap-o',{flags}))\\nprint('ready',flush=True)\\ntime.sleep(60)"
            );
            let program = program.replace("\\n", "\n");
            let Ok(mut child) = Command::new("python3").args(["-c", &program]).stdout(Stdio::piped()).spawn()
            else {
                eprintln!("SKIPPED: no python3");
                return;
            };
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let e = bench.refused("interface = \"tap-o\"");
            let _ = child.kill();
            child.wait().unwrap();
            assert_eq!(line, "ready\n");
            assert_eq!(e, "tap: tap-o is in use by another program; choose another interface");
        }
    });
}

/// Runs this test again in a process of its own, by way of `command`; what it said.
fn again(test: &str, command: &[&str]) -> Option<String> {
    let me = std::env::current_exe().unwrap();
    let rest = [me.as_os_str(), OsStr::new("--exact"), OsStr::new(test), OsStr::new("--nocapture")];
    let out = Command::new(command[0]).args(&command[1..]).args(rest).env(CHILD, "1").output().ok()?;
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    out.status.success().then_some(said)
}

#[test]
fn without_the_right_to_make_interfaces_the_error_names_it() {
    if std::env::var_os(CHILD).is_some() {
        let e = Bench::new().refused("interface = \"tap-x\"");
        let want = "making tap-x needs CAP_NET_ADMIN: run as root, or have it made beforehand: ip tuntap add dev tap-x mode tap multi_queue user USER";
        assert_eq!(e, format!("tap: {want}"));
        return println!("it was refused");
    }
    isolated(|| {
        let command = ["setpriv", "--inh-caps=-net_admin", "--bounding-set=-net_admin"];
        match again("without_the_right_to_make_interfaces_the_error_names_it", &command) {
            Some(said) => assert!(said.contains("it was refused"), "{said}"),
            None if output("setpriv true").status.success() => panic!("the child failed"),
            None => eprintln!("SKIPPED: no setpriv"),
        }
    });
}

#[test]
fn without_the_device_the_error_says_where_it_comes_from() {
    if std::env::var_os(CHILD).is_some() {
        let e = Bench::new().refused("interface = \"tap-x\"");
        assert!(e.contains("there is no /dev/net/tun: load the kernel's tun module (modprobe tun)"), "{e}");
        return println!("it was refused");
    }
    isolated(|| {
        // A mount namespace of its own, in which the folder is empty.
        let script = "mount -t tmpfs none /dev/net && exec \"$@\"";
        let said = again(
            "without_the_device_the_error_says_where_it_comes_from",
            &["unshare", "-m", "sh", "-c", script, "sh"],
        );
        match said {
            Some(said) => assert!(said.contains("it was refused"), "{said}"),
            None => panic!("the child failed"),
        }
    });
}

#[test]
fn a_process_that_is_killed_leaves_nothing_and_the_next_starts() {
    if std::env::var_os(CHILD).is_some() {
        let bench = Bench::new();
        let r = bench.start_with("tap-k", "", 2);
        println!("it is open");
        loop {
            std::thread::park();
            let _ = &r;
        }
    }
    isolated(|| {
        let me = std::env::current_exe().unwrap();
        let args = ["--exact", "a_process_that_is_killed_leaves_nothing_and_the_next_starts", "--nocapture"];
        let mut child = Command::new(me).args(args).env(CHILD, "1").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|l| l.contains("it is open"));
        let (there, refused) = (exists("tap-k"), Bench::new().open("interface = \"tap-k\"").is_err());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ready && there && refused);
        until("the kernel takes it back", || !exists("tap-k"));
        Bench::new().start("tap-k").stop();
    });
}
