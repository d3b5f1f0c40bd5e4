#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ./quickstart serve, as somebody who tries it: what it says and what is there.
set -u
top=$(readlink -f "${srcdir:-.}")
# shellcheck source=tests/server/serving.sh
. "$top/tests/server/serving.sh"

pasted_ls()
{
	grep '^    .*gannet-nfs ls' "$tmp/out" > "$tmp/line"
	bash "$tmp/line" | grep -q "$1"
}
pasted_put()
{
	grep '^    .*gannet-nfs ls' "$tmp/out" |
		sed "s, ls -l , put '$tmp/file' ," > "$tmp/line"
	bash "$tmp/line" 2> "$tmp/refused"
}
refuses_put() { ! pasted_put && grep -q 'NFS3ERR_ACCES' "$tmp/refused"; }
says_not() { ! says "$@"; }
# What the server was told: everything that the machine has but loopback.
exports_own()
{
	local address
	for address in $(hostname -I 2>/dev/null ||
		ip -o addr show scope global -deprecated |
			awk '{ sub("/.*", "", $4); print $4 }')
	do
		grep -qF " $address(rw" "$tmp"/build-quickstart/run.*/exports ||
			return 1
	done
}
exports_as()
{
	grep -q "(rw,insecure,all_squash,anonuid=$1,anongid=$2)" \
		"$tmp"/build-quickstart/run.*/exports
}
port() { sed -n 's/.*proto=tcp,port=\([0-9]*\),.*/\1/p' "$tmp/out" | head -1; }
listens() { (: < "/dev/tcp/127.0.0.1/$(port)") 2>/dev/null; }
gone() { ! listens; }

check 'no command is a usage error' fails 2 'quickstart serve'
check 'nor is an unknown one' fails 2 "no command 'sevre'" sevre
check 'an unknown option is named' fails 2 'no option --alow' serve --alow x
# By the tree's own, which makes nothing for a mistake.
bench_fails()
{
	timeout 300 "$top/quickstart" bench --bogus > "$tmp/out" 2> "$tmp/err"
	[ $? = 2 ] && [ "$(wc -l < "$tmp/err")" = 1 ] && [ ! -s "$tmp/out" ] &&
		says "no option '--bogus'"
}
check 'by the bench, too, in one line' bench_fails
ln -s "$tmp/nowhere" "$tmp/dangling"
check 'a link must lead somewhere' fails 1 "dangling: .* can't make it" \
	serve "$tmp/dangling"
check 'and nothing is made there' test ! -e "$tmp/nowhere"
[ "$(id -u)" != 0 ] || check 'a directory that cannot be made is named' \
	fails 1 "/proc/no/such: .* can't make it" serve /proc/no/such
check '--allow wants a client' fails 1 'needs a client' serve --allow
check '--as wants a user' fails 1 'no such user' serve --as no-such-user
check 'which has a name' fails 1 'no such user' serve --as=
touch "$tmp/file"
check 'which a file is not' fails 1 'is not a directory' serve "$tmp/file"
check 'a client is one word' fails 1 "'a b': expected" serve --allow 'a b'
check 'a port is a number' fails 1 "--port '70000': expected" serve --port 70000
check 'a pseudo file system is not served' \
	fails 1 "^'/proc' can't be exported: proc is a pseudo file system" \
	serve /proc
# Not the shell that this is of: it must end before what that can't read.
by_sh() { sh "$tmp/quickstart" 2>&1 | grep -q 'run it with bash'; }
[ "$(readlink -f "$(command -v sh)")" = "$(command -v bash)" ] ||
	check 'another shell says so' by_sh
expected='has a bad prefix length: expected 0 to 32'
check 'an impossible network is refused' \
	fails 1 "^--allow 192.0.2.0/99: $expected" \
	serve --allow 192.0.2.0/99
check 'so is an impossible address' \
	fails 1 '^--allow 300.1.1.1: is not an address' serve --allow 300.1.1.1
if [ "$(id -u)" != 0 ]; then
	mkdir -m 0 "$tmp/closed"
	check 'a directory must be readable' fails 1 'may not read' \
		serve "$tmp/closed"
	rmdir "$tmp/closed"
	mkdir -m 555 "$tmp/full"
	no_sudo() { PATH=$tmp/bin "$@"; }
	mkdir "$tmp/bin"
	for i in bash readlink dirname nproc mkdir cat id timeout grep chown \
		find; do
		ln -s "$(command -v $i)" "$tmp/bin/"
	done
	check 'one that this user may not make is an error' no_sudo fails 1 \
		"can't make it" serve "$tmp/full/data"
	check 'without privileges there is one user only' \
		fails 1 "without root's privileges" serve --as root
