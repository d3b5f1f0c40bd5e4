#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Searches the models here in all orders of their events, by Spin.  A model
# contains the server's own C code, so the two can't drift apart.  Each is also
# searched with that code made wrong on purpose: then it must find a fault.
for tool in spin gcc; do
	command -v $tool >/dev/null || { echo "SKIP: no $tool"; exit 77; }
done
srcdir=$(readlink -f "${srcdir:-.}")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# search MODEL [FLAG]...: prints how many states it found, and whether one of
# them is wrong.  Code in $work takes the place of that in the tree.
search()
{
	local model=$1; shift
	cp "$srcdir/tests/models/$model.pml" "$work/"
	cd "$work" || return
	{
		spin "$@" -a "$model.pml" &&
		gcc -O2 -D_GNU_SOURCE -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 \
			-I. -I"$srcdir" \
			-I"$srcdir/include" -o pan pan.c &&
		./pan -E -m400000 -w22
	} >log 2>&1
	# A search without room for all states says so.
	if ! grep -q 'errors: ' log ||
	   grep -qE 'depth too small|out of memory|MEMLIM' log; then
		cat log
		return
	fi
	sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p' log
	! grep -q 'errors: 0' log && echo wrong
}

# holds MODEL [FLAG]...
holds()
{
	local found
	found=$(search "$@")
	case $found in
	*wrong*) echo "not ok - $* has a fault:"
		 status=1; trail "$1" ;;
	*states) echo "ok - $*: $found" ;;
	*) echo "not ok - $*: $found"; status=1 ;;
	esac
}

# The last steps of a fault.
trail()
{
	(cd "$work" && ./pan -r | grep -E '^ *[0-9]+:' |
		grep -vE '\[(else|\(1\)|\(*i|i = )' | tail -60)
}

# finds MODEL [FLAG]... : a fault, in the code or with the rules as they are.
finds()
{
	local found
	found=$(search "$@")
	case $found in
	*wrong*) echo "ok - $*${broken:+, $broken}: a fault is found" ;;
	*) echo "not ok - $*${broken:+, $broken}: no fault is found ($found)"
	   status=1 ;;
	esac
}

# without FILE 's/CODE/WRONG/' MODEL [FLAG]...: the fault of that is found.
without()
{
	local file=$1 broken=$2; shift 2
	mkdir -p "$work/${file%/*}"
	sed "$broken" "$srcdir/$file" > "$work/$file"
	! cmp -s "$srcdir/$file" "$work/$file" || {
		echo "not ok - $file has no place for $broken"; status=1; }
	finds "$@"
	rm "$work/$file"
}

holds drc -DOPENED=3 -DOPS=1
holds drc -DOPENED=3 -DOPS=2
finds drc -DOPENED=2 -DOPS=1 -DLATE
one=(drc -DOPENED=2 -DOPS=1) two=(drc -DOPENED=2 -DOPS=2)
rule=rpc/drc_rule.c
without $rule 's/f->heard ? .*;/DRC_NEW_SIBLING;/' "${one[@]}"
without $rule 's/if (f->left_over)/if (0)/' drc -DOPENED=3 -DOPS=1
without $rule 's/return f->recent/return 0/' "${one[@]}"
without $rule 's/return acked ? DRC_NEW_TAKEN : /return /' "${two[@]}"
without $rule 's/return !acked && (.*)/return 0/' "${one[@]}"
without $rule 's/	if (!acked)/	if (0)/' "${one[@]}"
without $rule 's/		if (acked)/		if (0)/' "${two[@]}"

locks='-DLOCKS=1 -DSECONDS=0'
holds nlm $locks -DSHARED
holds nlm $locks -DPOLLS=1
holds nlm -DLOCKS=1 -DSECONDS=1 -DONE
finds nlm $locks -DOVERTAKE
without nlm/grant.c 's/ || cookie > w->id + w->first//' nlm $locks
without nlm/lock.c 's/nlm_waits_unlocked(nlm, f, o, at);//' nlm $locks
without nlm/ranges.c 's/nlm_freed(h->file, &freed);//' nlm $locks
without nlm/lock.c 's/!w \&\& nlm_hold_has_any(.*))/0)/' \
	nlm -DLOCKS=1 -DSECONDS=1 -DONE

holds restart -DSTARTS=1
holds restart -DSTARTS=3 -DPROCESSES=1
holds restart -DSTARTS=1 -DPROCESSES=1 -DLATE -DONCE
holds restart -DSTARTS=1 -DPROCESSES=1 -DWAITS
finds restart -DSTARTS=1 -DLATE
finds restart -DSTARTS=1 -DUNKNOWN
one=(restart -DSTARTS=1 -DPROCESSES=1) two=(restart -DSTARTS=2 -DPROCESSES=1)
host=nlm/host.c
without $host 's/newer(state, h->newest) ||/newer(state, h->state) ||/' \
	"${one[@]}"
without $host 's/!h->unsure \&\& !h->doubt/!h->doubt/' "${one[@]}"
without $host 's/ \&\& !h->doubt//' "${one[@]}"
without $host 's/h->state = 0;/;/' "${one[@]}"
without $host 's/ \&\& ns > h->doubt_ns//' "${two[@]}"
without $host 's/if (ns < h->heard_ns)/if (0)/' restart -DSTARTS=1
without nlm/lock.c 's/if (nlm_is_outlived(.*))/if (0)/' "${one[@]}"
without nlm/ranges.c 's/o.older, o.state }/o.older, 0 }/' "${one[@]}"
without nlm/table.h 's/ || from->older == state//' "${one[@]}"
one+=(-DWAITS)
without nlm/file.c 's/ \&\& l->back)/ \&\& 0)/' "${one[@]}"
without nlm/file.c 's/	drop_before(nlm, h, kept);//' "${one[@]}"
exit $status
