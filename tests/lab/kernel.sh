# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced.  Debian's stock kernel, its headers and its source, unpacked into a
# cache directory: nothing is installed, no privilege is needed.
#
# Sets CACHE and KV (the kernel's version) and defines the functions below.

if [ -n "${LAB_CACHE:-}" ]; then
	CACHE=$LAB_CACHE
elif [ -n "${XDG_CACHE_HOME:-}" ]; then
	CACHE=$XDG_CACHE_HOME/gannet-lab
elif [ "$(id -u)" = 0 ]; then
	CACHE=/var/cache/gannet-lab
else
	CACHE=$HOME/.cache/gannet-lab
fi

lab_die() { echo "lab: $*" >&2; exit 125; }

# lab_unpack DIR PACKAGE...: downloads Debian packages and unpacks them in DIR.
lab_unpack()
{
	local dir=$1 tmp; shift
	tmp=$(mktemp -d "$CACHE/download.XXXXXX")
	# apt's own sandbox user can't write here, and says so at length.
	(cd "$tmp" && apt-get -q -o APT::Sandbox::User=root download "$@" \
		>apt.log 2>&1) || {
		cat "$tmp/apt.log" >&2; rm -rf "$tmp"
		lab_die "can't download $* (is 'apt-get update' recent?)"
	}
	local deb
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir" || lab_die "can't unpack $deb"
	done
	rm -rf "$tmp"
}

# The name behind one of Debian's meta packages.
lab_depends()
{
	apt-cache depends "$1" 2>/dev/null |
		sed -n "s/^ *Depends: \($2-.*\)/\1/p" | head -1
}

# The kernel to boot: the cached one, or the one Debian has now.
lab_kernel()
{
	local image kernel
	[ "$(dpkg --print-architecture)" = amd64 ] ||
		lab_die "only written for amd64"
	mkdir -p "$CACHE" ||
		lab_die "can't make $CACHE (LAB_CACHE names another)"
	for kernel in "$CACHE"/kernel/boot/vmlinuz-*; do
		KV=${kernel##*/vmlinuz-}
		[ -e "$CACHE/kernel/.complete" ] && return
	done
	image=$(lab_depends linux-image-amd64 linux-image)
	[ -n "$image" ] || lab_die "apt knows no linux-image-amd64"
	KV=${image#linux-image-}
	echo "lab: fetching Debian's kernel $KV into $CACHE" >&2
	rm -rf "$CACHE/kernel"; mkdir "$CACHE/kernel"
	lab_unpack "$CACHE/kernel" "$image"
	depmod -b "$CACHE/kernel" "$KV" || lab_die "depmod failed"
	touch "$CACHE/kernel/.complete"
}

# lab_modules NAME...: their files in the order to load them.
lab_modules()
{
	local m
	for m; do
		modprobe -d "$CACHE/kernel" -S "$KV" --show-depends "$m" ||
			lab_die "kernel $KV has no module $m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# The directory of rpc.nfsd, rpc.mountd and exportfs.  Where their package is
# not installed it stays so: that would start them.
lab_knfsd()
{
	local dir=$CACHE/nfs-kernel-server
	if [ -x /usr/sbin/rpc.nfsd ]; then
		echo /usr/sbin
		return
	fi
	if [ ! -e "$dir/.complete" ]; then
		rm -rf "$dir"; mkdir "$dir"
		lab_unpack "$dir" nfs-kernel-server
		touch "$dir/.complete"
	fi
	echo "$dir/usr/sbin"
}
