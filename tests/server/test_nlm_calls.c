/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock manager's calls to hosts that don't answer are bounded. */
#include "tests/server/nlm_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

/* More than the client has sockets. */
#define SILENT		160u
#define ANSWERS		32u		/* by default */

static struct nlm_process one, two;
static const struct nlm_bytes head = { 0, 10, true };

static void start_with(struct harness_config config)
{
	nlmc_start(&config);
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_UDP,
				    nfs_make_file(top, "file", "") };
	harness_publish(&srv, "/mem 127.0.0.0/8(rw,insecure,no_root_squash)\n");
	two = one;
	two.host = "c2";
	two.svid = 22;
}

/* @one has a lock, and @two waits for it. */
static void block(void)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
}

/* A host says nothing to the question for the port of its lock manager. */
static void send_silent(unsigned number)
{
	char text[INET_ADDRSTRLEN];
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(text, sizeof(text), "127.0.1.%u", number + 1);
	ck_assert_int_eq(inet_pton(AF_INET, text, &at.sin_addr), 1);
	at.sin_port = htons(nlmc_rpcbind());
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	nlmc_from = text;
	nlmc_message(&one, NLM_TEST_MSG, head, false);
	nlmc_from = NULL;
}

static uint64_t unanswered(void)
{
	return stats_sum_by_name("nlm_unanswered");
}

TEST_CASE(.teardown = nlmc_end);

TEST(answers_to_silent_hosts_leave_sockets_for_call_backs)
{
	start_with((struct harness_config){ .nlm.answer_ms = 60000 });
	block();
	for (unsigned i = 0; i < SILENT; i++)
		send_silent(i);
	EVENTUALLY(unanswered() == SILENT - ANSWERS);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert_uint_eq(stats_sum_by_name("client_busy"), 0);
}

static uint64_t timeouts(void)
{
	return stats_sum_by_name("client_timeouts");
}

TEST(answers_to_silent_hosts_give_up_their_places_soon)
{
	unsigned sent = 0;
	uint64_t refused;

	start_with((struct harness_config){
		.nlm = { .max_answering = 2, .answer_ms = 300 } });
	/* Three are enough, unless this takes so long that a place is free
	 * again. */
	for (; sent < 3 || (unanswered() == 0 && sent < SILENT); sent++)
		send_silent(sent);
	EVENTUALLY(unanswered() + timeouts() == sent);
	refused = unanswered();
	ck_assert_uint_ge(refused, 1);
	nlmc_message(&two, NLM_TEST_MSG, head, false);
	EVENTUALLY(nlmc_count(NLM_TEST_RES) == 1);
	ck_assert_uint_eq(unanswered(), refused);
}

/* @two is granted its lock, and its lock manager is called ten times. */
static void check_keeps_its_lock(void)
{
	block();
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(stats_sum_by_name("nlm_silent") == 1);
	ck_assert_uint_eq(stats_sum_by_name("nlm_call_backs"), 10);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(stats_sum_by_name("nlm_call_backs"), 10);
}

TEST(a_client_that_never_answers_is_called_ten_times_and_keeps_its_lock)
{
	start_with((struct harness_config){ .nlm.call_back_ms = 1 });
	nlmc_answer = NLM_DEAF;
	check_keeps_its_lock();
}

/* Over TCP: an answer by UDP can be lost. */
TEST(a_client_that_does_not_know_the_call_back_keeps_its_lock)
{
	nlmc_is_bare = true;
	start_with((struct harness_config){ .nlm.call_back_ms = 1 });
	nlmc_is_bare = false;
	one.proto = two.proto = IPPROTO_TCP;
	check_keeps_its_lock();
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), 0);
	ck_assert_uint_eq(stats_sum_by_name("client_timeouts"), 0);
}
