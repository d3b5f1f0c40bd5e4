/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration with rpcbind, against one made here, and, with GANNET_RPCBIND
 * set in the environment, against the one of this machine.
 */
#include "rpc/rpcbind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/thread.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "wire/header.h"

#define PROG	0x20000003u

enum { SET = 1, UNSET = 2, DUMP = 4 };

/* The rpcbind: one connection after the other, on its own thread. */
enum { WORKS, DENIES, HANGS, HANGS_UP };
static atomic_int mode;
static struct map {		/* read by tests between two calls */
	uint32_t prog, vers;
	char	 netid[8], addr[64];
	bool	 used;
} maps[16];
static const char *owner;	/* of all maps */
static int again;		/* that a mapping comes back when removed */
static int listener;
static pthread_t thread;
static struct sockaddr_storage at;
static socklen_t at_len;

static bool same(const struct map *a, const struct map *b)
{
	return a->used && a->prog == b->prog && a->vers == b->vers &&
	       strcmp(a->netid, b->netid) == 0;
}

static struct map *find(const struct map *m)
{
	for (unsigned i = 0; i < ARRAY_SIZE(maps); i++)
		if (same(&maps[i], m))
			return &maps[i];
	return NULL;
}

/* As rpcbind does it: an equal mapping is fine, another one is not. */
static bool set(struct map *m)
{
	struct map *old = find(m);

	if (old)
		return strcmp(old->addr, m->addr) == 0;
	for (unsigned i = 0; i < ARRAY_SIZE(maps); i++)
		if (!maps[i].used) {
			maps[i] = *m;
			maps[i].used = true;
			return true;
		}
	return false;
}

static bool unset(struct map *m)
{
	struct map *old = find(m);

	if (old)
		old->used = again > 0 && again--;
	return old;
}

static void copy_text(struct xdr_view v, char *out, size_t size)
{
	assert(v.len < size);
	memcpy(out, v.data, v.len);
}

static void put_map(struct xdr_out *x, const struct map *m)
{
	xdr_put_bool(x, true);
	portmap_put_rpcb(x, &(struct portmap_args){
		.prog = m->prog, .vers = m->vers, .netid = xdr_text(m->netid),
		.addr = xdr_text(m->addr), .owner = xdr_text(owner) });
}

static void answer(struct xdr_in *in, struct xdr_out *out)
{
	struct portmap_args a = { 0 };
	struct rpc_header h;
	struct map m = { 0 };

	assert(rpc_header_decode(in, &h) == RPC_HEADER_CALL);
	assert(h.prog == 100000 && h.vers == 4);
	rpc_header_accepted(out, h.xid, RPC_SUCCESS);
	if (h.proc == DUMP) {
		for (unsigned i = 0; i < ARRAY_SIZE(maps); i++)
			if (maps[i].used)
				put_map(out, &maps[i]);
		xdr_put_bool(out, false);
		return;
	}
	assert(portmap_get_rpcb(in, &a));
	m.prog = a.prog;
	m.vers = a.vers;
	copy_text(a.netid, m.netid, sizeof(m.netid));
	copy_text(a.addr, m.addr, sizeof(m.addr));
	xdr_put_bool(out, mode != DENIES &&
		     (h.proc == SET ? set(&m) : unset(&m)));
}

static void serve_connection(int fd)
{
	uint8_t in[1024], out[2048];
	struct xdr_in x;
	struct xdr_out y;
	uint32_t len;

	while (mode != HANGS_UP &&
	       (len = record_receive(fd, in, sizeof(in))) > 0) {
		if (mode == HANGS)
			continue;
		xdr_in_init(&x, in, len);
		xdr_out_init(&y, out, sizeof(out));
		xdr_reserve(&y, RECORD_MARK_SIZE);
		answer(&x, &y);
		if (!record_post(fd, &y))
			break;
	}
	close(fd);
}

static void serve(void *arg)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0)
		serve_connection(fd);
}

static void start_at(const struct sockaddr *sa, socklen_t len)
{
	owner = "superuser";
	listener = socket(sa->sa_family, SOCK_STREAM, 0);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(bind(listener, sa, len), 0);
	ck_assert_int_eq(listen(listener, 5), 0);
	at_len = sizeof(at);
	getsockname(listener, (struct sockaddr *)&at, &at_len);
	ck_assert_int_eq(thread_start(&thread, "rpcbind", serve, NULL), 0);
}

static void start_tcp(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	start_at((struct sockaddr *)&in, sizeof(in));
}

/* A socket in the abstract name space, of a name that the kernel chooses. */
static void start_local(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	start_at((struct sockaddr *)&un, sizeof(sa_family_t));
}

