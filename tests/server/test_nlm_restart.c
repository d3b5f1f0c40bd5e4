/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOCKs that wait behind another call while their host restarts: their senders
 * are gone.  And hosts of which a notice has an older state than the known one.
 */
#include "tests/server/nlm_raw.h"

#include "lib/clock.h"
#include "lib/stats.h"
#include "nlm/proc.h"
#include "nsm/priv.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"

static void start(void)
{
	const struct harness_config config = {
		.backend = &fault_vfs_ops, .nlm.idle_ms = 600 * 1000,
	};

	fault_init();
	nlmr_start(&config);
}

static void end(void)
{
	close(nlmr.fd);
	nlmc_end();
}

TEST_CASE(.setup = start, .teardown = end);

/* Has @restart end the locks of the host while its LOCK waits behind an UNLOCK
 * of the same owner, which waits for the file's turn: the server has not seen
 * that LOCK's host yet.  Returns the answer to the LOCK. */
static uint32_t lock_behind(void (*restart)(void))
{
	unsigned asked_backend = fault_calls(FAULT_LOCK);

	fault_hold(FAULT_LOCK, true);
	nlmr_lock(3, 3);
	EVENTUALLY(fault_calls(FAULT_LOCK) > asked_backend);
	nlmr_unlock(0, 5);
	nlmr_lock(0, 5);
	EVENTUALLY(stats_sum_by_name("rpc_order_waits") == 1);
	restart();
	fault_hold(FAULT_LOCK, false);
	return nlmr_status_of(5, 3);
}

static void check_outlived(void (*restart)(void))
{
	ck_assert_uint_eq(lock_behind(restart), NLM4_DENIED_GRACE_PERIOD);
	/* One that comes later is of the host as it is now. */
	nlmr_lock(0, 6);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
}

static void free_all(void)
{
	nlmc_free_all(&(struct nlm_process){ "new0", 1, 4, IPPROTO_TCP,
					     nlmr.file });
}

TEST(a_lock_that_waited_for_its_turn_before_its_host_freed_all_is_not_granted)
{
	check_outlived(free_all);
}

static void restart(void)
{
	nlmc_restarted("new0", 9);
}

TEST(a_lock_that_waited_for_its_turn_before_its_host_restarted_is_not_granted)
{
	check_outlived(restart);
}

static void pass_on(void *ctx, const char *name, const struct sockaddr *addr,
		    uint32_t state)
{
	nlm_restarted(ctx, name, addr, state);
}

static const struct sockaddr *loopback(void)
{
	static struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return (const struct sockaddr *)&at;
}

/* The status monitor has no host on its list. */
static void restart_unmonitored(void)
{
	char dir[] = "/tmp/gannet-restart-XXXXXX", command[64];
	const struct nsm_config config = { .state_dir = dir,
					   .client = srv.client };
	struct nsm *nsm;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(nsm_create(&config, &nsm), 0);
	nsm_on_restart(nsm, pass_on, srv.nlm);
	nsm_news(nsm, "new0.example", loopback(), 9);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
	nsm_stop(nsm);
	nsm_destroy(nsm);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

TEST(a_lock_that_waited_before_its_unmonitored_host_restarted_is_not_granted)
{
	check_outlived(restart_unmonitored);
}

/* A client tells each restart more than once, until it has an answer. */
TEST(a_notice_that_comes_again_ends_no_share_of_since_then)
{
	const struct nlm_process one = { "new0", 1, 4, IPPROTO_TCP, nlmr.file };
	const struct nlm_process two = { "two", 2, 4, IPPROTO_TCP, nlmr.file };

	ck_assert_uint_eq(nlmc_share(&one, 3, 3), NLM4_GRANTED);
	restart();
	EVENTUALLY(nlmc_share(&two, 3, 3) == NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unshare(&two), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&one, 3, 3), NLM4_GRANTED);
	restart();
	ck_assert_uint_eq(stats_sum_by_name("nlm_late_restarts"), 1);
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_DENIED);
}

