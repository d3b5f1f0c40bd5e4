# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by ./quickstart for 'serve --ceph': a cluster, and two servers of
# its file system, in build-quickstart/ceph/.
# shellcheck disable=SC2154 # top, work, as_uid and more: quickstart's
# shellcheck disable=SC2034 # dir, served and more: for quickstart

names=(a b)
# Of each server: its process, and its ports.
declare -A pids tcp_ports rdma_ports

# ---- what an earlier run left

# The gannetds of the cluster that $CEPH_CONF names.
gannetds()
{
	local p
	for p in /proc/[0-9]*; do
		[ "$(cat "$p/comm" 2>/dev/null)" = gannetd ] || continue
		! tr '\0' '\n' 2>/dev/null < "$p/environ" |
			grep -qxF "CEPH_CONF=$CEPH_CONF" || echo "${p#/proc/}"
	done
} 2>/dev/null

# One run at a time: its process is in a file.
take_place()
{
	local other
	mkdir -p "$home" || exit 1
	other=$(cat "$home/pid" 2>/dev/null)
	if [ -n "$other" ] && tr '\0' ' ' 2>/dev/null \
			< "/proc/$other/cmdline" |
			grep -q 'quickstart serve.*--ceph'; then
		die "process $other serves this cluster; end it first"
	fi
	end_servers
	end_cluster
	rm -rf "$home" && mkdir -p "$home" && echo $$ > "$home/pid" ||
		die "can't write to $home"
}

# ---- the end

# end_servers: in good order, and else after 20 seconds.
end_servers()
{
	local p n=0 left
	left=$(gannetds)
	while [ -n "$left" ]; do
		for p in $left; do
			if [ $n = 0 ]; then
				kill -TERM "$p"
			elif [ $n -ge 100 ]; then
				kill -KILL "$p"
			fi
		done 2>/dev/null
		n=$((n + 1))
		sleep 0.2
		left=$(gannetds)
	done
}

# What it had in memory is gone anyway: in good order it takes ten seconds.
end_cluster()
{
	(
		for daemon in mds.a osd.0 mgr.x mon.a; do
			"$cluster" kill "$home/cluster" $daemon &
		done
		wait
	)
	"$cluster" stop "$home/cluster"
}

clean_up()
{
	trap '' INT TERM HUP PIPE
	[ -z "$job" ] || kill -KILL -- "-$job" 2>/dev/null
	end_servers
	end_cluster
	rm -rf "$home"
	[ -z "$ending" ] || say "ended"
}

# The end of each is waited for: by run_cluster, start or watch.
end_all()
{
	# The terminal has written ^C.
	[ -n "$ending" ] || [ ! -t 1 ] || echo
	ending=1
	[ -z "$job" ] || kill -TERM -- "-$job"
	[ -z "$pid${pids[*]}" ] || kill -TERM ${pid:+"$pid"} "${pids[@]}"
} 2>/dev/null

# ---- the cluster

run_cluster()
{
	local log=$work/logs/cluster.log status
	say "starting a Ceph cluster (half a minute; log: $log)"
	# In a process group of its own, so that Ctrl-C is ours to pass on.
	set -m
	STORE=${STORE:-memstore} SIZE=${SIZE:-1G} OWNER=$as_uid:$as_gid \
		"${pdeathsig[@]}" "$cluster" start "$home/cluster" \
		> "$log" 2>&1 </dev/null &
	job=$!
	set +m
	await "$job"
	status=$?
	[ -z "$ending" ] || exit 0
	job=''
	# Above 97 % the whole cluster would stand still.
	[ $status != 0 ] || ceph osd pool set-quota data max_bytes \
		$(($(numfmt --from=iec "${SIZE:-1G}") * 7 / 10)) \
		>> "$log" 2>&1 || status=$?
	[ $status = 0 ] && return
	tail -20 "$log" >&2
	die "the Ceph cluster did not start; see $log"
}

# ---- the servers

# choose NAME: start and others work on it.
choose() { run=$home/$1 state=$home/$1/state; }

# started NAME: notes what start found out, and shows what the server says.
started()
{
	pids[$1]=$pid tcp_ports[$1]=$tcp_port
	rdma_ports[$1]=${rdma_port:-$iwarp_port}
	tail -n +1 -f --pid="$pid" "$run/log" \
		> >(plainly | sed -u "s/^/server $1: /" >&2) 2>/dev/null &
	pid=''
}

