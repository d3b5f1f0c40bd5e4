# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# gannet-nfs, and so the requester and iWARP in user space, with the kernel's
# server over siw.
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

# Its port is taken: gannetd says by what, and leaves it alone.
gannetd_yields()
{
	! "$BUILD/gannetd" --foreground --export=mem:/x --rdma=off \
		--no-rpcbind --state-dir="$here/state" 2> "$here/log"
	cat "$here/log"
	grep "the kernel's NFS server runs" "$here/log"
	test "$(< /proc/fs/nfsd/threads)" -gt 0
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
check "gannetd takes over again" gannetd_takes_over
rm -rf "$back"
