# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The kernel's client with Kerberos: krb5, krb5i and krb5p over TCP and rxe,
# and a KDC in the guest.  Users are who their tickets say.
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
"$BUILD/gannetd" --config $realm/gannet.conf --foreground --no-rpcbind \
	--rdma verbs --state-dir $realm/state --export \
	"$dir 192.0.2.0/24(rw,no_root_squash,sec=krb5:krb5i:krb5p)" \
	> "$OUT/kerberos.log" 2>&1 &
server=$!
wait_for 60 grep '^ready$' "$OUT/kerberos.log"
head -c 3000001 /dev/urandom > $realm/data

# mounted PROTO SEC
mounted()
{
	local port=2049
	[ "$1" = tcp ] || port=20049
	mount -t nfs -o "vers=3,proto=$1,port=$port,mountport=2049,$(
		)mountproto=tcp,nolock,sec=$2" "$host:$dir" $mnt
}

# moves PROTO SEC: what it writes is there, and what is there it reads.
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

for proto in tcp rdma; do
	if [ $proto = rdma ] && [ ! -e /sys/class/infiniband/rxe0 ]; then
		skip 'data moves over rdma' "no rxe0 here"
		continue
	fi
	for sec in krb5 krb5i krb5p; do
		check "data moves with $sec over $proto" moves $proto $sec
	done
done
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
kill "$server"
wait "$server" 2>/dev/null
kill "$(<$realm/pid)"
server_start
