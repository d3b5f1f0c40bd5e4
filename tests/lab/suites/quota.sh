# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# quota(1) on a client says the same of gannetd's exports as of those of the
# kernel's server and rpc.rquotad: of users and groups, on XFS and on an ext4
# that is mounted below it.
# shellcheck source=tests/lab/disk.sh
. "$LAB/disk.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'quotas' "done beside gannetd"
	exit 0
fi
top=$(there xfs) seen=$(here xfs)

as() { setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"; }

made()
{
	local dir options=rw,insecure,no_subtree_check,no_root_squash
	options+=,crossmnt,fsid=31
	mkdir -p "$top"
	truncate -s 320M /srv/image/quota-{xfs,ext4}
	mkfs.xfs -q -f -K /srv/image/quota-xfs
	mke2fs -q -F -t ext4 -O quota /srv/image/quota-ext4
	mount -o loop,uquota,gquota /srv/image/quota-xfs "$top"
	mkdir "$top/ext4"
	mount -o loop,usrquota,grpquota /srv/image/quota-ext4 "$top/ext4"
	for dir in "$top" "$top/ext4"; do
		chmod 777 "$dir"
		# The days that are left do not change while both look.
		setquota -t -u 907200 907200 "$dir"
		setquota -t -g 907200 907200 "$dir"
		setquota -u 2001 1000 2000 10 20 "$dir"
		setquota -g 3001 500 5000000000 0 9 "$dir"
		as 2001 3001 dd if=/dev/zero of="$dir/over" bs=1k count=1500
		as 2002 3002 dd if=/dev/zero of="$dir/free" bs=4k count=3
	done
	sync
	cp /etc/exports "$OUT/exports"
	echo "$top 192.0.2.0/24($options)" >> /etc/exports
	kill -HUP "$(server_pid)"
	wait_for 60 disk_is_exported xfs
}

answers()
{
	local version
	for version in 1 2; do
		rpcinfo -T tcp 192.0.2.1 rquotad $version
		rpcinfo -T udp 192.0.2.1 rquotad $version
	done
}

# 2001 is over its limit, 2002 has none, 2003 has no file.
did()
{
	local both=("--filesystem=$seen" "--filesystem=$seen/ext4")
	local to=$OUT/quota.$SERVER
	mount_as tcp "$top" "$seen"
	ls "$seen/ext4" > /dev/null
	{
		say quota -w -v "${both[@]}" -u 2001 2002 2003
		say quota -w -v "${both[@]}" -g 3001 3002
		say as 2001 3001 quota -w -v -f "$seen" "$seen/ext4"
	} > "$to"
	umount -R "$seen"
	cat "$to"
	test "$(grep -c ' 1500\* .* 1[01]days ' "$to")" = 6
	test "$(grep -c ' 12  *0  *0 ' "$to")" = 4
	test "$(grep -c ' 0  *0  *0  *0  *0 ' "$to")" = 2
}

check "file systems with quotas are exported" made
check "rquota answers over TCP and UDP" answers
check "quota on a client" did
check "the kernel's server takes over" knfsd_takes_over
SERVER=knfsd MOUNT_PORT=20048
background rquotad rpc.rquotad -F
check "rpc.rquotad answers" wait_for 60 answers
check "quota on a client, with the kernel's server" did
pkill -x rpc.rquotad
SERVER=gannetd MOUNT_PORT=2049
check "gannetd is as rpc.rquotad" \
	diff "$OUT/quota.knfsd" "$OUT/quota.gannetd"
check "gannetd takes over again" gannetd_takes_over
cp "$OUT/exports" /etc/exports
kill -HUP "$(server_pid)"
wait_for 60 umount -R "$top"
