#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of the procedures once more, over CephFS.
export GANNET_TEST_MODULE=modules/ceph/ceph
status=0
for t in attr changes io names readdir pieces; do
	"tests/server/test_nfs3_$t" || status=1
done
exit $status
