# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Files of odd sizes and a directory, there and back, by their checksums; of
# iWARP also that the connection began as the transport's name says.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
sizes='1 4097 3145731'

negotiated()
{
	local want
	case $T in
	*-crc) want='revision 2, CRC, Reads' ;;
	*-rtr-write) want='revision 2, CRC, begins with a Write, Reads' ;;
	*-rtr-read) want='revision 2, CRC, begins with a Read, Reads' ;;
	*-rev1) want='revision 1, CRC, Reads' ;;
	esac
	grep 'iwarp .*MPA' "$LOGS/server.log" | tail -1 > "$OUT/mpa"
	cat "$OUT/mpa"
	grep "MPA $want" "$OUT/mpa"
}

written()
{
	local size
	for size in $sizes; do
		head -c "$size" /dev/urandom > "$OUT/random"
		dd if="$OUT/random" of="$MNT/$size" bs=700001 conv=fsync \
			status=none
		cmp "$OUT/random" "$BACK/$size"
	done
	(cd "$BACK" && sha256sum $sizes) > "$OUT/sums"
}

# Past the page cache, and through it.
read_again()
{
	dd if="$MNT/3145731" bs=1M iflag=direct status=none |
		cmp - "$BACK/3145731"
	forget
	(cd "$MNT" && sha256sum --quiet -c "$OUT/sums")
}

listed()
{
	mkdir "$BACK/list"
	touch "$BACK"/list/name-{1..150}
	ls -lU "$MNT/list" > "$OUT/list"
	test "$(grep -c name- "$OUT/list")" = 150
	diff <(ls "$MNT/list") <(ls "$BACK/list")
}

case $T in
iwarp*) check 'the start-up is as asked for' negotiated ;;
esac
check 'files of odd sizes are written' written
check 'they are right for the client' read_again
check 'a directory is listed' listed
