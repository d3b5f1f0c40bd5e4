# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests/quickstart-serve.sh: a CA and a certificate for serve --tls.
# shellcheck disable=SC2154,SC2034 # own, run, tls: its

# The CA stays the same, since clients know it.  A CN has 64 bytes at most, and
# the name of a host as many.
make_ca()
{
	local host
	host=$(uname -n)
	[ -s "$tls/ca.key" ] && openssl x509 -in "$tls/ca.pem" -noout \
		-checkend 2592000 >/dev/null 2>&1 && return
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-days 3650 -subj "/CN=Gannet quickstart on ${host:0:40}" \
		-keyout "$tls/ca.key" -out "$tls/ca.pem"
}

# make_certificate NAME DAYS: of that CA, with a key.  tlshd wants these modes.
make_certificate()
{
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-subj "/CN=$(uname -n)" -keyout "$tls/$1.key" \
		-out "$run/request" &&
	openssl x509 -req -in "$run/request" -CA "$tls/ca.pem" \
		-CAkey "$tls/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
		-days "$2" -extfile "$run/names" -out "$tls/$1.pem" &&
	chmod 644 "$tls/$1.pem"
}

# What clients call this machine.
write_names()
{
	local name
	printf 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1'
	for name in "$(uname -n)" "$(hostname -f 2>/dev/null)"; do
		[ -z "$name" ] || printf ',DNS:%s' "$name"
	done
	for name in ${own[@]+"${own[@]}"}; do printf ',IP:%s' "$name"; done
	echo
}

# Makes them in quickstart's own directory, and sets tls_files.
make_tls()
{
	command -v openssl >/dev/null || die "--tls needs the package openssl"
	write_names > "$run/names"
	(umask 077 && mkdir -p "$tls" && make_ca &&
		make_certificate server 90 && make_certificate client 90
	) > "$run/openssl" 2>&1 || {
		cat "$run/openssl" >&2
		die "can't make certificates in $tls"
	}
	tls_files=(--tls-cert="$tls/server.pem" --tls-key="$tls/server.key"
		--tls-ca="$tls/ca.pem")
}

print_tls()
{
	cat <<-END
	The client needs Linux 6.5 or later, and tlshd (package ktls-utils) with
	this in its configuration, which it reads as it starts: /etc/tlshd.conf,
	or /etc/tlshd/config in newer versions:

	    [authenticate.client]
	    x509.truststore=$tls/ca.pem
	    x509.certificate=$tls/client.pem
	    x509.private_key=$tls/client.key

	Other hosts need copies of these files, and tlshd wants root to own
	them.  With the client's certificate xprtsec=mtls mounts as well.

	END
}