/* A restart of the host @name ends calls of the host @of.  By chance, so does a
 * restart of a host that takes the same place of the table's 65,536. */
static bool ends(const char *name, const char *of)
{
	struct nlm_host h = { .addr = xprt_addr_host(loopback()) };
	const struct nlm_who who = { .addr = h.addr,
				     .name = (const uint8_t *)name,
				     .name_len = (uint32_t)strlen(name) };
	struct nlm_table *table = calloc(1, sizeof(*table));
	uint64_t came = clock_ns();
	bool outlived;

	ck_assert_ptr_nonnull(table);
	strcpy(h.name, of);
	nlm_table_ended(table, &who, 3);
	outlived = nlm_table_is_outlived(table, &h, came, 1);
	free(table);
	return outlived;
}

/* Others with the address, of which the server knows nothing. */
static void restart_strangers(void)
{
	nlmc_restarted(ends("stranger", "new0") ? "foreigner" : "stranger", 9);
	nlmc_restarted(ends("new.0", "new0") ? "new.1" : "new.0", 9);
}

TEST(a_lock_that_waited_is_granted_though_others_of_its_address_restarted)
{
	ck_assert_uint_eq(lock_behind(restart_strangers), NLM4_GRANTED);
}

static void restart_late(void)
{
	nlmc_restarted("new0", 1);
}

TEST(a_lock_of_the_restarted_host_is_granted_though_it_waited_for_its_turn)
{
	ck_assert_uint_eq(lock_behind(restart_late), NLM4_GRANTED);
}

/* The host has a lock at the second address, and is not known at the first. */
static void lock_at_second(void)
{
	const struct nlm_process p = { "new0", 9, 4, IPPROTO_UDP, nlmr.file };

	nlmc_to = NLMC_SECOND;
	ck_assert_uint_eq(nlmc_lock(&p, (struct nlm_bytes){ 50, 1, true },
				    false), NLM4_GRANTED);
}

TEST(a_lock_that_waited_at_an_address_that_its_host_is_new_to_is_not_granted)
{
	lock_at_second();
	check_outlived(restart);
}

static void restart_told_late(void)
{
	nlmc_restarted("new0", 5);
}

TEST(a_notice_that_is_late_ends_no_lock_that_waits)
{
	/* In the state 7. */
	lock_at_second();
	ck_assert_uint_eq(lock_behind(restart_told_late), NLM4_GRANTED);
	ck_assert_uint_eq(stats_sum_by_name("nlm_late_restarts"), 1);
}

/* So many that some take the place in the table that the host has. */
static void restart_before_many(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct nlm *nlm = srv.nlm->ctx;
	uint64_t idle = clock_ms() + nlm->config.idle_ms;

	EVENTUALLY(clock_ms() + nlm->config.idle_ms > idle);
	restart();
	mutex_lock(&nlm->lock);
	nlm_hosts_sweep(nlm, idle);
	mutex_unlock(&nlm->lock);
	for (uint32_t i = 0; i < 16 * NLM_ENDS; i++) {
		at.sin_addr.s_addr = htonl(0x0a000000 + i);
		nlm_restarted(srv.nlm, "new0", (struct sockaddr *)&at, 9);
	}
}

TEST(a_lock_that_waited_for_its_turn_is_not_granted_though_others_restarted)
{
	/* The host is known. */
	nlmr_lock(0, 7);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	nlmr_unlock(0, 7);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	check_outlived(restart_before_many);
}

TEST(a_restart_ends_no_call_of_a_host_that_has_another_address_for_a_name)
{
	static const char *const host[] = { "10.0.0.1", "10.0.0.3",
					    "10.0.0.4" };
	static const char *const other[] = { "10.0.0.2", "10",
					     "::ffff:10.0.0.2", "10.example" };
	unsigned by_chance = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(host); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(other); j++)
			by_chance += ends(other[j], host[i]);
		ck_assert(ends(host[i], host[i]));
	}
	ck_assert_uint_lt(by_chance, ARRAY_SIZE(host));
}

