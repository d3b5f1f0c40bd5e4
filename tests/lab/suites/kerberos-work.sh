# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Work on a mount with krb5p over RDMA, and each file as the server has it.
# Whoever names this suite wants it: it takes a minute.
# shellcheck source=tests/lab/realm.sh
. "$LAB/realm.sh"
lacks=$(realm_lacks)
if [ -n "$lacks" ]; then
	skip 'work with krb5p over rdma' "$lacks"
	exit 0
fi
realm_start
at=$mnt/work back=$dir/work
cp -a "$ORIGIN" $realm/origin

# tree DIR: every object in it.
tree() { find "$1" -printf '%P %y %m %U %G %n %i %T@ %l\n' | sort; }

# Not to compare, since a file of 6 GiB is left, of which little is data.
rules()
{
	mounted rdma krb5p
	mkdir "$at" "$at/rules"
	"$BUILD/tests/lab/fscheck/fscheck" "$at/rules" "$back/rules" io
	rm -r "$back/rules"
	umount $mnt
}
exercised()
{
	mounted rdma krb5p
	"$BUILD/tests/lab/exerciser" "$at/file" 1 75
	umount $mnt
	mounted rdma krb5p
	cmp "$at/file" "$back/file"
	umount $mnt
}
committed()
{
	mounted rdma krb5p
	git clone -q --no-local $realm/origin "$at/clone"
	git -C "$at/clone" mv a e
	git -C "$at/clone" commit -q -a -m move
	umount $mnt
	mounted rdma krb5p
	git -C "$at/clone" fsck --full --strict
	diff -r --no-dereference "$at" "$back"
	diff <(tree "$at") <(tree "$back")
	umount $mnt
}
if has rxe0 rdma; then
	check "data follows the file system's rules with krb5p over rdma" rules
	check 'writes and reads of all kinds see each other' exercised
	check 'git works, and all is as the server has it' committed
fi
realm_end
