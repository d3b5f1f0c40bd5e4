# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Any header, good or bad, over each kind of device: the server gives the
# answer that the texts demand, and goes on.  The kernel's server is attacked
# for comparison: its table is printed, and fails nothing.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
back=$SRV/rw/adversary
mkdir -p "$back"

# attack NAME URL
attack()
{
	timeout 200 "$BUILD/tests/adversary/adversary" \
		"$2$back?mountport=$MOUNT_PORT" > "$OUT/adversary.$1"
}

siw_speaks siw
for t in rxe siw iwarp; do
	device=rxe0 port=20049 fabric=verbs
	[ $t = rxe ] || device=siw0
	[ $t != iwarp ] || port=20050 fabric=iwarp
	if [ ! -e /sys/class/infiniband/$device ]; then
		skip "attacks over $t" "no $device here"
		continue
	fi
	url=rdma+$fabric://$(transport_address $t):$port
	if [ "$SERVER" = knfsd ]; then
		[ $t = iwarp ] || attack $t "$url" ||
			echo "# the kernel's server answers some differently"
	else
		check "attacks over $t" attack $t "$url"
	fi
	[ ! -e "$OUT/adversary.$t" ] || note < "$OUT/adversary.$t"
done
rm -rf "$back"
