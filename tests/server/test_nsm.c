/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The status monitor: its list on the disk, the hosts that it tells of its
 * start, and the hosts that tell it of their own.
 */
#include "nsm/nsm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/stats.h"
#include "nsm/file.h"
#include "nsm/priv.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/record_stream.h"
#include "tests/unit/ports.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/header.h"
#include "wire/nsm.h"

#define WAIT_MS	60000

static char dir[] = "/tmp/gannet-nsm-XXXXXX";
static struct rpc_client *client;
static struct nsm *nsm;
static struct pool *pool;
static struct rpc_server *server;
static uint32_t retry_ms = 20, grace_ms;	/* of servers from now on */
static sem_t came;			/* a done, or a restart */
static int last_err;
static unsigned errors;
static char restarts[256];
static char saved[1024];		/* the file, as the last done saw it */
/* Sockets of a host on 127.0.0.1: its rpcbind's, of UDP and of TCP, where it
 * does not listen at first, and the host's own. */
static int rpcbind, binder, host;
static uint16_t host_port, rpcbind_port;
static struct sockaddr_storage own;	/* address of the server; any */

static void read_file(void)
{
	char *text = NULL;

	if (nsm_file_read(dir, &text) == 0)
		snprintf(saved, sizeof(saved), "%s", text);
	free(text);
}

static void done(void *arg, int err)
{
	last_err = err;
	errors += err != 0;
	read_file();
	sem_post(&came);
}

static void restarted(void *ctx, const char *name, const struct sockaddr *addr,
		      uint32_t state)
{
	size_t n = strlen(restarts);

	snprintf(restarts + n, sizeof(restarts) - n, "%s/%u ", name, state);
	sem_post(&came);
}

static struct sockaddr *addr(const char *text)
{
	static struct sockaddr_in in;

	in.sin_family = AF_INET;
	ck_assert_int_eq(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return (struct sockaddr *)&in;
}

static const struct rpc_host *host_at(const char *name, const char *text)
{
	static struct rpc_host who;

	who = (struct rpc_host){ name, addr(text), NULL };
	return &who;
}

static void start(void)
{
	struct nsm_config config = { .state_dir = dir, .client = client,
				     .from = own, .first_ms = 20,
				     .retry_ms = retry_ms,
				     .grace_ms = grace_ms };
	const struct rpc_server_config rpc = { .nworkers = 1, .pool = pool };

	ck_assert_int_eq(nsm_create(&config, &nsm), 0);
	nsm_on_restart(nsm, restarted, NULL);
	ck_assert_int_eq(rpc_server_create(&rpc, &server), 0);
	ck_assert_int_eq(rpc_server_add(server, nsm_program(nsm)), 0);
}

static void setup(void)
{
	struct rpc_client_config config = { .max_host_calls = 2 };

	ck_assert_ptr_nonnull(mkdtemp(dir));
	sem_init(&came, 0, 0);
	rpcbind_port = ports_bind(&rpcbind, &binder);
	config.rpcbind_port = rpcbind_port;
	host_port = ports_bind(&host, &(int){ 0 });
	ck_assert_int_eq(rpc_client_create(&config, &client), 0);
	ck_assert_int_eq(pool_create(64u << 20, &pool), 0);
	start();
}

static void stop(void)
{
	EVENTUALLY(rpc_busy() == 0);
	nsm_stop(nsm);
	rpc_client_destroy(client);
	rpc_server_destroy(server);
	nsm_destroy(nsm);
}

static void teardown(void)
{
	char command[64];

	stop();
	pool_destroy(pool);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static void restart(void)
{
	const struct rpc_client_config c = { .rpcbind_port = rpcbind_port };

	stop();
	ck_assert_int_eq(rpc_client_create(&c, &client), 0);
	start();
}

static int monitor(const char *name, const char *at)
{
	nsm_monitor(nsm, host_at(name, at), done, NULL);
	wait_sem(&came);
	return last_err;
}

/* Takes a call from @fd; its arguments in @x, of the static memory. */
static struct rpc_header take(int fd, struct xdr_in *x,
			      struct sockaddr_in *from)
{
	static uint8_t in[1024];
	socklen_t len = sizeof(*from);
	struct rpc_header h;
	ssize_t n = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)from,
			     &len);

