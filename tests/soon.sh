# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests: they let no time pass in another way, which lint holds.

# soon COMMAND...: tries it again until it succeeds; false if it does not in two
# minutes, or $soon_s seconds, or longer on a busy machine.
soon()
{
	soon_tries=0
	until "$@"; do
		soon_tries=$((soon_tries + 1))
		[ $soon_tries -lt $((${soon_s:-120} * 10)) ] || {
			echo "not so in $soon_tries tries: $*" >&2
			return 1
		}
		sleep 0.1
	done
}