fi

check 'it serves a directory that is missing' \
	serve "$tmp/new/with space #(1)"
check 'and says that it made it' \
	says 'made .*/with space #\(1\), which was missing'
check 'which is there' test -d "$tmp/new/with space #(1)"
if [ "$(id -u)" = 0 ]; then
	check "and is nobody's" test 65534:65534 = \
		"$(stat -c %u:%g "$tmp/new/with space #(1)")"
fi
check 'that ends' ended TERM
mkdir "$tmp/with space #(1)"
check 'it serves a directory' serve "$tmp/with space #(1)"
check 'which was there' says_not 'which was missing'
check 'it says how to mount it' \
	says "mount -t nfs -o vers=3,proto=tcp.* 127.0.0.1:.*/with"
check 'it listens where it says' listens
check 'only this machine is let in' says '^Only this machine may'
# Who any user of this machine can act as is nobody's root by default.
if [ "$(id -u)" = 0 ]; then
	check 'where root owns it, clients act as nobody' \
		says 'acts there as user nobody, since root owns it'
	check 'and it says how to change that' \
		says "^To let them do more: 'chown USER .*with.*', or --as USER"
	check 'the server is told so' exports_as 65534 65534
else
	check 'it says as whom everybody acts' \
		says "acts there as user $(id -un)\\.$"
	check 'the server is told so' exports_as "$(id -u)" "$(id -g)"
fi
check 'a line for NFS/RDMA is there' \
	says '^    mount -t nfs -o vers=3,proto=rdma6?,port=[0-9]+,mountport='
check 'not at a loopback address' says_not 'proto=rdma.* (127\.|\[::1\])'
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
	link='rdma link add siw0'
	check 'with the commands that a client needs once' \
		says "^    modprobe siw; $link type siw netdev [a-z]"
fi
check 'it lets in its own addresses' exports_own
if [ -x "${GANNETD%/*}/gannet-nfs" ] && says "rdma.iwarp:"; then
	echo hello > "$tmp/with space #(1)/hello"
	check 'the printed command lists it without a mount' pasted_ls hello
	[ "$(id -u)" != 0 ] ||
		check 'nobody writes where root does' refuses_put
fi
first=$pid first_port=$(port)
check 'a second one takes other ports' serve
check 'and says so' says 'port [0-9]+ is taken; using another'
check 'for RDMA too' says 'RDMA port 20049 is taken; using another'
check 'and prints that port' says_not 'proto=rdma.*,port=20049,'
check 'without a directory it makes one' \
	test -f "$tmp/build-quickstart/export/hello"
if [ "$(id -u)" = 0 ]; then
	check "which is nobody's" test 65534:65534 = \
		"$(stat -c %u:%g "$tmp/build-quickstart/export")"
	if says "rdma.iwarp:"; then check 'who may write there' pasted_put; fi
fi
check 'SIGTERM ends it' ended TERM
pid=$first
kill -INT "$pid"
check 'Ctrl-C ends the first, with status 0' wait "$pid"
listens_first() { (: < "/dev/tcp/127.0.0.1/$first_port") 2>/dev/null; }
closed() { ! listens_first; }
check 'nobody listens there any more' closed

# For others root's server takes port 111, or registers with the rpcbind there.
go_inside()
{
	! unshare -n true 2>/dev/null ||
		inside=(unshare -n sh -c 'ip link set lo up; exec "$@"' sh)
}
go_inside
check 'others are let in' \
	serve "$tmp" --allow 192.0.2.0/24 --allow '*.example.org'
