#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# gannet.conf(5) tells the defaults and the ranges that gannetd has: each bound
# is taken, what lies beyond is refused, and each word of a list is taken.
page=${srcdir:-.}/doc/gannet.conf.5.in
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0 compared=0
fail() { echo "gannet.conf(5): $*"; failed=1; }

# The defaults: those of a file without settings.
: >"$tmp/conf"
./gannetd --config "$tmp/conf" --print-config >"$tmp/defaults" || exit 1

# takes SECTION KEY VALUE
takes()
{
	printf '[%s]\n%s = %s\n' "$1" "$2" "$3" >"$tmp/conf"
	./gannetd --config "$tmp/conf" --print-config >"$tmp/out" 2>&1
}
default_of()
{
	awk -v section="[$1]" -v key="#$2 =" '/^\[/ { here = $0 == section }
		here && index($0, key) == 1 {
			print substr($0, length(key) + 2) }' "$tmp/defaults"
}

# Each key: section, key, the values of its line, and the text below.
awk '/^\.Ss Section / { section = $3 }
	/^\.El/ { section = "" }
	/^\.It Cm .* No = / && section {
		values = $0
		sub(/.* No = /, "", values)
		gsub(/(Cm|Ar) /, "", values)
		printf "%s%s\t%s\t%s\t", sep, section, $3, values
		sep = "\n"
		next
	}
	section && /^\.(Cm|Pa|Em) / { $1 = "" }
	section && sep { printf "%s ", $0 }
	END { print "" }' "$page" >"$tmp/keys"

while IFS=$'\t' read -r section key values text; do
	default=$(default_of "$section" "$key")
	text=${text# }
	read -r first _ <<<"${text//[.:;,]/ }"
	range='^From ([0-9]+) to ([0-9]+)( MiB)?; (([0-9]+)[.:])?'
	if [[ $text =~ $range ]]; then
		least=${BASH_REMATCH[1]} most=${BASH_REMATCH[2]}
		told=${BASH_REMATCH[5]}
		for value in "$least" "$most"; do
			takes "$section" "$key" "$value" ||
				fail "[$section] $key = $value: $(<"$tmp/out")"
		done
		for value in $((least - 1)) $((most + 1)); do
			takes "$section" "$key" "$value" &&
				fail "[$section] $key = $value is taken"
		done
		[ -n "$told" ] || continue
	elif [[ " $values " = *" $first "* ]]; then
		told=$first
		for value in ${values//|/ }; do
			[[ $value =~ ^[a-z] ]] || continue
			takes "$section" "$key" "$value" ||
				fail "[$section] $key = $value: $(<"$tmp/out")"
		done
		# One in capitals stands for any text.
		[[ $values =~ [A-Z] ]] ||
			! takes "$section" "$key" sideways ||
			fail "[$section] $key = sideways is taken"
	elif [ "$first" = None ]; then
		told=''
	else
		continue
	fi
	compared=$((compared + 1))
	[ "$told" = "$default" ] ||
		fail "[$section] $key is '$default', not '$told', unless given"
done <"$tmp/keys"
echo "$(wc -l <"$tmp/keys") keys, $compared defaults"
[ $compared -ge 25 ] || fail "too few defaults were found"
exit $failed
