//! Linux's own protocols through tap interfaces.

mod rig;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use mem::{Ext, Flags};
use rig::{Bench, Got, Running, isolated, new_namespace, run, segment, sysctl, until};
use wire::checksum::{L4Check, verify_l4};
use wire::{Arp, EtherType, Layers, MacAddr};
use zerocopy::IntoBytes;

const ME: MacAddr = MacAddr::new([2, 0, 0, 0, 9, 2]);

/// Answers ARP requests and pings for 10.9.0.2, as the smallest of hosts.
fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let mut f = frame.to_vec();
    let layers = Layers::parse(&f);
    let from = *f.get(6..)?.first_chunk::<6>()?;
    if layers.ether_type() == EtherType::ARP {
        let arp = Arp::parse(&f[14..]).ok()?;
        (arp.target_ip == [10, 9, 0, 2]).then_some(())?;
        let reply = arp.reply(ME);
        f.truncate(14);
        f.extend_from_slice(reply.as_bytes());
    } else {
        let icmp = layers.icmp_in(&f[..])?;
        (icmp.kind == wire::icmpv4::ECHO_REQUEST).then_some(())?;
        f[34] = 0;
        let (a, b) = (*f[26..].first_chunk::<4>()?, *f[30..].first_chunk::<4>()?);
        f[26..30].copy_from_slice(&b);
        f[30..34].copy_from_slice(&a);
        assert!(wire::checksum::fill_l4(&mut f, &layers));
    }
    f[..6].copy_from_slice(&from);
    f[6..12].copy_from_slice(&ME.bytes());
    Some(f)
}

#[test]
fn ping_is_answered() {
    isolated(|| {
        let bench = Bench::new();
        let mut r = bench.start_with("rw0", "mac = \"02:00:00:00:09:01\"", 1);
        assert_eq!(r.port.info().mac, Some([2, 0, 0, 0, 9, 1]));
        run("ip addr add 10.9.0.1/24 dev rw0");
        let mut ping = Command::new("ping")
            .args(["-c", "5", "-i", "0.05", "-W", "5", "-s", "1400", "10.9.0.2"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut seen = 0;
        until("ping ends", || {
            for got in r.receive(0) {
                if let Some(reply) = answer(&got.bytes) {
                    assert_eq!(r.send(0, &reply), 1);
                    seen += 1;
                }
            }
            ping.try_wait().unwrap().is_some()
        });
        let mut said = String::new();
        ping.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("5 packets transmitted, 5 received, 0% packet loss"), "{said}");
        assert!(seen >= 6, "ARP as well");
        let (rx, tx) = r.stop();
        assert_eq!((tx.packets, tx.drops.total(), rx.drops.total()), (seen, 0, 0));
    });
}

/// Another machine: a thread with a namespace of its own.
struct Host {
    id: i32,
    jobs: std::sync::mpsc::Sender<Box<dyn FnOnce() + Send>>,
}

impl Host {
    fn new() -> Self {
        let (jobs, todo) = std::sync::mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (to, id) = std::sync::mpsc::channel();
        thread::spawn(move || {
            new_namespace();
            to.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            todo.into_iter().for_each(|job| job());
        });
        let path = id.recv().unwrap();
        Self { id: path.file_name().unwrap().to_str().unwrap().parse().unwrap(), jobs }
    }
    /// Runs `f` there; what it gives comes by the channel.
    fn begin<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::sync::mpsc::Receiver<T> {
        let (to, result) = std::sync::mpsc::channel();
        self.jobs.send(Box::new(move || drop(to.send(f())))).unwrap();
        result
    }
    fn run(&self, commands: &'static [&'static str]) {
        self.begin(move || commands.iter().for_each(|c| drop(run(c)))).recv().expect("all commands worked");
    }
}

/// Two machines with the ports `a` here and `b` there between them.
fn two_machines() -> Host {
    for name in ["rwa", "rwb"] {
        sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "0");
    }
    run("ip addr add 10.9.1.1/24 dev rwa");
    run("ip addr add fd09::1/64 dev rwa nodad");
    let there = Host::new();
    run(&format!("ip link set rwb netns {}", there.id));
    there.run(&[
        "sysctl -qw net.ipv6.conf.rwb.disable_ipv6=0",
        "ip link set rwb up",
        "ip addr add 10.9.1.2/24 dev rwb",
        "ip addr add fd09::2/64 dev rwb nodad",
    ]);
    there
}

/// What crossed.
#[derive(Default, Debug)]
struct Crossed {
    tso: u64,
    uso: u64,
    partial: u64,
    longest: usize,
}

