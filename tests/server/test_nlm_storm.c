/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of clients that wait for no answer: hosts with one address,
 * over several connections, some of which they reset, and by datagrams, some
 * of which come twice; synchronous and asynchronous procedures, and lies.
 * Hosts restart, also twice within one notice, and notices come late and
 * again.  The backend refuses some locks, or grants them too late.
 *
 * Meanwhile two hosts lock and unlock one call at a time.  They know what they
 * hold.
 *
 * Asserted: the backend never has a byte for two owners; whenever no call is
 * under way, it has just the bytes of the table, no waiter sleeps with nothing
 * in its way, and the two hosts have just their bytes; and after all have given
 * back what they had, nothing is left.
 *
 * NLM_STORM_SEEDS in the environment asks for more seeds, from NLM_STORM_FROM
 * on.
 */
#include "tests/server/nlm_client.h"

#include <stdio.h>
#include <sys/socket.h>

#include "nlm/proc.h"
#include "tests/server/daemon_run.h"
#include "tests/server/nlm_storm.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

#define SEEDS		6u
#define ROUNDS		6u
#define STEPS		600u
#define HOSTS		4u
#define OWNERS		3u
#define FILES		2u
#define CONNS		4u	/* the last one is for datagrams */
#define UDP		(CONNS - 1)
#define UNHEARD		32u	/* calls on one connection */
#define HONEST		2u

static nfs_fh3 file[FILES];
static struct xprt_listener *udp;
static struct { int fd; unsigned unheard; } conn[CONNS];
static uint32_t state[HOSTS];
static uint32_t sent;
static bool mine[HONEST][NS_BYTES];

static void open_conn(unsigned i)
{
	conn[i].unheard = 0;
	if (i != UDP) {
		conn[i].fd = daemon_connect(srv.port);
		return;
	}
	conn[i].fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(conn[i].fd, 0);
	ck_assert_int_eq(connect(conn[i].fd, (struct sockaddr *)&udp->local,
				 sizeof(struct sockaddr_in)), 0);
}

static void start(void)
{
	const struct harness_config config = {
		.backend = ns_backend(),
		.nlm = { .call_back_ms = 1, .told_ms = 50, .idle_ms = 300,
			 .answer_ms = 50 },
	};
	struct sockaddr_in at = { .sin_family = AF_INET };

	nlmc_notes_first = true;
	nlmc_start(&config);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(udp_listen(&srv.env, (struct sockaddr *)&at, NULL,
				    &udp), 0);
	file[0] = nfs_make_file(top, "file0", "");
	file[1] = nfs_make_file(top, "file1", "");
	for (unsigned i = 0; i < CONNS; i++)
		open_conn(i);
	for (unsigned i = 0; i < HOSTS; i++)
		state[i] = 1;
}

static void end(void)
{
	for (unsigned i = 0; i < CONNS; i++)
		close(conn[i].fd);
	udp->ops->stop(udp);
	udp->ops->free(udp);
	nlmc_end();
}

TEST_CASE(.setup = start, .teardown = end);

/* ---- the storm */

static const char *name_of(char text[16], unsigned host)
{
	snprintf(text, 16, "storm%u", host);
	return text;
}

static void post(unsigned i, struct xdr_out *x)
{
	size_t len = record_end(x);
	ssize_t n;

	if (i == UDP)
		n = send(conn[i].fd, x->start + RECORD_MARK_SIZE,
			 len - RECORD_MARK_SIZE, 0);
	else
		n = send(conn[i].fd, x->start, len, MSG_NOSIGNAL);
	(void)n;
	conn[i].unheard++;
}

/* The reply to the call @xid has come on the connection @i.  False: it can be
 * lost. */
static bool hear(unsigned i, uint32_t xid)
{
	const struct timeval wait = { .tv_usec = 100 * 1000 };
	uint32_t first = 0;
	char bytes[1024];
	ssize_t n;

	if (i == UDP)
		setsockopt(conn[i].fd, SOL_SOCKET, SO_RCVTIMEO, &wait,
			   sizeof(wait));
	while (first != xid) {
		n = i == UDP ? recv(conn[i].fd, bytes, sizeof(bytes), 0) :
			       record_receive(conn[i].fd, bytes,
					      sizeof(bytes));
		if (n < 4)
			return false;
		memcpy(&first, bytes, sizeof(first));
		first = ntohl(first);
	}
	return true;
}

