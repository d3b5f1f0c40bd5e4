#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark reads what gannetctl captured: each call and each reply by its name,
# and all of the data, over TCP and over RDMA.
set -u
command -v tshark >/dev/null || {
	echo "skipped: tshark missing (package tshark)"
	exit 77
}
failed=0
fail() { echo "$*"; failed=1; }

dir=$(mktemp -d) || exit 1
server=
# shellcheck disable=SC2317 # the trap calls it
tidy()
{
	[ -z "$server" ] || { kill "$server"; wait "$server"; }
	rm -rf "$dir"
}
trap tidy EXIT

# until COMMAND...: waits until it succeeds, for a minute at most.
until_true()
{
	n=0
	until "$@"; do
		n=$((n + 1))
		[ $n -lt 600 ] || { echo "in vain: $*"; return 1; }
		sleep 0.1
	done
}

./gannetd --foreground --port 0 --rdma iwarp --rdma-port 0 --no-rpcbind \
	--state-dir "$dir/state" \
	--export 'mem:/a *(rw,insecure,no_root_squash)' \
	--export 'mem:/b *(rw,insecure,no_root_squash)' \
	>"$dir/ready" 2>"$dir/log" &
server=$!
until_true grep -qx ready "$dir/ready" || { cat "$dir/log"; exit 1; }
port=$(awk '$2 == "tcp" { print $3 }' "$dir/ready")
rdma=$(awk '$2 == "iwarp" { print $3 }' "$dir/ready")
# shellcheck disable=SC2317,SC2329 # until_true calls it
begun() { [ "$(grep -c 'capture begins' "$dir/log")" = "$1" ]; }

# begin OPTION...: a capture begins; its file is $dir/NUMBER.pcapng
captures=0
begin()
{
	captures=$((captures + 1))
	./gannetctl --socket "$dir/state/control" capture \
		-w "$dir/$captures.pcapng" "$@" 2>"$dir/told" &
	ctl=$!
	until_true begun $captures || exit 1
}

# ends it, as Ctrl-C does in a terminal
end()
{
	kill -TERM $ctl
	wait $ctl || fail "gannetctl fails: $(cat "$dir/told")"
	grep -q ' 0 dropped' "$dir/told" || fail "$(cat "$dir/told")"
}

# shows FILTER FIELD...: of the last capture.  Client ports below 1024 may be
# those of other protocols, so tshark is to look at the bytes first.
shows()
{
	filter=$1 fields=
	shift
	for f; do fields="$fields -e $f"; done
	# shellcheck disable=SC2086 # several words
	tshark -2 -o tcp.try_heuristic_first:TRUE -r "$dir/$captures.pcapng" \
		-Y "$filter" -T fields $fields 2>/dev/null
}

# is WHAT-IT-IS EXPECTED MESSAGE
is() { [ "$1" = "$2" ] || fail "$3: '$1' in place of '$2'"; }

tcp="tcp://127.0.0.1:$port" iwarp="rdma+iwarp://127.0.0.1:$rdma"
head -c 2500001 /dev/urandom >"$dir/data"
od -An -v -tx1 "$dir/data" | tr -d ' \n' >"$dir/hex"

# whole TRANSPORT URL: all of a session is there
whole()
{
	begin
	./gannet-nfs put -q -d 1 "$dir/data" "$2/a/file?mountport=$port"
	./gannet-nfs get -q -d 1 "$2/a/file?mountport=$port" "$dir/back"
	./gannet-nfs ls -l "$2/a?mountport=$port" >/dev/null
	./gannet-nfs cat "$2/a/none?mountport=$port" 2>/dev/null
	end
	cmp "$dir/data" "$dir/back" || fail "$1: the copies differ"

	is "$(shows '_ws.malformed || _ws.unreassembled || tcp.analysis.flags' \
		frame.number)" '' "$1: frames that tshark can't read"
	is "$(shows '!rpc && !tcp.reassembled_in' frame.number tcp.port)" '' \
		"$1: frames without RPC"
	is "$(shows 'rpc.msgtyp == 1 && !rpc.time' frame.number)" '' \
		"$1: replies without a call"
	is "$(shows 'rpc.msgtyp == 0' rpc.xid | sort)" \
		"$(shows 'rpc.msgtyp == 1' rpc.xid | sort)" \
		"$1: calls and replies"
	# WRITE, READ, LOOKUP, READDIRPLUS
	for proc in 7 6 3 17; do
		shows "nfs && rpc.msgtyp == 1 && rpc.procedure == $proc" \
			nfs.status3 >"$dir/shown"
		[ -s "$dir/shown" ] || fail "$1: no reply of procedure $proc"
	done
	shows 'nfs.status3 == 2' nfs.procedure_v3 | grep -q 3 ||
		fail "$1: no LOOKUP that failed"
	# gannet-nfs asks for a byte, too.
	for what in 'rpc.msgtyp == 0 && nfs.procedure_v3 == 7' \
		'rpc.msgtyp == 1 && nfs.procedure_v3 == 6 && nfs.count3 > 1'
	do
		shows "$what" nfs.data | tr -d ':\n' >"$dir/seen"
		cmp "$dir/hex" "$dir/seen" || fail "$1: data of $what"
	done
	shows nfs frame.interface_name | sort -u >"$dir/shown"
	is "$(cat "$dir/shown")" "$1" "$1: interface"
}
whole tcp "$tcp"
whole iwarp "$iwarp"

# The capture ends by itself, with as many messages as it was to have.
begin --count 5
./gannet-nfs ls "$iwarp/a?mountport=$port" >/dev/null
wait $ctl || fail "gannetctl fails: $(cat "$dir/told")"
grep -q '^gannetctl: 5 messages' "$dir/told" || fail "$(cat "$dir/told")"
is "$(shows rpc frame.number | wc -l)" 5 "count"
exit $failed
