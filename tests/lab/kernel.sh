# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced.  Debian's stock kernel, its headers and its source, unpacked into a
# cache directory: nothing is installed, no privilege is needed.
#
# Sets CACHE and KV (the kernel's version), defines the functions below.  With
# LAB_BACKPORTS set, the kernel is the newer one of Debian's backports.

if [ -n "${LAB_CACHE:-}" ]; then
	CACHE=$LAB_CACHE
elif [ -n "${XDG_CACHE_HOME:-}" ]; then
	CACHE=$XDG_CACHE_HOME/gannet-lab
elif [ "$(id -u)" = 0 ]; then
	CACHE=/var/cache/gannet-lab
else
	CACHE=$HOME/.cache/gannet-lab
fi
[ -z "${LAB_BACKPORTS:-}" ] || CACHE=$CACHE/backports

lab_die() { echo "lab: $*" >&2; exit 125; }

# Options for apt: none, or those of an apt of our own that knows another suite
# of Debian's and nothing else, since this machine's may not have it.
apt_options=()

# private_apt DIR SUITE: sets them; DIR has the lists.
private_apt()
{
	local apt=$1 suite=$2 codename mirror
	apt_options=(-o Dir::Etc::SourceList="$apt/sources.list"
		-o Dir::Etc::SourceParts=/dev/null
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache")
	[ ! -e "$apt/.complete" ] || return 0
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release; echo "$VERSION_CODENAME")
	# shellcheck disable=SC2016 # apt's own variable
	mirror=$(apt-get indextargets --format '$(REPO_URI)' \
		"Codename: $codename" | head -1)
	[ -n "$mirror" ] || lab_die "apt knows no mirror of $codename"
	rm -rf "$apt"; mkdir -p "$apt/lists/partial" "$apt/cache"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"$mirror $suite main" > "$apt/sources.list"
	apt-get -q "${apt_options[@]}" -o APT::Sandbox::User=root update \
		> "$apt/log" 2>&1 ||
		{ cat "$apt/log" >&2; lab_die "no $suite"; }
	touch "$apt/.complete"
}

lab_apt()
{
	[ -n "${LAB_BACKPORTS:-}" ] || return 0
	# shellcheck source=/dev/null
	private_apt "$CACHE/apt" \
		"$(. /etc/os-release; echo "$VERSION_CODENAME")-backports"
}

# lab_unpack DIR PACKAGE...: downloads Debian packages and unpacks them in DIR.
lab_unpack()
{
	local dir=$1 tmp; shift
	tmp=$(mktemp -d "$CACHE/download.XXXXXX")
	# apt's own sandbox user can't write here, and says so at length.
	(cd "$tmp" && apt-get -q "${apt_options[@]}" \
		-o APT::Sandbox::User=root download "$@" >apt.log 2>&1) || {
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
	apt-cache "${apt_options[@]}" depends "$1" 2>/dev/null |
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
	lab_apt
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
	# The initial RAM disk's insmod takes no compressed ones.
	find "$CACHE/kernel/lib/modules" -name '*.ko.xz' -print0 |
		xargs -0 -r -n 200 -P "$(nproc)" unxz
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

# lab_has NAME: there is such a module, or it is built in.
lab_has() { modprobe -d "$CACHE/kernel" -S "$KV" -n "$1" 2>/dev/null; }

# lab_unpacked PACKAGE PROGRAM [NEEDED]: prints the directory below which
# PROGRAM is, a path, and what belongs to it; NEEDED prints which other packages
# that is.  Where the package is not installed it stays so: that would start the
# daemons in it.
lab_unpacked()
{
	# They go with what is installed here, not with the kernel.
	local dir=$CACHE/$1 apt_options=()
	if [ -x "$2" ]; then
		return
	fi
	if [ ! -e "$dir/.complete" ]; then
		rm -rf "$dir"; mkdir "$dir"
		# shellcheck disable=SC2046 # several names
		lab_unpack "$dir" "$1" $(${3:+"$3" "$1"})
		touch "$dir/.complete"
	fi
	echo "$dir"
}

# The directory of rpc.nfsd, rpc.mountd and exportfs.
lab_knfsd()
{
	echo "$(lab_unpacked nfs-kernel-server /usr/sbin/rpc.nfsd)/usr/sbin"
}

# The directories of quota, and of setquota and rpc.rquotad.
lab_quota()
{
	local dir
	dir=$(lab_unpacked quota /usr/sbin/rpc.rquotad)
	echo "$dir/usr/bin:$dir/usr/sbin"
}

# missing_for PACKAGE: what would be installed beside it.
missing_for()
{
	apt-get -s install --no-install-recommends "$1" 2>/dev/null |
		sed -n 's/^Inst \([^ ]*\).*/\1/p' | grep -vxF "$1" || true
}

# The directory below which keepalived is, with libraries of its own.
lab_keepalived()
{
	lab_unpacked keepalived /usr/sbin/keepalived missing_for
}

# The directory below which tlshd is, of Debian 13, with libraries and a loader
# of its own: Debian 12 has none.
lab_tlshd()
{
	local dir=$CACHE/tlshd apt_options=() needed
	[ ! -x /usr/sbin/tlshd ] || return 0
	if [ ! -e "$dir/.complete" ]; then
		private_apt "$CACHE/apt-trixie" trixie
		needed=$(apt-cache "${apt_options[@]}" depends --recurse \
			--no-recommends --no-suggests --no-conflicts \
			--no-breaks --no-replaces --no-enhances ktls-utils |
			grep '^[a-z]') || lab_die "trixie has no ktls-utils"
		rm -rf "$dir"; mkdir "$dir"
		# shellcheck disable=SC2086 # several names
		lab_unpack "$dir" $needed
		touch "$dir/.complete"
	fi
	echo "$dir"
}
