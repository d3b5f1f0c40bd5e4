/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that a client sends behind each other on one connection, without a wait
 * for the answers: a process is killed while its LOCK is under way. */
#include "tests/server/nlm_client.h"

#include <sys/socket.h>

#include "tests/server/daemon_run.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"

#define PAIRS	200u

static struct nlm_process other;
static nfs_fh3 file;
static int fd;
static uint32_t sent;

/* The call that the status monitor has: it answers when the test says so. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *asked;
static void (*tell_done)(void *arg, int err);
static bool hangs;

static void ask_monitor(struct nsm *nsm, const struct rpc_host *host,
			void (*done)(void *arg, int err), void *arg)
{
	bool waits;

	pthread_mutex_lock(&lock);
	waits = hangs;
	if (waits) {
		asked = arg;
		tell_done = done;
	}
	pthread_mutex_unlock(&lock);
	if (!waits)
		done(arg, 0);
}

static bool is_asked(void)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = asked != NULL;
	pthread_mutex_unlock(&lock);
	return is;
}

static void start(void)
{
	const struct harness_config config = {
		.nlm.monitor.monitor = ask_monitor,
	};

	hangs = false;
	asked = NULL;
	nlmc_start(&config);
	file = nfs_make_file(top, "file", "");
	other = (struct nlm_process){ "other", 22, 4, IPPROTO_TCP, file };
	fd = daemon_connect(srv.port);
}

static void end(void)
{
	close(fd);
	nlmc_end();
}

TEST_CASE(.setup = start, .teardown = end);

/* The first ten bytes; a share reads and writes, and denies both. */
static void send_call(uint32_t proc)
{
	const struct rpc_header h = { .xid = ++sent, .prog = NLM_PROGRAM,
				      .vers = 4, .proc = proc };
	const struct nlm_args a = {
		.cookie = xdr_text("abc"), .name = xdr_text("host"),
		.oh = xdr_text("an owner"),
		.fh = { (const uint8_t *)file.data.data_val,
			file.data.data_len },
		.block = true, .exclusive = true, .svid = 1, .len = 10,
		.state = 1, .mode = 3, .access = 3,
	};
	uint8_t bytes[1024];
	struct xdr_out x;

	record_call(&x, bytes, sizeof(bytes), &h);
	nlm_put_args(&x, &a, proc, true);
	ck_assert(record_post(fd, &x));
}

/* Takes the next @n answers. */
static void take_answers(unsigned n)
{
	char rest[256];

	for (; n; n--)
		ck_assert_uint_gt(record_receive(fd, rest, sizeof(rest)), 0);
}

static bool is_free(void)
{
	const struct nlm_bytes all = { 0, 10, true };
	bool is = nlmc_lock(&other, all, false) == NLM4_GRANTED;

	if (is)
		ck_assert_uint_eq(nlmc_unlock(&other, all), NLM4_GRANTED);
	return is;
}

/* The host's first LOCK waits for the status monitor; @second is behind it. */
static void send_behind(uint32_t first, uint32_t second)
{
	ck_assert(is_free());		/* that host is known now */
	hangs = true;
	send_call(first);
	EVENTUALLY(is_asked());
	send_call(second);
	/* Another owner does not wait for them. */
	ck_assert(is_free());
	tell_done(asked, 0);
	take_answers(2);
}

TEST(an_unlock_behind_a_lock_that_waits_leaves_nothing)
{
	send_behind(NLM_LOCK, NLM_UNLOCK);
	ck_assert(is_free());
}

TEST(an_unlock_message_behind_a_lock_message_leaves_nothing)
{
	send_behind(NLM_LOCK_MSG, NLM_UNLOCK_MSG);
	ck_assert(is_free());
}

TEST(an_unlock_message_behind_a_lock_leaves_nothing)
{
	send_behind(NLM_LOCK, NLM_UNLOCK_MSG);
	ck_assert(is_free());
}

TEST(a_cancel_behind_a_lock_that_waits_ends_its_wait)
{
	const struct nlm_bytes all = { 0, 10, true };

	ck_assert_uint_eq(nlmc_lock(&other, all, false), NLM4_GRANTED);
	hangs = true;
	send_call(NLM_LOCK);
	EVENTUALLY(is_asked());
	send_call(NLM_CANCEL);
	ck_assert_uint_eq(nlmc_lock(&other, all, false), NLM4_GRANTED);
	tell_done(asked, 0);
	take_answers(2);
	ck_assert_uint_eq(nlmc_unlock(&other, all), NLM4_GRANTED);
	ck_assert(is_free());
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), 0);
}

TEST(pairs_of_calls_take_effect_in_their_order)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		send_call(NLM_LOCK);
		send_call(NLM_UNLOCK);
		take_answers(2);
		ck_assert(is_free());
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		send_call(NLM_LOCK);
		send_call(NLM_UNLOCK);
		send_call(NLM_LOCK);
		take_answers(3);
		ck_assert(!is_free());
	}
	send_call(NLM_UNLOCK);
	take_answers(1);
	for (unsigned i = 0; i < PAIRS; i++) {
		send_call(NLM_SHARE);
		send_call(NLM_UNSHARE);
		take_answers(2);
		ck_assert_uint_eq(nlmc_share(&other, 3, 3), NLM4_GRANTED);
		ck_assert_uint_eq(nlmc_unshare(&other), NLM4_GRANTED);
	}
}
