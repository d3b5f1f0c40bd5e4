# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by ./quickstart: serve.
# shellcheck disable=SC2154 # top, work, serve_packages: quickstart's

nobody=65534	# the user, and the group

# escape FORMAT TEXT: with FORMAT for what could be read otherwise.
escape()
{
	local LC_ALL=C format=$1 text=$2 i c
	for ((i = 0; i < ${#text}; i++)); do
		c=${text:i:1}
		case $c in
		[a-zA-Z0-9/._-] | [$'\x80'-$'\xff']) printf '%s' "$c" ;;
		*)
			# shellcheck disable=SC2059 # it is a format
			printf "$format" "'$c" ;;
		esac
	done
}

# Addresses of this machine that are not loopback: the one that it goes out
# with first, IPv4 before IPv6.
own_addresses()
{
	command -v ip >/dev/null ||
		{ hostname -I 2>/dev/null | xargs -r -n 1; return; }
	{
		ip -o -4 route get 1.0.0.1
		ip -o -4 addr show scope global
		ip -o -6 addr show scope global -deprecated
	} 2>/dev/null | awk '
		/^[0-9]+: / { sub("/.*", "", $4); from = $4 }
		!/^[0-9]+: / { from = ""; for (i = 1; i < NF; i++)
				if ($i == "src") from = $(i + 1) }
		from && !seen[from]++ { print from }'
}

# The link that has an address.
link_of() { ip -o addr show to "$1" 2>/dev/null | awk '{ print $2; exit }'; }

# The first of them that is not on the loopback link, which siw refuses.
siw_address()
{
	local address
	for address in ${own[@]+"${own[@]}"}; do
		[ "$(link_of "$address")" = lo ] || {
			echo "$address"
			return
		}
	done
}

# An address at an RDMA device: that is where RDMA can be mounted from here.
rdma_address()
{
	local dev link
	{
		for dev in /sys/class/infiniband/*; do
			for link in "$dev"/ports/*/gid_attrs/ndevs/0 \
				"$dev"/parent; do
				cat "$link" 2>/dev/null
			done
			for link in "$dev"/device/net/*; do
				echo "${link##*/}"
			done
		done
		rdma link show 2>/dev/null |
			sed -n 's/.* netdev \([^ ]*\).*/\1/p'
	} | while read -r link; do
		ip -o addr show dev "$link" scope global 2>/dev/null |
			awk '{ sub("/.*", "", $4); print $4; exit }'
	done | head -1
}

