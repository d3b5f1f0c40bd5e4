# SPDX-License-Identifier: BSD-2-Clause
# Completion of gannetctl(8) for bash.  Commands and options are those that
# gannetctl --help lists.

_gannetctl_help()
{
	gannetctl --help 2>/dev/null | sed -n "s/^  \($1\)\( .*\)\{0,1\}\$/\1/p"
}

_gannetctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' second='' words='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--socket) ((i++)) ;;
		-*) ;;
		*)
			if [ -z "$command" ]; then
				command=${COMP_WORDS[i]}
			elif [ -z "$second" ]; then
				second=${COMP_WORDS[i]}
			fi ;;
		esac
	done
	case $prev:$command:$second:$cur in
	--socket:* | -w:capture:* | -w:support-bundle:*)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	--by:*) words='client export procedure' ;;
	--proc:*)
		words="ACCESS COMMIT CREATE FSINFO FSSTAT GETATTR LINK LOOKUP"
		words+=" MKDIR MKNOD PATHCONF READ READDIR READDIRPLUS"
		words+=" READLINK REMOVE RENAME RMDIR SETATTR SYMLINK WRITE" ;;
	*:capture:*:-* | *:trace:*:-*)
		words=$(gannetctl "$command" --help 2>/dev/null |
			grep -oE -e '--[a-z]+') ;;
	*:drain:*:-*) words='--timeout --json' ;;
	*:-*) words=$(_gannetctl_help '--[a-z]*') ;;
	*:::*) words=$(_gannetctl_help '[a-z][a-z-]*') ;;
	*:log-level::*) words='err warn info debug' ;;
	*:locks::*) words='release' ;;
	*:exports::*) words='add remove set' ;;
	*:exports:add:*)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return ;;
	exports:exports:* | remove:exports:* | set:exports:*)
		words=$(gannetctl exports 2>/dev/null | cut -f1 | sort -u) ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _gannetctl gannetctl
