#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# etc/gannet.spec, as far as it can be tried on a machine whose packages are not
# of that kind: it is parsed, its %install runs with this build, and each file
# is in exactly one package, as in debian/.  A source package is made.
set -u -o pipefail
src=$(readlink -f "${srcdir:-.}")
spec=$src/etc/gannet.spec
fail() { echo "not ok - $*"; exit 1; }

command -v rpmbuild rpmspec > /dev/null ||
	{ echo "skipped: rpmbuild missing"; exit 77; }
[ -e Makefile ] || fail "run it in the build directory"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# What configure was given here, in the names of the spec.
of() {
	local value
	value=$(sed -n "s/^$1 = //p" Makefile)
	while [[ $value =~ \$\{([A-Za-z_]+)\} ]]; do
		value=${value/"${BASH_REMATCH[0]}"/$(of "${BASH_REMATCH[1]}")}
	done
	echo "$value"
}
docdir=$(of docdir)
with=()
[ ! -e modules/ceph/ceph.so ] || with+=(--with ceph)
[ ! -e modules/krb5/krb5.so ] || with+=(--with krb5)
[ ! -e fio-gannet.so ] ||
	with+=(--with fio --define "fio_source $dir"
		--define "fio_version 3.36")
parse=(rpmspec -P "${with[@]}" --define "_prefix $(of prefix)"
	--define "_exec_prefix $(of exec_prefix)"
	--define "_bindir $(of bindir)" --define "_sbindir $(of sbindir)"
	--define "_libdir $(of libdir)" --define "_includedir $(of includedir)"
	--define "_datadir $(of datadir)" --define "_mandir $(of mandir)"
	--define "_docdir ${docdir%/gannet}"
	--define "_sysconfdir $(of sysconfdir)"
	--define "_sysusersdir /usr/sysusers"
	--define "_unitdir $(of systemdsystemunitdir)"
	--define "make_install make install DESTDIR=$dir/root"
	--define "buildroot $dir/root")
"${parse[@]}" "$spec" > "$dir/parsed" 2> "$dir/errors" ||
	{ cat "$dir/errors"; fail "rpmspec parses it"; }
grep -q '^make install' "$dir/parsed" || fail "its %install is there"

rpmspec -P --with fio --define "fio_source $dir" --define "fio_version 3.36" \
	"$spec" > "$dir/fio" 2>&1 || fail "rpmspec parses it with the engine"
grep -qx 'Requires: fio = 3.36' "$dir/fio" ||
	fail "its engine needs fio of one release"

version=$(sed -n 's/^AC_INIT(\[gannet\], \[\([0-9.]*\)\].*/\1/p' \
	"$src/configure.ac")
grep -qx "Version: *$version" "$dir/parsed" || fail "its version is $version"

# What configure.ac asks for, in the same versions.
other='^check|^libnfs'
[ -e modules/krb5/krb5.so ] || other+='|^krb5'
while read -r module least; do
	grep -qxF "BuildRequires: pkgconfig($module)${least:+ $least}" \
		"$dir/parsed" || fail "it needs $module $least"
done < <(grep -o 'PKG_CHECK_MODULES(\[[A-Z]*\], *\[[^]]*' "$src/configure.ac" |
	sed 's/.*\[//' | grep -vE "$other" |
	grep -oE '[a-z][a-z0-9-]*( >= [0-9.]+)?')

awk '/^%/ { on = $1 == "%install" } on && !/^%install/' "$dir/parsed" \
	> "$dir/install"
MAKEFLAGS='' bash -e "$dir/install" > "$dir/log" 2>&1 ||
	{ tail -20 "$dir/log"; fail "its %install runs"; }

[ ! -e "$src/debian" ] || diff "$src/debian/gannet.logrotate" \
	"$dir/root/$(of sysconfdir)/logrotate.d/gannet" ||
	fail "logs are rotated as Debian's package does"

python3 - "$dir/parsed" "$dir/root" "$src" <<-'END' || exit
	import fnmatch, glob, os, re, sys
	parsed, root, src = sys.argv[1:]
	wrong, packages, name = [], {}, None
	for line in open(parsed):
	    line = line.strip()
	    if line.startswith('%'):
	        word = line.split()[0]
	        if word == '%files':
	            name = line[len(word):].strip() or 'gannet'
	            packages[name] = []
	            continue
	        if word in ('%doc', '%license') and name:
	            for path in line.split()[1:]:
	                if not glob.glob(os.path.join(src, path)):
	                    wrong.append(f'{name}: no {path}')
	            continue
	        if not re.match(r'%(dir|config)', word):
	            name = None
	            continue
	        line = line.split()[-1]
	    if name and line:
	        packages[name].append(line)
	installed = [d[len(root):] + '/' + f for d, _, files in os.walk(root)
	             for f in files]
	for path in installed:
	    where = [p for p, entries in packages.items()
	             if any(fnmatch.fnmatch(path, e) for e in entries)]
	    if len(where) != 1:
	        wrong.append(f'{path} is in {where or "no package"}')
	for p, entries in packages.items():
	    for e in entries:
	        if not glob.glob(root + e):
	            wrong.append(f'{p}: {e} is nothing')
	print('\n'.join(wrong) or f'{len(installed)} files in '
	      f'{len(packages)} packages')
	sys.exit(bool(wrong))
END

mkdir "$dir/rpm" "$dir/gannet-$version"
cp "$spec" "$dir/gannet-$version"
tar -C "$dir" -cJf "$dir/rpm/gannet-$version.tar.xz" "gannet-$version"
rpmbuild -bs --nodeps --define "_topdir $dir/rpm" \
	--define "_sourcedir $dir/rpm" "$spec" > "$dir/log" 2>&1 ||
	{ tail "$dir/log"; fail "rpmbuild makes a source package"; }
