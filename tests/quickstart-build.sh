# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by ./quickstart: installs packages, and builds in build-quickstart/.
# shellcheck disable=SC2154 # top, work, jobs, serve_packages: quickstart's

# ---- packages

install_missing()
{
	local missing=() package root=()
	command -v dpkg-query apt-get >/dev/null || {
		say "no Debian: hoping for what these packages have: $*"
		return 0
	}
	for package; do
		dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null |
			grep -q ' installed$' || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] && say "installing ${missing[*]}" || return 0
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null ||
			die "not root and no sudo: install ${missing[*]}"
		root=(sudo)
	fi
	root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
	mkdir -p "$work/logs"
	{ "${root[@]}" update && "${root[@]}" -o Dpkg::Use-Pty=0 install -y \
		--no-install-recommends "${missing[@]}"; } \
		> "$work/logs/packages.log" 2>&1 </dev/null && {
		# What was built without them is to be configured again.
		rm -f "$work"/*/.configured
		return
	}
	tail -15 "$work/logs/packages.log" >&2
	die "can't install ${missing[*]}"
}

# ---- building

# Where to build from: this tree, or, where somebody has built inside it (it
# is theirs to clean), a copy.
source_tree()
{
	if [ ! -e "$top/config.status" ]; then
		echo "$top"
		return
	fi
	mkdir -p "$work/source"
	tar -C "$top" --exclude=./build\* --exclude=./.git --exclude=\*.[oa] \
		--exclude=./config.status --exclude=./config.h \
		--exclude=./Makefile --exclude=.deps -cf - . |
		tar -C "$work/source" -xf - && echo "$work/source"
}

# newer_than FILE: prints a source or makefile that is newer, if there is one.
newer_than()
{
	find "$source" -path "$source/build*" -prune -o -newer "$1" \
		\( -name '*.[ch]' -o -name '*.inc' -o -name Makefile.am -o \
		-name configure.ac \) -print -quit 2>/dev/null
}

# Where configure keeps what it found, which it refuses in an environment with
# another compiler or other flags.
cache_file()
{
	echo "$work/config.cache.$(env | grep -E \
		'^(CC|CPP|LDFLAGS|PKG_CONFIG\w*|\w*C(PP)?FLAGS|\w*LIBS)=' |
		sort | cksum | cut -d' ' -f1)"
}

# build NAME CONFIGURE-ARGUMENT... -- MAKE-ARGUMENT...: in build-quickstart/NAME
build()
{
	local name=$1 source arguments=() was; shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do arguments+=("$1"); shift; done
	[ $# = 0 ] || shift
	source=$(source_tree) || return
	was=$(cat "$work/$name/.configured" 2>/dev/null)
	case " ${arguments[*]} " in
	*' --disable-dependency-tracking '*)
		[ "$was" = "$source ${arguments[*]}" ] &&
			[ -z "$(newer_than "$work/$name/.configured")" ] ||
			rm -rf "${work:?}/$name" ;;
	esac
	mkdir -p "$work/$name" || return
	if [ ! -e "$source/configure" ] ||
	   [ "$source/configure.ac" -nt "$source/configure" ]; then
		(cd "$source" && ./autogen.sh) || return
	fi
	if [ ! -e "$work/$name/Makefile" ] ||
	   [ "$source/configure" -nt "$work/$name/.configured" ] ||
	   [ "$was" != "$source ${arguments[*]}" ]
	then
		# What was missing then can be here now.
		[ "$name" != main ] || rm -f "$work"/config.cache*
		(cd "$work/$name" && "$source/configure" -q \
			"${arguments[@]}") || return
		# Else make finds it older than its stamp, for ever.
		touch "$work/$name/config.h"
		echo "$source ${arguments[*]}" > "$work/$name/.configured"
	fi
	make -s -j"$jobs" -C "$work/$name" "$@"
}

# build_gannetd [PROGRAM]...: it, gannet-nfs, and what else is named.
build_gannetd()
{
	local log=$work/logs/build.log
	if [ ! -e "$work/main/gannetd" ]; then
		say "building (about a minute; log: $log)"
	elif ! make -s -q -C "$work/main" gannetd gannet-nfs "$@" \
			>/dev/null 2>&1
	then
		say "building what changed (log: $log)"
	fi
	build main -- gannetd gannet-nfs "$@" > "$log" 2>&1 && return
	tail -20 "$log" >&2
	die "it does not build; see $log"
}