/// Carries what one has to the other.
fn carry_from(from: &mut Running<'_>, to: &mut Running<'_>, c: &mut Crossed) {
    while from.rx[0].rx_burst(&mut from.batch) > 0 {
        for p in from.batch.iter_mut() {
            let (flags, len) = (p.flags(), p.total_len());
            c.tso += u64::from(flags.has(Flags::TSO));
            c.uso += u64::from(flags.has(Flags::USO));
            c.partial += u64::from(flags.has(Flags::TX_L4));
            c.longest = c.longest.max(len);
            if flags.has(Flags::TX_L4) {
                let e = p.ext();
                assert_eq!(u16::from(e.l2_len) + u16::from(e.l3_len), e.csum_start, "{e:?}");
                assert!((8..=60).contains(&e.l4_len));
            }
        }
        to.tx[0].tx_burst(&mut from.batch, 0);
        assert!(from.batch.is_empty());
        assert_eq!(to.tx_counts().drops.total(), 0);
    }
}

/// Carries packets between the two until `done`.
fn carry(a: &mut Running<'_>, b: &mut Running<'_>, mut done: impl FnMut() -> bool) -> Crossed {
    let mut c = Crossed::default();
    until("it comes to an end", || {
        carry_from(a, b, &mut c);
        carry_from(b, a, &mut c);
        done()
    });
    c
}

/// What is sent, from a seed.
fn noise(n: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let next = |_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..n).map(next).collect()
}

#[test]
fn tcp_and_udp_cross_uncut_and_with_their_sums_still_to_be_made() {
    isolated(|| {
        let bench = Bench::new();
        let (mut a, mut b) = (bench.start("rwa"), bench.start("rwb"));
        let there = two_machines();
        assert!(b.port.link().up, "moved, and open all the same");
        assert_eq!(b.port.device_counts().rx_delivered, None, "the counts are over there");
        for ip in ["10.9.1.2", "fd09::2"] {
            let ip: IpAddr = ip.parse().unwrap();
            let data = noise(4 << 20);
            let got = there.begin(move || {
                let (mut c, _) = TcpListener::bind((ip, 99)).unwrap().accept().unwrap();
                let mut all = Vec::new();
                c.read_to_end(&mut all).unwrap();
                c.write_all(b"all of it").unwrap();
                all
            });
            let sender = thread::spawn({
                let data = data.clone();
                move || {
                    let mut c = loop {
                        match TcpStream::connect((ip, 99)) {
                            Ok(c) => break c,
                            Err(_) => thread::sleep(Duration::from_millis(5)),
                        }
                    };
                    c.write_all(&data).unwrap();
                    c.shutdown(std::net::Shutdown::Write).unwrap();
                    let mut reply = String::new();
                    c.read_to_string(&mut reply).unwrap();
                    reply
                }
            });
            let crossed = carry(&mut a, &mut b, || sender.is_finished());
            assert_eq!(sender.join().unwrap(), "all of it");
            assert!(got.recv().unwrap() == data, "the same bytes");
            assert!(
                crossed.tso > 10 && crossed.partial > crossed.tso && crossed.longest > 20_000,
                "{crossed:?}"
            );
        }
        for ip in ["10.9.1.2", "fd09::2"] {
            let ip: IpAddr = ip.parse().unwrap();
            let here: IpAddr =
                if ip.is_ipv4() { "10.9.1.1".parse().unwrap() } else { "fd09::1".parse().unwrap() };
            let (ready, bound) = std::sync::mpsc::channel();
            let got = there.begin(move || {
                let s = UdpSocket::bind((ip, 98)).unwrap();
                s.set_read_timeout(Some(rig::PATIENCE)).unwrap();
                ready.send(()).unwrap();
                let mut all = Vec::new();
                while all.len() < 12_500 {
                    let mut datagram = [0; 2000];
                    let n = s.recv(&mut datagram).unwrap();
                    assert!(n == 1000 || n == 500, "{n}");
                    all.extend_from_slice(&datagram[..n]);
                }
                all
            });
            bound.recv().unwrap();
            let data = noise(12_500);
            let s = UdpSocket::bind((here, 0)).unwrap();
            segment(&s, 1000);
            assert_eq!(s.send_to(&data, (ip, 98)).unwrap(), 12_500);
            let mut result = None;
            let crossed = carry(&mut a, &mut b, || {
                result = got.try_recv().ok();
                result.is_some()
            });
            assert!(result.unwrap() == data, "the same bytes");
            assert!(crossed.uso >= 1, "{crossed:?}");
        }
        let sums: Vec<_> = [a.stop(), b.stop()].into_iter().collect();
        assert!(sums.iter().all(|(rx, tx)| rx.drops.total() + tx.drops.total() == 0));
    });
}

