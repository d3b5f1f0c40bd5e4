/* SPDX-License-Identifier: BSD-2-Clause */
/* News of hosts' restarts: the hosts that they mean, and the addresses that can
 * bring them. */
#include "nsm/nsm.h"

#include <netinet/in.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/stats.h"
#include "nsm/priv.h"
#include "tests/server/record_stream.h"
#include "tests/unit/ports.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/header.h"

static char dir[64];
static struct rpc_client *client;
static struct nsm *nsm;
static sem_t came;
static char restarts[256];
static int rpcbind, binder;		/* this machine's, by UDP and TCP */
static uint16_t rpcbind_port;

static int last_err;

static void done(void *arg, int err)
{
	last_err = err;
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
	struct rpc_client_config c = { 0 };

	c.rpcbind_port = rpcbind_port = ports_bind(&rpcbind, &binder);
	strcpy(dir, "/tmp/gannet-nsm-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	sem_init(&came, 0, 0);
	restarts[0] = '\0';
	ck_assert_int_eq(rpc_client_create(&c, &client), 0);
	ck_assert_int_eq(nsm_create(&(struct nsm_config){
		.state_dir = dir, .client = client, .max_addr_hosts = 3,
		.first_ms = 20 }, &nsm), 0);
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

/* A host that calls @local, or NULL: it is not known which address. */
static int monitor_at(const char *name, const char *at, const char *local)
{
	struct sockaddr_storage ss;
	struct rpc_host who = { .name = name };

	ck_assert(nsm_addr_parse(at, &ss));
	who.addr = (struct sockaddr *)&ss;
	who.local = local ? addr(local) : NULL;
	nsm_monitor(nsm, &who, done, NULL);
	wait_sem(&came);
	return last_err;
}

static int monitor(const char *name, const char *at)
{
	return monitor_at(name, at, NULL);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(a_restart_ends_no_locks_of_other_hosts_with_the_address)
{
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	/* It can have LOCKs on their way. */
	nsm_news(nsm, "c2", addr("192.0.2.11"), 3);
	ck_assert_str_eq(restarts, "c2/3 ");
	ck_assert_int_eq(monitor("c2", "192.0.2.11"), 0);
	/* rpc.statd does not say which of them. */
	nsm_notified(nsm, "192.0.2.11", 5);
	ck_assert_uint_eq(stats_sum_by_name("nsm_strangers"), 2);
	nsm_news(nsm, "c2", addr("192.0.2.11"), 5);
	ck_assert_str_eq(restarts, "c2/3 c2/5 ");
}

/* The lock manager decides whether an older state means late news, or a host
 * whose state went backwards. */
TEST(news_with_an_older_state_are_passed_on_and_repeated_ones_are_not)
{
	ck_assert_int_eq(monitor("c1", "192.0.2.11"), 0);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 5);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 5);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 3);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 3);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 7);
	ck_assert_str_eq(restarts, "c1/5 c1/3 c1/7 ");
	ck_assert_uint_eq(stats_sum_by_name("nsm_repeated"), 2);
}

TEST(hosts_with_one_address_are_bounded)
{
	ck_assert_int_eq(monitor("a", "192.0.2.11"), 0);
	ck_assert_int_eq(monitor("b", "192.0.2.11"), 0);
	ck_assert_int_eq(monitor_at("b", "192.0.2.11", "192.0.2.1"), 0);
	ck_assert_int_eq(monitor("d", "192.0.2.11"), -EDQUOT);
	ck_assert_int_eq(monitor("d", "192.0.2.12"), 0);
}

TEST(a_host_that_calls_two_addresses_restarts_once)
{
	ck_assert_int_eq(monitor_at("c1", "192.0.2.11", "192.0.2.1"), 0);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 5);
	ck_assert_int_eq(monitor_at("c1", "192.0.2.11", "192.0.2.2"), 0);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 5);
	nsm_news(nsm, "c1", addr("192.0.2.11"), 7);
	ck_assert_str_eq(restarts, "c1/5 c1/7 ");
}

/* ---- ours */

/* The next server on the same list. */
static void restart(const struct rpc_client_config *c)
{
	nsm_stop(nsm);
	rpc_client_destroy(client);
	nsm_destroy(nsm);
	ck_assert_int_eq(rpc_client_create(c, &client), 0);
	ck_assert_int_eq(nsm_create(&(struct nsm_config){
		.state_dir = dir, .client = client, .first_ms = 20 }, &nsm),
		0);
	nsm_tell(nsm);
}

/* Takes a call at @fd, and returns the last byte of its IPv4 source. */
static unsigned take_from(int fd)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char byte;

	ck_assert_int_ge(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from,
				  &len), 0);
	return ntohl(from.sin_addr.s_addr) & 0xff;
}

