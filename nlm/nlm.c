/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nlm - the program's procedures and versions, its thread, start and end.
 *
 * A client can send a call before its last one has ended, and each can wait for
 * something else.  So the calls of an owner that change something run one at a
 * time, in the order in which they came (RPC_PROC_ORDERED); TEST doesn't wait
 * for them.
 *
 * Replies of procedures that change something are remembered (RPC_PROC_CACHED).
 * Each would leave the same locks if it ran twice in a row; but a repeated LOCK
 * that runs after the UNLOCK behind it leaves a lock that no process knows of,
 * and a late UNLOCK takes away a newer lock.  A copy of a call that comes over
 * another transport is another call: no client sends one.  The asynchronous
 * forms are not remembered: their client sends again because it has not heard
 * of the result, which a remembered reply would not tell it.
 */
#include "nlm/proc.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/log.h"

#define MAX_HOSTS	4096u
#define MAX_CLIENT_HOSTS 64u
#define MAX_LOCKS	65536u
#define MAX_HOST_LOCKS	8192u
#define MAX_WAITS	8192u
#define MAX_HOST_WAITS	1024u
/* A half and a quarter of all: clients that fill one file leave room in others.
 * And an UNLOCK of bytes for which many wait tries all of these. */
#define MAX_FILE_LOCKS	32768u
#define MAX_FILE_WAITS	2048u
/* A quarter of the suspended calls at most: if the disk with the status
 * monitor's list hangs, other programs have the rest. */
#define MAX_ASKING	256u
/* As long as a busy rpc.statd has for its answer. */
#define ASKING_MS	20000u
/* A quarter of the sockets that the client has: each result for a host that
 * does not say where its lock manager is takes one. */
#define MAX_ANSWERING	32u
#define ANSWER_MS	3000u
#define CALL_BACK_MS	1000u
#define IDLE_MS		120000u
/* The pause between two sweeps: waiters try again for locks that others than
 * clients hold, and locks of exports that have gone are dropped. */
#define SWEEP_MS	1000u

#define ARGS	.args_size = sizeof(struct nlm_args), \
		.res_size = sizeof(struct nlm_res), \
		.state_zeroed = sizeof(struct nlm_op)

#define ROW(n, get, put, fl, last, ...) { \
		.name = n, .decode = get, .encode = put, .end = last, \
		.flags = fl, ARGS, \
		.steps = { nlm_find_export, rpc_need_worker, __VA_ARGS__ }, \
	}
#define TAKES		RPC_PROC_ORDERED
#define GIVES		(RPC_PROC_ORDERED | RPC_PROC_GIVES_BACK)
#define SYNC(n, get, put, fl, ...) \
	ROW(n, get, put, RPC_PROC_CACHED | (fl), nlm_end, __VA_ARGS__)
#define ASYNC(n, get, fl, ...) ROW(n, get, NULL, fl, nlm_end_msg, __VA_ARGS__)

/* A result that this server never asked for. */
#define IGNORED(n) { .name = n }

#define LOCK_STEPS	nlm_check_grace, nlm_monitor_host, nlm_find_file, \
			nlm_await_answer, nlm_lock
#define NM_LOCK_STEPS	nlm_check_grace, nlm_keep_host, nlm_find_file, \
			nlm_await_answer, nlm_lock
#define TEST_STEPS	nlm_check_grace, nlm_find_file, nlm_test
#define CANCEL_STEPS	nlm_check_grace, nlm_find_held, nlm_await_answer, \
			nlm_cancel
#define UNLOCK_STEPS	nlm_check_grace, nlm_find_held, nlm_await_answer, \
			nlm_unlock
#define SHARE_STEPS	nlm_check_grace, nlm_keep_host, nlm_find_file, \
			nlm_share
#define UNSHARE_STEPS	nlm_check_grace, nlm_find_held, nlm_unshare