/* Linux has one state for all of its network name spaces, the one of the status
 * monitor that it asked last: a new state alone is no restart. */
TEST(a_lock_in_a_newer_state_ends_nothing_without_a_notice)
{
	struct nlm_process p = { "c1", 1, 4, IPPROTO_TCP, nlmr.file };
	const struct nlm_bytes before = { 0, 10, true }, now = { 90, 10, true };

	ck_assert_uint_eq(nlmc_lock(&p, before, false), NLM4_GRANTED);
	nlmc_state = 9;
	ck_assert_uint_eq(nlmc_lock(&p, now, false), NLM4_GRANTED);
	p = (struct nlm_process){ "c2", 2, 4, IPPROTO_TCP, nlmr.file };
	ck_assert_uint_eq(nlmc_lock(&p, before, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&p, now, false), NLM4_DENIED);
}

/* A datagram that the host sent before it restarted. */
TEST(a_late_lock_of_before_the_restart_does_not_take_away_one_of_since_then)
{
	struct nlm_process p = { "c1", 1, 4, IPPROTO_TCP, nlmr.file };
	const struct nlm_bytes late = { 0, 10, true }, now = { 90, 10, true };

	nlmc_state = 9;
	ck_assert_uint_eq(nlmc_lock(&p, now, false), NLM4_GRANTED);
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&p, late, false), NLM4_GRANTED);
	nlmc_restarted("c1", 9);
	/* The locks that the notice ends have ended before this LOCK is looked
	 * at: its turn acts on the marks first. */
	p = (struct nlm_process){ "c2", 2, 4, IPPROTO_TCP, nlmr.file };
	ck_assert_uint_eq(nlmc_lock(&p, now, false), NLM4_DENIED);
}

/* ---- a state that goes backwards */

static const struct nlm_bytes head = { 0, 10, true };
static const struct nlm_bytes last = { 90, 10, true };
static struct nlm_process one, two;

/* @one has a lock and a share of the state 7; then a notice has the state 3. */
static void tell_older(void)
{
	one = two = (struct nlm_process){ "c1", 1, 4, IPPROTO_TCP, nlmr.file };
	two.host = "c2";
	two.svid = 2;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&one, 3, 3), NLM4_GRANTED);
	nlmc_restarted("c1", 3);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_DENIED);
}

static bool has_lost_all(void)
{
	return nlmc_lock(&two, head, false) == NLM4_GRANTED &&
	       nlmc_share(&two, 3, 3) == NLM4_GRANTED;
}

/* @one has only @last, locked in the state 3. */
static void go_back_to_3(void)
{
	tell_older();
	nlmc_state = 3;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	nlmc_state = 7;
	EVENTUALLY(has_lost_all());
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
}

static const struct nlm_bytes middle = { 50, 1, true };

TEST(a_lock_in_the_older_state_ends_what_its_host_had_before_it_went_back)
{
	go_back_to_3();
	/* The notice comes again, and the next restart is told. */
	nlmc_restarted("c1", 3);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
	nlmc_restarted("c1", 9);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_GRANTED);
}

/* It was sent when the host started in the state 7, or an earlier one, which it
 * can reach again. */
TEST(a_late_notice_of_before_the_host_went_back_ends_no_lock_of_since_then)
{
	go_back_to_3();
	nlmc_restarted("c1", 7);
	nlmc_restarted("c1", 5);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
	nlmc_state = 3;
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, middle, false), NLM4_DENIED);
}

TEST(a_host_that_comes_forward_again_loses_its_locks_with_its_next_one)
{
	go_back_to_3();
	nlmc_restarted("c1", 5);
	nlmc_state = 5;
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, middle, false), NLM4_DENIED);
}

/* The LOCKs of both states come before their notices, and the older notice is
 * that which comes late. */
