/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks are reclaimed from backends that can't give them yet, and in exports
 * that are mounted late. */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "exports/export_priv.h"
#include "lib/thread.h"
#include "tests/server/nlm_client.h"
#include "tests/unit/runner.h"
#include "vfs/backends.h"

#define GRACE_S		2
#define MEM		"/mem 127.0.0.1(rw,insecure,no_root_squash)\n"
#define BOTH		MEM "/late 127.0.0.1(rw,insecure,no_root_squash)\n"

static const struct nlm_bytes head = { 0, 10, true };

static struct nlm_process one, two;
static struct vfs_ops backend;
static atomic_bool cluster_is_away, disk_is_slow;
/* Reclaims are put off so often, and until then. */
static atomic_uint put_off;
static _Atomic uint64_t put_off_until;

static bool is_put_off(void)
{
	if (runner_now_ms() < atomic_load(&put_off_until))
		return true;
	return atomic_load(&put_off) && atomic_fetch_sub(&put_off, 1);
}

static int lock_later(struct vfs_op *op)
{
	if (op->lock->how == VFS_LOCK_SET && op->lock->reclaim && is_put_off())
		return -ETIMEDOUT;
	return mem_vfs_ops.lock ? mem_vfs_ops.lock(op) : 0;
}

static int open_slowly(struct vfs_op *op)
{
	if (op->nonblock && atomic_load(&disk_is_slow))
		return -EAGAIN;
	WAIT_WHILE(atomic_load(&disk_is_slow));
	return mem_vfs_ops.open_handle(op);
}

static int mount_late(const struct vfs_config *config, struct vfs_fs **out)
{
	int err;

	WAIT_WHILE(strcmp(config->path, "/late") == 0 &&
		   atomic_load(&cluster_is_away));
	err = mem_vfs_ops.mount(config, out);
	if (err == 0)
		(*out)->ops = &backend;
	return err;
}

static void start(void)
{
	const struct harness_config config = {
		.backend = &backend, .nlm = { .grace_s = GRACE_S },
	};

	backend = mem_vfs_ops;
	backend.mount = mount_late;
	backend.lock = lock_later;
	backend.open_handle = open_slowly;
	nlmc_start(&config);
	/* A call by TCP is sent again only on another connection. */
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_UDP,
				    nfs_make_file(top, "file", "") };
	two = (struct nlm_process){ "c2", 22, 4, IPPROTO_UDP, one.fh };
}

TEST_CASE(.setup = start, .teardown = nlmc_end);

TEST(a_reclaim_that_can_not_be_granted_yet_has_no_answer_and_comes_again)
{
	atomic_store(&put_off, 2);
	nlmc_resend_ms = 50;
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(atomic_load(&put_off), 0);
	ck_assert_uint_eq(nlmc_reclaim(&two, head), NLM4_DENIED);
}

/*
 * Linux reclaims one lock after the other, and the next can be in another
 * export.  The first reclaim is put off until the server's own grace period is
 * over.  It is sent again every 160 ms at least, so a machine that is ten times
 * slower still keeps the grace period going.
 */
TEST(the_grace_period_goes_on_while_a_reclaim_is_put_off)
{
	struct nlm_process other = one;

	other.fh = nfs_make_file(top, "other", "");
	atomic_store(&put_off_until, runner_now_ms() + GRACE_S * 1000);
	nlmc_resend_ms = 20;
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_GRANTED);
	ck_assert_uint_ge(runner_now_ms(), atomic_load(&put_off_until));
	ck_assert_uint_eq(nlmc_reclaim(&other, head), NLM4_GRANTED);
}

TEST(a_reclaim_is_refused_after_four_grace_periods)
{
	uint64_t begin = runner_now_ms();

	atomic_store(&put_off, 1000000);
	nlmc_resend_ms = 100;
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_ge(runner_now_ms() - begin, 2000 * GRACE_S);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}

static void disk_is_well(void *arg)
{
	/* It is slow for longer than the grace period. */
	pause_on_purpose(GRACE_S * 1000000 + 500000);
	atomic_store(&disk_is_slow, false);
}

/* Others might have had the lock by then. */
TEST(a_reclaim_that_the_disk_keeps_for_longer_than_the_grace_period_is_refused)
{
	pthread_t thread;

	atomic_store(&disk_is_slow, true);
	nlmc_resend_ms = 10000;
	ck_assert_int_eq(thread_start(&thread, "well", disk_is_well, NULL), 0);
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_DENIED_GRACE_PERIOD);
	ck_assert(!atomic_load(&disk_is_slow));
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	pthread_join(thread, NULL);
}

/* It is the second export, which no call waits for. */
static void publish_late(void)
{
	atomic_store(&cluster_is_away, true);
	srv.exports->patience_s = 0;
	harness_publish(&srv, BOTH);
}

static void note_away(void *arg, const struct export_rule *rule)
{
	*(bool *)arg |= rule->is_away;
}

static bool is_all_there(void)
{
	bool away = false;

	export_walk_rules(srv.exports, note_away, &away);
	return !away;
}

TEST(an_export_that_is_mounted_late_has_a_grace_period_then)
{
	struct nlm_process in_late = one, other = two;
	nfs_fh3 dir;

	publish_late();
	/* The server's own is over. */
	EVENTUALLY(nlmc_lock(&one, head, false) == NLM4_GRANTED);
	ck_assert(!is_all_there());
	atomic_store(&cluster_is_away, false);
	EVENTUALLY(is_all_there());
	ck_assert_int_eq(nfs_mnt("/late", &dir), MNT3_OK);
	in_late.fh = nfs_make_file(dir, "file", "");
	other.fh = in_late.fh;
	ck_assert_uint_eq(nlmc_lock(&other, head, false),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_reclaim(&in_late, head), NLM4_GRANTED);
	/* It is the export's alone. */
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	EVENTUALLY(nlmc_lock(&other, head, false) == NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&in_late, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&other, head, false), NLM4_GRANTED);
}

static void come_back(void *arg)
{
	/* The client sends its reclaim some times meanwhile. */
	pause_on_purpose(300000);
	atomic_store(&cluster_is_away, false);
}

/* A process with a file of the second export, which is taken out. */
static struct nlm_process with_lost_file(void)
{
	struct nlm_process in_late = one;
	nfs_fh3 dir;

	harness_publish(&srv, BOTH);
	ck_assert_uint_eq(nfs_mnt("/late", &dir), MNT3_OK);
	in_late.fh = nfs_make_file(dir, "file", "");
	harness_publish(&srv, MEM);
	return in_late;
}

/* The file is gone, which the server can't know before. */
static void reclaim_is_put_off(struct nlm_process *in_late)
{
	pthread_t thread;

	nlmc_resend_ms = 50;
	ck_assert_int_eq(thread_start(&thread, "back", come_back, NULL), 0);
	ck_assert_uint_eq(nlmc_reclaim(in_late, head), NLM4_STALE_FH);
	ck_assert(!atomic_load(&cluster_is_away));
	pthread_join(thread, NULL);
}

TEST(a_reclaim_in_an_export_that_is_not_there_yet_comes_again)
{
	struct nlm_process in_late = with_lost_file();

	publish_late();
	reclaim_is_put_off(&in_late);
}

/* Others might have had locks that were not reclaimed in it. */
TEST(a_grace_period_that_is_over_does_not_come_back)
{
	struct nlm_process in_late = with_lost_file();

	publish_late();
	EVENTUALLY(nlmc_lock(&one, head, false) == NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	reclaim_is_put_off(&in_late);
	ck_assert_uint_eq(nlmc_reclaim(&two, head), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}
