# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by suites: two client machines, which are name spaces here, each with
# a link of its own to the server, its own rpcbind, rpc.statd and lock manager.
# What the server exports to them, at /mnt/locks there, is $SRV/rw/locks.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
locker=$BUILD/tests/lab/locker
back=$SRV/rw/locks
mkdir -p "$back"
chmod 777 "$back"

# on CLIENT COMMAND...: runs it on that machine.
on()
{
	local p
	p=$(<"$OUT/client$1"); shift
	nsenter -t "$p" -n -m -u "$@"
}

in_own_space()
{
	[ "$(readlink "/proc/$1/ns/uts")" != "$(readlink /proc/self/ns/uts)" ]
}

# A machine with a link of its own to the server.
client_start()
{
	local n=$1 p
	unshare -n -m -u sleep 3600 &
	p=$!
	disown
	echo $p > "$OUT/client$n"
	wait_for 20 in_own_space $p
	ip link add "lock$n" type veth peer name eth0 netns "$p"
	ip addr add "10.9.$n.1/24" dev "lock$n"
	ip link set "lock$n" up
	on "$n" bash -e <<-INSIDE
		ip link set lo up
		ip addr add 10.9.$n.2/24 dev eth0
		ip link set eth0 up
		hostname c$n
		mount --make-rprivate /
		mount -t tmpfs run /run
		mkdir -p /run/rpcbind /run/lock /run/nfs/sm /run/nfs/sm.bak
		printf '\001\000\000\000' > /run/nfs/state
		chown -R statd /run/nfs
		mount --bind /run/nfs /var/lib/nfs
		rpcbind -w
		rpc.statd
		mkdir -p /mnt/locks
	INSIDE
}

clients_start()
{
	printf '127.0.0.1 localhost lab\n10.9.1.2 c1\n10.9.2.2 c2\n' \
		> /etc/hosts
	client_start 1
	client_start 2
	sed -i "s|^$SRV/rw |&10.9.0.0/16(insecure,sec=sys,$(
		)no_subtree_check,rw,no_root_squash,fsid=1) |" /etc/exports
	[ "$SERVER" != knfsd ] || exportfs -ra
}

statd_start()
{
	mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak
	printf '\001\000\000\000' > /var/lib/nfs/state
	chown -R statd /var/lib/nfs/{sm,sm.bak,state}
	rpc.statd -p 32765 -o 32766
}

clients_end()
{
	local n
	for n in 1 2; do kill "$(<"$OUT/client$n")"; done
}

# cut CLIENT: nothing goes to it or comes from it, until join CLIENT.
cut() { ip link set "lock$1" down; }
join() { ip link set "lock$1" up; }

# mounted OPTIONS: on both, and locks are the server's.
mounted()
{
	local n
	for n in 1 2; do
		on $n timeout 200 mount -t nfs ${1:+-o "$1"} \
			"10.9.$n.1:$back" /mnt/locks
		on $n grep ' /mnt/locks .*local_lock=none' /proc/mounts
	done
}

unmounted()
{
	local n
	for n in 1 2; do on $n timeout 200 umount /mnt/locks; done
}

# hold CLIENT NAME ARGUMENT...: in the background, until release NAME.
hold()
{
	local n=$1 name=$2 in; shift 2
	rm -f "$OUT/$name".{fifo,out}
	mkfifo "$OUT/$name.fifo"
	on "$n" "$locker" "${@:1:2}" hold "${@:3}" < "$OUT/$name.fifo" \
		> "$OUT/$name.out" 2>&1 &
	exec {in}> "$OUT/$name.fifo"
	eval "held_$name=$in"
}

holds() { grep -qx locked "$OUT/$1.out"; }
holds_not() { ! holds "$1"; }
unlocked() { grep -qx unlocked "$OUT/$1.out"; }

# Others may have the other end of the pipe, too: a byte tells.
release()
{
	local in=held_$1
	echo >&"${!in}"
}

tries() { on "$1" "$locker" "${@:2:2}" try "${@:4}"; }
no() { refused 'EAGAIN' "$@"; }
