/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which calls are run and which are answered from the cache, over RDMA: on the
 * loop fabric, where a Send that completed has arrived, as on InfiniBand; on
 * the same without that promise, as on iWARP adapters; and on iWARP in user
 * space, which has a socket to ask.
 *
 * With DUP_VERBS=ADDRESS in the environment, on the RDMA device that has that
 * address, and on nothing else.
 */
#include "tests/server/harness.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/drc_rule.h"
#include "tests/server/dup_client.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/fabric/verbs/verbs.h"
#include "transport/rpcrdma/requester.h"
#include "transport/rpcrdma/rpcrdma.h"

enum { LOOP, UNPROVEN, IWARP, KINDS, VERBS = KINDS };

static struct harness srv;
static int kind;
static unsigned fail_nth;	/* of the loop fabric's operations */
static unsigned granted;	/* credits, at most; 0: the default */
static struct fabric fabric;
static struct xprt_listener *listener;
static struct loop *client;
static sem_t connected;
static int ctl;			/* a TCP connection that looks */
static struct dup_call c;

/* A test of each kind of connection: with DUP_VERBS, of that device only. */
#define TEST_EACH(name) \
	TEST_LOOP(name, getenv("DUP_VERBS") ? VERBS : 0, \
		  getenv("DUP_VERBS") ? VERBS + 1 : KINDS)
/* A test that DUP_VERBS leaves out: it needs a socket or the loop fabric. */
#define TEST_ELSEWHERE(name, end) \
	TEST_LOOP(name, 0, getenv("DUP_VERBS") ? 0 : (end))

/* A call under way. */
struct shot {
	struct rpcrdma_request q;
	sem_t	 done;
	uint32_t status;	/* NFS's */
};

static void connect_done(void *arg)
{
	sem_post(&connected);
}

static void posted(void *arg)
{
	sem_post(arg);
}

static void start(int i)
{
	struct harness_config config = { .backend = &fault_vfs_ops };
	struct loop_fabric_options fo = { .fail_nth = fail_nth };
	struct rpcrdma_options ro = { .credits = granted };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	kind = i;
	/* The clients' address is the device's. */
	if (kind == VERBS)
		config.exports = "/mem *(rw,insecure,no_root_squash)\n";
	log_threshold = LOG_LEVEL_ERR;
	fault_init();
	harness_start(&srv, &config);
	harness_root(&srv, "/mem", &dup_dir);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (kind == VERBS) {
		ck_assert_int_eq(inet_pton(AF_INET, getenv("DUP_VERBS"),
					   &addr.sin_addr), 1);
		addr.sin_port = htons(20059);
		ck_assert_int_eq(verbs_fabric_create(&fabric), 0);
	} else if (kind == IWARP) {
		ck_assert_int_eq(iwarp_fabric_create(NULL, &fabric), 0);
	} else {
		addr.sin_port = htons(20049);
		fo.passive.unacknowledged = kind == UNPROVEN;
		ck_assert_int_eq(loop_fabric_create(&fo, &fabric), 0);
	}
	ck_assert_int_eq(rpcrdma_listen(&fabric, &srv.env,
					(struct sockaddr *)&addr, &ro,
					&listener), 0);
	ck_assert_int_eq(loop_create("client", &client), 0);
	ck_assert_int_eq(loop_start(client), 0);
	sem_init(&connected, 0, 0);
	ctl = dup_connect(AF_INET, srv.port, NULL);
}

static void stop(void)
{
	close(ctl);
	listener->ops->stop(listener);
	listener->ops->free(listener);
	harness_stop(&srv);
	loop_stop(client);
	loop_destroy(client);
	if (kind == VERBS)
		verbs_fabric_destroy(&fabric);
	else if (kind == IWARP)
		iwarp_fabric_destroy(&fabric);
	else
		loop_fabric_destroy(&fabric);
}

/* A client with so many calls under way, at most; 0: the default. */
static struct rpcrdma_requester *open_with(unsigned credits)
{
	struct rpcrdma_requester_options ro = { .connected = connect_done,
						.credits = credits };
	struct rpcrdma_requester *r;

	ck_assert_int_eq(rpcrdma_requester_create(&fabric,
			(struct sockaddr *)&listener->local, client, &ro, &r),
			0);
	wait_sem(&connected);
	return r;
}

