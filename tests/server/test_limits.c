/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls above the limits of an export wait, over TCP and RDMA, and hold up no
 * other calls.
 *
 * Times have lower bounds, which only a limit that does not hold breaks; upper
 * ones only exclude a server that hangs, or hold for the best of a few tries.
 *
 * Clients are told apart by their addresses: the relay of RDMA has 127.0.0.1,
 * and a client that binds to 127.0.0.2 has that.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "rpc/limit.h"
#include "rpc/share.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/limit_peer.h"
#include "tests/unit/runner.h"

#define OPTIONS		"(rw,insecure,no_root_squash"

/* /one has no limit; the test chooses the limits of /mem. */
enum { MEM, ONE, NEXPORTS };

static struct rpc_share shares[NEXPORTS];
static struct nfs3_fh fhs[NEXPORTS];
static const char *const paths[NEXPORTS] = { "/mem", "/one" };

/* Each export has its queues, as the daemon wires it. */
static void attach(struct export_tree *e, void *arg)
{
	e->user = arg;
}

static void publish_limits(const char *limit)
{
	char text[256];

	snprintf(text, sizeof(text), "/mem *" OPTIONS "%s)\n/one *" OPTIONS
		 ")\n", limit);
	harness_publish(&srv, text);
}

static void setup_over(const char *fabric)
{
	const struct harness_config config = {
		.backend = &fault_vfs_ops,
		.exports = "/mem *" OPTIONS ")\n/one *" OPTIONS ")\n",
		.pool_bytes = 16u << 20,
	};

	if (fabric)
		setenv("HARNESS_FABRIC", fabric, 1);
	fault_init();
	nfs_setup_with(&config);
	for (unsigned i = 0; i < NEXPORTS; i++) {
		shares[i].limit = rpc_limit_create(srv.server);
		ck_assert_ptr_nonnull(shares[i].limit);
		harness_with_export(&srv, paths[i], attach, &shares[i]);
		harness_root(&srv, paths[i], &fhs[i]);
	}
}

static void setup_tcp(void)
{
	setup_over(NULL);
}

static void teardown(void)
{
	nfs_client_close(&user);
	nfs_client_close(&root);
	EVENTUALLY(rpc_busy() == 0);
	for (unsigned i = 0; i < NEXPORTS; i++)
		rpc_limit_put(shares[i].limit);
	harness_stop(&srv);
}

/* ------------------------------------------------------ calls that wait -- */

static unsigned held_now;

static void note_held(const struct rpc_call *call, const char *why,
		      uint64_t ns, void *arg)
{
	held_now += !strcmp(why, "limit");
}

/* Calls that wait for a limit. */
static unsigned held(void)
{
	held_now = 0;
	rpc_server_walk_suspended(srv.server, note_held, NULL);
	return held_now;
}

/* Sends calls to /mem, whose limit lets one pass a second, and waits until the
 * others wait. */
static void hold_calls(struct peer *p, unsigned n)
{
	uint64_t calls = stats_sum_by_name("rpc_calls") + n;
	unsigned before = held();

	for (unsigned i = 0; i < n; i++)
		ck_assert(send_getattr(p, &fhs[MEM]));
	EVENTUALLY(stats_sum_by_name("rpc_calls") >= calls &&
		   held() >= before + n - 20);
}

/* ------------------------------------------------ the limits of a client -- */

static const char *const fabrics[] = { NULL, "iwarp", "loop,7" };
#define WAYS		3

#define TRIES		10
#define LONGEST(ms)	((ms) * 5 / 4)

/* Runs @work(), which is to take @ms, never less, and not much more in one of
 * its tries: a machine that is busy with something else spoils some. */
static void takes(uint64_t ms, void (*work)(struct peer *p))
{
	uint64_t took = UINT64_MAX;

	for (unsigned i = 0; i < TRIES && took > LONGEST(ms); i++) {
		struct peer p;

		peer_open(&p, "127.0.0.1", srv.port);
		took = clock_ms();
		work(&p);
		ck_assert_uint_eq(receive_rest(&p), 0);
		took = clock_ms() - took;
		close(p.fd);
		printf("%llu ms, of %llu\n", (unsigned long long)took,
		       (unsigned long long)ms);
		ck_assert_uint_ge(took, ms);
		/* The burst of the next try. */
		pause_on_purpose(200000);
	}
	ck_assert_uint_le(took, LONGEST(ms));
}

static nfs_fh3 file;

static void get_attributes(struct peer *p)
{
	for (unsigned i = 0; i < 131; i++)
		ck_assert(send_getattr(p, &fhs[MEM]));
}

static void write_file(struct peer *p)
{
	for (unsigned i = 0; i < 22; i++)
		ck_assert(send_write(p, file, 65536));
}

