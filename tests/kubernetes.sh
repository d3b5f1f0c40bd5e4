#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The files for Kubernetes fit each other and the server: tests/kubernetes.py
# reads them, and gannetd starts with what they give it.
top=$(readlink -f "${srcdir:-.}")
python3 -c 'import yaml' 2>/dev/null || {
	echo "skipped: no YAML for Python (package python3-yaml)"
	exit 77
}
tmp=$(mktemp -d) || exit 1
server=
# It writes there until it ends.
trap 'kill $server 2>/dev/null; wait; rm -rf "$tmp"' EXIT
# shellcheck source=tests/soon.sh
. "$top/tests/soon.sh"

# Writes what the server gets there: exports, gannet.conf, arguments.
python3 "$top/tests/kubernetes.py" "$top/etc" "$tmp" || exit 1

# The paths of the container, here.
mkdir "$tmp/data" "$tmp/state" && chmod 700 "$tmp/state"
sed -i "s,^/srv/data ,$tmp/data ," "$tmp/exports"
sed -i 's/^listen = 0\.0\.0\.0:20490$/listen = 127.0.0.1:0/' "$tmp/gannet.conf"
mapfile -t arguments < <(sed "s,/etc/gannet/,$tmp/,
	s,=/var/lib/gannet\$,=$tmp/state," "$tmp/arguments")
: > "$tmp/log"
./gannetd --foreground --control="$tmp/control" --exports-file "$tmp/exports" \
	--port 0 "${arguments[@]}" > "$tmp/log" 2>&1 &
server=$!
soon grep -qx ready "$tmp/log" || { cat "$tmp/log"; exit 1; }
port=$(sed -n 's/^ready: tcp //p' "$tmp/log")
echo hello > "$tmp/hello"
./gannet-nfs cp -q "$tmp/hello" \
	"tcp://127.0.0.1:$port$tmp/data/hello?mountport=$port" 2>/dev/null &&
	{ echo "a machine outside of the example's network is served"; exit 1; }
# Nothing else kept it from there.
soon grep -q 'no client of the export matches' "$tmp/log" ||
	{ cat "$tmp/log"; exit 1; }
./gannetctl --socket "$tmp/control" exports | grep "$tmp/data"
