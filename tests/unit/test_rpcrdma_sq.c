/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: order, room, read depth, failure, the end. */
#include <errno.h>

#include "lib/util.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/sq.h"

/* A fabric that takes posts and does nothing until the test completes them. */
struct posted {
	struct fabric_op *op;
	unsigned	  steps;
};

static struct posted posted[64];
static unsigned nposted, ndone;
static int post_err;

static int fake_post(struct fabric_conn *fc, struct fabric_wr *chain)
{
	struct posted *p = &posted[nposted];

	if (post_err)
		return post_err;
	p->steps = 0;
	for (; chain; chain = chain->next) {
		p->steps++;
		p->op = chain->op;
		/* Only the last step is signaled. */
		ck_assert(!chain->next == !!chain->op);
	}
	nposted++;
	return 0;
}

static const struct fabric_ops ops = { .post = fake_post };
static struct fabric_conn fc = { .ops = &ops };
static struct rpcrdma_sq sq;

struct work {
	struct rpcrdma_chain chain;
	struct fabric_wr     wr[32];
	int		     done;
	int		     status;
};

static struct work work[16];

static void work_done(struct rpcrdma_chain *c, int status)
{
	struct work *w = container_of(c, struct work, chain);

	w->done++;
	w->status = status;
}

static void start(unsigned depth, unsigned reads)
{
	nposted = ndone = 0;
	post_err = 0;
	memset(work, 0, sizeof(work));
	rpcrdma_sq_init(&sq, &fc, depth);
	rpcrdma_sq_set_read_depth(&sq, reads);
}

static int submit(unsigned i, unsigned steps, bool reads)
{
	struct work *w = &work[i];

	memset(w, 0, sizeof(*w));
	for (unsigned n = 0; n + 1 < steps; n++)
		w->wr[n].next = &w->wr[n + 1];
	w->chain.next_wr = w->wr;
	w->chain.left = steps;
	w->chain.reads = reads;
	w->chain.done = work_done;
	return rpcrdma_sq_submit(&sq, &w->chain);
}

/* Completes the oldest post. */
static void complete(int status)
{
	struct fabric_op *op = posted[ndone++].op;

	ck_assert_uint_le(ndone, nposted);
	op->done(op, status, 0);
}

TEST(a_chain_with_room_is_posted_whole)
{
	start(10, 4);
	ck_assert_int_eq(submit(0, 7, false), 0);
	ck_assert_uint_eq(nposted, 1);
	ck_assert_uint_eq(posted[0].steps, 7);
	ck_assert_int_eq(work[0].done, 0);
	complete(0);
	ck_assert_int_eq(work[0].done, 1);
	ck_assert_int_eq(work[0].status, 0);
	ck_assert_uint_eq(sq.room, 10);
}

TEST(chains_without_room_wait_first_in_first_out)
{
	start(10, 4);
	submit(0, 7, false);
	submit(1, 5, false);
	submit(2, 1, false);		/* has room, but not the turn */
	ck_assert_uint_eq(nposted, 1);
	complete(0);
	ck_assert_uint_eq(nposted, 3);
	ck_assert_uint_eq(posted[1].steps, 5);
	ck_assert_uint_eq(posted[2].steps, 1);
	complete(0);
	complete(0);
	ck_assert_uint_eq(sq.room, 10);
}

TEST(reads_go_out_as_far_as_the_read_depth)
{
	start(20, 4);
	submit(0, 6, true);
	submit(1, 3, true);
	ck_assert_uint_eq(nposted, 1);
	ck_assert_uint_eq(posted[0].steps, 4);
	complete(0);
	/* The rest, and at once the next chain. */
	ck_assert_uint_eq(nposted, 3);
	ck_assert_uint_eq(posted[1].steps, 2);
	ck_assert_uint_eq(posted[2].steps, 2);
	ck_assert_int_eq(work[0].done, 0);
	complete(0);
	ck_assert_int_eq(work[0].done, 1);
	ck_assert_uint_eq(posted[3].steps, 1);
	complete(0);
	ck_assert_int_eq(work[1].done, 0);
	complete(0);
	ck_assert_int_eq(work[1].done, 1);
	ck_assert_int_eq(sq.read_room, 4);
	ck_assert_uint_eq(sq.room, 20);
}

