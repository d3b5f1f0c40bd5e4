#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gannet-nfs doctor where a server has all its ports, with its port mapper at
# port 111 and its lock manager.
rpcbind=none
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
mkdir -p /run/e /run/state
chmod 700 /run/state
echo data >/run/e/file
serve() {
	./gannetd --foreground --rdma iwarp --state-dir /run/state \
		--log-level warn "$@" \
		--export '/run/e 127.0.0.1(rw,no_root_squash)' &
	server=$!
	soon ./gannet-nfs ls "tcp://127.0.0.1/run/e?mountport=2049" \
		>/run/out 2>&1 || { cat /run/out; exit 1; }
}
status=0
has() {
	grep -qF -e "$1" /run/out && return
	printf 'no "%s" in\n' "$1"
	cat /run/out
	status=1
}
serve
./gannet-nfs doctor --write 127.0.0.1:/run/e >/run/out 2>&1 || status=1
has 'rpcbind      NFS version 3 is at TCP port 2049'
has 'rpcbind      MOUNT version 3 is at TCP port 2049'
has 'rpcbind      the lock manager version 4 is at TCP port 2049'
has 'ports        only calls from ports below 1024 are taken (secure)'
has 'ok    rdma+iwarp   what was written through a Read chunk came back'
has 'ok    rdma+iwarp   5 bytes read through a Write chunk, as before'
has 'ok    locks        the lock manager tests a lock: it would be granted'
has ' us over RDMA: '
has 'Mount with: mount -t nfs -o vers=3,proto=tcp,port=2049'
[ "$(ls -A /run/e)" = file ] || status=1
./gannet-nfs exports 127.0.0.1 >/run/out 2>&1 || status=1
has '/run/e 127.0.0.1'
kill $server
wait $server || status=1

# Nothing at port 111: the ports are told, and there are no locks.
serve --no-rpcbind
./gannet-nfs doctor 127.0.0.1:/run/e >/run/out 2>&1 || status=1
has 'rpcbind      TCP port 111: refused: nothing listens there'
has 'locks        no lock manager was found: mount with nolock'
has ',mountport=2049,mountproto=tcp,nolock 127.0.0.1:/run/e DIR'
kill $server
wait $server || status=1
exit $status
