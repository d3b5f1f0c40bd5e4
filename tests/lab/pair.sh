# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the suite locks: two machines write one data base, with a program
# on the server as the third, and work in one git work tree.
# shellcheck disable=SC2154 # back and on() are machines.sh's

# ---- sqlite, with its rollback journal

# transactions WRITER COUNT: each adds a row, and one to the counter.
transactions()
{
	local i
	for ((i = 1; i <= $2; i++)); do
		echo "begin immediate;"
		echo "insert into t values ('$1', $i, randomblob(2000));"
		echo "update counter set n = n + 1;"
		echo "commit;"
	done
}

# sql FILE [STATEMENT...], which waits for locks of others.
sql() { sqlite3 -bail -cmd '.timeout 60000' "$@"; }
export -f sql

counted()
{
	test "$("$@" 'pragma integrity_check')" = ok
	test "$("$@" 'select n from counter')" = 24
	test "$("$@" 'select group_concat(w || n) from (select w,
		count(distinct i) n from t group by w order by w)')" = \
		c18,c28,s8
}

one_database()
{
	local n db=/mnt/locks/db
	rm -f "$back"/db*
	sql "$back/db" 'pragma journal_mode = delete;
		create table t (w text, i integer, v blob);
		create table counter (n integer);
		insert into counter values (0);' > /dev/null
	for n in 1 2; do
		transactions c$n 8 > "$back/c$n.sql"
		background c$n on $n bash -c \
			"sql $db < /mnt/locks/c$n.sql"
	done
	transactions s 8 > "$back/s.sql"
	sql "$back/db" < "$back/s.sql"
	ended c1
	ended c2
	for n in 1 2; do counted on $n sqlite3 "$db"; done
	counted sqlite3 "$back/db"
	test ! -e "$back/db-journal"
}

# ---- git

# commits NAME: until it is in, since another may have the lock of the index or
# have moved the branch meanwhile.
commits()
{
	local i
	cd /mnt/locks/tree || return
	echo "$1" > "$1"
	for i in {1..100}; do
		! git add "$1" || ! git commit -q -m "$1" -- "$1" || return 0
		sleep 0.1
	done 2> "/run/commits.$1"
	cat "/run/commits.$1"
	return 1
}
export -f commits

tree_is_sound()
{
	local names='a1 a2 b1 b2 c1 c2'
	cd "$1" || return
	git fsck --full --strict
	test "$(git log --format=%s | sort | xargs)" = "$names"
	test "$(git ls-tree --name-only HEAD | xargs)" = "$names"
}
export -f tree_is_sound

one_work_tree()
{
	local n
	rm -rf "$back/tree"
	on 1 git init -q -b main --template= /mnt/locks/tree
	for n in 1 2; do on $n bash -c "commits a$n"; done
	for n in 1 2; do
		background g$n on $n bash -ec "commits b$n; commits c$n"
	done
	ended g1
	ended g2
	for n in 1 2; do on $n bash -ec 'tree_is_sound /mnt/locks/tree'; done
}
