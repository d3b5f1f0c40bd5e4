#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A server ends when its clients can't be told: its address has gone from the
# machine, or the machine is cut off.  Soon the machine has no trace of their
# connections: when both are there again, a client may come from the same port.
# shellcheck disable=SC2034 # the next file reads it
rpcbind=none
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
command -v ss >/dev/null || exit 77
mkdir -p /run/state

# The other machine, with the client.
unshare -n sleep 300 &
other=$!
there() { nsenter -t $other -n "$@"; }
own=$(readlink /proc/self/ns/net)
is_other() { [ "$(readlink /proc/$other/ns/net)" != "$own" ]; }
soon is_other
ip link add here type veth peer name there netns $other || exit 77
ip addr add 192.0.2.1/24 dev here
ip link set here up
there ip addr add 192.0.2.2/24 dev there
there ip link set there up

fail() { echo "$*"; cat /run/log; exit 1; }
of_server() { ss -Htan '( sport = :2049 or sport = :20049 )'; }
is_without() { [ -z "$(of_server)" ]; }
both() { [ "$(of_server | grep -c ESTAB)" = 2 ]; }

# leaves WHY COMMAND...: what that does leaves no connection behind.
leaves()
{
	local i server client why=$1; shift
	ip addr add 192.0.2.10/24 dev here
	: >/run/log		# that of the server before says "ready", too
	./gannetd --foreground --no-rpcbind --rdma iwarp --bind 192.0.2.10 \
		--state-dir /run/state --export 'mem:/a *(rw)' >/run/log 2>&1 &
	server=$!
	soon grep -qx ready /run/log || fail 'no server'
	there bash -c 'exec 3<>/dev/tcp/192.0.2.10/2049 \
		4<>/dev/tcp/192.0.2.10/20049; sleep 300' &
	client=$!
	soon both || fail "no connections: $(of_server)"
	"$@"
	kill $server
	wait $server || fail 'the server does not end'
	soon_s=15
	soon is_without || fail "15 s after the end, $why: $(of_server)"
	soon_s=120
	kill $client
}
leaves 'without the address' ip addr del 192.0.2.10/24 dev here
leaves 'cut off' there ip link set there down
