#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a command that may hang: at its limit it says what hangs and where, and
# ends the command with all that came from it.
#
#   tests/limited.sh SECONDS COMMAND...
#   tests/limited.sh --show PID		says where the children of PID are
#
# Its status is COMMAND's, or 124 at the limit, with lines that begin with
# "hung: "; GANNET_PATIENCE multiplies SECONDS.  Sourced, it has limit_begin and
# limit_end, for a part of a script.
#
# What came from it is known by a mark in its environment, or by its parents: a
# daemon that left its session has the mark.

# limited [PID]: the processes with the mark $limit_mark, or this one, and their
# children, but not this script.
limited()
{
	local first=${1-}
	[ -n "$first" ] ||
		first=$(grep -lzs "^GANNET_LIMITED=.*:$limit_mark:" \
			/proc/[0-9]*/environ | cut -d/ -f3)
	cat /proc/[0-9]*/stat |
		sed -nE 's/^([0-9]+) \(.*\) . ([0-9]+) .*/\1 \2/p' |
		awk -v first="$first" -v self=$$ '
		{ parent[$1] = $2 }
		END {
			n = split(first, list)
			for (i = 1; i <= n; i++)
				is[list[i]] = 1
			do {
				more = 0
				for (p in parent)
					if (p != self && !is[p] &&
					    is[parent[p]])
						is[p] = more = 1
			} while (more)
			for (p in is)
				if (is[p] && p in parent)
					print p
		}' | sort -n
} 2>/dev/null

# threads_of PID: what each of its threads waits for.
threads_of()
{
	local t
	if command -v gdb >/dev/null &&
	   timeout -k 5 20 gdb -nx -batch -p "$1" \
		-ex 'thread apply all backtrace 40' 2>/dev/null </dev/null |
		grep -a -e '^Thread' -e '^#'; then
		return
	fi
	for t in "/proc/$1"/task/*; do
		echo "${t##*/} $(cat "$t/comm"): $(cat "$t/wchan")"
		head -20 "$t/stack"
	done 2>/dev/null
}

# is_a_shell PID: it and others like it only wait for the rest.  The daemons of
# a Ceph cluster have hundreds of threads.
is_a_shell()
{
	case $(cat "/proc/$1/comm" 2>/dev/null) in
	'' | *sh | env | make | tee | timeout | setsid | sleep | grep | cat | \
		unshare | ceph-* | limited*) ;;
	*) return 1 ;;
	esac
}

# show_hung [PID]: what the processes are, and where they are.
show_hung()
{
	local p n=0 list
	list=$(limited "$@")
	[ -n "$list" ] || { echo "no process is left"; return; }
	if ! ps -o pid,ppid,etimes,stat,wchan:20,args \
			-p "$(paste -sd, <<< "$list")" 2>/dev/null; then
		for p in $list; do
			echo "$p $(tr '\0' ' ' < "/proc/$p/cmdline")"
		done
	fi | cut -c1-200
	for p in $list; do
		! is_a_shell "$p" && [ "$p" != "${1-}" ] || continue
		[ $((n += 1)) -le 6 ] || break
		echo "threads of $p, $(tr '\0' ' ' < "/proc/$p/cmdline"):"
		threads_of "$p"
	done
} 2>&1

# signal_hung SIGNAL: a program of Check's would hand SIGTERM on to its whole
# process group, which is the callers' too, so it is killed.
signal_hung()
{
	local p
	for p in $(limited); do
		case $(cat "/proc/$p/comm") in
		test_*) kill -KILL "$p" ;;
		*) kill "-$1" "$p" ;;
		esac
	done
} 2>/dev/null

# wait_seconds SECONDS: while the script lives.
wait_seconds()
{
	local end=$((SECONDS + $1)) left
	while [ $SECONDS -lt $end ] && kill -0 $$ 2>/dev/null; do
		left=$((end - SECONDS))
		sleep $((left < 5 ? left : 5))
	done
	kill -0 $$ 2>/dev/null
}

# watch_limit SECONDS FILE
watch_limit()
{
	wait_seconds "$1" || return
	show_hung > "$2.new"
	mv "$2.new" "$2"
	signal_hung TERM
	wait_seconds 15
	# The script's next command comes from it, too.
	while kill -0 $$ 2>/dev/null; do
		signal_hung KILL
		wait_seconds 1
	done
}

# limit_begin SECONDS FILE: what begins now is ended after SECONDS unless
# limit_end comes before; then FILE says what hung.  No job of the shell's, so
# that 'wait' doesn't wait for it.
limit_begin()
{
	limit_before=${GANNET_LIMITED-:} limit_mark=$BASHPID.$RANDOM
	limit_file=$2
	rm -f "$2"
	limit_pid=$(
		export GANNET_LIMITED=$limit_before
		watch_limit "$1" "$2" </dev/null >/dev/null 2>&1 &
		echo $!
	)
	export GANNET_LIMITED=$limit_before$limit_mark:
}

# limit_end: false if the limit was reached.
limit_end()
{
	# Not while it writes the file.
	[ -e "$limit_file" ] || kill "$limit_pid" 2>/dev/null
	rm -f "$limit_file.new"
	GANNET_LIMITED=$limit_before
	[ ! -e "$limit_file" ] && return
	signal_hung KILL
	kill -9 "$limit_pid" 2>/dev/null
	return 1
}

[ "${BASH_SOURCE[0]}" = "$0" ] || return 0
if [ $# = 2 ] && [ "$1" = --show ]; then
	show_hung "$2" | sed 's/^/hung: /'
	exit
fi
[ $# -ge 2 ] || { sed -n '3,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
file=$(mktemp -u) limit=$(($1 * ${GANNET_PATIENCE:-1})); shift
limit_begin "$limit" "$file"
"$@"
status=$?
limit_end && exit $status
sed 's/^/hung: /' "$file"
echo "hung: not over after $limit s: $*"
rm "$file"
exit 124
