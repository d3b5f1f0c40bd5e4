# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Memory windows of the requester: the kernel's rxe device has them, siw has
# not, and there each call registers its memory.  Neither takes a dma-buf.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'replies come through windows' "it takes gannetd"
	exit 0
fi
back=$SRV/rw/windows
size=3000001
calls=23
mkdir -p "$back"
head -c $size /dev/urandom > "$back/file"
handle=$("$BUILD/gannet-nfs" stat "tcp://198.51.100.1$back/file" |
	sed -n 's/^ *Handle: [0-9]* bytes //p')

# fetched ADDRESS WAY LINE: the line is among what the fetcher says.
fetched()
{
	timeout 100 "$BUILD/tests/lab/fetcher" verbs "$1" 20049 "$handle" \
		$size "$2" 2> "$OUT/windows.log" | cmp - "$back/file" ||
		return 1
	cat "$OUT/windows.log"
	grep -qx "fetcher: $3" "$OUT/windows.log"
}

# One for each of eight places, or for each call.
for way in rxe:192.0.2.1:8 siw:198.51.100.1:$calls; do
	IFS=: read -r device address registrations <<< "$way"
	T=$device
	if [ ! -e "/sys/class/infiniband/${device}0" ]; then
		skip 'replies come through windows' "no ${device}0 here"
		continue
	fi
	check 'replies come through windows' fetched "$address" windows \
		"$registrations registrations"
	check 'a program goes on without a dma-buf' fetched "$address" dmabuf \
		'a dma-buf: not supported'
done
T=''
rm -rf "$back"
