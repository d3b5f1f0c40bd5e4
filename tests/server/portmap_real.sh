#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A machine without an rpcbind, where gannetd tells its ports itself: rpcinfo(8)
# and showmount(8) find them.
rpcbind=none
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
command -v showmount >/dev/null || exit 77
mkdir -p /run/one/child /run/state
mount -t tmpfs none /run/one/child || exit 77
./gannetd --foreground --rdma iwarp --state-dir /run/state --log-level info \
	--export '/run/one *(ro,crossmnt)' >/run/log 2>&1 &
server=$!
soon grep -qx ready /run/log || { cat /run/log; exit 1; }

status=0
fail() { echo "$*"; status=1; }
rpcinfo -p 127.0.0.1 | awk 'NR > 1 { print $1, $2, $3, $4 }' >/run/list
for line in '100000 2 tcp 111' '100000 4 udp 111' '100003 3 tcp 2049' \
	'100005 3 udp 2049' '100024 1 tcp 2049' '100024 1 udp 2049'; do
	grep -qx "$line" /run/list || fail "not listed: $line"
done
! grep '^100003 3 udp' /run/list || fail "NFS over UDP is listed"
for net in tcp udp; do
	rpcinfo -T $net 127.0.0.1 mountd 3 || fail "mountd is not found by $net"
	rpcinfo -T $net 127.0.0.1 100000 4 || fail "no port mapper over $net"
done
rpcinfo -T tcp6 ::1 nfs 3 || fail "nfs is not found over IPv6"
rpcinfo -s 127.0.0.1 | grep -q '100003 .*rdma' || fail "no rdma port"
[ "$(showmount --no-headers -e 127.0.0.1)" = '/run/one *' ] ||
	fail "showmount finds no exports"
./gannet-nfs ls -l tcp://127.0.0.1/run/one | grep -q '^drwx.* child$' ||
	fail "gannet-nfs does not see what is mounted below"
# As from another machine: it tells that by the address.
ip addr add 192.0.2.1/32 dev lo
ip route replace table local local 192.0.2.1 dev lo src 127.0.0.1
for at in 127.0.0.1:,nolock 192.0.2.1:; do
	./gannet-nfs mount-check "tcp://${at%%:*}/run/one" >/run/check ||
		fail "no mount-check"
	grep -q "mountproto=tcp${at#*:} ${at%%:*}:/run/one DIR" /run/check ||
		fail "at ${at%%:*}: $(tail -n 1 /run/check)"
done
kill $server
wait $server || status=1
grep -q 'answering port queries at port 111' /run/log ||
	fail "it does not say that it answers at port 111"

# Only after it has the port.
setpriv --bounding-set=-net_bind_service --inh-caps=-net_bind_service \
	./gannetd --foreground --port 4049 --rdma off --state-dir /run/state \
	--log-level info --export '/run/one *' >/run/without 2>&1 &
server=$!
soon grep -qx ready /run/without || fail "no start without port 111"
kill $server
wait $server || status=1
grep -q "port 111 can't be used for TCP" /run/without || fail "it has port 111"
! grep 'answering port queries' /run/without || status=1
[ $status = 0 ] || cat /run/log /run/list /run/without
exit $status