/* The server has read all that was sent on the connection. */
static void sync_conn(unsigned i)
{
	uint8_t bytes[256];
	struct xdr_out x;

	do {
		const struct rpc_header h = { .xid = ++sent, .vers = 4,
					      .prog = NLM_PROGRAM };

		record_call(&x, bytes, sizeof(bytes), &h);
		post(i, &x);
	} while (!hear(i, sent) && i == UDP);
	conn[i].unheard = 0;
}

static void reset_conn(unsigned i)
{
	const struct linger now = { .l_onoff = 1 };

	if (i != UDP)
		setsockopt(conn[i].fd, SOL_SOCKET, SO_LINGER, &now,
			   sizeof(now));
	close(conn[i].fd);
	open_conn(i);
}

static void send_args(unsigned i, uint32_t proc, const struct nlm_args *a,
		      unsigned times)
{
	const struct rpc_header h = { .xid = ++sent, .prog = NLM_PROGRAM,
				      .vers = 4, .proc = proc };
	uint8_t bytes[1024];
	struct xdr_out x;

	for (; times; times--) {
		record_call(&x, bytes, sizeof(bytes), &h);
		nlm_put_args(&x, a, proc, true);
		post(i, &x);
	}
}

static struct nlm_args args_of(char name[16], unsigned host, unsigned owner,
			       unsigned f)
{
	return (struct nlm_args){
		.cookie = xdr_text("abc"),
		.name = xdr_text(name_of(name, host)),
		.oh = xdr_text("an owner"),
		.fh = { (const uint8_t *)file[f].data.data_val,
			file[f].data.data_len },
		.svid = owner, .state = state[host],
	};
}

static void send_some(void)
{
	static const uint8_t procs[] = {
		NLM_LOCK, NLM_LOCK, NLM_LOCK, NLM_LOCK, NLM_LOCK_MSG,
		NLM_LOCK_MSG, NLM_NM_LOCK, NLM_UNLOCK, NLM_UNLOCK, NLM_UNLOCK,
		NLM_UNLOCK_MSG, NLM_CANCEL, NLM_CANCEL, NLM_CANCEL_MSG,
		NLM_TEST, NLM_TEST_MSG, NLM_SHARE, NLM_UNSHARE, NLM_GRANTED,
		NLM_GRANTED_MSG,
	};
	const unsigned i = ns_roll(CONNS), host = ns_roll(HOSTS);
	const uint32_t proc = procs[ns_roll(sizeof(procs))];
	char name[16];
	struct nlm_args a = args_of(name, host, ns_roll(OWNERS),
				    ns_roll(FILES));

	/* So few ranges that a CANCEL often finds its LOCK. */
	a.len = ns_roll(8) ? 1u << ns_roll(3) : 0;
	a.off = 4 * ns_roll(NS_BYTES / 4) + (a.len == 1 ? ns_roll(4) : 0);
	a.exclusive = ns_roll(3);
	a.block = ns_roll(3);
	a.reclaim = ns_roll(40) == 0;
	a.mode = ns_roll(4);
	a.access = ns_roll(4);
	if (ns_roll(16) == 0)
		a.state -= MIN(a.state, 2 * ns_roll(3));
	/* Otherwise few waiters get their locks. */
	if (proc == NLM_UNLOCK && ns_roll(3) == 0)
		a.off = a.len = 0;
	send_args(i, proc, &a, 1 + (ns_roll(8) == 0));
	if (conn[i].unheard >= UNHEARD)
		sync_conn(i);
}

static void free_all(unsigned host)
{
	char name[16];

	nlmc_free_all(&(struct nlm_process){ name_of(name, host), 0, 4,
					     IPPROTO_TCP, file[0] });
}

static void release(unsigned host)
{
	const struct in6_addr addr =
		xprt_addr_host((const struct sockaddr *)&udp->local);
	struct lock_totals ended = { 0 };
	char name[16];

	nlm_release(srv.nlm, &addr, name_of(name, host), &ended);
}

static void restart_some(void)
{
	const unsigned host = ns_roll(HOSTS);
	char name[16];

	name_of(name, host);
	switch (ns_roll(8)) {
	case 0:
		free_all(host);
		break;
	case 1:
		release(host);
		break;
	case 2:			/* a late notice, or a state that went back */
		state[host] -= ns_roll(3) || state[host] < 3 ? 0 : 2;
		nlmc_restarted(name, state[host] < 3 ? 1 : state[host] - 2);
		break;
	case 3:			/* LOCKs come before the notice */
		state[host] += 2;
		break;
	case 4:
		state[host] += 2;
		/* fallthrough */
	default:
		state[host] += 2 * (host % 2);
		nlmc_restarted(name, state[host]);
	}
}

