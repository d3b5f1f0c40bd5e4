# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# showmount, rpcinfo, and what rpcbind knows.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
host=192.0.2.1

exports_are_listed()
{
	local dir
	showmount -e --no-headers $host
	for dir in rw root_squash ro denied ext4; do
		showmount -e --no-headers $host | grep "^$SRV/$dir "
	done
	showmount -e --no-headers $host | grep "^$SRV/rw .*192.0.2.0/24"
}

mounts_are_listed()
{
	mount_as tcp "$SRV/ro" /mnt/listed
	showmount -a --no-headers $host | grep ":$SRV/ro$"
	showmount -d --no-headers $host | grep -x "$SRV/ro"
	umount /mnt/listed
}

umount_is_noted() { ! showmount -a --no-headers $host | grep ":$SRV/ro$"; }

registered()
{
	local row
	rpcinfo -p $host > "$OUT/rpcinfo"
	cat "$OUT/rpcinfo"
	while read -r row; do
		awk '{ print $1, $2, $3 }' "$OUT/rpcinfo" | grep -x "$row"
	done <<-ROWS
	100003 3 tcp
	100005 1 tcp
	100005 1 udp
	100005 3 tcp
	100005 3 udp
	ROWS
}

netids()
{
	local netid
	rpcinfo $host > "$OUT/rpcinfo"
	cat "$OUT/rpcinfo"
	for netid in tcp6 rdma rdma6; do
		awk '$1 == 100003 && $2 == 3 { print $3 }' "$OUT/rpcinfo" |
			grep -x $netid
	done
}

answers()
{
	rpcinfo -T tcp $host nfs 3
	rpcinfo -T tcp $host mountd 3
	rpcinfo -T udp $host mountd 3
	rpcinfo -T udp $host mountd 1
	rpcinfo -T tcp6 2001:db8:1::1 nfs 3
}

withdrawn()
{
	server_stop
	rpcinfo -p $host
	if rpcinfo -p $host | grep -E '^ *10000[35] '; then return 1; fi
	server_start
	registered
}

without_rpcbind()
{
	server_stop
	pkill -x rpcbind
	wait_for 60 sh -c '! pgrep -x rpcbind'
	server_start
	mount_as tcp "$SRV/ro" /mnt/alone
	grep 'read me' /mnt/alone/file
	umount /mnt/alone
	mount_as rxe "$SRV/ro" /mnt/alone
	grep 'read me' /mnt/alone/file
	umount /mnt/alone
}

check 'showmount -e lists the exports' exports_are_listed
check 'showmount -a and -d list a mount' mounts_are_listed
if [ "$SERVER" = gannetd ]; then
	check 'showmount -a forgets it after umount' umount_is_noted
fi
check 'rpcbind knows NFS and MOUNT' registered
if [ "$SERVER" = gannetd ]; then
	check 'rpcbind knows tcp6, rdma and rdma6' netids
fi
check 'both programs answer' answers
judge=$BUILD/tests/unit/test_export_judge
if [ -x "$judge" ]; then
	check 'addresses match the clients that exportfs says' "$judge"
else
	skip 'addresses match clients' "no $judge; run make check"
fi
if [ "$SERVER" = gannetd ]; then
	check 'it takes its entries back when it ends' withdrawn
	check 'it serves without rpcbind' without_rpcbind
	# Later suites ask rpcbind for the server, which has its port.
	server_stop
	rpcbind
	server_start
fi
