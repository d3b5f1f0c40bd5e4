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

# The exports are read again.  A port of an RDMA device is no privilege, so an
# export without "insecure" takes its clients.  Over iWARP in user space it is
# a TCP port, and the kernel's client takes one above 1023.
reload()
{
	kill -HUP "$(server_pid)"
	wait_for 60 sh -c "showmount -e --no-headers 192.0.2.1 > $OUT/list
		[ \$(grep -c '^$SRV/late ' $OUT/list) = $1 ]"
}

appears()
{
	mkdir -p $SRV/late
	cp /etc/exports "$OUT/exports"
	local options='(rw,no_root_squash,no_subtree_check,fsid=8)'
	echo "$SRV/late 192.0.2.0/24$options 198.51.100.0/24$options" \
		>> /etc/exports
	reload 1
}

open_to_privileged()
{
	with $1 late sh -c 'echo secure > file'
	grep secure $SRV/late/file
	rm $SRV/late/file
}

closed_to_others()
{
	refused 'denied\|permission' mount_as iwarp $SRV/late /mnt/export
	grep "port is above 1023; add 'insecure'" "$LOGS/server.log"
}

disappears()
{
	cp "$OUT/exports" /etc/exports
	reload 0
	refused 'denied\|no such' mount_as tcp $SRV/late /mnt/export
}

# A user in 20 groups.  Its calls name the first 16 of them.
in_twenty()
{
	setpriv --reuid 2020 --regid 3001 --groups "$(seq -s, 3101 3120)" "$@"
}

reads_twentieth()
{
	local status=0
	mount_as tcp $SRV/rw /mnt/export
	in_twenty cat /mnt/export/twentieth || status=$?
	umount /mnt/export
	return $status
}

has_sixteen_groups()
{
	echo secret > $SRV/rw/twentieth
	chown 0:3120 $SRV/rw/twentieth
	chmod 640 $SRV/rw/twentieth
	refused 'denied' reads_twentieth
}

# manages GROUPS: the export's option from now on.
manages()
{
	sed -i "/\/rw /s/fsid=1[a-z_,]*/fsid=1,$1/g" /etc/exports
	kill -HUP "$(server_pid)"
}

has_all_groups()
{
	echo 'twenty:x:2020:3001::/:/bin/false' >> /etc/passwd
	for g in $(seq 3101 3120); do echo "g$g:x:$g:twenty"; done >> /etc/group
	cp /etc/exports "$OUT/exports"
	manages manage_gids
	wait_for 60 reads_twentieth
	manages no_manage_gids
	wait_for 60 refused 'denied' reads_twentieth
	cp "$OUT/exports" /etc/exports
	kill -HUP "$(server_pid)"
}

for t in tcp rxe; do
	check "ro over $t" with $t ro read_only
	rm -rf "$SRV"/root_squash/*
	check "root_squash over $t" with $t root_squash root_is_nobody
	rm -rf "$SRV"/all_squash/*
	check "all_squash over $t" with $t all_squash all_are_one
	check "no_root_squash over $t" with $t rw root_is_root
done
if [ "$SERVER" = gannetd ]; then
	check 'a user in 20 groups has 16' has_sixteen_groups
	check 'with manage_gids it has all' has_all_groups
	check 'SIGHUP: a new export is there' appears
	for t in tcp rxe; do
		check "it takes privileged clients over $t" \
			open_to_privileged $t
	done
	if [ -e /sys/class/infiniband/siw0 ]; then
		check 'it refuses unprivileged ports over iwarp' \
			closed_to_others
	fi
	check 'SIGHUP: it is gone again' disappears
fi
if mountpoint -q /mnt/export; then umount -fl /mnt/export; fi