	ck_assert_int_gt(n, 0);
	xdr_in_init(x, in, (size_t)n);
	ck_assert_int_eq(rpc_header_decode(x, &h), RPC_HEADER_CALL);
	return h;
}

static void answer(int fd, uint32_t xid, const struct sockaddr_in *to,
		   bool has_word, uint32_t word)
{
	uint8_t out[64];
	struct xdr_out x;

	xdr_out_init(&x, out, sizeof(out));
	rpc_header_accepted(&x, xid, RPC_SUCCESS);
	if (has_word)
		xdr_put_u32(&x, word);
	sendto(fd, out, xdr_out_len(&x), 0, (const struct sockaddr *)to,
	       sizeof(*to));
}

static struct sockaddr_in news_from;
static uint32_t news_xid;

/*
 * Takes the SM_NOTIFY for the host; its rpcbind tells the port until then.  The
 * question can come more than once: it is sent again after a second, and the
 * disk might be busy for longer.  False: nothing came in @ms.
 */
static bool take_news(int ms, struct sm_args *a, bool answers)
{
	struct pollfd p[] = { { rpcbind, POLLIN, 0 }, { host, POLLIN, 0 } };
	struct rpc_header h;
	struct xdr_in x;

	while (poll(p, 2, ms) > 0) {
		h = take(p[1].revents ? host : rpcbind, &x, &news_from);
		ck_assert_uint_eq(p[1].revents ? h.prog : xdr_get_u32(&x),
				  NSM_PROG);
		if (p[1].revents) {
			ck_assert_uint_eq(h.proc, SM_NOTIFY);
			ck_assert(sm_get_notify(&x, a));
			news_xid = h.xid;
			if (answers)
				answer(host, h.xid, &news_from, false, 0);
			return true;
		}
		answer(rpcbind, h.xid, &news_from, true, host_port);
	}
	return false;
}

/* A call to the program from @from; its reply's words after the header. */
static uint32_t words[8];

static unsigned call(const char *from, uint32_t proc, const struct xdr_out *in)
{
	struct fake_xprt *conn = calloc(1, sizeof(*conn));
	const struct rpc_header h = { .xid = 7, .prog = NSM_PROG, .vers = 1,
				      .proc = proc };
	struct fake_call *c;
	uint8_t wire[1024];
	struct xdr_out x;
	unsigned n;

	fake_xprt_init(conn, rpc_server_sink(server), pool, from, 801);
	xdr_out_init(&x, wire, sizeof(wire));
	rpc_header_call(&x, &h, &(struct rpc_auth_sys){ .machine = "c1" });
	if (in)
		xdr_put_fixed(&x, in->start, (uint32_t)xdr_out_len(in));
	c = fake_send(conn, wire, (uint32_t)xdr_out_len(&x));
	fake_wait(c);
	ck_assert(!c->dropped);
	ck_assert_uint_ge(c->len, 24);
	n = (c->len - 24) / 4;
	for (unsigned i = 0; i < n && i < 8; i++) {
		memcpy(&words[i], c->reply + 24 + 4 * i, 4);
		words[i] = ntohl(words[i]);
	}
	fake_free(c);
	free(conn);
	return n;
}

static void notify(const char *from, const char *name, uint32_t state)
{
	const struct sm_call news = { .name = name, .state = state };
	uint8_t args[256];
	struct xdr_out x;

	xdr_out_init(&x, args, sizeof(args));
	sm_put_notify(&x, &news);
	ck_assert_uint_eq(call(from, SM_NOTIFY, &x), 0);
}