# One spelling for each client, so that none is named twice.
canonical()
{
	local address=''
	case $1 in
	*/*) ;;
	*:*) address=$(getent ahostsv6 "$1" | awk '{ print $1; exit }') ;;
	esac
	echo "${address:-${1,,}}"
}

write_exports()
{
	local options client name known=' '
	options="(rw,insecure,all_squash,anonuid=$as_uid,anongid=$as_gid$(
		)${tls:+,xprtsec=tls})"
	printf '%s' "$(escape '\%03o' "$dir")"
	for client in 127.0.0.0/8 ::1 ${own[@]+"${own[@]}"} "$siw_at" \
			${allowed[@]+"${allowed[@]}"}; do
		name=$(canonical "$client")
		case $known in *" $name "*) continue ;; esac
		known+="$name "
		printf ' %s%s' "$client" "$options"
	done
	echo
}

# start PORT RDMA-PORT: runs gannetd until it is ready; sets pid and ports.
start()
{
	local line quiet=--no-rpcbind
	tcp_port='' rdma_port='' iwarp_port='' announced=''
	# This machine's own mounts are told the ports, and have no use for
	# our lock manager: its kernel's would take that one's place.
	[ ${#allowed[@]} = 0 ] || [ "$1" != 2049 ] || [ "$(id -u)" != 0 ] ||
		[ -n "$ceph" ] || quiet='' announced=1
	rm -f "$run/ready"
	mkfifo "$run/ready"
	# In a process group of its own, so that Ctrl-C is ours to pass on.
	set -m
	"${pdeathsig[@]}" "$gannetd" --foreground $quiet \
		--exports-file="$run/exports" --state-dir="$state" \
		--port="$1" --rdma="$rdma_mode" --rdma-port="$2" \
		${backend[@]+"${backend[@]}"} \
		${tls_files[@]+"${tls_files[@]}"} --log-level=warn \
		>"$run/ready" 2>"$run/log" </dev/null &
	pid=$!
	set +m
	while read -r line; do
		case $line in
		ready) return 0 ;;
		'ready: tcp '*) tcp_port=${line##* } ;;
		'ready: rdma '*) rdma_port=${line##* } ;;
		'ready: iwarp '*) iwarp_port=${line##* } ;;
		esac
	done < "$run/ready"
	wait "$pid"
	pid=''
	return 1
}

finish()
{
	# The terminal has written ^C.
	[ -n "$ending" ] || [ ! -t 1 ] || echo
	ending=1
	[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null
}

# mount_lines TRANSPORT ADDRESS [NOLOCK]: one for each server.
mount_lines()
{
	local path six='' host=$2 options server at tcp rdma port
	printf -v path %q "$dir"
	case $2 in *:*) six=6 host="[$2]" ;; esac
	for server in "${servers[@]}"; do
		read -r at tcp rdma <<< "$server"
		[ "$1" = tcp ] && port=$tcp || port=$rdma
		options=vers=3,proto=$1$six,port=$port,mountport=$tcp
		options+=,mountproto=tcp$six${3-,nolock}${tls:+,xprtsec=tls}
		echo "    mount -t nfs -o $options $host:$path $at"
	done
}

# Clients find the lock manager at port 111: it is an rpcbind, which knows
# gannetd, or it is gannetd.
locks_work()
{
	[ -n "$announced" ] && (exec 3<>/dev/tcp/127.0.0.1/111) 2>/dev/null &&
		! grep -q 'not registered' "$run/log"
}

# Where clients reach this machine: on the way to the first that is an
# address or a network, else where it goes out.
address_for_others()
{
	local client from=''
	for client in "${allowed[@]}"; do
		from=$(ip -o route get "${client%/*}" 2>/dev/null |
			sed -n 's/.* src \([^ ]*\).*/\1/p')
		case $from in
		'' | 127.* | ::1) ;;
		*) break ;;
		esac
	done
	case $from in '' | 127.* | ::1) from=${own[0]:-} ;; esac
	echo "${from:-THIS-HOST}"
}

# How this machine itself mounts by RDMA: at its device, or by siw at a link
# that is not loopback's (which siw refuses).
print_own_rdma()
{
	local link
	if [ -n "$rdma_port" ]; then
		[ -n "$rdma_at" ] || return 0
		echo "The same over NFS/RDMA, on this machine's RDMA device:"
		echo
		mount_lines rdma "$rdma_at"
		echo
		return
	fi
	[ -n "$iwarp_port" ] || return 0
	link=$(link_of "$siw_at")
	echo "The same over NFS/RDMA, with the kernel's iWARP (siw), which" \
		"is set up once:"
	echo
	if [ -n "$lonely" ]; then
		echo "    ip link add ${link:=gannet0} type dummy"
		echo "    ip addr add $siw_at/24 dev $link"
		echo "    ip link set $link up"
	fi
	echo "    modprobe siw; rdma link add siw0 type siw netdev ${link:-DEV}"
	mount_lines rdma "$siw_at"
	echo
	command -v modinfo >/dev/null && [ ! -d /sys/module/siw ] &&
		! modinfo siw >/dev/null 2>&1 || return 0
	echo "(This machine's kernel has no siw; Debian 12's has none.  Soft" \
		"RoCE does instead: 'modprobe"
	echo "rdma_rxe; rdma link add rxe0 type rxe netdev ${link:-DEV}'," \
		"then start this again.)"
	echo
}

# url TCP-PORT RDMA-PORT: of the directory, as gannet-nfs takes it.
url()
{
	local at=tcp://127.0.0.1:$1
	[ -z "$iwarp_port" ] || at=rdma+iwarp://127.0.0.1:$2
	echo "$at$(escape '%%%02x' "$dir")?mountport=$1"
}

