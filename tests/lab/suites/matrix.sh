# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# This kernel's client and gannetd, with every size of READ and WRITE, every
# inline size of either side, over every transport: each two of them meet in a
# cell of the table.  With LAB_FULL all of them do.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'sizes' "done with gannetd, and gannet-nfs in the suite knfsd"
	exit 0
fi
back=$SRV/rw/matrix
sizes=(1024 4096 5000 12288 65536 262144 1048576)
inlines=(1024 4096 8192 16384 65536)
servers=(4096 1024 65536)
transports=(rxe siw iwarp)
mkdir -p "$back" /mnt/matrix

# line TRANSPORT SIZE [INLINE SERVER-INLINE]: for tests/lab/matrix.
line()
{
	local slots=128
	case ${3:-0} in
	1024) slots=4 ;;
	65536) slots=1024 ;;
	esac
	echo "$1 $(transport_address "$1")" \
		"$(transport_options "$1"),mountproto=tcp,mountport=2049" \
		"$2 ${3:-0} $slots ${4:-0}"
}

# cells SERVER: with that one of the server's inline sizes.  The sums give each
# pair, since the numbers of transports and servers are the same prime.
cells()
{
	local i j t
	for i in "${!sizes[@]}"; do
		for j in "${!inlines[@]}"; do
			for t in "${!transports[@]}"; do
				[ -n "${LAB_FULL:-}" ] ||
				[ $(((i + j) % 3))$(((i + 2 * j) % 3)) = \
					"$t$1" ] || continue
				is_here "${transports[t]}" ||
					continue
				line "${transports[t]}" "${sizes[i]}" \
					"${inlines[j]}" "${servers[$1]}"
			done
		done
	done
}

is_here()
{
	case $1 in
	siw | iwarp) [ -e /sys/class/infiniband/siw0 ] ;;
	rxe) [ -e /sys/class/infiniband/rxe0 ] ;;
	esac
}

# As this kernel starts with.
client_as_it_was()
{
	local dir=/proc/sys/sunrpc
	echo 4096 > $dir/rdma_max_inline_read
	echo 4096 > $dir/rdma_max_inline_write
	echo 128 > $dir/rdma_slot_table_entries
}

restart_with()
{
	server_stop
	INLINE=$1 server_start
}

# Its lines are results.
work()
{
	"$BUILD/tests/lab/matrix" /mnt/matrix "$back" "$back" \
		"$LOGS/server.log" "$OUT/matrix" \
		"$BUILD/gannetctl --socket=/srv/state/control --json clients" |
		sed -E "s/^(ok|not ok) - /&$SUITE: /"
	[ "${PIPESTATUS[0]}" = 0 ] || not_ok 'it runs to its end'
}

for t in "${transports[@]}"; do
	is_here "$t" || skip "$t" "no such device here"
done
for size in "${sizes[@]}"; do line tcp "$size"; done | work
for s in "${!servers[@]}"; do
	[ "${servers[s]}" = 4096 ] ||
		check "inline ${servers[s]}: gannetd starts" \
			restart_with "${servers[s]}"
	cells "$s" | work
done
client_as_it_was
check 'gannetd starts as it was' restart_with ''
rm -rf "$back"
