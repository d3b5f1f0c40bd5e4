# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# File systems below an export, seen by the kernel's client: mounted ones with
# crossmnt and nohide and without, and subvolumes and snapshots of btrfs.  With
# gannetd it sees what it sees with the kernel's server, over TCP and RDMA; and
# they come and go on the server while it works there.
# shellcheck source=tests/lab/disk.sh
. "$LAB/disk.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'file systems below an export' "done beside gannetd"
	exit 0
fi
top=$SRV/tree bare=$SRV/bare plain=$SRV/plain
seen=/mnt/tree
children=(named disk btr btr/sub btr/snap)

# disk TYPE DIR: a new one, mounted there.
disk()
{
	local image=/srv/image/${2##*/}
	mkdir -p "$2"
	truncate -s 320M "$image"
	$(disk_mkfs "$1") "$image"
	mount -o loop "$image" "$2"
}

# in_btrfs DIR: a subvolume and a snapshot of it.
in_btrfs()
{
	btrfs -q subvolume create "$1/sub"
	echo "$1/sub" > "$1/sub/seed"
	btrfs -q subvolume snapshot "$1/sub" "$1/snap"
	echo more >> "$1/sub/seed"
}

# export_line DIR OPTIONS
export_line()
{
	local all=rw,insecure,no_root_squash,no_subtree_check
	echo "$1 192.0.2.0/24($all,$2)" >> /etc/exports
}
is_listed() { showmount -e --no-headers 192.0.2.1 | grep "^$1 "; }

made()
{
	local child
	mkdir -p "$top"/{named,tmp} "$plain"/{hidden,below}/low/deep
	echo under the mount | tee "$plain"/{hidden,below}/{,low/deep/}under
	chmod 700 "$plain/hidden/low"
	disk ext4 "$top/disk"
	disk btrfs "$top/btr"
	disk btrfs "$bare"
	in_btrfs "$top/btr"
	in_btrfs "$bare"
	for child in "$top/named" "$plain"/{hidden,below}; do
		mount -t tmpfs -o size=16M tree "$child"
	done
	for child in . named disk btr; do
		echo "$child" > "$top/$child/seed"
	done
	mkdir "$top/inside"
	echo seed | tee "$plain"/{hidden,below}/seed
	cp /etc/exports "$OUT/exports"
	# The kernel's server has no number of its own for a tmpfs.
	export_line "$top" fsid=21,crossmnt
	export_line "$top/named" fsid=22,nohide
	export_line "$bare" fsid=23
	export_line "$plain" fsid=24
	export_line "$plain/below" fsid=25
	kill -HUP "$(server_pid)"
	wait_for 60 is_listed "$plain/below"
}

list() { say ls -lnA --time-style=+ "$@"; }
number_of_devices() { stat -c %d "$@" | sort -u | wc -l; }
# Without subvolumes, which the kernel's server says are loops.
all()
{
	echo "\$ all $*"
	find . "$@" -path '*/s[un]*' -prune -o -printf '%p %y %m %n %s\n' \
		2>/dev/null | LC_ALL=C sort
}

# In a mount that has seen nothing yet: mount points that nobody was in.  (The
# kernel's server says EIO, and warns in its log, when one is renamed.)
first_steps()
{
	list
	say ls -ai
	say rmdir disk
	say mv btr/sub btr/elsewhere
	say mv btr/elsewhere btr/sub
	say rmdir btr/snap
	list disk btr
}

steps()
{
	local child
	first_steps
	say number_of_devices . named/. disk/. btr/.
	for child in "${children[@]}"; do
		say cat "$child/seed"
		say sh -c "echo new > $child/new; cat $child/new"
		say mkdir "$child/dir"
		say df --output=size "$child/."
		say sh -c "cd $child/dir && ls -A .. ../.. && cat ../../seed"
	done
	list . "${children[@]}"
	say ls -ai
	all
	all -xdev
	say ln seed disk/link
	say ln btr/seed btr/sub/link
	echo moved > inside/moved
	for child in disk/moved btr/sub/moved named/moved inside/moved; do
		say mv inside/moved "$child"
		say mv "$child" inside/moved
	done
	say mv btr/sub/dir disk/moved
	say mv disk/moved btr/sub/dir
	say rmdir disk
	say rm inside/moved
	for child in "${children[@]}"; do say rm -r "$child"/{new,dir}; done
	say cat "${children[@]/%//seed}"
}

# Without crossmnt: the directories below the mounts; subvolumes are there.
steps_without()
{
	local child
	say ls -lRnA --time-style=+
	say ls -aiR
	all
	for child in hidden below; do
		say cat $child/{seed,under,low/deep/under}
		say sh -c "cd $child/low/deep && ls -A .. ../.. ../../.."
		say sh -c "echo new > $child/new; cat $child/new"
		say mkdir $child/dir
		say mv $child/new moved
		say mv moved $child/dir/moved
		say ln $child/dir/moved link
		say rmdir $child
		list . $child $child/dir
		say rm -r link $child/dir
	done
}
steps_bare()
{
	list
	say cat sub/seed snap/seed
	say cp sub/seed snap/copy
	all
	say rm snap/copy
}

# seen_as TRANSPORT DIR COMMAND: in a mount of DIR.
seen_as()
{
	local status=0
	mount_as "$1" "$2" "$seen"
	(set +e; trap - ERR; cd "$seen" && $3) || status=$?
	umount -R "$seen"
	return $status
}

# did TRANSPORT: the steps, in a file of its name.
did()
{
	local to=$OUT/tree.$SERVER.$1
	{
		seen_as "$1" "$top" steps
		seen_as "$1" "$plain" steps_without
		# The kernel's server, too, keeps what it does not enter.
		umount -l "$plain/hidden"
		seen_as "$1" "$plain" steps_without
		mount -t tmpfs -o size=16M tree "$plain/hidden"
		echo seed > "$plain/hidden/seed"
		seen_as "$1" "$bare" steps_bare
		showmount -e --no-headers 192.0.2.1 | LC_ALL=C sort |
			grep "^$top\|^$bare\|^$plain"
	} > "$to"
	grep -c . "$to"
	if grep -e '???' "$to"; then return 1; fi
	grep -A1 'number_of_devices' "$to" | grep -x 4
	grep -x 'new' "$to"
}
same() { diff "$OUT/tree.$1" "$OUT/tree.$2"; }

# With the kernel's server, subvolumes have the number of the file system.
subvolumes_have_numbers()
{
	local number status=0
	mount_as tcp "$bare" "$seen"
	number=$(number_of_devices "$seen"/{.,sub/.,snap/.})
	find "$seen" || status=$?
	umount -R "$seen"
	test "$number-$status" = 3-0
}

kib() { df --output=size "$1" | tail -1; }

# The client counts in units of a MiB.
sizes_are_the_childs()
{
	local child more
	mount_as tcp "$top" "$seen" actimeo=1
	for child in . "${children[@]}"; do
		more=$(($(kib "$seen/$child/.") - $(kib "$top/$child/.")))
		echo "$child: $more"
		test $more -ge 0
		test $more -lt 1024
	done
}

# ---- they come and go, while the client stays

# reads DIR: when it may have been mounted anew.  The client asks for a mount
# point again when the directory around it has changed.
reads()
{
	touch "$(dirname "$top/$1")"
	wait_for 60 cat "$seen/$1/seed"
}

appears()
{
	ls -l "$seen"
	ls "$seen/tmp"
	mount -t tmpfs -o size=8M tree "$top/tmp"
	echo tmpfs > "$top/tmp/seed"
	reads tmp
	test "$(number_of_devices "$seen/." "$seen/tmp/.")" = 2
	echo text > "$seen/tmp/text"
	grep text "$top/tmp/text"
}

holds_over_a_restart()
{
	exec 5< "$seen/disk/seed" 6< "$seen/btr/snap/seed" \
		7< "$seen/tmp/seed"
	server_stop
	server_start 5<&- 6<&- 7<&-
	forget
	grep disk <&5
	grep sub <&6
	grep tmpfs <&7
}

# Writes to one open file until it is told of an error, or to stop.
writes()
{
	while [ ! -e "$OUT/tree.stop" ] && echo line; do :; done |
		dd of="$1" oflag=sync
}
has_grown() { [ "$(stat -c %s "$1")" -gt "$2" ]; }
loop_is_gone() { [ -z "$(losetup -j "$1")" ]; }

# works NAME: a writer there makes progress.
works()
{
	in_background "tree-$1" writes "$seen/$1/log"
	wait_for 60 has_grown "$top/$1/log" 5000
}

# The client tells it of the file that is open, and has the directory below
# where it looks again.
goes_under_load()
{
	works disk
	works named
	refused busy umount "$top/disk"
	umount -l "$top/disk"
	wait_for 60 test -s "$OUT/tree-disk.status"
	grep -i stale "$OUT/tree-disk.out"
	refused 'stale\|no such' cat "$seen/disk/seed"
	wait_for 60 loop_is_gone /srv/image/disk
	ls -l "$seen" > "$OUT/tree.list"
	if grep -e '???' "$OUT/tree.list"; then return 1; fi
	wait_for 60 has_grown "$top/named/log" \
		"$(stat -c %s "$top/named/log")"
}

comes_back()
{
	mount -o loop /srv/image/disk "$top/disk"
	reads disk
	works disk
	test "$(number_of_devices "$seen/." "$seen/disk/.")" = 2
}

unmounted() { kill -HUP "$(server_pid)"; umount "$top/disk"; }

is_let_go()
{
	touch "$OUT/tree.stop"
	ended tree-disk
	ended tree-named
	wait_for 25 unmounted
	refused 'stale\|no such' cat "$seen/disk/seed"
	mount -o loop /srv/image/disk "$top/disk"
	reads disk
}

# As snapshots are rotated.
snapshot_is_replaced()
{
	cat "$seen/btr/snap/seed"
	btrfs -q subvolume delete "$top/btr/snap"
	btrfs -q subvolume snapshot "$top/btr/sub" "$top/btr/snap"
	wait_for 90 grep more "$seen/btr/snap/seed"
}

check "file systems below an export" made
check "the client's steps, over TCP" did tcp
if [ -e /sys/class/infiniband/rxe0 ]; then
	check "the client's steps, over RDMA" did rxe
	check "RDMA gives what TCP gives" same gannetd.rxe gannetd.tcp
fi
check "the kernel's server takes over" knfsd_takes_over
SERVER=knfsd MOUNT_PORT=20048
check "the client's steps, with the kernel's server" did tcp
SERVER=gannetd MOUNT_PORT=2049
check "gannetd takes over again" gannetd_takes_over
check "gannetd is as the kernel's server" same knfsd.tcp gannetd.tcp
check "subvolumes have numbers of their own" subvolumes_have_numbers
check "df in a child shows the child" sizes_are_the_childs
check "a file system appears when it is mounted" appears
check "files in children stay open over restarts" holds_over_a_restart
check "unmounted under load, it is stale, and closed" goes_under_load
check "mounted again, it is back" comes_back
check "nobody uses it: it can be unmounted, and is back" is_let_go
check "a snapshot is replaced by a new one" snapshot_is_replaced
umount -R "$seen"
cp "$OUT/exports" /etc/exports
kill -HUP "$(server_pid)"
is_unlisted() { ! is_listed "$1"; }
wait_for 60 is_unlisted "$top"
umount -R "$top"/{disk,btr,named,tmp} "$plain"/{hidden,below} "$bare"
