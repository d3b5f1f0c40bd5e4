#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion of gannetctl: each command, and the words of some.
here=${srcdir:-.}
PATH=$PWD:$PATH
status=0

# completes WORDS... TEXT EXPECTED: to the last word, with these for choice
completes()
{
	local expected=${*: -1} got
	got=$(bash -c 'source "$0/etc/completion/gannetctl.bash" || exit
		complete -p gannetctl > /dev/null || exit
		COMP_WORDS=(gannetctl "$@")
		COMP_CWORD=$#
		_gannetctl
		echo "${COMPREPLY[@]}"' "$here" "${@:1:$#-1}")
	[ "$got" = "$expected" ] && return
	echo "not ok: gannetctl ${*:1:$#-1} gives '$got', not '$expected'"
	status=1
}

commands=$(sed -n 's/.*{ *\.name = "\([a-z-]*\)".*/\1/p' \
	"$here/client/ctl/commands.c" | tr '\n' ' ')
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
completes --js --json
completes drain --t --timeout
completes status --he --help
completes nonsense '' ''
if command -v zsh > /dev/null; then
	zsh -n "$here/etc/completion/_gannetctl" || status=1
fi
exit $status