static void stop(void)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
}

static struct rpcbind *dial(void)
{
	struct rpcbind *rb;

	ck_assert_int_eq(rpcbind_open((struct sockaddr *)&at, at_len, &rb), 0);
	return rb;
}

static struct sockaddr *any4(uint16_t port)
{
	static struct sockaddr_in in;

	in.sin_family = AF_INET;
	in.sin_port = htons(port);
	return (struct sockaddr *)&in;
}

static struct sockaddr *any6(uint16_t port)
{
	static struct sockaddr_in6 in6;

	in6.sin6_family = AF_INET6;
	in6.sin6_port = htons(port);
	return (struct sockaddr *)&in6;
}

static const char *addr_of(uint32_t vers, const char *netid)
{
	struct map m = { .prog = PROG, .vers = vers };
	struct map *found;

	snprintf(m.netid, sizeof(m.netid), "%s", netid);
	found = find(&m);
	return found ? found->addr : "";
}

START_TEST(universal_addresses_are_those_of_rfc_5665)
{
	char out[RPCBIND_UADDR_MAX];
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(2049) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(20049) };

	inet_pton(AF_INET, "192.0.2.7", &in.sin_addr);
	inet_pton(AF_INET6, "2001:db8::7", &in6.sin6_addr);
	ck_assert_str_eq(rpcbind_uaddr((void *)&in, out), "192.0.2.7.8.1");
	ck_assert_str_eq(rpcbind_uaddr((void *)&in6, out),
			 "2001:db8::7.78.81");
	ck_assert_str_eq(rpcbind_uaddr(any6(111), out), "::.0.111");
}
END_TEST

START_TEST(programs_are_registered_for_each_netid_and_withdrawn)
{
	static const char *const netids[] = { "udp", "tcp", "rdma", "udp6",
					      "tcp6", "rdma6" };
	struct rpcbind *rb = dial();

	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(rpcbind_set(rb, PROG, 3, netids[i],
					     i < 3 ? any4(2049) : any6(2049)),
				 0);
	rpcbind_close(rb);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_str_eq(addr_of(3, netids[i]),
				 i < 3 ? "0.0.0.0.8.1" : "::.8.1");
	rb = dial();
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(rpcbind_unset(rb, PROG, 3, netids[i],
					       i < 3 ? any4(2049) :
						       any6(2049)), 0);
	rpcbind_close(rb);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_str_eq(addr_of(3, netids[i]), "");
}
END_TEST

/* Another server, at a port that the kernel chooses, over @netid. */
static struct sockaddr_storage other_at;

static int other_listens(const char *netid)
{
	bool six = netid[3] == '6', udp = *netid == 'u';
	socklen_t len = six ? sizeof(struct sockaddr_in6) :
			      sizeof(struct sockaddr_in);
	struct sockaddr *sa = (struct sockaddr *)&other_at;
	int fd = socket(six ? AF_INET6 : AF_INET, udp ? SOCK_DGRAM :
			SOCK_STREAM, 0);

	memcpy(&other_at, six ? any6(0) : any4(0), len);
	ck_assert_int_eq(bind(fd, sa, len), 0);
	ck_assert(udp || listen(fd, 1) == 0);
	getsockname(fd, sa, &len);
	return fd;
}

static const char *const inet_netids[] = { "tcp", "udp", "tcp6", "udp6" };

static struct sockaddr *mine(unsigned i)
{
	return i < 2 ? any4(2000) : any6(2000);
}

START_TEST(registrations_of_a_killed_server_are_replaced)
{
	struct rpcbind *rb = dial();
	char uaddr[RPCBIND_UADDR_MAX];

	for (unsigned i = 0; i < 4; i++) {
		close(other_listens(inet_netids[i]));
		ck_assert_int_eq(rpcbind_set(rb, PROG, 3, inet_netids[i],
				 (struct sockaddr *)&other_at), 0);
		rpcbind_uaddr((struct sockaddr *)&other_at, uaddr);
		ck_assert_int_eq(rpcbind_set(rb, PROG, 3, inet_netids[i],
					     mine(i)), RPCBIND_REPLACED);
		ck_assert_str_eq(rpcbind_other(rb)->addr, uaddr);
		ck_assert(rpcbind_other(rb)->trusted);
		ck_assert_str_eq(addr_of(3, inet_netids[i]), i < 2 ?
				 "0.0.0.0.7.208" : "::.7.208");
		/* It gets its place back. */
		ck_assert_int_eq(rpcbind_unset(rb, PROG, 3, inet_netids[i],
					       mine(i)), 0);
		ck_assert_int_eq(rpcbind_restore(rb, PROG, 3, inet_netids[i],
						 uaddr), 0);
		ck_assert_str_eq(addr_of(3, inet_netids[i]), uaddr);
	}
	rpcbind_close(rb);
}
END_TEST

