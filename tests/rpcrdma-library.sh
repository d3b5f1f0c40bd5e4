#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The shared library shows its interface and nothing else, and a program
# that knows only the public header runs with it.
status=0
fail() { echo "$*"; status=1; }

# Each symbol has a version.
shown=$(nm -D --defined-only libgannet-rpcrdma.so.0 |
	awk '$2 == "T" {sub(/@@GANNET_RPCRDMA_[0-9]+$/, "", $3); print $3}' |
	sort)
wanted=$(grep -oE '\bgannet_rpcrdma_[a-z_]+\(' \
		"${srcdir:-.}/include/gannet/rpcrdma.h" | tr -d '(' | sort -u)
[ "$shown" = "$wanted" ] ||
	fail "exported: $shown; declared: $wanted"

# Leaks of libraries that a device would need are not what this is about.
for example in rpcrdma-null rpcrdma-read; do
	LD_LIBRARY_PATH=. ./doc/examples/$example >out.$$ 2>&1
	[ $? -eq 2 ] && grep -q '^usage:' out.$$ || {
		fail "$example does not run:"; cat out.$$; }
done
rm -f out.$$

grep -q '^Version: [0-9]' tools/rpcrdma/gannet-rpcrdma.pc ||
	fail "gannet-rpcrdma.pc has no version"
exit $status
