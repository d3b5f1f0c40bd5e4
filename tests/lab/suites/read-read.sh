# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Long replies that lie in the server's memory, and are read from there (RFC
# 5666 section 3.8), over the kernel's devices and gannetd's own iWARP.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'long replies are read' "it takes gannetd"
	exit 0
fi
back=$SRV/rw/read-read
size=3000001
mkdir -p "$back"
head -c $size /dev/urandom > "$back/file"

# fetch FABRIC ADDRESS PORT
fetch()
{
	timeout 100 "$BUILD/tests/lab/fetcher" "$1" "$2" "$3" "$handle" $size
}

fetched() { fetch "$@" | cmp - "$back/file"; }

# So many were read, and the client said so of each.
counted()
{
	local n=$1
	kill -USR1 "$(server_pid)"
	wait_for 60 grep 'READ: .* calls' "$OUT/server.log"
	grep -E ' rdma_(exposed|done_taken) ' "$OUT/server.log"
	grep -qE " rdma_exposed  *$n\b" "$OUT/server.log"
	grep -qE " rdma_done_taken  *$n\b" "$OUT/server.log"
}

handle_of()
{
	"$BUILD/gannet-nfs" stat "tcp://198.51.100.1$back/file" |
		sed -n 's/^ *Handle: [0-9]* bytes //p'
}

server_stop
READ_READ=1 server_start
handle=$(handle_of)
n=0
for way in rxe:verbs:192.0.2.1:20049 siw:verbs:198.51.100.1:20049 \
	siw:iwarp:198.51.100.1:20050; do
	IFS=: read -r device fabric address port <<< "$way"
	T=$device-$fabric
	if [ ! -e "/sys/class/infiniband/${device}0" ]; then
		skip 'long replies are read' "no ${device}0 here"
		continue
	fi
	check 'long replies are read' fetched "$fabric" "$address" "$port"
	n=$((n + 23))
done
T=''
check 'the client said when it had them' counted $n
server_stop
server_start
refuses() { refused 'fetcher: READ' fetch verbs 192.0.2.1 20049; }
check 'no memory is open to be read without the option' refuses
rm -rf "$back"