# Without a mount, and so without root; at loopback, too.
print_looking()
{
	local program=${gannetd%/*}/gannet-nfs server tcp rdma
	[ -x "$program" ] || return 0
	printf -v program %q "$program"
	echo "Look at it without mounting, as anybody:"
	echo
	for server in "${servers[@]}"; do
		read -r _ tcp rdma <<< "$server"
		echo "    $program ls -l '$(url "$tcp" "$rdma")'"
	done
	echo
}

print_others()
{
	local address client lock=,nolock
	address=$(address_for_others)
	! locks_work || lock=''
	for client in "${allowed[@]}"; do
		case $client in
		'*' | */0 | */0.0.0.0)
			echo "--allow '$client' lets everybody in who can" \
				"reach this machine, to read and to write."
			;;
		esac
	done
	echo "On ${allowed[*]}:"
	echo
	mount_lines tcp "$address" "$lock"
	echo
	if [ -n "$rdma_port" ]; then
		echo "There, with an RDMA device on the same network:"
		echo
		mount_lines rdma "${rdma_at:-$address}" "$lock"
		echo
	elif [ -n "$iwarp_port" ]; then
		echo "There, with an iWARP adapter, or with the kernel's siw" \
			"on the link DEV (once: the first line):"
		echo
		echo "    modprobe siw; rdma link add siw0 type siw netdev DEV"
		mount_lines rdma "$address" "$lock"
		echo
	fi
	[ -z "$lock" ] || [ -n "$ceph" ] ||
		echo "(nolock: a lock holds on one client alone;" \
		"to share them, run this as root, at the usual ports.)"
}

print_identity()
{
	local path end=.
	[ -z "$spared" ] || end=', since root owns it.'
	echo "Whoever mounts or looks at it, acts there as user $as$end"
	if [ -n "$spared" ]; then
		printf -v path %q "$dir"
		echo "To let them do more: 'chown USER $path', or --as USER," \
			"and start this again."
	elif [ "$(id -u)" = 0 ] && [ "$as_uid" = 0 ]; then
		echo "Every user of this machine, and whoever else is let in," \
			"can become root by that."
	fi
	echo
}

