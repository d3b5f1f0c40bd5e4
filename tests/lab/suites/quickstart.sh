# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# ./quickstart serve beside a server that has the usual ports: what it prints
# is run as it stands.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'quickstart serve' "it starts gannetd"
	exit 0
fi
here=/run/quickstart
mkdir -p $here/tests
cp "$LAB/../../quickstart" $here/
cp "$LAB/../quickstart-serve.sh" $here/tests/
served=/srv/quickstart

serve()
{
	mkdir -p $served
	chown 2001:3001 $served
	GANNETD=$BUILD/gannetd setsid env --default-signal=INT \
		$here/quickstart serve $served > "$OUT/quickstart" 2>&1 &
	echo $! > "$OUT/quickstart.pid"
	wait_for 200 grep 'Only this machine' "$OUT/quickstart" ||
		{ cat "$OUT/quickstart"; return 1; }
}

mount_lines() { grep '^    mount .*'"$1" "$OUT/quickstart"; }

# pasted PATTERN FILE: the line that matches, run by a shell.
pasted()
{
	mount_lines "$1" | head -1 > "$OUT/line"
	cat "$OUT/line"
	timeout 200 sh "$OUT/line"
	echo hello > /mnt/"$2"
	mkdir /mnt/"$2".d
	umount /mnt
	grep hello $served/"$2"
	test "$(stat -c %u:%g $served/"$2" $served/"$2".d | sort -u)" = \
		2001:3001
}

ends()
{
	local pid
	pid=$(cat "$OUT/quickstart.pid")
	kill -INT "$pid"
	wait_for 120 is_gone "$pid"
	grep -x 'quickstart: ended' "$OUT/quickstart"
}

check 'it is ready' serve
check 'it says as whom clients act' \
	grep 'acts there as user 2001\.$' "$OUT/quickstart"
check 'it takes other ports and says so' grep 'is taken' "$OUT/quickstart"
check 'the pasted command mounts over TCP' pasted proto=tcp a
if [ -e /sys/class/infiniband/rxe0 ]; then
	check 'the pasted command mounts over RDMA' pasted proto=rdma b
fi
check 'Ctrl-C ends it' ends
