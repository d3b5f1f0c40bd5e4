#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of the procedures once more, on real files: by the system's file
# handles and by the table.  Needs root, since callers are of many users.
[ "$(id -u)" = 0 ] || exit 77
dir=$(mktemp -d "$PWD/nfs3-posix-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
# As tests/unit/spread.h does.
chattr +T "$dir" 2>/dev/null
mknod "$dir/device" c 1 3 2>/dev/null || exit 77

status=0
suites='attr changes disk faults io names readdir pieces storm'
run() {
	for t in $suites; do
		"tests/server/test_nfs3_$t" || status=1
	done
	tests/server/test_authorization
	case $? in 0 | 77) ;; *) status=1 ;; esac
}

export GANNET_TEST_POSIX_DIR="$dir"
# Under a sanitizer the table is enough: it does more of the work itself.
[ -n "${GANNET_TESTS_ONCE-}" ] || run
export GANNET_TEST_POSIX_TABLE=1
# Threads meet in the table, whatever the call is.
[ "${GANNET_TESTS_ONCE-}" != threads ] || suites='changes disk readdir storm'
run
exit $status
