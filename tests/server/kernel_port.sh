#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Where the kernel's server has the port, gannetd says so and ends with status
# 3, after which the unit does not start it again; where another server has it,
# with status 1.  The kernel's ports are in /proc: here, in a file of ours.
if [ -z "${KERNEL_PORT_SPACE:-}" ]; then
	own=''
	[ "$(id -u)" = 0 ] || own=-r
	# shellcheck disable=SC2086 # an option, or none
	unshare -m $own true 2>/dev/null ||
		{ echo "skipped: no mount name space here"; exit 77; }
	KERNEL_PORT_SPACE=1 exec unshare -m $own "$0"
fi
mount -t tmpfs none /proc/fs && mkdir /proc/fs/nfsd ||
	{ echo "skipped: nothing can be mounted there"; exit 77; }
# shellcheck source=tests/server/own_gannetd.sh
. "$(dirname "$0")/own_gannetd.sh"
own_gannetd --no-rpcbind --export mem:/x
status=0

# ends_with STATUS OPTION...: a second server, at the same port.
ends_with()
{
	wanted=$1; shift
	./gannetd --no-rpcbind --rdma off --port "$tcp" --export mem:/x \
		--state-dir "$here/other" "$@" >"$here/log" 2>&1
	got=$?
	[ $got = "$wanted" ] && return
	echo "status $got instead of $wanted"
	cat "$here/log"
	status=1
}

# kernel_at PORT...: where the kernel's server listens.
kernel_at()
{
	: >/proc/fs/nfsd/portlist
	for port; do
		printf 'rdma 1\ntcp %s\n' "$port" >>/proc/fs/nfsd/portlist
	done
}

stops_it="systemctl disable --now nfs-server"
kernel_at 2049 "$tcp"
ends_with 3 --foreground
ends_with 3
grep -q "$stops_it" "$here/log" ||
	{ echo "how to stop the kernel's is not said"; status=1; }
kernel_at "$iwarp"
ends_with 3 --port 0 --rdma iwarp --rdma-port "$iwarp"
# It serves beside this one, and is in nobody's way.
kernel_at 2049
ends_with 1 --foreground
ends_with 1
! grep -q "$stops_it" "$here/log" ||
	{ echo "the kernel's is to be stopped in vain"; status=1; }
# It is loaded, and serves nothing.
kernel_at
ends_with 1 --foreground
grep -q '^RestartPreventExitStatus=.*\<3\>' etc/gannetd.service ||
	{ echo "the unit starts it again"; status=1; }
exit $status
