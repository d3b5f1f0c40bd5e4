# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Sourced: the script goes on in network, mount and process name spaces of its
# own, where an rpcbind answers, unless $rpcbind is "none", and has soon().
# Needs root (rpcbind gives up its user).
PATH=$PATH:/usr/sbin:/sbin
if [ "$1" != inside ]; then
	command -v rpcbind >/dev/null || exit 77
	[ "$(id -u)" = 0 ] || exit 77
	unshare -nmp --fork true 2>/dev/null || exit 77
	exec unshare -nmp --fork --kill-child "$0" inside
fi

mount -t proc none /proc || exit 77	# LeakSanitizer reads its own
mount -t tmpfs none /run || exit 77
ip link set lo up || exit 77

# shellcheck source=tests/soon.sh
. "$(dirname "$0")/../soon.sh"

[ "${rpcbind:-}" != none ] || return 0
rpcbind -f &
answers()
{
	[ -S /run/rpcbind.sock ] &&
		rpcinfo -T tcp 127.0.0.1 100000 4 >/dev/null 2>&1
}
soon answers || { echo "rpcbind does not start"; exit 1; }
