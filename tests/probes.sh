#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The probes in the program are those of doc/tracing.md, with as many arguments
# each.
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
diff <(echo "$told") <(echo "$there") && exit
echo "doc/tracing.md has the lines with '<', the program those with '>'"
exit 1
