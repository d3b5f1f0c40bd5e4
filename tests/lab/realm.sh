# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the suites of Kerberos: a KDC in the guest, the client's daemon
# with the key of its machine, and a server of $dir with keys of its own, in
# the place of the lab's; realm_end brings that back.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"

# realm_lacks: prints what this machine has too little of, if it does.
realm_lacks()
{
	if [ "$SERVER" = knfsd ]; then
		echo "it takes gannetd"
	elif ! type -P krb5kdc kadmin.local kinit > /dev/null; then
		echo "no KDC here"
	elif [ ! -e "$BUILD/modules/krb5/krb5.so" ]; then
		echo "no module krb5"
	fi
}

host=lab.gannet.test realm=/run/realm dir=$SRV/kerberos mnt=/mnt/kerberos
log=$OUT/kerberos.log
options='(rw,insecure,no_root_squash,no_subtree_check,fsid=8,'
options+='sec=krb5i:krb5p:krb5)'

# Its log goes on where the last one's ended.
serve()
{
	local fabrics=verbs before
	[ ! -e /sys/class/infiniband/siw0 ] || fabrics=verbs,iwarp
	before=$(readies)
	"$BUILD/gannetd" --config $realm/gannet.conf --foreground \
		--no-rpcbind --rdma $fabrics --state-dir $realm/state --export \
		"$dir 192.0.2.0/24$options 198.51.100.0/24$options" \
		>> "$log" 2>&1 &
	echo $! > $realm/server
	disown
	wait_for 60 is_ready_after "$before"
}
readies() { touch "$log"; grep -cx ready "$log" || true; }
is_ready_after() { [ "$(readies)" -gt "$1" ]; }

realm_start()
{
	mkdir -p $realm "$dir" $mnt
	chmod 1777 "$dir"
	echo "192.0.2.1 $host" >> /etc/hosts
	"$LAB/../krb5/realm" $realm 88 aes256-cts-hmac-sha1-96 $host \
		GANNET.TEST bin sys
	cp $realm/krb5.conf /etc/krb5.conf
	cp $realm/client.keytab /etc/krb5.keytab
	KRB5_KDC_PROFILE=$realm/kdc.conf \
		krb5kdc -P $realm/pid -r GANNET.TEST
	rpc.gssd -p /var/lib/nfs/rpc_pipefs
	server_stop
	cat > $realm/gannet.conf <<-CONF
	[exports]
	backend-dir = $BUILD/modules/krb5
	[server]
	krb5-keytab = $realm/server.keytab
	CONF
	serve
}

realm_end()
{
	kill "$(<$realm/pid)" "$(pgrep -x rpc.gssd)"
	kill "$(<$realm/server)"
	wait_for 60 is_gone "$(<$realm/server)"
	server_start
	rm -rf $realm /tmp/krb5cc* "$dir"
}

# mounted TRANSPORT [SEC].  Tickets are for a name: it moves to the address.
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
	mount -t nfs -o "vers=3,proto=$proto,port=$port,$(
		)mountport=$MOUNT_PORT,mountproto=tcp,nolock${2:+,sec=$2}" \
		"$host:$dir" $mnt
}

# has DEVICE TRANSPORT
has()
{
	[ -e "/sys/class/infiniband/$1" ] ||
		{ skip "data moves over $2" "no $1 here"; false; }
}

as() { setpriv --reuid "$1" --regid "$1" --clear-groups sh -c "$2"; }

# ticket [UID NAME [OPTION]...]: where the client's daemon looks for it.  User 1
# is alice.
ticket()
{
	local uid=${1:-1} name=${2:-alice}
	kinit -k -t $realm/client.keytab -c FILE:/tmp/krb5cc_"$uid" \
		"${@:3}" "$name"
	chown "$uid" /tmp/krb5cc_"$uid"
}

# may_change [UID]
may_change() { as "${1:-1}" "touch $mnt/of-${1:-1}"; }
