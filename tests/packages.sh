#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The packages of debian/, as an administrator meets them.
#
#   tests/packages.sh WORK [RELEASE]
#
# builds them in the directory WORK, asks lintian, and makes a bare Debian of
# the release (bookworm) whose systemd runs in name spaces of its own, with
# loopback alone.  There they are installed, a directory is exported and read,
# the server is upgraded while a client writes, all is purged.  Prints lines
# 'ok - WHAT', and as the last one how many passed; ends with 77 when it has to
# leave something out, which the line before says.
set -u -o pipefail
top=$(dirname "$(dirname "$(readlink -f "$0")")")
mkdir -p "$1" || exit 1
work=$(readlink -f "$1")
release=${2-bookworm}
root=$work/root-$release
passed=0 failed=0 init=''

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

# As where Check and libnfs are absent; the compiler is asked for little.
build_packages()
{
	rm -rf "$work/gannet" "$work/pkgconfig" "$work"/*.deb
	mkdir -p "$work/gannet" "$work/pkgconfig" || return
	git -C "$top" ls-files -z | tar -C "$top" --null -T - -cf - |
		tar -C "$work/gannet" -xf - || return
	ln -s /usr/lib/*/pkgconfig/*.pc /usr/share/pkgconfig/*.pc \
		"$work/pkgconfig"
	rm -f "$work"/pkgconfig/{check,libnfs}.pc
	cd "$work/gannet" && PKG_CONFIG_LIBDIR=$work/pkgconfig \
		DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" \
		DEB_CFLAGS_APPEND='-O1 -g0' \
		hiding_headers dpkg-buildpackage -b -us -uc -Pnocheck
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
	mkdir "$root/packages" &&
	cp "$work"/gannet_*.deb "$work"/gannet-client_*.deb \
		"$root/packages/" &&
	cp -r "$work/newer" "$root/" &&
	chroot "$root" sh -c 'apt-get -qq -y --no-install-recommends \
		--download-only install /packages/*.deb'
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
	ip link set lo up && pivot_root . mnt &&
	exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/bin/sh -c 'umount -l /mnt; exec /lib/systemd/systemd'
}

inside() { nsenter -t "$init" -m -p -n -u -i -C -w -- "$@"; }

halt()
{
	[ -z "$init" ] || kill -KILL "$init"
	wait
	rm -rf --one-file-system "$root"
}

start_machine()
{
	local shell tries
	export root
	export -f boot
	setsid unshare -m -p -n -u -i -C -f --kill-child \
		bash -c boot > "$work/boot.log" 2>&1 </dev/null &
	shell=$!
	trap halt EXIT
	for tries in {1..60}; do
		kill -0 "$shell" 2>/dev/null || return
		init=$(pgrep -P "$shell") &&
			timeout 60 nsenter -t "$init" -m -p \
				systemctl is-system-running --wait \
				2>/dev/null | grep -qE 'running|degraded' &&
			return
		sleep 1
	done
	echo "no systemd after $tries seconds"
	return 1
}

# ---- what an administrator does

# apt WHAT...
apt() { inside sh -c "apt-get -qq -y --no-install-recommends $*"; }
serves() { inside systemctl is-active gannetd; }
restarts() { inside systemctl show -P ActiveEnterTimestampMonotonic gannetd; }

export_and_read()
{
	inside sh -c 'mkdir -p /srv/data && chmod 1777 /srv/data &&
		echo hello > /srv/data/hello &&
		echo "/srv/data 127.0.0.1(rw)" >> /etc/gannet/exports &&
		systemctl reload gannetd' &&
	[ "$(inside gannet-nfs cat tcp://127.0.0.1/srv/data/hello)" = hello ]
}

# Numbered lines of 100 kB, while the server is replaced; each is to be there
# once.  The writer ends by itself, should nobody tell it to.
upgrade_while_a_client_writes()
{
	local before writer tries=300 status=0
	before=$(restarts)
	inside sh -c 'i=0; while [ ! -e /run/upgraded ] && [ $i -lt 3000 ]; do
			i=$((i + 1)); printf "%099999d\n" $i; sleep 0.02; done |
		tee /run/sent | gannet-nfs put - \
			tcp://127.0.0.1/srv/data/written' </dev/null &
	writer=$!
	until inside test -s /srv/data/written; do
		[ $((tries--)) -gt 0 ] && kill -0 $writer || return
		sleep 0.1
	done
	apt install '/newer/*.deb' || status=1
	inside touch /run/upgraded
	wait $writer || status=1
	[ "$(restarts)" != "$before" ] || { echo "not restarted"; status=1; }
	inside cmp /run/sent /srv/data/written && return $status
}

# The administrator's change of a conffile is kept by an upgrade.
settings_stay() { inside grep -q '^/srv/data' /etc/gannet/exports; }

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
trap 'wait' EXIT
check "the packages build without Check and libnfs" build_packages || exit 1
check "lintian has nothing to say" lintian_says_nothing
check "a package of a higher version can be made" make_newer || exit 1
[ "$(id -u)" = 0 ] || skip "not root: the packages are not installed"
wait $machine || skip "no bare Debian $release: $(tail -1 "$work/machine.log")"
fetch_dependencies > "$work/fetch.log" 2>&1 ||
	skip "what the packages depend on can't be had: see $work/fetch.log"
start_machine || skip "no systemd in name spaces: $(tail -1 "$work/boot.log")"

began=$SECONDS
check "the server's packages are installed" apt install '/packages/*.deb'
check "the server runs, with nothing to offer" serves
check "a directory is exported, and read" export_and_read
took=$((SECONDS - began))
echo "# from apt to the first read: $took s"
check "which takes less than a minute" test $took -lt 60
check "gannetctl asks it, for root and the group" control_is_the_groups
check "the settings that come with it are understood" settings_are_understood
check "it is upgraded while a client writes, which loses nothing" \
	upgrade_while_a_client_writes
check "the administrator's exports are kept" settings_stay
check "and are served" serves
check "it is purged" apt purge gannet gannet-client
check "nothing but the data is left of it" nothing_is_left
echo "packages: $passed passed, $failed failed"
[ $failed = 0 ]
