#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of RPC-over-RDMA once more, over the iWARP fabric.
# A peer may have what is sent before sendmsg() returns, and both ends are in
# one process: ThreadSanitizer takes that for a race with the call's reading.
TSAN_OPTIONS="$TSAN_OPTIONS intercept_send=0"
export TSAN_OPTIONS

# over HOW
over()
{
	log=rpcrdma_iwarp.$1.log
	status=0
	for t in rpcrdma rpcrdma_lists rpcrdma_reply rpcrdma_flow \
		 rpcrdma_credits \
		 rpcrdma_memory rpcrdma_faults rpcrdma_client \
		 rpcrdma_expose rpcrdma_fetch rpcrdma_padded rpcrdma_regions \
		 rpcrdma_polled rpcrdma_cancel rpcrdma_clients; do
		RIG_FABRIC=$1 ./tests/server/test_$t >"$log" 2>&1 && continue
		echo "test_$t over $1 failed:"
		cat "$log"
		status=1
	done
	rm -f "$log"
	return $status
}

# At once, since they wait for most of the time.
failed=0
pids=
hows='iwarp iwarp,crc,fpdu=1448 iwarp,fpdu=136,rtr=write'
# A sanitizer has seen the steps of all then.
[ -z "${GANNET_TESTS_ONCE-}" ] || hows=iwarp,crc,fpdu=136,rtr=write
for how in $hows; do
	over $how &
	pids="$pids $!"
done
for pid in $pids; do
	wait "$pid" || failed=1
done
exit $failed
