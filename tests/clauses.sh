#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each demand of a standard has a row in doc/conformance/.
#
# doc/conformance/key-words has the capitalised key words (RFC 2119) of each
# section of each text, in order, a line a section:
#
#	8166 3.4.4.3 MUST-NOT MAY
#
# A row of a page begins with the demands that it is about, by their numbers:
#
#	| 8166 3.4.4.3 (1, 2); bis01 4.4.3 (1-3) | what | where | test |
#
# ("8166 section 4.2" is one without a key word.)
#
# Fails for a demand without a row, and for a row without one of these: a test;
# "n/a: why" where the demand does not apply; "not followed: why; test".  Prints
# how many demands of each text are which.  Only a SHOULD, a MAY and their like
# may be not followed, for a reason that the text allows; the test is of what is
# done instead.
#
# clauses.sh --list NAME [-i] < TEXT prints the lines for a text; with -i one
# that writes its key words small.
cd "${srcdir:-.}" || exit 1

list_text()
{
	# Page breaks and quoted lines of code have none.  A key word behind a
	# quotation mark is spoken about.
	sed -e '/\[Page [0-9ivx]*\]/d' -e '/^RFC [0-9]\{4\} /d' \
		-e '/^Internet-Draft/d' -e '/\/\/\//d' |
	awk -v name="$1" -v small="$2" '
	function flush() {
		if (line)
			print name, section line
		line = ""
	}
	/^([0-9]+(\.[0-9]+)*|[A-D](\.[0-9]+)+)\.? +["A-Z]/ ||
	/^Appendix [A-D][.:] +["A-Z]/ {
		flush()
		section = $1 == "Appendix" ? $2 : $1
		sub(/[.:]$/, "", section)
		if (/Full Copyright/)
			section = ""
		last = ""
		next
	}
	section == "" { next }
	{
		gsub(/"[A-Za-z]+|[A-Z]+"/, "x")
		gsub(/[^A-Za-z]+/, " ")
		n = split(small ? toupper($0) : $0, word, " ")
		for (i = 1; i <= n; i++) {
			w = word[i]
			if (w == "NOT" && last ~ /^(MUST|SHALL|SHOULD)$/)
				line = line "-NOT"
			else if (w ~ /^(MUST|SHALL|SHOULD|MAY|REQUIRED)$/ ||
				 w ~ /^(RECOMMENDED|OPTIONAL)$/)
				line = line " " (last == "NOT" ? "NOT-" : "") w
			last = w
		}
	}
	END { flush() }'
}

if [ "$1" = --list ]; then
	list_text "$2" "$3"
	exit
fi

awk '
function fail(why) {
	print why
	status = 1
}

# Notes the key words that LIST, as "1, 3-5", names of a section.
function note(key, list, state,    part, n, i, k, ends) {
	n = split(list, part, /, */)
	for (i = 1; i <= n; i++) {
		if (split(part[i], ends, "-") == 1)
			ends[2] = ends[1]
		if (ends[1] < 1 || ends[2] > count[key])
			fail(place ": " key " has no key word " part[i])
		for (k = ends[1] + 0; k <= ends[2] + 0; k++) {
			if (state == NOT_FOLLOWED &&
			    word[key, k] ~ /^(MUST|SHALL|REQUIRED)/)
				fail(place ": a " word[key, k] \
				     " has to be followed")
			if (state > of[key, k] + 0)
				of[key, k] = state
		}
	}
}

BEGIN { TESTED = 2; NA = 1; NOT_FOLLOWED = 3 }

# The first file.
FNR == NR {
	key = $1 " " $2
	keys[++nkeys] = key
	count[key] = NF - 2
	for (i = 3; i <= NF; i++)
		word[key, i - 2] = $i
	if (!($1 in total))
		texts[++ntexts] = $1
	total[$1] += NF - 2
	next
}

/^\| [^|]*\([0-9]/ {
	place = FILENAME ":" FNR
	split($0, cell, " *[|] *")
	state = TESTED
	tested = cell[5] ~ /`[a-z_0-9.]+`|[a-z], all$|[a-z], all[;,]/
	if (cell[5] ~ /^n\/a: [a-zA-Z0-9]/)
		state = NA
	else if (cell[5] ~ /^not followed: [a-zA-Z0-9]/)
		state = NOT_FOLLOWED
	if (!tested && (state == TESTED || state == NOT_FOLLOWED))
		fail(place ": no test, and no n/a:")
	n = split(cell[2], clause, / *; */)
	for (c = 1; c <= n; c++) {
		if (clause[c] ~ / section /)
			continue
		if (split(clause[c], part, / *[()]/) < 2 ||
		    !(part[1] in count)) {
			fail(place ": no key words in " clause[c])
			continue
		}
		note(part[1], part[2], state)
	}
}

END {
	for (i = 1; i <= nkeys; i++) {
		split(keys[i], part, " ")
		for (k = 1; k <= count[keys[i]]; k++) {
			state = of[keys[i], k] + 0
			sum[part[1], state]++
			if (!state)
				fail("doc/conformance: no row for " keys[i] \
				     " (" k "), a " word[keys[i], k])
		}
	}
	print "text    key words  tested  n/a  not followed"
	for (i = 1; i <= ntexts; i++)
		printf "%-8s %8d %7d %4d %13d\n", texts[i], total[texts[i]],
			sum[texts[i], TESTED], sum[texts[i], NA],
			sum[texts[i], NOT_FOLLOWED]
	exit status
}' doc/conformance/key-words doc/conformance/*.md
