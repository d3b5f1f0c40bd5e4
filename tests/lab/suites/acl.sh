# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# setfacl and getfacl of the kernel's client: what they say, and what the server
# has then, is the same with gannetd as with the kernel's server, on each type
# of file system; and the same over RDMA.
# shellcheck source=tests/lab/disk.sh
. "$LAB/disk.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'access control lists' "done beside gannetd"
	exit 0
fi
types=(ext4 xfs btrfs tmpfs)

made()
{
	local type image who
	for type; do
		mkdir -p "$(there "$type")"
		if [ "$type" = tmpfs ]; then
			mount -t tmpfs acl "$(there "$type")"
			continue
		fi
		image=/srv/image/acl-$type
		truncate -s 320M "$image"
		$(disk_mkfs "$type") "$image"
		mount -t "$type" -o loop "$image" "$(there "$type")"
	done
	disks_exported "$@"
	who='(rw,insecure,no_root_squash,no_subtree_check,no_acl,fsid=15)'
	echo "$(there tmpfs)/none 192.0.2.0/24$who" >> /etc/exports
	mkdir "$(there tmpfs)/none"
	kill -HUP "$(server_pid)"
	wait_for 60 disk_is_exported tmpfs/none
}

as() { setpriv --reuid 2001 --regid 3001 --clear-groups "$@"; }
lists() { say getfacl -nE "$@"; }

# In a new directory of the client.
steps()
{
	local entries=''
	umask 022
	mkdir dir
	echo text > file
	chmod 640 file
	say as cat file
	say setfacl -m u:2001:rw,g:3002:r file
	say as sh -c 'cat file; echo more >> file'
	say as setfacl -m u:2001:rwx file
	lists file
	say setfacl -m m::r file
	say as sh -c 'cat file; echo more >> file'
	say chmod 600 file
	say as cat file
	lists file
	say setfacl -d -m u:2001:rwx,g:3002:rx,o::- dir
	touch dir/new
	mkdir dir/sub
	(umask 077; touch dir/closed; mkdir dir/shut)
	ln -s ../file dir/link
	mknod dir/fifo p
	lists dir dir/new dir/sub dir/closed dir/shut dir/fifo
	say as ls dir/sub
	say setfacl -d -m u:7:rwx file
	say setfacl -k dir
	say setfacl -b file dir/new
	say setfacl -n -m g::r,m::r dir/closed
	lists dir file dir/new dir/closed
	# In a page: the kernel's server of Linux 6.1 takes no longer lists.
	entries=$(seq -s, -f 'u:%.0f:r' 10001 10300)
	say setfacl -m "$entries" file
	entries=$(seq -s, -f 'u:%.0f:r' 10001 11100)
	setfacl -m "$entries" file 2>&1 | sed 's/^/say: /'
}

# did TRANSPORT TYPE: the steps, and what the server has then, in a file of
# their name.
did()
{
	local to=$OUT/acl.$SERVER.$1.$2 name=$1-$SERVER
	mkdir "$(there "$2")/$name"
	mount_as "$1" "$(there "$2")/$name" "$(here "$2")"
	(set +e; trap - ERR; cd "$(here "$2")" && steps) > "$to"
	umount "$(here "$2")"
	(cd "$(there "$2")/$name" && find . ! -type l | LC_ALL=C sort |
		xargs getfacl -nE) > "$to.there"
	grep -q 'user:2001:rw' "$to" && ! grep -q 'not supported' "$to"
}

# At once, on file systems of their own.
all_did()
{
	local type
	for type in "${types[@]}"; do
		in_background "acl-$type" did tcp "$type"
	done
	for type in "${types[@]}"; do ended "acl-$type"; done
}

same()
{
	diff "$OUT/acl.$1" "$OUT/acl.$2"
	diff "$OUT/acl.$1.there" "$OUT/acl.$2.there"
}

# Lists are neither seen nor set, and hold.
none()
{
	local dir
	dir=$(there tmpfs)/none
	mount_as tcp "$dir" "$(here tmpfs)"
	cd "$(here tmpfs)"
	echo text > file
	chmod 600 file
	refused 'not supported' setfacl -m u:2001:r file
	setfacl -m u:2001:r "$dir/file"
	getfacl -nE file > list
	if grep 2001 list; then return 1; fi
	as cat file
	touch new
	cd /
	umount "$(here tmpfs)"
}

check "file systems with lists are exported" made "${types[@]}"
check "lists of each file system, over TCP" all_did
if [ -e /sys/class/infiniband/rxe0 ]; then
	check "lists over RDMA" did rxe tmpfs
	check "RDMA gives what TCP gives" \
		same gannetd.tcp.tmpfs gannetd.rxe.tmpfs
fi
check "no_acl: lists are not seen, and hold" none
check "the kernel's server takes over" knfsd_takes_over
SERVER=knfsd MOUNT_PORT=20048
check "lists of each file system, with the kernel's server" all_did
for type in "${types[@]}"; do
	check "$type: gannetd is as the kernel's server" \
		same "gannetd.tcp.$type" "knfsd.tcp.$type"
done
SERVER=gannetd MOUNT_PORT=2049
cp "$OUT/exports" /etc/exports
check "gannetd takes over again" gannetd_takes_over
for type in "${types[@]}"; do umount "$(there "$type")"; done
