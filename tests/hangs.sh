#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# tests/limited.sh, which ends tests that hang: it tells where they are, and
# leaves neither a child nor a daemon of theirs; but it does nothing to others.
set -u
top=${srcdir:-.}
# shellcheck source=tests/soon.sh
. "$top/tests/soon.sh"
# Here each limit is reached.
unset GANNET_PATIENCE
tmp=$(mktemp -d) || exit 1
trap 'kill $(cat "$tmp"/*.pid) 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
check()
{
	local what=$1; shift
	"$@" && return
	echo "not ok - $what"
	failed=1
}

# daemon FILE: in a session of its own, with its number in the file.
# shellcheck disable=SC2016 # for another shell
daemon='(setsid sh -c "echo \$\$ > $0; exec sleep 1000" &)
	until [ -s "$0" ]; do :; done'
# Its number can be another process's soon, which the trap is not to end.
gone() { ! kill -0 "$(cat "$1")" 2>/dev/null && rm -f "$1"; }

# hangs SCRIPT: it is ended, and what it said is kept.
hangs()
{
	rm -f "$tmp/hung.pid"
	"$top/tests/limited.sh" 1 bash -c "$1" "$tmp/hung.pid" \
		> "$tmp/said" 2>/dev/null
	[ $? = 124 ]
}
check 'a command that hangs is ended' hangs "$daemon; sleep 1001"
check 'what it waits for is told' grep -q '^hung: .*sleep 1001' "$tmp/said"
check 'so is the command' grep -q '^hung: not over after 1 s: bash' "$tmp/said"
check 'its daemon has gone' soon gone "$tmp/hung.pid"

check 'a limit holds for what has a longer one' \
	hangs "'$top/tests/limited.sh' 100 bash -c '$daemon; sleep 1003' \$0"
check 'whose daemon has gone' soon gone "$tmp/hung.pid"

# As Check does.
printf '%s\n' '#!/bin/bash' 'trap "kill -TERM 0" TERM' \
	'sleep 1004 & wait' > "$tmp/test_spread"
chmod +x "$tmp/test_spread"
spreads()
{
	"$top/tests/limited.sh" 1 "$tmp/test_spread" > "$tmp/said" 2>&1
	[ $? = 124 ] && grep -q '^hung: not over' "$tmp/said"
}
check 'a test that hands the signal on ends alone' spreads

ends() { "$top/tests/limited.sh" 100 bash -c "$daemon; exit 3" "$tmp/ok.pid"; }
ends
check 'a command that ends has its status' test $? = 3
check 'and leaves what it started alone' kill -0 "$(cat "$tmp/ok.pid")"
exit $failed