/* Another user has it by the time that this server ends. */
START_TEST(a_place_at_another_users_address_is_not_given_back)
{
	struct rpcbind *rb = dial();
	char uaddr[RPCBIND_UADDR_MAX];
	int fd = other_listens("tcp");

	rpcbind_uaddr((struct sockaddr *)&other_at, uaddr);
	if (fchown(fd, 54321, (gid_t)-1) == 0) {
		ck_assert_int_eq(rpcbind_restore(rb, PROG, 3, "tcp", uaddr),
				 -EACCES);
		ck_assert_str_eq(addr_of(3, "tcp"), "");
	}
	close(fd);
	rpcbind_close(rb);
}
END_TEST

START_TEST(the_registration_of_a_server_at_work_stays)
{
	char self[16];
	const char *const owners[] = { "superuser", "unknown", self };
	struct rpcbind *rb = dial();
	char uaddr[RPCBIND_UADDR_MAX];

	snprintf(self, sizeof(self), "%u", (unsigned)geteuid());
	for (unsigned i = 0; i < 12; i++) {
		const char *netid = inet_netids[i % 4];
		int fd = other_listens(netid);

		owner = owners[i / 4];
		ck_assert_int_eq(rpcbind_set(rb, PROG, i, netid,
				 (struct sockaddr *)&other_at), 0);
		ck_assert_int_eq(rpcbind_set(rb, PROG, i, netid,
					     mine(i % 4)), -EEXIST);
		rpcbind_uaddr((struct sockaddr *)&other_at, uaddr);
		ck_assert_str_eq(rpcbind_other(rb)->addr, uaddr);
		ck_assert_str_eq(rpcbind_other(rb)->owner, owner);
		ck_assert_str_eq(addr_of(i, netid), uaddr);
		ck_assert_int_eq(rpcbind_unset(rb, PROG, i, netid,
					       mine(i % 4)), -ENOENT);
		close(fd);
	}
	rpcbind_close(rb);
}
END_TEST

/* Else any user could take the place of MOUNT before the server starts. */
START_TEST(the_registration_of_another_user_is_replaced_though_it_listens)
{
	struct rpcbind *rb = dial();
	int fd = other_listens("tcp");

	owner = "54321";
	ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp",
				     (struct sockaddr *)&other_at), 0);
	ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp", any4(2000)),
			 RPCBIND_REPLACED);
	ck_assert(!rpcbind_other(rb)->trusted);
	ck_assert_str_eq(addr_of(3, "tcp"), "0.0.0.0.7.208");
	close(fd);
	rpcbind_close(rb);
}
END_TEST

/* The server was killed, and another user has its port. */
START_TEST(the_port_of_a_killed_server_helps_no_other_user)
{
	struct rpcbind *rb = dial();
	int fd = other_listens("tcp");

	/* That is the owner whom the kernel shows. */
	if (fchown(fd, 54321, (gid_t)-1) == 0) {
		ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp",
				 (struct sockaddr *)&other_at), 0);
		ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp", any4(2000)),
				 RPCBIND_REPLACED);
		ck_assert(!rpcbind_other(rb)->trusted);
		ck_assert_str_eq(addr_of(3, "tcp"), "0.0.0.0.7.208");
	}
	close(fd);
	rpcbind_close(rb);
}
END_TEST

/* Another user registers again as soon as he was replaced, for a while. */
START_TEST(a_user_who_registers_again_and_again_does_not_win)
{
	struct rpcbind *rb = dial();

	owner = "54321";
	ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp", any4(1000)), 0);
	again = 10;
	ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp", any4(2000)),
			 RPCBIND_REPLACED);
	ck_assert_str_eq(addr_of(3, "tcp"), "0.0.0.0.7.208");
	rpcbind_close(rb);
}
END_TEST

START_TEST(the_mapping_of_a_successor_stays)
{
	struct rpcbind *rb = dial();

	ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp", any4(2000)), 0);
	ck_assert_int_eq(rpcbind_unset(rb, PROG, 3, "tcp", any4(1000)),
			 -ENOENT);
	ck_assert_str_eq(addr_of(3, "tcp"), "0.0.0.0.7.208");
	rpcbind_close(rb);
}
END_TEST

START_TEST(a_refusal_is_eacces)
{
	struct rpcbind *rb = dial();

	mode = DENIES;
	ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp", any4(1000)), -EACCES);
	rpcbind_close(rb);
}
END_TEST

