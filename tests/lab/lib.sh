# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced inside the guest: results, transports, mounts, the server.
#
# A result is one line on standard output, "ok - WHAT", "not ok - WHAT" or
# "skip - WHAT # WHY"; a line that starts with "# " says more about the next.

SUITE=${SUITE:-lab} T=${T:-}
LOGS=/run/lab		# the server's
OUT=${OUT:-$LOGS}	# what a check printed; each stream has its own
SRV=/srv/lab		# what the server exports
export LOGS OUT SRV
mkdir -p "$OUT"

# git's settings, for whoever runs it: all its work is a test's own.
export GIT_CONFIG_COUNT=5
export GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=user.name GIT_CONFIG_VALUE_1=lab
export GIT_CONFIG_KEY_2=user.email GIT_CONFIG_VALUE_2=lab@localhost
export GIT_CONFIG_KEY_3=gc.auto GIT_CONFIG_VALUE_3=0
export GIT_CONFIG_KEY_4=maintenance.auto GIT_CONFIG_VALUE_4=false

ok() { echo "ok - ${T:+$T }$SUITE: $*"; }
not_ok() { echo "not ok - ${T:+$T }$SUITE: $*"; }
# skip WHAT WHY
skip() { echo "skip - ${T:+$T }$SUITE: $1 # $2"; }
note() { sed 's/^/# /'; }

# Sets worked to how long all processors together have worked, in hundredths of
# a second, and starts no process for it.
processors()
{
	local user nice system irq softirq
	read -r _ user nice system _ _ irq softirq _ < /proc/stat
	worked=$((user + nice + system + irq + softirq))
}

# took SECONDS WORKED: the time since SECONDS and worked were that.
took()
{
	local work
	processors
	work=$((worked - $2))
	echo "$((SECONDS - $1)) s, $(((work + 50) / 100)) s of processors"
}

# check WHAT COMMAND...: holds when the command, or every command of the
# function, succeeds.
check()
{
	local what=$1 status start=$SECONDS work; shift
	processors
	work=$worked
	(set -eE; trap 'echo "line $LINENO: $BASH_COMMAND"' ERR; "$@") \
		>"$OUT/check" 2>&1
	status=$?
	if [ $status = 0 ]; then
		ok "$what"
	else
		# In one piece, among what other streams print.
		echo "$(tail -15 "$OUT/check" | note; not_ok "$what")"
	fi
	[ $((SECONDS - start)) -lt 10 ] ||
		echo "# that took $(took $start "$work")"
	return 0
}

# refused TEXT COMMAND...: the command fails and says TEXT.
refused()
{
	local text=$1; shift
	if "$@" >"$OUT/refused" 2>&1; then
		echo "succeeded: $*"
		return 1
	fi
	cat "$OUT/refused"
	grep -qi -- "$text" "$OUT/refused"
}

# Sleeps without the start of a process, which costs a tenth of a second of a
# processor here: nobody writes to the pipe that it reads.
exec {silence}<> <(:)
pause() { read -r -t 0.1 -u "$silence" || true; }

# wait_for SECONDS COMMAND...
wait_for()
{
	local end=$((SECONDS + $1)); shift
	while ! "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "waited for: $*"; return 1; }
		pause
	done
}

# background NAME COMMAND...: starts it; ended NAME waits for it.  A trap tells
# how it ended where set -e ends it, too.
background()
{
	local name=$1; shift
	rm -f "$OUT/$name.status"
	{
		# shellcheck disable=SC2064 # the name as it is now
		trap "echo \$? > '$OUT/$name.status'" EXIT
		"$@" > "$OUT/$name.out" 2>&1
	} &
}

ended()
{
	wait_for 300 test -s "$OUT/$1.status" || return 1
	cat "$OUT/$1.out"
	[ "$(cat "$OUT/$1.status")" = 0 ]
}

# ---- transports: name, address of the server, mount options
# "siw" is the kernel's iWARP at both ends; "iwarp" has gannetd's own here.
# What is behind a "-" is a way to use it: see siw_speaks.

transport_address()
{
	case ${1%%-*} in
	siw6 | iwarp6) echo '[2001:db8:2::1]' ;;
	siw | iwarp) echo 198.51.100.1 ;;
	*6) echo '[2001:db8:1::1]' ;;
	*) echo 192.0.2.1 ;;
	esac
}

