#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What doc/scale.md says that tests/bench/scale prints is what it prints.
set -u
cd "${srcdir:-.}" || exit 1
command -v python3 > /dev/null || { echo 'no python3'; exit 77; }
failed=0 n=0

while read -r command; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # a line of the page
	out=$($command) || failed=1
	while IFS= read -r line; do
		grep -qxF -e "$line" doc/scale.md && continue
		echo "doc/scale.md: '$command' prints '$line'"
		failed=1
	done <<< "$out"
done < <(grep -x 'tests/bench/scale.*' doc/scale.md)
echo "$n commands"
[ $n -ge 3 ] && [ $failed = 0 ] || exit 1

# A mistake is told.
if tests/bench/scale --no-such=1 > /dev/null 2>&1; then
	echo 'a name that is not there is taken'
	exit 1
fi