static void read_file(struct peer *p)
{
	for (unsigned i = 0; i < 22; i++)
		ck_assert(send_read(p, file, 65536));
}

static void add_held(const struct rpc_program *prog,
		     const struct rpc_version *version, uint32_t proc,
		     struct rpc_proc_counts *n, void *arg)
{
	struct account_sum sum;

	if (prog != srv.nfs || proc != NFS3_GETATTR)
		return;
	rpc_proc_sum(n, &sum);
	*(uint64_t *)arg += sum.held;
}

/* The number of GETATTRs that a limit held back. */
static uint64_t getattrs_held(void)
{
	uint64_t n = 0;

	rpc_server_walk_procs(srv.server, add_held, &n);
	return n;
}

TEST_LOOP(a_client_gets_its_operations_and_no_call_is_lost, 0, WAYS)
{
	setup_over(fabrics[_i]);
	publish_limits(",client_max_ops=100");
	/* A burst of ten, and one that is in debt. */
	takes(1200, get_attributes);
	ck_assert_uint_ge(getattrs_held(), 100);
	publish_limits(",max_ops=100");
	takes(1200, get_attributes);
	teardown();
}

TEST_LOOP(a_client_gets_its_bytes_read_and_written, 0, WAYS)
{
	setup_over(fabrics[_i]);
	file = nfs_make_file(top, "file", "");
	publish_limits(",client_max_bytes=1m");
	/* 22 sixteenths of a second, without a burst and the last debt. */
	takes(1375 - 100 - 63, write_file);
	takes(1375 - 100 - 63, read_file);
	publish_limits(",max_bytes=1m");
	takes(1375 - 100 - 63, write_file);
	takes(1375 - 100 - 63, read_file);
	teardown();
}

TEST_LOOP(calls_of_a_connection_that_is_gone_are_forgotten, 0, WAYS)
{
	struct peer p;

	setup_over(fabrics[_i]);
	publish_limits(",client_max_ops=1");
	peer_open(&p, "127.0.0.1", srv.port);
	/* Over RDMA, at most its credits. */
	hold_calls(&p, 30);
	close(p.fd);
	EVENTUALLY((rpc_server_relieve(srv.server), held() == 0));
	teardown();
}

TEST_CASE(.setup = setup_tcp, .teardown = teardown);

/* Each asks for a MiB, moves four bytes, and would take a second.  They wait
 * behind a WRITE. */
TEST_LOOP(a_read_costs_what_it_moved, 0, 2)
{
	nfs_fh3 big = nfs_make_file(top, "big", "");
	uint64_t start = clock_ms();
	struct peer p;

	file = nfs_make_file(top, "file", "four");
	publish_limits(_i ? ",max_bytes=1m" : ",client_max_bytes=1m");
	peer_open(&p, "127.0.0.1", srv.port);
	ck_assert(send_write(&p, big, 1u << 18));
	for (unsigned i = 0; i < 200; i++)
		ck_assert(send_read(&p, file, 1u << 20));
	peer_end(&p);
	ck_assert_uint_lt(clock_ms() - start, 20000);
}

/* ---------------------------------------------------------------- others -- */

/* @n calls, one after the other. */
static void is_served(struct peer *p, unsigned export, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t xid = p->xid;

		ck_assert(send_getattr(p, &fhs[export]));
		do
			ck_assert(receive(p));
		while (p->last != xid);
		ck_assert_uint_eq(p->status, NFS3_OK);
	}
}

/* At one call a second they would be there for minutes. */
TEST(calls_above_a_limit_hold_up_no_others)
{
	struct peer slow, other, elsewhere;

	/* A rule for each client: 300 calls are few for the other. */
	harness_publish(&srv, "/mem 127.0.0.1" OPTIONS
			",client_max_ops=1000000) "
			"127.0.0.2" OPTIONS ",client_max_ops=1)\n"
			"/one *" OPTIONS ")\n");
	peer_open(&slow, "127.0.0.2", srv.port);
	hold_calls(&slow, 150);
	peer_open(&other, "127.0.0.1", srv.port);
	is_served(&other, MEM, 300);
	/* The same client, by another connection and by this one. */
	peer_open(&elsewhere, "127.0.0.2", srv.port);
	is_served(&elsewhere, ONE, 300);
	is_served(&slow, ONE, 300);
	ck_assert_uint_ge(held(), 50);
	rpc_limits_off(srv.server, true);
	peer_end(&slow);
	close(other.fd);
	close(elsewhere.fd);
}

