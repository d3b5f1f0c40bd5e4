# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Listings of directories that change, in pages of 4096 bytes.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
back=$SRV/ext4/$T-walks
dir=/mnt/$T-walks
for how in rdirplus nordirplus; do
	# Without sharing, or READDIRPLUS would be all mounts' or none's.
	mkdir -p "$back"
	check "$how: mounted" mount_as "$T" "$back" "$dir" \
		$how,rsize=4096,actimeo=0,nosharecache
	mountpoint -q "$dir" || continue
	"$BUILD/tests/lab/fscheck/fscheck" "$dir" "$back" walks |
		sed -E "s/^(ok|not ok) - /&$T $SUITE: $how: /"
	status=${PIPESTATUS[0]}
	[ "$status" -lt 2 ] || not_ok "$how: fscheck runs to its end ($status)"
	check "$how: unmounted" timeout 200 umount "$dir"
	rm -rf "$back"
done

# counted SERVER: what its listings of a tmpfs miss.
counted()
{
	local back=$SRV/rw/$T-counted
	[ "$1" = gannetd ] || MOUNT_PORT=20048
	mkdir -p "$back"
	mount_as "$T" "$back" "$dir" rsize=4096,actimeo=0,nosharecache
	"$BUILD/tests/lab/fscheck/fscheck" "$dir" "$back" counted |
		grep ^counted > "$OUT/counted-$1" || true
	timeout 200 umount "$dir"
	rm -rf "$back"
	cat "$OUT/counted-$1"
	grep -q missed "$OUT/counted-$1"
}

no_worse_than_knfsd()
{
	counted gannetd
	knfsd_takes_over
	counted knfsd || true
	gannetd_takes_over
	diff "$OUT/counted-gannetd" "$OUT/counted-knfsd"
}

if [ "$T-$SERVER" = tcp-gannetd ]; then
	check "listings of a tmpfs miss what the kernel's server misses" \
		no_worse_than_knfsd
	note < "$OUT/counted-gannetd"
fi

# A tmpfs of this kernel counts entries: what its listings miss, the kernel's
# server misses, too, and the model knows.
walks=$BUILD/tests/server/test_nfs3_walks
if [ "$T-$SERVER" != tcp-gannetd ]; then
	:
elif [ -x "$walks" ]; then
	mkdir -p "$back"
	check 'pages of a tmpfs are what a local process finds' \
		env GANNET_WALK_STEPS=200 GANNET_WALK_DIR="$back" "$walks"
	rm -rf "$back"
else
	skip 'pages of a tmpfs' "no $walks: run make check"
fi
