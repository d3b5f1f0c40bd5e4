#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mandoc has nothing to say about the manuals, but that pages which they name
# are not installed here.
set -u
command -v mandoc >/dev/null ||
	{ echo "skipped: mandoc missing (package mandoc)"; exit 77; }
failed=0
for page in doc/*.[1-8] "${srcdir:-.}"/doc/*.[1-8]; do
	[ -e "$page" ] || continue
	said=$(mandoc -T lint -W style "$page" 2>&1 |
		grep -v -e 'STYLE: referenced manual not found' \
			-e 'outdated mandoc.db')
	[ -z "$said" ] || { printf '%s\n' "$said"; failed=1; }
done
exit $failed
