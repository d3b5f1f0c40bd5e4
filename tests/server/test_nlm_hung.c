/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks of new hosts while a disk hangs: the status monitor's, or the
 * file's. */
#include "tests/server/nlm_raw.h"

#include <sys/socket.h>

#include "lib/stats.h"
#include "nlm/proc.h"
#include "tests/server/daemon_run.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"

#define ROOM	4u		/* for calls at the status monitor */

/* The calls that the status monitor has. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *asked[2 * ROOM];
static _Atomic unsigned nasked, nforgotten;
static void (*tell_done)(void *arg, int err);

static void monitor_hangs(struct nsm *nsm, const struct rpc_host *host,
			  void (*done)(void *arg, int err), void *arg)
{
	pthread_mutex_lock(&lock);
	tell_done = done;
	asked[nasked] = arg;
	nasked++;
	pthread_mutex_unlock(&lock);
}

static bool monitor_forgets(struct nsm *nsm, void *arg)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < nasked && !found; i++) {
		found = asked[i] == arg;
		if (found)
			asked[i] = NULL;
	}
	nforgotten += found;
	pthread_mutex_unlock(&lock);
	return found;
}

static void start(void)
{
	const struct harness_config config = {
		.nlm = { .max_asking = ROOM, .monitor = {
			.monitor = monitor_hangs, .forget = monitor_forgets } },
	};

	nasked = nforgotten = 0;
	nlmr_start(&config);
}

TEST_CASE(.setup = start, .teardown = nlmc_end);

/* By a host that no other call is of. */
static void send_lock(uint32_t number)
{
	nlmr_lock(number, number);
}