/* The heavy one has 400 calls there at once, and the light one one. */
TEST(clients_have_equal_parts_of_an_exports_limit)
{
	struct peer heavy[2], light;
	unsigned answered = 0;

	publish_limits(",max_ops=100");
	peer_open(&heavy[0], "127.0.0.2", srv.port);
	peer_open(&heavy[1], "127.0.0.2", srv.port);
	for (unsigned i = 0; i < 400; i++)
		ck_assert(send_getattr(&heavy[i % 2], &fhs[MEM]));
	EVENTUALLY(held() > 300);
	peer_open(&light, "127.0.0.1", srv.port);
	is_served(&light, MEM, 20);
	/* About as many of the other's went by: not twenty times 400. */
	ck_assert_uint_ge(held(), 200);
	rpc_limits_off(srv.server, true);
	for (unsigned i = 0; i < 2; i++) {
		answered += heavy[i].xid - heavy[i].first;
		peer_end(&heavy[i]);
	}
	ck_assert_uint_eq(answered, 400);
	close(light.fd);
}

static const struct {
	const char *limits;
	bool	    reads;
	unsigned    calls, left;
} light_calls[] = {
	/* GETATTRs of 5 ms against WRITEs of 30. */
	{ ",max_bytes=1m,max_ops=200", false, 50, 30 },
	/* READs that ask for as much, and move four bytes. */
	{ ",max_bytes=100k", true, 60, 60 },
};

/* All of one client's calls come before @left of another's 100 WRITEs. */
TEST_LOOP(a_client_s_part_of_a_limit_is_what_it_moved, 0,
	  ARRAY_SIZE(light_calls))
{
	nfs_fh3 few = nfs_make_file(top, "few", "four");
	struct peer heavy, light;

	file = nfs_make_file(top, "file", "");
	publish_limits(light_calls[_i].limits);
	peer_open(&heavy, "127.0.0.2", srv.port);
	for (unsigned i = 0; i < 100; i++)
		ck_assert(send_write(&heavy, file, 30000));
	EVENTUALLY(held() > light_calls[_i].left + 20);
	peer_open(&light, "127.0.0.1", srv.port);
	for (unsigned i = 0; i < light_calls[_i].calls; i++)
		ck_assert(light_calls[_i].reads ?
			  send_read(&light, few, 30000) :
			  send_getattr(&light, &fhs[MEM]));
	ck_assert_uint_eq(receive_rest(&light), 0);
	ck_assert_uint_ge(held(), light_calls[_i].left);
	rpc_limits_off(srv.server, true);
	peer_end(&heavy);
	close(light.fd);
}

/* --------------------------------------------------------------- changes -- */

static const char *const changes[] = {
	"", ",client_max_ops=100000", ",client_max_bytes=1",
	",max_ops=100000,client_max_ops=0", NULL,
};

TEST_LOOP(a_change_of_limits_reaches_calls_that_wait, 0, ARRAY_SIZE(changes))
{
	struct peer p;

	publish_limits(",client_max_ops=1");
	peer_open(&p, "127.0.0.1", srv.port);
	hold_calls(&p, 150);
	if (changes[_i])
		publish_limits(changes[_i]);
	else				/* no longer exported */
		harness_publish(&srv, "/one *" OPTIONS ")\n");
	rpc_limits_changed(srv.server);
	ck_assert_uint_eq(receive_rest(&p), 0);
	ck_assert_uint_eq(held(), 0);
	close(p.fd);
	harness_publish(&srv, "/mem *" OPTIONS ")\n/one *" OPTIONS ")\n");
}

TEST(a_change_that_leaves_the_limit_lets_no_call_pass)
{
	struct peer p;

	publish_limits(",client_max_ops=1");
	peer_open(&p, "127.0.0.1", srv.port);
	hold_calls(&p, 100);
	for (unsigned i = 0; i < 5; i++) {
		publish_limits(",client_max_ops=1");
		rpc_limits_changed(srv.server);
		/* Calls that are let pass would do so now. */
		pause_on_purpose(10000);
	}
	EVENTUALLY(held() >= 80 && held() == rpc_busy());
	rpc_limits_off(srv.server, true);
	peer_end(&p);
}

TEST(a_client_s_calls_are_let_go_when_its_connections_end)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct peer mine, other;
	struct in6_addr host;

	publish_limits(",client_max_ops=1");
	peer_open(&mine, "127.0.0.1", srv.port);
	peer_open(&other, "127.0.0.2", srv.port);
	hold_calls(&mine, 100);
	hold_calls(&other, 100);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	host = xprt_addr_host((struct sockaddr *)&a);
	rpc_limits_let_go(srv.server, &host);
	ck_assert_uint_eq(receive_rest(&mine), 0);
	ck_assert_uint_ge(held(), 80);
	rpc_limits_off(srv.server, true);
	ck_assert_uint_eq(receive_rest(&other), 0);
	close(mine.fd);
	close(other.fd);
}

/* ------------------------------------------------------------------ ends -- */

