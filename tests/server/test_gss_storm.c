/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts of RPCSEC_GSS that several connections use, destroy and make at the
 * same time, over each transport, while callers forge, repeat and flood; and
 * while the mechanism hangs.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/stats.h"
#include "rpc/gss.h"
#include "tests/server/gss_client.h"
#include "tests/server/gss_xor.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"
#include "wire/record.h"

enum { CONTEXTS = 2, USERS = 6, TURNS = 300, RENEW = 500, DATA = 40 << 10,
       /* Calls with a token of 20 bytes, and their memory. */
       WAITING = 64 << 10, HELD = WAITING / (4096 + 24),
       HELD_BY_ONE = WAITING / 4 * 3 / (4096 + 24) };

static const char *const exports[] = {
	"/mem 127.0.0.1(rw,insecure,no_root_squash,sec=krb5p:krb5i:krb5)\n",
	"/mem *(rw,insecure,no_root_squash,sec=krb5:sys:krb5i:krb5p)\n",
};

static struct rpc_gss *gss;
static struct doors d;
static struct nfs3_fh top;
static atomic_uint running;

/* A context that several threads use. */
static struct shared {
	pthread_mutex_t lock;		/* guards the rest */
	uint8_t	 handle[16];
	uint32_t nonce;
	uint32_t seq;
	unsigned number;		/* of its like before it */
} shared[CONTEXTS];

struct user {
	pthread_t	  thread;
	unsigned	  i;
	unsigned	  random;
	struct shared	 *s;
	unsigned	  number;	/* of the context in use */
	struct caller	  c;
	struct gss_client g;
	struct nfs3_fh	  file;
};

static struct gss_mech mech;		/* gss_xor, which can hang */
static atomic_bool hangs;
static atomic_uint hanging, accepted;
static atomic_bool catches, caught;	/* one alone */
static atomic_bool opens_late;
static atomic_uint opening;

static void accept_later(void *arg, struct gss_accept *a)
{
	if (atomic_exchange(&catches, false)) {
		atomic_store(&caught, true);
		ck_assert(AWAIT(!atomic_load(&caught)));
	}
	atomic_fetch_add(&hanging, 1);
	ck_assert(AWAIT(!atomic_load(&hangs)));
	atomic_fetch_sub(&hanging, 1);
	gss_xor.accept(arg, a);
	atomic_fetch_add(&accepted, 1);
}

static int unwrap_later(const void *keys, struct iovec *iov, int n)
{
	atomic_fetch_add(&opening, 1);
	ck_assert(AWAIT(!atomic_load(&opens_late)));
	atomic_fetch_sub(&opening, 1);
	return gss_xor.unwrap(keys, iov, n);
}

static void setup_with(struct rpc_gss_config config)
{
	config.mech = &mech;
	config.max_client_waiting = WAITING;
	mech = gss_xor;
	mech.accept = accept_later;
	mech.unwrap = unwrap_later;
	gss = gss_doors_open(&d, &config, exports[0]);
	harness_root(&d.srv, "/mem", &top);
}

static void setup(void)
{
	setup_with((struct rpc_gss_config){ .max_waiting = 0 });
}

static void teardown(void)
{
	doors_close(&d);
	rpc_gss_destroy(gss);
	ck_assert_uint_eq(gss_xor_count(), 0);
}

static unsigned roll(struct user *u, unsigned n)
{
	u->random = u->random * 1103515245 + 12345;
	return (u->random >> 16) % n;
}

static void new_keys(struct user *u, uint32_t nonce)
{
	if (u->g.keys)
		gss_xor.free(u->g.keys);
	u->g.keys = gss_xor_keys(nonce);
}

static uint32_t init(struct user *u, uint32_t proc, uint32_t nonce,
		     uint32_t steps)
{
	const struct gss_xor_token t = {
		.nonce = nonce, .seconds = 1000, .steps = steps,
	};
	uint8_t token[20];

	u->g.prog = NFS3_PROGRAM;
	u->g.vers = 3;
	u->g.procnum = 0;
	return gss_client_init(&u->g, proc, gss_xor_put(token, &t));
}

