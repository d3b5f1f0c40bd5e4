#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The packages of debian/, as an administrator meets them.
#
#   tests/packages.sh WORK [RELEASE]
#
# builds them in the directory WORK, asks lintian, and makes a bare Debian of
# the release (bookworm; another one builds them, too) whose systemd runs in
# name spaces of its own.  Its one link goes to a client machine: the stock
# kernel of the lab, emulated.  On both, the commands of README.md are run as
# they stand: the packages are installed, a directory is exported and mounted.
# Kerberos comes and goes with its package.  The server is upgraded while
# clients write, and all is purged.  Prints lines 'ok - WHAT', and as the last
# one how many passed; ends with 77 when it has to leave something out, which
# the line before says.
set -u -o pipefail
top=$(dirname "$(dirname "$(readlink -f "$0")")")
# shellcheck source=tests/soon.sh
. "$top/tests/soon.sh"
mkdir -p "$1" || exit 1
work=$(readlink -f "$1")
release=${2-bookworm}
root=$work/root-$release
passed=0 failed=0 init='' link='' network=() client='' asked=0 without=''

skip() { echo "skip: $*"; exit 77; }
# check WHAT COMMAND...: what it printed is shown when it fails.
check()
{
	local what=$1; shift
	if "$@" > "$work/check.log" 2>&1 </dev/null; then
		echo "ok - $what"
		passed=$((passed + 1))
	else
		echo "not ok - $what"
		tail -30 "$work/check.log" | sed 's/^/# /'
		failed=$((failed + 1))
		false
	fi
}

