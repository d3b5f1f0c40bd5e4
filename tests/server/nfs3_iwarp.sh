#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of the procedures once more, every call and reply over iWARP.
status=0
# The server's own end is in the test's process; see rpcrdma_iwarp.sh.
TSAN_OPTIONS="$TSAN_OPTIONS intercept_send=0"
export TSAN_OPTIONS
run()
{
	HARNESS_FABRIC=$1; shift
	export HARNESS_FABRIC
	for t; do
		"tests/server/test_nfs3_$t" && continue
		echo "test_nfs3_$t over $HARNESS_FABRIC failed"
		status=1
	done
}

# A sanitizer looks at steps, which are the same for frames of any size, and for
# calls and replies of a kind: inline, long, with each sort of chunk.
if [ -n "${GANNET_TESTS_ONCE-}" ]; then
	run iwarp,crc,fpdu=1448 io names readdir pieces storm
	exit $status
fi
run iwarp attr changes faults io names readdir pieces storm
run iwarp,crc,fpdu=1448 attr changes io readdir
run iwarp,fpdu=136 attr io names
run iwarp,crc,fpdu=64772 io readdir
exit $status
