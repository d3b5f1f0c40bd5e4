# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests/quickstart-test.sh: the phases of the tests, each a function
# of its name, which calls pass(), fail() and skip().
# shellcheck disable=SC2154 # top, work, jobs: quickstart's; others: its test's

scripts()
{
	local list=("$top/quickstart" "$top/.ci/run" "$top"/tests/*.sh
		"$top/tests/foreign/run" "$top/tests/krb5/realm"
		"$top"/tests/{adversary,fabric,models,server}/*.sh
		"$top"/tests/bench/{run,callgrind,metrics,passes,ceph,credits}
		"$top"/etc/keepalived/gannet-notify "$top/etc/image-root"
		"$top"/tests/ceph/{cluster,run,*.sh}
		"$top"/tests/lab/{vm,run,client,guest,bench,build-siw}
		"$top"/tests/lab/{ceph,ceph_guest,move,move_guest,systemctl}
		"$top"/tests/lab/*.sh "$top"/tests/lab/suites/*.sh)
	if printf '%s\0' "${list[@]}" | logged xargs -0 -P "$jobs" -n 9 \
			shellcheck -S warning -x -P "$top"
	then
		pass 1
	else
		fail "shellcheck has nothing to say"
	fi
}

# fuzz_one PROGRAM SECONDS: from its corpus; its status is in fuzz-NAME.status.
# What it finds outlives the tree.
fuzz_one()
{
	local name=${1##*/fuzz_} found=$work/found
	mkdir -p "$found/$name"
	(cd "$found" && "$1" -timeout=60 -seed=1 -max_total_time="$2" \
		"$found/$name" "$top/tests/fuzz/corpus/$name") \
		> "$work/logs/fuzz-$name.log" 2>&1
	echo $? > "$work/logs/fuzz-$name.status"
}

# Each fuzzer for a few seconds, under clang's sanitizers, those of the whole
# server for half a minute; as many at a time as there are processors.
run_fuzzers()
{
	local program name seconds
	rm -f "$work"/logs/fuzz-*.status
	for program in "$work"/fuzz/tests/fuzz/fuzz_*; do
		case $program in *.o | *.c) continue ;; esac
		seconds=$fuzz_seconds
		case $program in
		*_server | *_nfs3 | *_rpcrdma_live) seconds=$((12 * seconds)) ;;
		esac
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
		fuzz_one "$program" "$seconds" &
	done
	wait
}

# Counts what ran beside the lab, or runs it.
fuzz()
{
	local status name targets=(fuzzers)
	# Else no part of CI would compile it with clang.
	[ ! -e "$work/fio/.version" ] || targets+=(fio-gannet.so)
	logged in_tree fuzz "${targets[@]}" ||
		{ fail "fuzzers and fio's engine build with clang"; return; }
	pass 1
	rm "$work/logs/fuzzed-ahead" 2>/dev/null || run_fuzzers
	for status in "$work"/logs/fuzz-*.status; do
		name=${status##*/fuzz-} name=${name%.status}
		if [ "$(cat "$status")" = 0 ]; then
			pass 1
		else
			tail -20 "$work/logs/fuzz-$name.log"
			fail "fuzz_$name finds nothing"
		fi
	done
}

# What a release would hold builds, installs and cleans up after itself.  Its
# code and tests are this tree's, which ran: it is compiled the quick way,
# without the tests, all of whose files have to be there.
distcheck()
{
	local how='CFLAGS=-O0 --disable-dependency-tracking'
	# Of another version.
	rm -f "$work"/main/gannet-*.tar.xz
	# make all needs one of the tests' archives: distclean has to know it.
	in_tree main distcheck TESTS=tests/lint.sh check_PROGRAMS= \
		check_LIBRARIES=tests/librig.a \
		DISTCHECK_CONFIGURE_FLAGS="$how" &&
		nothing_left_out
}

# Packages are made from a clone, and so is the image.
nothing_left_out()
{
	local here left
	[ -e "$top/.git" ] || return 0
	here=$(git -C "$top" ls-files) || return
	left=$(comm -13 <(tar -tf "$work"/main/gannet-*.tar.xz |
		cut -d/ -f2- | sort) <(grep -vxE <<< "$here" \
			'debian/.*|\.gitignore|tests/container\.sh' | sort))
	[ -z "$left" ] || { echo "not in the release:" $left; false; }
}

distribution()
{
	if rm "$work/logs/distributed-ahead" 2>/dev/null || logged distcheck
	then
		pass 1
	else
		fail "make distcheck"
	fi
}

# The packages, as an administrator meets them on a bare Debian.
debian()
{
	local status log=$work/logs/debian.log
	[ -e "$work/logs/debian.status" ] || try_packages
	status=$(cat "$work/logs/debian.status")
	rm "$work/logs/debian.status"
	pass "$(grep -c '^ok - ' "$log")"
	grep -e '^# from apt' -e '^# no package' "$log"
	case $status in
	0) ;;
	77) skip debian "$(tail -1 "$log")" ;;
	*) grep -v '^ok - ' "$log"; fail "the packages" ;;
	esac
}

