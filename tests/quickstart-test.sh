# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by ./quickstart: the bench, and the tests, in phases.  A phase prints
# a line with its time and what it counted, and keeps a log; a phase that could
# not do its work counts as one failure.
# shellcheck disable=SC2154 # top, work, jobs: quickstart's

# shellcheck source=tests/quickstart-phases.sh
. "$top/tests/quickstart-phases.sh"
# shellcheck source=tests/limited.sh
. "$top/tests/limited.sh"

passed=0 failed=0 skipped=0
fuzz_seconds=${FUZZ_SECONDS:-3}

short_packages=("${build_packages[@]}" check libnfs-dev shellcheck iproute2
	python3 binutils rpm e2fsprogs xfsprogs btrfs-progs systemd mandoc zsh
	python3-yaml krb5-kdc krb5-admin-server krb5-user)
# For other processors.
foreign_packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static mmdebstrap)
# clang brings no sanitizer or fuzzer runtime without its recommended package.
all_packages=("${short_packages[@]}" clang libclang-rt-dev xz-utils valgrind
	gdb tshark debhelper lintian mmdebstrap prometheus bpftrace chromium
	python3-prometheus-client spin "${ceph_packages[@]}"
	"${foreign_packages[@]}")
short_phases=(packages scripts main lab)
all_phases=(packages scripts main crash soak model callgrind bench lab asan tsan
	s390x ceph arm64 fuzz distribution debian)
# A phase that takes longer, in seconds, hangs: it is ended, and the next one
# begins.  Three times what it takes is no more than a busy machine needs.  All
# of them end before CI's own limit of 90 minutes, which would tell nothing.  On
# a slow machine some of the last phases are left out, and say so: none begins
# that could not end in time.  GANNET_PATIENCE, a whole number, multiplies all
# limits.
declare -A limits=([packages]=900 [scripts]=300 [main]=1800 [crash]=600
	[soak]=900 [model]=1200 [callgrind]=900 [bench]=600 [lab]=2400
	[ceph]=1500 [asan]=2400 [arm64]=1500 [tsan]=2400 [s390x]=1500
	[fuzz]=900 [distribution]=900 [debian]=900 [ahead]=2400)
patience=${GANNET_PATIENCE:-1}
whole_limit=$((5100 * patience))
# A client of TCP, and one of RDMA, which do what an application does.
short_lab='@(tcp|rxe) @(exerciser|git)'
lab_packages() { grep -v '^#' "$top/tests/lab/packages"; }

pass() { passed=$((passed + $1)); }
fail() { failed=$((failed + 1)); echo "not ok - $*"; }
# skip WHAT WHY
skip() { skipped=$((skipped + 1)); echo "skip - $1 # $2"; }

# check_counts LOG: the checks, failures and errors of Check's suites in it.
check_counts()
{
	grep -ahoE 'Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$1" |
		tr -dc '0-9\n ' |
		awk '{ n += $1; f += $2; e += $3 } END { print n, f, e }'
}

# show_hung_of LOG: what tests/limited.sh said in it.
show_hung_of() { grep -a '^hung: ' "$1" | head -150; }

# Adds up the results of an automake run: each check of a program that counts
# them, one for each other test.
count_results()
{
	local trs result n f e
	while read -r trs; do
		result=$(sed -n 's/^:global-test-result: //p' "$trs")
		read -r n f e < <(check_counts "${trs%.trs}.log")
		n=${n:-0} f=$((${f:-0} + ${e:-0}))
		case $result in
		PASS | XFAIL) pass $((n > 0 ? n : 1)) ;;
		SKIP) skip "${trs#"$1"/}" \
			"$(grep -av '^SKIP ' "${trs%.trs}.log" | tail -1)" ;;
		*)
			pass $((n - f))
			failed=$((failed + (f > 0 ? f - 1 : 0)))
			fail "${trs#"$work"/} ($result)"
			grep -aE ':[0-9]+:[FE]:|Sanitizer|runtime error' \
				"${trs%.trs}.log" | head -20
			show_hung_of "${trs%.trs}.log" ;;
		esac
	done < <(find "$1" -name '*.trs' | sort)
}

# Sets cpu to the seconds of processes that have ended and were waited for.
# A subshell has none, so times can't write to a pipe.
count_cpu()
{
	local file=$work/logs/times-$BASHPID
	times > "$file"
	cpu=$(awk 'NR == 2 { gsub(/[ms]/, " ")
		print int(60 * ($1 + $3) + $2 + $4) }' "$file")
	rm "$file"
}

# limit_of PHASE: in seconds.
limit_of() { echo $((${limits[$1]} * patience)); }