/* @v: 1 for versions 1 and 3, or 4. */
#define PROCS1(v) \
	[NLM_NULL] = { .name = "NULL" }, \
	[NLM_TEST] = ROW("TEST", nlm_get_test##v, nlm_put_test##v, 0, nlm_end, \
			 TEST_STEPS), \
	[NLM_LOCK] = SYNC("LOCK", nlm_get_lock##v, nlm_put_res##v, TAKES, \
			  LOCK_STEPS), \
	[NLM_CANCEL] = SYNC("CANCEL", nlm_get_cancel##v, nlm_put_res##v, \
			    GIVES, CANCEL_STEPS), \
	[NLM_UNLOCK] = SYNC("UNLOCK", nlm_get_unlock##v, nlm_put_res##v, \
			    GIVES, UNLOCK_STEPS), \
	[NLM_GRANTED] = { \
		.name = "GRANTED", .decode = nlm_get_test##v, \
		.encode = nlm_put_res##v, .steps = { nlm_granted }, \
		.args_size = sizeof(struct nlm_args), \
		.res_size = sizeof(struct nlm_res), \
	}, \
	[NLM_TEST_MSG] = ROW("TEST_MSG", nlm_get_test##v, NULL, 0, \
			     nlm_end_msg, TEST_STEPS), \
	[NLM_LOCK_MSG] = ASYNC("LOCK_MSG", nlm_get_lock##v, TAKES, \
			       LOCK_STEPS), \
	[NLM_CANCEL_MSG] = ASYNC("CANCEL_MSG", nlm_get_cancel##v, GIVES, \
				 CANCEL_STEPS), \
	[NLM_UNLOCK_MSG] = ASYNC("UNLOCK_MSG", nlm_get_unlock##v, GIVES, \
				 UNLOCK_STEPS), \
	[NLM_GRANTED_MSG] = IGNORED("GRANTED_MSG"), \
	[NLM_TEST_RES] = IGNORED("TEST_RES"), \
	[NLM_LOCK_RES] = IGNORED("LOCK_RES"), \
	[NLM_CANCEL_RES] = IGNORED("CANCEL_RES"), \
	[NLM_UNLOCK_RES] = IGNORED("UNLOCK_RES"), \
	[NLM_GRANTED_RES] = { \
		.name = "GRANTED_RES", .decode = nlm_get_res, \
		.steps = { nlm_granted_res }, \
		.args_size = sizeof(struct nlm_res_args), \
	}, \
	[NLM_SM_NOTIFY] = { \
		.name = "SM_NOTIFY", .decode = nlm_get_notify, \
		.steps = { nlm_sm_notify }, \
		.args_size = sizeof(struct nlm_notify_args), \
	}

#define PROCS3(v) \
	PROCS1(v), \
	[NLM_SHARE] = SYNC("SHARE", nlm_get_share, nlm_put_share##v, TAKES, \
			   SHARE_STEPS), \
	[NLM_UNSHARE] = SYNC("UNSHARE", nlm_get_share, nlm_put_share##v, \
			     GIVES, UNSHARE_STEPS), \
	[NLM_NM_LOCK] = SYNC("NM_LOCK", nlm_get_lock##v, nlm_put_res##v, \
			     TAKES, NM_LOCK_STEPS), \
	[NLM_FREE_ALL] = { \
		.name = "FREE_ALL", .decode = nlm_get_free_all, \
		.steps = { nlm_free_all }, \
		.args_size = sizeof(struct nlm_notify_args), \
	}

static const struct rpc_proc procs1[] = { PROCS1(1) };
static const struct rpc_proc procs3[] = { PROCS3(1) };
static const struct rpc_proc procs4[] = { PROCS3(4) };

