# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The disks below exports die while clients work.  Whatever a client was told
# is stable is there when they are back.
# shellcheck source=tests/lab/disk.sh
. "$LAB/disk.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'a disk dies' "it takes gannetd"
	exit 0
fi
types='ext4 xfs btrfs'
image() { echo "/srv/image/death-$1"; }

# disk_map TYPE TABLE: what its disk is from now on.  What is under way is not
# waited for.
disk_map()
{
	dmsetup load "death-$1" --table "$2"
	dmsetup suspend --noudevsync --noflush --nolockfs "death-$1"
	dmsetup resume --noudevsync "death-$1"
}
loop() { losetup -nO NAME -j "$(image "$1")"; }
sectors() { blockdev --getsz "$(loop "$1")"; }
alive() { echo "0 $(sectors "$1") linear $(loop "$1") 0"; }
dead() { echo "0 $(sectors "$1") error"; }

# made TYPE: a new disk with such a file system.
made()
{
	local disk options=commit=600
	truncate -s 512M "$(image "$1")"
	losetup -f "$(image "$1")"
	dmsetup create "death-$1" --noudevsync --table "$(alive "$1")"
	disk=$(dmsetup info -c --noheadings -o blkdevname "death-$1")
	$(disk_mkfs "$1") "/dev/$disk"
	mkdir -p "$(there "$1")"
	# Only what is synced reaches the disk.
	[ "$1" != xfs ] || options=defaults
	mount -t "$1" -o $options "/dev/$disk" "$(there "$1")"
}

all_mounted()
{
	# shellcheck disable=SC2086 # words are meant
	{ disks_exported $types; disks_mounted $types; }
}

under_load() { ledgers_start 4 "$@"; }

die()
{
	local type
	for type; do disk_map "$type" "$(dead "$type")"; done
}

# Names of the root, too, after all is known.
says_so()
{
	refused 'error\|read-only' mkdir "$(here "$1")/late"
}

# The server and its client are gone, and the disks are new ones with what the
# old ones had when they died.
replaced()
{
	local type
	for type; do umount -fl "$(here "$type")" || true; done
	server_kill
	for type; do
		umount "$(there "$type")"
		dmsetup remove --noudevsync "death-$type"
		mount "$(loop "$type")" "$(there "$type")"
	done
}

nothing_is_missing()
{
	ledgers_hold "$1"
	test ! -e "$(there "$1")/late"
}

cleaned_up()
{
	local type
	for type; do
		umount "$(there "$type")"
		losetup -d "$(loop "$type")"
		rm -f "$(image "$type")"
	done
	disks_unexported
}

for type in $types; do check "$type: there is a disk" made "$type"; done
check "all are mounted" all_mounted
# shellcheck disable=SC2086 # words are meant
{
	check "there is load" under_load $types
	check "they die" die $types
	for type in $types; do
		check "$type: every writer is told" ledgers_are_told $type
		check "$type: nothing is called stable after that" says_so $type
	done
	check "they are replaced" replaced $types
	for type in $types; do
		check "$type: what was promised is there" \
			nothing_is_missing $type
	done
	check "all else goes on" cleaned_up $types
}
