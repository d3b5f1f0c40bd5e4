# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# gannetd outside of the guest, on a machine without any RDMA device, serves
# this kernel's client over siw.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
dir=/mnt/native
if [ -z "${NATIVE_IWARP:-}" ]; then
	skip 'gannetd outside' "it did not start"
	exit 0
fi
if ! rdma link add siw1 type siw netdev eth0; then
	skip 'gannetd outside' "no siw device on eth0"
	exit 0
fi

# mounted TRANSPORT
mounted()
{
	siw_speaks "$1"
	mkdir -p $dir
	timeout 200 mount -t nfs -o "vers=3,nolock,proto=rdma,$(printf %s \
		"port=$NATIVE_IWARP,mountport=$NATIVE_TCP,mountproto=tcp")" \
		"10.0.2.2:$NATIVE_DIR" $dir
	mountpoint $dir
}

# What the host will look at.
written()
{
	local size
	for size in 5 4097 3145731; do
		head -c $size /dev/urandom > "$dir/$1-$size"
		(cd $dir && sha256sum "$1-$size") >> "$OUT/sums"
	done
	cp "$OUT/sums" $dir/sums
}

read_again() { forget; (cd $dir && sha256sum --quiet -c sums); }

rm -f "$OUT/sums"
for t in iwarp iwarp-crc; do
	check "$t: it is mounted" mounted $t
	mountpoint -q $dir || continue
	check "$t: files are written" written $t
	check "$t: and read" read_again
	check "$t: it unmounts" timeout 200 umount $dir
done
siw_speaks iwarp
rdma link del siw1
