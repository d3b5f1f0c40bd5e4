/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server is killed under load.  Its client moves to the other server and
 * sends every unanswered call again: acknowledged changes are there, and no
 * change was made twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/ceph/pair.h"
#include "tests/unit/runner.h"

/* Seconds until the cluster ends the session of a dead server: the least that
 * it allows. */
#define SESSION		"30"

static unsigned long again, done_before;

/* The status that tells that the first server had done it (doc/cephfs.md). */
static int second_answer(const struct op *op)
{
	switch (op->kind) {
	case OP_CREATE:
		return op->how == GUARDED ? NFS3ERR_EXIST : NFS3_OK;
	case OP_EXCLUSIVE:
		return NFS3_OK;
	case OP_CHILD:
		return NFS3_OK;
	case OP_MKDIR: case OP_SYMLINK: case OP_LINK:
		return NFS3ERR_EXIST;
	default:
		return NFS3ERR_NOENT;
	}
}

static bool changes_names(const struct op *op)
{
	return op->kind <= OP_RMDIR || op->kind == OP_CHILD ||
	       op->kind == OP_UNCHILD;
}

static void answered_again(struct slot *slot, int status,
			   const struct ack *ack)
{
	static const struct ack nothing;

	model_remember(slot, status);
	slot->busy = false;
	if (status == NFS3ERR_JUKEBOX)
		return;			/* and once more */
	if (status != NFS3_OK && status != second_answer(&slot->op)) {
		model_print(slot);
		ck_abort_msg("sent again: status %d, seed %llu", status,
			     (unsigned long long)pair_crash->seed);
	}
	/* Done by the one or the other, it is as if it was done once. */
	model_apply(&slot->s, &slot->op, status ? &nothing : ack);
	slot->frozen = false;
	again++;
	done_before += status != NFS3_OK;
}

static bool is_due(const struct slot *slot)
{
	return slot->busy || (slot->frozen && slot->unanswered &&
			      changes_names(&slot->op));
}

/* The client repeats changes of names; unacknowledged data stays in doubt. */
static void send_again(struct crash *c)
{
	wire_done_fn *before = wire_done;
	uint64_t end = runner_now_ms() + 100000;
	bool due = true;

	wire_done = answered_again;
	while (due) {
		due = false;
		for (unsigned i = 0; i < CRASH_SLOTS; i++) {
			struct slot *slot = &c->slots[i];

			if (!is_due(slot))
				continue;
			due = true;
			if (!slot->busy)
				wire_start(&c->wire[i % CRASH_WIRES], slot);
		}
		wire_serve(c->wire, CRASH_WIRES, 100);
		ck_assert(runner_now_ms() < end);
	}
	wire_done = before;
}

/* The server might have done the calls of these connections; the answers are
 * lost. */
static void cut_some(struct crash *c)
{
	for (unsigned i = 0; i < CRASH_WIRES; i += 2)
		wire_close(&c->wire[i]);
	/* Some are done by then: by chance. */
	pause_on_purpose(30000);
}

static void shorten_sessions(void)
{
	ck_assert_int_eq(system("ceph fs set fs session_timeout " SESSION
				" 2>/dev/null"), 0);
	pair_start();
}

TEST_CASE(.setup = shorten_sessions, .teardown = pair_stop, .timeout = 240);

TEST(a_client_of_a_killed_server_goes_on_at_the_other)
{
	struct crash *c = pair_crash;

	pair_connect(&c->d);
	crash_work(c, 3000000);
	cut_some(c);
	crash_kill(c);
	crash_disconnect(c);
	ck_assert_uint_gt(c->doubts, 0);
	pair_connect(&pair_second);
	send_again(c);
	crash_check(c);
	crash_work(c, 2000000);
	crash_pause(c);
	/* The one that was killed sees the same. */
	pair_start_server(&c->d);
	pair_connect(&c->d);
	crash_check(c);
	crash_report(c, "failover");
	printf("# %lu sent again, of which %lu had been done\n", again,
	       done_before);
}
