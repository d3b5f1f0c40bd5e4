#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# tests/mutate/run finds guards, the same ones for the same seed, and its list
# of files and tests is one of files and tests.
set -u
cd "${srcdir:-.}" || exit 1
command -v python3 > /dev/null || { echo 'no python3'; exit 77; }
status=0
fail() { echo "$*"; status=1; }
list=$(tests/mutate/run --list) || exit 1

has() { grep -qE -e "$1" <<< "$list" || fail "no mutation '$1'"; }
# These four were once noticed by no test.
has '^vfs/posix/sync\.c:[0-9]+: posix_change_verf\(posix_fs_of\(n\)\); -> ;$'
has '^nlm/wait\.c:.*[ (]w->at\.start >= at->start && .*-> .* > at->start &&'
has '^nsm/list\.c:.* strcmp\(boot, n->head\.boot\) != 0\); -> .* == 0\);$'
has '^transport/socket/outbox\.c:.* \|\| o->dead\) -> if \(o->blocked\)$'

[ "$list" = "$(tests/mutate/run --list --seed=1)" ] ||
	fail 'the same seed has other mutations'
[ "$list" != "$(tests/mutate/run --list --seed=2)" ] ||
	fail 'another seed has the same mutations'
tests/mutate/run --list no/such/file.c > /dev/null 2>&1 &&
	fail 'a file that is not in the list is taken'

while read -r file tests; do
	[ -f "$file" ] || fail "targets: no $file"
	for test in $tests; do
		[ "$test" = gannetd ] || [ -f "$test.c" ] ||
			fail "targets: no $test.c"
	done
done < <(grep -v '^#' tests/mutate/targets)
exit $status
