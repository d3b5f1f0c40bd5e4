/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks, as clients of each version ask for them. */
#include "tests/server/nlm_client.h"

#include <unistd.h>

#include "lib/thread.h"
#include "tests/unit/runner.h"

static struct nlm_process one, two;

static const struct nlm_bytes head = { 0, 10, true };
static const struct nlm_bytes all = { 0, 0, true };
static const struct nlm_bytes all_shared = { 0, 0, false };

static void start_with(const struct harness_config *config)
{
	nlmc_start(config);
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_TCP,
				    nfs_make_file(top, "file", "") };
	two = (struct nlm_process){ "c2", 22, 4, IPPROTO_TCP, one.fh };
}

static void start(void)
{
	start_with(NULL);
}

TEST_CASE(.setup = start, .teardown = nlmc_end);

TEST(a_lock_keeps_others_out_until_it_is_unlocked)
{
	struct nlm_holder h;

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, all, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, all_shared, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_test(&two, all, &h), NLM4_DENIED);
	ck_assert_uint_eq(h.svid, 11);
	ck_assert_uint_eq(h.bytes.off, 0);
	ck_assert_uint_eq(h.bytes.len, 10);
	ck_assert(h.bytes.exclusive);
	ck_assert_uint_eq(nlmc_test(&one, all, NULL), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, all, false), NLM4_GRANTED);
}

TEST(shared_locks_go_together)
{
	ck_assert_uint_eq(nlmc_lock(&one, all_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, all_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}

TEST(processes_of_one_client_exclude_each_other)
{
	struct nlm_process other = one;

	other.svid = 12;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&other, head, false), NLM4_DENIED);
}

TEST(versions_1_3_and_4_over_tcp_and_udp_see_the_same_locks)
{
	static const uint32_t versions[] = { 1, 3, 4 };
	struct nlm_holder h;

	for (unsigned i = 0; i < 6; i++) {
		one.vers = versions[i % 3];
		two.vers = versions[(i + 1) % 3];
		one.proto = i % 2 ? IPPROTO_UDP : IPPROTO_TCP;
		two.proto = i / 3 ? IPPROTO_UDP : IPPROTO_TCP;
		ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
		ck_assert_uint_eq(nlmc_test(&two, all, &h), NLM4_DENIED);
		ck_assert_uint_eq(h.bytes.len, 10);
		ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
		ck_assert_uint_eq(nlmc_unlock(&one, all), NLM4_GRANTED);
	}
}

TEST(ranges_of_32_bits_reach_to_the_end_of_the_file)
{
	const struct nlm_bytes far = { 1ull << 40, 5, true };
	const struct nlm_bytes beyond = { 0xfffffff0, 0x20, true };
	struct nlm_holder h;

	one.vers = 3;
	ck_assert_uint_eq(nlmc_lock(&two, far, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_test(&one, beyond, &h), NLM4_DENIED);
	ck_assert_uint_eq(h.bytes.off, UINT32_MAX);
	ck_assert_uint_eq(nlmc_lock(&one, beyond, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&two, far), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, beyond, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, far, false), NLM4_DENIED);
}

TEST(offsets_beyond_63_bits_are_too_big)
{
	const struct nlm_bytes beyond = { 1ull << 63, 1, true };

	ck_assert_uint_eq(nlmc_lock(&one, beyond, false), NLM4_FBIG);
	ck_assert_uint_eq(nlmc_test(&one, beyond, NULL), NLM4_FBIG);
}

TEST(each_version_has_its_own_words_for_an_error)
{
	one.fh = top;			/* a directory */
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_FAILED);
	one.fh.data.data_len = 5;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_STALE_FH);
	one.vers = 3;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED_NOLOCKS);
}

TEST(names_with_control_characters_are_refused)
{
	one.host = "c1\nerr: c1";
	ck_assert_uint_eq(nlmc_lock_unwatched(&one, head), NLM4_FAILED);
	ck_assert_uint_eq(nlmc_share(&one, 1, 1), NLM4_FAILED);
}

TEST(a_removed_file_is_stale_and_its_locks_can_be_unlocked)
{
	REMOVE3args ra = { .object = { top, (char *)"file" } };
	REMOVE3res rr;

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nfs_call(&root, remove, &ra, &rr);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_STALE_FH);
	ck_assert_uint_eq(nlmc_unlock(&one, all), NLM4_GRANTED);
}

