#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bpftrace takes the scripts of etc/bpftrace and, where the kernel lets it,
# attaches them to a server and prints what this does.
command -v bpftrace >/dev/null || {
	echo "skipped: bpftrace missing (package bpftrace)"
	exit 77
}
[ "$(id -u)" = 0 ] || { echo "skipped: bpftrace is for root"; exit 77; }
if grep -qx '#define HAVE_SDT 0' config.h; then
	echo "skipped: built without sys/sdt.h"
	exit 77
fi
tmp=$(mktemp -d) || exit 1
server='' tracer=''
trap 'kill $server $tracer 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
fail() { echo "$*"; failed=1; }
# shellcheck source=tests/soon.sh
. "${srcdir:-.}/tests/soon.sh"

for script in "${srcdir:-.}"/etc/bpftrace/*.bt; do
	name=${script##*/}
	sed "s,/usr/sbin/gannetd,$PWD/gannetd,g" "$script" >"$tmp/$name"
	bpftrace -d "$tmp/$name" 10 >"$tmp/out" 2>&1 ||
		{ fail "bpftrace does not take $name"; tail -5 "$tmp/out"; }
done
./gannetd --foreground --rdma off --port 0 --no-rpcbind \
	--state-dir "$tmp/state" --export 'mem:/m *(rw,insecure)' \
	>"$tmp/log" 2>&1 &
server=$!
soon grep -qsx ready "$tmp/log"
tcp=$(sed -n 's/^ready: tcp //p' "$tmp/log")
[ -n "$tcp" ] || { cat "$tmp/log"; exit 1; }

is_traced()
{
	./gannet-nfs ls "tcp://127.0.0.1:$tcp/m?mountport=$tcp" ||
		fail "no client"
	grep -q "$text" "$tmp/out" || ! kill -0 $tracer 2>/dev/null
}

# prints TEXT SCRIPT [ARGUMENT]: it does, of clients that come and go.
prints()
{
	local text=$1 script=$2
	shift 2
	bpftrace -B none "$tmp/$script" "$@" >"$tmp/out" 2>&1 &
	tracer=$!
	soon is_traced
	grep -q "$text" "$tmp/out" || {
		fail "$script prints no '$text'"
		cat "$tmp/out"
	}
	kill -INT $tracer 2>/dev/null
	wait $tracer
	tracer=''
}
# Not every kernel, or container, lets programs be attached.
if bpftrace -e "usdt:$PWD/gannetd:gannet:conn_end { exit(); }
		interval:ms:1 { exit(); }" >"$tmp/out" 2>&1; then
	prints ' ends: the client closed it; calls ' gannet-ends.bt
	prints ' GETATTR xid [0-9a-f]*: [0-9]* us: worker ' gannet-slow.bt 0
else
	echo "not attached: $(grep -m1 -i error "$tmp/out")"
fi
kill $server
wait $server || fail "the server ended with $?"
server=''
exit $failed