static uint32_t mon(const char *from, uint32_t proc, const char *name,
		    uint32_t prog)
{
	static const uint8_t priv[SM_PRIV_SIZE] = "a lock manager";
	const struct sm_call asked = {
		.name = name, .my_name = "here", .prog = prog, .vers = 3,
		.proc = 24, .priv = proc == SM_MON ? priv : NULL,
	};
	uint8_t args[256];
	struct xdr_out x;

	xdr_out_init(&x, args, sizeof(args));
	sm_put_mon(&x, &asked);
	call(from, proc, &x);
	return words[0];
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(a_monitored_host_is_in_the_file)
{
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	ck_assert_ptr_nonnull(strstr(saved, "\nhost 192.0.2.11 c1\n"));
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	ck_assert_int_eq(monitor("../x", "192.0.2.11"), -EINVAL);
	ck_assert_int_eq(monitor("c1", "192.0.2.12"), 0);
	nsm_unmonitor(nsm, host_at("c1", "192.0.2.11"));
	EVENTUALLY((read_file(), !strstr(saved, "192.0.2.11")));
	ck_assert_ptr_nonnull(strstr(saved, "\nhost 192.0.2.12 c1\n"));
	nsm_unmonitor(nsm, host_at("c1", "192.0.2.12"));
	restart();
	ck_assert_uint_eq(nsm_hosts_before(nsm), 0);
}

TEST(a_host_that_can_not_be_written_is_not_monitored)
{
	char moved[64];

	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	snprintf(moved, sizeof(moved), "%s.away", dir);
	ck_assert_int_eq(rename(dir, moved), 0);
	ck_assert_int_eq(monitor("c2", "192.0.2.12"), -ENOENT);
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	ck_assert_int_eq(rename(moved, dir), 0);
	ck_assert_int_eq(monitor("c2", "192.0.2.12"), 0);
	ck_assert_ptr_nonnull(strstr(saved, "\nhost 192.0.2.12 c2\n"));
	ck_assert_uint_ge(stats_sum_by_name("nsm_save_failed"), 1);
}

/* The place of the file's next version, where a pipe delays the writing. */
static char next_file[64];

static void first_done(void *arg, int err)
{
	unlink(next_file);
	*(int *)arg = err;
	sem_post(&came);
}

static bool is_writing(void)
{
	bool none;

	mutex_lock(&nsm->lock);
	none = cds_list_empty(&nsm->waiters);
	mutex_unlock(&nsm->lock);
	return none;
}

TEST(a_host_that_could_not_be_written_is_for_the_next_who_waits_for_it)
{
	int fd, first = 1;

	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	snprintf(next_file, sizeof(next_file), "%s/nsm.new", dir);
	ck_assert_int_eq(mkfifo(next_file, 0600), 0);
	nsm_monitor(nsm, host_at("c2", "192.0.2.12"), first_done, &first);
	EVENTUALLY(is_writing());
	nsm_monitor(nsm, host_at("c2", "192.0.2.12"), done, NULL);
	/* A pipe can't be synced. */
	fd = open(next_file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	wait_sem(&came);
	wait_sem(&came);
	close(fd);
	ck_assert_int_eq(first, -EINVAL);
	ck_assert_int_eq(last_err, 0);
	ck_assert_ptr_nonnull(strstr(saved, "\nhost 192.0.2.12 c2\n"));
}

TEST(each_start_raises_the_state)
{
	uint32_t first = nsm_state(nsm);

	ck_assert_uint_eq(first % 2, 1);
	ck_assert_uint_eq(nsm_hosts_before(nsm), 0);
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	restart();
	ck_assert_uint_eq(nsm_state(nsm), first + 2);
	ck_assert_uint_eq(nsm_hosts_before(nsm), 1);
	/* It got no notice. */
	restart();
	ck_assert_uint_eq(nsm_state(nsm), first + 4);
	ck_assert_uint_eq(nsm_hosts_before(nsm), 1);
}

TEST(a_line_that_makes_no_sense_counts_as_a_host)
{
	char path[64];
	FILE *f;

	EVENTUALLY((read_file(), strstr(saved, "boot")));
	snprintf(path, sizeof(path), "%s/nsm", dir);
	f = fopen(path, "a");
	ck_assert_ptr_nonnull(f);
	fputs("host 192.0.2.1", f);
	ck_assert_int_eq(fclose(f), 0);
	restart();
	ck_assert_uint_eq(nsm_hosts_before(nsm), 1);
}

TEST(a_start_is_told_until_the_host_answers)
{
	struct sockaddr_in from;
	struct rpc_header h;
	struct sm_args a;
	struct xdr_in x;

	ck_assert_int_eq(monitor("c1", "127.0.0.1"), 0);
	restart();
	nsm_tell(nsm);
	/* It has no monitor yet.  A new lock does not end the attempts. */
	h = take(rpcbind, &x, &from);
	ck_assert_int_eq(monitor("c1", "127.0.0.1"), 0);
	answer(rpcbind, h.xid, &from, true, 0);
	ck_assert(take_news(WAIT_MS, &a, false));
	ck_assert_uint_eq(a.state, nsm_state(nsm));
	ck_assert_uint_gt(a.name.len, 0);
	/* The same call again. */
	ck_assert(take_news(WAIT_MS, &a, true));
	EVENTUALLY((take_news(0, &a, true),
		    stats_sum_by_name("nsm_told") == 1));
	nsm_unmonitor(nsm, host_at("c1", "127.0.0.1"));
	restart();
	ck_assert_uint_eq(nsm_hosts_before(nsm), 0);
}

/* While the host may claim its locks.  So many attempts, each twice as long
 * after the one before, would take longer than EVENTUALLY() waits. */
TEST(a_host_that_comes_back_in_the_grace_period_is_told_soon)
{
	retry_ms = grace_ms = 60 * 1000;
	ck_assert_int_eq(monitor("c2", "127.0.0.2"), 0);
	restart();
	nsm_tell(nsm);
	EVENTUALLY(stats_sum_by_name("nsm_tell_failed") >= 24);
}

TEST(hosts_are_told_from_the_address_of_the_server)
{
	struct sm_args a;

	memcpy(&own, addr("127.0.0.9"), sizeof(struct sockaddr_in));
	ck_assert_int_eq(monitor("c1", "127.0.0.1"), 0);
	restart();
	nsm_tell(nsm);
	ck_assert(take_news(WAIT_MS, &a, true));
	ck_assert_uint_eq(news_from.sin_addr.s_addr,
			  htonl(INADDR_LOOPBACK + 8));
}

TEST(restarts_of_hosts_with_locks_are_passed_on)
{
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	ck_assert_int_eq(monitor("c1b", "192.0.2.11"), 0);
	ck_assert_int_eq(monitor("c2", "192.0.2.12"), 0);
	notify("192.0.2.13", "c1", 3);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
	notify("192.0.2.12", "c2.example", 5);
	notify("192.0.2.12", "c2.example", 5);
	ck_assert_uint_eq(stats_sum_by_name("nsm_repeated"), 1);
	notify("192.0.2.11", "c1b", 7);
	ck_assert_str_eq(restarts, "c1/3 c2/5 c1b/7 ");
	/* As rpc.statd says it: by the address that it was given. */
	nsm_notified(nsm, "192.0.2.12", 9);
	nsm_notified(nsm, "c2", 11);
	/* Late, or of a host that was restored: the lock manager finds out. */
	notify("192.0.2.12", "c2", 7);
	ck_assert_str_eq(restarts, "c1/3 c2/5 c1b/7 c2/9 c2/7 ");
}

TEST(lock_managers_of_this_machine_are_called_back)
{
	struct sockaddr_in from;
	struct rpc_header h;
	struct xdr_in x;
	int fd;

	ck_assert_uint_eq(mon("127.0.0.1", SM_MON, "192.0.2.9", 100021),
			  SM_SUCC);
	ck_assert_uint_eq(words[1], nsm_state(nsm));
	read_file();
	ck_assert_ptr_nonnull(strstr(saved,
				     "\nuser 192.0.2.9 192.0.2.9 3 24 61"));
	listen(binder, 1);
	notify("192.0.2.9", "c9", 11);
	/* Our server takes it for a stranger's. */
	ck_assert_str_eq(restarts, "c9/11 ");
	fd = accept(binder, NULL, NULL);
	ck_assert_int_eq(recv(fd, &(uint32_t){ 0 }, 4, MSG_WAITALL), 4);
	h = take(fd, &x, &from);
	ck_assert_uint_eq(h.prog, RPCBIND_PROGRAM);
	ck_assert_uint_eq(xdr_get_u32(&x), 100021);
	ck_assert_uint_eq(xdr_get_u32(&x), 3);
	close(fd);
	ck_assert_uint_eq(mon("127.0.0.1", SM_UNMON, "192.0.2.9", 100021),
			  nsm_state(nsm));
	notify("192.0.2.9", "c9", 13);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 1);
}

TEST(only_this_machine_has_hosts_monitored)
{
	ck_assert_uint_eq(mon("192.0.2.7", SM_MON, "192.0.2.9", 100021),
			  SM_FAIL);
	ck_assert_uint_eq(mon("::1", SM_MON, "192.0.2.9", 100003), SM_FAIL);
	ck_assert_uint_eq(mon("::1", SM_MON, "localhost", 100021), SM_FAIL);
	ck_assert_uint_eq(mon("::1", SM_MON, "192.0.2.9", 100021), SM_SUCC);
	mon("192.0.2.7", SM_UNMON, "192.0.2.9", 100021);
	read_file();
	ck_assert_ptr_nonnull(strstr(saved, "user 192.0.2.9 "));
	ck_assert_uint_eq(stats_sum_by_name("nsm_refused"), 2);
}

TEST(a_simulated_crash_tells_all_hosts)
{
	uint32_t state = nsm_state(nsm);
	struct sm_args a;

	ck_assert_int_eq(monitor("c1", "127.0.0.1"), 0);
	nsm_tell(nsm);
	call("192.0.2.7", SM_SIMU_CRASH, NULL);
	ck_assert_uint_eq(nsm_state(nsm), state);
	call("127.0.0.1", SM_SIMU_CRASH, NULL);
	ck_assert_uint_eq(nsm_state(nsm), state + 2);
	ck_assert(take_news(WAIT_MS, &a, true));
	ck_assert_uint_eq(a.state, state + 2);
}

TEST(a_crash_while_a_host_is_told_of_the_one_before_is_told_too)
{
	struct sm_args a;

	ck_assert_int_eq(monitor("c1", "127.0.0.1"), 0);
	nsm_tell(nsm);
	call("127.0.0.1", SM_SIMU_CRASH, NULL);
	ck_assert(take_news(WAIT_MS, &a, false));
	call("127.0.0.1", SM_SIMU_CRASH, NULL);
	answer(host, news_xid, &news_from, false, 0);
	while (take_news(WAIT_MS, &a, true) && a.state != nsm_state(nsm))
		;
	ck_assert_uint_eq(a.state, nsm_state(nsm));
}

/* ---- with rpc.statd */

static int statd;			/* a socket that listens */
static int binder_fd;			/* a connection */

/* rpc.statd starts: its port is asked for.  Returns the connection to it. */
static int statd_starts(void)
{
	uint16_t port = ports_bind(&(int){ 0 }, &statd);

	listen(statd, 1);
	if (binder_fd < 0)
		binder_fd = accept(binder, NULL, NULL);
	record_answer(binder_fd, PMAPPROC_GETPORT, port, 5);
	return accept(statd, NULL, NULL);
}

static void setup_statd(void)
{
	setup();
	listen(binder, 1);
	binder_fd = -1;
	nsm->statd_port = 1;
}

static void teardown_statd(void)
{
	close(statd);
	close(binder_fd);
	teardown();
}

TEST_CASE(.setup = setup_statd, .teardown = teardown_statd);

TEST(hosts_wait_while_rpc_statd_restarts)
{
	int fd;

	nsm_monitor(nsm, host_at("a", "192.0.2.11"), done, NULL);
	fd = statd_starts();
	record_answer(fd, SM_MON, SM_SUCC, 5);
	wait_sem(&came);
	close(fd);
	close(statd);
	/* First rpc.statd does not listen, and then it is not registered. */
	nsm_monitor(nsm, host_at("b", "192.0.2.12"), done, NULL);
	EVENTUALLY(stats_sum_by_name("client_failures") == 1);
	record_answer(binder_fd, PMAPPROC_GETPORT, 0, 5);
	fd = statd_starts();
	record_answer(fd, SM_MON, SM_SUCC, 5);
	wait_sem(&came);
	ck_assert_int_eq(last_err, 0);
	close(fd);
}

TEST(hosts_wait_until_rpc_statd_has_time_for_them)
{
	char text[32];
	int fd;

	nsm_monitor(nsm, host_at("a", "192.0.2.11"), done, NULL);
	fd = statd_starts();
	record_answer(fd, SM_MON, SM_SUCC, 5);
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "192.0.2.%d", i);
		nsm_monitor(nsm, host_at(text, text), done, NULL);
	}
	EVENTUALLY(stats_sum_by_name("client_busy") > 0);
	for (int i = 0; i < 5; i++)
		record_answer(fd, SM_MON, SM_SUCC, 5);
	for (int i = 0; i < 6; i++)
		wait_sem(&came);
	ck_assert_uint_eq(errors, 0);
	close(fd);
}
