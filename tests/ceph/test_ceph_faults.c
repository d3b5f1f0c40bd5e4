/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon of the cluster is killed under load and started again; or one of two
 * servers is killed, and its client moves to the other.  Acknowledged changes
 * are there, and no change was made twice.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/ceph/pair.h"
#include "tests/unit/runner.h"

#define OUTAGE_MS	7000
/* A metadata server's word on a name holds for 30 s, or until it takes it back.
 * A client of the library believes it also when that server is dead, and the
 * next one does not know of it (Ceph 16.2). */
#define LEASE_MS	31000

static bool any_busy(void)
{
	for (unsigned i = 0; i < CRASH_SLOTS; i++)
		if (pair_crash->slots[i].busy)
			return true;
	return false;
}

/* ---- daemons of the cluster */

/* Makes or finds a file by the export that is not in the cluster. */
static void use_other(struct wire *w, const struct model_fh *top, unsigned i)
{
	struct wire_attr made;
	char name[16];

	snprintf(name, sizeof(name), "file%u", i);
	made = wire_exclusive(w, top, name, i + 1);
	ck_assert_int_eq(made.status, NFS3_OK);
	ck_assert_int_eq(wire_getattr(w, &made.fh).status, NFS3_OK);
}

/* The other server, which has none of it in memory, also shows all that is
 * owed. */
static void check_by_both(void)
{
	crash_pause(pair_crash);
	pair_connect(&pair_second);
	crash_check(pair_crash);
}

static void wait_until(uint64_t end)
{
	WAIT_WHILE(runner_now_ms() < end);
}

/* @daemon's word on names is believed for @lease ms. */
static void kill_daemon(const char *daemon, bool felt, unsigned lease)
{
	struct crash *c = pair_crash;
	struct model_fh top = pair_mount(&c->d, "/other");
	struct wire other;
	uint64_t killed, end;

	ck_assert(wire_open(&other, c->d.tcp_port, NFS_PROGRAM));
	pair_connect(&c->d);
	crash_work(c, 1500000);
	pair_cluster("kill", daemon);
	killed = runner_now_ms();
	end = killed + OUTAGE_MS;
	for (unsigned i = 0; runner_now_ms() < end; i++) {
		crash_work(c, 200000);
		IN_LESS_THAN(1000, use_other(&other, &top, i));
	}
	if (felt)
		ck_assert(any_busy());
	pair_cluster("start", daemon);
	crash_settle(c, 60000000);
	ck_assert(!any_busy());
	wait_until(killed + lease);
	crash_work(c, 1000000);
	check_by_both();
	/* No client lost a connection or got an error. */
	ck_assert_uint_eq(c->doubts, 0);
	crash_report(c, daemon);
	wire_close(&other);
}

TEST_CASE(.setup = pair_start, .teardown = pair_stop, .timeout = 180);

TEST(an_osd_that_is_killed_loses_nothing)
{
	kill_daemon("osd.0", true, 0);
}

/* ---- data on its way while its file is cut */

/* In a directory that the first server does not know. */
static void change_by_second(void)
{
	struct model_fh top = pair_mount(&pair_second, "/"), dir, made;
	static unsigned n;
	struct wire w;
	char name[32];

	ck_assert(wire_open(&w, pair_second.tcp_port, NFS_PROGRAM));
	snprintf(name, sizeof(name), "second%d", (int)getpid());
	ck_assert(wire_mkdir(&w, &top, name, &dir));
	snprintf(name, sizeof(name), "change%u", n++);
	ck_assert(wire_mkdir(&w, &dir, name, &made));
	wire_close(&w);
}

static void start_op(struct slot *slot, struct op op)
{
	slot->op = op;
	wire_start(&pair_crash->wire[0], slot);
}

static void do_op(struct slot *slot, struct op op)
{
	start_op(slot, op);
	crash_settle(pair_crash, 60000000);
	ck_assert(!slot->busy);
}

static struct op new_size(uint32_t blocks)
{
	return (struct op){ .kind = OP_SIZE, .block = blocks };
}

/* The COMMIT has the library write the data. */
static void commit_and_cut(struct slot *slot, uint32_t blocks)
{
	struct slot *committer = slot + 1;
	unsigned index = committer->index;

	committer->s.obj[0] = slot->s.obj[0];
	start_op(committer, (struct op){ .kind = OP_COMMIT });
	start_op(slot, new_size(blocks));
	crash_settle(pair_crash, 3000000);
	kill(pair_crash->d.pid, SIGSTOP);
	pair_cluster("start", "osd.0");
	/* When these are durable, so are the cluster's changes before them. */
	for (int i = 0; i < 3; i++)
		change_by_second();
	kill(pair_crash->d.pid, SIGCONT);
	crash_settle(pair_crash, 60000000);
	ck_assert(!any_busy());
	model_init(committer, index);
}

/* The server is stopped while the OSD starts, so its data would arrive after
 * the cluster has cut the file. */
TEST(data_that_was_under_way_when_a_file_was_cut_does_not_come_back)
{
	struct slot *slot = &pair_crash->slots[0];

	pair_connect(&pair_crash->d);
	change_by_second();
	do_op(slot, (struct op){ .kind = OP_CREATE, .mode = 0644 });
	do_op(slot, (struct op){ .kind = OP_WRITE, .block = 5, .count = 4,
				 .tag = model_tag() });
	pair_cluster("kill", "osd.0");
	commit_and_cut(slot, 2);
	do_op(slot, new_size(12));
	do_op(slot, new_size(9));
	check_by_both();
}

TEST(a_monitor_that_is_killed_loses_nothing)
{
	kill_daemon("mon.a", false, 0);
}

TEST(a_metadata_server_that_is_killed_loses_nothing)
{
	kill_daemon("mds.a", true, LEASE_MS);
}
