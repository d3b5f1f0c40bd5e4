#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The figures in doc/performance.md are of a server not much older than this
# one: few commits have changed what a call passes since the commit they name.
# "make bench-report" makes them anew, on a machine that does nothing else; then
# this bound can be lowered.
most=300
paths=(nfs3 rpc wire exports lib transport/stream transport/socket vfs/posix)

skip() { echo "skipped: $*"; exit 77; }
cd "${srcdir:-.}" || exit 1
git rev-parse --git-dir > /dev/null 2>&1 || skip "no git repository here"
named=$(sed -n '1,/^## /s/.*commit `\([0-9a-f]*\)`.*/\1/p' doc/performance.md)
[ -n "$named" ] || {
	echo "not ok - doc/performance.md names no commit"
	exit 1
}
git cat-file -e "$named^{commit}" 2> /dev/null ||
	skip "commit $named is not in this clone"
since=$(git rev-list --count "$named..HEAD" -- "${paths[@]}") || exit 1
echo "$since commits to ${paths[*]} since the figures of $named"
[ "$since" -le "$most" ] || {
	echo "not ok - more than $most: make bench-report"
	exit 1
}
