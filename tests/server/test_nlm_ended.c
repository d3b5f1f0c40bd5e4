/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts whose locks end while the backend locks for them; and shares of hosts
 * whose state LOCKs have told. */
#include "tests/server/nlm_raw.h"

#include "lib/stats.h"
#include "nlm/proc.h"
#include "tests/unit/runner.h"
#include "vfs/backends.h"

static struct nlm_process one, two;

static const struct nlm_bytes head = { 0, 1, true };

/* The backend's locks wait here while they are held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held;
static _Atomic unsigned nasked;
static atomic_bool too_late;

static struct vfs_ops ops;

static int mount_with_locks(const struct vfs_config *config,
			    struct vfs_fs **out)
{
	int err = mem_vfs_ops.mount(config, out);

	if (err == 0)
		(*out)->ops = &ops;
	return err;
}

static int lock_when_not_held(struct vfs_op *op)
{
	if (op->lock->how != VFS_LOCK_SET)
		return 0;
	pthread_mutex_lock(&lock);
	nasked++;
	while (held)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return atomic_exchange(&too_late, false) ? VFS_LOCK_LATE : 0;
}

/* Returns how many locks were asked for. */
static unsigned hold(bool hold)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	held = hold;
	n = nasked;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return n;
}

static void start(void)
{
	const struct harness_config config = { .backend = &ops };

	ops = mem_vfs_ops;
	ops.mount = mount_with_locks;
	ops.lock = lock_when_not_held;
	nlmr_start(&config);
	one = (struct nlm_process){ "new0", 0, 4, IPPROTO_TCP, nlmr.file };
	two = (struct nlm_process){ "two", 2, 4, IPPROTO_TCP, nlmr.file };
}

static void end(void)
{
	close(nlmr.fd);
	nlmc_end();
}

TEST_CASE(.setup = start, .teardown = end);

static void release_locks(void)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct in6_addr addr =
		xprt_addr_host((const struct sockaddr *)&at);
	struct lock_totals ended = { 0 };

	nlm_release(srv.nlm, &addr, "new0", &ended);
}

static void restart(void)
{
	nlmc_restarted("new0", 3);
}

static void restart_late(void)
{
	nlmc_restarted("new0", 1);
}

static void (*const ends[])(void) = { release_locks, restart };

/* Has @end end the locks of the host while the backend locks for its LOCK in
 * the state 1.  Returns the answer to that. */
static uint32_t lock_beside(void (*end_all)(void))
{
	unsigned asked = hold(true);

	nlmr_lock(0, 0);
	EVENTUALLY(nasked > asked);
	end_all();
	hold(false);
	return nlmr_status();
}

/* Else two believe that they hold it. */
TEST_LOOP(a_lock_is_not_granted_that_ended_while_the_backend_locked, 0, 2)
{
	ck_assert_uint_eq(lock_beside(ends[_i]), NLM4_DENIED_GRACE_PERIOD);
	EVENTUALLY(nlmc_lock(&two, head, false) == NLM4_GRANTED);
}

TEST(one_in_the_state_of_the_restart_is_granted_and_stays)
{
	ck_assert_uint_eq(lock_beside(restart_late), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
}

TEST_LOOP(a_waiter_is_not_told_of_a_lock_that_ended_meanwhile, 0, 2)
{
	unsigned asked;

	nlmc_state = 1;
	nlmr_lock(1, 0);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, true), NLM4_BLOCKED);
	asked = hold(true);
	nlmr_unlock(1, 0);
	EVENTUALLY(nasked > asked);
	ends[_i]();
	hold(false);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	EVENTUALLY(nlmc_lock(&two, head, false) == NLM4_GRANTED);
	ck_assert_uint_eq(stats_sum_by_name("nlm_waits_granted"), 0);
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), 0);
}

TEST(a_late_notice_ends_no_share_of_a_host_whose_lock_told_its_state)
{
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&one, 3, 3), NLM4_GRANTED);
	nlmc_restarted("new0", 7);
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	/* A newer one does. */
	nlmc_restarted("new0", 9);
	EVENTUALLY(nlmc_share(&two, 3, 3) == NLM4_GRANTED);
}

TEST(a_late_notice_ends_a_share_of_before_that_lock)
{
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_share(&one, 3, 3), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_restarted("new0", 7);
	EVENTUALLY(nlmc_share(&two, 3, 3) == NLM4_GRANTED);
}

/* ---- a process from before its host's restart, and its namesake's LOCK, which
 * is undone */

static const struct nlm_bytes both = { 0, 2, true }, tail = { 1, 1, true };

/* The dead one has the head, its namesake waits for both and is granted. */
static void grant_to_namesake(uint32_t answer)
{
	nlmc_answer = answer;
	nlmc_state = 5;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, tail, false), NLM4_GRANTED);
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&one, both, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_unlock(&two, tail), NLM4_GRANTED);
}

static void is_free_after_the_notice(void)
{
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	nlmc_restarted("new0", 7);
	EVENTUALLY(nlmc_lock(&two, head, false) == NLM4_GRANTED);
}

TEST(a_refused_lock_leaves_a_dead_one_to_the_notice)
{
	grant_to_namesake(NLM4_DENIED);
	EVENTUALLY(nlmc_lock(&two, tail, false) == NLM4_GRANTED);
	is_free_after_the_notice();
}

TEST(a_cancelled_lock_leaves_a_dead_one_to_the_notice)
{
	grant_to_namesake(NLM_DEAF);
	ck_assert_uint_eq(nlmc_cancel(&one, both), NLM4_GRANTED);
	is_free_after_the_notice();
}

TEST(a_late_lock_that_is_undone_leaves_a_dead_one_to_the_notice)
{
	nlmc_state = 5;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_state = 7;
	atomic_store(&too_late, true);
	ck_assert_uint_eq(nlmc_lock(&one, both, false),
			  NLM4_DENIED_GRACE_PERIOD);
	is_free_after_the_notice();
}

TEST(a_lock_cancelled_after_the_notice_restores_no_dead_one)
{
	grant_to_namesake(NLM_DEAF);
	nlmc_restarted("new0", 7);
	ck_assert_uint_eq(nlmc_lock(&two, both, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_cancel(&one, both), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, both, false), NLM4_GRANTED);
}

TEST(a_lock_cancelled_after_the_notice_leaves_the_living_their_bytes)
{
	grant_to_namesake(NLM_DEAF);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_restarted("new0", 7);
	ck_assert_uint_eq(nlmc_cancel(&one, both), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, tail, false), NLM4_GRANTED);
}

/* The notice comes while the backend locks for the dead one's wait. */
TEST(a_waiter_that_ended_meanwhile_leaves_its_namesake_what_that_had)
{
	unsigned asked;

	nlmr_lock(1, 1);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	nlmc_state = 5;
	ck_assert_uint_eq(nlmc_lock(&one, both, true), NLM4_BLOCKED);
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	asked = hold(true);
	nlmr_unlock(1, 1);
	EVENTUALLY(nasked > asked);
	nlmc_restarted("new0", 7);
	hold(false);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	EVENTUALLY(nlmc_lock(&two, tail, false) == NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), 0);
}
