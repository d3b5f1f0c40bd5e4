#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What README.md names is there: files, commands, options, manuals, and the
# picture.  tests/packages.sh runs the blocks that are marked for it; here only
# their marks are looked for.
set -u
build=$PWD
cd "${srcdir:-.}" || exit 1
failed=0 n=0
fail() { echo "README.md: $*"; failed=1; }
# words PATTERN: what matches in it, each once.
words() { grep -oE -- "$1" README.md | sort -u; }

while read -r file; do
	n=$((n + 1))
	[ -e "$file" ] || fail "there is no $file"
done < <(words '(^|[` (])(doc|etc|tests)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' |
		tr -d '` ('
	words '\<(SECURITY|CONTRIBUTING)\.md')

# The options of gannetd, and of gannet-nfs and quickstart.
help=$("$build/gannetd" --help; sed -n 's/^#  *//p' quickstart)
while read -r option; do
	n=$((n + 1))
	grep -qF -e "$option" <<< "$help" || [ "$option" = --json ] ||
		fail "neither gannetd nor quickstart has $option"
done < <(sed 's/configure .*//; s/rdma link.*//; s/systemctl.*//' README.md |
	grep -oE '(^|[ `(])--[a-z][a-z-]+' | tr -d ' `(' | sort -u)

for program in gannetctl gannet-nfs; do
	help=$("$build/$program" --help)
	while read -r command; do
		n=$((n + 1))
		grep -qE "^  $command( |\$)" <<< "$help" ||
			fail "$program has no command $command"
	done < <(words "$program [a-z-]+" | sed 's/.* //')
done
# As "gannetctl clients", "latency", "stats" are in one row.
while read -r command; do
	n=$((n + 1))
	"$build/gannetctl" --help | grep -q "^  $command " ||
		fail "gannetctl has no command $command"
done < <(sed -n 's/^| `gannetctl [a-z]*`, \(`[a-z`, ]*\) |.*/\1/p' README.md |
	tr -d '`,' | tr ' ' '\n')

while read -r page; do
	case $page in exports*) continue ;; esac
	n=$((n + 1))
	page=${page%)}
	ls doc/"${page/(/.}"* >/dev/null 2>&1 || fail "no manual $page)"
done < <(words '[a-z][a-z.-]+\([1-8]\)')

for mark in install export mount mount-rdma; do
	grep -qxF "<!-- tests/packages.sh runs this: $mark -->" README.md ||
		fail "tests/packages.sh finds no block '$mark'"
done
python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' \
	doc/gannet.svg || fail "the picture is no XML"

# A table has as many cells in each row.
awk '/^\|/ { n = gsub(/\|/, "|"); if (was && n != was) bad = NR; was = n; next }
	{ was = 0 } END { if (bad) { print bad; exit 1 } }' README.md ||
	fail "a row of a table has other cells"
echo "$n names"
[ "$n" -ge 40 ] || fail "too few names were found"
exit $failed