/// A UDP frame of this flow.
fn udp(flow: u8, number: u32) -> Vec<u8> {
    let mut f = vec![0xff; 6];
    f.extend([
        2, 0, 0, 0, 9, flow, 8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 2, flow, 10, 9, 2, 200,
    ]);
    f.extend([4, flow, 4, 1, 0, 40, 0, 0]);
    f.extend(number.to_be_bytes());
    f.extend([flow; 28]);
    let sum = wire::checksum::of(&f[14..34]).to_be_bytes();
    f[24..26].copy_from_slice(&sum);
    let layers = Layers::parse(&f);
    assert!(wire::checksum::fill_l4(&mut f, &layers));
    f
}

/// Two taps joined by Linux's bridge.
fn bridged() {
    run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    for name in ["rwa", "rwb"] {
        run(&format!("ip link set {name} master br0"));
    }
    run("ip link set br0 up");
    let forwards = |name: &str| run(&format!("bridge link show dev {name}")).contains("state forwarding");
    until("the bridge forwards", || forwards("rwa") && forwards("rwb"));
}

#[test]
fn tags_sums_and_segments_arrive_as_they_were_sent() {
    isolated(|| {
        let bench = Bench::new();
        let (mut a, mut b) = (bench.start("rwa"), bench.start("rwb"));
        bridged();
        let receive = |b: &mut Running<'_>| {
            let mut got = Vec::new();
            until("a frame crosses the bridge", || {
                got.extend(b.receive(0));
                !got.is_empty()
            });
            assert_eq!(got.len(), 1);
            got.remove(0)
        };
        let plain = udp(1, 7);
        assert_eq!(a.send(0, &plain), 1);
        assert_eq!(
            receive(&mut b),
            Got { bytes: plain.clone(), flags: Flags::default(), ext: Ext::default() }
        );

        // A tag beside the bytes, and a checksum that is still to be made: offsets without and with the tag.
        a.fill(&plain);
        let mut ext = Ext::tagged(0x6007);
        (ext.csum_start, ext.csum_offset) = (34, 6);
        let partial = wire::checksum::pseudo(&plain, &Layers::parse(&plain), true).unwrap().folded();
        let mut p = a.batch.pkt(0).unwrap();
        p.bytes_mut()[40..42].copy_from_slice(&partial.to_be_bytes());
        p.set_ext(ext);
        p.set_flags(Flags::VLAN.with(Flags::TX_L4));
        assert_eq!(a.tx[0].tx_burst(&mut a.batch, 0), 1);
        let got = receive(&mut b);
        assert_eq!(got.bytes[..18], [&plain[..12], &[0x81, 0, 0x60, 7, 8, 0]].concat());
        let mut bytes = got.bytes.clone();
        if got.flags == Flags::TX_L4 {
            assert_eq!(
                (got.ext.csum_start, got.ext.csum_offset, got.ext.l2_len, got.ext.l4_len),
                (38, 6, 18, 8)
            );
            assert!(wire::checksum::fill_l4(&mut bytes, &Layers::parse(&got.bytes)));
        }
        assert_eq!(verify_l4(&bytes, &Layers::parse(&bytes)), L4Check::Good);
        assert_eq!([&bytes[..12], &bytes[16..]].concat(), plain);

        // What no header says right is refused by us, or by the kernel; and counted.
        for (flags, change) in [
            (Flags::TX_L4, (|e: &mut Ext| e.csum_start = 2000) as fn(&mut Ext)),
            (Flags::TSO, |e| (e.csum_start, e.csum_offset, e.mss) = (34, 16, 100)),
            (Flags::TX_L3, |_| {}),
        ] {
            a.fill(&plain);
            let mut ext = Ext::default();
            change(&mut ext);
            let mut p = a.batch.pkt(0).unwrap();
            p.set_ext(ext);
            p.set_flags(flags);
            a.tx[0].tx_burst(&mut a.batch, 0);
            assert!(a.batch.is_empty());
        }
        assert_eq!(a.send(0, &[1; 13]), 0);
        let (_, tx) = a.stop();
        assert_eq!(tx.packets + tx.drops.total(), 6);
        assert!(tx.drops.total() >= 3, "{tx:?}");
        b.stop();
    });
}

