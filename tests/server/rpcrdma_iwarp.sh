#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of RPC-over-RDMA once more, over the iWARP fabric.
status=0
# A peer may have what is sent before sendmsg() returns, and both ends are in
# one process: ThreadSanitizer takes that for a race with the call's reading.
TSAN_OPTIONS="$TSAN_OPTIONS intercept_send=0"
export TSAN_OPTIONS
for how in iwarp iwarp,crc,fpdu=1448 iwarp,fpdu=128,rtr=write; do
	for t in rpcrdma rpcrdma_reply rpcrdma_flow rpcrdma_memory \
		 rpcrdma_faults rpcrdma_client; do
		RIG_FABRIC=$how ./tests/server/test_$t >rpcrdma_iwarp.log \
			2>&1 && continue
		echo "test_$t over $how failed:"
		cat rpcrdma_iwarp.log
		status=1
	done
done
rm -f rpcrdma_iwarp.log
exit $status
