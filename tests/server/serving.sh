# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the tests of ./quickstart serve: starts it, and looks at what it
# says.  $top is the tree.
# shellcheck disable=SC2154,SC2034 # top and failed: theirs

GANNETD=$(readlink -f ./gannetd) || exit 77
export GANNETD
command -v setpriv >/dev/null || exit 77
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# It writes beside itself; the tree under test may be read-only.
mkdir "$tmp/tests"
cp "$top/quickstart" "$tmp/"
cp "$top"/tests/quickstart-{serve,tls}.sh "$tmp/tests/"
failed=0 inside=()

check()
{
	local what=$1; shift
	if "$@"; then echo "ok - $what"; return; fi
	echo "not ok - $what"
	failed=1
	tail -n 20 "$tmp/out" "$tmp/err"
}

says() { grep -qE -- "$1" "$tmp/out" "$tmp/err"; }

# shellcheck source=tests/soon.sh
. "$top/tests/soon.sh"
# What $pid says, or it has ended.
says_or_ends() { says "$1" || ! kill -0 "$pid" 2>/dev/null; }
shown() { soon says_or_ends "$1" && says "$1"; }

# serve ARGUMENT...: in the background, until it says what to mount.
serve()
{
	: > "$tmp/out"
	# What runs in the background ignores SIGINT, unless told otherwise.
	setsid ${inside[@]+"${inside[@]}"} env --default-signal=INT \
		"$tmp/quickstart" serve "$@" \
		> "$tmp/out" 2> "$tmp/err" &
	pid=$!
	shown 'Only this machine|On .*:'
}

ended()
{
	kill "-$1" "$pid"
	wait "$pid" && says '^quickstart: ended'
}

fails()
{
	local status=$1 text=$2; shift 2
	timeout 300 "$tmp/quickstart" "$@" > "$tmp/out" 2> "$tmp/err"
	[ $? = "$status" ] && says "$text"
}
