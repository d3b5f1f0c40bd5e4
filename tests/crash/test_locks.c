/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks of a gannetd that is killed at random moments and started again: none
 * is held twice, none that was reclaimed is lost.  And many random operations
 * of one that is not killed.
 *
 * GANNET_CRASH_KILLS is how often, for each backend; GANNET_LOCKS_OPERATIONS
 * the number of operations; GANNET_CRASH_SEED makes the same choices again.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/util.h"
#include "tests/crash/crash.h"
#include "tests/crash/lock_wire.h"
#include "tests/server/doors.h"
#include "tests/unit/runner.h"
#include "wire/nlm.h"

#define KILLS		20u
#define OPERATIONS	20000u
#define OTHER		65534
#define GRACE_MS	1000u
/* Of so many lives, one goes on behind its grace period. */
#define LONG_LIFE	6u

struct world {
	struct lockers	   m;
	struct lock_wire   w;
	struct daemon_run  d;
	const char	  *options;	/* of the export */
	bool		   real;	/* local processes see the locks */
	bool		   grace;	/* as we know, it is not over */
	bool		   drains;	/* nothing new is asked for */
	char		   dir[96];
	unsigned long	   asked, seen;
};

static unsigned chance(unsigned n)
{
	return model_random() % n;
}

/* ---- operations of owners */

static void choose_span(struct lm_op *op)
{
	op->file = chance(LM_FILES);
	op->first = chance(LM_BYTES);
	op->last = MIN(op->first + chance(8), LM_BYTES - 1);
	if (chance(8) == 0)
		op->last = LM_BYTES - 1;
	op->exclusive = chance(3);
}

/* A reclaim of bytes that another one is sure of: it must be refused. */
static bool choose_lie(const struct lockers *m, const struct lm_owner *o,
		       struct lm_op *op)
{
	const struct lm_owner *p = &m->owner[chance(LM_OWNERS)];
	struct lm_op claim;

	choose_span(op);
	op->last = op->first;
	op->kind = LM_LOCK;
	op->reclaim = true;
	op->exclusive = true;
	return p != o && p->sure[op->file][op->first] &&
	       !lm_next_claim(o, &claim);
}

/* False: nothing now. */
static bool choose_in_grace(struct world *t, struct lm_owner *o)
{
	struct lm_op *op = &o->op;

	if (chance(4) && t->m.host[o->host].claims && lm_next_claim(o, op))
		return true;
	*op = (struct lm_op){ .kind = chance(2) ? LM_LOCK : LM_TEST };
	if (chance(4) == 0 && choose_lie(&t->m, o, op))
		return true;
	*op = (struct lm_op){ .kind = (enum lm_kind[]){
		LM_LOCK, LM_TEST, LM_UNLOCK, LM_NM_LOCK }[chance(4)] };
	choose_span(op);
	if (op->kind == LM_NM_LOCK && t->w.client[o->host].vers == 1)
		op->kind = LM_LOCK;
	return chance(16) == 0;
}

static bool choose_for_waiter(struct lm_owner *o, bool drains)
{
	o->op = o->wait;
	o->op.block = true;
	o->op.kind = o->refused ? LM_UNLOCK : LM_CANCEL;
	return o->refused || drains || chance(60) == 0;
}

static void choose_share(struct lm_op *op)
{
	op->kind = chance(3) ? LM_SHARE : LM_UNSHARE;
	if (op->kind == LM_UNSHARE)
		return;
	op->mode = chance(4);
	op->access = 1 + chance(3);
}

static bool choose_op(struct world *t, struct lm_owner *o)
{
	static const enum lm_kind kinds[16] = {
		LM_LOCK, LM_LOCK, LM_LOCK, LM_LOCK, LM_LOCK, LM_LOCK,
		LM_NM_LOCK, LM_UNLOCK, LM_UNLOCK, LM_UNLOCK, LM_UNLOCK,
		LM_TEST, LM_TEST, LM_SHARE, LM_SHARE, LM_CANCEL,
	};
	const uint32_t vers = t->w.client[o->host].vers;
	struct lm_op *op = &o->op;

	if (o->waits)
		return choose_for_waiter(o, t->drains);
	if (t->drains)
		return false;
	*op = (struct lm_op){ .kind = kinds[chance(16)] };
	if (vers == 1 && (op->kind == LM_NM_LOCK || op->kind == LM_SHARE))
		op->kind = LM_TEST;
	choose_span(op);
	if (op->kind == LM_LOCK) {
		op->block = !t->w.deaf && chance(2);
		op->reclaim = !op->block && chance(16) == 0;
	} else if (op->kind == LM_UNLOCK && chance(3) == 0) {
		op->first = 0;
		op->last = LM_BYTES - 1;
	} else if (op->kind == LM_SHARE) {
		choose_share(op);
	}
	op->block |= op->kind == LM_CANCEL;
	/* Of a LOCK that was granted, or of none.  By messages, its CANCEL can
	 * overtake the answer that took it. */
	return op->kind != LM_CANCEL || !t->w.client[o->host].by_message ||
	       !lm_is_held(o, op);
}

