# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The kernel's client with TLS (RFC 9289), whose handshakes tlshd does: what
# moves, what is refused, and what a reader of the wire sees.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
if [ "$SERVER" = knfsd ]; then
	skip 'mounts with TLS' "it takes gannetd"
	exit 0
fi
if [ -z "${TLSHD+set}" ]; then
	skip 'mounts with TLS' "this kernel can't, or there is no tlshd"
	exit 0
fi
host=lab.gannet.test pki=/run/pki dir=$SRV/tls mnt=/mnt/tls
log=$OUT/tls.log
mkdir -p $pki "$dir"/{none,tls,mtls} $mnt
echo "192.0.2.1 $host" >> /etc/hosts

# authority NAME
authority()
{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-days 2 -subj "/CN=$1" -keyout $pki/"$1.key" -out $pki/"$1.pem"
}

# certificate NAME AUTHORITY DAYS: for this host, with the key of all.
certificate()
{
	openssl req -new -key $pki/key -subj "/CN=$1" -out $pki/request
	openssl x509 -req -in $pki/request -CA $pki/"$2.pem" \
		-CAkey $pki/"$2.key" -CAcreateserial -days "$3" \
		-extfile <(echo "subjectAltName=DNS:$host") -out $pki/"$1.pem"
}

certificates()
{
	authority ca
	authority other
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 \
		-out $pki/key
	certificate good ca 1
	certificate expired ca -1
	certificate foreign other 1
	chmod 600 $pki/*key
	cp $pki/good.pem $pki/server.pem
}

# A daemon listens to the kernel's requests for handshakes.
tlshd_listens()
{
	awk '$2 == 16 && $4 != "00000000" { n++ } END { exit !n }' \
		/proc/net/netlink
}
no_tlshd() { ! tlshd_listens; }

# tlshd_runs: with $pki/tlshd.conf.
tlshd_runs()
{
	local run=(tlshd) lib=$TLSHD/usr/lib/x86_64-linux-gnu
	[ -z "$TLSHD" ] || run=("$lib/ld-linux-x86-64.so.2" --library-path
		"$lib" "$TLSHD/usr/sbin/tlshd")
	"${run[@]}" -c $pki/tlshd.conf -s >> "$OUT/tlshd.log" 2>&1 &
	echo $! > $pki/tlshd.pid
	wait_for 60 tlshd_listens
}

# tlshd_start AUTHORITY: which it trusts.
tlshd_start()
{
	cat > $pki/tlshd.conf <<-CONF
	[debug]
	loglevel=1
	[authenticate.client]
	x509.truststore=$pki/$1.pem
	x509.certificate=$pki/good.pem
	x509.private_key=$pki/key
	CONF
	tlshd_runs
}

tlshd_end()
{
	kill "$(<$pki/tlshd.pid)"
	wait_for 60 no_tlshd
}

gannetd_start()
{
	local sec
	for sec in none tls mtls; do
		echo "$dir/$sec 192.0.2.0/24(rw,no_root_squash,xprtsec=$sec)"
	done > $pki/exports
	"$BUILD/gannetd" --foreground --no-rpcbind --rdma=off \
		--state-dir=$pki/state --exports-file=$pki/exports \
		--tls-cert=$pki/server.pem --tls-key=$pki/key \
		--tls-ca=$pki/ca.pem --log-level=debug > "$log" 2>&1 &
	echo $! > $pki/pid
	wait_for 120 grep -qx ready "$log"
}

reloads() { grep -c 'configuration and exports read again' "$log" || true; }
reloaded() { [ "$(reloads)" -gt "$1" ]; }

# serve_with CERTIFICATE: as an administrator puts it there.
serve_with()
{
	local before
	before=$(reloads)
	cp $pki/"$1.pem" $pki/new
	mv $pki/new $pki/server.pem
	kill -HUP "$(<$pki/pid)"
	wait_for 60 reloaded "$before"
}

# mounted SEC EXPORT [DIR]
mounted()
{
	mkdir -p "${3:-$mnt}"
	timeout 200 mount -t nfs -o "vers=3,proto=tcp,port=2049,$(
		)mountport=2049,mountproto=tcp,nolock,xprtsec=$1" \
		"$host:$dir/$2" "${3:-$mnt}"
}

# moves SEC
moves()
{
	mounted "$1" "$1"
	grep " $mnt nfs .*xprtsec=$1," /proc/mounts
	cp -r "$LAB/suites" $pki/data $mnt/
	umount $mnt
	diff -r "$LAB/suites" "$dir/$1/suites"
	mounted "$1" "$1"
	diff -r "$LAB/suites" $mnt/suites
	cmp $pki/data $mnt/data
	cmp $pki/data "$dir/$1/data"
	umount $mnt
}

# not_allowed SEC EXPORT WHY: the server's log has the reason.
not_allowed()
{
	refused 'denied' mounted "$1" "$2"
	grep "refused for $dir/$2 .*: $3" "$log"
}

wrong_authority()
{
	tlshd_end
	tlshd_start other
	refused 'denied' mounted tls tls
	tlshd_end
	tlshd_start ca
}

expired()
{
	serve_with expired
	refused 'denied' mounted tls tls
	serve_with good
	mounted tls tls
	umount $mnt
}

# Writes until told to stop, each time to the disk.
written()
{
	local i=0
	while [ ! -e $pki/stop ] && [ $i -lt 1000 ]; do
		dd if=$pki/data of="$mnt/load$((i % 7))" bs=64k \
			conv=fsync,notrunc
		i=$((i + 1))
	done
	echo "$i files"
}
some_written() { [ -s "$dir/tls/load$1" ]; }

# New connections get the new certificate, and the old one loses no call.
# Mounts with the same xprtsec share a connection: the new mount has another.
exchanged()
{
	local before
	mounted tls tls
	before=$(grep -c 'TLS begins' "$log")
	background load written
	wait_for 60 some_written 0
	serve_with foreign
	serve_with good
	serve_with foreign
	touch $pki/stop
	ended load
	[ "$(grep -c 'TLS begins' "$log")" = "$before" ]
	cmp $pki/data "$dir/tls/load0"
	refused 'denied' mounted mtls tls $mnt.new
	tlshd_end
	tlshd_start other
	mounted mtls tls $mnt.new
	cmp $pki/data $mnt.new/load0
	umount $mnt.new
	umount $mnt
	tlshd_end
	tlshd_start ca
	serve_with good
}

# Prints what passes on the loopback link, which has all traffic here.
sniff()
{
	exec perl -e 'socket(S, 17, 3, unpack("S", pack("n", 3))) or die;
		open(F, ">", $ARGV[0]); print "ready\n";
		close(STDOUT); syswrite(F, $b) while recv(S, $b, 65536, 0)' \
		"$OUT/wire"
}

# on_the_wire SEC: what a file of marks looks like on its way, both ways.
on_the_wire()
{
	local pid i
	for ((i = 0; i < 500; i++)); do echo gannet-mark-gannet; done \
		> $pki/marks
	sniff > "$OUT/sniff" &
	pid=$!
	wait_for 60 grep ready "$OUT/sniff"
	mounted "$1" "$1"
	cp $pki/marks $mnt/marks
	umount $mnt
	mounted "$1" "$1"
	cmp $pki/marks $mnt/marks
	umount $mnt
	kill $pid
	wait $pid || true
	[ "$(stat -c %s "$OUT/wire")" -gt 18000 ]
}
seen() { on_the_wire none; grep -qa gannet-mark-gannet "$OUT/wire"; }
unseen() { on_the_wire tls; ! grep -qa gannet-mark-gannet "$OUT/wire"; }

# What ./quickstart serve --tls prints: tlshd's configuration and the line that
# mounts are used as they stand, and with the certificate, as it says, too.
printed()
{
	local here=/run/quickstart pid sec
	mkdir -p $here/tests
	cp "$LAB/../../quickstart" $here/
	cp "$LAB"/../quickstart-{serve,tls}.sh $here/tests/
	GANNETD=$BUILD/gannetd setsid env --default-signal=INT \
		$here/quickstart serve "$dir/printed" --tls \
		> "$OUT/quickstart" 2>&1 &
	pid=$!
	wait_for 200 grep 'Only this machine' "$OUT/quickstart" ||
		{ cat "$OUT/quickstart"; return 1; }
	tlshd_end
	sed -n '/^    \[/,/^$/s/^ *//p' "$OUT/quickstart" > $pki/tlshd.conf
	tlshd_runs
	grep '^    mount .*xprtsec=tls ' "$OUT/quickstart" > $pki/line
	for sec in tls mtls; do
		timeout 200 sh $pki/line
		grep " /mnt nfs .*xprtsec=$sec," /proc/mounts
		echo $sec > /mnt/$sec
		umount /mnt
		grep $sec "$dir/printed/$sec"
		sed -i 's/xprtsec=tls /xprtsec=mtls /' $pki/line
	done
	kill -INT $pid
	wait $pid
}

server_stop
head -c 300001 /dev/urandom > $pki/data
check 'certificates are made' certificates
check 'gannetd serves with TLS' gannetd_start
check 'tlshd runs' tlshd_start ca
for sec in tls mtls; do
	check "a tree moves with $sec" moves $sec
done
check 'clear text is refused where TLS is demanded' \
	not_allowed none tls 'it demands TLS (xprtsec=tls)'
check 'TLS without a certificate is refused where one is demanded' \
	not_allowed tls mtls 'it demands TLS with a certificate'
check 'a server of another authority is refused' wrong_authority
check 'an expired certificate is refused' expired
check 'a certificate is exchanged, and no call is lost' exchanged
check 'in clear a mark is on the wire' seen
check 'with TLS it is not' unseen
check 'what quickstart prints mounts with TLS' printed
tail -5 "$OUT/tlshd.log" | note
mountpoint -q $mnt && umount -fl $mnt
tlshd_end
kill "$(<$pki/pid)"
wait "$(<$pki/pid)" 2>/dev/null
server_start