# time_for PHASE
time_for() { [ $((SECONDS + $(limit_of "$1"))) -le $whole_limit ]; }

# in_time PHASE COMMAND...: ends it at the phase's limit, which is a failure.
in_time()
{
	local name=$1 seconds; shift
	# It takes hours, and is no part of CI.
	[ "$name" != mutate ] || { "$@"; return; }
	if ! time_for "$name"; then
		skip "$name" "the phases before took $SECONDS s here"
		return
	fi
	seconds=$(limit_of "$name")
	limit_begin "$seconds" "$work/logs/$name.hung"
	"$@"
	limit_end && return
	fail "$name is over in $seconds s; of its processes:"
	head -n 200 "$work/logs/$name.hung"
}

# phase NAME: the function of that name; what it runs talks to a log.
phase()
{
	local name=$1 start=$SECONDS before=$passed cpu used
	phase_log=$work/logs/$name.log
	count_cpu; used=$cpu
	in_time "$name" "$name"
	count_cpu; used=$((cpu - used))
	printf '== %-12s %4d s, %4d s of processors, %d passed\n' "$name" \
		$((SECONDS - start)) "$used" $((passed - before))
}

# begin PHASE: runs it beside the next one, with time that nobody else needs;
# its turn comes in the list, and finish() prints what it said.  It may build
# nothing in a tree of the other's.
declare -A begun=()
begin()
{
	rm -f "$work/logs/$1".{said,counts}
	(
		renice -n 19 "$BASHPID" >/dev/null
		passed=0 failed=0 skipped=0
		phase "$1" > "$work/logs/$1.said" 2>&1
		echo "$passed $failed $skipped" > "$work/logs/$1.counts"
	) &
	begun[$1]=$!
}

# finish PHASE
finish()
{
	local p=0 f=1 s=0
	# It may have been waited for with others.
	wait "${begun[$1]}" 2>/dev/null
	cat "$work/logs/$1.said"
	read -r p f s < "$work/logs/$1.counts"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	rm "$work/logs/$1".{said,counts}
	unset "begun[$1]"
}

# logged COMMAND...: what it printed is shown when it fails.
logged()
{
	"$@" > "$phase_log" 2>&1 && return
	tail -40 "$phase_log"
	return 1
}

# in_tree NAME MAKE-ARGUMENT...: in the build tree of that name.
in_tree()
{
	local name=$1 how=(--enable-werror) flags=(); shift
	local gold='-fuse-ld=gold -fno-use-linker-plugin'
	case $name in
	main | fuzz)
		[ ! -e "$work/fio/.version" ] ||
			how+=("--with-fio=$work/fio") ;;&
	asan) how+=("--with-sanitizer=address,undefined" --disable-ceph) ;;
	tsan) how+=(--with-sanitizer=thread --disable-ceph) ;;
	fuzz) how+=(CC=clang --with-fuzzer --disable-ceph
		"--with-sanitizer=address,undefined") ;;
	esac
	# The trees share what configure finds out about the compiler, so flags
	# go to make: configure refuses a cache that was made with others.
	[ "$name" = fuzz ] || how+=("--cache-file=$(cache_file)")
	# build() removes these trees when a source has changed.
	[ "$name" = main ] || how+=(--disable-dependency-tracking)
	# Reports name lines; to know more takes the compiler a fifth longer.
	[ "$name" = main ] || flags=("CFLAGS=-O1 -g1")
	# The usual linker takes twice as long.  clang has no such plugin.
	case $name:${CC-} in
	*clang*) ;;
	asan:* | tsan:*)
		! command -v ld.gold >/dev/null ||
			flags+=("LDFLAGS=${LDFLAGS-} $gold") ;;
	esac
	build "$name" "${how[@]}" -- ${flags[@]+"${flags[@]}"} "$@"
}

# main_built: builds main, for a phase that runs its programs.
main_built() { logged in_tree main all || { fail "main builds"; false; }; }

# built_and_checked NAME
built_and_checked()
{
	local name=$1 status=0 before=$failed limit
	# A test that hangs leaves time to the others; limited.sh multiplies.
	limit=$((${limits[$name]} * 3 / 4))
	logged in_tree "$name" all || { fail "$name builds"; return; }
	find "$work/$name" -name '*.trs' -delete
	# Most tests wait more than they work.
	logged in_tree "$name" -k -j$((3 * jobs)) check \
		LOG_COMPILER="'$top/tests/limited.sh' $limit" >/dev/null ||
		status=$?
	count_results "$work/$name"
	[ "$status" = 0 ] || [ "$failed" -gt "$before" ] || {
		tail -30 "$phase_log"
		fail "$name runs its tests"
	}
}

