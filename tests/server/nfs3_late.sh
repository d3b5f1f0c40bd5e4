#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of the procedures once more, over a backend whose operations end
# later, or say at first that they would wait (late_vfs.h).
status=0
for how in late shy late,shy; do
	export GANNET_TEST_LATER=$how
	for t in attr changes disk faults io memory names pieces readdir storm
	do
		"tests/server/test_nfs3_$t" || status=1
	done
done
exit $status
