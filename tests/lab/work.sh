# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced inside the guests of tests/lab/ceph and tests/lab/move, after lib.sh:
# work on a mount that can be looked over at another.
export GIT_CONFIG_COUNT=5
export GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=user.name GIT_CONFIG_VALUE_1=lab
export GIT_CONFIG_KEY_2=user.email GIT_CONFIG_VALUE_2=lab@localhost
export GIT_CONFIG_KEY_3=gc.auto GIT_CONFIG_VALUE_3=0
export GIT_CONFIG_KEY_4=maintenance.auto GIT_CONFIG_VALUE_4=false

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
