# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The ways to write a mount command, with rpcbind and without.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
host=192.0.2.1

# mounted HOST OPTIONS [PATH [WANTED]]: mounts, reads, unmounts; /proc/mounts
# then said every word of WANTED.
mounted()
{
	local status=0 wanted
	mkdir -p /mnt/way
	timeout 200 mount -t nfs -o "vers=3,$2" "$1:${3:-$SRV/ro}" /mnt/way ||
		return
	cat /mnt/way/file || status=1
	for wanted in ${4:-}; do
		grep ' /mnt/way ' /proc/mounts | grep -F "$wanted" || status=1
	done
	umount /mnt/way || status=1
	return $status
}

mkdir -p "$SRV/ro/sub/dir"
echo sub > "$SRV/ro/sub/dir/file"
echo space > "$SRV/with space/file"

check 'vers=3 alone, everything from rpcbind' mounted $host nolock
check 'proto=tcp' mounted $host nolock,proto=tcp
check 'mountproto=udp' mounted $host nolock,proto=tcp,mountproto=udp
check 'port and mountport, no rpcbind asked' mounted $host \
	nolock,proto=tcp,port=2049,mountport="$MOUNT_PORT"
check 'proto=rdma,port=20049' mounted $host nolock,proto=rdma,port=20049
check 'the old way to say it: rdma' mounted $host nolock,rdma,port=20049
check 'IPv6' mounted '[2001:db8:1::1]' nolock,proto=tcp6
if [ "$SERVER" = gannetd ]; then # the kernel's depends on the memory
	for t in tcp rdma; do
		port=2049; [ $t = tcp ] || port=20049
		check "the transfer size is 1 MiB over $t" mounted $host \
			nolock,proto=$t,port=$port '' \
			'rsize=1048576 wsize=1048576'
	done
fi
check 'small transfers' mounted $host nolock,rsize=4096,wsize=4096
check 'soft, and without READDIRPLUS' mounted $host nolock,soft,nordirplus
check 'a directory inside an export' mounted $host nolock "$SRV/ro/sub/dir"
check 'a path with a space' mounted $host nolock "$SRV/with space"
check 'a path that is not there is refused' \
	refused 'no such file' mounted $host nolock "$SRV/ro/none"
check 'a path that is not exported is refused' \
	refused 'access denied\|no such file' mounted $host nolock /etc
check 'an export of others is refused' \
	refused 'access denied' mounted $host nolock "$SRV/denied"
if [ "$SERVER" = gannetd ]; then
	check 'NFSv4 is refused at once' refused 'not supported\|denied' \
		timeout 100 mount -t nfs -o vers=4.2,proto=tcp,port=2049 \
		"$host:$SRV/ro" /mnt/way
fi
