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
server='' load=''
trap 'kill $server $load 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
fail() { echo "$*"; failed=1; }
# shellcheck source=tests/soon.sh
. "${srcdir:-.}/tests/soon.sh"

: >"$tmp/log"
./gannetd --foreground --rdma off --port 0 --no-rpcbind \
	--state-dir "$tmp/state" --metrics 127.0.0.1:0 \
	--export '"mem:/<img src=x onerror=document.title=1>" *(rw,insecure)' \
	--export 'mem:/m *(rw,insecure,all_squash,anonuid=0,anongid=0)' \
	>"$tmp/log" 2>&1 &
server=$!
soon grep -q '^ready$' "$tmp/log"
soon grep -q 'metrics are at' "$tmp/log"
tcp=$(sed -n 's/^ready: tcp //p' "$tmp/log")
page=$(sed -n 's,.*the status page at \(http:.*\),\1,p' "$tmp/log")
[ -n "$page" ] || { cat "$tmp/log"; exit 1; }

head -c 3000000 /dev/urandom >"$tmp/sent"
./gannet-nfs put "$tmp/sent" "tcp://127.0.0.1:$tcp/m/new?mountport=$tcp" ||
	fail "put"

# Calls go on while the page is looked at, until the test ends them.
./gannet-nfs bench --quiet --time 600 --depth 1 --size 4K getattr \
	"tcp://127.0.0.1:$tcp/m?mountport=$tcp" >"$tmp/load" 2>&1 &
load=$!
has_calls()
{
	./gannetctl --socket "$tmp/state/control" stats | grep ' GETATTR '
}
soon has_calls >/dev/null || fail "no calls"

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
# The charts have a line, and the value at their top.
missing()
{
	for id in calls top-calls top-time; do
		shown=$(grep -o "id=\"$id\">[^<]*" "$tmp/dom")
		[[ ${shown#*>} = [1-9]* ]] ||
			echo "the page has no $id: '$shown'"
	done
}
# The page's time passes faster than the machine's: a busy one can have had no
# call since the page asked before, so the page is looked at again.
for _ in 1 2 3 4 5 6; do
	browse 1280,1000 --dump-dom >"$tmp/dom" ||
		fail "the browser failed: $(tail -3 "$tmp/messages")"
	[ -s "$tmp/dom" ] ||
		{ echo "skipped: the browser shows nothing"; exit 77; }
	missing=$(missing)
	[ -n "$missing" ] || break
done
[ -z "$missing" ] || fail "$missing"

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

# corner FILE: the brightness of a picture's first pixel, to 255.
corner()
{
	python3 -c 'import struct, sys, zlib
data, at, rows = open(sys.argv[1], "rb").read(), 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    rows += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
    at += 12 + size
print(sum(zlib.decompress(rows)[1:4]) // 3)' "$1"
}

# On a telephone, and on a desk: not one colour all over, by day and by night.
declare -A scheme=([dark]=0 [light]=1)
for size in 390,844 1280,1000; do
	for mode in light dark; do
		picture=$tmp/$size-$mode.png
		preferred=preferredColorScheme=${scheme[$mode]}
		browse "$size" --screenshot="$picture" \
			"--blink-settings=$preferred" >/dev/null
		bytes=$(stat -c %s "$picture" 2>/dev/null || echo 0)
		[ "$bytes" -gt 10000 ] ||
			fail "no screenshot of $size, $mode"
		got=light
		[ "$(corner "$picture")" -gt 127 ] || got=dark
		[ $got = $mode ] || fail "$size is $got, not $mode"
	done
done
kill $load
wait $load
load=

# Nobody calls any more: each number is what gannetctl has.
browse 1280,1000 --dump-dom >"$tmp/dom"
for what in stats clients 'latency --by export'; do
	# shellcheck disable=SC2086 # words
	./gannetctl --socket "$tmp/state/control" --json $what \
		>"$tmp/${what%% *}.json"
done
python3 - "$tmp" <<'END' || failed=1
import html, json, re, sys
tmp, wrong, compared = sys.argv[1], 0, 0
rows = {}
for row in re.findall('<tr>(.*?)</tr>', open(tmp + '/dom').read(), re.S):
    cells = [html.unescape(re.sub('<.*?>', '', c))
             for c in re.findall('<t[hd].*?</t[hd]>', row, re.S)]
    rows.setdefault(cells[0], cells[1:])
def load(name): return json.load(open(f'{tmp}/{name}.json'))
def compare(row, one):
    global wrong, compared
    compared += 1
    told = [f'{one["calls"]:,}', f'{one["failed"]:,}']
    if rows.get(row, [])[:2] != told:
        print(f'{row}: {rows.get(row)} on the page, not {told}')
        wrong += 1
for p in load('stats')['procedures']:
    compare(f'{p["program"]} {p["version"]} {p["procedure"]}', p)
for c in load('clients'):
    compare(c['address'], c)
for e in load('latency')['rows']:
    compare(e['name'], e)
sys.exit(wrong > 0 or compared < 12)
END
[ -z "${SCREENSHOTS-}" ] || cp "$tmp"/*.png "$SCREENSHOTS"
kill $server
wait $server || fail "the server ended with $?"
server=
exit $failed
