# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Locks of two client machines against the kernel's server and gannetd, step by
# step the same.
# shellcheck source=tests/lab/machines.sh
. "$LAB/machines.sh"
# shellcheck source=tests/lab/pair.sh
. "$LAB/pair.sh"
table=$BUILD/tests/lab/locktable
file=/mnt/locks/file
tested=$SERVER

excluded()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	no tries 2 posix write $file 5 1
	no tries 2 posix read $file 0 0
	tries 2 posix write $file 10 10
	release a
	wait_for 60 tries 2 posix write $file 0 10
	hold 1 a posix read $file 0 10
	wait_for 60 holds a
	tries 2 posix read $file 0 10
	no tries 2 posix write $file 0 10
	no tries 2 flock write $file
	no tries 2 ofd write $file 9 1
	release a
}

# The lock manager calls the one back that waits.
granted()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	hold 2 b posix write $file 0 10
	pause; pause; pause; pause; pause
	holds_not b
	release a
	wait_for 20 holds b
	no tries 1 posix write $file 0 10
	release b
}

# One that no longer waits gets nothing, and keeps nobody from the lock.
cancelled()
{
	local p
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	on 2 "$locker" posix write wait $file 0 10 > "$OUT/waiter" &
	pause; pause; pause; pause; pause
	p=$(pgrep -f "locker posix write wait")
	kill -9 $p
	wait_for 60 is_gone $p
	release a
	wait_for 60 tries 1 posix write $file 0 10
	wait_for 60 tries 2 posix write $file 0 10
}

# What client 1 tells after a restart.  Its statd forgets whom it has told, and
# the kernel has the server monitored once a mount: so the list is kept.
tells_of_restart()
{
	on 1 bash -ec 'cd /run/nfs; mkdir -p kept; cp -an sm/. kept
		cp -a kept/. sm; sm-notify -f -v 10.9.1.2'
}

client_restarted()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	no tries 2 posix write $file 0 10
	tells_of_restart
	wait_for 60 tries 2 posix write $file 0 10
	release a
}

# After a restart the holder has its lock again, and only then others may ask.
kept_over()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	"$@"
	no tries 2 posix write $file 0 10
	release a
	wait_for 60 tries 2 posix write $file 0 10
}

# Two processes go through the table, on both machines or on one.
on_two()
{
	on 1 "$table" "$1" $file nsenter -t "$(<"$OUT/client2")" -n -m -u
}
on_one() { on 1 "$table" "$1" $file; }

# A lock lives as long as its holder, whom nobody hears for a while.
holder_cut_off()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	cut 1
	no tries 2 posix write $file 0 10
	join 1
	no tries 2 posix write $file 0 10
	release a
	wait_for 60 tries 2 posix write $file 0 10
}

# What a client tells of its restart comes late; then it tells of an unlock of
# what it had.
client_restarted_cut_off()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	cut 1
	hold 2 b posix write $file 0 10
	tells_of_restart
	pause; pause; pause; pause; pause
	holds_not b
	join 1
	wait_for 60 holds b
	unlock_is_harmless
}

# a is no longer held, b is.
unlock_is_harmless()
{
	release a
	wait_for 60 unlocked a
	no tries 1 posix write $file 0 10
	no tries 1 posix read $file 9 1
	release b
	wait_for 60 tries 1 posix write $file 0 10
}

back_in_grace()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	cut 1
	GRACE=8 restarts
	join 1
	no tries 2 posix write $file 0 10
	release a
	wait_for 60 unlocked a
	wait_for 60 tries 2 posix write $file 0 10
}

back_too_late()
{
	hold 1 a posix write $file 0 10
	wait_for 60 holds a
	cut 1
	restarts
	hold 2 b posix write $file 0 10
	wait_for 60 holds b
	join 1
	unlock_is_harmless
}

restarts()
{
	server_stop
	server_start
	[ "$SERVER" != knfsd ] || sm-notify -f
}

dies()
{
	server_kill
	server_start
}

# Nothing of it can hold without a mount.
is_mounted() { on 1 mountpoint -q /mnt/locks; }