TEST(a_host_is_told_from_each_address_that_it_calls)
{
	const struct rpc_client_config c = { .rpcbind_port = rpcbind_port };
	unsigned seen = 0;

	ck_assert_int_eq(monitor_at("c1", "127.0.0.1", "127.0.0.8"), 0);
	ck_assert_int_eq(monitor_at("c1", "127.0.0.1", "127.0.0.9"), 0);
	ck_assert_int_eq(monitor("c2", "127.0.0.1"), 0);
	restart(&c);
	/* Its rpcbind is asked from there first. */
	while (seen != (1u << 8 | 1u << 9 | 1u << 1))
		seen |= 1u << take_from(rpcbind);
}

/* ---- a user of the machine who pretends to be rpc.statd */

/* A child that listens at a port, as the user @uid; returns its process. */
static pid_t listen_as(uid_t uid, uint16_t *port)
{
	int udp, tcp, ready[2];
	pid_t child;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setresuid(uid, uid, uid) < 0)
			_exit(1);
		*port = ports_bind(&udp, &tcp);
		listen(tcp, 1);
		if (write(ready[1], port, sizeof(*port)) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], port, sizeof(*port)), sizeof(*port));
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

TEST(a_user_who_listens_at_a_port_is_not_rpc_statd)
{
	uint16_t port;
	pid_t child = listen_as(geteuid(), &port);

	ck_assert_int_eq(nsm_statd_check(port), 0);
	end(child);
	EVENTUALLY(nsm_statd_check(port) == -ECONNREFUSED);
	ck_assert_uint_eq(stats_sum_by_name("nsm_statd_false"), 0);
	/* Only root can be another user. */
	if (geteuid() != 0)
		return;
	child = listen_as(65534, &port);
	ck_assert_int_eq(nsm_statd_check(port), -EPERM);
	ck_assert_uint_eq(stats_sum_by_name("nsm_statd_false"), 1);
	end(child);
}

/* The host's restart is for this machine's lock manager, of which rpcbind tells
 * @port. */
static void tell_user(uint16_t port)
{
	struct nsm_host *host;

	ck_assert_int_eq(monitor("192.0.2.9", "192.0.2.9"), 0);
	mutex_lock(&nsm->lock);
	host = nsm_hosts_find(&nsm->hosts, &(struct rpc_host){
			      "192.0.2.9", addr("192.0.2.9"), NULL }, false);
	host->user = true;
	host->vers = 4;
	mutex_unlock(&nsm->lock);
	nsm_news(nsm, "c9", addr("192.0.2.9"), 5);
	record_answer(accept(binder, NULL, NULL), PMAPPROC_GETPORT, port, 0);
}

TEST(a_user_who_says_that_he_is_a_lock_manager_is_told_nothing)
{
	uint16_t port;
	pid_t child;

	if (geteuid() != 0)
		return;
	listen(binder, 1);
	child = listen_as(65534, &port);
	tell_user(port);
	EVENTUALLY(stats_sum_by_name("nsm_user_false") == 1);
	end(child);
}

TEST(a_lock_manager_of_our_own_user_is_told)
{
	int udp, tcp, fd;
	uint16_t port = ports_bind(&udp, &tcp);

	listen(binder, 1);
	listen(tcp, 1);
	tell_user(port);
	fd = accept(tcp, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	record_answer(fd, 0, 0, 0);
	ck_assert_uint_eq(stats_sum_by_name("nsm_user_false"), 0);
}

static void ended(void *arg, int err, struct xdr_in *results)
{
	last_err = err;
	sem_post(&came);
}

/* Answers one question for a port. */
static void tell_port(uint16_t port)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	struct rpc_header h;
	uint8_t wire[512];
	struct xdr_out out;
	struct xdr_in x;
	ssize_t n = recvfrom(rpcbind, wire, sizeof(wire), 0,
			     (struct sockaddr *)&from, &len);

	ck_assert_int_gt(n, 0);
	xdr_in_init(&x, wire, (size_t)n);
	ck_assert_int_eq(rpc_header_decode(&x, &h), RPC_HEADER_CALL);
	xdr_out_init(&out, wire, sizeof(wire));
	rpc_header_accepted(&out, h.xid, RPC_SUCCESS);
	xdr_put_u32(&out, port);
	ck_assert_int_gt(sendto(rpcbind, wire, xdr_out_len(&out), 0,
				(struct sockaddr *)&from, len), 0);
}

static uint16_t checked;

static int refuse(uint16_t port)
{
	checked = port;
	return -EPERM;
}

TEST(a_program_whose_port_is_not_believed_is_not_called)
{
	struct rpc_client_to to = {
		.proto = IPPROTO_UDP, .prog = NSM_PROG, .vers = 1,
		.timeout_ms = 60000, .check = refuse,
	};

	memcpy(&to.addr, addr("127.0.0.1"), sizeof(struct sockaddr_in));
	/* A port that is not believed is asked for again the next time. */
	for (uint16_t i = 1; i < 3; i++) {
		ck_assert_int_eq(rpc_client_call(client, &to, NULL, 0, ended,
						 NULL), 0);
		tell_port(i);
		wait_sem(&came);
		ck_assert_int_eq(last_err, -EPERM);
		ck_assert_uint_eq(checked, i);
	}
}