TEST(shares_deny_each_other_and_free_all_ends_them)
{
	one.vers = two.vers = 3;
	/* Reads, and denies others to write. */
	ck_assert_uint_eq(nlmc_share(&one, 2, 1), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&two, 0, 3), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_share(&two, 1, 1), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_share(&two, 0, 1), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unshare(&one), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&one, 0, 1), NLM4_DENIED);
	nlmc_free_all(&two);
	ck_assert_uint_eq(nlmc_share(&one, 0, 1), NLM4_GRANTED);
}

TEST(free_all_ends_unwatched_locks_and_restarted_hosts_lose_theirs)
{
	ck_assert_uint_eq(nlmc_lock_unwatched(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	nlmc_free_all(&one);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	nlmc_restarted("c3", 9);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	/* The lock was made with state 7. */
	nlmc_restarted("c2", 7);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	nlmc_restarted("c2", 9);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
}

/* A client numbers its processes separately for each server that it knows. */
TEST(clients_of_two_addresses_of_the_server_are_two)
{
	one.proto = IPPROTO_UDP;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_to = NLMC_SECOND;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&one, (struct nlm_bytes){ 10, 1, true },
				    false), NLM4_GRANTED);
	/* Its restart ends the locks of both. */
	nlmc_restarted(one.host, 9);
	ck_assert_uint_eq(nlmc_lock(&two, all, false), NLM4_GRANTED);
}

TEST(a_restart_that_is_told_after_a_newer_one_ends_nothing)
{
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	/* The lock was made with state 7. */
	nlmc_restarted("c2", 5);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_share(&one, 0, 1), NLM4_DENIED);
	ck_assert_uint_eq(stats_sum_by_name("nlm_late_restarts"), 1);
	/* States also grow past the end of 31 bits. */
	nlmc_restarted("c2", 0x80000005);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&one, 0, 1), NLM4_GRANTED);
}

#define OTHER_EXPORT	"/other 127.0.0.1(rw,insecure)\n"
#define THIS_EXPORT	"/mem 127.0.0.1(rw,insecure,no_root_squash)\n"

/* The export of @fh, counted: its files stay when no set names it. */
static struct export_tree *keep_export(nfs_fh3 fh)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct export_peer from = { (const struct sockaddr *)&at, true,
					  RPC_AUTH_SYS, EXPORT_LOCKS,
					  RPC_CLEAR };
	struct export_opts opts;
	struct vfs_handle h;
	struct export_tree *e;
	uint32_t id;

	ck_assert_int_eq(export_fh_parse(srv.exports, fh.data.data_val,
					 fh.data.data_len, &id, &h), 0);
	ck_assert_int_eq(export_reach(srv.exports, id, &from, &e, &opts), 0);
	return e;
}

TEST(locks_end_with_their_export_though_it_is_added_again_at_once)
{
	struct export_tree *kept = keep_export(one.fh);

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	harness_publish(&srv, OTHER_EXPORT);
	harness_publish(&srv, THIS_EXPORT);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	/* That lock is of the export as it is now: no turn of the file ends
	 * it, nor does another rule for a client. */
	ck_assert_uint_eq(nlmc_lock(&one, head, true), NLM4_BLOCKED);
	harness_publish(&srv, THIS_EXPORT OTHER_EXPORT);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	export_put(kept);
}

TEST(nobody_has_to_come_for_locks_to_end_with_their_export)
{
	struct lock_totals t;

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	harness_publish(&srv, OTHER_EXPORT);
	harness_publish(&srv, THIS_EXPORT);
	EVENTUALLY((nlm_walk(srv.nlm, 0, NULL, NULL, &t), t.locks == 0));
}

/* Exported to all addresses of this machine. */
#define LOCAL_EXPORTS	"/mem 127.0.0.0/8(rw,insecure,no_root_squash)\n"

TEST(clients_of_one_name_have_locks_of_their_own)
{
	harness_publish(&srv, LOCAL_EXPORTS);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_from = "127.0.0.2";
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	nlmc_free_all(&one);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	nlmc_from = NULL;
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	nlmc_from = "127.0.0.2";
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
}

TEST(strangers_on_an_unprivileged_port_tell_of_no_restart)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_notify("c1", false);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	if (nlmc_notify("c1", true))
		ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}

/* The operator's list, malloced. */
static char *list(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	nlm_list(srv.nlm, out);
	fclose(out);
	return text;
}