try_packages()
{
	"$top/tests/packages.sh" "$work/debian" > "$work/logs/debian.log" 2>&1
	echo $? > "$work/logs/debian.status"
}

# LAB_ONLY: a pattern of "TRANSPORT SUITE" pairs, for a part of it.
lab()
{
	local last p f s
	local LAB_ONLY=${LAB_ONLY:-${short:+$short_lab}}
	# It says more than the phase's limit does.
	"$top/tests/lab/run" --build="$work/main" --logs="$work/logs/lab" \
		--time=$(($(limit_of lab) * 9 / 10)) \
		${LAB_ONLY:+--only="$LAB_ONLY"} \
		> "$phase_log" 2>&1
	grep -av -e '^ok - ' -e '^# ' "$phase_log" || true
	grep -a -B15 '^not ok' "$phase_log" | grep -a '^#' | tail -60
	last=$(grep -a '^lab: [0-9]* passed' "$phase_log" | tail -1)
	[ -n "$last" ] ||
		{ tail -20 "$phase_log"; fail "the lab runs"; return; }
	read -r p f s < <(tr -dc '0-9 \n' <<< "$last" | tr -s ' ')
	pass "$p"
	failed=$((failed + f)) skipped=$((skipped + s))
}

packages()
{
	local list
	mapfile -t list < <(lab_packages)
	[ -n "$short" ] || list+=("${all_packages[@]}")
	install_missing "${short_packages[@]}" "${list[@]}"
	# Where they can't be had, the engine's test and package are left out.
	"$top/tests/fio-headers.sh" "$work/fio"
}

main() { built_and_checked main; }

# The bench, each work for a moment: it has to work, nothing is held against
# its numbers.
bench()
{
	main_built || return
	if logged "$top/tests/bench/run" --build="$work/main" --quick \
		--rounds=1; then
		pass "$(grep -c '×\|µs\|KiB' "$phase_log")"
	else
		fail "each work of the bench can be measured"
	fi
}

# What a call costs, in instructions, against its budget.
callgrind()
{
	local status=0
	main_built || return
	"$top/tests/bench/callgrind" --build="$work/main" \
		> "$phase_log" 2>&1 || status=$?
	case $status in
	0) pass "$(grep -c '^[ti].*[0-9]' "$phase_log")" ;;
	77) skip callgrind "$(tail -1 "$phase_log")" ;;
	*) cat "$phase_log"; fail "calls cost no more than their budget" ;;
	esac
	[ $status != 77 ] || return
	# Metrics take 3 % of a call at most, and a scrape a second 1 % of a
	# core.
	if logged "$top/tests/bench/callgrind" --build="$work/main" \
		--metrics tcp-getattr tcp-write-4k &&
	   (cd "$work/main" && logged "$top/tests/bench/metrics" 100); then
		pass 2
	else
		fail "to be watched costs little"
	fi
}

