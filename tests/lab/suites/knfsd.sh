# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# gannet-nfs and the library below it, on RDMA devices and with iWARP in user
# space, and the kernel's server.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'gannet-nfs' "done beside gannetd"
	exit 0
fi
if [ ! -e /sys/class/infiniband/siw0 ]; then
	skip 'gannet-nfs' "no siw0 here"
	exit 0
fi
back=$SRV/rw/knfsd
here=$OUT/knfsd
mkdir -p "$back" "$here"

# nfs COMMAND ARGUMENT...
nfs()
{
	timeout 200 "$BUILD/gannet-nfs" "$1" -q -m 20048 "${@:2}"
}

mount_checked()
{
	nfs mount-check "$url" > "$here/check"
	cat "$here/check"
	grep -i credits "$here/check"
}

# Copied there and back, whole and in small pieces.
copied()
{
	local size
	for size in 0 3000 5000003; do
		head -c $size /dev/urandom > "$here/in"
		nfs put "$here/in" "$url/f$size"
		cmp "$here/in" "$back/f$size"
		nfs get "$url/f$size" "$here/out"
		cmp "$here/in" "$here/out"
	done
	nfs put "$here/in" "$url/f0"
	cmp "$here/in" "$back/f0"
	nfs put -d 32 -b 8192 "$here/in" "$url/pieces"
	cmp "$here/in" "$back/pieces"
	nfs get -d 32 -b 8191 "$url/pieces" "$here/out"
	cmp "$here/in" "$here/out"
}

listed()
{
	mkdir -p "$back/list"
	touch "$back"/list/a-name-that-is-not-short-{1..300}
	nfs ls "$url/list" > "$here/list"
	diff "$here/list" <(cd "$back/list" && LC_ALL=C ls)
	nfs ls -l "$url/list" > "$here/list"
	test "$(grep -c a-name "$here/list")" = 300
	refused 'noent' nfs stat "$url/none"
}

# By each kind of chunk, of a server that is not ours; at the end is a command.
examined()
{
	local text
	echo seed > "$back/seed"
	nfs doctor --write "$url" > "$here/doctor"
	rm "$back/seed"
	test -z "$(ls -A "$back")"
	cat "$here/doctor"
	for text in 'ok    mount        .* may be mounted' \
		'ok    nfs          version 3 answers at TCP port 2049' \
		'ok    rpcbind      the lock manager version 4 is at' \
		'rdma+verbs   device [a-z0-9]*, port 1: 4: ACTIVE, .*, GID ' \
		'ok    rdma+iwarp   what was written through a Read chunk' \
		'ok    rdma+iwarp   .* read through a Write chunk' \
		'ok    rdma+iwarp   a link .* Position-Zero .* a Reply chunk' \
		' us over RDMA: ' 'ok    clock' '^Mount with: mount -t nfs'; do
		grep -e "$text" "$here/doctor"
	done
	! grep -E '^(poor|bad) +rdma[+]iwarp ' "$here/doctor"
}

measured()
{
	nfs bench --time 1 --warmup 0 --size 1M getattr randwrite randread \
		"$url" > "$here/bench"
	cat "$here/bench"
	test "$(grep -c '^calls' "$here/bench")" = 3
	nfs certify "$url" > "$here/certify"
	cat "$here/certify"
	test -z "$(ls -A "$back")"
}

# Its port is taken: gannetd says by what, and leaves it alone.
gannetd_yields()
{
	local status=0
	"$BUILD/gannetd" --foreground --export=mem:/x --rdma=off \
		--no-rpcbind --state-dir="$here/state" 2> "$here/log" ||
		status=$?
	cat "$here/log"
	test $status = 3
	grep "the kernel's NFS server runs" "$here/log"
	test "$(< /proc/fs/nfsd/threads)" -gt 0
}

# ---- cells of the table of the suite matrix

sizes=(1024 4096 5000 12288 65536 262144 1048576)
inlines=(0 1024 4096 8192 65536)
servers=(4096 65536)
ways=(verbs-rxe verbs-siw iwarp-siw)

# cells SERVER: lines for tests/lab/requester, with that one of the server's
# sizes.  Of it, of sizes, ways and the client's inline sizes each two meet, but
# for some sizes of a transfer and of a message.
cells()
{
	local i j w
	for i in "${!sizes[@]}"; do
		for w in "${!ways[@]}"; do
			for j in "${!inlines[@]}"; do
				[ -n "${LAB_FULL:-}" ] ||
				[ $(((i + 2 * w) % 5))$(((i + w) % 2)) = \
					"$j$1" ] || continue
				cell "${ways[w]}" "${sizes[i]}" \
					"${inlines[j]}" "${servers[$1]}"
			done
		done
	done
}

# cell WAY SIZE INLINE SERVER-INLINE
cell()
{
	echo "$1 rdma+${1%-*}://$(transport_address "${1#*-}"
		)$back?mountport=20048 $2 $3 $4"
}

# Its lines are results.
work()
{
	timeout 300 "$BUILD/tests/lab/requester" "$back" "$OUT/matrix" |
		sed -E "s/^(ok|not ok) - /&$SUITE: /"
	[ "${PIPESTATUS[0]}" = 0 ] || not_ok 'it runs to its end'
}

all_cells()
{
	local s size=/proc/sys/sunrpc/svc_rdma/max_req_size
	for s in "${!servers[@]}"; do
		echo "${servers[s]}" > $size
		cells "$s" | work
	done
	echo 4096 > $size
}

check "the kernel's server takes over" knfsd_takes_over
check "gannetd does not start in its place" gannetd_yields
url=rdma+iwarp://$(transport_address siw)$back
for t in siw siw-crc; do
	siw_speaks $t
	check "$t: mount-check" mount_checked
	check "$t: files are copied there and back" copied
	check "$t: a directory is listed" listed
	rm -rf "${back:?}"/*
done
siw_speaks siw
check "the doctor tries each kind of chunk" examined
check "it is measured, and nothing is left behind" measured
all_cells
check "gannetd takes over again" gannetd_takes_over
rm -rf "$back"
