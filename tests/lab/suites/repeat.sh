# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The duplicate request cache on an RDMA device: clients whose connections end
# under load send again what was not answered, and nothing runs twice.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
program=$BUILD/tests/server/test_dup_rdma
if [ "$SERVER" = knfsd ] || [ ! -x "$program" ]; then
	skip 'calls sent again' "it takes gannetd's tests (make check)"
	exit 0
fi

repeats() { DUP_VERBS=$(transport_address "$T") timeout 200 "$program"; }

check 'nothing that is sent again runs twice' repeats
grep -a Checks "$OUT/check" | note
