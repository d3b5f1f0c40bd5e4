#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A browser shows the status page with the numbers that gannetctl has, and runs
# nothing that a path brings.
./gannetd --version | grep -q 'no metrics' && {
	echo "skipped: built without libmicrohttpd"
	exit 77
}
browser=$(command -v chromium) || {
	echo "skipped: chromium missing (package chromium)"
	exit 77
}
tmp=$(mktemp -d) || exit 1
server=
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
fail() { echo "$*"; failed=1; }

: >"$tmp/log"
./gannetd --foreground --rdma off --port 0 --no-rpcbind \
	--state-dir "$tmp/state" --metrics 127.0.0.1:0 \
	--export '"mem:/<img src=x onerror=document.title=1>" *(rw,insecure)' \
	--export 'mem:/m *(rw,insecure,all_squash,anonuid=0,anongid=0)' \
	>"$tmp/log" 2>&1 &
server=$!
for ((n = 0; n < 300; n++)); do
	grep -q '^ready$' "$tmp/log" && grep -q 'metrics are at' "$tmp/log" &&
		break
	sleep 0.1
done
tcp=$(sed -n 's/^ready: tcp //p' "$tmp/log")
page=$(sed -n 's,.*the status page at \(http:.*\),\1,p' "$tmp/log")
[ -n "$page" ] || { cat "$tmp/log"; exit 1; }

head -c 3000000 /dev/urandom >"$tmp/sent"
./gannet-nfs put "$tmp/sent" "tcp://127.0.0.1:$tcp/m/new?mountport=$tcp" ||
	fail "put"

# browse SIZE OPTION...: it runs for some seconds of the page's own time.
browse()
{
	size=$1; shift
	HOME=$tmp timeout 120 "$browser" --headless --no-sandbox \
		--disable-gpu --disable-dev-shm-usage --no-first-run \
		--user-data-dir="$tmp/profile" --hide-scrollbars \
		--window-size="$size" --virtual-time-budget=4000 \
		--enable-logging=stderr "$@" "$page" 2>>"$tmp/messages"
}
browse 1280,1000 --dump-dom >"$tmp/dom" || fail "the browser failed: $(
	tail -3 "$tmp/messages")"
[ -s "$tmp/dom" ] || { echo "skipped: the browser shows nothing"; exit 77; }

# shown ROW: the cells of a row of a table, by its first one.
shown()
{
	tr -d '\n' <"$tmp/dom" | sed 's/<tr>/\n/g' | grep -F ">$1</th>" |
		head -1 | sed 's/<[^>]*>/ /g; s/,//g'
}
./gannetctl --socket "$tmp/state/control" stats >"$tmp/stats"
told=$(awk '$3 == "WRITE" || $2 == "WRITE" { for (i = 1; i < NF; i++)
	if ($i == "WRITE") print $(i + 1) }' "$tmp/stats" | head -1)
read -r _ _ _ seen _ < <(shown 'nfs 3 WRITE')
if [ -z "$told" ] || [ "$seen" != "$told" ]; then
	fail "WRITEs: '$told' by gannetctl, '$seen' on the page"
	cat "$tmp/stats"
fi
shown /m | grep -q ' 2.9 MiB ' || fail "no 2.9 MiB for /m: $(shown /m)"
shown 127.0.0.1 | grep -q ' 2.9 MiB ' || fail "none for 127.0.0.1"
grep -q '>serving</span>' "$tmp/dom" || fail "the page is not serving"
grep -q '>0 locks, 0 waits, 0 shares<' "$tmp/dom" || fail "no count of locks"
grep -qF '&lt;img src=x onerror' "$tmp/dom" || fail "no path with <img"
! grep -q '<img' "$tmp/dom" || fail "a path became an element"
grep -q '<title>Gannet</title>' "$tmp/dom" || fail "a path became a script"
! grep -E 'CONSOLE.*(Error|Refused|violates)' "$tmp/messages" || failed=1

# On a telephone, and on a desk: not one colour all over.
for size in 390,844 1280,1000; do
	browse "$size" --screenshot="$tmp/$size.png" >/dev/null
	[ "$(stat -c %s "$tmp/$size.png" 2>/dev/null || echo 0)" -gt 10000 ] ||
		fail "no screenshot of $size"
done
[ -z "${SCREENSHOTS-}" ] || cp "$tmp"/*.png "$SCREENSHOTS"
kill $server
wait $server || fail "the server ended with $?"
server=
exit $failed
