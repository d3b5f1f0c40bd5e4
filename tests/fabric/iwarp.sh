#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What fabric.h promises, asked of the iWARP provider in all its ways.
pair=./tests/fabric/fabric_pair
status=0
# A peer may have what is sent before sendmsg() returns, and both ends are in
# one process: ThreadSanitizer takes that for a race with the call's reading.
TSAN_OPTIONS="$TSAN_OPTIONS intercept_send=0"
export TSAN_OPTIONS
hows=',crc ,fpdu=136 ,fpdu=136,crc ,fpdu=1448 ,fpdu=1448,crc ,fpdu=64772
	,fpdu=64772,crc ,rtr=write ,rtr=read,crc ,rev=1 ,rev=1,crc'
# A sanitizer has seen the steps of all then.
[ -z "${GANNET_TESTS_ONCE-}" ] || hows=',fpdu=136,crc ,rtr=write ,rev=1'
for how in '' $hows; do
	"$pair" "iwarp$how" 127.0.0.1 >/dev/null 2>iwarp_pair.log && continue
	echo "iwarp$how failed:"
	cat iwarp_pair.log
	status=1
done
if [ -e /proc/net/if_inet6 ]; then
	"$pair" iwarp ::1 >/dev/null 2>iwarp_pair.log || {
		echo "iwarp over IPv6 failed:"; cat iwarp_pair.log; status=1; }
fi
rm -f iwarp_pair.log
exit $status
