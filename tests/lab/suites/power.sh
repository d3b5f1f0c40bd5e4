# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The power of the server's machine fails while clients write: the server is
# gone, and so is any part of what its disks were not told to flush.  When it is
# back, what a client was told is stable is there; the clients carry on, send
# the rest again, and see no error.
# shellcheck source=tests/lab/disk.sh
. "$LAB/disk.sh"
# shellcheck source=tests/lab/load.sh
. "$LAB/load.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'the power fails' "the kernel's server can't be killed"
	exit 0
fi
if [ ! -e /dev/fuse ]; then
	skip 'the power fails' "no /dev/fuse here"
	exit 0
fi
load_transports tcp rxe iwarp
cuts='1 2'
everywhere=$(there %)

# Each transport has a file system of its own.
type_of()
{
	case $1 in
	tcp) echo ext4 ;;
	rxe) echo xfs ;;
	iwarp) echo btrfs ;;
	esac
}

# told ORDER TRANSPORT: its disk did it; prints the answer.
told()
{
	local answer
	echo "$1" > "$OUT/orders-$2"
	read -r -t 120 answer < "$OUT/answers-$2"
	echo "$answer"
}

# Their ends of the pipes stay open here.
pipes_made()
{
	local orders answers
	rm -f "$OUT/orders-$1" "$OUT/answers-$1"
	mkfifo "$OUT/orders-$1" "$OUT/answers-$1"
	exec {orders}<>"$OUT/orders-$1" {answers}<>"$OUT/answers-$1"
	: "$orders" "$answers"
}

# All disks are there before the first is mounted: each has the mounts of that
# moment in its own namespace, and keeps them.
disk_started()
{
	local image=/srv/image/power-$1
	mkdir -p "$(there "$1")" "$image"
	"$BUILD/tests/lab/cutdisk" "$image" \
		"$(disk_mkfs "$(type_of "$1")") \"\$1\"" \
		< "$OUT/orders-$1" > "$OUT/answers-$1" 2> "$OUT/cutdisk-$1" &
	disown
}

disk_made()
{
	timeout 120 head -1 "$OUT/answers-$1" > "$OUT/device-$1"
	test -s "$OUT/device-$1" || { cat "$OUT/cutdisk-$1"; return 1; }
}

disk_mounted()
{
	mount -t "$(type_of "$1")" "$(cat "$OUT/device-$1")" "$(there "$1")"
}

unmounted() { wait_for 60 umount "$(there "$1")"; }

# Power is back, with another part of what was not flushed at each cut.
back()
{
	local sector=4096 type
	type=$(type_of "$2")
	[ "$type" != ext4 ] || sector=512
	mount -t "$type" "$(told "power $1 $sector" "$2")" "$(there "$2")" ||
		return
	tail -1 "$OUT/cutdisk-$2"
}

survived()
{
	"$BUILD/tests/lab/ledger" check "$(there "$1")/load-$1/ledger" \
		"$(cat "$OUT/$1.promised")"
}

power_fails()
{
	local pid
	pid=$(server_pid)
	each told cut
	kill -KILL "$pid"
	promised
	each told fail
	wait_for 60 is_gone "$pid"
	each unmounted
	each back "$1"
	each survived
}

carry_on()
{
	server_start
	each progress 300 20
}

cleaned_up()
{
	server_stop
	each unmounted
	each told quit
	disks_unexported
}

for t in $transports; do pipes_made "$t"; done
each disk_started
check 'there are disks' each disk_made
check 'there are file systems' each disk_mounted
# shellcheck disable=SC2086 # words are meant
check 'they are exported' disks_exported $transports
check 'all are mounted' each load_mount "$everywhere"
check 'there is load' load_start
for cut in $cuts; do
	check 'what was promised survives a power cut' power_fails "$cut"
	check 'the clients carry on when it is back' carry_on
done
load_end "$everywhere"
check 'all else goes on' cleaned_up