static struct rpcrdma_requester *open_one(void)
{
	return open_with(0);
}

static void shot_done(struct rpcrdma_request *q)
{
	struct shot *s = container_of(q, struct shot, q);

	if (q->status == 0 && q->reply_len >= 28) {
		memcpy(&s->status, q->reply_data + 24, 4);
		s->status = be32toh(s->status);
	}
	sem_post(&s->done);
}

static void shoot_call(struct rpcrdma_requester *r, struct shot *s,
		       const struct dup_call *call)
{
	memset(s, 0, sizeof(*s));
	sem_init(&s->done, 0, 0);
	s->q.call = call->buf + 4;
	s->q.call_len = (uint32_t)xdr_out_len(&call->out) - 4;
	s->q.done = shot_done;
	rpcrdma_requester_call(r, &s->q);
}

static void shoot(struct rpcrdma_requester *r, struct shot *s)
{
	shoot_call(r, s, &c);
}

/* Waits for the answer; its status. */
static uint32_t hit(struct shot *s)
{
	wait_sem(&s->done);
	ck_assert_int_eq(s->q.status, 0);
	return s->status;
}

static uint32_t status(struct rpcrdma_requester *r)
{
	struct shot s;

	shoot(r, &s);
	return hit(&s);
}

static uint64_t counted(const char *name)
{
	return stats_sum_by_name(name);
}

static unsigned connections(void)
{
	return listener->ops->count(listener);
}

/* The peer's end of the one iWARP connection. */
static int iwarp_socket(void)
{
	struct sockaddr_in peer, *at = (void *)&listener->local;

	for (int fd = 3; fd < 1000; fd++) {
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
		    peer.sin_port == at->sin_port)
			return fd;
	}
	ck_abort_msg("no socket");
}

/* ---- new calls */

/* With one credit each call proves the reply before it, on any device. */
TEST_EACH(new_calls_with_the_xids_of_old_ones_are_done)
{
	struct rpcrdma_requester *r = NULL;

	start(_i);
	for (int i = 0; i < 40; i++) {
		if (i % 4 == 0)
			r = open_with(1);
		dup_create(&c, 4, "f", DUP_GUARDED);
		ck_assert_uint_eq(status(r), NFS3_OK);
		dup_name(&c, 5, NFSPROC3_REMOVE, "f");
		ck_assert_uint_eq(status(r), NFS3_OK);
		ck_assert(!dup_exists(ctl, "f"));
		/* The last word of a client before it goes. */
		dup_getattr(&c, 6, &dup_dir);
		ck_assert_uint_eq(status(r), NFS3_OK);
		if (i % 4 == 3) {
			rpcrdma_requester_destroy(r);
			EVENTUALLY(connections() == 0);
		}
	}
	ck_assert_uint_eq(counted("drc_hits"), 0);
	ck_assert_uint_ge(counted("drc_new_taken"), 60);
	ck_assert_uint_gt(counted("drc_new_closed"), 0);
	stop();
}

/* A is alive, and its client has the reply, as one credit proves. */
TEST_EACH(a_call_sent_again_on_another_connection_runs_again)
{
	struct rpcrdma_requester *one, *two;

	start(_i);
	one = open_with(1);
	two = open_with(1);
	dup_create(&c, 4, "f", DUP_GUARDED);
	ck_assert_uint_eq(status(one), NFS3_OK);
	dup_getattr(&c, 6, &dup_dir);
	ck_assert_uint_eq(status(one), NFS3_OK);
	dup_create(&c, 4, "f", DUP_GUARDED);
	ck_assert_uint_eq(status(two), NFS3ERR_EXIST);
	rpcrdma_requester_destroy(one);
	rpcrdma_requester_destroy(two);
	stop();
}

/* ---- calls that are sent again */

static void is_not_run_again(void)
{
	struct rpcrdma_requester *r = open_one();
	uint64_t before = counted("drc_hits");

	ck_assert_uint_eq(status(r), NFS3_OK);
	ck_assert_uint_eq(counted("drc_hits"), before + 1);
	rpcrdma_requester_destroy(r);
}

/* c is a RENAME, which runs until FAULT_RENAME is let go; its connection is
 * gone. */
static void lose_connection_in_rename(void)
{
	struct rpcrdma_requester *r = open_one();
	struct shot s;

	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	fault_hold(FAULT_RENAME, true);
	shoot(r, &s);
	EVENTUALLY(fault_calls(FAULT_RENAME) == 1);
	rpcrdma_requester_destroy(r);
	wait_sem(&s.done);
}

