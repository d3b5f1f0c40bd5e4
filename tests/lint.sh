#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Rules of the tree that a compiler does not check.
cd "${srcdir:-.}" || exit 1
# Sorting by a language's rules takes ten times as long.
export LC_ALL=C
status=0
fail() { echo "$*"; status=1; }

# The directories of the product, from the lowest to the highest; each includes
# only itself and those named behind it.
layers='lib
wire lib
transport lib wire
vfs lib
exports lib wire vfs
rpc lib wire transport
modules lib wire vfs rpc
nfs3 lib wire rpc vfs exports
mountd lib wire rpc vfs exports
rquota lib rpc vfs exports
nsm lib wire rpc transport
nlm lib wire rpc vfs exports
portmap lib wire rpc transport
daemon lib wire transport vfs exports rpc nfs3 mountd rquota nlm nsm portmap
tools lib wire transport'
product=$(echo "$layers" | cut -d' ' -f1)
while read -r dir allowed; do
	for inc in $(grep -rhoE '^#include "[a-z0-9]+/' "$dir" \
			--include='*.[ch]' | sed 's/.*"//; s,/,,' | sort -u); do
		case " $dir $allowed " in
		*" $inc "*) ;;
		*) fail "$dir must not include $inc/" ;;
		esac
	done
done <<LAYERS
$layers
LAYERS

# Nor does a header name a type of a higher one.
# shellcheck disable=SC2086 # several words
found=$( { echo "$layers" | sed 's/^/L /'
	grep -rE '^(struct|union|enum) [a-z0-9_]+ \{' $product include \
		--include='*.[ch]' | sed -E 's,^([a-z0-9]+)/.*:,D \1 ,'
	grep -rnoE '\<(struct|union|enum) [a-z0-9_]+' $product \
		--include='*.h' | sed 's/^\([a-z0-9]*\)/H \1 \1/'; } | awk '
	$1 == "L" { height[$2] = NR }
	$1 == "D" { at[$4] = at[$4] " " $2 }
	$1 == "H" && ($NF in at) {
		n = split(at[$NF], dirs, " "); above = 0
		for (i = 1; i <= n; i++)
			above += height[dirs[i]] > height[$2]
		if (above == n) print $3, $NF
	}' )
[ -z "$found" ] || fail "headers that name a type of a layer above:
$found"

# A new program, fabric or backend is a directory and a line of a list: nothing
# else outside of it names it.
# listed FILES HEADERS WHERE...: only FILES of WHERE include HEADERS
listed()
{
	files=$1 headers=$2
	shift 2
	for f in $(grep -rlE "^#include \"$headers/" "$@" --include='*.[ch]')
	do
		case " $files " in
		*" $f "*) ;;
		*) fail "$f: must not include $headers" ;;
		esac
	done
}
listed 'daemon/serve/programs.c daemon/serve/locks.c daemon/serve/locks.h' \
	'(nfs3|mountd|rquota|nlm|nsm|portmap)' daemon
