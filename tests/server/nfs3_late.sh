#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The tests of the procedures once more, over a backend whose operations end
# later, or say at first that they would wait (late_vfs.h).
status=0

# over HOW TEST...
over()
{
	export GANNET_TEST_LATER="$1"
	shift
	for t; do
		"tests/server/test_nfs3_$t" || status=1
	done
}

hows='late shy'
# A sanitizer has seen the steps of both then.
[ -z "${GANNET_TESTS_ONCE-}" ] || hows=late,shy
# Each operation ends by the same threads.
if [ "${GANNET_TESTS_ONCE-}" = threads ]; then
	over $hows changes disk io storm
	exit $status
fi
for how in $hows; do
	over $how attr changes disk faults io memory names pieces readdir storm
	GANNET_TEST_LATER=$how tests/server/test_nfsacl
	case $? in 0 | 77) ;; *) status=1 ;; esac
done
[ -n "${GANNET_TESTS_ONCE-}" ] || over late,shy changes io names pieces
exit $status
