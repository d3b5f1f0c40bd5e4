#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Files of a directory that need each other, directly or by others, form a
# circle, and no file may: each can be read after those that it needs.  A name
# that one file alone needs is static.  nm reports what each object file needs.
command -v nm >/dev/null || { echo "SKIP: no nm"; exit 77; }

# objects DIR DEPTH: one for each source file, though some are built twice.
objects()
{
	find "$1" -maxdepth "$2" -name '*.o' ! -name 'tests_*' | sort |
		awk '{
			name = $0
			sub(/[^\/]*-/, "", name)
			if (!seen[name]++)
				print
		}'
}

# circles DIR DEPTH: prints each source file there that is in a circle.
circles()
{
	objects "$1" "$2" | xargs nm -A | awk -F '[: ]+' '
		function visit(from,	i, n, to) {
			n = split(next_of[from], to, " ")
			for (i = 1; i <= n; i++)
				if (!reached[to[i]]++)
					visit(to[i])
		}
		$(NF - 1) ~ /^[TDBRC]$/ { home[$NF] = $1 }
		$(NF - 1) == "U" { needs[$1, $NF] }
		END {
			for (n in needs) {
				split(n, pair, SUBSEP)
				to = home[pair[2]]
				from = pair[1]
				if (to != "" && to != from)
					next_of[from] = next_of[from] " " to
			}
			for (from in next_of) {
				delete reached
				visit(from)
				if (from in reached)
					print from
			}
		}' | sed 's|[^/]*-||; s|\.o$|.c|' | sort
}

# lonely: prints each global name of the product that no second file needs,
# neither in an object nor in the text of what may be without one here.
lonely()
{
	local text
	text=("$srcdir"/{tests,include,modules,tools/fio,daemon/watch/web.c})
	{
		grep -rhoE --include='*.[chl]' '\<[a-z_0-9]+\>' "${text[@]}" |
			sort -u | sed 's/^/text /'
		find . -name '*.o' ! -path './tests/*' -print0 |
			xargs -0 nm -A |
			sed -E 's|^([^ ]*/)[^/ ]*-([^-/ ]*\.o:)|\1\2|'
	} | awk -F '[: ]+' '
		$1 == "text" { needed[$2] }
		$(NF - 1) ~ /^[TDBRC]$/ { home[$NF] = $1 }
		$(NF - 1) == "U" { needed[$NF] }
		END {
			for (name in home)
				if (!(name in needed))
					print home[name] ":" name
		}' | sort
}

# all DIR:DEPTH...: the same for each DIR.
all()
{
	local dir
	for dir; do
		[ -n "$(objects "${dir%:*}" "${dir#*:}")" ] || {
			# Some are not built everywhere.
			case $dir in tools/fio:* | modules/*) continue
			esac
			echo "${dir%:*} has no objects"
		}
		circles "${dir%:*}" "${dir#*:}"
	done
}

found=$(all lib:1 wire:1 transport:9 rpc:1 vfs:1 vfs/posix:2 vfs/mem:1 \
	exports:1 nfs3:1 mountd:1 nlm:1 nsm:1 portmap:1 rquota:1 daemon:2 \
	tools/rpcrdma:1 tools/nfs:1 tools/bench:1 tools/ctl:1 \
	tools/fio:1 modules/ceph:1 modules/krb5:1 tests/loop:1)
# shellcheck disable=SC2086 # one file a word
[ -z "$found" ] || { echo "in a circle of files:" $found; exit 1; }

srcdir=${srcdir:-..}
found=$(lonely)
# shellcheck disable=SC2086 # one a word
[ -z "$found" ] || { echo "global, but of one file:" $found; exit 1; }
