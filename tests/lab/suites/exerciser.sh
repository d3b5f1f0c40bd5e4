# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Random operations on one file against a copy in memory.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
same_on_the_server()
{
	forget
	cmp "$MNT/$1" "$BACK/$1"
}
for seed in 1 2; do
	check "random operations, seed $seed, give the right data" \
		"$BUILD/tests/lab/exerciser" "$MNT/f$seed" $seed 150
	check "so they are on the server" same_on_the_server f$seed
done
