#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What is installed was built so that a mistake of ours ends the process rather
# than to be used by others: read from the files themselves.
command -v readelf >/dev/null || { echo "SKIP: no readelf"; exit 77; }
status=0
fail() { echo "$*"; status=1; }

for f in gannetd gannet-nfs libgannet-rpcrdma.so.0; do
	[ -e "$f" ] || { fail "$f was not built"; continue; }
	all=$(readelf -hldsW "$f" 2>&1)
	has()
	{
		printf '%s\n' "$all" | grep -qE "$1" || fail "$f: no $2"
	}
	# A program says that it is one; any shared object is independent of
	# its position.
	case $f in
	*.so.*) has 'Type: +DYN' 'position independence' ;;
	*) has 'FLAGS_1.* PIE' 'position independence' ;;
	esac
	has ' GNU_RELRO ' 'read-only relocations'
	has 'BIND_NOW|FLAGS_1.* NOW' 'binding at start'
	has ' GNU_STACK .* RW ' 'stack that is not executable'
	has '__stack_chk_fail' 'stack protector'
	has '__(memcpy|snprintf|vsnprintf|fprintf|asprintf|printf)_chk' \
		'checked string functions'
	printf '%s\n' "$all" | grep -qE ' (RPATH|RUNPATH)|TEXTREL' &&
		fail "$f: a path of its own, or relocated text"
	printf '%s\n' "$all" | grep -qE ' LOAD .* RWE ' &&
		fail "$f: memory that is written to and executed"
done
exit $status
