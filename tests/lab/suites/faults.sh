# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Between the kernel's siw and gannetd's iWARP sits somebody who does harm to
# a frame now and then.  Whatever it is, the client connects again, and in the
# end every byte is right.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ] || [ ! -e /sys/class/infiniband/siw0 ]; then
	skip 'harm to frames' "it takes gannetd, and siw0"
	exit 0
fi
back=$SRV/rw/faults
dir=/mnt/faults
mkdir -p "$back" $dir

# CRCs, or nobody would know.
mounted()
{
	siw_speaks iwarp-crc
	mkfifo "$OUT/orders"
	# Kept open, or its reader would see the end of it.
	exec 9<>"$OUT/orders"
	"$BUILD/tests/lab/meddler" 198.51.100.1 20051 20050 \
		<"$OUT/orders" >"$OUT/meddler" 2>&1 &
	echo $! > "$OUT/meddler.pid"
	timeout 200 mount -t nfs -o "vers=3,nolock,proto=rdma,port=20051,$(
		)mountport=$MOUNT_PORT,mountproto=tcp" "198.51.100.1:$back" $dir
}

all_done() { test "$(grep -c ^to- "$OUT/meddler")" = "$1"; }

# harm: what standard input orders is done to the frames of a file that is
# written and read, again until there is no more of it.
harm()
{
	local before i
	before=$(grep -c ^to- "$OUT/meddler" || true)
	sed 's/ *#.*//' > "$OUT/harm"
	cat "$OUT/harm" > "$OUT/orders"
	before=$((before + $(wc -l < "$OUT/harm")))
	for ((i = 0; i < 9; i++)); do
		timeout 300 dd if="$OUT/random" of=$dir/file bs=1M \
			conv=fsync status=none
		cmp "$OUT/random" "$back/file"
		timeout 300 dd if=$dir/file bs=1M iflag=direct status=none |
			cmp - "$OUT/random"
		if all_done $before; then return; fi
	done
	tail -1 "$OUT/meddler"
	return 1
}

# The server took each for what it was.
counted()
{
	local name
	kill -USR1 "$(server_pid)"
	wait_for 60 grep 'WRITE: .* calls' "$LOGS/server.log"
	grep ' iwarp_' "$LOGS/server.log"
	for name in iwarp_bad_crc iwarp_bad_length iwarp_bad_header \
		iwarp_bad_sequence iwarp_bad_response iwarp_cut_off \
		iwarp_requests_bad iwarp_terminates_in iwarp_terminates_out; do
		grep " $name " "$LOGS/server.log"
	done
}

ends_well()
{
	timeout 200 umount $dir
	kill "$(cat "$OUT/meddler.pid")"
	if grep 'not understood' "$OUT/meddler"; then return 1; fi
}

head -c 1300001 /dev/urandom > "$OUT/random"
rm -f "$OUT/orders"
mounted || not_ok 'it is mounted'
if ! mountpoint -q $dir; then exit 0; fi
check 'calls' harm <<'ORDERS'
to-server send 1 crc
to-server send 1 msn
to-server send 1 mo
to-server send 1 twice
to-server send 1 qn
to-server send 1 opcode
to-server send 1 version
to-server send 1 length
to-server send 1 cut 21
to-server send 1 terminate 0x1203
ORDERS
check "data of WRITEs" harm <<'ORDERS'
to-server response 3 data
to-server response 1 crc
to-server response 2 stag
to-server response 5 to
to-server response 4 drop
to-server response 2 cut 1		# in the length
to-server response 2 cut 9		# in the header
to-server response 3 cut 30001
to-server response 1 reset 501
to-server response 1 terminate 0x0100
ORDERS
check 'replies' harm <<'ORDERS'
to-client send 1 crc
to-client send 1 msn
to-client send 1 mo
to-client send 1 qn
to-client send 1 opcode
to-client send 1 cut 33
to-client send 1 terminate 0x2002
ORDERS
check 'data of READs' harm <<'ORDERS'
to-client write 2 data
to-client write 1 stag
to-client write 3 to
to-client write 2 drop
to-client write 2 cut 777
to-client write 1 reset 16
to-client write 1 terminate 0x1101
ORDERS
check 'the RDMA Reads for a WRITE' harm <<'ORDERS'
to-client request 1 crc
to-client request 1 stag
to-client request 1 msn
to-client request 1 cut 40
to-client request 1 terminate 0x0206
ORDERS
check 'starts' harm <<'ORDERS'
to-server send 1 reset 0
to-server start 1 cut 11
to-server start 1 key
to-client start 1 cut 19
to-client start 1 reject
to-client start 1 early
to-client any 1 terminate 0x2007
ORDERS
check 'the server counted them' counted
check 'it ends well' ends_well
siw_speaks iwarp
rm -rf "$back"
