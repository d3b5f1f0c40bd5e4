/* SPDX-License-Identifier: BSD-2-Clause */
/* manage_gids: users' groups by the name service, kept, and late. */
#include <errno.h>
#include <nss.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <urcu.h>

#include "exports/export_priv.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

#define SLOW_MS	50

/* The name service: user N is in @ngroups groups from N on, and in group 0;
 * users from 5000000 on are unknown. */
static _Atomic unsigned asked;
static _Atomic unsigned ngroups;
static _Atomic int failure;		/* 0; -1: can't tell; -2: no user */
static _Atomic bool is_hung;

static int fake_groups(uint32_t uid, uint32_t **gids, uint32_t *n)
{
	asked++;
	WAIT_WHILE(is_hung);
	if (failure == -1)
		return failure;
	if (failure || uid >= 5000000)
		return 0;
	*n = ngroups;
	*gids = calloc(*n, sizeof(**gids));
	for (uint32_t i = 1; i < *n; i++)
		(*gids)[i] = uid + i;
	return 1;
}

/* A group that the list lacks is there still, without the user. */
static _Atomic bool is_whole;

static bool fake_has_left(uint32_t uid, uint32_t gid)
{
	return is_whole;
}

static struct export_opts opts;

static void begin(void)
{
	table_begin();
	table->resolver.groups = fake_groups;
	table->resolver.has_left = fake_has_left;
	table->resolver.users_keep_s = 60;
	table->resolver.users_stale_s = 60;
	table->resolver.quiet_s = 60;
	table->resolver.slow_ms = 60000;
	opts = (struct export_opts){ .manage_gids = true, .root_squash = true,
				     .anonuid = 70, .anongid = 71 };
	asked = 0;
	ngroups = 20;
	is_whole = true;
	failure = 0;
	is_hung = false;
}

/* The caller @uid, which claims to be in one group, as a poller finds it. */
static int find(uint32_t uid, struct vfs_cred *out)
{
	static const uint32_t claimed[] = { 42 };
	const struct export_claim who = { .uid = uid, .gid = 9, .ngids = 1,
					  .gids = claimed };

	return export_caller_counted(table, &opts, &who, false, out);
}

static struct vfs_cred ask_service(uint32_t uid)
{
	const struct export_claim who = { .uid = uid, .gid = 9 };
	struct vfs_cred cred;

	ck_assert_int_eq(export_caller_counted(table, &opts, &who, true,
					       &cred), 0);
	return cred;
}

/* Has a worker ask.  Not known now: the call is put off. */
static bool is_put_off(uint32_t uid)
{
	const struct export_claim who = { .uid = uid, .gid = 9 };
	struct vfs_cred cred;
	int err = export_caller_counted(table, &opts, &who, true, &cred);

	if (err == 0)
		export_caller_put(&cred);
	return err == -ETIMEDOUT;
}

static uint32_t count_groups(uint32_t uid)
{
	struct vfs_cred cred = ask_service(uid);

	export_caller_put(&cred);
	return cred.ngids;
}

/* From now on answers are late soon, and the next one is. */
static void hang(void)
{
	table->resolver.slow_ms = SLOW_MS;
	is_hung = true;
}

/* The question that is the @nth gets a late answer. */
static void answer_late(unsigned nth)
{
	EVENTUALLY(asked == nth);
	/* Longer than makes the service doubtful. */
	pause_on_purpose(SLOW_MS * 1000);
	is_hung = false;
}

/* The service was left alone for long enough. */
static void end_pause(void)
{
	ck_assert(!memo_doubt(table->users, 1));
}

/* The answers get too old to go by. */
static void age(void)
{
	memo_expire(table->users);
}

TEST_CASE(.setup = begin, .teardown = table_end);

TEST(groups_are_the_name_services_and_not_the_calls)
{
	struct vfs_cred cred;

	ck_assert_int_eq(find(1000, &cred), -EAGAIN);
	export_caller_put((cred = ask_service(1000), &cred));
	ck_assert_int_eq(find(1000, &cred), 0);
	ck_assert_uint_eq(cred.uid, 1000);
	ck_assert_uint_eq(cred.gid, 9);
	ck_assert_uint_eq(cred.ngids, 20);
	ck_assert_uint_eq(cred.gids[0], 71);	/* also squashed */
	ck_assert_uint_eq(cred.gids[19], 1019);
	export_caller_put(&cred);
	ck_assert_uint_eq(asked, 1);
	/* Where group 0 is another, it is another list. */
	opts.root_squash = false;
	cred = ask_service(1000);
	ck_assert_uint_eq(cred.gids[0], 0);
	export_caller_put(&cred);
}