listed '' 'transport/fabric/[a-z]+' daemon tools rpc transport/rpcrdma \
	transport/fabric/*.[ch]
listed '' 'vfs/(posix|mem)' daemon nfs3 mountd nlm exports vfs/*.[ch]

# Every source names its licence; neither it, nor a line or function of it, is
# too long.  One process reads many files.
# shellcheck disable=SC2086 # the names have no spaces
found=$( { find $product include doc etc tests quickstart \
		-name '*.[ch]' -o -name '*.sh' -o -name '*.inc' \
		-o -name quickstart
	grep -rlIm1 '^#!' tests; } | sort -u | xargs awk '
	function width(s,  w, n, i, part) {
		n = split(s, part, "\t")
		for (i = 1; i < n; i++)
			w = int((w + length(part[i])) / 8 + 1) * 8
		return w + length(part[n])
	}
	FNR == 1 { at = 0 }
	FNR <= 2 && /SPDX-License-Identifier: BSD-2-Clause/ {
		licensed[FILENAME] = 1
	}
	{ lines[FILENAME] = FNR }
	width($0) > 80 { wide[FILENAME] = wide[FILENAME] " " FNR }
	FILENAME !~ /\.c$/ { next }
	/^{/ { at = FNR }
	/^}/ {
		if (at && FNR - at >= 70)
			print FILENAME ":" at ": a function of more than 70" \
				" lines"
		at = 0
	}
	END {
		for (i = 1; i < ARGC; i++) {
			f = ARGV[i]
			if (!licensed[f])
				print f ": no SPDX line"
			if (lines[f] > 600)
				print f ": " lines[f] " lines; more than 600"
			if (wide[f])
				print f ": wider than 80 columns in lines" \
					wide[f]
		}
	}')
[ -z "$found" ] || fail "$found"

# shellcheck disable=SC2046,SC2086 # the names have no spaces
found=$(grep -L '^#pragma once$' $(find $product tests -name '*.h'))
[ -z "$found" ] || fail "headers without #pragma once:
$found"

# The subject of a comment is a thing in the code.
# shellcheck disable=SC2086 # several words
found=$(grep -rnE \
	'/\*+ (What|Who(ever|se)?|How (many|much|often)|That which) ' \
	$product include doc tests --include='*.[ch]')
[ -z "$found" ] || fail "comments without a thing as subject:
$found"
# So is the subject of the sentence that names a test.
found=$(grep -rnE '^(START_)?TEST[A-Z_]*\((what|who|whoever|whose|it|so)_' \
	tests --include='*.c')
[ -z "$found" ] || fail "tests named without a thing as subject:
$found"

# Tests wait for events.  Where time is the object, a comment beside the call
# says so; what is measured, and the lab's guests, wait as they like.
found=$(grep -rnE '\<(u|nano|clock_nano)?sleep *\(|\<poll\((NULL|0), *0,' \
	tests --include='*.[ch]' | grep -v -e '^tests/\(bench\|lab\)/' \
	-e '^tests/unit/pause\.h:')
[ -z "$found" ] || fail "sleeps in tests; see tests/unit/pause.h:
$found"
found=$(grep -rlw pause_on_purpose tests --include='*.c' | xargs awk '
	FNR == 1 { said = 0 }
	/\*\// { said = FNR }
	/pause_on_purpose\(/ && FNR - said > 2 { print FILENAME ":" FNR }')
[ -z "$found" ] || fail "pauses without a comment that says why:
$found"
found=$(grep -nE '\<sleep +[0-9.]+' tests/*.sh tests/server/*.sh |
	grep -vE -e '^tests/soon\.sh:' -e 'sleep [0-9]{3}' -e '# as ')
[ -z "$found" ] || fail "sleeps in tests; see tests/soon.sh:
$found"

# The tests that builds with a sanitizer leave out are of the kind that
# tests/Makefile.inc says.
# left_out LIST PATTERN FILE-SUFFIX WHY
left_out()
{
	there=$(awk -v list="$1" '$1 == list && $2 == "+=" { on = 1 } on
		!/\\$/ { on = 0 }' tests/*.inc | grep -oE 'tests/[^ ]+')
	[ -n "$there" ] || fail "tests/*.inc: nothing is in $1"
	for f in $there; do
		! grep -qE "$2" "$f$3" || fail "$f: in $1, but it $4"
	done
}
left_out source_tests '[-]-foreground|[o]wn_gannetd|[s]erving\.sh' '' \
	'runs what a sanitizer would watch'
left_out one_thread_tests \
	'pthread|thread_start|crew|loop_start|server_create|harness' .c \
	'has threads'

# A profile or a backtrace tells static functions apart by their names.
# shellcheck disable=SC2086 # several words
for name in $(grep -roE '^static [a-z_0-9 ]+[ *][a-z_0-9]+\(' --include='*.c' \
		$product | sed -E 's/:.*[ *]([a-z_0-9]+)\($/ \1/' | sort -u |
		awk 'n[$2]++ == 1 && $2 != "__attribute__" { print $2 }'); do
	fail "$name: a static function in more than one file"
done

# All tests of CephFS are in a list of the phase but mounts, which is suite with
# more clients.
lists=$(sed -n '/ lists=(/,/)$/p' tests/quickstart-phases.sh)
for name in $(sed -nE "s/^(in_memory\+?|on_disk|alone)='(.*)'$/\2/p" \
		tests/ceph/run); do
	[ "$name" = mounts ] || printf '%s\n' "$lists" | grep -qw "$name" ||
		fail "tests/ceph/run: $name is in no list of the phase"
done

# The filter of system calls names each once and allows those whose numbers it
# has.
allowed=$(sed -n '/ allowed\[\] = {/,/^};/p' daemon/confine/calls.c |
	grep -oE '"[a-z0-9_]+"')
for call in $(printf '%s\n' "$allowed" | sort | uniq -d); do
	fail "daemon/confine/calls.c: $call is there twice"
done
for call in $(sed -n '/ newer\[\] = {/,/^};/p' daemon/confine/calls.c |
		grep -oE '"[a-z0-9_]+"'); do
	printf '%s\n' "$allowed" | grep -qx "$call" ||
		fail "daemon/confine/calls.c: $call has a number, but is" \
			"not allowed"
done

# The manual pages have every option, and none that is not there.
# options WHERE PATTERN PAGE
options()
{
	# shellcheck disable=SC2086 # several words
	there=$(sed -nE "s/$2/\\${4:-1}/p" $1 | sort -u)
	told=$(grep -oE 'Fl -[a-z][a-z0-9-]*' "$3" | sed 's/Fl -//' | sort -u)
	for o in $(printf '%s\n' "$there" "$told" | sort | uniq -u |
			grep -vx -e help -e version -e print-config \
			-e option); do
		fail "--$o: not both in $1 and in $3"
	done
}
rows=daemon/settings/option_row.c
in_rows='(["A-Za-z-]+, ["A-Za-z0-9-]+, )?"([a-z0-9-]+)", ("[A-Z]*"|NULL),.*'
options "$rows" "^	\\{ $in_rows" doc/gannetd.8.in 2

# gannet.conf(5) has every key in its section, and every range.
in_rows='^	\{ "([a-z]+)", "([a-z0-9-]+)",.*'
in_fabrics='^	+(\{ "([a-z-]+)", (true|false) \}|\.(port) = [0-9]+),$'
keys=$(sed -nE "s/$in_rows/\\1 \\2/p" daemon/settings/option_row.c
	for dir in transport/fabric/*/; do
		sed -nE "s/$in_fabrics/$(basename "$dir") \\2\\4/p" "$dir"*.c
	done)
