#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# keepalived's script starts and stops the right unit, and refuses what it does
# not know.
script=${srcdir:-.}/etc/keepalived/gannet-notify
status=0

# does EXPECTED ARGUMENT...: runs the script with "echo" for systemctl.
does()
{
	expected=$1; shift
	got=$(SYSTEMCTL='echo' "$script" "$@" 2>/dev/null) || got=refused
	[ "$got" = "$expected" ] && return
	echo "gannet-notify $*: '$got', not '$expected'"
	status=1
}
does '--no-block restart gannetd@one.service' INSTANCE gannet_one MASTER 100
for state in BACKUP FAULT STOP; do
	does '--no-block stop gannetd@one.service' INSTANCE gannet_one $state
done
does refused INSTANCE gannet_one UNKNOWN
does refused INSTANCE gannet_one
does refused INSTANCE other MASTER
does refused GROUP gannet_one MASTER
does refused
exit $status
