#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The probes in the program are those of doc/tracing.md, with as many arguments
# each, and the scripts of etc/bpftrace use no others.
set -u
command -v readelf >/dev/null || { echo "skipped: no readelf"; exit 77; }
if grep -qx '#define HAVE_SDT 0' config.h; then
	echo "skipped: built without sys/sdt.h"
	exit 77
fi

# "NAME ARGUMENTS" of each note; a probe may be in several places.
there=$(readelf -n gannetd | awk '
	$1 == "Provider:" { ours = $2 == "gannet" }
	$1 == "Name:" { name = $2 }
	$1 == "Arguments:" && ours { print name, NF - 1 }' | sort -u)
told=$(sed -nE 's/^\| `([a-z_]+)\(([a-z, ]*)\)` \|.*/\1,\2/p' \
		"${srcdir:-.}/doc/tracing.md" |
	awk -F, '{ print $1, NF - 1 }' | sort)

echo "$(wc -l <<< "$there") probes"
[ "$(wc -l <<< "$there")" -ge 15 ] || { echo "too few probes"; exit 1; }
failed=0
diff <(echo "$told") <(echo "$there") || {
	echo "doc/tracing.md has the lines with '<', the program with '>'"
	failed=1
}

# A script has a block for one or more probes, and for each at most one:
# bpftrace 0.17 loads no program with two.
for script in "${srcdir:-.}"/etc/bpftrace/*.bt; do
	awk -v there="$there" '
		BEGIN {
			n = split(there, all, /[ \n]/)
			for (i = 1; i < n; i += 2)
				arguments[all[i]] = all[i + 1]
		}
		/^(BEGIN|END)/ { most = -1 }
		/^usdt:/ {
			if (!going_on)
				most = 99
			name = $1
			gsub(/.*:|,$/, "", name)
			if (!(name in arguments))
				bad("no probe " name)
			if (seen[name]++)
				bad("two blocks for " name)
			if (arguments[name] < most)
				most = arguments[name]
		}
		{
			going_on = /,$/
			for (rest = $0; match(rest, /arg[0-9]/);
			     rest = substr(rest, RSTART + 4))
				if (substr(rest, RSTART + 3, 1) + 0 >= most)
					bad("too few arguments: " $0)
		}
		function bad(why) { print FILENAME ": " why; failed = 1 }
		END { exit failed || !length(seen) }' "$script" || failed=1
done
exit $failed
