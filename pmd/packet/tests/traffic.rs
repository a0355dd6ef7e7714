//! Real protocol stacks on both sides, with all that they leave to devices: `host - va [ port, port ] vb - host`.

mod rig;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use mem::Flags;
use rig::bpf::Tagging;
use rig::{Bench, Host, cable, config, ip, isolated, run};

/// Two hosts, and a port before each.
struct Line {
    hosts: [Host; 2],
    ends: [Bench; 2],
    seen: Seen,
}

/// What passed, whichever way.
#[derive(Debug, Default)]
struct Seen {
    packets: usize,
    longest: usize,
    unfinished: usize,
    tcp_segments: usize,
    udp_segments: usize,
    tagged: usize,
}

impl Line {
    fn new(keys: &str) -> Self {
        let hosts = [Host::new(), Host::new()];
        cable("va", "ha");
        cable("vb", "hb");
        for (i, (host, name)) in hosts.iter().zip(["ha", "hb"]).enumerate() {
            host.take(name);
            host.run(move || {
                ip("link set lo up");
                std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "0").unwrap();
                ip(&format!("link set {name} up"));
                ip(&format!("addr add 10.0.0.{}/24 dev {name}", i + 1));
                ip(&format!("addr add fd00::{}/64 dev {name} nodad", i + 1));
            });
        }
        let a = Bench::with(rig::memory(), &format!("interface = \"va\"\n{keys}"), &config(1));
        let b = a.beside(&format!("interface = \"vb\"\n{keys}"), &config(1));
        Self { hosts, ends: [a, b], seen: Seen::default() }
    }

    /// Forwards until `done` gives something.
    fn forward_until<T>(&mut self, mut done: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let [a, b] = &mut self.ends;
            let moved = self.seen.forward(a, b) + self.seen.forward(b, a);
            if moved == 0 {
                if let Some(result) = done() {
                    return result;
                }
                assert!(Instant::now() < end, "no end to it: {:?}", self.seen);
                std::thread::yield_now();
            }
        }
    }

    /// Sends `bytes` from one host to the other over TCP, and checks what arrives.
    fn tcp(&mut self, address: &str, bytes: usize) {
        let to: IpAddr = address.parse().unwrap();
        let pattern = |i: usize| (i % 251) as u8;
        let listener = self.hosts[1].run(move || TcpListener::bind((to, 0)).unwrap());
        let port = listener.local_addr().unwrap().port();
        let received = self.hosts[1].begin(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        let sent = self.hosts[0].begin(move || {
            let mut stream = TcpStream::connect((to, port)).unwrap();
            let data: Vec<u8> = (0..bytes).map(pattern).collect();
            stream.write_all(&data).unwrap();
        });
        let all = self.forward_until(|| received.try_recv().ok());
        sent.recv().unwrap();
        assert!(all.len() == bytes && all.iter().enumerate().all(|(i, &b)| b == pattern(i)), "as sent");
        self.settle();
    }

    /// Lets what the protocols still have to say pass.
    fn settle(&mut self) {
        let end = Instant::now() + Duration::from_millis(50);
        self.forward_until(|| (Instant::now() > end).then_some(()));
    }

    /// Ends both ports: nothing was lost.
    fn stop(self) -> Seen {
        let [a, mut b] = self.ends;
        for end in [&a, &b] {
            assert_eq!(end.counts_rx().drops.total() + end.counts_tx().drops.total(), 0);
        }
        b.port.rx_off().unwrap();
        b.poll();
        drop(b);
        a.stop();
        self.seen
    }
}

impl Seen {
    fn forward(&mut self, from: &mut Bench, to: &mut Bench) -> usize {
        let n = from.rx[0].rx_burst(&mut from.batch);
        for p in from.batch.iter_mut() {
            let has = |f| usize::from(p.flags().has(f));
            self.packets += 1;
            self.longest = self.longest.max(p.total_len());
            self.unfinished += has(Flags::TX_L4);
            self.tcp_segments += has(Flags::TSO);
            self.udp_segments += has(Flags::USO);
            self.tagged += usize::from(p.bytes()[12..14] == [0x81, 0]);
        }
        let end = Instant::now() + Duration::from_secs(5);
        while !from.batch.is_empty() {
            to.tx[0].tx_burst(&mut from.batch, hw::cycles());
            assert!(Instant::now() < end, "the other side takes nothing");
        }
        n
    }
}

#[test]
fn tcp_passes_with_segmentation_and_checksums_left_to_devices() {
    isolated(|| {
        let mut line = Line::new("");
        line.tcp("10.0.0.2", 10 << 20);
        line.tcp("fd00::2", 10 << 20);
        let seen = line.stop();
        assert!(seen.tcp_segments > 100 && seen.longest > 20_000, "{seen:?}");
        assert!(seen.unfinished > seen.tcp_segments, "{seen:?}");
    });
}