/* ---- hosts that know what they have */

static void lock_honestly(void)
{
	const unsigned o = ns_roll(HONEST), b = ns_roll(NS_BYTES - 1);
	const struct nlm_process p = { o ? "honest1" : "honest0", o, 4,
				       IPPROTO_TCP, file[0] };
	const struct nlm_bytes at = { b, 1, true };
	uint32_t status;

	if (mine[o][b] && ns_roll(2)) {
		ck_assert_uint_eq(nlmc_unlock(&p, at), NLM4_GRANTED);
		mine[o][b] = false;
		return;
	}
	status = nlmc_lock(&p, at, false);
	ck_assert(status == NLM4_GRANTED || !mine[o][b] ||
		  status == NLM4_DENIED_GRACE_PERIOD ||
		  status == NLM4_DENIED_NOLOCKS || ns_is_foreign());
	if (status == NLM4_GRANTED && mine[!o][b])
		ck_abort_msg("byte %u is held twice", b);
	mine[o][b] |= status == NLM4_GRANTED;
}

static void check_honest(unsigned o)
{
	uint8_t held[NS_BYTES] = { 0 };

	ns_held(o ? "honest1" : "honest0", o, held);
	for (unsigned b = 0; b < NS_BYTES; b++)
		if ((held[b] != 0) != mine[o][b])
			ck_abort_msg("honest%u: byte %u is %d, %d for it", o,
				     b, held[b], mine[o][b]);
}

static void settle(void)
{
	for (unsigned i = 0; i < CONNS; i++)
		sync_conn(i);
	EVENTUALLY(ns_is_quiet());
	ns_check();
	for (unsigned o = 0; o < HONEST; o++)
		check_honest(o);
}

/* ---- the end of a round */

static void unlock_all(unsigned host)
{
	char name[16];

	for (unsigned o = 0; o < OWNERS * FILES; o++) {
		const struct nlm_args a = args_of(name, host, o / FILES,
						  o % FILES);

		send_args(0, NLM_UNLOCK, &a, 1);
	}
	/* SHARE has no process number: 0. */
	for (unsigned f = 0; f < FILES; f++) {
		const struct nlm_args a = args_of(name, host, 0, f);

		send_args(0, NLM_UNSHARE, &a, 1);
	}
	sync_conn(0);
}

static void let_go(void)
{
	void (*const how[])(unsigned host) = { unlock_all, free_all, release };

	ns_trouble(false);
	for (unsigned h = 0; h < HOSTS; h++)
		how[ns_roll(ARRAY_SIZE(how))](h);
	settle();
	for (unsigned o = 0; o < HONEST; o++) {
		const struct nlm_process p = { o ? "honest1" : "honest0", o, 4,
					       IPPROTO_TCP, file[0] };

		ck_assert_uint_eq(nlmc_unlock(&p, (struct nlm_bytes){ 0 }),
				  NLM4_GRANTED);
		memset(mine[o], 0, sizeof(mine[o]));
	}
	settle();
	EVENTUALLY(ns_is_empty());
	ns_trouble(true);
}

static void step(void)
{
	static const uint32_t answers[] = { NLM4_GRANTED, NLM4_GRANTED,
		NLM4_DENIED, NLM_SILENT, NLM_DEAF, NLM4_DENIED_GRACE_PERIOD };

	send_some();
	if (ns_roll(8) == 0)
		lock_honestly();
	if (ns_roll(40) == 0)
		restart_some();
	if (ns_roll(60) == 0)
		reset_conn(ns_roll(CONNS));
	if (ns_roll(20) == 0)
		nlmc_answer = answers[ns_roll(ARRAY_SIZE(answers))];
}

static unsigned setting(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

TEST_LOOP(calls_in_any_order_leave_no_lock_to_two_and_none_to_nobody, 0,
	  (int)setting("NLM_STORM_SEEDS", SEEDS))
{
	unsigned seed = setting("NLM_STORM_FROM", (unsigned)runner_now_ms()) +
			(unsigned)_i;

	printf("# NLM_STORM_FROM=%u\n", seed);
	fflush(stdout);
	ns_begin(srv.nlm->ctx, seed);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < STEPS; i++) {
			step();
			if (i % 200 == 199)
				settle();
		}
		let_go();
	}
	ns_report();
}

int main(void)
{
	return run_tests();
}