/* The connection goes while the call runs, and its reply can't be sent. */
TEST_EACH(sent_again_when_the_reply_found_no_connection)
{
	start(_i);
	lose_connection_in_rename();
	EVENTUALLY(counted("rdma_closed_by_peer") == 1 ||
		   counted("rdma_errors") == 1);
	fault_hold(FAULT_RENAME, false);
	EVENTUALLY(dup_exists(ctl, "b"));
	EVENTUALLY(connections() == 0);
	is_not_run_again();
	stop();
}

TEST_EACH(sent_again_while_it_runs)
{
	struct rpcrdma_requester *r;
	struct shot s;

	start(_i);
	lose_connection_in_rename();
	r = open_one();
	shoot(r, &s);
	EVENTUALLY(counted("drc_in_progress") == 1);
	fault_hold(FAULT_RENAME, false);
	ck_assert_uint_eq(hit(&s), NFS3_OK);
	ck_assert_uint_eq(fault_calls(FAULT_RENAME), 1);
	rpcrdma_requester_destroy(r);
	stop();
}

/* RFC 8166 section 4.5.4: a reply that can't be sent ends the connection. */
TEST_ELSEWHERE(sent_again_when_the_reply_could_not_be_sent, IWARP)
{
	struct rpcrdma_requester *r;
	struct shot s;

	fail_nth = 2;		/* behind the call */
	start(_i);
	r = open_one();
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	shoot(r, &s);
	wait_sem(&s.done);
	ck_assert_int_ne(s.q.status, 0);
	ck_assert(dup_exists(ctl, "b"));
	EVENTUALLY(connections() == 0);
	rpcrdma_requester_destroy(r);
	is_not_run_again();
	stop();
}

/* ---- load */

#define CLIENTS		4
#define AT_ONCE		4
#define ROUNDS		60
#define VERBS_ROUNDS	24	/* a connection takes longer */

/* One name, of which a client does one thing after the other. */
struct name {
	struct dup_call	 call;
	struct shot	 shot;
	unsigned	 step;
	bool		 due;		/* no answer to @call yet */
	char		 text[2][24];
};

static atomic_uint again;

/* CREATE GUARDED, RENAME and REMOVE, round and round: each fails if it ran
 * twice, or not at all. */
static void next_call(struct name *n, uint32_t xid)
{
	switch (n->step++ % 3) {
	case 0:
		dup_create(&n->call, xid, n->text[0], DUP_GUARDED);
		break;
	case 1:
		dup_rename(&n->call, xid, n->text[0], n->text[1]);
		break;
	default:
		dup_name(&n->call, xid, NFSPROC3_REMOVE, n->text[1]);
		break;
	}
	n->due = true;
}

/* A separate connection, which only its owner waits for. */
static struct rpcrdma_requester *open_for(sem_t *sem)
{
	struct rpcrdma_requester_options ro = { .connected = posted,
						.arg = sem };
	struct rpcrdma_requester *r;

	ck_assert_int_eq(rpcrdma_requester_create(&fabric,
			(struct sockaddr *)&listener->local, client, &ro, &r),
			0);
	wait_sem(sem);
	return r;
}

/* The answers that came count; the rest is sent again on the next one. */
static void collect(struct name *n)
{
	wait_sem(&n->shot.done);
	if (n->shot.q.status == 0) {
		ck_assert_uint_eq(n->shot.status, NFS3_OK);
		n->due = false;
	} else {
		atomic_fetch_add(&again, 1);
	}
}

/* Calls were sent again, and found their replies. */
static bool lost_enough(void)
{
	return atomic_load(&again) > 0 &&
		counted("drc_hits") + counted("drc_answered") > 0;
}

