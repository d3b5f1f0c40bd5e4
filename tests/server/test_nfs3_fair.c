/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No client waits for another's calls: a light client next to a heavy one, over
 * TCP and RDMA, and exports whose file system hangs.
 *
 * Clients are told apart by their addresses: a client of the relay has
 * 127.0.0.1, and one that binds to 127.0.0.2 has that.
 */
#include "tests/server/nfs_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "exports/export_priv.h"
#include "lib/stats.h"
#include "rpc/share.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"

#define NEXPORTS	3
#define THREADS		16
#define HEAVY_CONNS	8
#define HEAVY_CALLS	125		/* outstanding, on each of them */
#define HEAVY_US	10000		/* the time of one of its COMMITs */
#define LIGHT_US	1000		/* ... and a REMOVE of the light one */
#define LIGHT_CALLS	200

static struct rpc_share shares[NEXPORTS];
static struct nfs3_fh fhs[NEXPORTS];
static const char *const paths[NEXPORTS] = { "/mem", "/one", "/two" };

static void set_share(struct export_tree *e, void *arg)
{
	e->user = arg;
}

/* Each export has its share, as the daemon wires it. */
static void setup(void)
{
	struct harness_config config = {
		.backend = &fault_vfs_ops,
		.exports = "/mem *(rw,insecure,no_root_squash)\n"
			   "/one *(rw,insecure,no_root_squash)\n"
			   "/two *(rw,insecure,no_root_squash)\n"
			   "/named host.example(rw,insecure)\n",
		.nworkers = THREADS,
	};

	fault_init();
	nfs_setup_with(&config);
	for (unsigned i = 0; i < NEXPORTS; i++) {
		shares[i].class = work_class_create(srv.server, paths[i],
						    THREADS);
		ck_assert_ptr_nonnull(shares[i].class);
		harness_with_export(&srv, paths[i], set_share, &shares[i]);
		harness_root(&srv, paths[i], &fhs[i]);
	}
}

static void teardown(void)
{
	nfs_client_close(&user);
	nfs_client_close(&root);
	EVENTUALLY(rpc_busy() == 0);
	for (unsigned i = 0; i < NEXPORTS; i++)
		work_class_destroy(shares[i].class);
	harness_stop(&srv);
}

/* ------------------------------------------------------- calls by hand -- */

#define LONG		(256u << 10)

struct peer {
	int	 fd;
	uint32_t xid;
	bool	 is_long;		/* its calls have a tail, which is
					 * ignored, but keeps them in the
					 * pool */
	uint32_t status;		/* of the last reply */
	uint32_t count;			/* ... to a WRITE that went well */
};

