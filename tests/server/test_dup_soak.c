/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that send everything they can twice, while other clients write as
 * fast as they can: no call is done twice, and none is lost.
 *
 * Each client has its own names and knows which of them exist.  Every call it
 * makes has to succeed just once: done twice it would say EXIST or NOENT;
 * answered and not done, the next one would, or the look at all names.
 *
 * DUP_OPERATIONS in the environment is the number of calls in all.
 */
#include "tests/server/harness.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/drc_rule.h"
#include "tests/server/dup_client.h"
#include "tests/unit/runner.h"

#define CLIENTS		6
#define WRITERS		2
#define NAMES		12
#define EXPORTS		"/mem 127.0.0.0/8(rw,insecure,no_root_squash)\n"

enum xids { CONSTANT, COUNTER, RANDOM, XIDS };

struct client {
	unsigned	 id;
	enum xids	 xids;
	uint32_t	 xid;
	uint64_t	 random;
	char		 addr[16];
	int		 fd;
	bool		 fresh;		/* nothing was answered on it */
	struct nfs3_fh base;		/* of the file that has links */
	struct dup_call	 call;
	/* The state of each name: free, a file, a link to base, a directory. */
	enum { NONE, FILE_, LINK, DIR_ } what[NAMES];
	unsigned	 operations;
};

static struct harness srv;
static atomic_bool writing;
static unsigned total = 3000;

static uint32_t pick(struct client *cl, uint32_t n)
{
	cl->random = cl->random * 6364136223846793005ull +
		     1442695040888963407ull;
	return (uint32_t)(cl->random >> 33) % n;
}

static void name_of(const struct client *cl, unsigned i, char *name)
{
	snprintf(name, 32, "client%u-%u", cl->id, i);
}

static int open_one(const struct client *cl)
{
	return dup_connect(AF_INET, srv.port, cl->addr);
}

static uint32_t next_xid(struct client *cl)
{
	switch (cl->xids) {
	case CONSTANT:
		return 5;
	case COUNTER:
		return cl->xid++;
	default:
		return pick(cl, UINT32_MAX);
	}
}

/* A connection as of a new program: starts to count again. */
static void begin(struct client *cl)
{
	cl->fd = open_one(cl);
	cl->fresh = true;
	cl->xid = 1;
}

/* ---- the calls */

static unsigned some(struct client *cl, bool exists)
{
	unsigned i = pick(cl, NAMES);

	for (unsigned k = 0; k < NAMES; k++, i++)
		if ((cl->what[i % NAMES] != NONE) == exists)
			return i % NAMES;
	return NAMES;
}

static void make_new(struct client *cl, unsigned i)
{
	char name[32];

	name_of(cl, i, name);
	cl->what[i] = FILE_ + pick(cl, 3);
	if (cl->what[i] == FILE_)
		dup_create(&cl->call, next_xid(cl), name, DUP_GUARDED);
	else if (cl->what[i] == LINK)
		dup_link(&cl->call, next_xid(cl), &cl->base, name);
	else
		dup_mkdir(&cl->call, next_xid(cl), name);
}

/* Fills in the next call, and its expected result. */
static void choose(struct client *cl)
{
	unsigned from = some(cl, true), to = some(cl, false);
	char name[32], other[32];
	uint32_t kind = pick(cl, 3);

	if (from == NAMES || (to != NAMES && kind == 0)) {
		make_new(cl, to);
		return;
	}
	name_of(cl, from, name);
	if (to == NAMES || kind == 1) {
		dup_name(&cl->call, next_xid(cl), cl->what[from] == DIR_ ?
			 NFSPROC3_RMDIR : NFSPROC3_REMOVE, name);
	} else {
		name_of(cl, to, other);
		dup_rename(&cl->call, next_xid(cl), name, other);
		cl->what[to] = cl->what[from];
	}
	cl->what[from] = NONE;
}

static void report(const struct stat_counter *c, uint64_t sum, void *arg)
{
	if (strncmp(c->name, "drc_", 4) == 0 && sum)
		printf("  %s %llu\n", c->name, (unsigned long long)sum);
}

/* ---- how it is sent */

static void take_answer(struct client *cl)
{
	ck_assert_uint_eq(dup_status(cl->fd, &cl->call), NFS3_OK);
	cl->fresh = false;
}

static void close_orderly(struct client *cl)
{
	close(cl->fd);
	begin(cl);
}

/*
 * A client that resets a connection on which it just read an answer, and uses
 * that xid again, can't be told from one that didn't read it: whose xids are
 * not random begins with a new one.
 */
static void make_fresh(struct client *cl)
{
	uint32_t xid = cl->xid;

	if (cl->fresh || cl->xids == RANDOM)
		return;
	close_orderly(cl);
	cl->xid = xid;
}

/* The connection is lost in some way before the answer is read. */
static void lose(struct client *cl, bool reset)
{
	uint32_t xid = cl->xid;

	dup_send(cl->fd, &cl->call);
	/* The call has come by then, was executed or answered: by chance. */
	pause_on_purpose(pick(cl, 4) * 100);
	if (reset)
		dup_reset(cl->fd);
	else
		close(cl->fd);
	begin(cl);
	cl->xid = xid;
}

/* Our side of the connection is gone, and the server does not hear of it. */
static void go_silent(struct client *cl)
{
	uint32_t xid = cl->xid;
	int old = cl->fd;

	dup_deafen(old);
	dup_send(old, &cl->call);
	/* Clients wait longer before they give up. */
	pause_on_purpose(60000);
	begin(cl);
	cl->xid = xid;
	dup_send(cl->fd, &cl->call);
	take_answer(cl);
	dup_reset(old);
}

