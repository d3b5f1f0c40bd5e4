# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# What the options of an export do, seen from the client.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
with()
{
	mount_as "$1" "$SRV/$2" /mnt/export
	(set -e; cd /mnt/export; "${@:3}")
	cd /
	umount /mnt/export
}

read_only()
{
	grep 'read me' file
	refused 'read-only' touch new
	refused 'read-only' rm file
	refused 'read-only' chmod 600 file
	refused 'read-only\|denied' sh -c 'echo x >> file'
}

root_is_nobody()
{
	touch file
	test "$(stat -c %u:%g "$SRV/root_squash/file")" = 65534:65534
	mkdir -p "$SRV/root_squash/closed"
	chmod 700 "$SRV/root_squash/closed"
	refused 'denied' ls closed
	refused 'not permitted' chown 7 file
	install -d -o 2001 -g 3001 "$SRV/root_squash/alice"
	setpriv --reuid 2001 --regid 3001 --clear-groups touch alice/file
	test "$(stat -c %u:%g "$SRV/root_squash/alice/file")" = 2001:3001
}

all_are_one()
{
	setpriv --reuid 2001 --regid 3001 --clear-groups touch a
	touch b
	test "$(stat -c %u:%g "$SRV/all_squash/a")" = 4321:4322
	test "$(stat -c %u:%g "$SRV/all_squash/b")" = 4321:4322
	setpriv --reuid 7 --regid 7 --clear-groups sh -c 'echo x > b'
	setpriv --reuid 7 --regid 7 --clear-groups chmod 600 a
}

root_is_root()
{
	touch root
	chown 7:8 root
	test "$(stat -c %u:%g "$SRV/rw/root")" = 7:8
	rm root
}

for t in tcp rxe; do
	check "ro over $t" with $t ro read_only
	rm -rf "$SRV"/root_squash/*
	check "root_squash over $t" with $t root_squash root_is_nobody
	rm -rf "$SRV"/all_squash/*
	check "all_squash over $t" with $t all_squash all_are_one
	check "no_root_squash over $t" with $t rw root_is_root
done
if mountpoint -q /mnt/export; then umount -fl /mnt/export; fi