static void work_and_lose(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	unsigned rounds = kind == VERBS ? VERBS_ROUNDS : ROUNDS;
	uint32_t xid = me << 24;
	struct name *names = calloc(AT_ONCE, sizeof(*names));
	struct rpcrdma_requester *r;
	sem_t sem;

	sem_init(&sem, 0, 0);
	for (unsigned i = 0; i < AT_ONCE; i++)
		for (unsigned k = 0; k < 2; k++)
			snprintf(names[i].text[k], sizeof(names[i].text[k]),
				 "%u.%u.%u", me, i, k);
	for (unsigned round = 0; round < rounds || !lost_enough(); round++) {
		r = open_for(&sem);
		/* Some whole turns, and one that is cut off. */
		for (unsigned turn = 0; turn <= round % 4; turn++) {
			for (unsigned i = 0; i < AT_ONCE; i++) {
				if (!names[i].due)
					next_call(&names[i], ++xid);
				shoot_call(r, &names[i].shot, &names[i].call);
			}
			if (turn == round % 4) {
				/* At any moment of an exchange. */
				pause_on_purpose((me * 7 + round * 13) % 50 *
						 20);
				rpcrdma_requester_destroy(r);
			}
			for (unsigned i = 0; i < AT_ONCE; i++)
				collect(&names[i]);
		}
	}
	sem_destroy(&sem);
	free(names);
}

TEST_EACH(connections_lost_under_load_run_nothing_twice)
{
	pthread_t thread[CLIENTS];

	/* However late the server learns of a reset: on iWARP in user space a
	 * reply can lie unread in the socket. */
	atomic_store(&drc_recent_ms, 10000);
	start(_i);
	for (unsigned i = 0; i < CLIENTS; i++)
		ck_assert_int_eq(thread_start(&thread[i], "client",
					      work_and_lose,
					      (void *)(uintptr_t)(i + 1)), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(thread[i], NULL);
	stop();
}

/* A Send completed, and nothing was heard after it. */
TEST_ELSEWHERE(on_an_iwarp_adapter_a_completed_send_promises_nothing, 1)
{
	struct rpcrdma_requester *r;

	start(UNPROVEN);
	r = open_one();
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	ck_assert_uint_eq(status(r), NFS3_OK);
	rpcrdma_requester_destroy(r);
	EVENTUALLY(connections() == 0);
	is_not_run_again();
	stop();
}

/*
 * The reply to RENAME is the first of its connection.  The client might have
 * sent the next calls before it came, as many as its credits let it: as it asks
 * for, and as it is granted (RFC 8166 section 3.3.1).  The call beyond them
 * proves that the client took the reply.
 */
TEST_ELSEWHERE(on_an_iwarp_adapter_credits_prove_a_reply, 4)
{
	unsigned asked = _i & 1 ? 4 : 0, beyond = _i & 2 ? 1 : 0;
	struct rpcrdma_requester *r;

	granted = asked ? 0 : 4;
	start(UNPROVEN);
	r = open_with(asked);
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	ck_assert_uint_eq(status(r), NFS3_OK);
	dup_getattr(&c, 10, &dup_dir);
	for (unsigned i = 0; i < 3 + beyond; i++)
		ck_assert_uint_eq(status(r), NFS3_OK);
	rpcrdma_requester_destroy(r);
	EVENTUALLY(connections() == 0);
	dup_rename(&c, 9, "a", "b");
	if (beyond) {
		r = open_with(asked);
		ck_assert_uint_eq(status(r), NFS3ERR_NOENT);
		ck_assert_uint_eq(counted("drc_new_closed"), 1);
		rpcrdma_requester_destroy(r);
	} else {
		is_not_run_again();
	}
	stop();
}

/* The reply went out and nothing acknowledged it: then the socket is reset, or
 * it is half-open. */
TEST_ELSEWHERE(over_user_space_iwarp_the_socket_is_asked, 2)
{
	struct linger now = { 1, 0 };
	struct rpcrdma_requester *r, *two;
	struct shot s;
	int fd;

	start(IWARP);
	r = open_one();
	fd = iwarp_socket();
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	dup_deafen(fd);
	shoot(r, &s);
	EVENTUALLY(dup_exists(ctl, "b"));
	if (_i) {
		ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
					    sizeof(now)), 0);
		shutdown(fd, SHUT_RD);
		rpcrdma_requester_destroy(r);
		EVENTUALLY(connections() == 0);
		is_not_run_again();
	} else {
		two = open_one();
		ck_assert_uint_eq(status(two), NFS3_OK);
		ck_assert_uint_eq(counted("drc_again_silent"), 1);
		rpcrdma_requester_destroy(two);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		shutdown(fd, SHUT_RD);
		rpcrdma_requester_destroy(r);
	}
	wait_sem(&s.done);
	stop();
}