#[test]
fn the_kernel_can_do_what_the_device_cannot() {
    isolated(|| {
        let mut line = Line::new("");
        // Now it cuts up and sums what we send, and the hosts check every sum.
        run("ethtool", "-K va tx off tso off gso off");
        run("ethtool", "-K vb tx off tso off gso off");
        line.tcp("10.0.0.2", 4 << 20);
        line.tcp("fd00::2", 4 << 20);
        let bad = line.hosts[1].run(|| rig::output("nstat", "-az TcpInCsumErrors"));
        assert_eq!(bad.split_whitespace().last(), Some("0.0"), "{bad}");
        let seen = line.stop();
        assert!(seen.tcp_segments > 50, "{seen:?}");
    });
}

#[test]
fn tcp_passes_when_hosts_leave_nothing_to_devices() {
    isolated(|| {
        let mut line = Line::new("");
        for (host, name) in line.hosts.iter().zip(["ha", "hb"]) {
            host.run(move || run("ethtool", &format!("-K {name} tx off rx off tso off gso off gro off")));
        }
        line.tcp("10.0.0.2", 4 << 20);
        let seen = line.stop();
        assert_eq!((seen.unfinished, seen.longest), (0, 1514));
    });
}

#[test]
fn tagged_tcp_passes_with_segmentation_left_to_devices() {
    isolated(|| {
        let mut line = Line::new("");
        let _tagging: Vec<_> = line
            .hosts
            .iter()
            .zip(["ha", "hb"])
            .map(|(host, name)| host.run(move || Tagging::new(name, 5)))
            .collect();
        line.settle();
        line.seen = Seen::default();
        line.tcp("10.0.0.2", 8 << 20);
        run("ethtool", "-K va tx off tso off gso off");
        run("ethtool", "-K vb tx off tso off gso off");
        line.tcp("fd00::2", 2 << 20);
        let seen = line.stop();
        assert_eq!(seen.tagged, seen.packets);
        assert!(seen.tcp_segments > 50 && seen.longest > 20_000, "{seen:?}");
    });
}

#[test]
fn datagrams_pass_whole_cut_up_and_as_fragments() {
    isolated(|| {
        let mut line = Line::new("");
        for finish in [false, true] {
            if finish {
                run("ethtool", "-K va tx off tso off gso off");
                run("ethtool", "-K vb tx off tso off gso off");
            }
            let receiver = line.hosts[1].run(|| UdpSocket::bind("10.0.0.2:9000").unwrap());
            receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let received = line.hosts[1].begin(move || {
                let mut buffer = vec![0; 1 << 16];
                (0..42).map(|_| receiver.recv(&mut buffer).map(|n| buffer[..n].to_vec())).collect::<Vec<_>>()
            });
            let sent = line.hosts[0].begin(|| {
                let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
                socket.connect("10.0.0.2:9000").unwrap();
                socket.send(&[1; 100]).unwrap();
                socket.send(&[2; 5000]).unwrap();
                rig::cut_up(&socket, 1000);
                socket.send(&[3; 40_000]).unwrap();
            });
            let got = line.forward_until(|| received.try_recv().ok());
            sent.recv().unwrap();
            let got: Vec<_> =
                got.into_iter().map(|d| d.map(|d| (d.len(), d[0]))).collect::<Result<_, _>>().unwrap();
            assert_eq!(got[..2], [(100, 1), (5000, 2)]);
            assert_eq!(got[2..], [(1000, 3); 40]);
            line.settle();
        }
        let seen = line.stop();
        assert_eq!(seen.udp_segments, 2, "{seen:?}");
    });
}

#[test]
fn jumbo_frames_pass() {
    isolated(|| {
        let mut line = Line::new("block = \"256K\"");
        ip("link set va mtu 9000");
        ip("link set vb mtu 9000");
        line.hosts[0].run(|| ip("link set ha mtu 9000"));
        line.hosts[1].run(|| ip("link set hb mtu 9000"));
        for end in &mut line.ends {
            assert!(end.port.link().up);
        }
        let ping = |host: &Host| host.begin(|| rig::output("ping", "-c 3 -i 0.05 -W 2 -s 8000 10.0.0.2"));
        let answer = ping(&line.hosts[0]);
        let text = line.forward_until(|| answer.try_recv().ok());
        assert!(text.contains("3 received"), "{text}");
        assert!(line.seen.longest >= 8042, "{:?}", line.seen);
        line.tcp("10.0.0.2", 4 << 20);
        line.stop();
    });
}
