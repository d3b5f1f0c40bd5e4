# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The rules of doc/posix.md on types of file systems that machines which build
# often lack: tests/server/test_nfs3_types on each, and on an NFS that gannetd
# itself serves here.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'types of file systems' "done beside gannetd"
	exit 0
fi
types=(ext4-casefold ext4-quota xfs-quota f2fs vfat exfat nfs)
! grep -qw ntfs3 /proc/filesystems || types+=(ntfs3)

rules_hold_on()
{
	cd "$BUILD"
	GANNET_TYPES=" $1 " tests/server/test_nfs3_types
}

each_holds()
{
	local type status
	for type; do
		status=0
		rules_hold_on "$type" > "$OUT/types-$type.out" 2>&1 || status=$?
		echo $status > "$OUT/types-$type.status"
	done
}

mkdir -p "$SRV/rw/types"
check 'NFS to export again is mounted' \
	mount_as tcp "$SRV/rw/types" /mnt/types
export GANNET_TYPES_NFS=/mnt/types
# As many at once as there are processors.
each_holds "${types[@]:0:3}" &
each_holds "${types[@]:3}" &
for type in "${types[@]}"; do
	check "the rules hold on $type" ended "types-$type"
done
check 'NFS is unmounted' wait_for 60 umount /mnt/types
rm -rf "$SRV/rw/types"
