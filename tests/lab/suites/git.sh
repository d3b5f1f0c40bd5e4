# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# A clone, checked; commits in it, packed and checked.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
# From memory: files of the host are slow when the guest has forgotten them.
origin=/run/lab/origin
[ -d $origin ] || cp -a "$ORIGIN" $origin

clone()
{
	git clone -q --no-local $origin "$MNT/clone"
	git -C "$MNT/clone" fsck --full --strict
	diff -r --no-dereference -x .git $origin "$MNT/clone"
	test -z "$(git -C "$MNT/clone" status --porcelain)"
}

work()
{
	cd "$MNT/clone" || return
	git mv a e
	echo more >> b/deep/1
	git rm -q -r c
	git commit -q -a -m 'move, change, remove'
	git gc -q
	forget
	git fsck --full --strict
	git reset -q --hard HEAD~1
	test -z "$(git status --porcelain)"
	diff -r --no-dereference -x .git $origin .
}

check 'a clone is sound' clone
check 'commits, gc and reset leave it sound' work
