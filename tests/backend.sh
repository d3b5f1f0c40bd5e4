#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A backend and a filter that know only what is installed are built, loaded and
# served; a module that should not be loaded is refused, with the reason.
umask 022
top=${srcdir:-.}
tmp=$(mktemp -d)
server=
limit=
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
status=0
fail() { echo "$*"; status=1; }
# shellcheck source=tests/soon.sh
. "$top/tests/soon.sh"

# MAKEFLAGS is of the make that runs this test.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s prefix=/usr \
	DESTDIR="$tmp/root" install-dist_gannetincludeHEADERS \
	install-pkgconfigDATA >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
grep -q '^backenddir=' "$tmp/root/usr/lib/pkgconfig/gannet-vfs.pc" ||
	fail "gannet-vfs.pc names no backenddir"
include=$tmp/root/usr/include
dir=$tmp/backends
mkdir "$dir"

# build NAME SOURCE [INCLUDE]
build()
{
	# shellcheck disable=SC2086 # CC may be "ccache gcc"
	${CC:-cc} -std=gnu17 -Wall -shared -fPIC -I"${3:-$include}" "$2" \
		-o "$dir/$1.so" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
	chmod 755 "$dir/$1.so"
}
# gannetd ARGUMENT...: in place of a subshell.
gannetd()
{
	printf '[exports]\nbackend-dir = %s\n' "$dir" >"$tmp/gannet.conf"
	exec $limit ./gannetd --foreground --rdma off --port 0 --no-rpcbind \
		--state-dir "$tmp/state" --config "$tmp/gannet.conf" "$@"
}
# refused MESSAGE ARGUMENT...
refused()
{
	message=$1; shift
	(limit='timeout 60'; gannetd "$@") >"$tmp/out" 2>&1 </dev/null
	case $? in
	0 | 124) fail "started in spite of: $message" ;;
	esac
	grep -qF -- "$message" "$tmp/out" || {
		fail "no '$message' in:"; cat "$tmp/out"; }
}
# logged MESSAGE: in the end.
logged()
{
	soon grep -qsF -- "$1" "$tmp/log" && return
	fail "not logged: $1"
	cat "$tmp/log"
}

# tried MESSAGE ARGUMENT...: it starts, and tries to mount that again.
tried()
{
	message=$1; shift
	: >"$tmp/log"
	gannetd "$@" >"$tmp/log" 2>&1 </dev/null &
	server=$!
	logged "$message; trying again until it can"
	logged 'ready: udp'
	kill $server
	wait $server || fail "the server ended with $?"
	server=
}

hello=$top/doc/examples/vfs-hello.c
build hello "$hello"
build delay "$top/doc/examples/vfs-delay.c"

# A READ of this one never ends by itself.
sed 's/"hello",/"late",/
	s/^	\.read = .*/	.read = late_read, .cancel = late_cancel,/
	/^static int hello_readdir/i \
	static bool late_cancel(struct vfs_op *op) { return true; } \
	static int late_read(struct vfs_op *op) \
	{ return vfs_op_give(op) ? VFS_PENDING : hello_read(op); }' \
	"$hello" >"$tmp/late.c"
build late "$tmp/late.c"

# It is served, by a confined gannetd.
options='127.0.0.1(rw,insecure)'
echo "\"hello,text=Good day:/hello\" $options
\"late,text=x:/late\" $options
delay,ms=1500:hello,text=slow:/slow $options
delay,ms=1:mem:/mem *(rw,insecure,all_squash,anonuid=0,anongid=0)
delay,ms=1:$tmp/root *(rw,insecure,no_root_squash)" >"$tmp/exports"
gannetd --backend hello --backend delay --backend late \
	--exports-file "$tmp/exports" >"$tmp/log" 2>&1 &
server=$!
logged 'ready: udp'
port=$(sed -n 's/^ready: tcp //p' "$tmp/log")
url="tcp://127.0.0.1:$port/hello"
q="?mountport=$port"
nfs() { ./gannet-nfs "$@" 2>&1; }
text=$(nfs cat "$url/hello$q")
[ "$text" = 'Good day' ] || fail "cat: $text"
text=$(nfs ls "$url$q")
[ "$text" = hello ] || fail "ls: $text"
text=$(nfs put "$tmp/exports" "$url/new$q")
case $text in *NFS3ERR_ROFS*) ;; *) fail "put: $text" ;; esac
logged '/hello says hello'

# A filter is over each of them.
root=tcp://127.0.0.1:$port
start=$(date +%s%N)
text=$(nfs cat "$root/slow/hello$q")
[ "$text" = slow ] || fail "cat below a filter: $text"
[ $(($(date +%s%N) - start)) -ge 1500000000 ] || fail 'the READ was not late'
for i in "mem" "$tmp/root"; do
	nfs put "$tmp/exports" "$root/${i#/}/new$q"
	text=$(nfs cat "$root/${i#/}/new$q")
	[ "$text" = "$(cat "$tmp/exports")" ] || fail "$i below a filter: $text"
