# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests: a gannetd of their own.  The directory $here, with export/
# and state/ in it, and the server end with the test.
# shellcheck source=tests/soon.sh
. "$(dirname "$0")/../soon.sh"
here=$PWD/$(basename "$0" .sh).tmp
server=''
trap 'kill $server 2>/dev/null; rm -rf "$here"' EXIT
rm -rf "$here"
mkdir "$here" "$here/export" "$here/state" || exit 1

# own_gannetd OPTION...: serves over TCP and iWARP, at ports $tcp and $iwarp.
own_gannetd()
{
	: >"$here/ready"	# that of a server before says so, too
	./gannetd --foreground --port 0 --rdma iwarp --rdma-port 0 \
		--log-level warn --state-dir "$here/state" "$@" >"$here/ready" &
	server=$!
	soon grep -qx ready "$here/ready" ||
		{ echo "gannetd does not start"; exit 1; }
	# shellcheck disable=SC2034
	tcp=$(sed -n 's/^ready: tcp //p' "$here/ready")
	# shellcheck disable=SC2034
	iwarp=$(sed -n 's/^ready: iwarp //p' "$here/ready")
}