TEST(calls_that_fill_their_connection_for_long_are_sent_back)
{
	struct peer p;

	publish_limits(",client_max_ops=1");
	peer_open(&p, "127.0.0.1", srv.port);
	for (unsigned i = 0; i < 300; i++)
		ck_assert(send_getattr(&p, &fhs[MEM]));
	EVENTUALLY(held() > 240);
	ck_assert(send_getattr(&p, &fhs[ONE]));
	rpc_server_relieve(srv.server);
	ck_assert_uint_gt(held(), 200);		/* they were not seen before */
	EVENTUALLY((rpc_server_relieve(srv.server), held() < 100));
	rpc_limits_off(srv.server, true);
	ck_assert_uint_gt(receive_rest(&p), 100);
	close(p.fd);
}

/* 10,000 at once are fine: 1024 wait, and the rest come again later. */
TEST(a_bounded_number_of_a_clients_calls_waits)
{
	enum { CONNS = 50, CALLS = 200 };
	static struct peer peers[CONNS];
	uint64_t calls = stats_sum_by_name("rpc_calls") + CONNS * CALLS;
	unsigned jukebox = 0;

	publish_limits(",client_max_ops=1");
	for (unsigned i = 0; i < CONNS; i++) {
		peer_open(&peers[i], "127.0.0.1", srv.port);
		for (unsigned k = 0; k < CALLS; k++)
			ck_assert(send_getattr(&peers[i], &fhs[MEM]));
	}
	EVENTUALLY(stats_sum_by_name("rpc_calls") >= calls &&
		   rpc_busy() == held());
	ck_assert_uint_gt(held(), 1000);
	ck_assert_uint_le(held(), 1024);
	rpc_limits_off(srv.server, true);
	for (unsigned i = 0; i < CONNS; i++) {
		jukebox += receive_rest(&peers[i]);
		close(peers[i].fd);
	}
	ck_assert_uint_le(jukebox, CONNS * CALLS - 1024);
	ck_assert_uint_gt(jukebox, 0);
}

/* A byte a second: a client that wrote 3,600 is in debt for an hour. */
static void fall_into_debt(unsigned host)
{
	char from[32];
	struct peer p;

	snprintf(from, sizeof(from), "127.1.%u.%u", host >> 8, host & 255);
	peer_open(&p, from, srv.port);
	ck_assert(send_write(&p, file, 3600));
	peer_end(&p);
}

/* Of 48 that share 64 limits some share one, except with a chance of 1 in
 * 10^9. */
TEST(clients_of_more_addresses_than_are_told_apart_share_a_limit)
{
	struct peer more[48];
	char from[32];

	file = nfs_make_file(top, "file", "");
	publish_limits(",client_max_bytes=1");
	for (unsigned i = 1; i <= 4096; i++)
		fall_into_debt(i);
	for (unsigned i = 0; i < ARRAY_SIZE(more); i++) {
		snprintf(from, sizeof(from), "127.2.0.%u", i + 1);
		peer_open(&more[i], from, srv.port);
		ck_assert(send_write(&more[i], file, 3600));
	}
	EVENTUALLY(held() >= 1);
	rpc_limits_off(srv.server, true);
	for (unsigned i = 0; i < ARRAY_SIZE(more); i++)
		peer_end(&more[i]);
}

static nfs_fh3 slow;

/* More than a client can keep of the pool: the sender also waits. */
static void *send_much(void *arg)
{
	for (unsigned k = 0; k < 12; k++)
		if (!send_write(arg, slow, 1u << 19))
			abort();
	return NULL;
}

/* Two clients keep all of the pool with WRITEs that would wait for days. */
TEST(memory_of_calls_that_wait_goes_to_others_that_need_it)
{
	static const char *const from[] = { "127.0.0.2", "127.0.0.3" };
	nfs_fh3 fast = { { fhs[ONE].len, (char *)fhs[ONE].data } };
	struct peer p[2], other;
	pthread_t thread[2];

	slow = nfs_make_file(top, "slow", "");
	fast = nfs_make_file(fast, "fast", "");
	publish_limits(",client_max_bytes=1");
	for (unsigned i = 0; i < 2; i++) {
		peer_open(&p[i], from[i], srv.port);
		pthread_create(&thread[i], NULL, send_much, &p[i]);
	}
	EVENTUALLY(held() >= 9);
	peer_open(&other, "127.0.0.1", srv.port);
	/* The two might still be sending: memory is short a little later. */
	for (unsigned i = 0; i < 50 ||
	     (i < PEER_MAX && stats_sum_by_name("rpc_limit_memory") == 0);
	     i++)
		ck_assert(send_write(&other, fast, 1u << 19));
	ck_assert_uint_eq(receive_rest(&other), 0);
	ck_assert_uint_gt(stats_sum_by_name("rpc_limit_memory"), 0);
	rpc_limits_off(srv.server, true);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		receive_rest(&p[i]);
		close(p[i].fd);
	}
	close(other.fd);
}