# readme NAME: the commands of README.md that have that mark.
readme()
{
	awk -v mark="<!-- tests/packages.sh runs this: $1 -->" '
		$0 == mark { found = 1 }
		found && /^```/ { if (inside++) exit; next }
		inside' "$top/README.md" | grep .
}

# ---- building

# hiding_headers COMMAND...: without the headers of Check and libnfs, if root.
hiding_headers()
{
	[ "$(id -u)" = 0 ] || { "$@"; return; }
	# shellcheck disable=SC2016 # the shell inside expands it
	unshare -m sh -c 'for f in /usr/include/check.h /usr/include/nfsc/*; do
			[ ! -e "$f" ] || mount --bind /dev/null "$f" || exit
		done; exec "$@"' sh "$@"
}

copy_source()
{
	rm -rf "$1" "$work"/*.deb
	mkdir -p "$1" && git -C "$top" ls-files -z |
		tar -C "$top" --null -T - -cf - | tar -C "$1" -xf -
}

# The compiler is asked for little.
processors=$(nproc)
export DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$processors"
export DEB_CFLAGS_APPEND='-O1 -g0'

# In a Debian of the other release, with what README says; Check and libnfs are
# there, whatever their versions.
build_there()
{
	local there=$work/build-$release
	rm -rf --one-file-system "$there"
	mmdebstrap -q --variant=buildd --skip=cleanup/apt/lists "$release" \
		"$there" && copy_source "$there/build/gannet" &&
	chroot "$there" sh -ec 'cd /build/gannet
		export DEBIAN_FRONTEND=noninteractive
		apt-get -qq -y -P nocheck build-dep ./
		apt-get -qq -y install check libnfs-dev
		echo "libnfs $(pkg-config --modversion libnfs)"
		dpkg-buildpackage -b -us -uc -Pnocheck' || return
	cp "$there"/build/*.deb "$work/" && rm -rf --one-file-system "$there"
}

# As where Check and libnfs are absent.
build_packages()
{
	copy_source "$work/gannet" || return
	rm -rf "$work/pkgconfig" && mkdir "$work/pkgconfig" || return
	ln -s /usr/lib/*/pkgconfig/*.pc /usr/share/pkgconfig/*.pc \
		"$work/pkgconfig"
	rm -f "$work"/pkgconfig/{check,libnfs}.pc
	cd "$work/gannet" && PKG_CONFIG_LIBDIR=$work/pkgconfig \
		hiding_headers dpkg-buildpackage -b -us -uc -P"$profiles"
}

# The engine of fio, where its headers can be had, is a package that fio loads.
profiles=nocheck
with_fio()
{
	"$top/tests/fio-headers.sh" "$work/fio" || return
	export FIO_SOURCE=$work/fio
	profiles=nocheck,pkg.gannet.fio
}
fio_loads_it()
{
	rm -rf "$work/fio-package"
	dpkg-deb -x "$work"/gannet-fio_*.deb "$work/fio-package" &&
	fio --enghelp="$(find "$work/fio-package" -name fio-gannet.so)" |
		grep '^reconnects '
}

lintian_says_nothing()
{
	local said
	said=$(lintian --allow-root --profile debian "$work"/*.changes) &&
		[ -z "$said" ] || { echo "$said"; return 1; }
}

# The server's packages with a higher version, $work/newer/*.deb.
make_newer()
{
	local name
	rm -rf "$work/newer" && mkdir "$work/newer" || return
	for name in gannet gannet-client; do
		dpkg-deb -R "$work/${name}"_*.deb "$work/newer/$name" &&
		sed -i 's/^Version: .*/&+newer/' \
			"$work/newer/$name/DEBIAN/control" &&
		dpkg-deb -b "$work/newer/$name" "$work/newer/$name.deb" ||
			return
	done
}

# ---- the bare machine

# Its apt has lists, since it will have no network.
make_machine()
{
	rm -rf --one-file-system "$root"
	mmdebstrap -q --variant=minbase --include=systemd-sysv \
		--skip=cleanup/apt/lists "$release" "$root" \
		> "$work/machine.log" 2>&1 </dev/null
}

# The packages, in /packages and /newer, and what they depend on, in the cache
# of its apt.
fetch_dependencies()
{
	mkdir -p "$root/packages/here" &&
	cp "$work"/gannet_*.deb "$work"/gannet-client_*.deb \
		"$work"/gannet-krb5_*.deb "$root/packages/" &&
	cp -r "$work/newer" "$root/" &&
	echo 'APT::Get::Assume-Yes "true";' \
		> "$root/etc/apt/apt.conf.d/90assume-yes" &&
	chroot "$root" sh -c 'apt-get -qq --download-only install \
		/packages/*.deb'
}

made_or_ends()
{
	grep -qx made "$work/network.log" || ! kill -0 $link 2>/dev/null
}

# The link between the server and its client, in a name space of theirs.
make_network()
{
	unshare -n sh -c 'ip link set lo up
		ip tuntap add dev clients mode tap || ip link add clients \
			type dummy
		ip addr add 192.0.2.1/24 dev clients
		ip link set clients up && echo made && exec sleep infinity' \
		> "$work/network.log" 2>&1 </dev/null &
	link=$!
	network=(nsenter -t "$link" -n --)
	soon made_or_ends
	grep -qx made "$work/network.log" ||
		{ tail -1 "$work/network.log"; return 1; }
}

# In the machine's name spaces: becomes its first process.
boot()
{
	mount --make-rprivate / && mount --bind "$root" "$root" &&
	cd "$root" && mount -t proc proc proc &&
	mount -t sysfs -o ro sysfs sys &&
	mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup &&
	mount -t cgroup2 cgroup2 sys/fs/cgroup &&
	mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs tmp &&
	pivot_root . mnt &&
	exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/bin/sh -c 'umount -l /mnt; exec /lib/systemd/systemd'
}

inside() { nsenter -t "$init" -m -p -n -u -i -C -w -- "$@"; }

# What was started ends, and what was not finished is stopped.
halt()
{
	local pid
	# Its emulator has a process group of its own.
	# shellcheck disable=SC2046 # a list
	[ -z "$client" ] || kill $(ps -o pid= -s "$client") 2>/dev/null
	for pid in $init $link; do kill -KILL "$pid" 2>/dev/null; done
	wait 2>/dev/null
	rm -rf --one-file-system "$root"
}

# It is an error of systemctl when a unit of the machine's failed, as some do in
# a container.
booted_or_ends()
{
	local state
	kill -0 "$shell" 2>/dev/null || return 0
	init=$(pgrep -P "$shell") || return
	state=$(timeout 60 nsenter -t "$init" -m -p \
		systemctl is-system-running --wait 2>/dev/null)
	case $state in running | degraded) return 0 ;; esac
	return 1
}

start_machine()
{
	local shell
	export root
	export -f boot
	"${network[@]}" setsid unshare -m -p -u -i -C -f --kill-child \
		bash -c boot > "$work/boot.log" 2>&1 </dev/null &
	shell=$!
	soon booted_or_ends || return
	kill -0 "$shell" 2>/dev/null
}

# ---- the client machine

# Boots while the packages are built.  Its commands go in by descriptor 7.
boot_client()
{
	local vm=("$top/tests/lab/vm" -T clients -i -m 768 -t 3600)
	siw=$("$top/tests/lab/build-siw") || return
	rm -f "$work/commands" && mkfifo "$work/commands" || return
	exec 7<> "$work/commands"
	setsid "${network[@]}" "${vm[@]}" -x "$siw" "$top/tests/lab/client" \
		< "$work/commands" > "$work/client.log" 2>&1 7>&- &
	client=$!
}

statuses() { grep -ac '^status: ' "$work/client.log"; }

done_or_ends()
{
	[ "$(statuses)" -gt $asked ] || ! kill -0 "$client" 2>/dev/null
}

# Waits until the client has done all that it was asked, and prints what it
# said of the last.  Its status is that command's.
client_done()
{
	until soon done_or_ends; do :; done
	[ "$(statuses)" -gt $asked ] ||
		{ tail -3 "$work/client.log"; return 125; }
	tac "$work/client.log" | awk '/^status: /&& n++ { exit } 1' | tac
	return "$(sed -n 's/^status: //p' "$work/client.log" | tail -1)"
}

client_asked() { asked=$((asked + 1)); printf '%q\n' "$*" >&7; }
on_client() { client_asked "$*"; client_done; }

# ---- what an administrator does

# as_root COMMANDS: by a shell of root's, who needs no sudo.
as_root()
{
	DEBIAN_FRONTEND=noninteractive \
		inside sh -ec "cd /packages/here; sudo() { \"\$@\"; }; $*"
}

serves() { inside systemctl is-active gannetd; }
restarts() { inside systemctl show -P ActiveEnterTimestampMonotonic gannetd; }

make_data()
{
	as_root 'mkdir -p /srv/data; chmod 1777 /srv/data
		echo hello > /srv/data/hello; echo on > /srv/data/go'
}

is_read()
{
	[ "$(inside gannet-nfs cat tcp://192.0.2.1/srv/data/hello)" = hello ]
}

# Its kernel's client, as root; then by another name, to make place.
is_mounted()
{
	on_client "$(readme mount)" &&
	on_client 'grep -x hello /mnt/hello; grep " /mnt .*vers=3.*proto=tcp" \
		/proc/mounts; mkdir -p /tcp; mount --move /mnt /tcp'
}

# Its iWARP device takes no port below 1024, says README.
is_mounted_by_rdma()
{
	readme export | sed 's/rw/rw,insecure/; s/tee -a/tee/' \
		> "$work/insecure" && as_root "$(cat "$work/insecure")" &&
	on_client "$(readme mount-rdma)" &&
	on_client 'grep -x hello /mnt/hello; grep " /mnt .*proto=rdma" \
		/proc/mounts'
}

# Lines go into a file of each mount, synced one by one, until the server is
# another.
# shellcheck disable=SC2016 # the client's shell expands it
writing='for d in $mounts; do (
		i=0 go=on; while [ $go = on ] && [ $i -lt 2000 ]; do
			i=$((i + 1)); printf "%0999d\n" $i; sync /$d/lines.$d
			read -r go < /$d/go
		done > /$d/lines.$d; echo $i > /$d/count.$d) &
	done; wait'

wrote_all()
{
	local mount count
	for mount; do
		count=$(inside cat "/srv/data/count.$mount") &&
		inside sh -c "seq -f %0999.0f $count |
			cmp - /srv/data/lines.$mount" || return
		echo "$mount: $count lines"
	done
}

all_write()
{
	local mount file
	for mount in '' $mounts; do
		file=/srv/data/${mount:+lines.}${mount:-written}
		soon inside test -s "$file" ||
			{ echo "$file is not written"; return 1; }
	done
}

# Numbered lines of 100 kB, while the server is replaced; each is to be there
# once.  The writer ends by itself, should nobody tell it to.
upgrade_while_clients_write()
{
	local before writer status=0
	before=$(restarts)
	[ -z "$client" ] || client_asked "mounts='$mounts'; $writing"
	inside sh -c 'i=0; while [ ! -e /run/upgraded ] && [ $i -lt 3000 ]; do
			i=$((i + 1)); printf "%099999d\n" $i
			sleep 0.02	# as what takes a while to make
		done |
		tee /run/sent | gannet-nfs put - \
			tcp://192.0.2.1/srv/data/written' </dev/null &
	writer=$!
	all_write || status=1
	as_root 'apt-get -qq install /newer/*.deb' || status=1
	inside sh -c 'touch /run/upgraded; echo off > /srv/data/go'
	wait $writer || status=1
	if [ -n "$client" ]; then
		# shellcheck disable=SC2086 # a list
		client_done && wrote_all $mounts || status=1
	fi
	[ "$(restarts)" != "$before" ] || { echo "not restarted"; status=1; }
	inside cmp /run/sent /srv/data/written && return $status
}

# The administrator's change of a conffile is kept by an upgrade.
settings_stay() { inside grep -q '^/srv/data' /etc/gannet/exports; }

names_mistake()
{
	inside journalctl -u gannetd | grep "option 'nonsense' is not known"
}

# systemctl says so, and the journal, a moment later, what is wrong; all goes on
# as before.
reload_tells_mistakes()
{
	local status=0
	as_root 'echo "/srv/data *(nonsense)" > /etc/gannet/exports.d/x.exports'
	! inside systemctl reload gannetd || { echo "no failure"; status=1; }
	soon names_mistake || status=1
	as_root 'rm /etc/gannet/exports.d/x.exports'
	serves && is_read && inside systemctl reload gannetd && return $status
}

# The examples' settings are the defaults, which the server understands.
settings_are_understood()
{
	local wanted
	wanted=$(inside gannetd --print-config | grep -c '= ' ) &&
	inside sh -c 'sed "s/^#\([a-z-]* =\)/\1/" /etc/gannet/gannet.conf |
		grep -v "= *\$\|^bind =" > /tmp/gannet.conf' &&
	inside gannetd --config /tmp/gannet.conf --print-config |
		grep -q '^port = 2049' && [ "$wanted" -gt 20 ]
}

# A key of no KDC's is enough for a server to start with.
make_keytab()
{
	printf 'addent -password -p %s -k 1 -e %s\npassword\nwkt %s\n' \
		nfs/server.test@TEST aes256-cts "$root/etc/krb5.keytab" |
		ktutil &&
	as_root "printf '[libdefaults]\ndefault_realm = TEST\n' \
		> /etc/krb5.conf
		mkdir -p /srv/safe
		echo '/srv/safe *(sec=krb5)' > /etc/gannet/exports.d/k.exports"
}

# said_by TEXT: how many lines of the present server's have it.  The journal can
# have them a moment after systemctl is done.
said_by()
{
	local pid
	pid=$(inside systemctl show -P MainPID gannetd)
	inside journalctl -q "_PID=$pid" | grep -c "$1"
}

krb5_is_loaded()
{
	make_keytab &&
	as_root 'apt-get -qq install ../gannet-krb5_*.deb
		systemctl restart gannetd' &&
	soon said_by 'Kerberos: serving with the keys in'
}

# A server without it goes on with its other exports, and says so in one line.
krb5_is_missed()
{
	as_root 'apt-get -qq purge gannet-krb5; systemctl restart gannetd' &&
	is_read && soon said_by 'needs gannet-krb5' &&
	[ "$(said_by 'needs gannet-krb5')" = 1 ] &&
	as_root 'rm /etc/gannet/exports.d/k.exports
		systemctl reload gannetd'
}

# Of the group alone, beside root.
control_is_the_groups()
{
	inside gannetctl status &&
	[ "$(inside stat -c '%a %G' /run/gannet/control)" = '660 gannet' ]
}

nothing_is_left()
{
	local left
	left=$(inside sh -c 'ls -d /etc/gannet /var/lib/gannet /run/gannet \
		/usr/sbin/gannet* /usr/bin/gannet* \
		/etc/systemd/system/*/gannetd.service 2>/dev/null')
	echo "$left"
	[ -z "$left" ] && inside test -e /srv/data/hello
}

# ---- all of it

make_machine &
machine=$!
trap halt EXIT
if [ "$(id -u)" = 0 ]; then
	make_network && boot_client > "$work/client.log" 2>&1 ||
		without="no client machine: $(tail -1 "$work/client.log")"
fi
# shellcheck source=/dev/null
if [ "$release" = "$(. /etc/os-release; echo "$VERSION_CODENAME")" ]; then
	with_fio > "$work/check.log" 2>&1 ||
		echo "# no package gannet-fio: $(tail -1 "$work/check.log")"
	check "the packages build without Check and libnfs" build_packages ||
		exit 1
	check "lintian has nothing to say" lintian_says_nothing
	[ -z "${FIO_SOURCE-}" ] ||
		check "fio loads the engine of gannet-fio" fio_loads_it
else
	check "the packages build on Debian $release" build_there || exit 1
	sed -n 's/^libnfs [0-9]/# beside &/p' "$work/check.log"
fi
check "a package of a higher version can be made" make_newer || exit 1
[ "$(id -u)" = 0 ] || skip "not root: the packages are not installed"
wait $machine || skip "no bare Debian $release: $(tail -1 "$work/machine.log")"
fetch_dependencies > "$work/fetch.log" 2>&1 ||
	skip "what the packages depend on can't be had: see $work/fetch.log"
start_machine || skip "no systemd in name spaces: $(tail -1 "$work/boot.log")"
[ -n "$without" ] || client_done > "$work/check.log" ||
	without="no client machine: $(tail -1 "$work/client.log")"
[ -z "$without" ] || client=''
make_data

began=$SECONDS
check "the server's packages are installed, by README" \
	as_root "$(readme install)"
check "the server runs, with nothing to offer" serves
check "a directory is exported, by README" as_root "$(readme export)"
check "and read" is_read
echo "# from apt to the first read: $((SECONDS - began)) s"
mounts=''
if [ -n "$client" ]; then
	check "a stock kernel mounts it, by README" is_mounted && mounts=tcp
	took=$((SECONDS - began))
	echo "# from apt to a mounted export: $took s"
	check "which takes less than a minute" test $took -lt 60
	check "it mounts it over RDMA, by README" is_mounted_by_rdma &&
		mounts+=' mnt'
fi
check "gannetctl asks it, for root and the group" control_is_the_groups
check "a reload with a mistake fails, and says it" reload_tells_mistakes
check "the settings that come with it are understood" settings_are_understood
if type -P ktutil > /dev/null; then
	check "with gannet-krb5 it has Kerberos" krb5_is_loaded
	check "without it, it says which package sec=krb5 needs" krb5_is_missed
else
	echo "# gannet-krb5 is not installed: there is no ktutil here"
fi
check "it is upgraded while clients write, which loses nothing" \
	upgrade_while_clients_write
check "the administrator's exports are kept" settings_stay
check "and are served" serves
if [ -n "$client" ]; then
	check "what was mounted is still read" \
		on_client 'for d in /tcp /mnt; do grep -x hello $d/hello
			umount $d; done'
fi
check "it is purged" as_root 'apt-get -qq purge gannet gannet-client'
check "nothing but the data is left of it" nothing_is_left
echo "packages: $passed passed, $failed failed"
[ $failed = 0 ] || exit 1
[ -z "$without" ] || skip "$without"