TEST(the_operator_sees_locks_and_waiters)
{
	char *text;

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, all_shared, true), NLM4_BLOCKED);
	text = list();
	ck_assert_str_eq(text, "locks: 1 of 2 clients, 1 waiters, 0 shares\n"
		"lock waited for by c2, process 22: /mem, bytes 0 to the end, "
		"shared\n"
		"lock of c1, process 11: /mem, bytes 0 to 9\n");
	free(text);
}

static bool is_listed(const char *what)
{
	char *text = list();
	bool is = strstr(text, what);

	free(text);
	return is;
}

TEST(an_export_that_is_taken_away_takes_its_locks_along)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	harness_publish(&srv, "/other 127.0.0.1(rw,insecure)\n");
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_STALE_FH);
	EVENTUALLY(!is_listed("lock of c1"));
	/* harness_stop() waits until its file system is unmounted. */
}

TEST(callers_need_permission_to_read_unless_the_export_says_no)
{
	SETATTR3args sa = { .object = one.fh };
	SETATTR3res sr;

	sa.new_attributes.mode.set_it = 1;
	sa.new_attributes.uid.set_it = 1;
	sa.new_attributes.uid.set_uid3_u.uid = 4711;
	nfs_call(&root, setattr, &sa, &sr);
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,all_squash)\n");
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_FAILED);
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,all_squash,"
			"anonuid=4711)\n");
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,all_squash,"
			"insecure_locks)\n");
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	harness_publish(&srv, "/mem 127.0.0.1(ro,insecure,all_squash,"
			"insecure_locks)\n");
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_ROFS);
	ck_assert_uint_eq(nlmc_lock(&one, all_shared, false), NLM4_GRANTED);
}

TEST(the_server_waits_for_no_lock_of_others)
{
	ck_assert_uint_eq(nlmc_granted(&one, head), NLM4_DENIED);
	one.vers = 1;
	ck_assert_uint_eq(nlmc_granted(&one, head), NLM4_DENIED);
}

/* ---- the grace period */

static void start_grace(void)
{
	const struct harness_config config = { .nlm = { .grace_s = 2 } };

	start_with(&config);
}

TEST_CASE(.setup = start_grace, .teardown = nlmc_end);

TEST(only_reclaims_are_granted_in_the_grace_period_and_none_after_it)
{
	ck_assert_uint_eq(nlmc_lock(&two, head, true),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_test(&two, head, NULL),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_share(&two, 1, 1), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_lock_unwatched(&two, head),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_cancel(&two, head), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_reclaim(&two, head), NLM4_DENIED);
	EVENTUALLY(nlmc_lock(&two, head, false) == NLM4_DENIED);
	ck_assert_uint_eq(nlmc_reclaim(&two, (struct nlm_bytes){ 50, 1, true }),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
}

/* ---- a tree with another server, whose clients reclaim their locks */

static struct vfs_ops shared;
static atomic_bool others_reclaim;
static atomic_uint left_to_reclaim, left_for_good;

/* The next new lock comes too late; the locks that are set and cleared then. */
static atomic_bool too_late;
static struct vfs_lock undone[4];
static unsigned nundone;

static bool is_late(const struct vfs_lock *l)
{
	static bool undoing;

	if (l->how == VFS_LOCK_SET && atomic_exchange(&too_late, false))
		return undoing = true;
	if (undoing && nundone < ARRAY_SIZE(undone) &&
	    (l->how == VFS_LOCK_CLEAR || l->back))
		undone[nundone++] = *l;
	return false;
}

static int lock_shared(struct vfs_op *op)
{
	if (is_late(op->lock))
		return VFS_LOCK_LATE;
	if (op->lock->how == VFS_LOCK_RELEASE)
		atomic_fetch_add(op->lock->reclaim ? &left_to_reclaim :
						     &left_for_good, 1);
	if (op->lock->how == VFS_LOCK_SET && !op->lock->reclaim &&
	    !op->lock->back && atomic_load(&others_reclaim))
		return -ETIMEDOUT;
	return mem_vfs_ops.lock ? mem_vfs_ops.lock(op) : 0;
}

static int mount_shared(const struct vfs_config *config, struct vfs_fs **out)
{
	int err = mem_vfs_ops.mount(config, out);

	if (err == 0)
		(*out)->ops = &shared;
	return err;
}

static void start_shared_with(unsigned grace_s)
{
	const struct harness_config config = {
		.backend = &shared, .nlm = { .grace_s = grace_s },
	};

	shared = mem_vfs_ops;
	shared.mount = mount_shared;
	shared.lock = lock_shared;
	atomic_store(&others_reclaim, true);
	start_with(&config);
}

static void start_shared(void)
{
	start_shared_with(0);
}

TEST_CASE(.setup = start_shared, .teardown = nlmc_end);

TEST(no_lock_is_granted_while_clients_of_another_server_reclaim_theirs)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_lock(&one, head, true),
			  NLM4_DENIED_GRACE_PERIOD);
	/* Nothing of it is left, and no waiter. */
	ck_assert_uint_eq(nlmc_test(&two, all, NULL), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_cancel(&one, head), NLM4_GRANTED);
	atomic_store(&others_reclaim, false);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, all, false), NLM4_DENIED);
}

