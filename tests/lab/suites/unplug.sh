# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# A device is unplugged while a client works over it, and comes back.  The
# server lets it go, serves others meanwhile, and serves it again, without a
# restart.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'devices are unplugged' "it takes gannetd"
	exit 0
fi
dir=/mnt/unplug
mkdir -p $dir

says() { wait_for 60 grep -q "$1" "$OUT/server.log"; }

# write_and_read NAME: over the mount, as the server has it.
write_and_read()
{
	timeout 200 dd if="$OUT/random" of=$dir/"$1" bs=1M conv=fsync \
		status=none
	cmp "$OUT/random" "$back/$1"
	timeout 200 dd if=$dir/"$1" bs=1M iflag=direct status=none |
		cmp - "$OUT/random"
}

# The kernel returns when nobody has the device open any more.
unplugged()
{
	background unplug rdma link del "$device"
	ended unplug
	says "rdma device $device is gone"
	says "rdma device $device: all its resources are freed"
}

# Others are served, with memory that the server takes from the system now.
others_are_served()
{
	mount_as tcp "$back" $dir-tcp
	cp "$OUT/random" $dir-tcp/tcp
	cmp "$OUT/random" "$back/tcp"
	umount $dir-tcp
}

# The devices of that name that the server has opened so far.  libibverbs may
# take one that it lists again for another, after the kernel dropped its caches.
opened() { grep -c "rdma device $device: .*segments" "$OUT/server.log"; }

replugged()
{
	local before
	before=$(opened)
	rdma link add "$device" type "${device%0}" netdev "$1"
	write_and_read second
	test "$(opened)" -gt "$before"
}

head -c 3000001 /dev/urandom > "$OUT/random"
for pair in rxe:dummy1 siw:dummy2; do
	T=${pair%:*} device=${pair%:*}0 back=$SRV/rw/unplug-${pair%:*}
	if [ ! -e "/sys/class/infiniband/$device" ]; then
		skip unplugging "no $device here"
		continue
	fi
	mkdir -p "$back"
	siw_speaks "$T"
	check 'mounts' mount_as "$T" "$back" $dir
	mountpoint -q $dir || continue
	check 'files are written and read' write_and_read first
	check 'the device can be unplugged' unplugged
	check 'others are served' others_are_served
	check 'the device comes back, and so do its clients' \
		replugged "${pair#*:}"
	check 'unmounts' timeout 200 umount $dir
	rm -rf "$back"
done

# librdmacm closes no device while it finds none.
last_unplugged()
{
	[ -z "$siw" ] || rdma link del siw0
	unplugged
}

last_replugged()
{
	replugged dummy1
	[ -z "$siw" ] || rdma link add siw0 type siw netdev dummy2
}

device=rxe0 back=$SRV/rw/unplug-last siw='' T=''
[ ! -e /sys/class/infiniband/siw0 ] || siw=1
mkdir -p "$back"
check 'mounts' mount_as rxe "$back" $dir
if mountpoint -q $dir; then
	check 'files are written and read' write_and_read first
	check 'the last device can be unplugged' last_unplugged
	check 'others are served without a device' others_are_served
	check 'the last device comes back, and so do its clients' last_replugged
	check 'unmounts' timeout 200 umount $dir
fi
rm -rf "$back"
siw_speaks iwarp