#define SERVES(n) { \
	.vers = n, .nproc = ARRAY_SIZE(procs##n), .procs = procs##n }

static const struct rpc_version versions[] = {
	SERVES(1), SERVES(3), SERVES(4),
};

/* ---- the thread */

static void run(void *arg)
{
	struct nlm *nlm = arg;
	uint64_t now, next, sweep = clock_ms();

	mutex_lock(&nlm->lock);
	while (!nlm->stops) {
		now = clock_ms();
		next = nlm_call_back(nlm, now);
		if (now >= sweep) {
			nlm_files_sweep(nlm);
			nlm_hosts_sweep(nlm, now);
			sweep = now + SWEEP_MS;
		}
		/* A server without locks sleeps. */
		if (nlm->table.files || nlm->table.hosts)
			next = MIN(next, sweep);
		if (next == UINT64_MAX)
			pthread_cond_wait(&nlm->wake, &nlm->lock);
		else
			cond_wait_until(&nlm->wake, &nlm->lock,
					next * NS_PER_MS);
	}
	mutex_unlock(&nlm->lock);
}

/* ---- start and end */

static void set_nlm_limits(const struct nlm_config *c, struct nlm_limits *l)
{
	l->hosts = MAX_HOSTS;
	l->client_hosts = MAX_CLIENT_HOSTS;
	l->ranges = l->shares = c->max_locks ? c->max_locks : MAX_LOCKS;
	l->client_ranges = l->client_shares =
		c->max_host_locks ? c->max_host_locks : MAX_HOST_LOCKS;
	l->waits = c->max_waits ? c->max_waits : MAX_WAITS;
	l->client_waits = MAX_HOST_WAITS;
	l->file_ranges = c->max_file_locks ? c->max_file_locks : MAX_FILE_LOCKS;
	l->file_waits = c->max_file_waits ? c->max_file_waits : MAX_FILE_WAITS;
}

int nlm_create(const struct nlm_config *config, struct rpc_program **out)
{
	struct nlm *nlm = calloc(1, sizeof(*nlm));
	struct nlm_limits limits;
	int err;

	if (!nlm)
		return -ENOMEM;
	nlm->config = *config;
	set_default(&nlm->config.max_asking, MAX_ASKING);
	set_default(&nlm->config.asking_ms, ASKING_MS);
	set_default(&nlm->config.max_answering, MAX_ANSWERING);
	set_default(&nlm->config.answer_ms, ANSWER_MS);
	set_default(&nlm->config.call_back_ms, CALL_BACK_MS);
	set_default(&nlm->config.idle_ms, IDLE_MS);
	/* Answers to the previous server must match no grant here. */
	nlm->next_grant = hash_values(clock_ns()) & ~(NLM_CALL_BACKS - 1);
	nlm->started = clock_ms();
	nlm->grace_until = nlm->started + config->grace_s * 1000ull;
	set_nlm_limits(config, &limits);
	nlm_table_init(&nlm->table, &limits);
	CDS_INIT_LIST_HEAD(&nlm->awaiting);
	CDS_INIT_LIST_HEAD(&nlm->asks);
	pthread_mutex_init(&nlm->lock, NULL);
	pthread_mutex_init(&nlm->await_lock, NULL);
	pthread_cond_init(&nlm->wake, NULL);
	nlm->prog.name = "nlockmgr";
	nlm->prog.prog = NLM_PROGRAM;
	nlm->prog.nversions = ARRAY_SIZE(versions);
	nlm->prog.versions = versions;
	/* Clients lock over TCP also where they mount over RDMA. */
	nlm->prog.no_rdma = true;
	nlm->prog.announced = RPC_OVER_TCP | RPC_OVER_UDP;
	nlm->prog.ctx = nlm;
	nlm->prog.leave = nlm_leave;
	nlm->prog.order = nlm_order;
	nlm->prog.sends_back = true;
	err = thread_start(&nlm->thread, "nlm", run, nlm);
	if (err < 0) {
		pthread_cond_destroy(&nlm->wake);
		pthread_mutex_destroy(&nlm->lock);
		pthread_mutex_destroy(&nlm->await_lock);
		free(nlm);
		return err;
	}
	*out = &nlm->prog;
	return 0;
}

/* Any file, counted, or NULL. */
static struct nlm_file *any_file(struct nlm *nlm)
{
	struct nlm_file *f = NULL;

	mutex_lock(&nlm->lock);
	for (unsigned i = 0; i < NLM_BUCKETS && !f; i++)
		if (!cds_list_empty(&nlm->table.file[i]))
			f = cds_list_first_entry(&nlm->table.file[i],
						 struct nlm_file, link);
	if (f) {
		f->refs++;
		f->gone = true;
	}
	mutex_unlock(&nlm->lock);
	return f;
}

void nlm_stop(struct rpc_program *prog)
{
	struct nlm *nlm = prog->ctx;
	struct nlm_file *f;

	mutex_lock(&nlm->lock);
	nlm->stops = true;
	pthread_cond_broadcast(&nlm->wake);
	mutex_unlock(&nlm->lock);
	pthread_join(nlm->thread, NULL);
	mutex_lock(&nlm->lock);
	while (nlm->jobs)
		pthread_cond_wait(&nlm->wake, &nlm->lock);
	mutex_unlock(&nlm->lock);
	while ((f = any_file(nlm))) {
		nlm_turn_begin(nlm, f);
		nlm_turn_end(f);
		nlm_file_put(nlm, f);
	}
}

void nlm_destroy(struct rpc_program *prog)
{
	struct nlm *nlm = prog->ctx;
	struct nlm_host *h, *next;

	for (unsigned i = 0; i < NLM_BUCKETS; i++)
		cds_list_for_each_entry_safe(h, next, &nlm->table.host[i], link)
			nlm_host_free(&nlm->table, h);
	assert(nlm->table.owners == 0 && nlm->table.files == 0);
	pthread_cond_destroy(&nlm->wake);
	pthread_mutex_destroy(&nlm->lock);
	pthread_mutex_destroy(&nlm->await_lock);
	free(nlm);
}
