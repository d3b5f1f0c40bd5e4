#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs test_rpcbind against a real rpcbind, which then leads gannet-nfs to
# gannetd's MOUNT service.
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
GANNET_RPCBIND=1 tests/server/test_rpcbind || exit 1

# shellcheck source=tests/server/own_gannetd.sh
. "$(dirname "$0")/own_gannetd.sh"
status=0
echo here >"$here/export/file"
own_gannetd --export "$here/export 127.0.0.1(ro,insecure) ::1(ro,insecure)"
for host in 127.0.0.1 '[::1]'; do
	listed=$(./gannet-nfs ls "rdma+iwarp://$host:$iwarp$here/export")
	[ "$listed" = file ] ||
		{ echo "rpcbind does not lead to MOUNT at $host"; status=1; }
done
# All that is registered, as program-version-netid: MOUNT over UDP too, NFS not.
there=$(rpcinfo | awk '$1 ~ /^10000[35]$/ { print $1 "-" $2 "-" $3 }' |
	sort | tr '\n' ' ')
case $there in
*100003-[0-9]-udp*) echo "NFS is registered over UDP: $there"; status=1 ;;
esac
for what in 100003-3-tcp 100003-3-tcp6 100003-3-rdma 100005-3-tcp \
		100005-3-udp 100005-3-udp6 100005-1-udp; do
	case " $there" in
	*" $what "*) ;;
	*) echo "$what is not registered: $there"; status=1 ;;
	esac
done
# Another server of the machine leaves it alone, and says so.
registered() { rpcinfo | awk '$1 ~ /^1000/ { print $1, $2, $3, $4 }' | sort; }
registered >/run/before
mkdir -p /run/two
./gannetd --foreground --rdma off --port 0 --state-dir /run/state2 \
	--export '/run/two *' >/run/two.log 2>&1 &
two=$!
is_ready() { grep -q '^ready$' /run/two.log; }
soon is_ready || { cat /run/two.log; exit 1; }
registered | diff /run/before - ||
	{ echo "another server changed what is registered"; status=1; }
grep -q 'mount 3 over tcp: rpcbind has another server at .* stays' \
	/run/two.log || { echo "it says nothing of that"; status=1; }
kill $two
wait $two
registered | diff /run/before - ||
	{ echo "its end changed what is registered"; status=1; }
# A drain takes all of it back, and its end registers the same again.
./gannetctl --socket "$here/state/control" drain >/dev/null || status=1
! rpcinfo | awk '$1 ~ /^10000[35]$/' | grep . ||
	{ echo "registered while drained"; status=1; }
./gannetctl --socket "$here/state/control" resume >/dev/null || status=1
again=$(rpcinfo | awk '$1 ~ /^10000[35]$/ { print $1 "-" $2 "-" $3 }' |
	sort | tr '\n' ' ')
[ "$again" = "$there" ] ||
	{ echo "registered again is $again, not $there"; status=1; }
kill $server
wait $server
server=''
[ $status = 0 ] || exit $status

# By loopback, when its socket cannot be seen.
rm /run/rpcbind.sock
GANNET_RPCBIND=1 tests/server/test_rpcbind
