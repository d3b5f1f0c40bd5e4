# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The kernel's client with Kerberos, and a KDC in the guest: krb5, krb5i and
# krb5p over TCP and rxe, krb5p over siw and iWARP in user space, where nobody
# on the way reads the data.  Users are who their tickets say, as long as these
# last, and go on when the server is another, or has another key.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'clients prove who they are' "it takes gannetd"
	exit 0
fi
if [ ! -e "$BUILD/modules/krb5/krb5.so" ] ||
		! type -P krb5kdc kadmin.local kinit > /dev/null; then
	skip 'clients prove who they are' "no module krb5, or no KDC"
	exit 0
fi
host=lab.gannet.test realm=/run/realm dir=$SRV/kerberos mnt=/mnt/kerberos
mkdir -p $realm "$dir" $mnt
chmod 1777 "$dir"
echo "192.0.2.1 $host" >> /etc/hosts
"$LAB/../krb5/realm" $realm 88 aes256-cts-hmac-sha1-96 $host
cp $realm/krb5.conf /etc/krb5.conf
cp $realm/client.keytab /etc/krb5.keytab
KRB5_KDC_PROFILE=$realm/kdc.conf krb5kdc -P $realm/pid -r GANNET.TEST
rpc.gssd -p /var/lib/nfs/rpc_pipefs

server_stop
cat > $realm/gannet.conf <<EOF
[exports]
backend-dir = $BUILD/modules/krb5
[server]
krb5-keytab = $realm/server.keytab
EOF
options='(rw,insecure,no_root_squash,sec=krb5:krb5i:krb5p)'
fabrics=verbs
[ ! -e /sys/class/infiniband/siw0 ] || fabrics=verbs,iwarp
serve()
{
	"$BUILD/gannetd" --config $realm/gannet.conf --foreground \
		--no-rpcbind --rdma $fabrics --state-dir $realm/state --export \
		"$dir 192.0.2.0/24$options 198.51.100.0/24$options" \
		> "$OUT/kerberos.log" 2>&1 &
	echo $! > $realm/server
	disown
	wait_for 60 grep '^ready$' "$OUT/kerberos.log"
}
serve
# The end has a mark that a packet holds many times.
mark='nobody on the way may read this line'
{ head -c 1500001 /dev/urandom; yes "$mark" | head -c 100000; } > $realm/data

# mounted TRANSPORT SEC.  Tickets are for a name: it moves to the address.
mounted()
{
	local proto=rdma port=20049 address=192.0.2.1
	case $1 in
	tcp) proto=tcp port=2049 ;;
	siw) address=198.51.100.1 ;;
	iwarp) address=198.51.100.1 port=20050 ;;
	esac
	sed "s/^[^ ]* $host\$/$address $host/" /etc/hosts > $realm/hosts
	cp $realm/hosts /etc/hosts
	mount -t nfs -o "vers=3,proto=$proto,port=$port,mountport=2049,$(
		)mountproto=tcp,nolock,sec=$2" "$host:$dir" $mnt
}

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

# has DEVICE TRANSPORT
has()
{
	[ -e "/sys/class/infiniband/$1" ] ||
		{ skip "data moves over $2" "no $1 here"; false; }
}

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

as() { setpriv --reuid "$1" --regid "$1" --clear-groups sh -c "$2"; }
tickets()
{
	kinit -k -t $realm/client.keytab -c FILE:/tmp/krb5cc_1 alice
	chown 1 /tmp/krb5cc_1
	mounted tcp krb5p
	as 1 "umask 077; echo mine > $mnt/mine"
	[ "$(stat -c %u "$dir/mine")" = 1 ]
	as 1 "cat $mnt/mine"
	refused 'denied' as 2 "cat $mnt/mine"
	umount $mnt
}
check 'a user is who the ticket says, and without one none' tickets

# ticket [OPTION]...: alice's, who is user 1.
ticket()
{
	kinit -k -t $realm/client.keytab -c FILE:/tmp/krb5cc_1 "$@" alice
	chown 1 /tmp/krb5cc_1
}

may_change() { as 1 "touch $mnt/mine"; }

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

short_ticket() { ticket -l 10s && may_change; }
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
transport=tcp
[ ! -e /sys/class/infiniband/rxe0 ] || transport=rdma
check 'clients go on when the server was restarted' restarted $transport

# Tickets for the old key last as long as it is in the file.
rolled()
{
	mounted tcp krb5p
	may_change
	KRB5_KDC_PROFILE=$realm/kdc.conf kadmin.local -r GANNET.TEST \
		-q "ktadd -k $realm/server.keytab nfs/$host"
	may_change
	umount $mnt
	mounted tcp krb5p
	may_change
	umount $mnt
	ticket
	mounted tcp krb5p
	may_change
	umount $mnt
}
check 'another key is added while clients use the old one' rolled
kill "$(<$realm/server)"
wait_for 60 is_gone "$(<$realm/server)"
kill "$(<$realm/pid)"
server_start
