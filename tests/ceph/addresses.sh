#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The example of etc/addresses, in the cluster that CEPH_CONF names: two servers
# by its files, each at an address of this machine, and one name for both.  What
# mounts the name while the first server is dead comes to the other.
set -u
top=$(readlink -f "${srcdir:-$(dirname "$0")/../..}")
[ "${1-}" = --inside ] || exec unshare --map-root-user --mount "$0" --inside

tmp=$(mktemp -d) || exit 1
pids=()
finish()
{
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
	wait
	rm -rf "$tmp"
}
trap finish EXIT
die() { echo "# $*"; cat "$tmp"/*.log; exit 1; }
# await COMMAND...: half a minute.
await()
{
	for _ in {1..300}; do
		"$@" 2>/dev/null && return
		sleep 0.1
	done
	die "not so after 30 s: $*"
}

# start NAME ADDRESS: a server by the example's files, whose addresses are
# another site's; the test may not have root's directories and ports.
start()
{
	sed "s,192\\.0\\.2\\.11,$2,; s,/etc/gannet/,$tmp/,
		/^\\[exports\\]/a backend-dir = $PWD/modules/ceph" \
		"$top/etc/addresses/gannet.conf" > "$tmp/$1.conf"
	./gannetd --foreground --config "$tmp/$1.conf" --rdma off \
		--port 21049 --no-rpcbind --state-dir "$tmp/$1.state" \
		--control "$tmp/$1.control" \
		> "$tmp/$1" 2> "$tmp/$1.log" &
	pids+=($!)
	await grep -qx ready "$tmp/$1"
}
# by NAME COMMAND FILE [FROM]: gannet-nfs at one of the names of the zone.
by()
{
	./gannet-nfs "$2" ${4:+"$4"} \
		"tcp://$1:21049/$3?mountport=21049"
}

# A directory that the cluster has, for who comes from no port of root's.
sed 's,192\.0\.2\.0/24,127.0.0.0/8,; s,/projects,/,
	s/(rw)/(rw,insecure,no_root_squash)/' \
	"$top/etc/addresses/exports" > "$tmp/exports"
# The zone's names, as a resolver would tell them.
{
	echo '127.0.0.1 localhost'
	awk '$3 == "IN" { sub(/192\.0\.2\./, "127.0.0.", $5); print $5, $1 }' \
		"$top/etc/addresses/nfs.zone"
} > "$tmp/hosts"
mount --bind "$tmp/hosts" /etc/hosts || die 'no names of our own'

start a 127.0.0.11
start b 127.0.0.12
echo data > "$tmp/data"
by nfs-a put file "$tmp/data" && [ "$(by nfs-b cat file)" = data ] ||
	die 'the servers have one tree'
# What the first one has open is not to be had for a minute after its death.
by nfs-b put other "$tmp/data" || die 'the other server is written to'
kill -9 "${pids[0]}"
{ wait "${pids[0]}"; } 2> /dev/null
[ "$(by nfs cat other 2> "$tmp/cat.log")" = data ] ||
	die 'the name leads to the other server'
echo '# one name led to the server that was left'
