/* SPDX-License-Identifier: BSD-2-Clause */
/* Credits: the grant grows and shrinks, and no message misses a Receive. */
#include <endian.h>
#include <string.h>

#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

enum { FIRST = 4, MOST = 64, ENOUGH = 20000 };

static struct rig rig;
static struct rpcrdma_budget budget;

static uint64_t stat(const char *name)
{
	return stats_sum_by_name(name);
}

/* A peer that keeps to the grant it took last. */
struct user {
	struct peer peer;
	uint32_t credits;
	uint32_t out;		/* calls in progress */
	uint32_t xid;
};

static void open_rig(uint32_t seed, size_t memory)
{
	struct rig_options o = {
		.fabric.seed = seed, .async = seed & 1,
		.rdma = { .first_credits = FIRST, .credits = MOST,
			  .budget = &budget },
	};

	budget = (struct rpcrdma_budget){ .max = memory };
	rig_open(&rig, &o);
}

/* The memory of a connection that is for its first calls. */
static size_t first_memory(void)
{
	const struct rpcrdma_options o = { .first_credits = FIRST,
					   .credits = MOST };

	return rpcrdma_conn_bytes(&o, 0);
}

static void close_rig(void)
{
	struct loop_fabric_counts counts;

	rig_count(&rig, &counts);
	ck_assert_uint_eq(counts.rnr, 0);
	rig_close(&rig);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_uint_eq(budget.conns, 0);
	ck_assert_uint_eq(budget.granted, 0);
}

static void open_user(struct user *u)
{
	memset(u, 0, sizeof(*u));
	peer_open(&u->peer, &rig, NULL);
	peer_wait_up(&u->peer);
	u->credits = 1;
}

static void ask(struct user *u, uint32_t op)
{
	uint32_t asked = htobe32(MOST);

	peer_begin(&u->peer, ++u->xid, 1, RPCRDMA_MSG);
	memcpy(u->peer.build + 8, &asked, sizeof(asked));
	peer_put_zeros(&u->peer, 3);
	peer_put_call(&u->peer, u->xid, op, 0);
	peer_send(&u->peer);
	u->out++;
}

static void take(struct user *u)
{
	peer_take(&u->peer);
	ck_assert_uint_eq(u->peer.hdr.proc, RPCRDMA_MSG);
	ck_assert_uint_le(u->peer.hdr.credits, MOST);
	u->credits = u->peer.hdr.credits;
	u->out--;
}

/* Keeps as many calls in progress as its credits allow, but not more than
 * @most, and takes the next reply. */
static void use(struct user *u, uint32_t most)
{
	while (u->out < MIN(u->credits, most))
		ask(u, OP_SUM);
	take(u);
}

static void take_all(struct user *u)
{
	while (u->out > 0)
		take(u);
}

/* Little use: less than a quarter of the grant, even while Sends that the peer
 * has are not done. */
static void use_little(struct user *u)
{
	use(u, MAX(u->credits / 8, 1u));
}

static bool are_held(void *arg)
{
	return rig_held(&rig) == *(unsigned *)arg;
}

/* Uses all credits at once. */
static void fill(struct user *u)
{
	unsigned n = u->credits - u->out;

	while (u->out < u->credits)
		ask(u, OP_HOLD);
	wait_until(are_held, &n);
}

static void drain(struct user *u)
{
	rig_release(&rig);
	take_all(u);
}

static void grow(struct user *u)
{
	while (u->credits < MOST) {
		fill(u);
		drain(u);
	}
}

TEST(a_grant_grows_as_it_is_used_up_to_its_bound)
{
	static const uint32_t granted[] = { 4, 8, 16, 32, 64, 64, 64 };
	uint64_t grown = stat("rdma_grants_grown");
	struct user u;

	open_rig(0, 64 << 20);
	open_user(&u);
	for (size_t i = 0; i < ARRAY_SIZE(granted); i++) {
		fill(&u);
		drain(&u);
		ck_assert_uint_eq(u.credits, granted[i]);
		ck_assert_uint_eq(budget.granted, granted[i]);
	}
	ck_assert_uint_eq(stat("rdma_grants_grown"), grown + 4);
	peer_close(&u.peer);
	close_rig();
}

