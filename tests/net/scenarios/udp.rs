//! Datagrams that are cut up on the way (UDP_SEGMENT, udp(7)), as QUIC servers send them.

use crate::process::{has, skip};
use crate::rig::{Net, Offloads};
use crate::switch::{Mode, Switch, each_mode};
use crate::traffic::{receive_all, socket};

each_mode!(segments_arrive_as_they_were_cut);

/// How often the sender sends.
const SENDS: u64 = 20;
/// Each send is 45 datagrams, the last of them shorter, numbered throughout.
const SENDER: &str = "
import socket, struct, sys, time
s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_UDP, 103, 1200)
for n in range(20):
    parts = [struct.pack('>Q', n * 45 + i).ljust(1200, bytes([i])) for i in range(45)]
    s.sendto(b''.join(parts)[:-300], (sys.argv[1], 7300))
    time.sleep(0.002)
";

fn segments_arrive_as_they_were_cut(mode: Mode) {
    if !has("python3") {
        return skip("python3 is not installed: deploy/setup.sh test");
    }
    let Some(net) = Net::new(2) else { return };
    let switch = Switch::start(&net, mode);
    let [a, b] = &net.stations[..] else { unreachable!() };
    for offloads in [Offloads::Default, Offloads::Off] {
        net.set_offloads(offloads);
        for (at, target) in [("0.0.0.0:7300", b.ip()), ("[::]:7300", b.ip6())] {
            let receiver = socket(&b.ns, at);
            let sent = a.ns.run(&["python3", "-c", SENDER, &target]);
            // A kernel that cannot cut checksums off refuses to cut at all.
            assert!(sent.code() == Some(0), "{}", sent.stderr);
            let mut next = 0;
            for datagram in receive_all(&receiver) {
                let (number, rest) = datagram.split_first_chunk().expect("a number");
                let number = u64::from_be_bytes(*number);
                assert!(number >= next, "{number} after {next}");
                net.miss(number - next);
                next = number + 1;
                let place = number % 45;
                assert_eq!(datagram.len(), if place == 44 { 900 } else { 1200 }, "{number}");
                assert!(rest.iter().all(|b| u64::from(*b) == place), "{number} has other bytes");
            }
            net.miss(SENDS * 45 - next);
        }
    }
    switch.stop();
}