TEST(callers_who_are_anonymous_or_root_need_no_name_service)
{
	const struct export_claim nobody = { .none = true };
	struct vfs_cred cred;

	is_hung = true;
	ck_assert_int_eq(find(0, &cred), 0);
	ck_assert_uint_eq(cred.uid, 70);
	ck_assert_uint_eq(cred.ngids, 0);
	opts.root_squash = false;
	ck_assert_int_eq(find(0, &cred), 0);
	ck_assert_uint_eq(cred.uid, 0);
	ck_assert_uint_eq(cred.ngids, 0);
	ck_assert_int_eq(export_caller_counted(table, &opts, &nobody, false,
					       &cred), 0);
	opts.all_squash = true;
	ck_assert_int_eq(find(1000, &cred), 0);
	ck_assert_uint_eq(cred.uid, 70);
	ck_assert_uint_eq(cred.ngids, 0);
	ck_assert_uint_eq(asked, 0);
}

TEST(a_caller_that_is_no_user_needs_no_name_service)
{
	struct vfs_cred cred = ask_service(UINT32_MAX);

	ck_assert_uint_eq(cred.uid, 70);
	ck_assert_uint_eq(cred.ngids, 0);
	ck_assert_uint_eq(asked, 0);
}

TEST(a_user_that_the_service_does_not_know_has_no_groups)
{
	struct vfs_cred cred = ask_service(5000000);

	ck_assert_uint_eq(cred.uid, 5000000);
	ck_assert_uint_eq(cred.gid, 9);
	ck_assert_uint_eq(cred.ngids, 0);
	ck_assert_uint_eq(cred.gids_id, 0);
	ck_assert_int_eq(find(5000000, &cred), 0);
	ck_assert_uint_eq(asked, 1);
}

TEST(there_are_as_many_groups_as_linux_has)
{
	ngroups = VFS_MAX_GIDS;
	ck_assert_uint_eq(count_groups(1), VFS_MAX_GIDS);
	ngroups = VFS_MAX_GIDS + 1;
	ck_assert_uint_eq(count_groups(2), VFS_MAX_GIDS);
}

TEST(an_answer_is_kept_for_its_time_and_asked_for_anew)
{
	struct vfs_cred a = ask_service(1000), b;

	age();
	ck_assert_int_eq(find(1000, &b), -EAGAIN);
	b = ask_service(1000);
	ck_assert_uint_eq(asked, 2);
	/* The same list: answers that backends remember of it stay good. */
	ck_assert_uint_eq(b.gids_id, a.gids_id);
	export_caller_put(&b);
	ngroups = 19;
	age();
	b = ask_service(1000);
	ck_assert_uint_ne(b.gids_id, a.gids_id);
	ck_assert_uint_eq(b.ngids, 19);
	/* A call that still has the old list, has it. */
	ck_assert_uint_eq(a.gids[19], 1019);
	export_caller_put(&a);
	export_caller_put(&b);
	/* A reload also queries again. */
	publish("/a *\n");
	ck_assert_int_eq(find(1000, &b), -EAGAIN);
}

TEST(a_known_user_keeps_its_groups_while_the_service_fails)
{
	struct vfs_cred cred;

	ck_assert_uint_eq(count_groups(1000), 20);
	failure = -1;
	age();
	ck_assert_uint_eq(count_groups(1000), 20);
	ck_assert(is_put_off(1001));
	/* Each is asked for after a while, not with each call. */
	ck_assert_uint_eq(asked, 3);
	ck_assert_int_eq(find(1000, &cred), 0);
	export_caller_put(&cred);
	ck_assert_int_eq(find(1001, &cred), -ETIMEDOUT);
	/* Not for ever. */
	table->resolver.users_stale_s = -1;
	age();
	ck_assert(is_put_off(1000));
	failure = 0;
	age();
	ck_assert_uint_eq(count_groups(1000), 20);
	ck_assert_uint_eq(count_groups(1001), 20);
}

