# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The groups of fscheck that depend on how a message travels.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
"$BUILD/tests/lab/fscheck/fscheck" "$MNT" "$BACK" tree io sharing |
	sed -E "s/^(ok|not ok) - /&$T $SUITE: /"
[ "${PIPESTATUS[0]}" -lt 2 ] || not_ok "fscheck runs to its end"