TEST(a_grant_does_not_grow_beyond_what_is_asked_for)
{
	struct user u;

	open_rig(0, 64 << 20);
	open_user(&u);
	for (int i = 0; i < 10; i++) {
		while (u.out < u.credits) {
			peer_call(&u.peer, ++u.xid, OP_HOLD, 0);	/* 32 */
			u.out++;
		}
		wait_until(are_held, &u.out);
		drain(&u);
	}
	ck_assert_uint_eq(u.credits, 32);
	peer_close(&u.peer);
	close_rig();
}

/* Few calls come at a time until nothing is left of the growth. */
static void shrink(struct user *u, size_t memory)
{
	int i;

	for (i = 0; i < ENOUGH && budget.used > memory; i++)
		use_little(u);
	take_all(u);
	ck_assert_int_lt(i, ENOUGH);
	ck_assert_uint_eq(u->credits, FIRST);
	ck_assert_uint_eq(budget.granted, FIRST);
}

TEST(a_grant_that_is_not_used_shrinks_and_gives_its_memory_back)
{
	uint64_t shrunk = stat("rdma_grants_shrunk");
	uint64_t settled = stat("rdma_grants_settled");
	struct loop_fabric_counts before, after;
	struct user u;
	size_t memory;

	open_rig(0, 64 << 20);
	open_user(&u);
	use(&u, 1);
	memory = budget.used;
	rig_count(&rig, &before);
	for (int i = 0; i < 3; i++) {
		grow(&u);
		ck_assert_uint_gt(budget.used, memory + 9 * first_memory());
		shrink(&u, memory);
	}
	ck_assert_uint_eq(stat("rdma_grants_shrunk"), shrunk + 3 * 4);
	ck_assert_uint_eq(stat("rdma_grants_settled"), settled + 3 * 4);
	rig_count(&rig, &after);
	ck_assert_uint_eq(after.passive_bytes, before.passive_bytes);
	peer_close(&u.peer);
	close_rig();
}

/* Until the next reply tells of fewer. */
static void shrink_once(struct user *u)
{
	uint32_t had = u->credits;

	for (int i = 0; i < ENOUGH && u->credits == had; i++)
		use_little(u);
	take_all(u);
	ck_assert_uint_eq(u->credits, had / 2);
}

TEST(calls_sent_before_the_lower_grant_was_seen_are_served)
{
	struct user u;

	open_rig(0, 64 << 20);
	open_user(&u);
	grow(&u);
	shrink_once(&u);
	u.credits = MOST;		/* as if that reply were on its way */
	fill(&u);
	drain(&u);
	peer_check_alive(&u.peer);
	peer_close(&u.peer);
	close_rig();
}

TEST(a_peer_that_ignores_a_lower_grant_loses_its_connection_and_no_other)
{
	uint64_t settled = stat("rdma_grants_settled") + 1;
	uint64_t overruns = stat("rdma_overruns");
	struct user good, bad;

	open_rig(0, 64 << 20);
	open_user(&good);
	open_user(&bad);
	grow(&bad);
	shrink_once(&bad);
	for (int i = 0; i < ENOUGH && stat("rdma_grants_settled") < settled;
	     i++)
		use_little(&bad);
	for (int i = 0; i < MOST; i++)
		ask(&bad, OP_HOLD);
	peer_wait_down(&bad.peer);
	ck_assert_uint_gt(stat("rdma_overruns"), overruns);
	peer_check_alive(&good.peer);
	rig_release(&rig);			/* undelivered replies */
	peer_close(&bad.peer);
	peer_close(&good.peer);
	close_rig();
}

/* A grant that was lowered returns to its old value if it is used again before
 * the peer is known to keep to it. */
TEST(a_grant_that_is_used_again_at_once_is_as_it_was)
{
	uint64_t settled = stat("rdma_grants_settled");
	struct user u;

	open_rig(0, 64 << 20);
	open_user(&u);
	grow(&u);
	shrink_once(&u);
	fill(&u);
	drain(&u);
	ck_assert_uint_eq(u.credits, MOST);
	ck_assert_uint_eq(stat("rdma_grants_settled"), settled);
	peer_close(&u.peer);
	close_rig();
}

/* Full use and light use in turn, with all credits in use at each moment of the
 * first, in many orders of completions. */