steps()
{
	is_mounted || return
	check "$SERVER: two clients exclude each other" excluded
	check "$SERVER: a waiter is granted the lock" granted
	check "$SERVER: a waiter that gave up has no lock" cancelled
	check "$SERVER: a client's restart ends its locks" client_restarted
	check "$SERVER: locks are kept over a restart" kept_over restarts
}

partition()
{
	is_mounted || return
	check "$SERVER: a client that is cut off keeps its lock" holder_cut_off
	check "$SERVER: one that restarts meanwhile loses it" \
		client_restarted_cut_off
	# The kernel's lock manager goes on for the clients' mounts, which are
	# this kernel's, too: a restart of its server keeps the locks.
	[ "$SERVER" = gannetd ] || return 0
	check "$SERVER: back in the grace period it has its lock" back_in_grace
	check "$SERVER: after it another has it" back_too_late
}

two_write()
{
	is_mounted || return
	check "$SERVER: the table of locks, on two clients" on_two posix
	check "$SERVER: two clients write one data base" one_database
	# What takes long is asked of the server under test alone.
	[ "$SERVER" = "$tested" ] || return 0
	check "$SERVER: the table with OFD locks" on_two ofd
	check "$SERVER: the table on one client" on_one posix
	check "$SERVER: two clients work in one git work tree" one_work_tree
}

with_server()
{
	check "$SERVER: mounts with locks" mounted vers=3,proto=tcp
	steps
	two_write
	partition
}

rdma_links()
{
	local n
	for n in 1 2; do
		on $n rdma link add siw_c$n type siw netdev eth0
		rdma link add siw_s$n type siw netdev "lock$n"
	done
}

over_rdma()
{
	if [ ! -e /sys/class/infiniband/siw_c2 ]; then
		skip "$SERVER: locks over RDMA" 'no siw here'
		return
	fi
	check "$SERVER: mounts over RDMA" mounted \
		"vers=3,proto=rdma,port=20049,mountport=$MOUNT_PORT,$(
		)mountproto=tcp"
	is_mounted || return
	T=siw
	check "$SERVER: two clients exclude each other" excluded
	check "$SERVER: a waiter is granted the lock" granted
	check "$SERVER: the table of locks, on two clients" on_two posix
	check 'unmounts' unmounted
	T=''
}

# Nothing but gannetd is needed: it is port mapper and status monitor.
alone()
{
	server_stop
	pkill -x --ns 1 --nslist net rpc.statd
	pkill -x --ns 1 --nslist net rpcbind
	server_start
}

beside_rpcbind()
{
	server_stop
	rpcbind
	server_start
}

export GRACE=5
# The kernel's grace period is that of its lock manager and that of NFSv4.
short_grace()
{
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo $GRACE > /proc/sys/fs/nfs/nlm_grace_period
	echo 10 > /proc/fs/nfsd/nfsv4leasetime
	echo 10 > /proc/fs/nfsd/nfsv4gracetime
}

check 'two clients start' clients_start
on 2 true || exit 1
[ ! -e /sys/class/infiniband/siw0 ] || check 'each link has RDMA' rdma_links
if [ "$SERVER" = gannetd ]; then
	check 'the grace period is short' short_grace
	check "the kernel's server takes over" knfsd_takes_over
else
	server_stop
	check 'the grace period is short' short_grace
	check "the kernel's server starts again" server_start
fi
# Not beside gannetd, which is the status monitor where it finds none.
check 'rpc.statd starts' statd_start
# Linux 6.12's server did not call waiters back here, nor give locks back.
if [ -z "${LAB_BACKPORTS:-}" ]; then
	SERVER=knfsd with_server
	check 'unmounts' unmounted
	SERVER=knfsd MOUNT_PORT=20048 over_rdma
fi
if [ "$SERVER" = gannetd ]; then
	check 'gannetd takes over again' gannetd_takes_over
	with_server
	check "$SERVER: locks are kept when it is killed" kept_over dies
	check 'unmounts' unmounted
	over_rdma
	check "$SERVER: without rpcbind and rpc.statd" alone
	check "$SERVER: a plain mount works" mounted ''
	is_mounted && {
		T=alone
		steps
		check "$SERVER: locks are kept when it is killed" \
			kept_over dies
		check 'unmounts' unmounted
		T=''
	}
	check "$SERVER: starts again beside rpcbind" beside_rpcbind
fi
clients_end
