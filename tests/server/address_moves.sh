#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A server ends after its address has gone from the machine, so clients can't
# be told.  Soon the machine has no trace of their connections: should the
# address come back, a client may come from the same port again.
# shellcheck disable=SC2034 # the next file reads it
rpcbind=none
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
command -v ss >/dev/null || exit 77
ip addr add 192.0.2.10/32 dev lo
mkdir -p /run/state
./gannetd --foreground --no-rpcbind --rdma iwarp --bind 192.0.2.10 \
	--state-dir /run/state --export 'mem:/a *(rw)' >/run/log 2>&1 &
server=$!
soon grep -qx ready /run/log || { cat /run/log; exit 1; }
exec 3<>/dev/tcp/192.0.2.10/2049 4<>/dev/tcp/192.0.2.10/20049
of_server() { ss -Htan '( sport = :2049 or sport = :20049 )'; }
both() { [ "$(of_server | grep -c ESTAB)" = 2 ]; }
soon both || { of_server; exit 1; }

ip addr del 192.0.2.10/32 dev lo
kill $server
wait $server || { cat /run/log; exit 1; }
for ((i = 0; i < 150; i++)); do
	[ -n "$(of_server)" ] || exit 0
	sleep 0.1
done
echo "15 s after the end:"
of_server
exit 1