# long_run PROGRAM [NAME=VALUE]...: a test of main, in its long form, for
# long_result.
long_run()
{
	local program=$1 name=${1##*/}; shift
	rm -f "$work/logs/$name.status"
	(cd "$work/main" &&
		env "$@" "$top/tests/limited.sh" 480 "./$program") \
		> "$work/logs/$name.log" 2>&1
	echo $? > "$work/logs/$name.status"
}

# long_result PROGRAM
long_result()
{
	local name=${1##*/} status n f e
	status=$(cat "$work/logs/$name.status")
	[ "$status" != 77 ] ||
		{ skip "$name" "$(tail -1 "$work/logs/$name.log")"; return; }
	read -r n f e < <(check_counts "$work/logs/$name.log")
	n=${n:-0} f=$((${f:-0} + ${e:-0}))
	grep -a '^# ' "$work/logs/$name.log"
	pass $((n - f))
	[ "$n" -gt 0 ] && [ "$f" = 0 ] && [ "$status" = 0 ] && return
	grep -av '^hung: ' "$work/logs/$name.log" | tail -40
	show_hung_of "$work/logs/$name.log"
	fail "$name"
}

# gannetd is killed a few hundred times, its machine loses its power a hundred
# times, clients send 100,000 operations twice, and what was promised is looked
# for; two of these programs run at a time, the last one alone.
crash()
{
	local name first operations=${GANNET_LOCKS_OPERATIONS:-100000}
	logged in_tree main check TESTS= ||
		{ fail "main builds"; return; }
	{
		long_run tests/crash/test_crash \
			GANNET_CRASH_KILLS="${GANNET_CRASH_KILLS:-60}"
		long_run tests/crash/test_power \
			GANNET_CRASH_CUTS="${GANNET_CRASH_CUTS:-20}" \
			GANNET_CRASH_DEATHS="${GANNET_CRASH_DEATHS:-10}"
	} &
	first=$!
	{
		long_run tests/crash/test_locks \
			GANNET_CRASH_KILLS="${GANNET_CRASH_KILLS:-60}" \
			GANNET_LOCKS_OPERATIONS="$operations"
	} &
	wait "$first" $!
	# Alone: its clients reset connections and come back.  Where the machine
	# stands still, a new connection is heard of before the old one's end.
	long_run tests/server/test_dup_soak \
		DUP_OPERATIONS="${DUP_OPERATIONS:-100000}"
	for name in crash/test_crash crash/test_power crash/test_locks \
		server/test_dup_soak; do
		long_result "tests/$name"
	done
}

# Calls with random chunks, against a plain model of their answers; a fabric
# that does all that RDMA lets it do, and one that fails, under many seeds; and
# models with the server's code in them, in all orders of events.
model()
{
	logged in_tree main check TESTS= ||
		{ fail "main builds"; return; }
	long_run tests/server/test_layouts \
		LAYOUT_CALLS="${LAYOUT_CALLS:-50000}"
	long_run tests/server/test_loop_chance \
		CHANCE_SEEDS="${CHANCE_SEEDS:-500}"
	long_result tests/server/test_layouts
	long_result tests/server/test_loop_chance
	if (cd "$work/main" && logged "$top/tests/limited.sh" 480 \
		"$top/tests/server/nfs3_seeds.sh" \
		--seeds="${NFS3_SEEDS:-50}"); then
		pass "${NFS3_SEEDS:-50}"
	else
		fail "the procedures over a fabric under seeds"
	fi
	if srcdir=$top "$top/tests/limited.sh" 480 \
		"$top/tests/models/run.sh" > "$phase_log" 2>&1; then
		pass "$(grep -c '^ok - ' "$phase_log")"
	else
		grep -v '^ok - ' "$phase_log"
		fail "the models that Spin searches"
	fi
}

# Each kind of load beside a good client, then all of them in turns, for
# SOAK_SECONDS all in all.
soak()
{
	local status=0
	main_built || return
	"$top/tests/load/run" --build="$work/main" \
		--soak="${SOAK_SECONDS:-150}" > "$phase_log" 2>&1 || status=$?
	pass "$(grep -c '^ok - ' "$phase_log")"
	case $status in
	0) ;;
	77) skip soak "$(tail -1 "$phase_log")" ;;
	*) tail -30 "$phase_log"; fail "a server under load goes on" ;;
	esac
}