check 'and told how' says '^On 192.0.2.0/24 \*.example.org:'
both_ways()
{
	[ "$(grep -A9 '^On ' "$tmp/out" |
		grep -cE '^    mount .*proto=(tcp|rdma)')" = 2 ]
}
check 'over TCP and RDMA' soon both_ways
locks() { ! grep -A9 '^On ' "$tmp/out" | grep -q nolock; }
if [ ${#inside[@]} -gt 0 ]; then
	check 'and share their locks' locks
elif [ "$(id -u)" != 0 ]; then
	check 'and why they share no locks' says 'nolock: .* run this as root'
fi
check 'it ends again' ended INT
inside=()
if [ "$(id -u)" = 0 ]; then
	mkdir "$tmp/theirs"
	chown 1:0 "$tmp/theirs"
	check "a user's directory" serve "$tmp/theirs"
	check 'is written as that user' says "as user $(id -un 1)\\.$"
	check "but not as root's group" exports_as 1 "$(id -g 1)"
	check 'that ends' ended TERM
	chown 4321:1234 "$tmp/theirs"
	check 'one of a number without a name' serve "$tmp/theirs"
	check 'too' exports_as 4321 1234
	check 'that ends, too' ended TERM
	check 'one that is made for a user' serve "$tmp/mine" --as daemon
	check "is that user's" test "$(id -u daemon):$(id -g daemon)" = \
		"$(stat -c %u:%g "$tmp/mine")"
	check 'that ends as well' ended TERM
	check 'who is named' serve "$tmp/theirs" --as root
	check 'may be root' exports_as 0 0
	check 'and it says what that means' says 'can become root by that'
	check 'that ends in the end' ended TERM
fi
check 'its port is closed' gone

inside=()
if command -v openssl >/dev/null; then
	tls=$tmp/build-quickstart/tls
	check 'it serves over TLS' serve "$tmp/theirs" --tls
	check 'and says how to mount that' \
		says '^    mount .*proto=tcp,.*,xprtsec=tls 127.0.0.1:'
	check 'not over RDMA' says_not 'proto=rdma'
	check 'and what tlshd has to know' \
		says "^    x509.truststore=$tls/ca.pem"
	check 'the certificate is of that CA' openssl verify -CAfile \
		"$tls/ca.pem" -verify_ip 127.0.0.1 "$tls/server.pem"
	check 'and for ::1 as well' openssl verify -CAfile \
		"$tls/ca.pem" -verify_ip ::1 "$tls/server.pem"
	check 'nobody else can read its key' test 600 = \
		"$(stat -c %a "$tls/server.key")"
	check 'and the modes of the client are what tlshd expects' \
		test 644,600 = "$(stat -c %a "$tls"/client.{pem,key} |
			paste -sd ,)"
	check 'the server demands TLS' \
		grep -q 'xprtsec=tls)' "$tmp"/build-quickstart/run.*/exports
	check 'that ends' ended TERM
	cp "$tls/ca.pem" "$tmp/ca.pem"
	check 'the next one' serve "$tmp/theirs" --tls
	check 'has the same CA' cmp "$tls/ca.pem" "$tmp/ca.pem"
	check 'it ends' ended TERM
	rm -r "$tls"; mkdir "$tmp/long"
	cat > "$tmp/long/uname" <<-'END'
	#!/bin/sh
	[ "$*" != -n ] || exec printf '%064d\n' 7
	PATH=${PATH#*:} exec uname "$@"
	END
	chmod +x "$tmp/long/uname"
	inside=(env PATH="$tmp/long:$PATH")
	check 'a host with a long name has one' serve "$tmp/theirs" --tls
	check 'that ends as well' ended TERM
	inside=()
else
	echo "skip - it serves over TLS # no openssl"
fi

go_inside
check 'a name that is not there is a warning' \
	serve "$tmp" --allow no-such-host.invalid --allow 127.0.0.0/8 \
	--allow '*'
check 'with the name' says 'warning: --allow no-such-host.invalid: the name'
check 'it says that everybody is let in' says "^--allow '\*' lets everybody in"
check 'and warns of nothing else' says_not "127.0.0.0/8' lets"
check 'SIGTERM ends this one' ended TERM
inside=()

# A machine with loopback alone; with an address there that others may know.
alone()
{
	mkdir -p "$tmp/alone"
	: > "$tmp/out"
	unshare -n bash -c "ip link set lo up; $1
		exec setsid env --default-signal=INT \
		'$tmp/quickstart' serve '$tmp/alone'" \
		> "$tmp/out" 2> "$tmp/err" &
	pid=$!
	shown 'Only this machine' && ended INT &&
		says "^    mount .*proto=rdma,port=20049,.* 192.0.2.1:" &&
		says '^    ip link add gannet0 type dummy'
}
if unshare -n true 2>/dev/null &&
	[ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]
then
	check 'without any address it says how to get one' alone ''
	check 'one of the loopback link does not do for siw' \
		alone 'ip addr add 198.51.100.7/32 dev lo;'
fi

# Ctrl-C in a terminal reaches every process of it at once.
if command -v script >/dev/null; then
	mkfifo "$tmp/keys"
	: > "$tmp/out"
	script -qec "env --default-signal=INT $tmp/quickstart serve $tmp" \
		/dev/null \
		< "$tmp/keys" > "$tmp/out" 2> "$tmp/err" &
	pid=$!
	exec 3> "$tmp/keys"
	shown 'Only this machine'
	printf '\003' >&3
	check 'Ctrl-C in a terminal drains it' wait "$pid"
	exec 3>&-
	check 'which it says' says '^quickstart: ended'
fi
[ $failed = 0 ]