static void peer_open(struct peer *p, const char *from, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	static uint32_t first;

	p->xid = first += 1u << 20;	/* no two calls are one */
	p->is_long = false;
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(p->fd, 0);
	inet_pton(AF_INET, from, &a.sin_addr);
	ck_assert_int_eq(bind(p->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(port);
	ck_assert_int_eq(connect(p->fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static void put(uint32_t **w, uint32_t v)
{
	*(*w)++ = htonl(v);
}

/* A call up to its handle.  Returns where the rest goes. */
static uint32_t *put_call(struct peer *p, uint32_t *words, uint32_t proc,
			  const void *fh, uint32_t len)
{
	const struct rpc_header h = { .xid = ++p->xid, .prog = NFS_PROGRAM,
				      .vers = NFS_V3, .proc = proc };
	struct xdr_out x;

	record_call(&x, words, 128, &h);
	xdr_put_opaque(&x, fh, len);
	return words + xdr_out_len(&x) / 4;
}

/* The call ends at @w. */
static bool send_call(struct peer *p, uint32_t *words, const uint32_t *w)
{
	static const char tail[LONG];

	record_put_mark(words, (size_t)(w - words - 1) * 4 +
			       (p->is_long ? LONG : 0));
	return send(p->fd, words, (size_t)(w - words) * 4, MSG_NOSIGNAL) ==
	       (w - words) * 4 &&
	       (!p->is_long || send(p->fd, tail, LONG, MSG_NOSIGNAL) == LONG);
}

/* COMMIT of, or REMOVE of "none" from, the root of an export. */
static bool peer_send(struct peer *p, uint32_t proc, unsigned export)
{
	const struct nfs3_fh *fh = &fhs[export];
	uint32_t words[64] = { 0 }, *w;

	w = put_call(p, words, proc, fh->data, fh->len);
	if (proc == NFS3_COMMIT) {
		w += 3;			/* all of it */
	} else {
		put(&w, 4);
		memcpy(w++, "none", 4);
	}
	return send_call(p, words, w);
}

/* WRITE of eight bytes to the start of a file. */
static bool peer_write(struct peer *p, nfs_fh3 fh)
{
	uint32_t words[64] = { 0 }, *w;

	w = put_call(p, words, NFS3_WRITE, fh.data.data_val, fh.data.data_len);
	w += 2;
	put(&w, 8);
	put(&w, UNSTABLE);
	put(&w, 8);
	memcpy(w, "12345678", 8);
	return send_call(p, words, w + 2);
}

/* One whole reply. */
static bool peer_receive(struct peer *p)
{
	uint32_t reply[1024];
	uint32_t len = record_receive(p->fd, reply, sizeof(reply));

	if (len == 0)
		return false;
	p->status = ntohl(reply[6]);
	if (len >= 11 * 4)
		p->count = ntohl(reply[len / 4 - 4]);
	return true;
}

/* ------------------------------------------------ one that keeps us busy -- */

struct heavy {
	struct peer	 peer;
	pthread_t	 thread;
};

static atomic_bool stop_heavy;
static atomic_uint heavy_calls;		/* that are done */

static void *heavy_run(void *arg)
{
	struct heavy *h = arg;

	for (unsigned i = 0; i < HEAVY_CALLS; i++)
		if (!peer_send(&h->peer, NFS3_COMMIT, 0))
			abort();
	while (!atomic_load(&stop_heavy)) {
		if (!peer_receive(&h->peer) ||
		    !peer_send(&h->peer, NFS3_COMMIT, 0))
			break;
		atomic_fetch_add(&heavy_calls, 1);
	}
	close(h->peer.fd);
	return NULL;
}

static struct heavy heavies[HEAVY_CONNS];

static unsigned waiting_of_mem;

static void note_waiting(const char *name, unsigned max, unsigned running,
			 unsigned waiting, void *arg)
{
	if (strcmp(name, "/mem") == 0)
		waiting_of_mem = waiting;
}

static unsigned waiting_now(void)
{
	rpc_server_walk_classes(srv.server, note_waiting, NULL);
	return waiting_of_mem;
}

static void heavy_start(const char *from, uint16_t port)
{
	atomic_store(&stop_heavy, false);
	/* However slow their way is, they come faster than they are done. */
	fault_delay(FAULT_COMMIT, 20 * HEAVY_US);
	for (unsigned i = 0; i < HEAVY_CONNS; i++) {
		peer_open(&heavies[i].peer, from, port);
		ck_assert_int_eq(pthread_create(&heavies[i].thread, NULL,
						heavy_run, &heavies[i]), 0);
	}
	EVENTUALLY(waiting_now() > HEAVY_CONNS * HEAVY_CALLS * 9 / 10);
	atomic_store(&heavy_calls, 0);
	fault_delay(FAULT_COMMIT, HEAVY_US);
}

static unsigned heavy_stop(void)
{
	EVENTUALLY(atomic_load(&heavy_calls) > 0);
	atomic_store(&stop_heavy, true);
	fault_delay(FAULT_COMMIT, 0);
	for (unsigned i = 0; i < HEAVY_CONNS; i++)
		pthread_join(heavies[i].thread, NULL);
	return atomic_load(&heavy_calls);
}

/* ------------------------------------------------------------ the light -- */

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 99 of 100 of its calls take no longer, in microseconds. */
static double light_p99(const char *from, uint16_t port)
{
	double took[LIGHT_CALLS];
	struct peer p;

	peer_open(&p, from, port);
	for (unsigned i = 0; i < LIGHT_CALLS; i++) {
		double start = now_us();

		ck_assert(peer_send(&p, NFS3_REMOVE, 0) && peer_receive(&p));
		took[i] = now_us() - start;
	}
	close(p.fd);
	qsort(took, LIGHT_CALLS, sizeof(*took), by_size);
	return took[LIGHT_CALLS * 99 / 100];
}

/* A busy machine can spoil a try. */
#define TRIES		5

/* The heavy one comes @from that address to that port, and so on. */
static void compare(const char *what, const char *heavy_from,
		    uint16_t heavy_port, const char *from, uint16_t port)
{
	double alone = 0, beside = 1;

	for (unsigned i = 0; i < TRIES && beside > 5 * alone; i++) {
		fault_delay(FAULT_COMMIT, HEAVY_US);
		fault_delay(FAULT_REMOVE, LIGHT_US);
		alone = light_p99(from, port);
		heavy_start(heavy_from, heavy_port);
		beside = light_p99(from, port);
		printf("%s: p99 %.0f us alone, %.0f us beside %u outstanding "
		       "calls (%u done)\n", what, alone, beside,
		       HEAVY_CONNS * HEAVY_CALLS, heavy_stop());
	}
	ck_assert_double_le(beside, 5 * alone);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(a_light_client_is_not_slowed_by_a_heavy_one_over_tcp)
{
	compare("tcp", "127.0.0.2", srv.port, "127.0.0.1", srv.port);
}

static void setup_rdma(void)
{
	setenv("HARNESS_FABRIC", "iwarp", 1);
	setup();
}

static uint16_t tcp_port(void)
{
	struct sockaddr_in a;

	memcpy(&a, &srv.tcp->local, sizeof(a));
	return ntohs(a.sin_port);
}

TEST_CASE(.setup = setup_rdma, .teardown = teardown);

TEST(a_light_client_is_not_slowed_by_a_heavy_one_over_rdma)
{
	compare("heavy by RDMA", "127.0.0.1", srv.port, "127.0.0.2",
		tcp_port());
	compare("light by RDMA", "127.0.0.2", tcp_port(), "127.0.0.1",
		srv.port);
}

/* -------------------------------------------------------- hanging calls -- */

static void count_done(struct rpc_context *rpc, int status, void *res,
		       void *arg)
{
	unsigned *left = arg;

	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
	(*left)--;
}

static void serve(struct nfs_client *c)
{
	struct pollfd p = {
		.fd = rpc_get_fd(c->rpc),
		.events = (short)rpc_which_events(c->rpc),
	};

	poll(&p, 1, 10);
	ck_assert_int_eq(rpc_service(c->rpc, p.revents), 0);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(however_many_exports_hang_another_goes_on)
{
	struct peer p[2];

	fault_hold(FAULT_COMMIT, true);
	for (unsigned c = 0; c < 2; c++) {
		peer_open(&p[c], c ? "127.0.0.2" : "127.0.0.3", srv.port);
		for (unsigned i = 0; i < 2 * THREADS; i++)
			ck_assert(peer_send(&p[c], NFS3_COMMIT, 1 + i % 2));
	}
	/* All workers of both are waiting. */
	EVENTUALLY(fault_calls(FAULT_COMMIT) == 2 * THREADS);
	nfs_make_file(top, "quick", "");
	fault_hold(FAULT_COMMIT, false);
	for (unsigned c = 0; c < 2; c++) {
		for (unsigned i = 0; i < 2 * THREADS; i++)
			ck_assert(peer_receive(&p[c]));
		close(p[c].fd);
	}
}

static void no_buffer(struct pool_request *r, struct buf *b)
{
	buf_put(b);
}

/* Twelve of its workers hang for a client whose calls lie in the pool. */
static void hang_share(struct peer *p)
{
	peer_open(p, "127.0.0.2", srv.port);
	p->is_long = true;
	fault_hold(FAULT_COMMIT, true);
	for (unsigned i = 0; i < THREADS * 3 / 4; i++)
		ck_assert(peer_send(p, NFS3_COMMIT, 0));
	EVENTUALLY(fault_calls(FAULT_COMMIT) == THREADS * 3 / 4);
}

/* Some other call wants memory, and the pool is empty; the @n calls that wait
 * behind the hung ones go back. */
static void relieve_memory(unsigned n)
{
	struct pool_request waiter = { .ready = no_buffer };
	struct buf *all = NULL, *b;

	EVENTUALLY(waiting_now() == n);
	for (; (b = pool_alloc(srv.pool, POOL_BUF_MAX)); all = b)
		b->next = all;
	ck_assert_ptr_null(pool_request(srv.pool, POOL_BUF_MAX, &waiter));
	rpc_server_relieve(srv.server);
	ck_assert_uint_eq(waiting_now(), n);
	rpc_server_relieve(srv.server);
	ck_assert_uint_eq(waiting_now(), 0);
	pool_cancel(srv.pool, &waiter);
	for (; all; all = b) {
		b = all->next;
		buf_put(all);
	}
}

static void end_hang(struct peer *p)
{
	fault_hold(FAULT_COMMIT, false);
	for (unsigned i = 0; i < THREADS * 3 / 4; i++) {
		ck_assert(peer_receive(p));
		ck_assert_uint_ne(p->status, NFS3ERR_JUKEBOX);
	}
	close(p->fd);
}

/* Four calls behind the hung ones hold memory that others want. */
TEST(calls_behind_hung_ones_are_sent_back_where_memory_is_short)
{
	struct peer p;

	hang_share(&p);
	for (unsigned i = 0; i < THREADS / 4; i++)
		ck_assert(peer_send(&p, NFS3_COMMIT, 0));
	relieve_memory(THREADS / 4);
	for (unsigned i = 0; i < THREADS / 4; i++) {
		ck_assert(peer_receive(&p));
		ck_assert_uint_eq(p.status, NFS3ERR_JUKEBOX);
	}
	end_hang(&p);
}

/* JUKEBOX would say that nothing was done.  Half of it was written where it
 * was received. */
TEST(a_write_that_is_sent_back_halfway_is_a_short_write)
{
	nfs_fh3 fh = nfs_make_file(top, "half", "");
	struct peer p;

	if (fault_on_posix())		/* it is begun by workers only */
		return;
	hang_share(&p);
	fault_write(4, 2, EAGAIN);
	ck_assert(peer_write(&p, fh));
	relieve_memory(1);
	ck_assert(peer_receive(&p));
	ck_assert_uint_eq(p.status, NFS3_OK);
	ck_assert_uint_eq(p.count, 4);
	ck_assert_uint_eq(nfs_attr(fh).size, 4);
	end_hang(&p);
}

/* As many calls of one export hang as its connection takes, with workers or
 * @suspended.  Calls of another export are served on the same connection. */
static void mix(const char *from, uint16_t port, unsigned calls, bool suspended)
{
	unsigned hung = suspended ? 0 : THREADS * 3 / 4, back = 0;
	struct peer p;

	peer_open(&p, from, port);
	/* Before the first reply an RDMA client has one credit. */
	ck_assert(peer_send(&p, NFS3_REMOVE, 2) && peer_receive(&p));
	if (suspended)
		fault_keep(FAULT_COMMIT, calls);
	else
		fault_hold(FAULT_COMMIT, true);
	for (unsigned i = 0; i < calls; i++)
		ck_assert(peer_send(&p, NFS3_COMMIT, 0));
	EVENTUALLY(waiting_now() + fault_keeps() == calls - hung);
	ck_assert(peer_send(&p, NFS3_REMOVE, 2));
	ck_assert(HOLDS_FOR(50, fault_calls(FAULT_REMOVE) == 1));
	rpc_server_relieve(srv.server);
	rpc_server_relieve(srv.server);
	for (unsigned i = 0; i < calls - hung + 1; i++) {
		ck_assert(peer_receive(&p));
		back += p.status == NFS3ERR_JUKEBOX;
	}
	ck_assert_uint_eq(back, calls - hung);
	ck_assert_uint_eq(fault_calls(FAULT_REMOVE), 2);
	fault_hold(FAULT_COMMIT, false);
	for (unsigned i = 0; i < hung; i++)
		ck_assert(peer_receive(&p));
	close(p.fd);
}

TEST_LOOP(a_connection_full_of_hung_calls_serves_other_exports, 0, 2)
{
	mix("127.0.0.2", srv.port, 256, _i);
}

TEST_CASE(.setup = setup_rdma, .teardown = teardown);

TEST_LOOP(an_rdma_connection_full_of_hung_calls_serves_other_exports, 0, 2)
{
	mix("127.0.0.1", srv.port, 128, _i);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* Its first look-up hangs; clients that want another export are served. */
TEST(mounts_of_a_hung_export_stop_no_others)
{
	struct nfs_client hung, mount;
	unsigned left = 4 * THREADS, other = 1;

	nfs_client_open(&hung, srv.port, MOUNT_PROGRAM, MOUNT_V3, USER_UID);
	nfs_client_open(&mount, srv.port, MOUNT_PROGRAM, MOUNT_V3, USER_UID);
	fault_hold(FAULT_LOOKUP, true);
	for (unsigned i = 0; i < 4 * THREADS; i++)
		ck_assert_int_eq(rpc_mount3_mnt_async(hung.rpc, count_done,
						      "/one/dir", &left), 0);
	while (fault_calls(FAULT_LOOKUP) < THREADS * 3 / 4)
		serve(&hung);
	ck_assert_int_eq(rpc_mount3_mnt_async(mount.rpc, count_done, "/two",
					      &other), 0);
	while (other)
		serve(&mount);
	nfs_make_dir(top, "quick");
	ck_assert_uint_eq(fault_calls(FAULT_LOOKUP), THREADS * 3 / 4);
	fault_hold(FAULT_LOOKUP, false);
	while (left)
		serve(&hung);
	nfs_client_close(&mount);
	nfs_client_close(&hung);
}

static int yes(const char *name, const struct addr *a)
{
	return 1;
}

/* The one worker for names is free again when the disk is asked. */
TEST(a_hung_disk_does_not_keep_the_worker_for_names)
{
	struct nfs_client hung;
	unsigned left = 2;

	srv.exports->resolver.has_addr = yes;
	nfs_client_open(&hung, srv.port, MOUNT_PROGRAM, MOUNT_V3, USER_UID);
	fault_hold(FAULT_LOOKUP, true);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(rpc_mount3_mnt_async(hung.rpc, count_done,
						      "/named/dir", &left), 0);
	while (fault_calls(FAULT_LOOKUP) < 2)
		serve(&hung);
	fault_hold(FAULT_LOOKUP, false);
	while (left)
		serve(&hung);
	nfs_client_close(&hung);
}
