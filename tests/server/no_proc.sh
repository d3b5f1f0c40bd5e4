#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gannetd where there is no /proc says so and does not start.
unshare -rm true 2>/dev/null || {
	echo "skipped: may not make name spaces"; exit 77; }
gannetd=$(readlink -f ./gannetd)
out=$(unshare -rm sh -c 'mount -t tmpfs none /proc && exec "$1" --foreground \
	--no-rpcbind --rdma off --port 0 --export "mem:/a *(rw)"' \
	sh "$gannetd" 2>&1)
status=$?
echo "$out"
[ $status = 1 ] || exit 1
case $out in
*"there is no /proc, which the server needs: mount it"*) ;;
*) exit 1 ;;
esac