TEST(a_lock_that_came_too_late_leaves_what_its_owner_had)
{
	const struct nlm_bytes before = { 10, 10, false };
	const struct nlm_bytes more = { 0, 30, true };

	atomic_store(&others_reclaim, false);
	ck_assert_uint_eq(nlmc_lock(&one, before, false), NLM4_GRANTED);
	atomic_store(&too_late, true);
	ck_assert_uint_eq(nlmc_lock(&one, more, false),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nundone, 3);
	ck_assert(undone[1].back && !undone[1].exclusive);
	ck_assert_uint_eq(undone[1].off, 10);
	ck_assert_uint_eq(undone[1].len, 10);
	for (unsigned i = 0; i < 3; i += 2) {
		ck_assert_int_eq(undone[i].how, VFS_LOCK_CLEAR);
		ck_assert_uint_eq(undone[i].off, i * 10);
		ck_assert_uint_eq(undone[i].len, 10);
	}
	/* It has its old lock, and nothing else. */
	ck_assert_uint_eq(nlmc_lock(&two, (struct nlm_bytes){ 10, 10, true },
				    false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, (struct nlm_bytes){ 20, 10, true },
				    false), NLM4_GRANTED);
}

TEST(a_waiter_waits_on_while_clients_of_another_server_reclaim_theirs)
{
	atomic_store(&others_reclaim, false);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
	atomic_store(&others_reclaim, true);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_test(&one, head, NULL), NLM4_GRANTED);
	atomic_store(&others_reclaim, false);
	EVENTUALLY(nlmc_test(&one, head, NULL) == NLM4_DENIED);
}

static void end_in_test(void)
{
}

TEST_CASE(.setup = start_shared, .teardown = end_in_test);

TEST(a_server_that_ends_says_so_of_each_lock_and_of_no_other)
{
	const struct nlm_bytes tail = { 100, 10, true };

	atomic_store(&others_reclaim, false);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, tail, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&two, tail), NLM4_GRANTED);
	ck_assert_uint_eq(atomic_load(&left_for_good), 1);
	ck_assert_uint_eq(atomic_load(&left_to_reclaim), 0);
	nlmc_end();
	ck_assert_uint_eq(atomic_load(&left_for_good), 1);
	ck_assert_uint_eq(atomic_load(&left_to_reclaim), 1);
}

static void start_shared_grace(void)
{
	start_shared_with(3600);
}

TEST_CASE(.setup = start_shared_grace, .teardown = nlmc_end);

TEST(a_tree_with_several_servers_grants_reclaims)
{
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_reclaim(&two, head), NLM4_DENIED);
}

/* The status monitor answers when the grace period is over. */
static struct late {
	void	  (*done)(void *arg, int err);
	void	   *arg;
	pthread_t   thread;
	bool	    asked;
} late;

static void answer_late(void *arg)
{
	/* Longer than the grace period. */
	pause_on_purpose(1200000);
	late.done(late.arg, 0);
}

static void monitor_late(struct nsm *nsm, const struct rpc_host *host,
			 void (*done)(void *arg, int err), void *arg)
{
	late.done = done;
	late.arg = arg;
	late.asked = true;
	ck_assert_int_eq(thread_start(&late.thread, "late", answer_late, NULL),
			 0);
}

static void start_late(void)
{
	const struct harness_config config = {
		.nlm = { .grace_s = 1, .monitor.monitor = monitor_late },
	};

	start_with(&config);
}

TEST_CASE(.setup = start_late, .teardown = nlmc_end);

TEST(a_reclaim_that_waits_until_the_grace_period_is_over_is_refused)
{
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_DENIED_GRACE_PERIOD);
	if (late.asked)
		pthread_join(late.thread, NULL);
}