static void start_owners(struct world *t)
{
	for (unsigned i = 0; i < LM_OWNERS; i++) {
		struct lm_owner *o = &t->m.owner[i];

		if (o->busy || t->m.host[o->host].restarts ||
		    !(t->grace ? choose_in_grace : choose_op)(t, o))
			continue;
		t->asked++;
		lw_send(&t->w, i);
	}
}

/* A client restarts when none of its owners waits for an answer. */
static void restart_a_host(struct world *t)
{
	unsigned host = chance(LM_HOSTS);

	for (unsigned i = host; i < LM_OWNERS; i += LM_HOSTS)
		if (t->m.owner[i].busy)
			return;
	if (!t->m.host[host].restarts)
		lw_restart_host(&t->w, host);
}

static void work_until(struct world *t, uint64_t end_ms, unsigned long asked)
{
	while (runner_now_ms() < end_ms && t->asked < asked) {
		start_owners(t);
		lw_serve(&t->w, 1);
		if (!t->grace && chance(300) == 0)
			restart_a_host(t);
	}
}

/* ---- moments without calls under way */

/* A local process sees the locks that clients are sure of. */
static void look_at_bytes(struct world *t, unsigned file, int fd)
{
	for (unsigned b = 0; b < LM_BYTES; b++) {
		struct flock f = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
				   .l_start = b * LW_SCALE, .l_len = 1 };
		bool sure = false;

		for (unsigned i = 0; i < LM_OWNERS; i++)
			sure |= t->m.owner[i].sure[file][b] != LM_NONE;
		ck_assert_int_eq(fcntl(fd, F_OFD_GETLK, &f), 0);
		if (sure && f.l_type == F_UNLCK)
			lm_defect(&t->m, "a lock that nobody else sees");
		t->seen += sure;
	}
}

