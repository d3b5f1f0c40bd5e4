#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Files that the settings name lie in the exported tree: no client sees or
# changes one.
. "${srcdir:-.}/tests/server/own_gannetd.sh"
nfs=$PWD/gannet-nfs
e=$here/export
status=0

mkdir "$e/run" "$e/exports.d" "$e/gannet.conf.d" || exit 1
echo "$e 127.0.0.1(rw,insecure,no_root_squash,sync)" > "$e/exports.d/a.exports"
echo '[log]' > "$e/gannet.conf"
files='run/pid run/control audit gannet.conf gannet.conf.d exports.d log'
if [ -e modules/krb5/krb5.so ]; then
	# It has no keys, which the server only warns of.
	echo text > "$e/keytab"
	printf '%s\n' '[exports]' "backend-dir = $PWD/modules/krb5" \
		'[server]' "krb5-keytab = $e/keytab" > "$e/gannet.conf"
	files="$files keytab"
fi
tls=
if command -v openssl > /dev/null; then
	printf '%s\n' '[ca]' default_ca=d '[d]' "database=$here/issued" \
		default_md=sha256 > "$here/openssl.cnf"
	: > "$here/issued"
	for f in server ca; do
		openssl req -x509 -newkey ec \
			-pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 \
			-subj /CN=localhost -keyout "$e/$f.key" \
			-out "$e/$f.pem" || exit 1
	done 2> "$here/out"
	openssl ca -config "$here/openssl.cnf" -gencrl -crldays 30 \
		-keyfile "$e/ca.key" -cert "$e/ca.pem" -out "$e/ca.crl" \
		2> "$here/out" || exit 1
	tls="--tls-cert $e/server.pem --tls-key $e/server.key"
	tls="$tls --tls-ca $e/ca.pem --tls-crl $e/ca.crl"
	files="$files server.pem server.key ca.pem ca.crl"
fi
# shellcheck disable=SC2086 # several words
own_gannetd $tls --pid-file "$e/run/pid" --control "$e/run/control" \
	--audit "$e/audit" --config "$e/gannet.conf" \
	--exports-file "$e/exports.d" --no-rpcbind 2> "$e/log"
at() { echo "tcp://127.0.0.1:$tcp$e/$1?mountport=$tcp"; }

ok()
{
	if "$@"; then echo "ok - $what"; else echo "not ok - $what"; status=1
	fi
}
refused() { ! "$nfs" "$@" > "$here/out" 2>&1; }

echo text > "$here/text"
what="an ordinary file is written and removed"
ok "$nfs" put "$here/text" "$(at text)"
ok "$nfs" rm "$(at text)"
for f in $files; do
	[ -e "$e/$f" ] || { echo "there is no $f"; exit 1; }
	what="$f is not shown"
	ok refused stat "$(at "$f")"
	what="$f is not removed"
	ok refused rm "$(at "$f")"
	ok [ -e "$e/$f" ]
	what="$f is not replaced"
	ok refused put "$here/text" "$(at "$f")"
done
what="there is no way into a directory of exports"
ok refused put "$here/text" "$(at exports.d/b.exports)"
ok [ ! -e "$e/exports.d/b.exports" ]
what="the process id is still there"
ok [ "$(cat "$e/run/pid")" = "$server" ]
what="gannetctl reaches the server"
ok ./gannetctl --socket "$e/run/control" status
exit $status
