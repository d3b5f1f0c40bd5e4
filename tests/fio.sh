#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fio reads back what it wrote through its engine, over TCP and iWARP, and ends
# with an errno when the file or the server is not as it should be.
[ -e ./fio-gannet.so ] || {
	echo "skipped: configured without --with-fio=DIR"
	exit 77
}
command -v fio >/dev/null || {
	echo "skipped: fio missing (package fio)"
	exit 77
}
engine=external:$PWD/fio-gannet.so
top=$(cd "${srcdir:-.}" && pwd)
tmp=$(mktemp -d) || exit 1
server='' running=''
trap 'kill -9 $server $running 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
fail() { echo "not ok - $*"; tail -5 "$tmp/fio"; failed=1; }
mkdir "$tmp/export"

# shellcheck source=tests/soon.sh
. "${srcdir:-.}/tests/soon.sh"

# serve TCP-PORT RDMA-PORT
serve()
{
	: > "$tmp/log"
	./gannetd --foreground --rdma iwarp --rdma-port "$2" --port "$1" \
		--no-rpcbind --state-dir "$tmp/state" --export \
		"$tmp/export *(rw,insecure,no_root_squash)" \
		>>"$tmp/log" 2>&1 &
	server=$!
	soon grep -q '^ready$' "$tmp/log" || { cat "$tmp/log"; exit 1; }
	tcp=$(sed -n 's/^ready: tcp //p' "$tmp/log")
	rdma=$(sed -n 's/^ready: iwarp //p' "$tmp/log")
}

# job NAME WAY OPTION...: the errno of a job of fio; 1 if it has none.
job()
{
	local name=$1 way=$2 err; shift 2
	case $way in
	tcp) way=("--url=nfs://127.0.0.1:$tcp$tmp/export?mountport=$tcp") ;;
	iwarp) way=(--host=127.0.0.1 "--export=$tmp/export" --transport=iwarp
		"--port=$rdma" "--mountport=$tcp") ;;
	none) way=() ;;
	esac
	cd "$tmp" && timeout 300 fio --name="$name" --ioengine="$engine" \
		"${way[@]}" --iodepth=8 "$@" > "$tmp/fio" 2>&1 && return
	err=$(sed -n 's/.*err=[ ]*\([0-9]*\).*/\1/p' "$tmp/fio" | sort -n |
		tail -1)
	return "${err:-1}"
}

# ends ERRNO PATTERN NAME WAY OPTION...: the job does, and says so.
ends()
{
	local want=$1 pattern=$2 got; shift 2
	(job "$@"); got=$?
	# shellcheck disable=SC2053 # it is a pattern
	[[ $got = $want ]] && grep -q -e "$pattern" "$tmp/fio" ||
		fail "$*: ended with $got, not $want, '$pattern'"
}