done

# A reload brings no code into the process: the old exports stay.
echo "other:/other $options" >>"$tmp/exports"
kill -HUP $server
logged "exports:6: 'other' is not a kind of file system; expected KIND:/PATH, \
where KIND is one of posix, mem, hello, delay, late (others are loaded at the \
start, with --backend), or just /PATH"
text=$(nfs cat "$url/hello$q")
[ "$text" = 'Good day' ] || fail "after a reload: $text"

# At the end it does not wait for a call that nobody waits for.
./gannet-nfs cat "tcp://127.0.0.1:$port/late/hello$q" &
client=$!
waits()
{
	kill -USR1 $server
	grep -q 'READ has waited .* for late' "$tmp/log"
}
soon waits || fail 'no call is suspended'
kill $client
kill $server
wait $server || fail "the server ended with $?"
server=
! grep -F 'calls still hang' "$tmp/log" || status=1

tried 'hello needs the option text=' --backend hello --export 'hello:/x'
refused "hello has no option 'size=1'; expected text=" \
	--backend hello --export 'hello,size=1:/x'
tried 'delay needs the option ms=' --backend delay --export 'delay:mem:/x'
refused "delay has no option 'size=1'; expected ms=" \
	--backend delay --export 'delay,size=1:mem:/x'
refused "mem has no option 'ms=1'; expected size= or files=" \
	--backend delay --export 'delay,ms=1:mem,ms=1:/x'
refused "the filter 'delay' stands over a backend; 'delay' is a filter, too" \
	--backend delay --export 'delay,ms=1:delay,ms=1:mem:/x'
refused "'hello' is not a kind of file system" --export 'hello,text=x:/x'
refused 'No such file' --backend missing --export mem:/m
refused "'../backends/hello' is not a name" --backend ../backends/hello
refused "there is a backend 'mem' already" --backend mem
refused "there is a backend 'hello' already" --backend hello --backend hello

cp -R "$include" "$tmp/new"
sed 's/\(GANNET_VFS_VERSION\)	.*/\1 99/' "$include/gannet/vfs.h" \
	>"$tmp/new/gannet/vfs.h"
sed 's/"hello",/"newer",/' "$hello" >"$tmp/newer.c"
build newer "$tmp/newer.c" "$tmp/new"
refused 'newer.so was built for version 99 of gannet/vfs.h; this gannetd has' \
	--backend newer
cp "$dir/hello.so" "$dir/other.so"
refused "other.so says that its name is 'hello'" --backend other
echo 'int nothing;' >"$tmp/empty.c"
build empty "$tmp/empty.c"
refused 'empty.so has no gannet_backend' --backend empty
sed 's/"hello",/"partly",/; /\.rename = /d' "$hello" >"$tmp/partly.c"
build partly "$tmp/partly.c"
refused 'partly.so has no operation rename' --backend partly
sed 's/"hello",/"outside",/; s/, TEXT_MAX }/, TEXT_MAX + 1 }/' "$hello" \
	>"$tmp/outside.c"
build outside "$tmp/outside.c"
refused 'outside.so has an option outside of its block' --backend outside
{
	sed 's/"hello",/"thread",/' "$hello"
	echo '#include <pthread.h>
	#include <unistd.h>
	static void *wait_here(void *arg) { pause(); return arg; }
	__attribute__((constructor)) static void begin(void)
	{
		pthread_t t;
		pthread_create(&t, 0, wait_here, 0);
	}'
} >"$tmp/thread.c"
build thread "$tmp/thread.c"
refused 'a module of --backend started a thread' --backend thread
# A mount that says yes and sets no tree, or that returns no -errno.  Both lose
# memory, as a sanitizer would say.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
sed 's/"hello",/"empty",/; s/^	\*out = .*//' "$hello" >"$tmp/empty.c"
build empty "$tmp/empty.c"
tried 'Input/output error' --backend empty --export 'empty,text=x:/x'
sed 's/"hello",/"wrong",/; s/^	vfs_log(.*/	return 1;/' "$hello" \
	>"$tmp/wrong.c"
build wrong "$tmp/wrong.c"
tried 'Input/output error' --backend wrong --export 'wrong,text=x:/x'

# Nobody else can have changed it.
ln -s hello.so "$dir/link.so"
refused 'link.so is not a regular file' --backend link
chmod g+w "$dir/hello.so"
refused 'hello.so can be written by others than its owner (mode 775)' \
	--backend hello
chmod 755 "$dir/hello.so"
chmod o+w "$dir"
refused 'backends can be written by others than its owner (mode 757)' \
	--backend hello
chmod 755 "$dir"
if [ "$(id -u)" = 0 ]; then
	chown 12345 "$dir/hello.so"
	refused 'hello.so belongs to user 12345' --backend hello
fi
exit $status
