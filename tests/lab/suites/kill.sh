# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The server is killed under load.  The export is ext4 on an image that gets
# only what is synced; a copy of the image, taken right then, is what a crash
# of the machine would have left.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'kill -9' "the kernel's server can't be killed"
	exit 0
fi
progress() { [ "$(cat "$OUT/ack" 2>/dev/null || echo 0)" -gt "$1" ]; }

crash()
{
	server_kill
	cat "$OUT/ack" > "$OUT/promised"
	cp --sparse=always /srv/image/ext4 /srv/image/crashed
}

after_the_crash()
{
	mkdir -p /mnt/crashed
	mount -o loop /srv/image/crashed /mnt/crashed
	"$BUILD/tests/lab/ledger" check "/mnt/crashed/$T/ledger" \
		"$(cat "$OUT/promised")"
	umount /mnt/crashed
}

carries_on()
{
	server_start
	wait_for 120 progress $(($(cat "$OUT/promised") + 20))
}

dir=/mnt/$T-ext4
rm -f "$OUT/ack" "$OUT/ack.stop"
mkdir -p "$SRV/ext4/$T/ledger"
check 'the export is mounted' mount_as "$T" "$SRV/ext4/$T" "$dir"
mountpoint -q "$dir" || exit 0
background exerciser "$BUILD/tests/lab/exerciser" "$dir/f" 4 50 15
background ledger "$BUILD/tests/lab/ledger" write "$dir/ledger" "$OUT/ack" 600
check 'there is load' wait_for 30 progress 100
check 'the server is killed' crash
check 'what was promised survives a crash' after_the_crash
check 'the client carries on when it is back' carries_on
check 'the load saw nothing but right data' ended exerciser
touch "$OUT/ack.stop"
check 'no write failed' ended ledger
forget
check 'every record is there for the client' \
	"$BUILD/tests/lab/ledger" check "$dir/ledger" "$(cat "$OUT/ack")"
check 'every record is on the server' \
	"$BUILD/tests/lab/ledger" check "$SRV/ext4/$T/ledger" \
	"$(cat "$OUT/ack")"
check 'the file is the same on the server' cmp "$dir/f" "$SRV/ext4/$T/f"
check 'it unmounts' timeout 60 umount "$dir"
rm -rf "${SRV:?}/ext4/$T" /srv/image/crashed