/* Locked. */
static void make_shared(struct user *u, struct shared *s)
{
	s->nonce = 1000 * (u->i + 1) + s->number;
	u->g.handle_len = 0;
	ck_assert_uint_eq(init(u, GSS_INIT, s->nonce, 0), RPC_SUCCESS);
	ck_assert_uint_eq(u->g.init.major, GSS_COMPLETE);
	memcpy(s->handle, u->g.handle, sizeof(s->handle));
	s->seq = 0;
	s->number++;
}

/* Makes the next call one of the shared context. */
static void take_number(struct user *u)
{
	struct shared *s = u->s;

	pthread_mutex_lock(&s->lock);
	if (s->seq >= RENEW)
		make_shared(u, s);
	new_keys(u, s->nonce);
	memcpy(u->g.handle, s->handle, sizeof(s->handle));
	u->g.handle_len = sizeof(s->handle);
	u->g.seq = s->seq++;
	u->number = s->number;
	pthread_mutex_unlock(&s->lock);
	u->g.service = GSS_NONE + roll(u, 3);
}

static bool is_gone(struct user *u)
{
	bool gone;

	pthread_mutex_lock(&u->s->lock);
	gone = u->number != u->s->number;
	pthread_mutex_unlock(&u->s->lock);
	return gone;
}

/* True if it was served; else its context was destroyed. */
static bool send_call(struct user *u)
{
	uint32_t stat = gss_client_send(&u->g);

	if (stat != RPC_SUCCESS) {
		ck_assert_uint_eq(stat, CALLER_DENIED + RPC_GSS_CREDPROBLEM);
		EVENTUALLY(is_gone(u));
		return false;
	}
	ck_assert_uint_eq(xdr_get_u32(&u->g.res), NFS3_OK);
	return true;
}

static void begin(struct user *u, uint32_t proc, const struct nfs3_fh *fh)
{
	take_number(u);
	gss_client_begin(&u->g, NFS3_PROGRAM, 3, proc);
	xdr_put_opaque(&u->g.args, fh->data, fh->len);
}

static void make_file(struct user *u)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", u->i);
	do {
		begin(u, NFSPROC3_CREATE, &top);
		xdr_put_string(&u->g.args, name);
		for (int i = 0; i < 7; i++)
			xdr_put_u32(&u->g.args, 0);
	} while (!send_call(u));
	ck_assert(xdr_get_bool(&u->g.res));
	u->file = harness_get_fh(&u->g.res);
}

/* READ has the data of the WRITE, whoever else uses the context. */
static void move_data(struct user *u)
{
	static const uint32_t lens[] = { 1, 1000, 33000, DATA };
	uint32_t len = lens[roll(u, ARRAY_SIZE(lens))];
	uint8_t data[DATA];

	memset(data, (int)roll(u, 256), len);
	do {
		begin(u, NFSPROC3_WRITE, &u->file);
		xdr_put_u64(&u->g.args, 0);
		xdr_put_u32(&u->g.args, len);
		xdr_put_u32(&u->g.args, 0);
		xdr_put_opaque(&u->g.args, data, len);
	} while (!send_call(u));
	do {
		begin(u, NFSPROC3_READ, &u->file);
		xdr_put_u64(&u->g.args, 0);
		xdr_put_u32(&u->g.args, len);
	} while (!send_call(u));
	xdr_get_fixed(&u->g.res, 88 + 8);
	ck_assert_uint_eq(xdr_get_u32(&u->g.res), len);
	ck_assert_mem_eq(xdr_get_fixed(&u->g.res, len).data, data, len);
}

