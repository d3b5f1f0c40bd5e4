#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two gannetds export one CephFS: each sees what the other did; one that is
# killed loses nothing that it promised, and comes back at once; a metadata
# server that is killed loses nothing either; a server that the cluster has shut
# out finds its way back.  Runs in a build's directory; CEPH_CONF is set, and
# its directory is that of tests/ceph/cluster.
set -u
top=${srcdir:-$(dirname "$0")/../..}
cluster=$(dirname "$CEPH_CONF")
tmp=$(mktemp -d)
declare -A pid port
status=0
trap 'kill ${pid[@]} 2>/dev/null; rm -rf "$tmp"' EXIT

ok() { echo "ok - $*"; }
not_ok() { echo "not ok - $*"; status=1; }
# check WHAT COMMAND...
check()
{
	local what=$1; shift
	if "$@" > "$tmp/out" 2>&1; then
		ok "$what"
	else
		not_ok "$what"
		tail -n 5 "$tmp/out"
		tail -n 5 "$tmp"/*.log
	fi
}

# await SECONDS COMMAND...
await()
{
	local end=$((SECONDS + $1)); shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# launch NAME: a server with a state directory of its own, started or again.
launch()
{
	: > "$tmp/$1.log"		# not the one of before, until it runs
	printf '[exports]\nbackend-dir = %s\n' "$PWD/modules/ceph" \
		> "$tmp/gannet.conf"
	./gannetd --foreground --rdma off --port 0 --no-rpcbind \
		--state-dir "$tmp/$1" --config "$tmp/gannet.conf" \
		--backend ceph --export \
		'ceph:/ 127.0.0.1(rw,insecure,no_root_squash)' \
		> "$tmp/$1.log" 2>&1 &
	pid[$1]=$!
}
is_ready() { grep -qx ready "$tmp/$1.log"; }
# started NAME: within a time in which no session of a dead server ends.
started()
{
	await 40 is_ready "$1" || return
	port[$1]=$(sed -n 's/^ready: tcp //p' "$tmp/$1.log")
}
die_now()
{
	kill -9 "${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}

url() { echo "tcp://127.0.0.1:${port[$1]}/$2?mountport=${port[$1]}"; }
# A server that hangs is a check that fails.
put() { timeout 60 ./gannet-nfs put -q "$2" "$(url "$1" "$3")"; }
# same NAME FILE PATH
same() { timeout 60 ./gannet-nfs cat -q "$(url "$1" "$3")" | cmp -s - "$2"; }

# write_until_dead NAME PREFIX: one file after another; notes those that the
# server has acknowledged, and which were so durable.
write_until_dead()
{
	local i
	for ((i = 0; i < 10000; i++)); do
		timeout 60 ./gannet-nfs put -q -t 2 -r 1 "$tmp/data" \
			"$(url "$1" "$2$i")" > /dev/null 2>&1 || return 0
		echo "$2$i" >> "$tmp/promised.$2"
	done
}
has_promised() { [ "$(wc -l < "$tmp/promised.$1")" -ge "$2" ]; } 2>/dev/null
# all_there NAME PREFIX
all_there()
{
	local f
	while read -r f; do
		same "$1" "$tmp/data" "$f" || { echo "lost: $f"; return 1; }
	done < "$tmp/promised.$2"
}

head -c 300000 /dev/urandom > "$tmp/data"
launch a
launch b
check 'a server starts' started a
check 'so does a second one' started b
check 'each sees what the other did' \
	timeout 120 tests/ceph/two "${port[a]}" "${port[b]}"
check 'one writes a large file' put a "$tmp/data" large
check 'the other reads it' same b "$tmp/data" large

# One is killed with files open and capabilities held.
write_until_dead a k &
writer=$!
check 'a client writes' await 60 has_promised k 30
die_now a
wait $writer
launch a
check 'a server that was killed starts again' started a
check 'it has shut out the dead one' grep -q 'replaced client' "$tmp/a.log"
check 'what it promised is there by the other' all_there b k
check 'and by itself' all_there a k

# The metadata server and the NFS server die at once: a promise is kept only if
# it was in the journal.
write_until_dead a m &
writer=$!
check 'a client writes' await 60 has_promised m 30
"$top/tests/ceph/cluster" kill "$cluster" mds.a
die_now a
wait $writer
"$top/tests/ceph/cluster" start "$cluster" mds.a
launch a
check 'the server starts after both died' started a
check 'the other goes on' await 60 same b "$tmp/data" large
check 'what it promised is there by the other' all_there b m

# The cluster shuts a server out.
"$top/tests/ceph/cluster" evict "$cluster"
check 'a server that was shut out serves again' await 60 put b "$tmp/data" again
check 'and tells it' grep -q 'there is a new client' "$tmp/b.log"
check 'what it wrote is there' await 60 same a "$tmp/data" again

for s in a b; do
	kill "${pid[$s]}"
	wait "${pid[$s]}" || not_ok "server $s ends"
	unset "pid[$s]"
done
exit $status
