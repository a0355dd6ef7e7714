#!/usr/bin/env bash
# Makes the captures beside this: real stacks talk in two namespaces, tcpdump writes down what it sees. Needs root, ip, tcpdump,
# ethtool, ping, python3; and Wireshark's tools for other formats. Run as `make.sh FOLDER`; what comes out differs each time in stamps, ports and sequence numbers.
set -euo pipefail
to=$(realpath "${1:?usage: make.sh FOLDER}")
a=rw-$$-captures-a b=rw-$$-captures-b m=rw-$$-captures-m
end() {
    [[ -z ${tagger:-} ]] || kill "$tagger" 2>/dev/null || true
    for ns in "$a" "$b" "$m"; do ip netns del "$ns" 2>/dev/null || true; done
}
trap end EXIT
in_a() { ip netns exec "$a" "$@"; }
in_b() { ip netns exec "$b" "$@"; }

ip netns add "$a"
ip netns add "$b"
# No segments longer than a frame, and whole checksums: what would be on a cable.
ip link add va netns "$a" type veth peer name vb netns "$b"
for side in "$a va 1" "$b vb 2"; do
    read -r ns dev n <<<"$side"
    ip -n "$ns" link set lo up
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.dad_transmits=0
    ip -n "$ns" link set dev "$dev" address "02:00:00:00:00:0$n"
    ip netns exec "$ns" ethtool -K "$dev" tx off gso off tso off gro off >/dev/null 2>&1 || true
    ip -n "$ns" link set dev "$dev" up
    ip -n "$ns" address add "10.77.0.$n/24" dev "$dev"
    ip -n "$ns" address add "fd77::$n/64" dev "$dev" nodad
done
# Between a second pair of interfaces a third namespace tags all frames for VLAN 42 on a cable of its own. The kernel takes the tag
# out again as a packet socket receives (PACKET_AUXDATA), so that the way out of the cable is plain forwarding.
ip netns add "$m"
ip link add wa netns "$a" type veth peer name ma netns "$m"
ip link add wb netns "$b" type veth peer name mb netns "$m"
ip link add cable-a netns "$m" type veth peer name cable-b netns "$m"
for dev in ma mb cable-a cable-b; do
    ip netns exec "$m" sysctl -qw "net.ipv6.conf.$dev.disable_ipv6=1"
    ip -n "$m" link set dev "$dev" promisc on up
done
for side in "$a wa 1" "$b wb 2"; do
    read -r ns dev n <<<"$side"
    ip netns exec "$ns" ethtool -K "$dev" tx off gso off tso off gro off >/dev/null 2>&1 || true
    ip netns exec "$ns" sysctl -qw "net.ipv6.conf.$dev.disable_ipv6=1"
    ip -n "$ns" link set dev "$dev" address "02:00:00:00:42:0$n"
    ip -n "$ns" link set dev "$dev" up
    ip -n "$ns" address add "10.78.0.$n/24" dev "$dev"
done
ip netns exec "$m" python3 -c '
import select, socket
def end(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind((name, 0)); return s
ma, mb, ca, cb = map(end, ("ma", "mb", "cable-a", "cable-b"))
tag = lambda f: f[:12] + b"\x81\x00\x60\x2a" + f[12:] # priority 3, VLAN 42
way = {ma: (ca, tag), cb: (mb, bytes), mb: (cb, tag), ca: (ma, bytes)}
while True:
    for s in select.select(list(way), [], [])[0]:
        f, (_, _, kind, _, _) = s.recvfrom(65536)
        if kind != socket.PACKET_OUTGOING: way[s][0].send(way[s][1](f))' &
tagger=$!
sleep 2.5 # the addresses that the kernel makes up settle

# record NAME FILTER COMMAND...: what is seen of COMMAND in the second namespace; of VLANs, on their cable.
record() {
    local name=$1 filter=$2 where=("$b" vb)
    shift 2
    [[ $name != vlan ]] || where=("$m" cable-b)
    # shellcheck disable=SC2086 # a filter is several words
    ip netns exec "${where[0]}" tcpdump -i "${where[1]}" -U --immediate-mode --time-stamp-precision=nano -w "$to/$name.pcap" $filter 2>/dev/null &
    local dump=$!
    sleep 0.7
    "$@" >/dev/null
    sleep 0.4
    kill -INT "$dump"
    wait "$dump" || true
    echo "$name: $(stat -c %s "$to/$name.pcap") bytes"
}

forget() { ip -n "$a" neigh flush all; ip -n "$b" neigh flush all; }
forget
record arp-ping "arp or icmp" in_a ping -c 3 -i 0.05 -s 100 10.77.0.2
forget
record ipv6-neighbours "icmp6" in_a ping -6 -c 2 -i 0.05 fd77::2
forget
record vlan "vlan 42" in_a ping -c 2 -i 0.05 10.78.0.2

tcp() {
    in_b python3 -c '
import socket
s = socket.create_server(("10.77.0.2", 7777))
c, _ = s.accept()
got = b""
while len(got) < 6000: got += c.recv(65536)
c.sendall(b"thank you\n"); c.close()' &
    sleep 0.3
    in_a python3 -c '
import socket
c = socket.create_connection(("10.77.0.2", 7777))
c.sendall(bytes(i * 7 & 255 for i in range(6000)))
print(c.recv(100)); c.close()'
    wait $!
}
record tcp-data "tcp port 7777" tcp

# A question and its answer as a resolver sends them, and an answer of 3000 bytes in fragments.
udp() {
    in_b python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("10.77.0.2", 53)); s.settimeout(5)
for size in (45, 3000):
    q, who = s.recvfrom(512)
    s.sendto((q[:2] + b"\x81\x80" + q[4:] + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1").ljust(size, b"."), who)' &
    sleep 0.3
    in_a python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("10.77.0.2", 53)); s.settimeout(5)
for n in (1, 2):
    s.send(bytes([0x12, n, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + b"\7example\4test\0\0\1\0\1")
    print(len(s.recv(4096)))'
    wait $!
}
record dns-udp "udp port 53 or (ip[6:2] & 0x3fff != 0)" udp

# The same in other formats, by Wireshark's tools (Debian: wireshark-common).
command -v editcap >/dev/null || { echo "without editcap no pcapng files" >&2; exit 0; }
for name in arp-ping ipv6-neighbours vlan tcp-data dns-udp; do
    editcap -F pcapng "$to/$name.pcap" "$to/$name.pcapng"
done
editcap -F pcap "$to/arp-ping.pcap" "$to/arp-ping-us.pcap"
mergecap -F pcapng -I none -w "$to/two-interfaces.pcapng" "$to/arp-ping-us.pcap" "$to/vlan.pcap"
