# SPDX-License-Identifier: BSD-2-Clause
# Completion of gannet-nfs(1), also as gannet, for bash.  Commands, options and
# works are those that gannet-nfs --help lists.

# _gannet_nfs_help EXPRESSION: the words in the usage that match.
_gannet_nfs_help()
{
	gannet-nfs --help 2>/dev/null | sed -n "s/^  \($1\) .*/\1/p" | uniq
}

_gannet_nfs_options()
{
	gannet-nfs --help 2>/dev/null | sed -n \
		-e 's/^  -[a-zA-Z], \(--[a-z-]*\).*/\1/p' \
		-e 's/^      \(--[a-z-]*\).*/\1/p' | sort -u
}

_gannet_nfs()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' words='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*) ;;
		*) command=${COMP_WORDS[i]}; break ;;
		esac
	done
	case $prev:$command:$cur in
	-type:find:* | --type:find:*) words='f d l b c s p' ;;
	*:-*) words=$(_gannet_nfs_options) ;;
	*::*) words=$(_gannet_nfs_help '[a-z][a-z-]*') ;;
	*:exports:*)
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
		return ;;
	*:cp:* | *:put:* | *:get:*)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	*:bench:*)
		words=$(gannet-nfs --help 2>/dev/null | sed -n \
			'/^Of bench (WORK is/,/):$/p' | tr -d '\n' | sed \
			-e 's/.*WORK is //' -e 's/;.*//' -e 's/,//g' \
			-e 's/ or / /') ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _gannet_nfs gannet-nfs gannet
