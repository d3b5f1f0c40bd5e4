#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ./quickstart serve --ceph, as somebody who tries it: what one server writes
# the other has, a server that is killed comes back, and nothing is left.  Runs
# in a build's directory.
set -u
top=$(readlink -f "${srcdir:-$(dirname "$0")/../..}")
# shellcheck source=tests/server/serving.sh
. "$top/tests/server/serving.sh"

mkdir -p "$tmp/tests/ceph"
cp "$top"/tests/ceph/{demo.sh,cluster} "$tmp/tests/ceph/"
home=$tmp/build-quickstart/ceph
trap '[ -z "${pid:-}" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$tmp"' EXIT

# The processes that were told its configuration.
of_the_cluster()
{
	local p
	for p in /proc/[0-9]*; do
		! tr '\0' '\n' 2>/dev/null < "$p/environ" |
			grep -qxF "CEPH_CONF=$home/cluster/ceph.conf" ||
			echo "${p#/proc/} $(cat "$p/comm")"
	done
} 2>/dev/null
nothing_left() { [ -z "$(of_the_cluster)" ] && [ ! -e "$home" ]; }
# has_servers N
has_servers() { [ "$(of_the_cluster | grep -c ' gannetd$')" = "$1" ]; }
has_daemons() { of_the_cluster | grep -q ' ceph-'; }

# pasted PATTERN [NAME]: the printed line that matches, run by a shell; with
# the file that it names, or another.
pasted()
{
	bash -c "$(grep -E "^    .*$1" "$tmp/out" |
		sed "s/hello?/${2:-hello}?/")"
}
reads() { [ "$(pasted 'gannet-nfs cat ' "$@")" = hello ]; }
# lists N: the printed command for the server lists what was written.
lists()
{
	bash -c "$(grep '^    .*gannet-nfs ls' "$tmp/out" | sed -n "$1p")" |
		grep -q hello
}
lacks_hello() { ! lists 1; }
# writes_as ID: whose the file is.
writes_as()
{
	pasted 'gannet-nfs ls' | awk '/hello/ { print $3 }' | sort -u |
		grep -qx "$1"
}
starts() { serve --ceph "$@" && shown 'The cluster itself:'; }
# mounts PATTERN: a line for each server.
mounts()
{
	[ "$(grep "^    mount .*$1.*,nolock " "$tmp/out" |
		grep -c ' /mnt/[ab]$')" = 2 ]
}
# Ports are those that clients were told.
same_ports()
{
	local port
	for port in $(sed -n 's/.*proto=tcp,port=\([0-9]*\),.*/\1/p' \
			"$tmp/out"); do
		(: < "/dev/tcp/127.0.0.1/$port") || return
	done
}

check 'a directory is none of its business' \
	fails 1 'a file system of its own' serve --ceph "$tmp"
check 'it starts' starts
check 'two servers' has_servers 2
check 'it says how to mount them over TCP' mounts ,proto=tcp
check 'and over RDMA' mounts ,proto=rdma
check 'and what locks are worth' says '^\(nolock: a lock holds within one'
check 'what is written at one server' pasted 'gannet-nfs put '
check 'the other reads' reads
check 'each lists it' lists 1
check 'the other, too' lists 2
as=$(id -u)
[ "$as" != 0 ] || as=65534
check 'it is not of root' writes_as "$as"
check 'the cluster answers' pasted 'ceph -s'
asks_server() { pasted 'gannetctl .*status' | grep -q 'serving'; }
check 'and so does a server' asks_server
holds_back()
{
	ceph osd pool get-quota data | grep -q 'max bytes *: 71[67] MiB'
}
check 'files leave room for the cluster' \
	env CEPH_CONF="$home/cluster/ceph.conf" bash -c \
	"$(declare -f holds_back); holds_back"
second()
{
	! "$tmp/quickstart" serve --ceph > "$tmp/second" 2>&1 &&
		grep "process $pid serves this cluster" "$tmp/second"
}
check 'a second one is refused' second

check 'the printed command kills a server' pasted 'kill -9'
check 'which comes back' shown 'server a is back'
check 'at its ports' same_ports
started=$SECONDS
check 'it writes again' pasted 'gannet-nfs put ' again
check 'the other reads that' reads again
check 'and waits for no dead one' test $((SECONDS - started)) -lt 30
check 'Ctrl-C ends it' ended INT
check 'and nothing is left' nothing_left

# The end of one that is killed is left to the next.
check 'it starts once more' starts
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'killed, it leaves the cluster' has_daemons
check 'the next one starts' starts
check 'with two servers' soon has_servers 2
check 'whose files are new' lacks_hello
check 'it writes' pasted 'gannet-nfs put '
check 'it reads' reads
check 'SIGTERM ends it' ended TERM
check 'and nothing is left of both' nothing_left

# Before there is anything to mount.
starts_cluster()
{
	: > "$tmp/out"
	setsid env --default-signal=INT "$tmp/quickstart" serve --ceph \
		> "$tmp/out" 2> "$tmp/err" &
	pid=$!
	soon has_daemons
}
check 'a cluster begins to start' starts_cluster
check 'Ctrl-C ends it, too' ended INT
check 'and nothing is left of it' nothing_left
[ $failed = 0 ]
