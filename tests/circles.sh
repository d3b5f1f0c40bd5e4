#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# No two files of rpc/, nor of transport/, need each other, directly or by
# others.  nm tells what each object file needs.
command -v nm >/dev/null || { echo "SKIP: no nm"; exit 77; }
status=0

# circles DIR: prints the object files of DIR that need each other.
circles()
{
	find "$1" -name "lib*_a-*.o" -exec nm -A {} + | awk -F '[: ]+' '
		$(NF - 1) ~ /[TDBRC]/ { home[$NF] = $1 }
		$(NF - 1) == "U" { needs[$1, $NF] }
		END {
			for (n in needs) {
				split(n, pair, SUBSEP)
				to = home[pair[2]]
				if (to != "" && to != pair[1])
					print pair[1], to
			}
		}' | tsort 2>&1 >/dev/null | sed 's/^tsort: -*:* *//'
}

for dir in rpc transport; do
	[ -n "$(find $dir -name "lib*_a-*.o")" ] ||
		{ echo "$dir has no objects"; status=1; }
	found=$(circles $dir)
	[ -z "$found" ] || { printf '%s\n' "$found"; status=1; }
done
exit $status
