#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each statement of SECURITY.md has a line in doc/conformance/security, with
# tests that exist.
cd "${srcdir:-.}" || exit 1
table=doc/conformance/security
status=0
fail() { echo "$*"; status=1; }

# The rows of the tables, by their first cell, and the points of the lists.
statements()
{
	awk '
	function flush() { if (point != "") print point; point = "" }
	/^## / { flush(); on = /^## (What is believed|Who )/; next }
	!on { next }
	/^\* / { flush(); point = substr($0, 3); next }
	/^  / && point != "" { sub(/^ */, ""); point = point " " $0; next }
	{ flush() }
	/^\| --- / { rows = 1; next }
	/^\|/ { if (rows) { sub(/^\| */, ""); sub(/ *\|.*/, ""); print } next }
	{ rows = 0 }
	END { flush() }' SECURITY.md
}

# compare: the statements, then the lines of the table, each behind a letter.
{
	statements | sed 's/^/S/'
	grep -v '^#' $table | sed 's/ *|.*//; s/^/T/'
} | awk '
	/^S/ { said[++n] = substr($0, 2); next }
	{
		key = substr($0, 2)
		for (i = 1; i <= n; i++)
			if (index(said[i], key) == 1) { has[i]++; hits[key]++ }
		if (hits[key] != 1)
			bad = bad "\nno statement, or several, begin with: " key
	}
	END {
		for (i = 1; i <= n; i++)
			if (has[i] != 1)
				bad = bad "\nno test, or two lines: " said[i]
		if (n < 50)
			bad = bad "\nonly " n " statements were found"
		if (bad) { print substr(bad, 2); exit 1 }
	}' || fail "SECURITY.md and $table differ"

# A test is "TEST(name)", in any of its forms, or a file.
names=$(mktemp) || exit 1
trap 'rm -f "$names"' EXIT
grep -rhoE '\b(START_TEST|TEST|TEST_LOOP)\([a-z0-9_]+' tests --include='*.c' |
	sed 's/.*(//' >"$names"
while read -r test; do
	case $test in
	warning) ;;
	*/*) [ -x "$test" ] || fail "$table: there is no $test" ;;
	*) grep -qx "$test" "$names" || fail "$table: no test is $test" ;;
	esac
done <<TESTS
$(grep -v '^#' $table | sed 's/.*| *//; s/, */\n/g')
TESTS
# What an attacker can'\''t do is a promise.
grep -E '^(cannot|can'\''t) .*\| *warning$' $table &&
	fail "$table: a promise without a test"
exit $status