# start_first NAME PORT RDMA-PORT
start_first()
{
	choose "$1"
	mkdir -p "$run"
	write_exports | sed 's,^/,ceph:/,' > "$run/exports"
	start_somewhere "$2" "$3"
	started "$1"
	servers+=("/mnt/$1 ${tcp_ports[$1]} ${rdma_ports[$1]}")
}

# start_again NAME: at its ports, since clients know them, and with its state:
# so it takes over what the dead one held.  Without it the other server would
# wait for that until the dead one's session ends, for a minute.
start_again()
{
	local n=0
	choose "$1"
	until start "${tcp_ports[$1]}" "${rdma_ports[$1]}"; do
		[ -z "$ending" ] || return
		[ $((n += 1)) -lt 10 ] || {
			plainly < "$run/log" >&2
			die "server $1 does not start again"
		}
		sleep 1
	done
	started "$1"
	say "server $1 is back"
}

# Until the end: a server that is gone comes back.
watch()
{
	local name
	while [ -z "$ending" ]; do
		wait -n "${pids[@]}" 2>/dev/null
		for name in "${names[@]}"; do
			kill -0 "${pids[$name]}" 2>/dev/null && continue
			[ -z "$ending" ] || break
			say "server $name ended; starting it again"
			start_again "$name"
		done
	done
}

# ---- what to do with them

print_sharing()
{
	local program=${gannetd%/*}/gannet-nfs a b
	[ -x "$program" ] || return 0
	printf -v program %q "$program"
	a=$(url "${tcp_ports[a]}" "${rdma_ports[a]}")
	b=$(url "${tcp_ports[b]}" "${rdma_ports[b]}")
	[ ${#allowed[@]} -gt 0 ] || echo
	echo "What is written at one server is there at the other:"
	echo
	echo "    echo hello | $program put - '${a/\?/hello?}'"
	echo "    $program cat '${b/\?/hello?}'"
	echo
	echo "A server that is killed comes back:"
	echo
	echo "    kill -9 ${pids[a]}"
	echo
	program=${gannetd%/*}/gannetctl
	if [ -x "$program" ]; then
		echo "What a server does, and what waits:"
		echo
		printf '    %q --socket=%q status\n' "$program" \
			"$home/a/state/control"
		printf '    %q --socket=%q waits\n\n' "$program" \
			"$home/a/state/control"
	fi
	echo "The cluster itself:"
	echo
	printf '    CEPH_CONF=%q ceph -s\n\n' "$CEPH_CONF"
}

serve_ceph()
{
	local program modules
	home=$work/ceph cluster=$top/tests/ceph/cluster
	job='' pid='' ending='' servers=()
	[ -z "$dir" ] || die "--ceph has a file system of its own, not '$dir'"
	dir=$work
	[ "$(id -u)" != 0 ] || as=${as:-$(id -un $nobody)}
	choose_identity
	dir=/ served="a CephFS from two servers"
	nolock="a lock holds within one mount alone: at port 111, where clients"
	nolock+=" look for locks, a machine has one server.  Those of several"
	nolock+=" machines share them"

	export CEPH_CONF=$home/cluster/ceph.conf
	take_place
	trap clean_up EXIT
	serve_packages+=("${ceph_packages[@]}")
	# It may have been built without libcephfs.
	! grep -qsF 'S["CEPH_TRUE"]="#"' "$work/main/config.status" ||
		rm -f "$work/main/.configured"
	prepare modules/ceph/ceph.so gannetctl
	for program in ceph-mon ceph-mgr ceph-osd ceph-mds ceph; do
		command -v $program >/dev/null ||
			die "there is no $program: install ${ceph_packages[*]}"
	done
	modules=$(readlink -f "${gannetd%/*}/modules/ceph")
	backend=(--backend ceph)
	if [ -d "$modules" ]; then
		printf '[exports]\nbackend-dir = %s\n' "$modules" \
			> "$home/gannet.conf"
		backend+=(--config "$home/gannet.conf")
	fi

	trap end_all INT TERM HUP
	trap 'exit 1' PIPE		# nobody reads what it prints
	run_cluster
	start_first a 2049 20049
	start_first b 2050 20050
	print_mounts
	print_sharing
	watch
}
