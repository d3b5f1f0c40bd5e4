# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Transactions, an aborted one, and what the data base thinks of itself.
# shellcheck source=tests/lab/lib.sh
. "$LAB/lib.sh"
fill()
{
	sqlite3 "$MNT/db" <<-'SQL'
	create table t (id integer primary key, k integer, v blob);
	create index tk on t (k);
	begin;
	with recursive n(i) as (select 1 union all select i + 1 from n
		where i < 3000)
		insert into t select i, i * 7919 % 1009, randomblob(i % 700)
		from n;
	commit;
	update t set v = zeroblob(1500) where k % 5 = 0;
	delete from t where k % 7 = 0;
	begin;
	delete from t;
	rollback;
	vacuum;
	SQL
}

sound()
{
	test "$(sqlite3 "$1" 'pragma integrity_check')" = ok
	test "$(sqlite3 "$1" 'select count(*) from t')" -gt 2000
}

small_transactions()
{
	local i
	for i in {1..30}; do
		echo "insert into t(k, v) values ($i, randomblob(3000));"
	done | sqlite3 "$MNT/db"
}

check 'a data base is filled' fill
check 'thirty transactions, each synced' small_transactions
forget
check 'it is sound for the client' sound "$MNT/db"
check 'it is sound on the server' sound "$BACK/db"
