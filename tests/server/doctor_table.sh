#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gannet-nfs doctor on some fifty servers that are broken in one way each, with
# their ports 111 and 2049: tests/server/doctor_table.py has the table.
PATH=$PATH:/usr/sbin:/sbin
if [ "$1" != inside ]; then
	command -v python3 >/dev/null || exit 77
	command -v ip >/dev/null || exit 77
	# Users of this machine are needed for some rows, root of a name space
	# of users is enough for the others.
	for how in -nmp -rnmp; do
		unshare $how --fork true 2>/dev/null &&
			exec unshare $how --fork --kill-child "$0" inside
	done
	exit 77
fi
mount -t proc none /proc || exit 77
mount -t tmpfs none /run || exit 77
ip link set lo up || exit 77
exec python3 "$(dirname "$0")/doctor_table.py"