static void send_somehow(struct client *cl)
{
	uint32_t how = pick(cl, 20);

	if (how < 8) {
		dup_send(cl->fd, &cl->call);
		take_answer(cl);
		if (how == 0)
			close_orderly(cl);
		return;
	}
	make_fresh(cl);
	if (how == 8 && pick(cl, 8) == 0) {
		go_silent(cl);
		return;
	}
	for (uint32_t again = 1 + pick(cl, 2); again > 0; again--)
		lose(cl, how % 2);
	dup_send(cl->fd, &cl->call);
	take_answer(cl);
}

/* ---- the outcome */

static void check_names(struct client *cl)
{
	int fd = open_one(cl);
	unsigned links = 1;
	struct dup_reply r;
	struct dup_call c;
	char name[32];

	for (unsigned i = 0; i < NAMES; i++) {
		name_of(cl, i, name);
		links += cl->what[i] == LINK;
		ck_assert_uint_eq(dup_lookup(fd, name, NULL),
				  cl->what[i] == NONE ? NFS3ERR_NOENT :
							NFS3_OK);
	}
	dup_getattr(&c, 1, &cl->base);
	dup_send(fd, &c);
	dup_take(fd, &r);
	ck_assert_uint_eq(r.status, NFS3_OK);
	xdr_get_u64(&r.in);	/* type, mode */
	ck_assert_uint_eq(xdr_get_u32(&r.in), links);
	close(fd);
}

static bool enough_repeated(void)
{
	return stats_sum_by_name("drc_hits") > total / 20;
}

/* Loopback keeps the order of packets from one processor, as a network card
 * keeps the order of one connection; a FIN from another processor can overtake
 * data. */
static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(here), &here), 0);
}

static void run_client(void *arg)
{
	struct client *cl = arg;
	char name[32];

	stay_here();
	snprintf(cl->addr, sizeof(cl->addr), "127.0.1.%u", cl->id + 1);
	cl->random = cl->id * 77 + 1;
	begin(cl);
	snprintf(name, sizeof(name), "base%u", cl->id);
	dup_create(&cl->call, 0x30000000, name, DUP_GUARDED);
	ck_assert_uint_eq(dup_do(cl->fd, &cl->call), NFS3_OK);
	ck_assert_uint_eq(dup_lookup(cl->fd, name, &cl->base), NFS3_OK);
	for (unsigned i = 0; i < total / CLIENTS || !enough_repeated(); i++) {
		choose(cl);
		send_somehow(cl);
		if (i % 64 == 0)
			check_names(cl);
	}
	check_names(cl);
	close(cl->fd);
}

/* ---- writers meanwhile, from the first clients' addresses */

static void run_writer(void *arg)
{
	static const uint8_t data[64];
	struct client *w = arg;
	struct dup_reply r;
	char name[32];

	snprintf(w->addr, sizeof(w->addr), "127.0.1.%u", w->id + 1);
	w->fd = open_one(w);
	snprintf(name, sizeof(name), "written%u", w->id);
	dup_create(&w->call, 1, name, DUP_GUARDED);
	ck_assert_uint_eq(dup_do(w->fd, &w->call), NFS3_OK);
	ck_assert_uint_eq(dup_lookup(w->fd, name, &w->base), NFS3_OK);
	while (atomic_load(&writing)) {
		for (int i = 0; i < 64; i++) {
			dup_write(&w->call, w->xid++, &w->base, data,
				  sizeof(data));
			dup_send(w->fd, &w->call);
		}
		for (int i = 0; i < 64; i++) {
			dup_take(w->fd, &r);
			ck_assert_uint_eq(r.status, NFS3_OK);
		}
		w->operations += 64;
	}
	close(w->fd);
}

static void setup(void)
{
	/* After a reset, the replies of drc_recent_ms before it stay in the
	 * cache. */
	struct harness_config config = { .exports = EXPORTS,
					 .reply_bytes = 64u << 20 };

	log_threshold = LOG_LEVEL_ERR;
	/* However late the server learns of a client's reset.  No client resets
	 * a connection on which it read an answer, so this answers none of its
	 * new calls. */
	atomic_store(&drc_recent_ms, 20000);
	harness_start(&srv, &config);
	harness_root(&srv, "/mem", &dup_dir);
}

static void teardown(void)
{
	harness_stop(&srv);
}

TEST_CASE(.setup = setup, .teardown = teardown, .timeout = 600);

TEST(nothing_is_done_twice_and_nothing_is_lost)
{
	const char *wanted = getenv("DUP_OPERATIONS");
	static struct client clients[CLIENTS], writers[WRITERS];
	pthread_t threads[CLIENTS], wthreads[WRITERS];
	unsigned written = 0;

	if (wanted)
		total = (unsigned)atoi(wanted);
	atomic_store(&writing, true);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].id = i;
		ck_assert_int_eq(thread_start(&wthreads[i], "writer",
					      run_writer, &writers[i]), 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i].id = i;
		clients[i].xids = i % XIDS;
		ck_assert_int_eq(thread_start(&threads[i], "client",
					      run_client, &clients[i]), 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&writing, false);
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(wthreads[i], NULL);
		written += writers[i].operations;
	}
	ck_assert_uint_eq(stats_sum_by_name("drc_lost"), 0);
	printf("%u operations beside %u WRITEs\n", total, written);
	stats_walk(report, NULL);
}