# ahead PHASE...: builds what they run with time that nobody else needs, and
# tries what time does not matter to: fuzzers, distcheck, packages.  A phase
# does what is not done by then, and says when it can't.
ahead()
{
	renice -n 19 "$BASHPID"
	in_time ahead do_ahead "$@"
}

do_ahead()
{
	local name jobs=1
	for name; do
		case $name in
		asan | tsan) in_tree "$name" -j1 check TESTS= &&
			touch "$work/logs/$name-ahead" ;;
		ceph) in_tree main -j1 ceph-tests ;;
		fuzz) in_tree fuzz -j1 fuzzers && run_fuzzers &&
			touch "$work/logs/fuzzed-ahead" ;;
		distribution) distcheck &&
			touch "$work/logs/distributed-ahead" ;;
		debian) try_packages ;;
		esac
		echo "$name: over, after $SECONDS s"
	done
}

# What a short run did, in words.
covered()
{
	cat <<-END
	covered: the unit and server tests, the fuzzers' known inputs, lint, and
	a stock kernel's mounts over TCP and RDMA.  './quickstart test all' has
	crashes, models, sanitizers, fuzzing, CephFS and packages besides.
	END
}

# make_ready TREE: sets ready if it builds.
make_ready() { ! logged in_tree "$1" check TESTS= || ready=yes; }

# beside PHASE LATER...: what begins with PHASE, of the phases after it.
beside()
{
	local phase_log=$work/logs/beside.log name=$1 other='' tree=''
	local ready=''; shift
	case $name in
	# The lab's emulator leaves most of a processor to others.
	lab) ahead "$@" > "$work/logs/ahead.log" 2>&1 & ;;
	# Instructions are as many however long they take.
	crash) other=callgrind tree=main ;;
	# Half of a soak is rest, and the models measure nothing.
	soak) other=model tree=main ;;
	# Most of their tests wait.
	tsan) other=s390x tree=tsan ;;
	ceph) other=arm64 tree=main ;;
	esac
	# A sanitizer whose tree is built can begin while the rest of the work
	# beside the lab goes on; else two makes would build in one tree.
	case $name in
	crash | soak | lab) ;;
	*) [ -e "$work/logs/$name-ahead" ] || wait ;;
	esac
	# Both need the script configure, so it is made before.
	case " $* " in
	*" ${other:-none} "*)
		time_for "$name" || return
		in_time "$name" make_ready "$tree"
		[ -z "$ready" ] || begin "$other" ;;
	esac
}

# run_test [all | PHASE...]
run_test()
{
	local name short=''
	case ${1:-} in
	-h | --help) usage; return ;;
	'') short=yes; set -- "${short_phases[@]}" ;;
	all) shift; set -- "${all_phases[@]}" "$@" ;;
	esac
	for name; do
		case " ${all_phases[*]} mutate " in
		*" $name "*) ;;
		*) die "no phase '$name'; there are: ${all_phases[*]} mutate" ;;
		esac
		# It would count as one that passes.
		declare -F "$name" >/dev/null ||
			die "phase $name is no function"
	done
	make_work
	rm -f "$work"/logs/{*-ahead,debian.status}
	# Ceph before an earlier phase configures main.
	case " $* " in
	*' packages '*) ;;
	*' ceph '*) install_missing "${ceph_packages[@]}" ;;&
	*' arm64 '* | *' s390x '*)
		install_missing "${build_packages[@]}" \
			"${foreign_packages[@]}" ;;
	esac
	# The shell has what runs beside a phase ignore Ctrl-C.
	trap 'trap "" TERM; kill 0; die "interrupted"' INT
	for name; do
		shift
		if [ -n "${begun[$name]-}" ]; then finish "$name"; continue; fi
		beside "$name" "$@"
		phase "$name"
	done
	wait
	[ -z "$short" ] || covered
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

# run_bench [OPTION]...: measures, and makes a report.
run_bench()
{
	local list
	# Before anything is installed for what is a question or a mistake.
	case " $* " in
	*' -h '* | *' --help '*) "$top/tests/bench/run" --help; return ;;
	esac
	"$top/tests/bench/run" "$@" --check-options || return
	make_work
	mapfile -t list < <(grep -v '^#' "$top/tests/bench/packages")
	install_missing "${build_packages[@]}" "${list[@]}"
	build main -- all > "$work/logs/build.log" 2>&1 || {
		tail -20 "$work/logs/build.log" >&2
		die "it does not build; see $work/logs/build.log"
	}
	"$top/tests/bench/run" --build="$work/main" "$@"
}
