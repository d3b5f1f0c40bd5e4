#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The unit is one that systemd understands, and keeps what it protects from.
set -u
unit=etc/gannetd.service	# in the build directory
command -v systemd-analyze >/dev/null || {
	echo "skipped: systemd-analyze missing (package systemd)"
	exit 77
}
failed=0
fail() { echo "$*"; failed=1; }

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# The program may not be installed.
sed "s,^\(Exec[A-Za-z]*=\)/[^ ]*/gannet\(d\|ctl\) ,\1/bin/true ," \
	"$unit" > "$dir/gannetd.service"
out=$(systemd-analyze verify --man=no "$dir/gannetd.service" 2>&1) ||
	fail "systemd-analyze verify fails"
# Other units of this machine are not the matter here.
out=$(printf '%s\n' "$out" | grep -F gannetd)
[ -z "$out" ] || fail "systemd-analyze verify: $out"

# Ten times the exposure; a unit that protects nothing has 96.
out=$(systemd-analyze security --offline=true --threshold=50 \
	"$dir/gannetd.service" 2>&1) ||
	fail "systemd-analyze security: more exposed than 5.0" "$out"
printf '%s\n' "$out" | tail -1
exit $failed
