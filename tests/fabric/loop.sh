#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What fabric.h promises, asked of the loop fabric under seeds (chance.c).
status=0
for seed in 1 2 3; do
	./tests/fabric/fabric_pair "loop,$seed" >/dev/null 2>loop_pair.log &&
		continue
	echo "loop,$seed failed:"
	cat loop_pair.log
	status=1
done
rm -f loop_pair.log
exit $status