TEST(a_notice_that_is_overtaken_by_a_step_back_ends_no_lock_of_since_then)
{
	one = two = (struct nlm_process){ "c1", 1, 4, IPPROTO_TCP, nlmr.file };
	two.host = "c2";
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_state = 3;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	nlmc_restarted("c1", 7);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
	nlmc_restarted("c1", 3);
	nlmc_restarted("c1", 7);
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}

/* Processes have the same numbers after a restart. */
TEST(a_lock_before_its_notice_keeps_no_lock_of_its_namesake)
{
	unsigned asked;

	one = two = (struct nlm_process){ "c1", 1, 4, IPPROTO_TCP, nlmr.file };
	two.host = "c2";
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	nlmc_state = 9;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	asked = fault_calls(FAULT_LOCK);
	nlmc_restarted("c1", 9);
	/* The backend is to forget the bytes. */
	EVENTUALLY(fault_calls(FAULT_LOCK) == asked + 1);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, middle, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
}

/* Linux has one state for all of its network name spaces. */
TEST(a_lock_in_a_newer_state_settles_a_doubt_and_ends_nothing)
{
	tell_older();
	nlmc_state = 9;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
}

/* Its first LOCK came before the notice, and it has reached the state from
 * before it went back again. */
TEST(locks_that_outlived_a_step_back_of_their_host_end_with_its_next_restart)
{
	one = two = (struct nlm_process){ "c1", 1, 4, IPPROTO_TCP, nlmr.file };
	two.host = "c2";
	two.svid = 2;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_state = 5;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	nlmc_restarted("c1", 5);
	ck_assert_uint_eq(nlmc_lock(&one, middle, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
	nlmc_restarted("c1", 7);
	nlmc_state = 7;
	ck_assert_uint_eq(nlmc_lock(&one, (struct nlm_bytes){ 60, 1, true },
				    false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_GRANTED);
}

/* It asks for bytes that it had, as another process. */
TEST(a_host_that_went_back_gets_its_own_dead_lock_at_once)
{
	tell_older();
	nlmc_state = 3;
	one.svid = 9;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}

/* It has restarted again, and that notice is on its way. */
TEST(a_lock_in_any_older_state_settles_the_doubt)
{
	tell_older();
	nlmc_state = 5;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	nlmc_restarted("c1", 5);
	nlmc_state = 7;
	EVENTUALLY(has_lost_all());
	ck_assert_uint_eq(nlmc_lock(&two, last, false), NLM4_DENIED);
}

TEST(a_lock_in_the_known_state_says_that_the_notice_was_late)
{
	tell_older();
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	/* The datagram of this LOCK is also late: it ends no lock. */
	nlmc_state = 3;
	ck_assert_uint_eq(nlmc_lock(&one, (struct nlm_bytes){ 50, 1, true },
				    false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_DENIED);
}

TEST(a_lock_without_a_state_settles_no_doubt)
{
	tell_older();
	nlmc_state = 0;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	nlmc_state = 3;
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	EVENTUALLY(nlmc_lock(&two, head, false) == NLM4_GRANTED);
}

TEST(a_host_that_went_back_loses_its_locks_at_all_addresses)
{
	const struct nlm_process there = { "c1", 4, 4, IPPROTO_UDP,
					   nlmr.file };

	nlmc_to = NLMC_SECOND;
	ck_assert_uint_eq(nlmc_lock(&there, last, false), NLM4_GRANTED);
	nlmc_to = NULL;
	tell_older();
	nlmc_state = 3;
	ck_assert_uint_eq(nlmc_lock(&one, (struct nlm_bytes){ 50, 1, true },
				    false), NLM4_GRANTED);
	EVENTUALLY(nlmc_lock(&two, last, false) == NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
}

/* Shares have no state: a late LOCK must not end newer shares. */
TEST(a_newer_restart_settles_the_doubt)
{
	tell_older();
	nlmc_restarted("c1", 9);
	EVENTUALLY(nlmc_share(&two, 3, 3) == NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unshare(&two), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&one, 3, 3), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, last, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_share(&two, 3, 3), NLM4_DENIED);
}

/* Before 1, which is the state of the waiting hosts. */
#define OLDER	((uint32_t)-3)

static pthread_t older;

static void *lock_in_older_state(void *status)
{
	const struct nlm_process p = { "new0", 8, 4, IPPROTO_UDP, nlmr.file };

	*(uint32_t *)status = nlmc_lock(&p, (struct nlm_bytes){ 60, 1, true },
					false);
	return NULL;
}

static uint32_t older_status;

static void go_back(void)
{
	nlmc_restarted("new0", OLDER);
	nlmc_state = OLDER;
	pthread_create(&older, NULL, lock_in_older_state, &older_status);
	EVENTUALLY(stats_sum_by_name("nlm_restarts") == 1);
}

/* It has waited at an address that its host is new to. */
TEST(a_lock_that_waited_while_its_host_went_back_is_not_granted)
{
	nlmc_state = 1;
	lock_at_second();
	ck_assert_uint_eq(lock_behind(go_back), NLM4_DENIED_GRACE_PERIOD);
	pthread_join(older, NULL);
	ck_assert_uint_eq(older_status, NLM4_GRANTED);
	/* Nor is it taken for the host's newest state. */
	nlmc_restarted("new0", 3);
	two = (struct nlm_process){ "c2", 2, 4, IPPROTO_TCP, nlmr.file };
	EVENTUALLY(nlmc_lock(&two, (struct nlm_bytes){ 60, 1, true }, false) ==
		   NLM4_GRANTED);
}

/* True if a LOCK of the host was heard. */
static bool is_heard(void)
{
	struct nlm *nlm = srv.nlm->ctx;
	struct nlm_who who = { .name = (const uint8_t *)"new0", .name_len = 4 };
	const struct nlm_host *h;
	bool is;

	who.addr.s6_addr[10] = who.addr.s6_addr[11] = 0xff;
	who.addr.s6_addr[12] = 127;
	who.addr.s6_addr[15] = 1;
	mutex_lock(&nlm->lock);
	h = nlm_host_next(&nlm->table, &who, NULL);
	is = h && h->heard_ns;
	mutex_unlock(&nlm->lock);
	return is;
}

static void lock_since_then(void)
{
	nlmc_state = OLDER;
	pthread_create(&older, NULL, lock_in_older_state, &older_status);
	EVENTUALLY(is_heard());
}

/* It was sent before the host went back, and waits while the first LOCK since
 * then is heard. */
TEST(a_lock_that_came_before_another_one_does_not_say_how_its_host_is_now)
{
	ck_assert_uint_eq(lock_behind(lock_since_then), NLM4_GRANTED);
	pthread_join(older, NULL);
	ck_assert_uint_eq(older_status, NLM4_GRANTED);
	/* This notice is late. */
	nlmc_restarted("new0", 1);
	two = (struct nlm_process){ "c2", 2, 4, IPPROTO_TCP, nlmr.file };
	ck_assert_uint_eq(nlmc_lock(&two, (struct nlm_bytes){ 60, 1, true },
				    false), NLM4_DENIED);
}

static void tell_state_1(void)
{
	nlmc_restarted("new0", 1);
}

/* In the state 1, as the notice behind it. */
TEST(a_lock_that_came_before_the_notice_does_not_settle_it)
{
	lock_at_second();
	ck_assert_uint_eq(lock_behind(tell_state_1), NLM4_GRANTED);
	two = (struct nlm_process){ "c2", 2, 4, IPPROTO_TCP, nlmr.file };
	ck_assert_uint_eq(nlmc_lock(&two, (struct nlm_bytes){ 50, 1, true },
				    false), NLM4_DENIED);
	/* A LOCK that comes after the notice settles the doubt. */
	nlmr_lock(0, 6);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	EVENTUALLY(nlmc_lock(&two, (struct nlm_bytes){ 50, 1, true }, false) ==
		   NLM4_GRANTED);
}
