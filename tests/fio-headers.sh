#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The headers of the fio that is installed here, for ./configure --with-fio=DIR.
#
#   tests/fio-headers.sh DIR
#
# fetches the source of Debian's package, whose headers no package has, and
# configures it in DIR.  Ends with 77, and a line that says why, when it can't.
set -u -o pipefail
[ $# = 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
skip() { echo "skipped: $*"; exit 77; }
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
	skip "no Debian: --with-fio= takes any configured source of fio"
version=$(dpkg-query -W -f='${source:Version}' fio 2>/dev/null) &&
	[ -n "$version" ] || skip "fio missing (package fio)"
mkdir -p "$1" || exit 1
dir=$(readlink -f "$1")
[ "$(cat "$dir/.version" 2>/dev/null)" != "$version" ] || exit 0

# Lists of sources only, beside those of the system, which may have none.
fetched=$dir/.fetched
rm -rf "$fetched" "$dir/.version"
mkdir -p "$fetched"/{lists,cache}/partial || exit 1
mirror=$(apt-get download --print-uris fio 2>/dev/null |
	sed -n "s,^'\(.*\)/pool/.*,\1,p")
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "deb-src ${mirror:-http://deb.debian.org/debian} $release main" \
	> "$fetched/sources.list"
own_apt()
{
	apt-get -qq -o Dir::Etc::SourceList="$fetched/sources.list" \
		-o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$fetched/lists" \
		-o Dir::Cache="$fetched/cache" -o APT::Sandbox::User= "$@"
}
cd "$fetched" && own_apt update && own_apt --download-only source \
	"fio=$version" || skip "the source of fio $version can't be fetched"
tar -xf fio_*.orig.tar.[gx]z --strip-components=1 -C "$dir" &&
	(cd "$dir" && ./configure) > "$fetched/log" 2>&1 &&
	[ -e "$dir/config-host.h" ] || {
	tail -5 "$fetched/log"
	skip "the source of fio can't be configured"
}
echo "$version" > "$dir/.version"