transport_options()
{
	case $1 in
	rxe | rxe-* | siw) echo proto=rdma,port=20049 ;;
	rxe6 | siw6) echo proto=rdma6,port=20049 ;;
	iwarp | iwarp-*) echo proto=rdma,port=20050 ;;
	iwarp6) echo proto=rdma6,port=20050 ;;
	tcp) echo proto=tcp,port=2049 ;;
	tcp6) echo proto=tcp6,port=2049 ;;
	tcp-nconnect) echo proto=tcp,port=2049,nconnect=4 ;;
	esac
}

# mount_as TRANSPORT EXPORT DIR [OPTIONS]
mount_as()
{
	local options mountproto=tcp
	case $1 in *6) mountproto=tcp6 ;; esac
	options=vers=3,$(transport_options "$1"),mountport=$MOUNT_PORT
	options+=,mountproto=$mountproto,nolock${4:+,$4}
	mkdir -p "$3"
	timeout 200 mount -t nfs -o "$options" \
		"$(transport_address "$1"):$2" "$3"
}

# The parameters that build-siw gave the module.  rtr_type is what its end of
# a connection says after the start-up, in network byte order: a Write of
# nothing, a Read of nothing, or one of them.
siw_parameters()
{
	local dir=/sys/module/siw/parameters word
	[ -d $dir ] || return 0
	for word; do echo "${word#*=}" > "$dir/${word%%=*}" || return; done
}

# siw_speaks TRANSPORT: from the next connection on.
siw_speaks()
{
	local write=128 read=64
	siw_parameters mpa_version=2 mpa_crc_required=0 peer_to_peer=0 \
		rtr_type=$((write + read)) || return
	case $1 in
	*-crc) siw_parameters mpa_crc_required=1 ;;
	*-rtr-write) siw_parameters peer_to_peer=1 rtr_type=$write ;;
	*-rtr-read) siw_parameters peer_to_peer=1 rtr_type=$read \
		mpa_crc_required=1 ;;
	*-rev1) siw_parameters mpa_version=1 ;;
	esac
}

# The client forgets what it can.
forget() { sync; echo 3 > /proc/sys/vm/drop_caches; }

# ---- the server

case ${SERVER:-gannetd} in
gannetd) MOUNT_PORT=2049 ;;
knfsd) MOUNT_PORT=20048 ;;
esac
export MOUNT_PORT

server_pid() { echo "$(<"$LOGS/server.pid")"; }

is_gone() { ! kill -0 "$1"; }

server_start()
{
	if [ "$SERVER" = knfsd ]; then
		exportfs -ra
		pgrep -x rpc.mountd >/dev/null || rpc.mountd --port 20048
		rpc.nfsd --no-nfs-version 4 --rdma=20049 8
		return
	fi
	local log rdma=auto
	[ ! -e /sys/class/infiniband/siw0 ] || rdma=verbs,iwarp
	log=$LOGS/gannetd.$(date +%s.%N).log
	printf '%s\n' '[rdma]' "inline = ${INLINE:-4096}" \
		"read-read = ${READ_READ:-no}" > /run/gannet-lab.conf
	setsid "$BUILD/gannetd" --foreground --exports-file=/etc/exports \
		--port=2049 --rdma="$rdma" --rdma-port=20049 \
		--state-dir=/srv/state --log-level=debug \
		--config=/run/gannet-lab.conf ${GRACE:+--grace=$GRACE} \
		>"$log" 2>&1 </dev/null &
	echo $! > "$LOGS/server.pid"
	disown
	ln -sf "$log" "$LOGS/server.log"
	wait_for 120 grep -qx ready "$log" ||
		{ tail -20 "$log" | note; return 1; }
	# A restart is over when the port is there, RDMA or not.
	grep -q '^ready: rdma' "$log" || [ ! -e /sys/class/infiniband/rxe0 ] ||
		{ echo "# no RDMA listener"; tail -5 "$log" | note; return 1; }
}

# Ends the server as an administrator does, and waits until it is gone.
server_stop()
{
	if [ "$SERVER" = knfsd ]; then
		rpc.nfsd 0
		return
	fi
	local pid
	pid=$(server_pid)
	kill -TERM "$pid"
	wait_for 120 is_gone "$pid"
}

server_kill()
{
	local pid
	pid=$(server_pid)
	kill -KILL "$pid"
	wait_for 60 is_gone "$pid"
}

# The kernel's server in gannetd's place, for as long as a suite wants it.
knfsd_takes_over()
{
	server_stop
	SERVER=knfsd server_start
	wait_for 60 rpcinfo -T tcp 198.51.100.1 mountd 3
}

gannetd_takes_over()
{
	SERVER=knfsd server_stop
	pkill -x rpc.mountd
	exportfs -ua
	server_start
}