/* A source of groups is down, and the C library says nothing of that. */
TEST(a_list_that_lacks_groups_is_no_answer_unless_they_are_known_to_be_left)
{
	ck_assert_uint_eq(count_groups(1000), 20);
	is_whole = false;
	ngroups = 1;
	for (int i = 0; i < 3; i++) {
		age();
		ck_assert_uint_eq(count_groups(1000), 20);
	}
	/* More groups than before are an answer. */
	ngroups = 21;
	age();
	ck_assert_uint_eq(count_groups(1000), 21);
	/* So is a list without the groups that the user left. */
	ngroups = 5;
	is_whole = true;
	age();
	ck_assert_uint_eq(count_groups(1000), 5);
	/* A day later the old list is forgotten. */
	is_whole = false;
	ngroups = 1;
	table->resolver.users_stale_s = -1;
	age();
	ck_assert_uint_eq(count_groups(1000), 1);
}

TEST(a_known_user_that_the_service_forgets_is_no_stranger_while_it_is_down)
{
	ck_assert_uint_eq(count_groups(1000), 20);
	failure = -2;
	is_whole = false;
	age();
	ck_assert_uint_eq(count_groups(1000), 20);
	is_whole = true;
	age();
	ck_assert_uint_eq(count_groups(1000), 0);
}

/* As after a restart: the table knows no user.  A late list might come from one
 * source while another one is down. */
TEST_LOOP(a_user_who_is_not_known_yet_waits_for_the_service, 0, 2)
{
	struct vfs_cred cred;

	table->resolver.slow_ms = _i ? 0 : 60000;	/* all lists are late */
	table->resolver.quiet_s = 0;
	failure = _i ? 0 : -1;
	ngroups = 3;
	for (int i = 0; i < 3; i++) {
		ck_assert(is_put_off(1000));
		age();
	}
	table->resolver.slow_ms = 60000;
	failure = 0;
	ngroups = 20;
	EVENTUALLY(!is_put_off(1000));
	ck_assert_int_eq(find(1000, &cred), 0);
	ck_assert_uint_eq(cred.ngids, 20);
	export_caller_put(&cred);
}

static void ask_for_one(void *arg)
{
	const struct export_claim who = { .uid = *(uint32_t *)arg, .gid = 9 };
	struct vfs_cred cred;

	if (export_caller_counted(table, &opts, &who, true, &cred) == 0)
		export_caller_put(&cred);
}

TEST(a_hung_service_costs_one_time_out)
{
	uint32_t uid = 1001;
	struct vfs_cred cred;
	pthread_t thread;
	uint64_t began;

	ck_assert_uint_eq(count_groups(1000), 20);
	age();
	hang();
	ck_assert_int_eq(thread_start(&thread, "asks", ask_for_one, &uid), 0);
	EVENTUALLY(asked >= 2);
	/* The caller waits for the first answer up to the limit. */
	began = clock_ns();
	ck_assert(is_put_off(uid));
	ck_assert_uint_lt(clock_ns() - began, 40ull * SLOW_MS * NS_PER_MS);
	/* From now on no caller does, and a poller need not pass calls on. */
	ck_assert_int_eq(find(1000, &cred), 0);
	ck_assert_uint_eq(cred.ngids, 20);
	export_caller_put(&cred);
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_int_eq(find(2000 + i, &cred), -ETIMEDOUT);
	ck_assert_uint_eq(asked, 2);
	answer_late(2);
	pthread_join(thread, NULL);
	/* A late answer does not count, and then a pause begins. */
	ck_assert_int_eq(find(1001, &cred), -ETIMEDOUT);
	ck_assert_int_eq(find(1000, &cred), 0);
	export_caller_put(&cred);
	ck_assert_int_eq(find(3000, &cred), -ETIMEDOUT);
	ck_assert_uint_eq(asked, 2);
}

/* Runs when this thread has looked at the clock next. */
static _Thread_local void (*after_look)(void);

int clock_gettime(clockid_t clock, struct timespec *t)
{
	void (*run)(void) = clock == CLOCK_MONOTONIC ? after_look : NULL;
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	if (run) {
		after_look = NULL;
		run();
	}
	return rc;
}

static pthread_t asker;

static void ask_for_another(void)
{
	static uint32_t uid = 1001;

	ck_assert_int_eq(thread_start(&asker, "asks", ask_for_one, &uid), 0);
	EVENTUALLY(asked > 0);
}

TEST(a_question_that_goes_out_meanwhile_makes_no_stranger)
{
	struct vfs_cred cred;

	is_hung = true;
	after_look = ask_for_another;
	ck_assert_int_eq(find(1000, &cred), -EAGAIN);
	is_hung = false;
	pthread_join(asker, NULL);
}

