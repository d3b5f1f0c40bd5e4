# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by suites that harm the server while clients work, each over a
# transport of its own: one writes and reads a file at random, and one writes
# records, of which it says when they are safe.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"

# load_transports TRANSPORT...: those of them that there are here.
load_transports()
{
	local t device
	transports=''
	for t; do
		case $t in
		siw* | iwarp*) device=siw0 ;;
		rxe*) device=rxe0 ;;
		*) device='' ;;
		esac
		case $t-$SERVER in iwarp*-knfsd) continue ;; esac
		if [ -z "$device" ] || [ -e "/sys/class/infiniband/$device" ]
		then
			transports+="$t "
		else
			skip "$t" "no $device here"
		fi
	done
}

# each COMMAND [ARGUMENT]...: with each transport as the last argument.
each()
{
	local t
	for t in $transports; do "$@" "$t" || { echo "by $t"; return 1; }; done
}

# load_mount WHERE TRANSPORT: a directory of its own in what is exported.  A "%"
# in WHERE, here and below, is the transport.
load_mount()
{
	local where=${1/\%/$2}
	mkdir -p "$where/load-$2/ledger"
	mount_as "$2" "$where/load-$2" "/mnt/load-$2"
	mountpoint "/mnt/load-$2"
}

safe()
{
	if [ -s "$OUT/$1.ack" ]; then
		echo "$(<"$OUT/$1.ack")"
	else
		echo 0
	fi
}
more_than() { [ "$(safe "$2")" -gt "$1" ]; }

load_start()
{
	local t
	rm -f "$OUT"/*.ack "$OUT"/*.ack.stop
	for t in $transports; do
		background "exerciser-$t" "$BUILD/tests/lab/exerciser" \
			"/mnt/load-$t/f" 3 50 15
		background "ledger-$t" "$BUILD/tests/lab/ledger" write \
			"/mnt/load-$t/ledger" "$OUT/$t.ack" 600
	done
	for t in $transports; do wait_for 200 more_than 30 "$t"; done
}

# What each has been told is safe.
promised()
{
	local t
	for t in $transports; do safe "$t" > "$OUT/$t.promised"; done
}

# progress SECONDS RECORDS TRANSPORT: as many more than were promised.
progress()
{
	wait_for "$1" more_than $(($(<"$OUT/$3.promised") + $2)) "$3"
}

all_there()
{
	local ledger=$BUILD/tests/lab/ledger where=${1/\%/$2}
	forget
	"$ledger" check "/mnt/load-$2/ledger" "$(safe "$2")"
	"$ledger" check "$where/load-$2/ledger" "$(safe "$2")"
	cmp "/mnt/load-$2/f" "$where/load-$2/f"
}

# load_end WHERE: nobody saw an error, and all is as it should be.
load_end()
{
	local t
	for t in $transports; do touch "$OUT/$t.ack.stop"; done
	for t in $transports; do
		T=$t
		check 'the load saw nothing but right data' \
			ended "exerciser-$t"
		check 'no write failed' ended "ledger-$t"
		check 'every record and the file are there, on both sides' \
			all_there "$1" "$t"
		check 'it unmounts' timeout 200 umount "/mnt/load-$t"
		rm -rf "${1/\%/$t}/load-$t"
	done
	T=''
}
