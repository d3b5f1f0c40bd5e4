#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the package's hook for logrotate(8) does: it opens the log again by a
# command that gannetctl has, and reloads nothing.
set -u
src=${srcdir:-.}
[ -e "$src/debian" ] || { echo "skipped: sources without debian/"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
fail() { echo "$*"; failed=1; }

sed -n '/^[[:space:]]*postrotate$/,/^[[:space:]]*endscript$/p' \
	"$src/debian/gannet.logrotate" | sed '1d;$d' > "$dir/hook"
[ -s "$dir/hook" ] || fail "the configuration has no hook"
# Stands for both programs, and says what it was called with.
cat > "$dir/systemctl" <<'STUB'
#!/bin/sh
echo "${0##*/} $*" >> "${0%/*}/said"
case "$*" in *is-active*) exit "$(cat "${0%/*}/active")" ;; esac
STUB
cp "$dir/systemctl" "$dir/gannetctl"
chmod +x "$dir/systemctl" "$dir/gannetctl"

# runs STATUS: the hook, where the unit has this status.
runs()
{
	echo "$1" > "$dir/active"
	: > "$dir/said"
	PATH="$dir:$PATH" sh -e "$dir/hook" || fail "the hook fails"
}
runs 0
grep -q '^gannetctl reopen$' "$dir/said" || fail "the log is not opened again"
! grep -q reload "$dir/said" || fail "it reloads: $(cat "$dir/said")"
runs 3
! grep -q gannetctl "$dir/said" || fail "it asks a server that does not run"
./gannetctl --help | grep -q '^  reopen ' || fail "gannetctl has no reopen"
exit $failed
