#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The image of etc/Containerfile, as an administrator meets it.
#
#   tests/container.sh WORK
#
# builds it with podman in the directory WORK, on a bare Debian 12 in the place
# of the base image, which is not fetched; runs it as a user without privileges,
# in a network of its own; writes and reads through it; ends it.  Where podman
# has Quadlet, etc/gannet.container is read by it.  Ends with 77 when something
# was left out, which the last line says.
set -u -o pipefail
top=$(dirname "$(dirname "$(readlink -f "$0")")")
# shellcheck source=tests/soon.sh
. "$top/tests/soon.sh"
mkdir -p "$1" || exit 1
work=$(readlink -f "$1")
base=docker.io/library/debian:bookworm-slim
generator=/usr/lib/systemd/system-generators/podman-system-generator
failed=0

skip() { echo "skip: $*"; exit 77; }
# check WHAT COMMAND...
check()
{
	local what=$1; shift
	if "$@" > "$work/check.log" 2>&1 </dev/null; then
		echo "ok - $what"
	else
		echo "not ok - $what"
		tail -30 "$work/check.log" | sed 's/^/# /'
		failed=1
		false
	fi
}

command -v podman >/dev/null || skip "podman missing"
command -v mmdebstrap >/dev/null || skip "mmdebstrap missing"
[ "$(id -u)" = 0 ] || skip "not root: no network and no mounts of its own"

# With mounts of its own: crun takes no machine that has both hierarchies of
# cgroups.
if [ -z "${CONTAINER_SPACE:-}" ]; then
	export CONTAINER_SPACE=1
	exec unshare -m "$0" "$@"
fi
if ! mountpoint -q /sys/fs/cgroup ||
   [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
	umount -lR /sys/fs/cgroup 2>/dev/null
	mount -t cgroup2 none /sys/fs/cgroup || skip "no cgroup2 here"
fi

pod()
{
	podman --root "$work/root" --runroot "$work/run" \
		--storage-driver vfs --cgroup-manager cgroupfs "$@"
}

# Apt believes as old lists there as here.
make_base()
{
	local line options=()
	pod image exists "$base" && return
	while read -r line; do options+=("--aptopt=$line"); done < <(
		apt-config dump Acquire::Check-Valid-Until
		apt-config dump Acquire::Check-Date)
	mmdebstrap -q --variant=minbase "${options[@]}" bookworm - |
		pod import - "$base"
}

build_image()
{
	rm -rf "$work/source" && mkdir "$work/source" &&
	git -C "$top" ls-files -z | tar -C "$top" --null -T - -cf - |
		tar -C "$work/source" -xf - &&
	pod build --isolation=chroot -t gannet -f etc/Containerfile \
		"$work/source"
}

# In bytes: it has the programs and their libraries, and no system.
is_small() { [ "$(pod image inspect -f '{{.Size}}' gannet)" -lt 60000000 ]; }

is_up() { pod logs gannet 2>&1 | grep -qx ready; }

# Without a capability, and as nobody that the image knows.  Limits are those
# that this process may give.
start()
{
	mkdir -p "$work/data" && chmod 1777 "$work/data" &&
	echo "/srv/data 127.0.0.1(rw,insecure,all_squash,anonuid=1000)" \
		> "$work/exports" &&
	pod run -d --name gannet --network=none --cgroups=disabled \
		--user 1000:1000 --cap-drop=all \
		--ulimit nofile=4096:4096 --ulimit nproc=4096:4096 \
		--tmpfs /var/lib/gannet:rw,mode=1777 \
		--tmpfs /run/gannet:rw,mode=1777 \
		-v "$work/exports:/etc/gannet/exports:ro" \
		-v "$work/data:/srv/data" gannet \
		--state-dir=/var/lib/gannet || return
	soon is_up && return
	pod logs gannet
	return 1
}

inside() { pod exec gannet "$@"; }

writes_and_reads()
{
	local url
	head -c 3000001 /dev/urandom > "$work/random"
	cp "$work/random" "$work/data/there"
	for url in tcp://127.0.0.1 'rdma+iwarp://127.0.0.1:20049'; do
		inside gannet-nfs cp "$url/srv/data/there?mountport=2049" \
			/run/gannet/here || return
		inside gannet-nfs cp /run/gannet/here \
			"$url/srv/data/back?mountport=2049" || return
		cmp "$work/random" "$work/data/back" || return
		[ "$(stat -c %u "$work/data/back")" = 1000 ] || return
		rm "$work/data/back"
	done
}

# The health check of gannet.container.
is_healthy() { inside gannetctl --socket=/run/gannet/control status; }

ends()
{
	pod stop -t 60 gannet &&
	[ "$(pod inspect -f '{{.State.ExitCode}}' gannet)" = 0 ] ||
		{ pod logs gannet | tail; return 1; }
}

quadlet()
{
	mkdir -p "$work/units" && cp "$top/etc/gannet.container" \
		"$work/units/" &&
	QUADLET_UNIT_DIRS=$work/units "$generator" --user --dryrun \
		> "$work/quadlet" 2>&1
	cat "$work/quadlet"
	grep -q '^ExecStart=.*podman run .*localhost/gannet' "$work/quadlet"
}

trap 'pod rm -f gannet >/dev/null 2>&1' EXIT
make_base > "$work/base.log" 2>&1 ||
	skip "no base image: $(tail -1 "$work/base.log")"
check "the image builds" build_image || exit 1
check "it has less than 60 MB" is_small
check "it runs as a user without privileges" start &&
	check "what is written comes back, by both transports" \
		writes_and_reads &&
	check "gannetctl asks it" is_healthy &&
	check "it ends well" ends
if [ -x "$generator" ]; then
	check "Quadlet takes gannet.container" quadlet
	exit $failed
fi
[ $failed = 0 ] || exit 1
skip "this podman has no Quadlet"
