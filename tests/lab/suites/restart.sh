# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The server ends and starts again while the client writes and reads.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
progress() { [ "$(cat "$OUT/ack" 2>/dev/null || echo 0)" -gt "$1" ]; }

restart()
{
	local before
	before=$(cat "$OUT/ack")
	server_stop
	server_start
	wait_for 90 progress $((before + 20))
}

rm -f "$OUT/ack" "$OUT/ack.stop"
mkdir "$BACK/ledger"
background exerciser "$BUILD/tests/lab/exerciser" "$MNT/f" 3 50 15
background ledger "$BUILD/tests/lab/ledger" write "$MNT/ledger" "$OUT/ack" 600
check 'there is load' wait_for 30 progress 20
check 'the client carries on after a restart' restart
check 'and after another one' restart
check 'the load saw nothing but right data' ended exerciser
touch "$OUT/ack.stop"
check 'no write failed' ended ledger
forget
check 'every record is there for the client' \
	"$BUILD/tests/lab/ledger" check "$MNT/ledger" "$(cat "$OUT/ack")"
check 'every record is on the server' \
	"$BUILD/tests/lab/ledger" check "$BACK/ledger" "$(cat "$OUT/ack")"
check 'the file is the same on the server' cmp "$MNT/f" "$BACK/f"
