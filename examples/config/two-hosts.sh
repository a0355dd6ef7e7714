#!/usr/bin/env bash
# Two hosts in namespaces of their own, each on one end of a wire; the other ends, rw-a and rw-b, are for a switch.
#
#   two-hosts.sh up      make them: host rw-host-a has 10.77.0.1 and fd77::1, host rw-host-b 10.77.0.2 and fd77::2
#   two-hosts.sh down    take them away again
#   two-hosts.sh ping    ping from one to the other
set -euo pipefail

hosts=(a b)
case ${1:-} in
up)
    for i in "${!hosts[@]}"; do
        h=${hosts[$i]}
        ip netns add "rw-host-$h"
        ip link add "rw-$h" type veth peer name eth0 netns "rw-host-$h"
        ip link set "rw-$h" up
        ip -n "rw-host-$h" link set lo up
        ip -n "rw-host-$h" link set eth0 up
        ip -n "rw-host-$h" addr add "10.77.0.$((i + 1))/24" dev eth0
        ip -n "rw-host-$h" addr add "fd77::$((i + 1))/64" dev eth0 nodad
    done
    ;;
down)
    for h in "${hosts[@]}"; do
        ip netns del "rw-host-$h" 2>/dev/null || true
        ip link del "rw-$h" 2>/dev/null || true
    done
    ;;
ping) exec ip netns exec rw-host-a ping -c 3 10.77.0.2 ;;
*)
    sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