told=$(sed -nE -e 's/^\.Ss Section (.*)/[\1/p' \
		-e 's/^\.It Cm ([a-z0-9-]+) No = .*/\1/p' doc/gannet.conf.5.in |
	awk '/^\[/ { section = substr($0, 2); next } { print section, $0 }')
for key in $(printf '%s\n' "$keys" "$told" | sort | uniq -u | tr ' ' .); do
	fail "$key: not both in $rows and in gannet.conf(5)"
done
for range in $(grep -oE 'NUMBER\([a-z_]+, [0-9]+, [0-9]+' \
		"$rows" | sed 's/.*_*, \([0-9]*\), /\1-/'); do
	grep -q "^From ${range%-*} to ${range#*-}[ ;]" doc/gannet.conf.5.in ||
		fail "gannet.conf(5): no key is from ${range%-*} to ${range#*-}"
done
in_rows='^	(ROW|RANGE|BARE)\("([a-z-]+)",.*'
options tools/nfs/main.c "$in_rows" doc/gannet-nfs.1 2
# --help has the same, and both have every command.
for o in $(sed -nE "s/$in_rows/\\2/p" tools/nfs/main.c); do
	grep -q -e "--$o" tools/nfs/usage.c ||
		fail "tools/nfs/usage.c: nothing about --$o"
