#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gannetd --check: the text it prints, and mistakes of the exports.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0
check() {
	./gannetd --check --log-level warn "$@" >"$dir/out" 2>"$dir/err"
	got=$?
}
expect() {
	[ "$2" = "$3" ] && return
	printf '%s:\n%s\nexpected:\n%s\n' "$1" "$2" "$3"
	status=1
}

cat >"$dir/exports" <<EOF
mem:/a	*(ro,insecure) 192.0.2.0/24(rw,async) localhost(no_root_squash)
"mem,size=1m:/b b#" -all_squash,anonuid=7 @g(fsid=3,sec=krb5:sys)
mem:/c	*.example(rw,fsid=00112233-4455-6677-8899-aabbccddeeff)
mem:/a	192.0.2.9(secure_locks)
EOF
check --exports-file "$dir/exports" --export 'mem:/d'
expect 'exit status' $got 0
expect 'warnings' "$(sed 's/.*warn: //; s/^<4>//' "$dir/err")" \
"$dir/exports:1: async: not done: what was answered as stable is on stable \
storage all the same
$dir/exports:2: sec=krb5:sys: there is no Kerberos, which needs gannet-krb5 \
and a keytab: only callers with sys are served
$dir/exports:2: netgroup '@g' is not known, so no address matches it"
# Of the options, those that differ here, and all of the others once.
of_interest='ro|rw|(in)?secure|(no_)?root_squash|all_squash|anonuid=7|fsid=.*'
said=$(grep -v '^#' "$dir/out" | tr '()' '\t\t' |
	while read -r path client options; do
		printf '%s %s' "$path" "$client"
		echo "$options" | tr , '\n' | grep -xE "$of_interest" |
			sort | sed 's/^/ /' | tr -d '\n'
		echo
	done)
expect 'exports' "$said" "\
mem:/a localhost no_root_squash ro secure
mem:/a 192.0.2.9 ro root_squash secure
mem:/a 192.0.2.0/24 root_squash rw secure
mem:/a * insecure ro root_squash
mem,size=1m:/b\\040b\\043 @g all_squash anonuid=7 fsid=3 ro root_squash secure
mem:/c *.example fsid=00112233-44556677-8899aabb-ccddeeff root_squash rw secure
mem:/d ::1 ro root_squash secure
mem:/d 127.0.0.0/8 ro root_squash secure"
expect 'clients without all options' "$(grep -v '^#' "$dir/out" | grep -vc \
	'(.*squash,.*all_squash.*,anonuid=[0-9]*,anongid=65534.*,sec=.*sys')" 0
expect 'comments' "$(grep '^#' "$dir/out" | sed 's/0x[0-9a-f]*$/ID/')" \
"# /a is of the kind mem, with the fsid ID
# /b\\040b\\043 is of the kind mem, with the fsid ID
# /c is of the kind mem, with the fsid ID
# /d is of the kind mem, with the fsid ID"
expect 'the fsid that was given' \
	"$(sed -n 's/^# .b.*fsid //p' "$dir/out")" 0x0000000000000003

# The output is an exports file that says the same.
cp "$dir/out" "$dir/again"
check --exports-file "$dir/again"
expect 'exit status of the output' $got 0
expect 'warnings about the output' "$(grep -v '@g\|krb5' "$dir/err")" ''
expect 'the output of the output' "$(grep -v '^#' "$dir/out")" \
	"$(grep -v '^#' "$dir/again")"

# Only while something is mounted.
mounted=$(awk '$3 == "tmpfs" { print $2; exit }' /proc/self/mounts)
check --export "${mounted:=/proc} *(mp)" --export "$dir *(mountpoint)" \
	--export "$dir/exports.none *(mp=$mounted/)"
expect 'exit status of mountpoint' $got 0
with=', with the fsid ID' # procfs itself is no file system to export
[ "$mounted" != /proc ] || with=', and is not exported now'
expect 'what is mounted' "$(grep '^#' "$dir/out" | sed 's/0x[0-9a-f]*,/ID,/')" \
"# $mounted is of the kind posix$with, while something is mounted \
on $mounted
# $dir is of the kind posix, and is not exported now: nothing is mounted on $dir
# $dir/exports.none is of the kind posix, and is not exported now, while \
something is mounted on $mounted"
expect 'mount points' "$(grep -oE ',mountpoint[^,)]*' "$dir/out")" \
",mountpoint
,mountpoint
,mountpoint=$mounted"

