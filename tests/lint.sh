#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Rules of the tree that a compiler does not check.
cd "${srcdir:-.}" || exit 1
status=0
fail() { echo "$*"; status=1; }

# A directory includes only itself and those below it.
while read -r dir allowed; do
	[ -d "$dir" ] || continue
	for inc in $(grep -rhoE '^#include "[a-z0-9]+/' "$dir" \
			--include='*.[ch]' | sed 's/.*"//; s,/,,' | sort -u); do
		case " $dir $allowed " in
		*" $inc "*) ;;
		*) fail "$dir must not include $inc/" ;;
		esac
	done
done <<LAYERS
lib
transport lib
vfs lib
rpc lib transport
nfs3 lib rpc vfs
mountd lib rpc vfs
daemon lib transport vfs rpc nfs3 mountd
client lib transport
LAYERS

# Every source says what it is and under which licence.
# shellcheck disable=SC2044 # the names have no spaces
for f in $(find lib transport vfs rpc nfs3 mountd daemon client include \
		doc tests \
		-name '*.[ch]'); do
	head -1 "$f" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' ||
		fail "$f: no SPDX line"
	n=$(wc -l < "$f")
	[ "$n" -le 600 ] || fail "$f: $n lines; more than 600"
done

# The tests and functions that doc/conformance.md names are there.
names=$(grep -oE '`[a-z_0-9]+`' doc/conformance.md | tr -d '`' | sort -u)
words=$(grep -rhoE '[a-z][a-z_0-9]+' lib transport vfs rpc nfs3 mountd daemon \
		client tests --include='*.[ch]' --include='*.inc' | sort -u)
for name in $(printf '%s\n' "$names" "$words" "$words" | sort | uniq -u); do
	fail "doc/conformance.md: there is no $name"
done
exit $status
