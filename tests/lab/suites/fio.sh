# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Data with checksums, at several block sizes and depths.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
job()
{
	fio --name=job --directory="$MNT" --ioengine=libaio --verify=crc32c \
		--verify_fatal=1 --fallocate=none --randseed=7 \
		--output-format=terse "$@" >"$OUT/fio" ||
		{ cat "$OUT/fio"; return 1; }
	rm -f "$MNT"/job*
}
check '4 KiB, direct, depth 16' job \
	--rw=randwrite --bs=4k --iodepth=16 --direct=1 --size=4m
check '512 bytes to 20 KiB, direct, depth 8' job \
	--rw=randwrite --bsrange=512-20k --bs_unaligned --iodepth=8 \
	--direct=1 --size=4m
check '64 KiB, direct, depth 8, two jobs' job \
	--rw=randwrite --bs=64k --iodepth=8 --direct=1 --size=8m --numjobs=2
check '1 MiB, direct, depth 4' job \
	--rw=write --bs=1m --iodepth=4 --direct=1 --size=24m
check '13 KiB, through the page cache' job \
	--rw=randwrite --bs=13k --iodepth=1 --direct=0 --size=8m
