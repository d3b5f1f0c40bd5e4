# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The kernel's client with Kerberos: krb5, krb5i and krb5p over TCP and rxe,
# krb5p over siw and iWARP in user space, where nobody on the way reads the
# data.  Users are who their tickets say, as long as these last and the clocks
# agree, and go on when the server is another, or has another key.
# shellcheck source=tests/lab/realm.sh
. "$LAB/realm.sh"
lacks=$(realm_lacks)
if [ -n "$lacks" ]; then
	skip 'clients prove who they are' "$lacks"
	exit 0
fi
realm_start
# The end has a mark that a packet holds many times.
mark='nobody on the way may read this line'
{ head -c 1500001 /dev/urandom; yes "$mark" | head -c 100000; } > $realm/data

# moves TRANSPORT SEC: what it writes is there, and what is there it reads.
moves()
{
	mounted "$@"
	cp $realm/data "$mnt/$1-$2"
	umount $mnt
	cmp $realm/data "$dir/$1-$2"
	mounted "$@"
	cmp $realm/data "$mnt/$1-$2"
	[ "$(stat -c %u "$mnt/$1-$2")" = 0 ]
	umount $mnt
}

# Counts the packets with the mark, since all of these links are this machine's
# own, until it is ended; then prints the number.
sniffer='
import signal, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)	# SO_RCVBUFFORCE
s.bind(("lo", 0))
n = 0
def end(*args):
	print(n)
	sys.exit()
signal.signal(signal.SIGTERM, end)
open(sys.argv[2], "w").close()
while True:
	n += sys.argv[1].encode() in s.recv(1 << 17)'

# seen TRANSPORT SEC: the same as moves, with the number of packets in $marks.
seen()
{
	local pid
	rm -f $realm/sniffs
	python3 -c "$sniffer" "$mark" $realm/sniffs > $realm/marks &
	pid=$!
	wait_for 60 test -e $realm/sniffs
	moves "$@"
	kill $pid
	wait $pid
	marks=$(<$realm/marks)
	echo "$marks packets"
}
hidden() { seen "$@"; [ "$marks" = 0 ]; }
in_clear() { seen "$@"; [ "$marks" -gt 0 ]; }
if ! type -P python3 > /dev/null; then
	skip 'what is seen on the way' "no python3 here"
	hidden() { moves "$@"; }
	in_clear() { moves "$@"; }
fi

check 'data moves with krb5 over tcp' moves tcp krb5
check 'with krb5i it is seen on the way' in_clear tcp krb5i
check 'with krb5p it is not' hidden tcp krb5p
if has rxe0 rdma; then
	for sec in krb5 krb5i krb5p; do
		check "data moves with $sec over rdma" moves rdma $sec
	done
fi
if has siw0 siw; then
	check 'nor with krb5p over siw' hidden siw krb5p
	check 'nor with krb5p over iwarp' hidden iwarp krb5p
fi
check 'sec=sys is refused' refused 'denied' mounted tcp sys

# Without sec= the client takes the first flavor that it has.
tickets()
{
	ticket
	mounted tcp
	grep " $mnt .*sec=krb5i," /proc/mounts
	as 1 "umask 077; echo mine > $mnt/mine"
	[ "$(stat -c %u "$dir/mine")" = 1 ]
	as 1 "cat $mnt/mine"
	refused 'denied' as 2 "cat $mnt/mine"
	umount $mnt
}
check 'a user is who the ticket says, and without one none' tickets

# The kernel keeps the context that it has until the mount ends.
destroyed()
{
	kdestroy -c FILE:/tmp/krb5cc_1
	mounted tcp krb5p
	refused 'denied' may_change
	ticket
	wait_for 60 may_change
	umount $mnt
}
check 'a ticket that is destroyed is gone for the next mount' destroyed

short_ticket() { ticket 1 alice -l 10s && may_change; }
expired()
{
	mounted tcp krb5p
	wait_for 120 short_ticket
	wait_for 60 refused 'denied\|expired' may_change
	ticket
	wait_for 60 may_change
	umount $mnt
}
check 'a ticket ends with its time, and the next one counts' expired

# skewed SECONDS: alice's tickets, with which libkrb5 takes the time of this
# machine for wrong by so much, as the header of the file says.
skewed()
{
	local cache=/tmp/krb5cc_1 header
	ticket
	as 1 "kvno -q -c FILE:$cache nfs/$host"
	header=$(od -An -j3 -N1 -tu1 $cache)
	{
		printf '\5\4\0\14\0\1\0\10'
		printf '%b' "$(printf '%08x' "$1" | sed 's/../\\x&/g')"
		printf '\0\0\0\0'
		tail -c +$((5 + header)) $cache
	} > $realm/skewed
	cp $realm/skewed $cache
}

clock()
{
	mounted tcp krb5p
	skewed 600
	refused 'denied' may_change
	wait_for 60 grep \
		"warn: .*no context of RPCSEC_GSS: .*(the clocks of" "$log"
	echo other > $mnt/root
	skewed 200
	wait_for 60 may_change
	umount $mnt
}
check 'a clock that is off is refused, and hurts nobody else' clock

restarted()
{
	mounted "$1" krb5p
	may_change
	kill -KILL "$(<$realm/server)"
	wait_for 60 is_gone "$(<$realm/server)"
	serve
	may_change
	echo "$1" > $mnt/root
	[ "$(<"$dir/root")" = "$1" ]
	umount $mnt
}
# rolled FILE: there, another key is beside the old one.
rolled()
{
	KRB5_KDC_PROFILE=$realm/kdc.conf kadmin.local -r GANNET.TEST \
		-q "ktadd -k $1 nfs/$host"
}

# kept_ticket UID USER: from before, for the server.
kept_ticket()
{
	ticket "$1" "$2"
	as "$1" "kvno -q -c FILE:/tmp/krb5cc_$1 nfs/$host"
	mv /tmp/krb5cc_"$1" $realm/ticket-"$1"
}
use_kept_ticket() { mv $realm/ticket-"$1" /tmp/krb5cc_"$1"; }

# A file that was made elsewhere takes the keytab's place twice: with the old
# key and another one, then with that one alone.
replaced()
{
	ticket
	kept_ticket 2 bin
	kept_ticket 3 sys
	mounted tcp krb5p
	may_change
	cp $realm/server.keytab $realm/both.keytab
	rolled $realm/both.keytab
	mv $realm/both.keytab $realm/server.keytab
	may_change
	use_kept_ticket 2
	may_change 2

	printf 'rkt %s\ndelent 1\nwkt %s\n' $realm/server.keytab \
		$realm/new.keytab | ktutil
	mv $realm/new.keytab $realm/server.keytab
	may_change
	may_change 2
	use_kept_ticket 3
	refused 'denied' may_change 3
	wait_for 60 grep \
		'no context of RPCSEC_GSS: .*an old ticket needs kinit' "$log"
	ticket 3 sys
	wait_for 60 may_change 3
	umount $mnt
}
transport=tcp
[ ! -e /sys/class/infiniband/rxe0 ] || transport=rdma
check 'clients go on when the server was restarted' restarted $transport
check 'the keytab is replaced while clients use the old key' replaced
realm_end
