#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Wireshark's dissectors, written by others, understand every frame between
# gannet-nfs and gannetd, and agree with every CRC.  Needs tshark, dumpcap and
# leave to capture, which a network name space of one's own gives.
skip() { echo "$*"; exit 77; }

if [ "$1" != inside ]; then
	for tool in tshark dumpcap ip taskset unshare; do
		command -v $tool >/dev/null || skip "no $tool here"
	done
	unshare -rn true 2>/dev/null || skip "no name spaces for us here"
	# On one processor, or loopback gets packets out of order, and the
	# dissectors lose their place.
	cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
	exec taskset -c "$cpu" unshare -rn "$0" inside
fi

# gannet-nfs takes any port below 1024: none says what is in its stream.
dissect() { tshark -o tcp.try_heuristic_first:TRUE -r "$here/cap" "$@"; }
fail() { echo "$*"; status=1; }
status=0 capture=''
# shellcheck source=tests/server/own_gannetd.sh
. "$(dirname "$0")/own_gannetd.sh"
trap 'kill $server $capture 2>/dev/null; rm -rf "$here"' EXIT

# Segments as on a wire: what is captured is what is framed.
ip link set lo mtu 1500 gso_max_segs 1 up || skip "loopback can't be set up"
own_gannetd --no-rpcbind \
	--export "$here/export 127.0.0.1(rw,insecure,no_root_squash)"

dumpcap -q -i lo -B 64 -f "tcp port $iwarp" -w "$here/cap" 2>"$here/dumpcap" &
capture=$!
captures() { grep -q '^File: ' "$here/dumpcap"; }
captures_or_ends() { captures || ! kill -0 $capture 2>/dev/null; }
soon captures_or_ends && captures || skip "dumpcap: $(tail -1 "$here/dumpcap")"

url=rdma+iwarp://127.0.0.1:$iwarp$here/export
head -c 300001 /dev/urandom >"$here/in"
nfs() { timeout 300 ./gannet-nfs "$1" -q -m "$tcp" -d 1 "$2" "$3"; }
mkdir "$here/export/dir"
n=0
while [ $n -lt 200 ]; do
	: >"$here/export/dir/a-name-of-some-length-$n"
	n=$((n + 1))
done
nfs put "$here/in" "$url/file" && nfs get "$url/file" "$here/out" &&
	cmp "$here/in" "$here/out" || fail "the file is not copied"
timeout 300 ./gannet-nfs ls -m "$tcp" "$url/dir" >"$here/list" ||
	fail "the directory is not listed"

# What is in the kernel's buffer is written when it is asked for, or soon.
all_ended()
{
	[ "$(dissect -Y tcp.flags.fin==1 2>/dev/null | wc -l)" -ge 6 ]
}
soon all_ended || fail "the capture does not end"
kill -INT $capture
wait $capture
capture=''

# MPA, DDP and RDMAP.
dissect --disable-protocol rpcordma -V \
	>"$here/frames" 2>"$here/err" || { cat "$here/err"; exit 1; }
count() { grep -c "$1" "$here/frames"; }
fpdus=$(count 'ULPDU length: ')
echo "# $fpdus FPDUs, $(count 'Good CRC') with a good CRC"
[ "$fpdus" -gt 400 ] || fail "too few frames"
[ "$(count 'Good CRC')" = "$fpdus" ] || fail "not all have a good CRC"
[ "$(count 'Bad CRC')" = 0 ] || fail "bad CRCs"
[ "$(count 'Malformed\|Unreassembled\|Bad length')" = 0 ] ||
	fail "malformed frames"
for opcode in 'Write (0x0)' 'Read Request (0x1)' 'Read Response (0x2)' \
	      'Send (0x3)' 'Send with Invalidate (0x4)'; do
	[ "$(count "OpCode: $opcode")" -gt 0 ] || fail "no $opcode"
done

# RPC-over-RDMA and NFS.  A reply whose data went by RDMA Writes is dissected
# twice, once without the data, which tshark 4.0 calls malformed.
dissect -Y '_ws.malformed && !(nfs.procedure_v3 == 6)' \
	>"$here/malformed" 2>/dev/null
[ ! -s "$here/malformed" ] || fail "malformed:" "$(cat "$here/malformed")"
dissect -Y nfs >"$here/nfs" 2>/dev/null
for name in LOOKUP CREATE WRITE COMMIT READ READDIRPLUS; do
	for kind in Call Reply; do
		grep -q "V3 $name $kind" "$here/nfs" || fail "no $name $kind"
	done
done
kill $server
wait $server || fail "gannetd ends with an error"
server=''
exit $status
