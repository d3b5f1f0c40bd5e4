/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The status monitor over TCP, as libnfs's encoders and decoders see it.
 * libnfs has a call for each procedure of the protocol.
 *
 * A server of root takes MON and the like from reserved ports only; one of
 * another user takes them from any port of this machine.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nsm.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "nsm/nsm.h"
#include "tests/unit/ports.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

#define SOME_USER	1000

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

static void over(struct rpc_context *ctx, int s, void *data, void *arg);
static void wait_for(unsigned n);

static void connect_libnfs(void)
{
	const struct sockaddr_in *at = (struct sockaddr_in *)&tcp->local;

	rpc = rpc_init_context();
	ck_assert_int_eq(rpc_connect_port_async(rpc, "127.0.0.1",
				ntohs(at->sin_port), 100024, 1, over, NULL),
			 0);
	wait_for(1);
	ended = 0;
}

static void setup(void)
{
	struct rpc_client_config none = { 0 };
	struct nsm_config config = { .state_dir = dir };
	struct rpc_server_config rpcs = { .nworkers = 1 };
	struct xprt_env env = { .loops = &loop, .nloops = 1, .max_conns = 4 };
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	ck_assert_ptr_nonnull(mkdtemp(dir));
	/* No client is called back: no rpcbind runs. */
	none.rpcbind_port = ports_bind(&(int){ 0 }, &(int){ 0 });
	ck_assert_int_eq(rpc_client_create(&none, &client), 0);
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
	connect_libnfs();
}

/* libnfs binds a reserved port as root, unless all that it tries are in use: so
 * the server is one of another user. */
static void setup_as_user(void)
{
	setup();
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(dir, SOME_USER, (gid_t)-1), 0);
		ck_assert_int_eq(seteuid(SOME_USER), 0);
	}
}

/* From a port that is not reserved. */
static void setup_unreserved(void)
{
	setup();
	if (geteuid() != 0)
		return;
	rpc_destroy_context(rpc);
	ck_assert_int_eq(seteuid(SOME_USER), 0);
	connect_libnfs();
	ck_assert_int_eq(seteuid(0), 0);
}

static bool is_reserved(void)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	ck_assert_int_eq(getsockname(rpc_get_fd(rpc), (struct sockaddr *)&at,
				     &len), 0);
	return ntohs(at.sin_port) < IPPORT_RESERVED;
}

static void teardown(void)
{
	char command[64];

	EVENTUALLY(rpc_busy() == 0);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
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

static char host[] = "127.0.0.1", name[] = "c1.example", here[] = "here";
static struct nsm_my_id me = { here, 100021, 3, 24 };

/* Each makes the @nth call, whose answer is in res and state then. */
static void ask_stat(unsigned nth, char *of)
{
	struct NSM1_STATargs args = { of };

	ck_assert_int_eq(rpc_nsm1_stat_async(rpc, stat_over, &args, NULL), 0);
	wait_for(nth);
}

static void ask_mon(unsigned nth, char *of, int prog)
{
	struct NSM1_MONargs args = { .mon_id = { of, me },
				     .priv = "0123456789abcde" };

	args.mon_id.my_id.my_prog = prog;
	ck_assert_int_eq(rpc_nsm1_mon_async(rpc, stat_over, &args, NULL), 0);
	wait_for(nth);
}

static void ask_unmon(unsigned nth)
{
	struct NSM1_UNMONargs args = { { host, me } };

	ck_assert_int_eq(rpc_nsm1_unmon_async(rpc, state_over, &args, NULL), 0);
	wait_for(nth);
}

static void ask_unmon_all(unsigned nth)
{
	struct NSM1_UNMONALLargs args = { me };

	ck_assert_int_eq(rpc_nsm1_unmonall_async(rpc, state_over, &args, NULL),
			 0);
	wait_for(nth);
}

static void ask_crash(unsigned nth)
{
	ck_assert_int_eq(rpc_nsm1_simucrash_async(rpc, over, NULL), 0);
	wait_for(nth);
}

static void tell_news(unsigned nth, int number)
{
	struct NSM1_NOTIFYargs args = { name, number };

	ck_assert_int_eq(rpc_nsm1_notify_async(rpc, over, &args, NULL), 0);
	wait_for(nth);
}

TEST_CASE(.setup = setup_as_user, .teardown = teardown);

TEST(null_is_answered)
{
	ck_assert_int_eq(rpc_nsm1_null_async(rpc, over, NULL), 0);
	wait_for(1);
}

TEST(stat_takes_addresses_and_refuses_names)
{
	ask_stat(1, host);
	ck_assert_int_eq(res, NSM_STAT_SUCC);
	ck_assert_int_eq(state, (int)nsm_state(nsm));
	ask_stat(2, name);
	ck_assert_int_eq(res, NSM_STAT_FAIL);
}

TEST(mon_takes_lock_managers_and_refuses_other_programs)
{
	ask_mon(1, host, 100003);
	ck_assert_int_eq(res, NSM_STAT_FAIL);
	ask_mon(2, name, 100021);
	ck_assert_int_eq(res, NSM_STAT_FAIL);
	ask_mon(3, host, 100021);
	ck_assert_int_eq(res, NSM_STAT_SUCC);
	ck_assert_int_eq(state, (int)nsm_state(nsm));
}

TEST(news_of_a_monitored_host_count_once_and_those_of_strangers_never)
{
	tell_news(1, 5);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
	ask_mon(2, host, 100021);
	tell_news(3, 7);
	tell_news(4, 7);
	ck_assert_uint_eq(stats_sum_by_name("nsm_restarts"), 1);
	ck_assert_uint_eq(stats_sum_by_name("nsm_repeated"), 1);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
}

TEST(unmon_and_unmon_all_make_a_host_a_stranger)
{
	ask_mon(1, host, 100021);
	state = 0;
	ask_unmon(2);
	ck_assert_int_eq(state, (int)nsm_state(nsm));
	tell_news(3, 5);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
	ask_mon(4, host, 100021);
	state = 0;
	ask_unmon_all(5);
	ck_assert_int_eq(state, (int)nsm_state(nsm));
	tell_news(6, 7);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 2);
}

TEST(a_simulated_crash_raises_the_state)
{
	uint32_t first = nsm_state(nsm);

	ask_crash(1);
	ck_assert_uint_eq(nsm_state(nsm), first + 2);
}

TEST_CASE(.setup = setup_unreserved, .teardown = teardown);

TEST(a_server_of_root_refuses_what_comes_from_any_port)
{
	uint32_t first = nsm_state(nsm);

	/* A machine can lack reserved ports, and a user needs none. */
	if (geteuid() != 0 || is_reserved())
		return;
	ask_mon(1, host, 100021);
	ck_assert_int_eq(res, NSM_STAT_FAIL);
	ask_unmon(2);
	ask_unmon_all(3);
	ask_crash(4);
	ck_assert_uint_eq(nsm_state(nsm), first);
	ck_assert_uint_eq(stats_sum_by_name("nsm_refused"), 4);
}