TEST(locks_that_wait_for_the_status_monitor_are_bounded)
{
	for (uint32_t i = 0; i < ROOM + 2; i++)
		send_lock(i);
	/* LOCKs without a place have to come again. */
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(nlmr_status(), NLM4_DENIED_GRACE_PERIOD);
	EVENTUALLY(nasked == ROOM);
	ck_assert_uint_eq(stats_sum_by_name("nlm_asking_full"), 2);
	for (unsigned i = 0; i < ROOM; i++)
		tell_done(asked[i], 0);
	for (unsigned i = 0; i < ROOM; i++)
		ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	/* A place is free again.  An old number would make the call a
	 * duplicate, which gets its old reply. */
	send_lock(ROOM + 2);
	EVENTUALLY(nasked == ROOM + 1);
	tell_done(asked[ROOM], 0);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

TEST(a_connection_that_goes_takes_its_waiting_locks_along)
{
	for (uint32_t i = 0; i < ROOM; i++)
		send_lock(i);
	EVENTUALLY(nasked == ROOM);
	close(nlmr.fd);
	EVENTUALLY((rpc_server_relieve(srv.server),
		    nforgotten == ROOM));
	nlmr.fd = daemon_connect(srv.port);
	send_lock(ROOM);
	EVENTUALLY(nasked == ROOM + 1);
	tell_done(asked[ROOM], 0);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

static void *lock_by_datagram(void *status)
{
	const struct nlm_process p = { "slow", 1, 4, IPPROTO_UDP, nlmr.file };

	*(uint32_t *)status = nlmc_lock(&p, (struct nlm_bytes){ 0, 1, true },
					false);
	return NULL;
}

TEST(a_datagram_waits_for_a_status_monitor_that_is_slow)
{
	uint32_t status = ~0u;
	pthread_t thread;

	pthread_create(&thread, NULL, lock_by_datagram, &status);
	EVENTUALLY(nasked == 1);
	for (unsigned i = 0; i < 5; i++)
		rpc_server_relieve(srv.server);
	ck_assert_uint_eq(nforgotten, 0);
	tell_done(asked[0], 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(status, NLM4_GRANTED);
	close(nlmr.fd);
}

/* A datagram that waits is given up, and comes again. */
static void check_given_up(void)
{
	uint32_t status = ~0u;
	pthread_t thread;

	nlmc_resend_ms = 50;
	pthread_create(&thread, NULL, lock_by_datagram, &status);
	EVENTUALLY(nasked == 1);
	EVENTUALLY((rpc_server_relieve(srv.server), nforgotten == 1));
	/* It comes again. */
	EVENTUALLY(nasked == 2);
	tell_done(asked[1], 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(status, NLM4_GRANTED);
	close(nlmr.fd);
}

TEST(a_datagram_does_not_wait_for_a_status_monitor_that_hangs)
{
	struct nlm *nlm = srv.nlm->ctx;

	nlm->config.asking_ms = 1;
	check_given_up();
}

TEST(datagrams_that_wait_for_the_status_monitor_leave_places_to_other_calls)
{
	struct nlm *nlm = srv.nlm->ctx;

	nlm->config.asking_ms = 600 * 1000;
	/* As if another one, which came before, waited. */
	mutex_lock(&nlm->await_lock);
	nlm->kept += ROOM / 4;
	mutex_unlock(&nlm->await_lock);
	check_given_up();
}

TEST(locks_that_wait_for_the_monitor_are_to_come_again_when_the_server_ends)
{
	for (uint32_t i = 0; i < ROOM; i++)
		send_lock(i);
	EVENTUALLY(nasked == ROOM);
	nlm_ending(srv.nlm);
	for (unsigned i = 0; i < ROOM; i++)
		ck_assert_uint_eq(nlmr_status(), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nforgotten, ROOM);
	/* A LOCK that comes later does not wait, either. */
	send_lock(ROOM);
	ck_assert_uint_eq(nlmr_status(), NLM4_DENIED_GRACE_PERIOD);
	close(nlmr.fd);
}

/* ---- a host that restarts while its LOCK waits for the status monitor */

/* Sends a LOCK in the state 1, has @end end the locks of its host, and returns
 * the answer to the LOCK. */
static uint32_t lock_outlived(void (*end)(void))
{
	unsigned n = nasked;

	send_lock(n);
	EVENTUALLY(nasked == n + 1);
	end();
	tell_done(asked[n], 0);
	return nlmr_status();
}

static void restart(void)
{
	nlmc_restarted("new0", 3);
}

static void restart_late(void)
{
	nlmc_restarted("new0", 1);
}

static void free_all(void)
{
	nlmc_free_all(&(struct nlm_process){ "new0", 1, 4, IPPROTO_TCP,
					     nlmr.file });
}

static void release_locks(void)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct in6_addr addr =
		xprt_addr_host((const struct sockaddr *)&at);
	struct lock_totals ended = { 0 };

	nlm_release(srv.nlm, &addr, NULL, &ended);
	/* The host of the call under way is one. */
	ck_assert_uint_ge(ended.hosts, 1);
}

/* The process that sent it is gone, so the lock would stay for good. */
static void check_outlived(void (*end)(void))
{
	ck_assert_uint_eq(lock_outlived(end), NLM4_DENIED_GRACE_PERIOD);
	/* A call that comes later is of the host as it is now; another number
	 * makes it another call. */
	nlmr_lock(0, 1);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

TEST(a_lock_that_came_before_its_host_restarted_is_not_granted)
{
	check_outlived(restart);
}

TEST(a_lock_that_came_before_its_host_freed_all_is_not_granted)
{
	check_outlived(free_all);
}

TEST(a_lock_that_came_before_its_client_was_released_is_not_granted)
{
	check_outlived(release_locks);
}

TEST(a_lock_of_the_restarted_host_is_granted_though_the_notice_is_late)
{
	ck_assert_uint_eq(lock_outlived(restart_late), NLM4_GRANTED);
	close(nlmr.fd);
}

/* ---- the list of hosts, while the disk of the file hangs */

static atomic_bool is_late;		/* the status monitor */
static char left[256];			/* the list of hosts, "a b " */

static void monitor_notes(struct nsm *nsm, const struct rpc_host *host,
			  void (*done)(void *arg, int err), void *arg)
{
	if (atomic_load(&is_late))
		monitor_hangs(nsm, host, done, arg);
	else
		done(arg, 0);
}

static void unmonitor_notes(struct nsm *nsm, const struct rpc_host *host)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = strlen(left);
	snprintf(left + n, sizeof(left) - n, "%s ", host->name);
	pthread_mutex_unlock(&lock);
}

static bool has_left(const char *name)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = strstr(left, name);
	pthread_mutex_unlock(&lock);
	return has;
}

static const struct nlm_bytes far_off = { 1000, 1, true };
static struct nlm_process other = { "other", 5, 4, IPPROTO_TCP, { { 0 } } };

/* A host that is idle for a moment leaves the list.  Another host has a
 * lock. */
static void start_list(void)
{
	const struct harness_config config = {
		.backend = &fault_vfs_ops, .nlm = { .idle_ms = 1, .monitor = {
			.monitor = monitor_notes, .unmonitor = unmonitor_notes,
			.forget = monitor_forgets,
		} },
	};

	nasked = nforgotten = 0;
	fault_init();
	left[0] = '\0';
	atomic_store(&is_late, false);
	nlmr_start(&config);
	other.fh = nlmr.file;
	ck_assert_uint_eq(nlmc_lock(&other, far_off, false), NLM4_GRANTED);
}

/* The other host's lock ends, and it leaves the list: so would by now each idle
 * host of its address. */
static void let_idle_hosts_leave(void)
{
	ck_assert_uint_eq(nlmc_unlock(&other, far_off), NLM4_GRANTED);
	EVENTUALLY(has_left("other "));
}

TEST_CASE(.setup = start_list, .teardown = nlmc_end);

TEST(a_host_stays_on_the_list_while_its_lock_waits_for_the_disk)
{
	unsigned opened = fault_calls(FAULT_OPEN_HANDLE);

	fault_hold(FAULT_OPEN_HANDLE, true);
	send_lock(1);
	EVENTUALLY(fault_calls(FAULT_OPEN_HANDLE) > opened);
	let_idle_hosts_leave();
	ck_assert(!has_left("new1 "));
	fault_hold(FAULT_OPEN_HANDLE, false);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

/* The monitor's answer to the first call is late.  A second call of the host
 * comes and ends meanwhile. */
TEST(a_host_stays_on_the_list_while_its_lock_waits_for_the_monitor)
{
	atomic_store(&is_late, true);
	nlmr_lock(1, 1);
	EVENTUALLY(nasked == 1);
	atomic_store(&is_late, false);
	nlmr_lock(1, 1000);
	ck_assert_uint_eq(nlmr_status(), NLM4_DENIED);
	let_idle_hosts_leave();
	ck_assert(!has_left("new1 "));
	tell_done(asked[0], 0);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

/* The client's kernel sends UNLOCK when a process is killed in LOCK, and might
 * not live to send it again. */
TEST(an_unlock_behind_its_lock_runs_though_the_connection_was_reset)
{
	const struct linger none = { .l_onoff = 1 };
	unsigned opened = fault_calls(FAULT_OPEN_HANDLE);

	/* Goes with the connection, which shows that its end is known. */
	atomic_store(&is_late, true);
	nlmr_lock(1, 1);
	EVENTUALLY(nasked == 1);
	atomic_store(&is_late, false);
	fault_hold(FAULT_OPEN_HANDLE, true);
	nlmr_lock(2, 2);
	EVENTUALLY(fault_calls(FAULT_OPEN_HANDLE) > opened);
	nlmr_unlock(2, 2);
	EVENTUALLY(stats_sum_by_name("rpc_order_waits") == 1);
	setsockopt(nlmr.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(nlmr.fd);
	EVENTUALLY((rpc_server_relieve(srv.server), nforgotten == 1));
	rpc_server_relieve(srv.server);
	fault_hold(FAULT_OPEN_HANDLE, false);
	EVENTUALLY(nlmc_lock(&other, (struct nlm_bytes){ 2, 1, true }, false) ==
		   NLM4_GRANTED);
}

TEST(a_waiter_whose_host_freed_all_is_not_granted_by_an_unlock_under_way)
{
	const struct nlm_bytes two = { 2, 1, true };
	struct nlm_process waiter = { "waiter", 6, 4, IPPROTO_TCP, nlmr.file };
	unsigned asked_backend;

	nlmr_lock(1, 2);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&waiter, two, true), NLM4_BLOCKED);
	asked_backend = fault_calls(FAULT_LOCK);
	fault_hold(FAULT_LOCK, true);
	nlmr_unlock(1, 2);
	EVENTUALLY(fault_calls(FAULT_LOCK) > asked_backend);
	nlmc_free_all(&waiter);
	EVENTUALLY(stats_sum_by_name("nlm_restarts") == 1);
	fault_hold(FAULT_LOCK, false);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	EVENTUALLY(nlmc_lock(&other, two, false) == NLM4_GRANTED);
	close(nlmr.fd);
}

/* Ends the locks of the host while its SHARE waits for the disk. */
static void check_share_outlived(void (*end)(void))
{
	unsigned opened = fault_calls(FAULT_OPEN_HANDLE);

	fault_hold(FAULT_OPEN_HANDLE, true);
	nlmr_share(0);
	EVENTUALLY(fault_calls(FAULT_OPEN_HANDLE) > opened);
	end();
	let_idle_hosts_leave();
	fault_hold(FAULT_OPEN_HANDLE, false);
	ck_assert_uint_eq(nlmr_status(), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_share(&other, 1, 1), NLM4_GRANTED);
	close(nlmr.fd);
}

TEST(a_share_that_came_before_its_host_freed_all_is_not_granted)
{
	check_share_outlived(free_all);
}

TEST(a_share_that_came_before_its_client_was_released_is_not_granted)
{
	check_share_outlived(release_locks);
}

TEST(a_host_whose_lock_was_refused_leaves_the_list)
{
	nlmr_lock(1, 1000);
	ck_assert_uint_eq(nlmr_status(), NLM4_DENIED);
	EVENTUALLY(has_left("new1 "));
	close(nlmr.fd);
}

/* ---- a client that does not answer the call-back, while the server ends */

static void start_silent(void)
{
	const struct harness_config config = { .nlm = { .told_ms = 60000 } };

	nlmr_start(&config);
	other.fh = nlmr.file;
}

TEST_CASE(.setup = start_silent, .teardown = nlmc_end);

TEST(calls_that_wait_for_an_answer_are_to_come_again_when_the_server_ends)
{
	const struct nlm_bytes both = { 2, 2, true }, three = { 3, 1, true };
	struct nlm_process late = { "late", 6, 4, IPPROTO_TCP, nlmr.file };

	ck_assert_uint_eq(nlmc_lock(&other, both, false), NLM4_GRANTED);
	nlmc_answer = NLM_SILENT;
	nlmr.blocks = true;
	nlmr_lock(1, 2);
	ck_assert_uint_eq(nlmr_status(), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_lock(&late, three, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_unlock(&other, both), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 2);
	nlmr_unlock(1, 2);
	EVENTUALLY(stats_sum_by_name("nlm_awaits") == 1);
	nlm_ending(srv.nlm);
	ck_assert_uint_eq(nlmr_status(), NLM4_DENIED_GRACE_PERIOD);
	/* A LOCK that comes later does not wait, either. */
	ck_assert_uint_eq(nlmc_unlock(&late, three), NLM4_DENIED_GRACE_PERIOD);
	nlmr.blocks = false;
	close(nlmr.fd);
}
