#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tests of the procedures once more, over a fabric that does all that RDMA
# lets it do (tests/loop/chance.c), under many seeds: in a build's
# directory
#
#	tests/server/nfs3_seeds.sh [--seeds=N] [--from=SEED] [--whole]
#
# Each seed has one of the suites, in turns, the long ones less often; --whole:
# all of them.
set -u
seeds=4 from=1 whole=''
for option; do
	case $option in
	--seeds=*) seeds=${option#*=} ;;
	--from=*) from=${option#*=} ;;
	--whole) whole=1 ;;
	*) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
done

logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
suites=(attr changes faults io names pieces readdir)
turns=(pieces attr changes names attr changes names io pieces attr changes
	names attr changes names readdir pieces attr changes names attr changes
	names io pieces attr changes names attr changes names faults)

# one SUITE SEED
one()
{
	local log=$logs/$1.$2
	HARNESS_FABRIC=loop,$2 "tests/server/test_nfs3_$1" >"$log" 2>&1 &&
		{ rm "$log"; return; }
	echo "HARNESS_FABRIC=loop,$2 tests/server/test_nfs3_$1 failed"
	cat "$log"
}

for ((seed = from; seed < from + seeds; seed++)); do
	share=("${suites[@]}")
	[ -n "$whole" ] || share=("${turns[seed % ${#turns[@]}]}")
	for suite in "${share[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
		one "$suite" "$seed" &
	done
done
wait
[ -z "$(ls -A "$logs")" ] || exit 1
echo "# $seeds seeds"
