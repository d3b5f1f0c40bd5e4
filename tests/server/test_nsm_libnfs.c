/* SPDX-License-Identifier: BSD-2-Clause */
/* The status monitor over TCP, as libnfs's encoders and decoders see it. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nsm.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "nsm/nsm.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

static char dir[] = "/tmp/gannet-nsm-XXXXXX";
static struct rpc_client *client;
static struct nsm *nsm;
static struct pool *pool;
static struct loop *loop;
static struct rpc_server *server;
static struct xprt_listener *tcp;
static struct rpc_context *rpc;
static unsigned ended;
static int status, res, state;

static void setup(void)
{
	struct nsm_config config = { .state_dir = dir };
	struct rpc_server_config rpcs = { .nworkers = 1 };
	struct xprt_env env = { .loops = &loop, .nloops = 1, .max_conns = 4 };
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(rpc_client_create(NULL, &client), 0);
	config.client = client;
	ck_assert_int_eq(nsm_create(&config, &nsm), 0);
	ck_assert_int_eq(pool_create(64u << 20, &pool), 0);
	rpcs.pool = env.pool = pool;
	ck_assert_int_eq(rpc_server_create(&rpcs, &server), 0);
	ck_assert_int_eq(rpc_server_add(server, nsm_program(nsm)), 0);
	ck_assert_int_eq(loop_create("poller", &loop), 0);
	ck_assert_int_eq(loop_start(loop), 0);
	env.sink = rpc_server_sink(server);
	ck_assert_int_eq(tcp_listen(&env, (struct sockaddr *)&at, NULL, &tcp),
			 0);
}

static void teardown(void)
{
	char command[64];

	rpc_destroy_context(rpc);
	tcp->ops->free(tcp);
	nsm_stop(nsm);
	rpc_client_destroy(client);
	rpc_server_destroy(server);
	loop_destroy(loop);
	nsm_destroy(nsm);
	pool_destroy(pool);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static void wait_for(unsigned n)
{
	while (ended < n) {
		struct pollfd p = { .fd = rpc_get_fd(rpc),
				    .events = (short)rpc_which_events(rpc) };

		ck_assert_int_ge(poll(&p, 1, 60000), 1);
		ck_assert_int_ge(rpc_service(rpc, p.revents), 0);
	}
	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
}

static void over(struct rpc_context *ctx, int s, void *data, void *arg)
{
	status = s;
	ended++;
}

/* STAT and MON have the same results, UNMON and UNMON_ALL the state alone. */
static void stat_over(struct rpc_context *ctx, int s, void *data, void *arg)
{
	const struct NSM1_STATres *r = data;

	if (s == RPC_STATUS_SUCCESS) {
		res = (int)r->res;
		state = r->state;
	}
	over(ctx, s, data, arg);
}

static void state_over(struct rpc_context *ctx, int s, void *data, void *arg)
{
	const struct NSM1_UNMONres *r = data;

	if (s == RPC_STATUS_SUCCESS)
		state = r->state;
	over(ctx, s, data, arg);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(every_procedure_is_that_of_libnfs)
{
	static char host[] = "192.0.2.9", here[] = "here";
	struct nsm_my_id me = { here, 100021, 3, 24 };
	struct NSM1_STATargs stat_args = { host };
	struct NSM1_MONargs mon = { .mon_id = { host, me },
				    .priv = "0123456789abcde" };
	struct NSM1_UNMONargs unmon = { { host, me } };
	struct NSM1_UNMONALLargs all = { me };
	struct NSM1_NOTIFYargs news = { host, 5 };
	int first = (int)nsm_state(nsm);

	rpc = rpc_init_context();
	ck_assert_int_eq(rpc_connect_port_async(rpc, "127.0.0.1",
				ntohs(((struct sockaddr_in *)
				       &tcp->local)->sin_port),
				100024, 1, over, NULL), 0);
	wait_for(1);
	ck_assert_int_eq(rpc_nsm1_null_async(rpc, over, NULL), 0);
	wait_for(2);
	ck_assert_int_eq(rpc_nsm1_stat_async(rpc, stat_over, &stat_args, NULL),
			 0);
	wait_for(3);
	ck_assert_int_eq(res, NSM_STAT_SUCC);
	ck_assert_int_eq(state, first);
	/* From a port that is not reserved; root's server wants one. */
	ck_assert_int_eq(rpc_nsm1_mon_async(rpc, stat_over, &mon, NULL), 0);
	wait_for(4);
	ck_assert(res == NSM_STAT_SUCC ||
		  stats_sum_by_name("nsm_refused") == 1);
	ck_assert_int_eq(rpc_nsm1_unmon_async(rpc, state_over, &unmon, NULL),
			 0);
	wait_for(5);
	ck_assert_int_eq(rpc_nsm1_unmonall_async(rpc, state_over, &all, NULL),
			 0);
	wait_for(6);
	ck_assert_int_eq(state, first);
	ck_assert_int_eq(rpc_nsm1_notify_async(rpc, over, &news, NULL), 0);
	wait_for(7);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
	ck_assert_int_eq(rpc_nsm1_simucrash_async(rpc, over, NULL), 0);
	wait_for(8);
	ck_assert(nsm_state(nsm) == (uint32_t)first + 2 ||
		  stats_sum_by_name("nsm_refused") == 4);
}