/* With keys of another, and a number far ahead. */
static void forge(struct user *u)
{
	begin(u, NFSPROC3_GETATTR, &top);
	new_keys(u, 7);
	u->g.seq += 100000;
	if (roll(u, 2))
		u->g.proc = GSS_DESTROY;
	u->g.procnum = u->g.proc ? 0 : u->g.procnum;
	ck_assert_uint_eq(gss_client_send(&u->g),
			  CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	u->g.proc = GSS_DATA;
}

/* On a connection that is never read, and that ends. */
static void repeat(struct user *u)
{
	struct caller other;
	uint32_t len;

	begin(u, NFSPROC3_GETATTR, &u->file);
	len = gss_client_make(&u->g);
	record_put_mark(u->g.call, len);
	caller_open(&other, &d, DOOR_TCP, false);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(send(other.fd, u->g.call, len + 4,
				      MSG_NOSIGNAL), (ssize_t)len + 4);
	caller_close(&other);
}

static void destroy(struct user *u)
{
	struct shared *s = u->s;
	uint32_t stat;

	take_number(u);
	stat = gss_client_destroy(&u->g);
	if (stat != RPC_SUCCESS)
		ck_assert_uint_eq(stat, CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	pthread_mutex_lock(&s->lock);
	if (u->number == s->number)
		make_shared(u, s);
	pthread_mutex_unlock(&s->lock);
}

/* A context that is never completed, or that any user can complete. */
static void leave_unmade(struct user *u)
{
	uint32_t left = roll(u, 3);

	u->g.handle_len = 0;
	ck_assert_uint_eq(init(u, GSS_INIT, 5, left), RPC_SUCCESS);
	if (left)
		ck_assert_uint_eq(init(u, GSS_CONTINUE, left == 1 ? 5 : 0, 0),
				  RPC_SUCCESS);
}

static void *run_user(void *arg)
{
	struct user *u = arg;

	make_file(u);
	for (int i = 0; i < TURNS; i++) {
		switch (roll(u, 12)) {
		case 0:
			forge(u);
			break;
		case 1:
			repeat(u);
			break;
		case 2:
			destroy(u);
			break;
		case 3:
			leave_unmade(u);
			break;
		default:
			move_data(u);
		}
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static void open_user(struct user *u, unsigned i)
{
	u->i = i;
	u->random = i + 1;
	u->s = &shared[i % CONTEXTS];
	caller_open(&u->c, &d, i % NDOORS, false);
	gss_client_open(&u->g, &u->c, &gss_xor);
	if (i < CONTEXTS) {
		pthread_mutex_init(&u->s->lock, NULL);
		make_shared(u, u->s);
	}
}

static void close_user(struct user *u)
{
	gss_xor.free(u->g.keys);
	caller_close(&u->c);
}

TEST(contexts_stay_whole_whatever_several_connections_do_at_once)
{
	struct user *u = calloc(USERS, sizeof(*u));

	setup();
	for (unsigned i = 0; i < USERS; i++)
		open_user(&u[i], i);
	atomic_store(&running, USERS);
	for (unsigned i = 0; i < USERS; i++)
		ck_assert_int_eq(pthread_create(&u[i].thread, NULL, run_user,
						&u[i]), 0);
	for (unsigned i = 1; atomic_load(&running); i++)
		harness_publish(&d.srv, exports[i % 2]);
	for (unsigned i = 0; i < USERS; i++) {
		pthread_join(u[i].thread, NULL);
		close_user(&u[i]);
	}
	free(u);
	teardown();
}

static void connect_from(const char *address, int *fd)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, address, &sin.sin_addr);
	ck_assert_int_eq(bind(*fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	sin.sin_port = htons(d.srv.port);
	inet_pton(AF_INET, "127.0.0.1", &sin.sin_addr);
	ck_assert_int_eq(connect(*fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
}

/* Sends @n INITs from @address, whose replies can wait. */
static void flood(const char *address, unsigned n, int *fd)
{
	const struct gss_xor_token t = { .nonce = 5, .seconds = 100 };
	uint8_t call[128], cred[32], token[20];
	struct rpc_header h = { .prog = NFS3_PROGRAM, .vers = 3,
				.flavor = RPCSEC_GSS };
	struct xdr_out x;

	connect_from(address, fd);
	xdr_out_init(&x, cred, sizeof(cred));
	gss_cred_put(&x, &(struct gss_cred){ .version = 1, .proc = GSS_INIT });
	h.cred = (struct xdr_view){ cred, (uint32_t)xdr_out_len(&x) };
	gss_xor_put(token, &t);
	for (h.xid = 1; h.xid <= n; h.xid++) {
		xdr_out_init(&x, call + 4, sizeof(call) - 4);
		rpc_header_call_signed(&x, &h);
		rpc_auth_put(&x, RPC_AUTH_NONE, (struct xdr_view){ NULL, 0 });
		xdr_put_opaque(&x, token, sizeof(token));
		record_put_mark(call, (uint32_t)xdr_out_len(&x));
		ck_assert_int_eq(send(*fd, call, xdr_out_len(&x) + 4, 0),
				 (ssize_t)xdr_out_len(&x) + 4);
	}
}

/* A client takes six of eight threads, the others are for others. */
TEST(no_call_with_a_context_waits_for_those_that_make_one)
{
	struct user *u = calloc(1, sizeof(*u));
	int fd[3];

	setup();
	open_user(u, 0);
	make_file(u);
	atomic_store(&hangs, true);
	flood("127.0.0.1", 100, &fd[0]);
	/* Most of them are dropped: their client can hold little memory. */
	EVENTUALLY(stats_sum_by_name("gss_crowded") == 100 - HELD);
	EVENTUALLY(atomic_load(&hanging) == 6);
	/* Of all services and lengths, including calls that a worker opens. */
	for (int i = 0; i < 40; i++)
		move_data(u);
	ck_assert_uint_eq(atomic_load(&hanging), 6);
	flood("127.0.0.2", 1, &fd[1]);
	EVENTUALLY(atomic_load(&hanging) == 7);
	atomic_store(&hangs, false);
	EVENTUALLY(atomic_load(&accepted) == HELD + 2);
	/* They hold nothing when they are over. */
	EVENTUALLY(rpc_busy() == 0);
	flood("127.0.0.1", HELD, &fd[2]);
	EVENTUALLY(atomic_load(&accepted) == 2 * HELD + 2);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	close_user(u);
	free(u);
	teardown();
}

/* Other clients, which take turns with it, don't fill the memory for all. */
TEST(the_first_call_of_a_client_is_not_dropped_for_many_of_another)
{
	int fd[2];

	setup_with((struct rpc_gss_config){ .max_waiting = WAITING });
	atomic_store(&hangs, true);
	flood("127.0.0.1", 100, &fd[0]);
	EVENTUALLY(stats_sum_by_name("gss_crowded") == 100 - HELD_BY_ONE);
	EVENTUALLY(atomic_load(&hanging) == 6);
	flood("127.0.0.2", 1, &fd[1]);
	EVENTUALLY(atomic_load(&hanging) == 7);
	atomic_store(&hangs, false);
	EVENTUALLY(atomic_load(&accepted) == HELD_BY_ONE + 1);
	close(fd[0]);
	close(fd[1]);
	teardown();
}

static void *continue_init(void *arg)
{
	ck_assert_uint_eq(init(arg, GSS_CONTINUE, 5, 0), RPC_SUCCESS);
	return NULL;
}

/* Else its client has a handle that serves no call. */
TEST(a_context_that_is_pushed_out_during_a_step_is_not_made)
{
	struct user *u = calloc(2, sizeof(*u));

	setup_with((struct rpc_gss_config){ .max_client_new = 1 });
	for (unsigned i = 0; i < 2; i++) {
		caller_open(&u[i].c, &d, DOOR_TCP, false);
		gss_client_open(&u[i].g, &u[i].c, &gss_xor);
	}
	ck_assert_uint_eq(init(&u[0], GSS_INIT, 5, 1), RPC_SUCCESS);
	ck_assert_uint_eq(u[0].g.init.major, GSS_CONTINUE_NEEDED);
	atomic_store(&catches, true);
	pthread_create(&u[0].thread, NULL, continue_init, &u[0]);
	EVENTUALLY(atomic_load(&caught));
	ck_assert_uint_eq(init(&u[1], GSS_INIT, 6, 0), RPC_SUCCESS);
	ck_assert_uint_eq(u[1].g.init.major, GSS_COMPLETE);
	atomic_store(&caught, false);
	pthread_join(u[0].thread, NULL);
	ck_assert_uint_eq(u[0].g.init.major, GSS_FAILURE);
	ck_assert_uint_eq(u[0].g.init.handle.len, 0);
	for (unsigned i = 0; i < 2; i++)
		caller_close(&u[i].c);
	free(u);
	teardown();
}

/* Its arguments are encrypted, and long enough for a worker. */
static void *write_file(void *arg)
{
	static const uint8_t data[DATA];
	struct user *u = arg;

	begin(u, NFSPROC3_WRITE, &u->file);
	u->g.service = GSS_PRIVACY;
	xdr_put_u64(&u->g.args, 0);
	xdr_put_u32(&u->g.args, DATA);
	xdr_put_u32(&u->g.args, 0);
	xdr_put_opaque(&u->g.args, data, DATA);
	ck_assert_uint_eq(gss_client_send(&u->g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&u->g.res), NFS3_OK);
	return NULL;
}

static uint32_t getattr(struct user *u)
{
	gss_client_begin(&u->g, NFS3_PROGRAM, 3, NFSPROC3_GETATTR);
	xdr_put_opaque(&u->g.args, top.data, top.len);
	return gss_client_send(&u->g);
}

/* Makes another context, which takes the place of the first. */
static void push_first_out(struct user *u)
{
	new_keys(u, 9);
	u->g.handle_len = u->g.seq = 0;
	ck_assert_uint_eq(init(u, GSS_INIT, 9, 0), RPC_SUCCESS);
	ck_assert_uint_eq(getattr(u), RPC_SUCCESS);
}

static void destroy_first(struct user *u)
{
	take_number(u);
	u->g.prog = NFS3_PROGRAM;
	u->g.vers = 3;
	ck_assert_uint_eq(gss_client_destroy(&u->g), RPC_SUCCESS);
}

/* It was proven before; its reply is proven, too. */
TEST_LOOP(a_call_ends_well_whose_context_ends_before, 0, 2 * NDOORS)
{
	struct user *u = calloc(2, sizeof(*u));

	setup_with((struct rpc_gss_config){ .max_client = 1 });
	for (unsigned i = 0; i < 2; i++) {
		caller_open(&u[i].c, &d, (enum door)(_i / 2), false);
		gss_client_open(&u[i].g, &u[i].c, &gss_xor);
		u[i].i = i;
		u[i].s = &shared[0];
	}
	pthread_mutex_init(&shared[0].lock, NULL);
	make_shared(&u[0], &shared[0]);
	make_file(&u[0]);
	atomic_store(&opens_late, true);
	pthread_create(&u[0].thread, NULL, write_file, &u[0]);
	EVENTUALLY(atomic_load(&opening) == 1);
	if (_i % 2)
		push_first_out(&u[1]);
	else
		destroy_first(&u[1]);
	ck_assert_uint_eq(rpc_gss_contexts(gss), _i % 2);
	atomic_store(&opens_late, false);
	pthread_join(u[0].thread, NULL);
	ck_assert_uint_eq(getattr(&u[0]), CALLER_DENIED +
			  RPC_GSS_CREDPROBLEM);
	for (unsigned i = 0; i < 2; i++)
		close_user(&u[i]);
	free(u);
	teardown();
}
