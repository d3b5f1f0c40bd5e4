/* SPDX-License-Identifier: BSD-2-Clause */
/* What tells of a host's restart, and whose locks end with it. */
#include "nsm/nsm.h"

#include <semaphore.h>
#include <stdio.h>

#include "lib/stats.h"
#include "nsm/priv.h"
#include "tests/unit/ports.h"
#include "tests/unit/runner.h"

static char dir[64];
static struct rpc_client *client;
static struct nsm *nsm;
static sem_t came;
static char restarts[256];

static void done(void *arg, int err)
{
	ck_assert_int_eq(err, 0);
	sem_post(&came);
}

static void restarted(void *ctx, const char *name, const struct sockaddr *addr,
		      uint32_t state)
{
	size_t n = strlen(restarts);

	snprintf(restarts + n, sizeof(restarts) - n, "%s/%u ", name, state);
}

static const struct sockaddr *addr(const char *text)
{
	static struct sockaddr_storage at;

	ck_assert(nsm_addr_parse(text, &at));
	return (struct sockaddr *)&at;
}

static void setup(void)
{
	const struct rpc_client_config c = { .rpcbind_port = 9 };

	strcpy(dir, "/tmp/gannet-nsm-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	sem_init(&came, 0, 0);
	restarts[0] = '\0';
	ck_assert_int_eq(rpc_client_create(&c, &client), 0);
	ck_assert_int_eq(nsm_create(&(struct nsm_config){
		.state_dir = dir, .client = client }, &nsm), 0);
	nsm_on_restart(nsm, restarted, NULL);
}

static void teardown(void)
{
	char command[96];

	nsm_stop(nsm);
	rpc_client_destroy(client);
	nsm_destroy(nsm);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static void monitor(const char *name, const char *at)
{
	nsm_monitor(nsm, name, addr(at), done, NULL);
	wait_sem(&came);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(a_restart_ends_no_locks_of_other_hosts_with_the_address)
{
	monitor("c1", "192.0.2.11");
	nsm_news(nsm, "c2", addr("192.0.2.11"), 3);
	ck_assert_str_eq(restarts, "");
	monitor("c2", "192.0.2.11");
	/* rpc.statd does not say which of them. */
	nsm_notified(nsm, "192.0.2.11", 5);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 2);
	nsm_news(nsm, "c2", addr("192.0.2.11"), 5);
	ck_assert_str_eq(restarts, "c2/5 ");
}

TEST(late_news_of_an_earlier_restart_end_nothing)
{
	monitor("c1", "192.0.2.11");
	nsm_news(nsm, "c1", addr("192.0.2.11"), 5);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 3);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 5);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 7);
	ck_assert_str_eq(restarts, "c1/5 c1/7 ");
	ck_assert_uint_eq(stats_sum_by_name("nsm_repeated"), 2);
}
