# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# On an iWARP device each RDMA Read tells the peer where its data will go.  A
# peer that writes there later, beside it, or on another connection, loses its
# connection, and what others send at that time arrives as it was sent.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ] || [ ! -e /sys/class/infiniband/siw0 ]; then
	skip 'intruders' "it takes gannetd, and siw0"
	exit 0
fi
back=$SRV/rw/intruder
dir=/mnt/intruder
mkdir -p "$back" $dir
head -c 3000001 /dev/urandom > "$OUT/random"

# Somebody else's payload, in as many sinks as can be.
writes()
{
	for _ in 1 2 3 4 5 6; do
		timeout 300 dd if="$OUT/random" of=$dir/file bs=1M conv=fsync \
			status=none
		cmp "$OUT/random" "$back/file"
	done
}

# Each time one of its calls is answered as anybody's would be.
intrudes()
{
	for _ in 1 2 3; do
		timeout 200 "$BUILD/tests/lab/intruder" 198.51.100.1 20049
	done
}

siw_speaks iwarp
check 'mounts' mount_as siw "$back" $dir
if ! mountpoint -q $dir; then exit 0; fi
background writes writes
check 'Writes beside the sink of a Read, after it, or of another are refused' \
	intrudes
check 'what others wrote meanwhile is as they sent it' ended writes
check 'unmounts' timeout 200 umount $dir