TEST(a_lower_read_depth_holds_for_reads_in_flight_too)
{
	start(20, 4);
	for (unsigned i = 0; i < 4; i++)
		submit(i, 1, true);
	rpcrdma_sq_set_read_depth(&sq, 2);
	submit(4, 2, true);
	complete(0);
	complete(0);
	ck_assert_uint_eq(nposted, 4);
	complete(0);
	ck_assert_uint_eq(nposted, 5);
	ck_assert_uint_eq(posted[4].steps, 1);
	complete(0);
	ck_assert_uint_eq(nposted, 6);
	rpcrdma_sq_set_read_depth(&sq, 4);
	complete(0);
	complete(0);
	ck_assert_int_eq(work[4].done, 1);
	ck_assert_int_eq(sq.read_room, 4);
}

TEST(replies_pass_reads_that_wait_for_depth)
{
	start(20, 1);
	submit(0, 3, true);
	submit(1, 5, false);
	ck_assert_uint_eq(nposted, 2);
	ck_assert_uint_eq(posted[1].steps, 5);
}

TEST(reads_keep_their_turn_when_room_is_short)
{
	start(4, 4);
	submit(0, 4, false);
	submit(1, 2, true);
	submit(2, 3, false);
	ck_assert_uint_eq(nposted, 1);
	complete(0);
	/* The Reads first; then the reply has no room. */
	ck_assert_uint_eq(nposted, 2);
	ck_assert_uint_eq(posted[1].steps, 2);
	complete(0);
	ck_assert_uint_eq(posted[2].steps, 3);
}

TEST(a_chain_longer_than_the_queue_is_cut)
{
	start(4, 4);
	submit(0, 1, false);
	submit(1, 10, false);
	ck_assert_uint_eq(nposted, 1);
	complete(0);
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_uint_eq(posted[i].steps, i < 3 ? 4 : 2);
		ck_assert_int_eq(work[1].done, 0);
		complete(0);
	}
	ck_assert_int_eq(work[1].done, 1);
}

TEST(a_chain_that_fails_posts_no_more_and_is_done_once)
{
	start(20, 4);
	submit(0, 12, true);		/* four out, eight to go */
	complete(-EREMOTEIO);
	ck_assert_uint_eq(nposted, 1);
	ck_assert_int_eq(work[0].done, 1);
	ck_assert_int_eq(work[0].status, -EREMOTEIO);
	ck_assert_ptr_null(sq.reads.head);
}

TEST(a_failed_chain_waits_for_all_of_it_that_was_posted)
{
	start(20, 2);
	submit(0, 2, true);
	submit(1, 3, true);
	complete(0);			/* two of the second go out */
	ck_assert_uint_eq(nposted, 2);
	sq.read_room++;			/* one more comes to be free */
	submit(2, 1, false);
	ck_assert_uint_eq(nposted, 4);	/* the third, then the reply */
	complete(-EREMOTEIO);
	ck_assert_int_eq(work[1].done, 0);
	complete(-ECANCELED);
	ck_assert_int_eq(work[1].done, 1);
	ck_assert_int_eq(work[1].status, -EREMOTEIO);
}

TEST(a_chain_that_fails_to_post_is_not_taken)
{
	start(20, 4);
	post_err = -ENOTCONN;
	ck_assert_int_eq(submit(0, 3, false), -ENOTCONN);
	ck_assert_int_eq(work[0].done, 0);
	ck_assert_uint_eq(sq.room, 20);
	ck_assert_ptr_null(sq.sends.head);
}

TEST(parked_chains_fail_with_their_connection)
{
	start(4, 4);
	submit(0, 4, false);
	submit(1, 4, false);
	submit(2, 4, false);
	post_err = -ENOTCONN;
	complete(-ECANCELED);
	ck_assert_int_eq(work[0].done, 1);
	ck_assert_int_eq(work[1].done, 1);
	ck_assert_int_eq(work[2].done, 1);
	ck_assert_int_eq(work[2].status, -ENOTCONN);
}

TEST(a_dead_queue_gives_everything_back_and_takes_nothing)
{
	start(4, 4);
	rpcrdma_sq_set_read_depth(&sq, 0);
	submit(0, 4, true);
	submit(1, 1, true);
	ck_assert_uint_eq(nposted, 0);
	rpcrdma_sq_kill(&sq);
	ck_assert_int_eq(work[0].done, 1);
	ck_assert_int_eq(work[1].done, 1);
	ck_assert_int_eq(work[1].status, -ENOTCONN);
	ck_assert_int_eq(submit(2, 1, false), -ENOTCONN);
	ck_assert_int_eq(work[2].done, 0);
	ck_assert_uint_eq(nposted, 0);
}
