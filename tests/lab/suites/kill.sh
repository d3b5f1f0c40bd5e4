# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The server is killed under load from every transport.  The export is ext4 on
# an image that gets only what is synced; a copy of the image, taken right
# then, is what a crash of the machine would have left.
# shellcheck source=tests/lab/load.sh
. "$LAB/load.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'kill -9' "the kernel's server can't be killed"
	exit 0
fi
load_transports tcp rxe siw iwarp

crash()
{
	server_kill
	promised
	cp --sparse=always /srv/image/ext4 /srv/image/crashed
}

survived()
{
	"$BUILD/tests/lab/ledger" check "/mnt/crashed/load-$1/ledger" \
		"$(cat "$OUT/$1.promised")"
}

after_the_crash()
{
	mkdir -p /mnt/crashed
	mount -o loop /srv/image/crashed /mnt/crashed
	each survived
	umount /mnt/crashed
}

carry_on()
{
	server_start
	each progress 300 20
}

check 'all are mounted' each load_mount "$SRV/ext4"
check 'there is load' load_start
check 'the server is killed' crash
check 'what was promised survives a crash' after_the_crash
check 'the clients carry on when it is back' carry_on
load_end "$SRV/ext4"
rm -f /srv/image/crashed
