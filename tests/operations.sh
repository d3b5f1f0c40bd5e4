#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each line that doc/operations.md quotes from the log is one that the program
# can print.  "..." stands there for what a format fills in.
set -u
cd "${srcdir:-.}" || exit 1
failed=0 n=0

# The code, with the pieces of long strings joined.
code=$(cat lib/*.c daemon/*.c daemon/*/*.[ch] rpc/*.c exports/*.c vfs/*.c \
		vfs/posix/*.c modules/*/*.c mountd/*.c nlm/*.c \
		transport/*.c transport/*/*.c transport/*/*/*.c |
	tr '\n' ' ' | sed 's/"[[:space:]]*"//g')

# The first column of the tables of "When something fails".
while IFS= read -r line; do
	n=$((n + 1))
	while IFS= read -r part; do
		# Another string may begin or end there.
		part=${part#"${part%%[![:punct:] ]*}"}
		part=${part%"${part##*[![:punct:] ]}"}
		[ ${#part} -gt 3 ] || continue
		grep -qF -e "$part" <<< "$code" && continue
		echo "doc/operations.md: no message has '$part'"
		failed=1
	done <<< "${line//.../$'\n'}"
done < <(sed -n '/^## When something fails/,$p' doc/operations.md |
	sed -n 's/^| \(`.*`\) | .* | .* |$/\1/p' | grep -oE '`[^`]+`' |
	tr -d '`' )

echo "$n lines of the log"
[ "$n" -ge 30 ] || { echo "too few lines are quoted"; failed=1; }
exit $failed
