# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests/lab/move: nodes on one link, which are name spaces here, each
# with its own address, rpcbind and keepalived.  Node N has the address
# 192.0.2.1N and the hardware address 02:00:00:00:00:0N, so a client can tell
# which one has an address that moves.  $keepalived is the directory below which
# that is.
work=${work:?} logs=${logs:?} build=${build:?} src=${src:?}
keepalived=${keepalived?}

# The link: this end has 192.0.2.1, and the guest has its device tap0.
link_make()
{
	ip link set lo up
	ip link add lab type bridge
	ip link set lab address 02:00:00:00:00:f0
	ip addr add 192.0.2.1/24 dev lab
	ip link set lab up
	ip tuntap add tap0 mode tap
	ip link set tap0 master lab up
}

# until_so COMMAND...: for two minutes.
until_so()
{
	local i
	for ((i = 0; i < 1200; i++)); do
		"$@" && return
		sleep 0.1
	done
	echo "not ok - lab: not so after two minutes: $*"
	return 1
}

# Its first process, which takes all others along.
first_of() { pgrep -P "$(cat "$work/node$1")"; }

# on NODE COMMAND...
on()
{
	local p
	p=$(first_of "$1"); shift
	nsenter -t "$p" -n -m -u -p "$@"
}

# There are other directories for what a node has of its own; scripts that
# keepalived starts have to belong to root.
node_furnish()
{
	local n=$1
	on "$n" bash -e <<-INSIDE
		ip link set lo up
		ip link set eth0 address 02:00:00:00:00:0$n
		ip addr add 192.0.2.1$n/24 dev eth0
		ip link set eth0 up
		hostname node$n
		mount -t tmpfs -o mode=755 run /run
		mkdir -p /run/rpcbind /run/lock /run/gannet
		mount -t tmpfs -o mode=755 bin /usr/local/sbin
		cp "$src/etc/keepalived/gannet-notify" \
			"$src/tests/lab/systemctl" /usr/local/sbin
		rpcbind -w
	INSIDE
	printf '%s=%q\n' SRC "$src" BUILD "$build" DISK "$work/disk$n" \
		LOG "$logs" CEPH_CONF "$CEPH_CONF" | on "$n" tee /run/lab \
		> /dev/null
}

# A node starts; whether it has been there before makes no difference.
node_start()
{
	local n=$1
	unshare -n -m -u -p --fork --kill-child --mount-proc \
		bash -c 'sleep infinity & while :; do wait; done' \
		> /dev/null 2>&1 </dev/null &
	echo $! > "$work/node$n"
	disown
	until_so first_of "$n" > /dev/null
	until_so on "$n" [ -e /proc/1/comm ]
	ip link add "node$n" type veth peer name eth0 netns "$(first_of "$n")"
	ip link set "node$n" master lab up
	node_furnish "$n"
}

# The settings of etc/keepalived's unit for a server: node_serves NODE NAME
# ADDRESS
node_serves()
{
	local clients='192.0.2.0/24(rw,insecure,no_root_squash)'
	mkdir -p "$work/disk$1/$2"
	on "$1" tee "/run/gannet/$2.conf" > /dev/null <<-CONF
		[server]
		bind = $3
		grace = 20
		[rdma]
		mode = iwarp
		[exports]
		backend-dir = $build/modules/ceph
		backend = ceph
		export = ceph,grace=25:/ $clients
	CONF
}

# keepalived of a node, with the example's settings but for the priority.
node_keepalived()
{
	local n=$1 set=()
	sed "s/priority .*/priority $((110 - 10 * n))/" \
		"$src/etc/keepalived/keepalived.conf" |
		on "$n" tee /run/keepalived.conf > /dev/null
	set=(PATH="/usr/local/sbin:$PATH")
	[ -z "$keepalived" ] ||
		set+=(LD_LIBRARY_PATH="$(echo "$keepalived"/usr/lib/*-*)")
	# A shell in its place would keep the lab's output open.
	exec nsenter -t "$(first_of "$n")" -n -m -u -p env "${set[@]}" \
		setsid "$keepalived/usr/sbin/keepalived" -n -P -l -D \
		-f /run/keepalived.conf -p /run/keepalived.pid \
		-r /run/keepalived_vrrp.pid >> "$logs/keepalived$n.log" \
		2>&1 </dev/null &
	disown
}

has_address() { on "$1" ip -br addr show to "$2" | grep -q .; }

# node_silent NODE, node_heard NODE: nothing goes to it or comes from it; it
# doesn't see that.
node_silent() { bridge link set dev "node$1" state 0; }
node_heard() { bridge link set dev "node$1" state 3; }

# Power is lost: nobody is told.
node_die()
{
	local p
	p=$(cat "$work/node$1")
	node_silent "$1"
	kill -9 "$p"
	while kill -0 "$p" 2>/dev/null; do sleep 0.1; done
	ip link del "node$1" 2>/dev/null || true
}

# State directories are on storage that the first two nodes share.
disk_make()
{
	local n
	mkdir "$work/shared" "$work/disk3"
	for n in 1 2; do ln -s shared "$work/disk$n"; done
}

# disk_splits NODE OTHER: the other has a copy, of which nobody has a file open.
disk_splits()
{
	rm -rf "$work/disk$2"
	cp -a "$work/disk$1/." "$work/disk$2"
}

# disk_joins NODE OTHER: the other's is that of both.
disk_joins()
{
	rm -rf "$work/shared"
	mv "$work/disk$2" "$work/shared"
	rm -f "$work/disk$1"
	ln -s shared "$work/disk$1"
	ln -s shared "$work/disk$2"
}