calls() { ./gannetctl --socket "$tmp/state/control" stats |
	awk -v p="$1" '{ for (i = 1; i < NF; i++) if ($i == p) n += $(i + 1) }
		END { print n + 0 }'; }

serve 0 0
for way in tcp iwarp; do
	verify=(--verify=crc32c --verify_fatal=1 --size=4m)
	for how in --thread=0 --thread=1; do
		ends 0 '' "a$how" $way "${verify[@]}" --rw=randwrite --bs=4k \
			$how --numjobs=2 --connections=3
	done
	# Longer than a READ or WRITE can be.
	ends 0 '' large $way "${verify[@]}" --rw=write --bs=4m
	ends 0 '' mixed $way "${verify[@]}" --rw=randrw --bs=512-64k
	ends 0 '' sync $way "${verify[@]}" --rw=randwrite --bs=64k --sync=1
	cmp -s -n 4194304 "$tmp/export/large.0.0" /dev/zero &&
		fail "$way: the file has nothing in it"
	# Read by another job, once as it is and once with another byte.
	ends 0 '' large $way "${verify[@]}" --rw=read --bs=4m --verify_only
	printf x | dd of="$tmp/export/large.0.0" bs=1 seek=3000000 \
		conv=notrunc status=none
	ends 84 'verify' large $way "${verify[@]}" --rw=read --bs=4m
	# Laid out before it is read, and gone afterwards.
	ends 0 '' below $way --rw=randread --size=3000000 --bs=4k --unlink=1 \
		--number_ios=100
	[ ! -e "$tmp/export/below.0.0" ] || fail "$way: unlink"
	before=$(calls COMMIT)
	ends 0 '' synced $way --rw=write --bs=4k --size=400k --fsync=10 \
		--iodepth=1
	[ $(($(calls COMMIT) - before)) = 9 ] ||
		fail "$way: $(calls COMMIT) COMMITs, $before before"

	# A file that is too short, or that ends before the READ does.
	head -c 10000 /dev/urandom > "$tmp/export/short"
	ends 61 'short: No data' s $way --filename=short --rw=read --size=64k \
		--allow_file_create=0
	ends 5 'short: it ends at 10000' s $way --filename=short --rw=read \
		--size=64k --create_on_open=1
	[ "$(stat -c %s "$tmp/export/short")" = 10000 ] ||
		fail "$way: the short file was written to"
	ends 2 'none: NFS3ERR_NOENT' n $way --filename=none --rw=read \
		--size=64k --allow_file_create=0
	mkdir -p "$tmp/export/dir"
	ends 21 'Is a directory' d $way --filename=dir --rw=read --size=64k
	ends 0 '' below $way --filename=dir/file --rw=write --size=64k
	[ -s "$tmp/export/dir/file" ] || fail "$way: a file in a directory"
done
# MOUNT's list of clients: each job has said UMNT.
[ ! -s "$tmp/state/rmtab" ] || fail "$(cat "$tmp/state/rmtab") is mounted"

# Mistakes.
ends 22 'needs url= alone' o none --size=64k
ends 22 'needs url= alone' o tcp --host=127.0.0.1 --size=64k
ends 22 'need each other' o none --host=127.0.0.1 --size=64k
ends 1 'unrecognized option' o tcp --no-such=1 --size=64k
ends 22 'starts with none of' o none --url=http://127.0.0.1/ --size=64k
ends 13 'MNT3ERR_' o none --url="nfs://127.0.0.1:$tcp/no?mountport=$tcp" \
	--size=64k
ends 95 '' o tcp --rw=trim --size=64k

# interrupted SIGNAL ERRNO PATTERN OPTION...: the server gets the signal while
# a job runs, which ends.
# The server can still have WRITEs of the job before, so they aren't counted.
written()
{
	[ "$(stat -c %b "$tmp/export/long" 2> /dev/null || echo 0)" -gt 0 ]
}
interrupted()
{
	local signal=$1 want=$2 pattern=$3; shift 3
	rm -f "$tmp/export/long"
	(ends "$want" "$pattern" long "$way" --filename=long --rw=randwrite \
		--bs=4k --size=1m --time_based --runtime=600 \
		--reconnects=1 "$@"; exit $failed) &
	running=$!
	soon written || failed=1
	case $signal in
	remove) rm "$tmp/export/long" ;;
	anew) kill -9 $server; wait $server 2>/dev/null; serve "$tcp" "$rdma" ;;
	KILL) kill -9 $server; wait $server 2>/dev/null ;;
	*) kill -"$signal" $server ;;
	esac
	wait $running || failed=1
	running=''
}
# Each job file, for a second.
for file in "$top"/etc/fio/*.fio; do
	sed -e 's/^size=.*/size=1m/' -e 's/^runtime=.*/runtime=1/' \
		-e 's/^ramp_time=.*//' "$file" > "$tmp/file"
	(cd "$tmp" && GANNET_FIO=${engine#external:} \
		NFS_URL="nfs://127.0.0.1:$tcp$tmp/export?mountport=$tcp" \
		timeout 300 fio file > fio 2>&1) || fail "$file"
done

for way in tcp iwarp; do
	interrupted remove 116 'NFS3ERR_STALE'
	interrupted STOP '1[01][0-9]' '' --reply_s=1
	kill -CONT $server
done
# A server that is started anew has lost what was not synced, or is connected
# to again.
for way in tcp iwarp; do
	interrupted anew 5 'has lost data' --rate_iops=500 --fsync=1000 \
		--reconnects=100
done
interrupted anew 0 '' --time_based=0 --runtime=0 --size=4m --rate_iops=400 \
	--verify=crc32c --reconnects=100
interrupted KILL '1[01][0-9]' '' --connections=3
[ $failed = 0 ] && echo "fio reads back what it wrote"
exit $failed
