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

# shellcheck source=tests/soon.sh
. "${srcdir:-.}/tests/soon.sh"

./gannetd --foreground --port 0 --rdma iwarp --rdma-port 0 --no-rpcbind \
	--state-dir "$dir/state" \
	--export 'mem:/a *(rw,insecure,no_root_squash)' \
	--export 'mem:/b *(rw,insecure,no_root_squash)' \
	>"$dir/ready" 2>"$dir/log" &
server=$!
soon grep -qx ready "$dir/ready" || { cat "$dir/log"; exit 1; }
port=$(awk '$2 == "tcp" { print $3 }' "$dir/ready")
rdma=$(awk '$2 == "iwarp" { print $3 }' "$dir/ready")
# shellcheck disable=SC2317,SC2329 # soon calls it
begun() { [ "$(grep -c 'capture begins' "$dir/log")" = "$1" ]; }

# begin OPTION...: a capture begins; its file is $dir/NUMBER.pcapng
captures=0
begin()
{
	captures=$((captures + 1))
	# timeout sends a signal twice, to gannetctl and to its group.
	timeout 300 ./gannetctl \
		--socket "$dir/state/control" capture \
		-w "$dir/$captures.pcapng" "$@" 2>"$dir/told" &
	ctl=$!
	soon begun $captures || exit 1
}

# ends it, as Ctrl-C does in a terminal
end()
{
	kill -TERM $ctl
	wait $ctl || fail "gannetctl fails: $(cat "$dir/told")"
	grep -q ' 0 dropped' "$dir/told" || fail "$(cat "$dir/told")"
}

# look: tshark reads the last capture, once, since that takes its time.  Client
# ports below 1024 may be those of other protocols, so it is to look at the
# bytes first.
look()
{
	tshark -2 -o tcp.try_heuristic_first:TRUE -r "$dir/$captures.pcapng" \
		-T fields -e frame.number -e frame.interface_name \
		-e rpc.msgtyp -e rpc.xid -e rpc.time -e nfs.procedure_v3 \
		-e nfs.status3 -e nfs.count3 -e tcp.reassembled_in \
		-e _ws.malformed -e tcp.analysis.flags -e mount.path \
		-e nfs.data 2>/dev/null |
		awk -F '\t' -v OFS='\t' '{ $10 = $10 $11; print }' \
		>"$dir/frames"
}
# shellcheck disable=SC2016 # they are awk's
columns='n=$1; via=$2; type=$3; xid=$4; time=$5; proc=$6; status=$7
	count=$8; reassembled=$9; bad=$10; mount=$12; data=$13'

# shows CONDITION VALUE: of the frames, in awk; on one line
shows()
{
	awk -F '\t' "{ $columns } $1 { print $2 }" "$dir/frames" |
		tr '\n' ' '
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

	look
	is "$(shows 'bad != ""' n)" '' "$1: frames that tshark can't read"
	is "$(shows 'type == "" && reassembled == ""' n)" '' \
		"$1: frames without RPC"
	is "$(shows 'type == 1 && time == ""' n)" '' \
		"$1: replies without a call"
	is "$(shows 'type == 0' xid | tr ' ' '\n' | sort)" \
		"$(shows 'type == 1' xid | tr ' ' '\n' | sort)" \
		"$1: calls and replies"
	# LOOKUP, READ, WRITE, READDIRPLUS
	for proc in 3 6 7 17; do
		[ -n "$(shows "type == 1 && proc == $proc && status == 0" \
			n)" ] || fail "$1: no reply of procedure $proc"
	done
	[ -n "$(shows 'proc == 3 && status == 2' n)" ] ||
		fail "$1: no LOOKUP that failed"
	# gannet-nfs reads a byte, too.
	for what in 'type == 0 && proc == 7' \
		'type == 1 && proc == 6 && count > 1'; do
		shows "$what" data | tr -d ': ' >"$dir/seen"
		cmp "$dir/hex" "$dir/seen" || fail "$1: data of $what"
	done
	is "$(shows 'proc != ""' via | tr ' ' '\n' | sort -u | tr -d '\n')" \
		"$1" "$1: interface"
}
whole tcp "$tcp"
whole iwarp "$iwarp"

# Filters: calls of the other export, and of other procedures, are not there.
begin --export /b --client 127.0.0.1
./gannet-nfs ls "$tcp/a?mountport=$port" >/dev/null
./gannet-nfs ls "$iwarp/b?mountport=$port" >/dev/null
end
look
is "$(shows 'mount != ""' mount)" '/b /b ' "--export: MOUNT"
[ -n "$(shows 'proc == 17' n)" ] || fail "--export: NFS"
is "$(shows 'proc != "" && via != "iwarp"' n)" '' "--export: other NFS"
begin --proc readdirplus,FSINFO
./gannet-nfs ls "$iwarp/a?mountport=$port" >/dev/null
end
look
is "$(shows 1 proc)" '19 19 17 17 ' "--proc"

# Names are there, too, where the rest of a message was not kept.
begin --snaplen 200
./gannet-nfs get -q -d 1 "$iwarp/a/file?mountport=$port" "$dir/back"
end
look
is "$(shows 'type == 1 && proc == 6 && count > 1' count)" \
	'1048576 1048576 402849 ' "--snaplen"

# The capture ends by itself, with as many messages as it was to have.
begin --count 5
./gannet-nfs ls "$iwarp/a?mountport=$port" >/dev/null
wait $ctl || fail "gannetctl fails: $(cat "$dir/told")"
grep -q '^gannetctl: 5 messages' "$dir/told" || fail "$(cat "$dir/told")"
look
is "$(shows 1 n)" '1 2 3 4 5 ' "--count"
exit $failed
