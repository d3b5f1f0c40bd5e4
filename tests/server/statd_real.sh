#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Beside a real rpc.statd, and bound to another address than its call-backs come
# to: gannetd hears them, and leaves statd its place at rpcbind.
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
command -v rpc.statd >/dev/null || exit 77
mkdir -p /run/one /run/state /run/nfs/sm /run/nfs/sm.bak
printf '\001\000\000\000' >/run/nfs/state
mount --bind /run/nfs /var/lib/nfs || exit 77
ip addr add 192.0.2.1/32 dev lo
rpc.statd --no-notify -p 32765 -o 32766 || exit 77
./gannetd --foreground --rdma off --port 2049 --bind 192.0.2.1 \
	--state-dir /run/state --export '/run/one *(ro)' >/run/log 2>&1 &
server=$!
soon grep -qx ready /run/log || { cat /run/log; exit 1; }

status=0
fail() { echo "$*"; status=1; }
rpcinfo -n 2049 -u 127.0.0.1 100021 4 || fail "call-backs are not heard"
rpcinfo -p 127.0.0.1 | grep -q '100024 .* 32765' || fail "statd lost its place"
grep -q "this machine's status monitor" /run/log || fail "statd was not found"
kill $server
wait $server || status=1
[ $status = 0 ] || cat /run/log
exit $status
