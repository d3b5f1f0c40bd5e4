# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240
# Every check of fscheck: objects, names, directories, data, permissions.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
fscheck()
{
	chmod 755 "$BACK"
	"$BUILD/tests/lab/fscheck/fscheck" "$MNT" "$BACK" "$@" |
		sed -E "s/^(ok|not ok) - /&$T $SUITE: /"
	local status=${PIPESTATUS[0]}
	[ "$status" -lt 2 ] || not_ok "fscheck runs to its end ($status)"
}
fscheck tree names dirs io sharing perm
exit 0
