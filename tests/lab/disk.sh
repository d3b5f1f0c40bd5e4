# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by suites with file systems of their own, one of each type, all
# exported by one server: they are harmed at once, or compared with what another
# server makes of them.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"

# Where the server has the file system of a type, and where the client has it.
there() { echo "$SRV/$SUITE-$1"; }
here() { echo "/mnt/$SUITE-$1"; }

# say COMMAND...: it, what it says, and how it ends, to compare two servers.
say()
{
	echo "\$ $*"
	"$@" 2>&1 || echo "= $?"
}

# disk_mkfs TYPE: the command that makes it.
disk_mkfs()
{
	case $1 in
	ext4) echo 'mke2fs -q -F -t ext4' ;;
	*) echo "mkfs.$1 -q -f -K" ;;
	esac
}

# disks_exported TYPE...: the server reads its exports again.
disks_exported()
{
	local type number=10 who
	cp /etc/exports "$OUT/exports"
	for type; do
		number=$((number + 1))
		who="(rw,insecure,no_root_squash,no_subtree_check,fsid=$number)"
		echo "$(there "$type") 192.0.2.0/24$who 198.51.100.0/24$who"
	done >> /etc/exports
	kill -HUP "$(server_pid)"
	for type; do wait_for 60 disk_is_exported "$type"; done
}
disk_is_exported()
{
	showmount -e --no-headers 192.0.2.1 | grep "^$(there "$1") "
}

disks_unexported()
{
	cp "$OUT/exports" /etc/exports
	server_start
}

# Of a client that is told of errors.
disk_options=soft,timeo=600,retrans=2
disks_mounted()
{
	local type
	for type; do
		mount_as tcp "$(there "$type")" "$(here "$type")" \
			"$disk_options"
		mountpoint "$(here "$type")"
	done
}

# As background, for what is to fail: in a check that ends the shell.
in_background() { (set +eE; trap - ERR; background "$@"); }

# ledgers_start COUNT TYPE...: so many on each; each writes until it is told of
# an error.
ledgers_start()
{
	local type i count=$1; shift
	rm -f "$OUT/$SUITE"-*.ack
	for type; do
		for ((i = 0; i < count; i++)); do
			mkdir -p "$(here "$type")/$i"
			in_background "$SUITE-$type-$i" \
				"$BUILD/tests/lab/ledger" write \
				"$(here "$type")/$i" \
				"$OUT/$SUITE-$type-$i.ack" 300
		done
	done
	for type; do
		for ((i = 0; i < count; i++)); do
			wait_for 200 ledger_has "$OUT/$SUITE-$type-$i.ack" 20
		done
	done
}
ledger_has() { [ -s "$1" ] && [ "$(<"$1")" -gt "$2" ]; }

# ledgers_are_told TYPE
ledgers_are_told()
{
	local ack name
	for ack in "$OUT/$SUITE-$1"-*.ack; do
		name=$(basename "$ack" .ack)
		wait_for 200 test -s "$OUT/$name.status"
		tail -1 "$OUT/$name.out"
		test "$(cat "$OUT/$name.status")" = 1
	done
}

# ledgers_hold TYPE: on the file system itself.
ledgers_hold()
{
	local ack name
	for ack in "$OUT/$SUITE-$1"-*.ack; do
		name=$(basename "$ack" .ack)
		"$BUILD/tests/lab/ledger" check "$(there "$1")/${name##*-}" \
			"$(cat "$ack")"
	done
}