# A directory of files, as exportfs takes them.
mkdir "$dir/exports.d"
check --exports-file "$dir/exports.d"
expect 'an empty directory' "$got $(grep -c 'there is no file \*.exports in' \
	"$dir/err")" '1 1'
check --exports-file "$dir/exports.d" --exports-file "$dir/again"
expect 'an empty directory beside a file' "$got $(grep -v '^#' "$dir/out")" \
	"0 $(grep -v '^#' "$dir/again")"
echo 'mem:/b *' >"$dir/exports.d/b.exports"
echo 'mem:/a *' >"$dir/exports.d/a.exports"
echo 'mem:/c *(no_such)' | tee "$dir/exports.d/.c.exports" \
	>"$dir/exports.d/c.exports.old"
check --exports-file "$dir/exports.d"
expect 'files of a directory' "$got $(cut -s -f 1 "$dir/out" | tr '\n' ' ')" \
	'0 mem:/a mem:/b '
echo 'mem:/c *(no_such)' >"$dir/exports.d/c.exports"
check --exports-file "$dir/exports.d"
expect 'a mistake in a directory' \
	"$got $(grep -c "$dir/exports.d/c.exports:1: option" "$dir/err")" '1 1'

echo '/no/such/directory *(ro)' >"$dir/exports"
check --exports-file "$dir/exports"
expect 'exit status of a mistake' "$got $(cat "$dir/out")" '1 '
expect 'mistake' "$(sed 's/.*err: //; s/^<3>//' "$dir/err")" \
"$dir/exports:1: '/no/such/directory' can't be exported: there is no such \
directory"
# Every mistake of every text, not the first.
mkdir "$dir/many.d"
cat >"$dir/many.d/a.exports" <<EOF
/no/such/directory *(ro)
/a *(foo,rw) 300.1.1.1
mem:/b *(fsid=1)
$dir/out *(ro)
EOF
cat >"$dir/many.d/b.exports" <<EOF
mem:/c *(fsid=1)
mem:/b *(rw)
mem:/d h(rw, sync)
EOF
check --exports-file "$dir/many.d" --exports-file "$dir/none" \
	--export 'mem:/e *(bar)'
expect 'exit status of many mistakes' "$got $(cat "$dir/out")" '1 '
expect 'many mistakes' "$(sed "s/.*err: //; s/^<3>//; s,$dir/,,; s/: .*//" \
	"$dir/err" | tr '\n' ' ')" "many.d/a.exports:2 many.d/a.exports:2 \
many.d/b.exports:2 many.d/b.exports:3 many.d/b.exports:1 none --export \
many.d/a.exports:1 many.d/a.exports:2 many.d/a.exports:4 "
check --export 'mem:/a 192.0.2.0/24(fsid=2) 198.51.100.0/24(fsid=1) *'
expect 'the fsid of each rule' "$got $(grep -o 'fsid=[0-9]*' "$dir/out" |
	tr '\n' ' ')" '0 fsid=2 fsid=1 fsid=1 '
check --export '/ *(squash_uids=0)'
expect 'exit status of a refused option' $got 1
check --export 'mem:/a *(sec=krb5p:krb5,rw)'
expect 'Kerberos that is not there' \
	"$got $(sed 's/.*warn: //; s/^<4>//' "$dir/err")" "0 --export: \
sec=krb5p:krb5: there is no Kerberos, which needs gannet-krb5 and a keytab: no \
caller is served"
check --export 'mem:/a *(sec=krb5,rw,sec=sys,ro)'
expect 'rights of each flavor' "$(sed -n 's/.*,sec=k/sec=k/p' "$dir/out")" \
"sec=krb5,rw,root_squash,no_all_squash,secure,sec=sys,ro,root_squash,\
no_all_squash,secure)"
check --port 70000
expect 'exit status of a wrong option' $got 2

check --manage-gids --export 'mem:/a *'
expect 'groups by the name service' \
	"$(grep -c '[(,]manage_gids,' "$dir/out")" 1

# A server that runs is not disturbed: its state is left alone.
mkdir -m 700 "$dir/state"
check --state-dir "$dir/state" --export "$dir"
expect 'exit status with a state directory' $got 0
expect 'state directory' "$(ls -A "$dir/state")" ''
exit $status
