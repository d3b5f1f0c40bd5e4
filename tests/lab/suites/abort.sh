# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The file system below an export gives up, as ext4 does when its journal
# fails, between an UNSTABLE WRITE and its COMMIT.  fsync says so, and nothing
# that was acknowledged is missing when it is mounted again.
# shellcheck source=tests/lab/disk.sh
. "$LAB/disk.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'a file system gives up' "it takes gannetd"
	exit 0
fi
types='ext4 xfs'
# Data goes to the server at once, and no COMMIT after it.
disk_options+=,write=eager
image() { echo "/srv/image/abort-$1"; }

made()
{
	local type
	for type; do
		truncate -s 320M "$(image "$type")"
		$(disk_mkfs "$type") "$(image "$type")"
		mkdir -p "$(there "$type")"
		mount -t "$type" -o loop "$(image "$type")" "$(there "$type")"
	done
	disks_exported "$@"
	disks_mounted "$@"
}

# calls TYPE PROCEDURE: how many of them its mount made.
calls()
{
	awk -v m="$(here "$1")" -v p="$2:" '$1 == "device" { it = $5 == m }
		it && $1 == p { print $2 }' /proc/self/mountstats
}
all_written() { [ "$(calls "$1" WRITE)" -ge "$2" ]; }

# A process holds a file of which the server has all, and was asked for no
# COMMIT.
hold() { xfs_io -f "$(here "$1")/held" < "$OUT/orders-$1"; }
written_unstable()
{
	in_background "held-$1" hold "$1"
	echo 'pwrite -q -b 4m 0 4m' > "$OUT/orders-$1"
	wait_for 60 all_written "$1" 4
	echo "$(calls "$1" COMMIT) COMMITs"
	test "$(calls "$1" COMMIT)" = 0
}

gives_up()
{
	case $1 in
	ext4) mount -o remount,abort "$(there "$1")" ;;
	xfs) xfs_io -x -c shutdown "$(there "$1")" ;;
	esac
	printf 'fsync\nquit\n' > "$OUT/orders-$1"
	wait_for 100 test -s "$OUT/held-$1.status"
	cat "$OUT/held-$1.out"
	ledgers_are_told "$1"
}

mounted_again()
{
	local type
	for type; do umount -fl "$(here "$type")" || true; done
	server_kill
	for type; do
		umount "$(there "$type")"
		mount -o loop "$(image "$type")" "$(there "$type")"
	done
}

fsync_failed() { grep -E '^fsync: ' "$OUT/held-$1.out"; }

nothing_is_missing()
{
	fsync_failed "$1" || cmp "$(there "$1")/held" "$OUT/as-written"
	ledgers_hold "$1"
}

cleaned_up()
{
	local type
	for type; do
		umount "$(there "$type")"
		rm -f "$(image "$type")"
	done
	disks_unexported
}

xfs_io -f -c 'pwrite -q 0 4m' "$OUT/as-written"
rm -f "$OUT"/orders-*
mkfifo "$OUT/orders-ext4" "$OUT/orders-xfs"
exec 8<>"$OUT/orders-ext4" 9<>"$OUT/orders-xfs"
# shellcheck disable=SC2086 # words are meant
{
	check "they are mounted" made $types
	for type in $types; do
		check "$type: the server has data that is not on disk" \
			written_unstable $type
	done
	check "there is load" ledgers_start 2 $types
	for type in $types; do
		check "$type: it gives up, and fsync and all writers are told" \
			gives_up $type
	done
	check "they are mounted again" mounted_again $types
	for type in $types; do
		check "$type: what was promised is there" \
			nothing_is_missing $type
	done
	check "all else goes on" cleaned_up $types
}
