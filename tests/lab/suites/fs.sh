# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Every check of fscheck: objects, names, directories, data, permissions.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
fscheck()
{
	"$BUILD/tests/lab/fscheck/fscheck" "$@" |
		sed -E "s/^(ok|not ok) - /&$T $SUITE: /"
	local status=${PIPESTATUS[0]}
	[ "$status" -lt 2 ] || not_ok "fscheck runs to its end ($status)"
}

fscheck "$MNT" "$BACK" tree names io sharing perm

# On ext4: a tmpfs counts entries instead of naming them, so that a directory
# which shrinks while it is listed is not listed whole (before Linux 6.6).
dir=/mnt/$T-ext4
mkdir -p "$SRV/ext4/$T"
check 'ext4 is mounted' mount_as "$T" "$SRV/ext4/$T" "$dir"
mountpoint -q "$dir" || exit 0
fscheck "$dir" "$SRV/ext4/$T" dirs
check 'ext4 unmounts' timeout 200 umount "$dir"
rm -rf "${SRV:?}/ext4/$T"