# Breaks MUTATIONS guards, chosen by MUTATIONS_SEED, one at a time.  Survivors
# are no failure: some mutations change nothing.
mutate()
{
	"$top/tests/mutate/run" --count="${MUTATIONS:-200}" \
		--seed="${MUTATIONS_SEED:-1}" --work="$work/mutate" \
		> "$phase_log" 2>&1 || {
		tail -3 "$phase_log"
		fail "tests pass before a guard is broken"
		return
	}
	cat "$phase_log"
	pass 1
}

# The module for CephFS, in clusters of its own, some at a time, since most of
# the time is spent waiting; the lists take about the same time.  All tests but
# mounts, which is suite with more clients.
ceph()
{
	local n pids=() lists=('procedures names listing addresses'
		'several grace loss moves' 'suite failover model full'
		'faults servers own waits quickstart')
	# It was configured when Ceph's packages were missing.
	! grep -qs '^CEPH_TRUE = #' "$work/main/Makefile" ||
		rm "$work/main/.configured"
	# One after the other: side by side they would make files twice.
	for n in all check ceph-tests; do
		logged in_tree main "$n" TESTS= ||
			{ fail "the module for CephFS builds"; return; }
	done
	for n in "${!lists[@]}"; do
		# shellcheck disable=SC2086 # a name is a word
		ceph_tests "$work/logs/ceph-$n" ${lists[n]} &
		pids+=($!)
	done
	wait "${pids[@]}"
	for n in "${!lists[@]}"; do ceph_result "$work/logs/ceph-$n"; done
}

# ceph_tests LOG NAME...
ceph_tests()
{
	local log=$1; shift
	rm -f "$log.status"
	(cd "$work/main" && "$top/tests/ceph/run" "$@") > "$log.log" 2>&1
	echo $? > "$log.status"
}

# ceph_result LOG
ceph_result()
{
	local log=$1.log
	pass "$(grep -ac '^ok - ' "$log")"
	grep -a '^# [a-z]* took ' "$log"
	case $(cat "$1.status") in
	0) ;;
	77) skip ceph "$(tail -1 "$log")" ;;
	*)
		grep -aE '^not ok|:[0-9]+:[FES]:' "$log"
		grep -av '^hung: ' "$log" | tail -40
		show_hung_of "$log"
		fail "the module for CephFS" ;;
	esac
}

# Tests that run others in several ways do it in one then; "threads": with the
# calls in which threads meet.
asan() { GANNET_TESTS_ONCE=1 built_and_checked asan; }
tsan() { GANNET_TESTS_ONCE=threads built_and_checked tsan; }

# For other processors, by cross compilers, under qemu's emulation.
arm64() { foreign arm64; }
s390x() { foreign s390x; }

# foreign PROCESSOR
foreign()
{
	local status=0
	"$(source_tree)/tests/foreign/run" "$work/foreign" "$1" \
		> "$phase_log" 2>&1 || status=$?
	pass "$(grep -c '^ok - ' "$phase_log")"
	case $status in
	0) ;;
	77) skip "$1" "$(tail -1 "$phase_log")" ;;
	*) grep -v '^ok - ' "$phase_log"; fail "Gannet for $1" ;;
	esac
}
