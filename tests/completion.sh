#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion of gannetctl and gannet-nfs: each command, and the words of some.
here=${srcdir:-.}
PATH=$PWD:$PATH
status=0

# completion WORDS... TEXT: what there is to choose from, on a line
completion()
{
	bash -c 'source "$0/etc/completion/$1.bash" || exit
		complete -p "$1" > /dev/null || exit
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		"_${1//-/_}"
		echo "${COMPREPLY[@]}"' "$here" "$program" "$@"
}

# completes WORDS... TEXT EXPECTED: to the last word, with these for choice
completes()
{
	local expected=${*: -1} got
	got=$(completion "${@:1:$#-1}")
	[ "$got" = "$expected" ] && return
	echo "not ok: $program ${*:1:$#-1} gives '$got', not '$expected'"
	status=1
}

program=gannetctl
commands=$(sed -n 's/.*{ *\.name = "\([a-z-]*\)".*/\1/p' \
	"$here/tools/ctl/commands.c" | tr '\n' ' ')
[ -n "$commands" ] || { echo 'not ok: no commands found'; status=1; }
completes '' "${commands% }"
completes sta 'status stats'
completes --json wai waits
completes --socket /nowhere relo reload
completes log-level w warn
completes trace --sl --slower
completes trace --proc REA 'READ READDIR READDIRPLUS READLINK'
completes exports '' 'add remove set'
completes exports s set
completes locks '' release
completes --js --json
completes drain --t --timeout
completes status --he --help
completes nonsense '' ''

program=gannet-nfs
commands=$(sed -n 's/^	{ "\([a-z-]*\)", [0-9], .*/\1/p' \
	"$here/tools/nfs/main.c" | sort)
diff <(echo "$commands") <(completion '' | tr ' ' '\n' | sort) || status=1
completes ex exports
completes -q ce certify
completes ls --ver '--verbose --verify --version'
completes bench --no-p --no-private
completes bench randr randread
completes bench mi mixed
completes find --type '' 'f d l b c s p'
completes find -type '' 'f d l b c s p'
completes put "$here/etc/exports.ex" "$here/etc/exports.example"
# The alias is the same program.
[ "$(bash -c 'source "$0" && complete -p gannet' \
	"$here/etc/completion/gannet-nfs.bash")" = \
	'complete -F _gannet_nfs gannet' ] ||
	{ echo 'not ok: gannet has no completion'; status=1; }
grep -q '^#compdef .*\<gannet$' "$here/etc/completion/_gannet-nfs" ||
	{ echo 'not ok: gannet has no completion of zsh'; status=1; }
if command -v zsh > /dev/null; then
	zsh -n "$here/etc/completion/_gannetctl" || status=1
	zsh -n "$here/etc/completion/_gannet-nfs" || status=1
fi
exit $status
