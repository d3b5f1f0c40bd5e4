#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What showmount(8) shows of gannetd, through a real rpcbind.
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
command -v showmount >/dev/null || exit 77
mkdir -p /run/one /run/two /run/three /run/state
chmod 700 /run/state
echo '192.0.2.1 /run/one' >/run/state/rmtab
./gannetd --foreground --rdma off --port 0 --state-dir /run/state \
	--log-level warn --export '/run/one 127.0.0.0/8(rw) 192.0.2.1(ro)' \
	--export '/run/two *(ro)' --export '/run/three 192.0.2.1(rw) *(ro)' &
server=$!
exports() { showmount -e 127.0.0.1 >/run/exports 2>/run/err; }
soon exports || { cat /run/err; exit 1; }

status=0
expect() {
	[ "$2" = "$3" ] && return
	printf '%s:\n%s\nexpected:\n%s\n' "$1" "$2" "$3"
	status=1
}
expect 'showmount -e' "$(tail -n +2 /run/exports | tr -s ' ')" \
	'/run/one 192.0.2.1,127.0.0.0/8
/run/two *
/run/three (everyone)'
expect 'showmount -a' "$(showmount --no-headers -a 127.0.0.1)" \
	'192.0.2.1:/run/one'
expect 'showmount -d' "$(showmount --no-headers -d 127.0.0.1)" '/run/one'
expect 'showmount' "$(showmount --no-headers 127.0.0.1)" '192.0.2.1'
kill $server
wait $server || status=1
exit $status