static void look_locally(struct world *t)
{
	char path[128];
	int fd;

	for (unsigned f = 0; f < LM_FILES && t->real; f++) {
		snprintf(path, sizeof(path), "%s/f%u", t->dir, f);
		fd = open(path, O_RDWR | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		look_at_bytes(t, f, fd);
		close(fd);
	}
}

static bool any_waits(const struct world *t, bool could_be_granted)
{
	for (unsigned i = 0; i < LM_OWNERS; i++)
		if (could_be_granted ?
		    lm_may_be_granted(&t->m, &t->m.owner[i]) :
		    t->m.owner[i].waits)
			return true;
	return false;
}

/* Waits for all answers, and for the call-backs that are due. */
static void settle(struct world *t)
{
	uint64_t end = runner_now_ms() + 20000;

	while (lw_any_busy(&t->w) || any_waits(t, true)) {
		lw_serve(&t->w, 1);
		if (runner_now_ms() > end)
			lm_defect(&t->m, "a free lock is not granted");
	}
	lm_check_circles(&t->m);
	look_locally(t);
}

/* ---- lives of the server */

static void find_files(struct world *t)
{
	struct wire nfs, mount;
	struct model_fh root;
	struct wire_attr a;
	char name[8];

	ck_assert(wire_open(&mount, t->d.tcp_port, MOUNT_PROGRAM));
	ck_assert(wire_mount(&mount, t->dir, &root));
	wire_close(&mount);
	ck_assert(wire_open(&nfs, t->d.tcp_port, NFS_PROGRAM));
	for (unsigned f = 0; f < LM_FILES; f++) {
		snprintf(name, sizeof(name), "f%u", f);
		a = wire_exclusive(&nfs, &root, name, f + 1);
		ck_assert_int_eq(a.status, NFS3_OK);
		t->w.fh[f] = a.fh;
	}
	wire_close(&nfs);
}

static void start_life(struct world *t)
{
	char export[256];
	const char *const args[] = { "--export", export, "--grace", "1", NULL };
	uint64_t before = runner_now_ms();

	snprintf(export, sizeof(export), "%s%s 127.0.0.0/8(rw,insecure,"
		 "no_root_squash)", t->options, t->dir);
	ck_assert(daemon_start(&t->d, args));
	t->w.grace_known = lm_owes(&t->m);
	t->w.grace_min = before + GRACE_MS;
	t->w.grace_max = runner_now_ms() + GRACE_MS;
	lm_step(&t->m, "the server has started, grace %d", t->w.grace_known);
	find_files(t);
	lw_connect(&t->w, t->d.tcp_port, t->d.udp_port);
}

/* Some clients hear of the start first, some don't reclaim at all, of some a
 * process has gone. */
static void choose_claims(struct world *t)
{
	unsigned how[LM_HOSTS];

	for (unsigned i = 0; i < LM_HOSTS; i++) {
		how[i] = chance(5);
		t->m.host[i].claims = how[i] < 2 || t->w.deaf;
		t->m.host[i].owed = false;
	}
	for (unsigned i = 0; i < LM_OWNERS; i++) {
		struct lm_owner *o = &t->m.owner[i];
		struct lm_op claim;

		if (how[o->host] == 4 || chance(6) == 0)
			memset(o->had, LM_NONE, sizeof(o->had));
		if (lm_next_claim(o, &claim))
			t->m.host[o->host].owed = !t->w.deaf;
	}
}

/* Each host that had locks has been told of the start. */
static void check_told(struct world *t)
{
	uint64_t end = runner_now_ms() + 10000;

	for (unsigned i = 0; i < LM_HOSTS; i++)
		while (t->m.host[i].owed) {
			lw_serve(&t->w, 1);
			if (runner_now_ms() > end)
				lm_defect(&t->m, "a host was not told");
		}
}

/* After the grace period: locks that were not reclaimed are free. */
static void live_on(struct world *t)
{
	work_until(t, t->w.grace_max + 1, ~0ul);
	check_told(t);
	settle(t);
	t->grace = false;
	lm_grace_ended(&t->m);
	work_until(t, runner_now_ms() + 20 + chance(80), ~0ul);
	settle(t);
	work_until(t, runner_now_ms() + 1 + chance(40), ~0ul);
}

static void end_life(struct world *t)
{
	ck_assert_int_eq(kill(t->d.pid, SIGKILL), 0);
	lw_disconnect(&t->w);
	ck_assert_int_eq(waitpid(t->d.pid, &t->d.status, 0), t->d.pid);
	ck_assert(WIFSIGNALED(t->d.status));
	lm_server_ended(&t->m);
}

static void live(struct world *t, bool to_the_end)
{
	start_life(t);
	t->grace = lm_owes(&t->m);
	if (t->grace)
		choose_claims(t);
	/* By chance no host is on the list, so the server has no grace
	 * period. */
	if (!t->grace && !t->m.granted)
		t->w.grace_min = t->w.grace_max = 0;
	if (to_the_end || !t->grace)
		live_on(t);
	else
		work_until(t, runner_now_ms() + 1 + chance(60), ~0ul);
	end_life(t);
}

static struct world *new_world(const char *options)
{
	struct world *t = calloc(1, sizeof(*t));
	const char *seed = getenv("GANNET_CRASH_SEED");

	ck_assert_ptr_nonnull(t);
	doors_may_bind_reserved();
	daemon_prepare(&t->d);
	t->options = options;
	lm_init(&t->m, seed ? strtoull(seed, NULL, 10) : runner_now_ms());
	model_seed(t->m.seed);
	lw_open(&t->w, &t->m);
	snprintf(t->dir, sizeof(t->dir), "/locks");
	return t;
}

static void make_export(struct world *t, uid_t uid)
{
	t->real = true;
	t->d.uid = uid;
	snprintf(t->dir, sizeof(t->dir), "%s/export", t->d.dir);
	ck_assert_int_eq(mkdir(t->dir, 0755), 0);
	if (uid)
		ck_assert_int_eq(chown(t->dir, uid, uid) |
				 chown(t->d.dir, uid, uid), 0);
}

static void report(const struct world *t, const char *what)
{
	const struct lockers *m = &t->m;

	printf("# %s: %lu asked, %lu granted, %lu refused, %lu blocked, %lu "
	       "called back, %lu crossed, %lu deadlocks, %lu reclaimed, %lu "
	       "refused in grace, %lu late reclaims, %lu hosts restarted, %lu "
	       "seen locally%s, seed %llu\n", what, t->asked, m->granted,
	       m->refused, m->blocked, m->called, m->crossed, m->deadlocks,
	       m->reclaimed, m->in_grace, m->late, m->restarts, t->seen,
	       t->w.deaf ? ", without call-backs" : "",
	       (unsigned long long)m->seed);
}

static void end_world(struct world *t, const char *what)
{
	report(t, what);
	lw_close(&t->w);
	daemon_clean(&t->d);
	free(t);
}

TEST_CASE(.timeout = 60 + 4 * crash_setting("GANNET_CRASH_KILLS", KILLS));

TEST_LOOP(a_killed_server_gives_no_lock_to_two_and_loses_none_reclaimed, 0, 3)
{
	static const char *const names[] = { "mem", "posix",
					     "posix without privileges" };
	unsigned kills = crash_setting("GANNET_CRASH_KILLS", KILLS);
	bool root = geteuid() == 0;
	struct world *t = new_world(_i ? "" : "mem:");

	if (_i)
		make_export(t, _i == 2 && root ? OTHER : 0);
	t->w.uid = t->d.uid ? t->d.uid : geteuid();
	for (unsigned i = 0; i < kills; i++)
		live(t, i % LONG_LIFE == LONG_LIFE - 1);
	ck_assert_uint_gt(t->m.granted, kills);
	ck_assert(kills < 10 || (t->m.reclaimed > 0 && t->m.in_grace > 0));
	end_world(t, names[_i]);
}

static void start_mem(struct world *t)
{
	t->w.uid = geteuid();
	start_life(t);
	t->w.grace_known = true;
}

/* Owner 0 of host 0 and owner 1 of host 1 lock, and the server is killed.  The
 * next server tells both hosts, and is killed when host 1 has claimed.  The
 * third one tells host 0 again, which was slower. */
static void tell_again(struct world *t)
{
	struct lm_op op = { .kind = LM_LOCK, .exclusive = true };

	for (unsigned life = 0; life < 3; life++) {
		start_mem(t);
		if (life == 0)
			t->w.grace_max = 0;
		t->m.host[0].owed = t->m.host[1].owed = life > 0;
		check_told(t);
		op.reclaim = life > 0;
		for (unsigned i = life > 0; i < 2 && life < 2; i++) {
			op.file = i;
			t->m.owner[i].op = op;
			lw_send(&t->w, i);
		}
		settle(t);
		end_life(t);
	}
}

TEST(a_host_that_was_told_and_has_not_claimed_is_told_again)
{
	struct world *t = new_world("mem:");

	if (t->w.deaf)
		printf("skipped: the clients may not use port 111, where the "
		       "server looks for those it tells\n");
	else
		tell_again(t);
	end_world(t, "told again");
}

TEST_CASE(.timeout = 60 + crash_setting("GANNET_LOCKS_OPERATIONS",
					OPERATIONS) / 500);

/* Everybody lets go of everything; then everything is free. */
static void let_go(struct world *t)
{
	struct lm_op all = { .kind = LM_UNLOCK, .last = LM_BYTES - 1 };

	t->drains = true;
	while (any_waits(t, false) || lw_any_busy(&t->w)) {
		start_owners(t);
		lw_serve(&t->w, 1);
	}
	for (unsigned f = 0; f < LM_FILES; f++)
		for (unsigned i = 0; i < 2 * LM_OWNERS; i++) {
			all.file = f;
			all.kind = i % 2 ? LM_UNLOCK : LM_UNSHARE;
			if (t->w.client[i / 2 % LM_HOSTS].vers == 1)
				all.kind = LM_UNLOCK;
			t->m.owner[i / 2].op = all;
			lw_send(&t->w, i / 2);
			settle(t);
		}
	all.kind = LM_LOCK;
	all.exclusive = true;
	for (all.file = 0; all.file < LM_FILES; all.file++) {
		t->m.owner[all.file].op = all;
		lw_send(&t->w, all.file);
		settle(t);
		ck_assert_int_eq(t->m.owner[all.file].sure[all.file][0],
				 LM_EXCLUSIVE);
	}
}

TEST(random_operations_of_20_owners_over_the_wire_do_as_the_model)
{
	unsigned long n = crash_setting("GANNET_LOCKS_OPERATIONS", OPERATIONS);
	struct world *t = new_world("mem:");

	start_mem(t);
	t->w.grace_min = t->w.grace_max = 0;
	for (unsigned rounds = 1; t->asked < n; rounds++) {
		work_until(t, UINT64_MAX, MIN(n, t->asked + 500));
		settle(t);
		/* Hardly a host is idle while all ask as fast as they can. */
		if (rounds % 8 == 0)
			restart_a_host(t);
	}
	let_go(t);
	if (!t->w.deaf) {
		ck_assert_uint_gt(t->m.blocked, n / 100);
		ck_assert_uint_gt(t->m.called, n / 200);
		ck_assert_uint_gt(t->m.crossed + t->m.deadlocks, 0);
	}
	ck_assert_uint_gt(t->m.granted, n / 5);
	ck_assert_uint_gt(t->m.restarts, 0);
	daemon_end(&t->d, SIGTERM);
	lw_disconnect(&t->w);
	end_world(t, "random operations");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run_tests();
}
