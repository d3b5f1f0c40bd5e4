#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Prometheus' own tool finds nothing to object to in the metrics of a server
# that has worked, nor in the rules of alerts; nor does a parser of OpenMetrics.
top=${srcdir:-.}
command -v promtool >/dev/null || {
	echo "skipped: promtool missing (package prometheus)"
	exit 77
}
./gannetd --version | grep -q 'no metrics' && {
	echo "skipped: built without libmicrohttpd"
	exit 77
}
tmp=$(mktemp -d) || exit 1
server=
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0
fail() { echo "$*"; failed=1; }
# shellcheck source=tests/soon.sh
. "${srcdir:-.}/tests/soon.sh"

: >"$tmp/log"
# A path that has to be escaped in a label.
./gannetd --foreground --rdma iwarp --rdma-port 0 --port 0 --no-rpcbind \
	--state-dir "$tmp/state" --metrics 127.0.0.1:0 \
	--export '"mem:/a\042b\134c" *(rw,insecure)' \
	--export 'mem:/m *(rw,insecure,all_squash,anonuid=0,anongid=0)' \
	>"$tmp/log" 2>&1 &
server=$!
soon grep -q '^ready$' "$tmp/log"
soon grep -q 'metrics are at' "$tmp/log"
tcp=$(sed -n 's/^ready: tcp //p' "$tmp/log")
iwarp=$(sed -n 's/^ready: iwarp //p' "$tmp/log")
port=$(sed -n 's,.*metrics are at http://127.0.0.1:\([0-9]*\)/.*,\1,p' \
	"$tmp/log")
[ -n "$port" ] || { cat "$tmp/log"; exit 1; }
# scrape FILE [HEADER]
scrape()
{
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return
	printf 'GET /metrics HTTP/1.0\r\n%s\r\n' "${2:+$2$'\r\n'}" >&3
	sed '1,/^\r*$/d' <&3 >"$1"
	exec 3<&-
}

url="tcp://127.0.0.1:$tcp/m"
q="?mountport=$tcp"
head -c 5000 /dev/zero >"$tmp/sent"
./gannet-nfs put "$tmp/sent" "$url/new$q" || fail "put"
./gannet-nfs cat "$url/missing$q" 2>/dev/null && fail "there is one missing"
./gannet-nfs get "$url/new$q" - >/dev/null || fail "get"
./gannet-nfs get "rdma+iwarp://127.0.0.1:$iwarp/m/new$q" - >/dev/null ||
	fail "get over iWARP"
scrape "$tmp/metrics"
promtool check metrics <"$tmp/metrics" || fail "promtool check metrics"
# OpenMetrics, which promtool does not read, by the parser of its authors.
# Debian's Python has it, perhaps not the first one of the path.
scrape "$tmp/open" 'Accept: application/openmetrics-text; version=1.0.0'
grep -qx '# EOF' "$tmp/open" || fail "no OpenMetrics"
if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
	/usr/bin/python3 - "$tmp/open" <<-'END' || fail "OpenMetrics"
		import sys
		from prometheus_client.openmetrics import parser
		with open(sys.argv[1]) as f:
		    n = len(list(parser.text_fd_to_metric_families(f)))
		sys.exit(n < 100)
	END
fi
# value SERIES
value() { awk -v s="$1" '$1 == s { print $2 }' "$tmp/metrics"; }
nfs='program="nfs",version="3",procedure'
n=$(value "gannet_procedure_calls_total{$nfs=\"WRITE\",transport=\"tcp\"}")
[ "$n" = 1 ] || fail "$n WRITEs"
n=$(value 'gannet_nfs_errors_total{status="NFS3ERR_NOENT"}')
[ "$n" -ge 1 ] || fail "$n NFS3ERR_NOENT"
n=$(value "gannet_procedure_calls_total{$nfs=\"READ\",transport=\"rdma\"}")
[ "$n" -ge 1 ] || fail "$n READs over RDMA"
# A client that is done and leaves is no error.
for name in gannet_tcp_closed_error_total gannet_tcp_resets_total \
		'gannet_rdma_errors_total{kind="connection"}'; do
	[ "$(value "$name")" = 0 ] || fail "$name is $(value "$name")"
done
[ -n "$(value gannet_rdma_credits_granted)" ] || fail "no credits"
grep -qF 'gannet_workers_busy{share="/a\"b\\c"} 0' "$tmp/metrics" ||
	fail "no share of /a\"b\\c"
# Alerts and the dashboard ask for metrics that there are.
promtool check rules "$top/etc/gannet.rules.yml" >"$tmp/rules" ||
	{ fail "promtool check rules"; cat "$tmp/rules"; }
for name in $(cat "$top/etc/gannet.rules.yml" "$top/etc/grafana-gannet.json" |
		grep -oE '\b(gannet|process)_[a-z0-9_]+' | sort -u); do
	grep -qE "^# TYPE ${name%_bucket} " "$tmp/metrics" ||
		fail "etc/: there is no metric $name"
done
if command -v python3 >/dev/null; then
	python3 -m json.tool "$top/etc/grafana-gannet.json" >/dev/null ||
		fail "etc/grafana-gannet.json"
fi

# Each export has its own, and so does each client.
n=$(value 'gannet_export_written_bytes_total{export="/m"}')
[ "$n" = "$(stat -c %s "$tmp/sent")" ] || fail "$n bytes written to /m"
# The file system takes a part of that time, of a part of the calls.
export='{export="/m"}'
n=$(value "gannet_export_backend_seconds_count$export")
all=$(value "gannet_export_duration_seconds_count$export")
{ [ "$n" -gt 0 ] && [ "$n" -lt "$all" ]; } ||
	fail "$n operations of the backend were timed in $all calls"
n=$(value "gannet_export_backend_seconds_sum$export")
all=$(value "gannet_export_duration_seconds_sum$export")
awk "BEGIN { exit !($n > 0 && $n < $all) }" ||
	fail "the backend took $n s, the calls $all s"
n=$(value 'gannet_nfs_client_written_bytes_total{client="127.0.0.1"}')
[ "$n" = "$(stat -c %s "$tmp/sent")" ] || fail "$n bytes written by 127.0.0.1"
n=$(value 'gannet_nfs_client_calls_total{client="other"}')
[ "$n" = 0 ] || fail "$n calls by others"
kill $server
wait $server || fail "the server ended with $?"
server=
exit $failed