/* The list might lack the answer of a source that timed out. */
TEST(a_late_list_replaces_none_that_is_known)
{
	uint32_t uid = 1000;
	pthread_t thread;

	ck_assert_uint_eq(count_groups(uid), 20);
	age();
	ngroups = 3;
	hang();
	ck_assert_int_eq(thread_start(&thread, "asks", ask_for_one, &uid), 0);
	answer_late(2);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(count_groups(uid), 20);
	ck_assert_uint_eq(asked, 2);
	/* One in time does, and ends the doubts. */
	table->resolver.slow_ms = 60000;
	end_pause();
	age();
	ck_assert_uint_eq(count_groups(uid), 3);
	ck_assert_uint_eq(asked, 3);
}

static int find_and_put(uint32_t uid)
{
	struct vfs_cred cred;
	int err = find(uid, &cred);

	if (err == 0)
		export_caller_put(&cred);
	return err;
}

/* The administrator changes a user's groups, then has the file read. */
TEST(an_answer_from_before_a_reload_is_not_kept)
{
	uint32_t uid = 1000;
	pthread_t thread;

	is_hung = true;
	ck_assert_int_eq(thread_start(&thread, "asks", ask_for_one, &uid), 0);
	EVENTUALLY(asked > 0);
	publish("/a *\n");
	is_hung = false;
	pthread_join(thread, NULL);
	EVENTUALLY(find_and_put(uid) == -EAGAIN);
}

TEST(calls_that_come_together_ask_once)
{
	uint32_t uid = 1000;
	pthread_t threads[8];

	is_hung = true;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		ck_assert_int_eq(thread_start(&threads[i], "asks", ask_for_one,
					      &uid), 0);
	/* One thread asks, the others wait for its answer. */
	EVENTUALLY(asked > 0);
	ck_assert(HOLDS_FOR(20, asked == 1));
	is_hung = false;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(asked, 1);
}

TEST(answers_and_their_lists_are_bounded)
{
	for (uint32_t uid = 1; uid <= 20000; uid++)
		ck_assert_uint_eq(count_groups(uid), 20);
	ck_assert_uint_le(memo_count(table->users), 4096);
	ck_assert_uint_gt(memo_count(table->users), 2048);
	ngroups = VFS_MAX_GIDS;
	for (uint32_t uid = 30000; uid < 30200; uid++)
		ck_assert_uint_eq(count_groups(uid), VFS_MAX_GIDS);
	ck_assert_uint_le(memo_count(table->users), 64);
}

/* A client can name any number of them. */
TEST(users_of_whom_nothing_is_known_push_out_no_known_one)
{
	struct vfs_cred cred;

	ck_assert_uint_eq(count_groups(1000), 20);
	failure = -1;
	for (uint32_t uid = 2000; uid < 12000; uid++)
		ck_assert(is_put_off(uid));
	ck_assert_int_eq(find(1000, &cred), 0);
	ck_assert_uint_eq(cred.ngids, 20);
	export_caller_put(&cred);
}

/* Whatever users it has: root is one of them, and its group is 0. */
TEST(the_systems_name_service_tells_users_from_strangers)
{
	uint32_t *gids = NULL, n = 0;

	ck_assert_int_eq(resolver_system.groups(0, &gids, &n), 1);
	ck_assert_uint_ge(n, 1);
	ck_assert_uint_eq(gids[0], 0);
	free(gids);
	ck_assert_int_le(resolver_system.groups(4000000000, &gids, &n), 0);
}

/* A missing source of groups is no reason to take any away. */
TEST(the_system_says_of_a_group_that_is_there_who_left_it)
{
	ck_assert_int_eq(__nss_configure_lookup("passwd", "files"), 0);
	ck_assert_int_eq(__nss_configure_lookup("group", "files"), 0);
	ck_assert(resolver_system.has_left(1, 0));
	ck_assert(!resolver_system.has_left(1, 4000000000));
	ck_assert_int_eq(__nss_configure_lookup("group", "gannet_none"), 0);
	ck_assert(!resolver_system.has_left(1, 0));
}

/* Its users keep their groups, and are no strangers. */
TEST(a_source_of_names_that_is_not_there_can_not_tell)
{
	uint32_t *gids = NULL, n = 0;

	ck_assert_int_eq(__nss_configure_lookup("passwd", "gannet_none"), 0);
	ck_assert_int_eq(resolver_system.groups(4000000000, &gids, &n), -1);
	ck_assert_int_eq(__nss_configure_lookup("passwd", "files"), 0);
	ck_assert_int_eq(resolver_system.groups(4000000000, &gids, &n), 0);
}
