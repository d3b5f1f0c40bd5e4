# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The disk below an export dies while clients work.  Whatever a client was told
# is stable is there when the disk is back.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'a disk dies' "it takes gannetd"
	exit 0
fi
image=/srv/image/death dir=$SRV/death mnt=/mnt/death
writers='1 2 3 4'

# disk_map TABLE: what the disk is from now on.  What is under way is not
# waited for.
disk_map()
{
	dmsetup load death --table "$1"
	dmsetup suspend --noudevsync --noflush --nolockfs death
	dmsetup resume --noudevsync death
}
loop() { losetup -nO NAME -j $image; }
sectors() { blockdev --getsz "$(loop)"; }
alive() { echo "0 $(sectors) linear $(loop) 0"; }
dead() { echo "0 $(sectors) error"; }

# made TYPE MKFS...: a new disk with such a file system, exported and mounted.
made()
{
	local type=$1 disk; shift
	rm -f $image
	truncate -s 512M $image
	losetup -f $image
	dmsetup create death --noudevsync --table "$(alive)"
	disk=/dev/$(dmsetup info -c --noheadings -o blkdevname death)
	"$@" "$disk"
	mkdir -p $dir
	# Only what is synced reaches the disk.
	mount -t "$type" -o "$(case $type in xfs) echo defaults ;;
		*) echo commit=600 ;; esac)" "$disk" $dir
	cp /etc/exports "$OUT/exports"
	echo "$dir 192.0.2.0/24(rw,insecure,no_root_squash,fsid=9)" \
		>> /etc/exports
	server_stop
	server_start
	mount_as tcp $dir $mnt soft,timeo=600,retrans=2
	mountpoint $mnt
}

# The server and its client are gone, and the disk is a new one with what the
# old one had when it died.
replaced()
{
	umount -fl $mnt || true
	server_kill
	umount $dir
	dmsetup remove --noudevsync death
	mount "$(loop)" $dir
}

cleaned_up()
{
	umount $dir
	losetup -d "$(loop)"
	rm -f $image
	cp "$OUT/exports" /etc/exports
	server_start
}

# As background, for what is to fail: in a check that ends the shell.
in_background() { (set +eE; trap - ERR; background "$@"); }

has_more_than() { [ "$(cat "$OUT/$1.ack" 2>/dev/null || echo 0)" -gt "$2" ]; }

dies_under_load()
{
	local i
	rm -f "$OUT"/death-*.ack
	for i in $writers; do
		mkdir -p $mnt/$i
		in_background "death-$i" "$BUILD/tests/lab/ledger" write \
			$mnt/$i "$OUT/death-$i.ack" 200
	done
	for i in $writers; do wait_for 200 has_more_than "death-$i" 20; done
	disk_map "$(dead)"
	# Each writer ends when it is told of an error.
	for i in $writers; do
		wait_for 200 test -s "$OUT/death-$i.status"
		tail -1 "$OUT/death-$i.out"
		test "$(cat "$OUT/death-$i.status")" = 1
	done
}

# Names of the root, too, after all is known.
says_so()
{
	refused 'error\|read-only' mkdir $mnt/late
}

nothing_is_missing()
{
	local i
	for i in $writers; do
		"$BUILD/tests/lab/ledger" check $dir/$i \
			"$(cat "$OUT/death-$i.ack")"
	done
	test ! -e $dir/late
}

for type in ext4 xfs btrfs; do
	case $type in
	ext4) mkfs='mke2fs -q -t ext4' ;;
	*) mkfs="mkfs.$type -q" ;;
	esac
	# shellcheck disable=SC2086 # words are meant
	check "$type: there is a disk" made $type $mkfs
	mountpoint -q $mnt || continue
	check "$type: it dies, and every writer is told" dies_under_load
	check "$type: nothing is called stable after that" says_so
	check "$type: it is replaced" replaced
	check "$type: what was promised is there" nothing_is_missing
	check "$type: all else goes on" cleaned_up
done
