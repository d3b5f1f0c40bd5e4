/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts without an answer to notify a host of a start: when, and for how
 * long. */
#include "nsm/nsm.h"

#include <stdio.h>

#include "lib/stats.h"
#include "nsm/file.h"
#include "nsm/priv.h"
#include "tests/unit/ports.h"
#include "tests/unit/runner.h"

static char dir[64];
static struct rpc_client *client;
static struct nsm *nsm;

/* The last server's list has a host whose rpcbind refuses each attempt. */
static void setup(void)
{
	struct rpc_client_config config = { 0 };
	int udp, tcp;
	static const char text[] = "state 11\nboot 0\nhost 127.0.0.2 c2\n";

	strcpy(dir, "/tmp/gannet-nsm-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(nsm_file_replace(dir, text, sizeof(text) - 1), 0);
	/* On 127.0.0.1 only: the host's rpcbind is not there. */
	config.rpcbind_port = ports_bind(&udp, &tcp);
	ck_assert_int_eq(rpc_client_create(&config, &client), 0);
}

static void start(struct nsm_config config)
{
	config.state_dir = dir;
	config.client = client;
	config.first_ms = 20;
	ck_assert_int_eq(nsm_create(&config, &nsm), 0);
	ck_assert_uint_eq(nsm_hosts_before(nsm), 1);
	nsm_tell(nsm);
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

static uint64_t failed(void)
{
	return stats_sum_by_name("nsm_tell_failed");
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(attempts_get_rarer_after_the_grace_period)
{
	uint64_t begin = runner_now_ms();

	start((struct nsm_config){ .grace_ms = 0 });
	EVENTUALLY(failed() >= 6);
	ck_assert_uint_ge(runner_now_ms() - begin, 20 + 40 + 80 + 160 + 320);
}

/* True if no host is told, nor will be. */
static bool no_more_attempts(void)
{
	bool none;

	mutex_lock(&nsm->lock);
	none = !nsm->telling && !nsm_hosts_due(&nsm->hosts);
	mutex_unlock(&nsm->lock);
	return none;
}

#define TELL_MS	60000

/* The host's time is over now, not in a minute. */
static void end_time(uint64_t begin)
{
	struct nsm_host *host;

	mutex_lock(&nsm->lock);
	host = cds_list_first_entry(&nsm->hosts.list, struct nsm_host, link);
	ck_assert_uint_ge(host->until, begin + TELL_MS);
	ck_assert_uint_le(host->until, clock_ms() + TELL_MS);
	host->until = clock_ms();
	pthread_cond_signal(&nsm->wake);
	mutex_unlock(&nsm->lock);
}

TEST(attempts_end_after_their_time)
{
	uint64_t n, begin = clock_ms();
	char *text = NULL;

	start((struct nsm_config){ .tell_ms = TELL_MS, .retry_ms = 20 });
	EVENTUALLY(failed() >= 2);
	end_time(begin);
	EVENTUALLY(no_more_attempts());
	n = failed();
	ck_assert(HOLDS_FOR(100, failed() == n));
	/* The next start begins with them again. */
	ck_assert_int_eq(nsm_file_read(dir, &text), 0);
	ck_assert_ptr_nonnull(strstr(text, "\ntell 127.0.0.2 c2\n"));
	free(text);
}

TEST(attempts_last_for_a_quarter_of_an_hour)
{
	start((struct nsm_config){ 0 });
	ck_assert_uint_eq(nsm->config.tell_ms, 15 * 60 * 1000);
}

/* Hosts for other lock managers of this machine: their locks end with the
 * machine, not with this server. */
TEST_LOOP(hosts_of_other_lock_managers_are_told_if_the_machine_restarted, 0, 2)
{
	struct nsm_config config = { .state_dir = dir, .client = client };
	char boot[64] = "0", text[256];
	struct nsm_host *host;
	FILE *f;

	if (_i == 0) {
		f = fopen("/proc/sys/kernel/random/boot_id", "r");
		ck_assert_ptr_nonnull(f);
		ck_assert_int_eq(fscanf(f, "%63s", boot), 1);
		fclose(f);
	}
	snprintf(text, sizeof(text), "state 11\nboot %s\n"
		 "user 127.0.0.2 c2 4 16 %032d\n", boot, 0);
	ck_assert_int_eq(nsm_file_replace(dir, text, (uint32_t)strlen(text)),
			 0);
	ck_assert_int_eq(nsm_create(&config, &nsm), 0);
	host = cds_list_first_entry(&nsm->hosts.list, struct nsm_host, link);
	ck_assert_str_eq(host->name, "c2");
	ck_assert_int_eq(host->untold, _i);
	ck_assert_int_eq(host->monitored, !_i);
}
