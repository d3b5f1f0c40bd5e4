# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced inside the guests of tests/lab/ceph and tests/lab/move, after lib.sh:
# work on a mount that can be looked over at another.

# committed, in the work tree: is called with the number of each commit.
committed() { :; }

# commits TREE COUNT
commits()
{
	local i
	git init -q -b main "$1"
	cd "$1" || return
	for ((i = 0; i < $2; i++)); do
		seq $((i * 100)) $((i * 100 + 500)) > "file$((i % 5))"
		git add .
		git commit -q -m "commit $i"
		committed $i
	done
	[ "$(git rev-list --count HEAD)" = "$2" ]
}
is_sound()
{
	forget
	git -C "$1" fsck --full --strict
	[ -z "$(git -C "$1" status --porcelain)" ]
	[ "$(git -C "$1" rev-list --count HEAD)" = "$2" ]
}

# verify DIR OPTION...: fio writes there, or reads what it wrote.
verify()
{
	fio --name=job --directory="$1" --rw=randwrite --bs=64k --size=24m \
		--ioengine=libaio --iodepth=8 --verify=crc32c \
		--verify_fatal=1 --fallocate=none --randseed=7 \
		--output-format=terse "${@:2}" > "$OUT/fio" ||
		{ cat "$OUT/fio"; return 1; }
}
verified_at() { forget; verify "$1" --verify_only; }