TEST(no_message_misses_a_receive_while_the_grant_goes_up_and_down)
{
	for (uint32_t seed = 1; seed <= 3; seed++) {
		uint64_t shrunk = stat("rdma_grants_shrunk");
		struct user u;

		open_rig(seed, 64 << 20);
		open_user(&u);
		for (uint32_t i = 0; i < 1600 || (i < ENOUGH &&
			stat("rdma_grants_shrunk") == shrunk); i++)
			use(&u, i % (680 + 20 * seed) < 90 ? MOST :
						MAX(u.credits / 8, 1u));
		take_all(&u);
		ck_assert_uint_gt(stat("rdma_grants_shrunk"), shrunk);
		peer_close(&u.peer);
		close_rig();
	}
}

/* The end comes at any moment of a change, with calls in all stores. */
TEST(a_connection_may_end_while_its_grant_changes)
{
	for (uint32_t n = 1; n < 6; n++) {
		struct user u;

		open_rig(n, 64 << 20);
		open_user(&u);
		grow(&u);
		for (uint32_t i = 0; i < 171 * n; i++)
			use_little(&u);
		take_all(&u);
		fill(&u);
		peer_close(&u.peer);
		rig_release(&rig);
		close_rig();
	}
}

TEST(busy_clients_share_the_memory_that_one_had_before)
{
	uint64_t limited = stat("rdma_grants_limited");
	struct user u[2];
	size_t one;

	/* Each has 4 credits at first; the memory suffices for 80, besides the
	 * fabric's, and 60 are for grants. */
	open_rig(0, 64 << 20);
	open_user(&u[0]);
	one = budget.used;
	peer_close(&u[0].peer);
	close_rig();
	open_rig(0, 20 * first_memory() + 2 * (one - first_memory()));
	open_user(&u[0]);
	open_user(&u[1]);
	for (int i = 0; i < 20; i++) {
		fill(&u[0]);
		drain(&u[0]);
	}
	ck_assert_uint_gt(u[0].credits, 30);
	for (int i = 0; i < 100; i++) {
		fill(&u[i & 1]);
		drain(&u[i & 1]);
		ck_assert_uint_le(budget.used, budget.max);
	}
	ck_assert_uint_ge(u[0].credits, 20);
	ck_assert_uint_ge(u[1].credits, 20);
	ck_assert_uint_gt(stat("rdma_grants_limited"), limited);
	peer_close(&u[0].peer);
	peer_close(&u[1].peer);
	close_rig();
}

static void get_info(void *arg)
{
	void **a = arg;

	rpcrdma_requester_info(a[0], a[1]);
}

static struct rpcrdma_requester_info info_of(struct rpcrdma_requester *r)
{
	struct rpcrdma_requester_info info;
	void *arg[] = { r, &info };

	loop_call(rig.client, get_info, arg);
	return info;
}

/* Has the requester send all its calls; @held of them go out at first. */
static void exchange_all(struct rpcrdma_requester *r, unsigned held)
{
	static struct exchange x[MOST];

	for (uint32_t i = 0; i < MOST; i++) {
		exchange_init(&x[i], i, OP_HOLD, 0);
		exchange_start(r, &x[i]);
	}
	wait_until(are_held, &held);
	ck_assert_uint_eq(info_of(r).in_flight, held);
	for (uint32_t i = 0; i < MOST; i++) {
		while (sem_trywait(&x[i].done) < 0)
			rig_release(&rig);
		sem_post(&x[i].done);
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		exchange_fini(&x[i]);
	}
}

TEST(a_requester_follows_the_grant_up_and_down)
{
	struct rpcrdma_requester_options ro = { .credits = MOST };
	struct rpcrdma_requester *r;

	open_rig(0, 64 << 20);
	rig_connect(&rig, &ro, &r);
	exchange_all(r, 1);
	for (int i = 0; i < 100 && info_of(r).credits < MOST; i++)
		exchange_all(r, info_of(r).credits);
	exchange_all(r, MOST);
	for (int i = 0; i < ENOUGH && info_of(r).credits > FIRST; i++) {
		struct exchange x;

		exchange_init(&x, 1, OP_SUM, 0);
		exchange_start(r, &x);
		ck_assert_int_eq(exchange_wait(&x), 0);
		exchange_fini(&x);
	}
	exchange_all(r, FIRST);
	rpcrdma_requester_destroy(r);
	close_rig();
}