START_TEST(without_rpcbind_it_fails_at_once)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX,
				  .sun_path = "/nonexistent/rpcbind.sock" };
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	struct rpcbind *rb;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	/* A port that is bound without a listener. */
	memcpy(&in, any4(0), sizeof(in));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, len), 0);
	getsockname(fd, (struct sockaddr *)&in, &len);
	IN_LESS_THAN(1000, ck_assert_int_eq(rpcbind_open((void *)&in, len,
						&rb), -ECONNREFUSED));
	IN_LESS_THAN(1000, ck_assert_int_eq(rpcbind_open((void *)&un,
						sizeof(un), &rb),
						-ECONNREFUSED));
	close(fd);
}
END_TEST

START_TEST(a_silent_rpcbind_costs_a_bounded_time)
{
	struct rpcbind *rb = dial();

	mode = HANGS;
	IN_LESS_THAN((RPCBIND_TIMEOUT + 1) * 1000,
		     ck_assert_int_eq(rpcbind_set(rb, PROG, 3, "tcp",
						  any4(1000)), -ETIMEDOUT));
	rpcbind_close(rb);
}
END_TEST

START_TEST(an_rpcbind_that_hangs_up_is_an_error)
{
	struct rpcbind *rb;

	mode = HANGS_UP;
	rb = dial();
	ck_assert_int_lt(rpcbind_set(rb, PROG, 3, "tcp", any4(1000)), 0);
	ck_assert_int_lt(rpcbind_set(rb, PROG, 3, "udp", any4(1000)), 0);
	rpcbind_close(rb);
}
END_TEST

START_TEST(the_rpcbind_of_this_machine_takes_all_netids)
{
	static const char *const netids[] = { "udp", "tcp", "rdma", "udp6",
					      "tcp6", "rdma6" };
	struct rpcbind *rb;

	ck_assert_int_eq(rpcbind_open(NULL, 0, &rb), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct sockaddr *old = i < 3 ? any4(1000) : any6(1000);
		bool rdma = *netids[i] == 'r';
		struct sockaddr *sa;

		if (!rdma)
			ck_assert_int_eq(rpcbind_set(rb, PROG, 3, netids[i],
						     old), 0);
		sa = i < 3 ? any4(2049) : any6(2049);
		ck_assert_int_eq(rpcbind_set(rb, PROG, 3, netids[i], sa),
				 rdma ? 0 : RPCBIND_REPLACED);
	}
	rpcbind_close(rb);
	ck_assert_int_eq(rpcbind_open(NULL, 0, &rb), 0);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_int_eq(rpcbind_unset(rb, PROG, 3, netids[i], i < 3 ?
					       any4(1000) : any6(1000)),
				 -ENOENT);
		ck_assert_int_eq(rpcbind_unset(rb, PROG, 3, netids[i], i < 3 ?
					       any4(2049) : any6(2049)), 0);
	}
	rpcbind_close(rb);
}
END_TEST

static void add_tests(Suite *s, const char *name, void (*start)(void))
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, programs_are_registered_for_each_netid_and_withdrawn);
	tcase_add_test(t, registrations_of_a_killed_server_are_replaced);
	tcase_add_test(t, a_place_at_another_users_address_is_not_given_back);
	tcase_add_test(t, the_registration_of_a_server_at_work_stays);
	tcase_add_test(t,
		the_registration_of_another_user_is_replaced_though_it_listens);
	tcase_add_test(t, the_port_of_a_killed_server_helps_no_other_user);
	tcase_add_test(t, a_user_who_registers_again_and_again_does_not_win);
	tcase_add_test(t, the_mapping_of_a_successor_stays);
	tcase_add_test(t, a_refusal_is_eacces);
	tcase_add_test(t, a_silent_rpcbind_costs_a_bounded_time);
	tcase_add_test(t, an_rpcbind_that_hangs_up_is_an_error);
	tcase_set_timeout(t, 20);
	suite_add_tcase(s, t);
}

int main(void)
{
	Suite *s = suite_create("rpcbind");
	TCase *t = tcase_create("alone");

	signal(SIGPIPE, SIG_IGN);
	if (getenv("GANNET_RPCBIND")) {
		tcase_add_test(t, the_rpcbind_of_this_machine_takes_all_netids);
	} else {
		tcase_add_test(t, universal_addresses_are_those_of_rfc_5665);
		tcase_add_test(t, without_rpcbind_it_fails_at_once);
		add_tests(s, "tcp", start_tcp);
		add_tests(s, "local", start_local);
	}
	suite_add_tcase(s, t);
	return run_suite(s);
}