#[test]
fn every_queue_sends_and_receives_and_flows_keep_their_order() {
    isolated(|| {
        let bench = Bench::new();
        let (mut a, mut b) = (bench.start_with("rwa", "", 4), bench.start("rwb"));
        bridged();
        // Each flow is sent by a queue of its own, from where the kernel learns by which its packets are to come.
        for flow in 0..4 {
            for n in 0..50 {
                assert_eq!(a.send(flow.into(), &udp(flow, n)), 1);
            }
        }
        let mut got = Vec::new();
        until("all cross", || {
            got.extend(b.receive(0));
            got.len() == 200
        });
        let mut turned = Vec::new();
        for flow in 0..4u8 {
            let of: Vec<_> = got.iter().filter(|g| g.bytes[11] == flow).map(|g| g.bytes.clone()).collect();
            assert_eq!(of, (0..50).map(|n| udp(flow, n)).collect::<Vec<_>>(), "in order");
            // Back: addresses and ports changed over, so that it is the same flow.
            for mut f in of {
                f[..6].copy_from_slice(&[2, 0, 0, 0, 9, flow]);
                f[6..12].copy_from_slice(&[2, 0, 0, 0, 9, 200]);
                let (ip, ports) = (f[26..34].to_vec(), f[34..38].to_vec());
                f[26..34].copy_from_slice(&[&ip[4..], &ip[..4]].concat());
                f[34..38].copy_from_slice(&[&ports[2..], &ports[..2]].concat());
                turned.push(f);
            }
        }
        turned.iter().for_each(|f| assert_eq!(b.send(0, f), 1));
        let mut back: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 4];
        until("all come back", || {
            for (i, q) in back.iter_mut().enumerate() {
                q.extend(a.receive(i).into_iter().map(|g| g.bytes));
            }
            back.iter().map(Vec::len).sum::<usize>() == 200
        });
        assert_eq!(back.iter().map(Vec::len).collect::<Vec<_>>(), [50; 4], "each flow by its own queue");
        for (flow, of) in back.iter().enumerate() {
            assert_eq!(of[..], turned[50 * flow..50 * (flow + 1)], "in order");
        }
        let (rx, tx) = a.stop();
        assert_eq!((rx.packets, tx.packets), (200, 200));
        b.stop();
    });
}

#[test]
fn a_packet_that_finds_no_buffer_waits_and_the_kernel_counts_what_it_loses() {
    isolated(|| {
        let (here, there) = (Bench::new(), Bench::new());
        let (mut a, mut b) = (here.start("rwa"), there.start("rwb"));
        bridged();
        let all: Vec<_> = std::iter::from_fn(|| there.env.local.take(there.env.pool().unwrap())).collect();
        assert_eq!(all.len(), rig::BUFFERS);
        for n in 0..2000 {
            assert_eq!(a.send(0, &udp(1, n)), 1);
            assert_eq!(b.rx[0].rx_burst(&mut b.batch), 0);
        }
        there.env.local.put_bulk(all);
        let mut got = Vec::new();
        until("all are received or counted", || {
            got.extend(b.receive(0));
            got.len() as u64 + b.port.device_counts().rx_missed.unwrap() == 2000
        });
        // The first came, then as many as the kernel's queue holds, in order.
        assert!(got.len() >= 500 && got.len() < 2000, "{}", got.len());
        let numbers = got.iter().map(|g| u32::from_be_bytes(*g.bytes[42..].first_chunk().unwrap()));
        assert!(numbers.eq(0..got.len() as u32), "and those that came are the first");
        a.stop();
        let (rx, _) = b.stop();
        assert_eq!((rx.packets, rx.drops.total()), (got.len() as u64, 0));
    });
}

#[test]
fn a_packet_that_waits_for_a_buffer_when_receiving_ends_is_counted() {
    isolated(|| {
        let (here, there) = (Bench::new(), Bench::new());
        let (mut a, mut b) = (here.start("rwa"), there.start("rwb"));
        bridged();
        let all: Vec<_> = std::iter::from_fn(|| there.env.local.take(there.env.pool().unwrap())).collect();
        assert_eq!(a.send(0, &udp(1, 1)), 1);
        until("the kernel has given it", || {
            b.rx[0].rx_burst(&mut b.batch);
            b.port.device_counts().rx_delivered == Some(1)
        });
        b.port.rx_off().unwrap();
        b.rx[0].rx_burst(&mut b.batch);
        there.env.local.put_bulk(all);
        let (rx, _) = b.stop();
        assert_eq!((rx.packets, rx.drops.of(meter::DropReason::NoBuffer)), (0, 1));
        a.stop();
    });
}
