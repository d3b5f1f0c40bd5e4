# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# One directory mounted over every transport at once: each sees what the
# others do.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
back=$SRV/rw/together
transports='tcp rxe siw iwarp'
[ -e /sys/class/infiniband/siw0 ] || transports='tcp rxe'
[ "$SERVER" = gannetd ] || transports='tcp rxe siw'
mkdir -p "$back"

# Without sharing, or the client would take one connection for all.
mounted()
{
	local t
	for t in $transports; do
		mount_as "$t" "$back" "/mnt/by-$t" noac,nosharecache
		grep " /mnt/by-$t .*$(transport_options "$t" | cut -d, -f1)," \
			/proc/mounts
	done
}

# Each writes a file whole; all then see the same.
each_writes()
{
	local t u
	head -c 400007 /dev/urandom > "$OUT/random"
	for t in $transports; do
		cat "$OUT/random" > "/mnt/by-$t/from-$t"
		cmp "$OUT/random" "$back/from-$t"
		for u in $transports; do
			cmp "$OUT/random" "/mnt/by-$u/from-$t"
		done
	done
}

# One file, a piece from each in turn, two rounds of it.
one_file()
{
	local t i=0
	for t in $transports $transports; do
		head -c 70001 /dev/urandom > "$OUT/piece"
		dd if="$OUT/piece" of="/mnt/by-$t/file" bs=70001 seek=$i \
			conv=notrunc,fsync status=none
		cat "$OUT/piece" >> "$OUT/whole"
		i=$((i + 1))
		test "$(stat -c %s "/mnt/by-$t/file")" = $((i * 70001))
	done
	for t in $transports; do cmp "$OUT/whole" "/mnt/by-$t/file"; done
}

# All at once, in one directory.
at_once()
{
	local t
	for t in $transports; do
		background "$t" sh -c "for i in 1 2 3 4; do
			mkdir /mnt/by-$t/$t-\$i &&
			echo \$i > /mnt/by-$t/n-$t-\$i &&
			mv /mnt/by-$t/n-$t-\$i /mnt/by-$t/$t-\$i/file || exit 1
		done"
	done
	for t in $transports; do ended "$t"; done
	(cd "$back" && find . | sort) > "$OUT/tree"
	test "$(grep -c -- '-[0-9]/file$' "$OUT/tree")" = \
		$((4 * $(wc -w <<< "$transports")))
	for t in $transports; do
		(cd "/mnt/by-$t" && find . | sort) | cmp - "$OUT/tree"
	done
}

gone()
{
	local t
	rm /mnt/by-tcp/file
	for t in $transports; do refused 'no such' cat "/mnt/by-$t/file"; done
}

unmounted()
{
	local t
	for t in $transports; do timeout 200 umount "/mnt/by-$t"; done
}

rm -f "$OUT/whole"
check 'all are mounted' mounted
check 'what one writes the others read' each_writes
check 'they take turns in one file' one_file
check 'they change one directory at once' at_once
check 'what one removes is gone for all' gone
check 'all unmount' unmounted
rm -rf "$back"