done
for c in $(sed -nE 's/^	\{ "([a-z-]+)", [0-9],.*/\1/p' tools/nfs/main.c); do
	grep -q "^\"  $c " tools/nfs/usage.c ||
		fail "tools/nfs/usage.c: nothing about $c"
	grep -q "^\.It Cm $c " doc/gannet-nfs.1 ||
		fail "doc/gannet-nfs.1: nothing about $c"
done

# Every backend has a place in the manual, and runs the tests of all backends.
for ops in $(grep '^	&' vfs/backends.c | grep -oE '[a-z]+_vfs_ops'); do
	grep -q "^\.It Cm ${ops%_vfs_ops} [,:]" doc/gannet-exports.5.in ||
		fail "doc/gannet-exports.5.in: nothing about ${ops%_vfs_ops}"
	grep -q "\.ops = &$ops," tests/unit/test_backends.c ||
		fail "tests/unit/test_backends.c: no row for $ops"
done

# The tests and functions that these pages name are there.
demands=$(echo doc/conformance.md doc/conformance/*.md)
pages="doc/architecture.md $demands doc/life.md doc/reliability.md"
# shellcheck disable=SC2086 # several words
names=$(grep -ohE '`[a-z_0-9]+`' $pages | tr -d '`' | sort -u)
# shellcheck disable=SC2086 # several words
words=$(grep -rhoE '[a-z][a-z_0-9]+' $product tests --include='*.[ch]' \
		--include='*.inc' | sort -u)
for name in $(printf '%s\n' "$names" "$words" "$words" | sort | uniq -u); do
	fail "$pages: there is no $name"
done

# Each demand has a test, and what is named as one is in the tests.
# shellcheck disable=SC2086 # several words
rows=$(grep -h '^|' $demands | grep -v '^| *--')
names=$(printf '%s\n' "$rows" |
	awk -F'|' 'NF >= 6 { print $5 } NF == 4 { print $3 }' |
	grep -oE '`[a-z_0-9]+`' | tr -d '`' | sort -u)
words=$(grep -rhoE '[a-z][a-z_0-9]+' tests --include='*.[ch]' \
		--include='*.inc' | sort -u)
for name in $(printf '%s\n' "$names" "$words" "$words" | sort | uniq -u); do
	fail "$demands: there is no test $name"
done
found=$(printf '%s\n' "$rows" |
	awk -F'|' 'NF >= 6 && $5 !~ /[a-z]/ { print $2, $3 }')
[ -z "$found" ] || fail "$demands: without a test: $found"
for name in $(printf '%s\n' "$rows" | awk -F'|' 'NF >= 6 { print $4 }' |
		grep -oE '`[a-z0-9_/]+\.[ch]`' | tr -d '`' | sort -u); do
	# shellcheck disable=SC2086 # several words
	find $product include -path "$name" -o -path "*/$name" | grep -q . ||
		fail "$demands: there is no $name"
done

# The functions are the product's, not those of a test with such a name.
names=$(printf '%s\n' "$rows" | awk -F'|' '{ print $4 }' |
	grep -oE '`[a-z_0-9]+`' | tr -d '`' | sort -u)
# shellcheck disable=SC2086 # several words
words=$(grep -rhoE '[a-z][a-z_0-9]+' $product include --include='*.[ch]' |
	sort -u)
for name in $(printf '%s\n' "$names" "$words" "$words" | sort | uniq -u); do
	fail "$demands: no code has $name"
done

# Each demand of these texts has a row.
srcdir=. tests/clauses.sh || status=1
srcdir=. tests/security.sh || status=1
exit $status