print_mounts()
{
	echo "Serving $served (Ctrl-C ends it).  Mount it on this machine, as" \
		"root, with:"
	echo
	[ -z "$ceph" ] || echo "    mkdir -p ${servers[*]%% *}"
	mount_lines tcp 127.0.0.1
	echo
	print_own_rdma
	printf '(nolock: %s.)\n\n' "$nolock"
	if [ -n "$tls" ]; then print_tls; else print_looking; fi
	print_identity
	if [ ${#allowed[@]} = 0 ]; then
		echo "Only this machine may; --allow CLIENT lets others in."
	else
		print_others
	fi
}

# Says what is doubtful about a client; ends when it can't be one.
check_client()
{
	case $1 in
	'' | *[[:space:]\(\)\#\\\"]* | -*)
		die "--allow '$1': expected a host, an address, a network as" \
			"192.0.2.0/24, *.example.org or @netgroup" ;;
	@*)
		getent netgroup "${1#@}" >/dev/null ||
			say "warning: --allow $1: no such netgroup now" ;;
	*[/*?[]* | *:*) ;;
	*[!0-9.]*)
		timeout 10 getent ahosts "$1" >/dev/null ||
			say "warning: --allow $1: the name does not resolve" \
				"now; nobody is let in by it until it does" ;;
	esac
}

# The user of --as.
check_user()
{
	local uid
	uid=$(id -u -- "$as" 2>/dev/null) ||
		die "--as '$as': there is no such user"
	[ "$(id -u)" = 0 ] || [ "$(id -u)" = "$uid" ] ||
		die "--as $as: without root's privileges all act as $(id -un)"
}

check_port()
{
	[[ $named_port =~ ^[0-9]{1,5}$ ]] && ((named_port > 0)) &&
		((named_port < 65536)) ||
		die "--port '$named_port': expected a number from 1 to 65535"
}

# Whom clients act as: sets as, as_uid, as_gid; spared, where root owns the
# directory.  Whatever they may write they may make set-uid, and any user of
# this machine can be one of them: none is root unless it is named.
choose_identity()
{
	local owner group
	spared=''
	read -r owner group < <(stat -c '%u %g' "$dir") || exit 1
	if [ "$(id -u)" != 0 ]; then
		as=$(id -un 2>/dev/null)	# the server can't be another
	elif [ -z "$as" ]; then
		[ "$owner" != 0 ] || owner=$nobody spared=1
		as=$(id -un "$owner" 2>/dev/null) || as=$owner
	fi
	if as_uid=$(id -u -- "$as" 2>/dev/null); then
		case " $(id -G -- "$as") " in
		*" $group "*) as_gid=$group ;;
		*) as_gid=$(id -g -- "$as") ;;
		esac
	else
		as_uid=$as as_gid=$group
	fi
	[ "$as_gid" != 0 ] || [ "$as_uid" = 0 ] || as_gid=$nobody
}

serve_arguments()
{
	dir='' as='' allowed=() ceph='' backend=() named_port=''
	tls='' tls_files=()
	while [ $# -gt 0 ]; do
		case $1 in
		--allow)
			[ $# -gt 1 ] || die "--allow needs a client, for" \
				"example --allow 192.0.2.0/24"
			allowed+=("$2"); shift ;;
		--allow=*) allowed+=("${1#*=}") ;;
		--as)
			[ $# -gt 1 ] || die "--as needs a user"
			as=$2; check_user; shift ;;
		--as=*) as=${1#*=}; check_user ;;
		--port) named_port=${2:-}; check_port; shift ;;
		--port=*) named_port=${1#*=}; check_port ;;
		--ceph) ceph=1 ;;
		--tls) tls=$work/tls ;;
		-h | --help) usage; exit 0 ;;
		-*) misused "no option $1" ;;
		*)
			[ -z "$dir" ] || die "one directory, not also '$1'"
			[ -n "$1" ] || die "the directory's name is empty"
			dir=$1 ;;
		esac
		shift
	done
	[ -z "$ceph" ] || [ -z "$tls" ] || misused "--tls is not for --ceph"
	local client
	for client in ${allowed[@]+"${allowed[@]}"}; do
		check_client "$client"
	done
}

make_own_directory()
{
	mkdir "$dir" && echo "Hello from Gannet." > "$dir/hello" || return
	[ "$(id -u)" != 0 ] || chown -h $nobody:$nobody "$dir/hello" "$dir"
}

# The directory that was named, for whom clients act as.  Where the user may not
# make it, sudo does, as for packages.
make_directory()
{
	local owner=$nobody:$nobody log=$work/logs/mkdir.log root
	[ -z "$as" ] || owner=$as:$(id -g -- "$as")
	[ "$(id -u)" = 0 ] || owner=$(id -u):$(id -g)
	for root in '' $([ "$(id -u)" = 0 ] || echo sudo); do
		(umask 022
		$root mkdir -p -- "$(dirname -- "$dir")" &&
			$root mkdir -- "$dir" &&
			$root chown -h "$owner" -- "$dir"
		) 2> "$log" && say "made $dir, which was missing" && return
	done
	cat "$log" >&2
	die "$dir: there is no such directory, and $(id -un) can't make it"
}

check_directory()
{
	if [ -z "$dir" ]; then
		dir=$work/export
		[ -d "$dir" ] || make_own_directory || exit 1
	fi
	[ -e "$dir" ] || make_directory
	[ -d "$dir" ] || die "$dir: is not a directory"
	[ -r "$dir" ] && [ -x "$dir" ] ||
		die "$dir: user $(id -un) may not read this directory"
	[ -w "$dir" ] ||
		say "warning: neither $(id -un) nor clients may write to $dir"
	dir=$(readlink -f "$dir")
	[ "$dir" != / ] || say "warning: / is this whole machine, and clients" \
		"can do to each file what its mode allows"
}

# Programs, and what is found out about this machine.
prepare()
{
	if [ -z "${GANNETD:-}" ]; then
		# shellcheck source=tests/quickstart-build.sh
		. "$top/tests/quickstart-build.sh"
		install_missing "${serve_packages[@]}"
		build_gannetd "$@"
	fi
	gannetd=${GANNETD:-$work/main/gannetd}
	# Should this script be killed, the server ends.
	pdeathsig=(setpriv --pdeathsig TERM --)
	setpriv --pdeathsig TERM true 2>/dev/null || pdeathsig=()
	# A device without an address is one that nobody can mount at.
	rdma_at=$(rdma_address) rdma_mode=auto lonely=''
	[ -n "$rdma_at" ] || rdma_mode=iwarp
	# RDMA has no TLS.
	[ -z "$tls" ] || rdma_mode=off
	mapfile -t own < <(own_addresses)
	siw_at=$(siw_address)
	# With loopback alone, siw needs a link with this address.
	[ -n "$siw_at" ] || siw_at=192.0.2.1 lonely=1
}

serve()
{
	serve_arguments "$@"
	make_work
	if [ -n "$ceph" ]; then
		# shellcheck source=tests/ceph/demo.sh
		. "$top/tests/ceph/demo.sh"
		serve_ceph
		return
	fi
	check_directory
	choose_identity
	prepare
	run=$(mktemp -d "$work/run.XXXXXX") || exit 1
	trap 'rm -rf "$run"' EXIT
	if [ -n "$tls" ]; then
		# shellcheck source=tests/quickstart-tls.sh
		. "$top/tests/quickstart-tls.sh"
		make_tls
	fi
	write_exports > "$run/exports"
	run_server
}

# What gannetd says, without the file that was made for it.
plainly()
{
	local line client at="$run/exports:1: "
	while IFS= read -r line; do
		case $line in
		*"${at}client '"*)
			client=${line#*"${at}client '"}
			line="--allow ${client%%"' "*}: ${client#*"' "}" ;;
		*"$at"*) line=${line#*"$at"} ;;
		esac
		printf '%s\n' "$line"
	done
}

# start_somewhere PORT RDMA-PORT: or at other ports, or with another state
# directory: a second server may run.
start_somewhere()
{
	local port=$1 rdma=$2 log=$run/log
	until start "$port" "$rdma"; do
		[ -z "$ending" ] || exit 0
		if [ "$port" != 0 ] && [ -z "$named_port" ] &&
				grep -qE 'listen on (tcp|udp)' "$log"; then
			say "port $port is taken; using another"
			port=0
		elif [ "$rdma" != 0 ] &&
				grep -qE 'listen on (rdma|iwarp)' "$log"; then
			say "RDMA port $rdma is taken; using another"
			rdma=0
		elif [ "$state" = "$work/state" ] &&
		     grep -q 'another gannetd uses it' "$log"; then
			state=$run/state
		else
			plainly < "$log" >&2
			die "gannetd did not start"
		fi
	done
}

# await PID: its status.
await()
{
	local status
	# A trapped signal ends a wait, with a status of its own.
	while wait "$1"; status=$?; [ $status -gt 128 ]; do
		kill -0 "$1" 2>/dev/null || break
	done
	[ $status -le 128 ] || { wait "$1" 2>/dev/null; status=$?; }
	return $status
}

run_server()
{
	local status
	pid='' ending='' state=$work/state
	trap finish INT TERM HUP
	start_somewhere "${named_port:-2049}" 20049
	if grep -q "can't be exported" "$run/log"; then
		plainly < "$run/log" | sed 's/; trying again.*//' >&2
		finish
		await "$pid"
		exit 1
	fi
	servers=("/mnt $tcp_port ${rdma_port:-$iwarp_port}") served=$dir
	nolock="locks stay on this machine, whose kernel would put its lock"
	nolock+=" manager in the place of gannetd's"
	print_mounts
	tail -n +1 -f --pid="$pid" "$run/log" > >(plainly >&2) &
	await "$pid"
	status=$?
	[ $status = 0 ] || die "gannetd ended with status $status"
	say "ended"
}
