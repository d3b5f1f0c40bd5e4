#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gannet-nfs doctor on servers that are made for real, with their ports 111 and
# 2049, most of them broken in one way: tests/server/doctor_table.py has the
# table.
PATH=$PATH:/usr/sbin:/sbin
skip() { echo "skipped: $*"; exit 77; }
if [ "$1" != inside ]; then
	command -v python3 >/dev/null || skip "no python3"
	command -v ip >/dev/null || skip "no ip (package iproute2)"
	# Users of this machine are needed for some rows, root of a name space
	# of users is enough for the others.
	for how in -nmp -rnmp; do
		unshare $how --fork true 2>/dev/null &&
			exec unshare $how --fork --kill-child "$0" inside
	done
	skip "may not make name spaces"
fi
mount -t proc none /proc || skip "may not mount /proc"
mount -t tmpfs none /run || skip "may not mount a tmpfs"
ip link set lo up || skip "may not raise the loopback"
exec python3 "$(dirname "$0")/doctor_table.py"
