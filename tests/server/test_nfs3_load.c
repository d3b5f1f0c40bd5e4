/* SPDX-License-Identifier: BSD-2-Clause */
/* Many calls at once: few buffers, a slow export, exports that change, and
 * clients side by side. */
#include "tests/server/nfs_client.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "exports/export_priv.h"
#include "lib/stats.h"
#include "rpc/share.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"

#define MIB		(1u << 20)
#define NCALLS		64
#define NTHREADS	4

static char data[MIB];

/* Does the work for @c that comes within @ms; false: none came. */
static bool serve_once(struct nfs_client *c, int ms)
{
	struct pollfd p = {
		.fd = rpc_get_fd(c->rpc),
		.events = (short)rpc_which_events(c->rpc),
	};
	bool some = poll(&p, 1, ms) > 0;

	ck_assert_int_eq(rpc_service(c->rpc, p.revents), 0);
	return some;
}

/* Serves @c until *@left is 0. */
static void serve(struct nfs_client *c, const unsigned *left)
{
	while (*left)
		ck_assert(serve_once(c, 60000));
}

static void read_done(struct rpc_context *rpc, int status, void *res,
		      void *arg)
{
	READ3res *r = res;
	unsigned *left = arg;

	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
	ck_assert_int_eq(r->status, NFS3_OK);
	ck_assert_uint_eq(r->READ3res_u.resok.count, MIB);
	ck_assert_mem_eq(r->READ3res_u.resok.data.data_val, data, MIB);
	(*left)--;
}

static void link_done(struct rpc_context *rpc, int status, void *res,
		      void *arg)
{
	READLINK3res *r = res;
	unsigned *left = arg;

	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
	ck_assert_str_eq(r->READLINK3res_u.resok.data, "target");
	(*left)--;
}

/* libnfs does not align them. */
static void copy_entry(void *to, const void *entry, size_t size)
{
	memcpy(to, entry, size);
}

static void dir_done(struct rpc_context *rpc, int status, void *res,
		     void *arg)
{
	READDIR3res *r = res;
	unsigned *left = arg;
	entry3 first;

	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
	copy_entry(&first, r->READDIR3res_u.resok.reply.entries, sizeof(first));
	ck_assert_str_eq(first.name, ".");
	ck_assert(r->READDIR3res_u.resok.reply.eof);
	(*left)--;
}

static void plus_done(struct rpc_context *rpc, int status, void *res,
		      void *arg)
{
	READDIRPLUS3res *r = res;
	unsigned *left = arg;
	entryplus3 first;

	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
	copy_entry(&first, r->READDIRPLUS3res_u.resok.reply.entries,
		   sizeof(first));
	ck_assert_str_eq(first.name, ".");
	ck_assert(r->READDIRPLUS3res_u.resok.reply.eof);
	(*left)--;
}

static void fill(nfs_fh3 fh)
{
	WRITE3args a = { .file = fh, .count = MIB, .stable = FILE_SYNC,
			 .data = { MIB, data } };
	WRITE3res r;

	for (size_t i = 0; i < MIB; i++)
		data[i] = (char)(i * 13 + (i >> 10));
	nfs_call(&root, write, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
}

static void setup_small(void)
{
	struct harness_config config = {
		.backend = &fault_vfs_ops,
		.pool_bytes = 6u << 20,
	};

	fault_init();
	nfs_setup_with(&config);
}

TEST_CASE(.setup = setup_small, .teardown = nfs_teardown);

TEST(calls_wait_for_buffers_and_get_them)
{
	READ3args a = { .count = MIB };
	unsigned left = NCALLS;

	a.file = nfs_make_file(top, "f", "");
	fill(a.file);
	for (int i = 0; i < NCALLS; i++)
		ck_assert_int_eq(rpc_nfs3_read_async(root.rpc, read_done, &a,
						     &left), 0);
	/* Replies that are not read stay in the buffers. */
	ck_assert_int_eq(rpc_service(root.rpc, POLLOUT), 0);
	EVENTUALLY(stats_sum_by_name("rpc_no_buffer") > 0);
	serve(&root, &left);
}

static void count_done(struct rpc_context *rpc, int status, void *res,
		       void *arg)
{
	unsigned *left = arg;

	ck_assert_int_eq(status, RPC_STATUS_SUCCESS);
	(*left)--;
}

#define MAX_TAKEN	4096

/* Takes every buffer. */
static unsigned take_all(struct buf **taken)
{
	unsigned n = 0;

	for (size_t size = POOL_BUF_MAX; size >= 1024; size /= 2)
		while (n < MAX_TAKEN &&
		       (taken[n] = pool_alloc(srv.pool, size)))
			n++;
	ck_assert_uint_lt(n, MAX_TAKEN);
	return n;
}

TEST(calls_with_results_of_any_kind_wait_for_buffers)
{
	static struct buf *taken[MAX_TAKEN];
	READDIRPLUS3args pa = { .dir = top, .dircount = MIB, .maxcount = MIB };
	READDIR3args da = { .dir = top, .count = MIB };
	READ3args ra = { .count = MIB };
	READLINK3args la;
	unsigned left = 4, n;
	uint64_t waited;

	ra.file = nfs_make_file(top, "f", "");
	la.symlink = nfs_make_link(top, "l", "target");
	fill(ra.file);
	waited = stats_sum_by_name("rpc_no_buffer");
	n = take_all(taken);
	ck_assert_int_eq(rpc_nfs3_read_async(root.rpc, read_done, &ra, &left),
			 0);
	ck_assert_int_eq(rpc_nfs3_readlink_async(root.rpc, link_done, &la,
						 &left), 0);
	ck_assert_int_eq(rpc_nfs3_readdir_async(root.rpc, dir_done, &da,
						&left), 0);
	ck_assert_int_eq(rpc_nfs3_readdirplus_async(root.rpc, plus_done, &pa,
						    &left), 0);
	while (stats_sum_by_name("rpc_no_buffer") < waited + 4)
		serve_once(&root, 10);
	ck_assert_uint_eq(left, 4);
	while (n > 0)
		buf_put(taken[--n]);
	serve(&root, &left);
}

static struct rpc_share share;

static void set_share(struct export_tree *e, void *arg)
{
	e->user = &share;
}

static void setup_two(void)
{
	struct harness_config config = {
		.backend = &fault_vfs_ops,
		.exports = "/mem *(rw,insecure,no_root_squash)\n"
			   "/slow *(rw,insecure,no_root_squash)\n",
		.nworkers = 2,
	};

	fault_init();
	nfs_setup_with(&config);
	share.class = work_class_create(srv.server, "slow", 1);
	ck_assert_ptr_nonnull(share.class);
	harness_with_export(&srv, "/slow", set_share, NULL);
}

static void teardown_two(void)
{
	nfs_client_close(&user);
	nfs_client_close(&root);
	EVENTUALLY(rpc_busy() == 0);
	work_class_destroy(share.class);
	harness_stop(&srv);
}

TEST_CASE(.setup = setup_two, .teardown = teardown_two);

/* All of its calls wait in the file system, and hold one of two workers. */
TEST(a_slow_export_does_not_stop_another)
{
	struct nfs3_fh fh;
	REMOVE3args a = { .object = { { { 0, NULL } }, "none" } };
	unsigned left = 8;

	harness_root(&srv, "/slow", &fh);
	a.object.dir.data.data_len = fh.len;
	a.object.dir.data.data_val = (char *)fh.data;
	fault_hold(FAULT_REMOVE, true);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(rpc_nfs3_remove_async(user.rpc, count_done,
						       &a, &left), 0);
	while (fault_calls(FAULT_REMOVE) == 0)
		serve_once(&user, 10);
	nfs_make_file(top, "quick", "data");
	ck_assert_uint_eq(fault_calls(FAULT_REMOVE), 1);
	ck_assert_uint_eq(left, 8);
	fault_hold(FAULT_REMOVE, false);
	serve(&user, &left);
}

static atomic_bool silent;
static atomic_uint asked;

static int ask(const char *name, const struct addr *a)
{
	atomic_fetch_add(&asked, 1);
	WAIT_WHILE(atomic_load(&silent));
	return 1;
}

static void setup_named(void)
{
	struct harness_config config = {
		.backend = &fault_vfs_ops,
		.exports = "/mem *(rw,insecure,no_root_squash)\n"
			   "/named host.example(rw,insecure)\n",
		.nworkers = 2,
	};

	fault_init();
	nfs_setup_with(&config);
	srv.exports->resolver.has_addr = ask;
}

TEST_CASE(.setup = setup_named, .teardown = nfs_teardown);

/* Two workers, and a name service that says nothing. */
TEST(a_silent_name_service_stops_only_those_who_need_it)
{
	struct nfs_client mount;
	struct nfs3_fh fh;
	GETATTR3args a;
	unsigned left = 4, mounts = 4;

	harness_root(&srv, "/named", &fh);
	a.object.data.data_len = fh.len;
	a.object.data.data_val = (char *)fh.data;
	nfs_client_open(&mount, srv.port, MOUNT_PROGRAM, MOUNT_V3, USER_UID);
	atomic_store(&silent, true);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(rpc_nfs3_getattr_async(user.rpc, count_done,
							&a, &left), 0);
		ck_assert_int_eq(rpc_mount3_mnt_async(mount.rpc, count_done,
						      "/named", &mounts), 0);
	}
	while (atomic_load(&asked) == 0) {
		serve_once(&user, 10);
		serve_once(&mount, 10);
	}
	for (unsigned i = 0; i < 10; i++) {
		serve_once(&user, 10);
		serve_once(&mount, 10);
	}
	nfs_make_dir(top, "quick");
	ck_assert_uint_eq(left + mounts, 8);
	atomic_store(&silent, false);
	serve(&user, &left);
	serve(&mount, &mounts);
	ck_assert_uint_eq(atomic_load(&asked), 1);
	nfs_client_close(&mount);
}

struct side {
	pthread_t	  thread;
	int		  id;
	struct nfs_client c;
};

/* Libcheck's assertions are the test's own thread's. */
static void must(bool ok)
{
	if (!ok)
		abort();
}

static void try_files(struct side *s, nfs_fh3 dir, char *name)
{
	CREATE3args ca = { .where = { dir, name } };
	READDIRPLUS3args da = { .dir = dir, .dircount = 4096,
				.maxcount = 65536 };
	RENAME3args ra = { .from = { dir, name }, .to = { dir, "shared" } };
	LOOKUP3args la = { .what = { dir, "shared" } };
	READDIRPLUS3res dr;
	CREATE3res cr;
	LOOKUP3res lr;
	RENAME3res rr;
	WRITE3res wr;
	WRITE3args wa;

	must(nfs_try(&s->c, rpc_nfs3_create_async, &ca, &cr) == 0 &&
	     cr.status == NFS3_OK);
	wa = (WRITE3args){
		.file = cr.CREATE3res_u.resok.obj.post_op_fh3_u.handle,
		.count = 10000, .data = { 10000, data },
	};
	must(nfs_try(&s->c, rpc_nfs3_write_async, &wa, &wr) == 0 &&
	     wr.status == NFS3_OK);
	must(nfs_try(&s->c, rpc_nfs3_rename_async, &ra, &rr) == 0 &&
	     rr.status == NFS3_OK);
	/* It exists in every case. */
	must(nfs_try(&s->c, rpc_nfs3_lookup_async, &la, &lr) == 0 &&
	     lr.status == NFS3_OK);
	must(nfs_try(&s->c, rpc_nfs3_readdirplus_async, &da, &dr) == 0 &&
	     dr.status == NFS3_OK);
	s->c.used = 0;
}

static void *side_run(void *arg)
{
	struct side *s = arg;
	char name[16];

	snprintf(name, sizeof(name), "own%d", s->id);
	nfs_client_open(&s->c, srv.port, NFS_PROGRAM, NFS_V3, 0);
	for (int i = 0; i < 100; i++)
		try_files(s, top, name);
	nfs_client_close(&s->c);
	return NULL;
}

TEST_CASE(.setup = nfs_setup, .teardown = nfs_teardown);

TEST(clients_side_by_side_while_exports_change)
{
	static struct side sides[NTHREADS];

	for (int i = 0; i < NTHREADS; i++) {
		sides[i].id = i;
		ck_assert_int_eq(pthread_create(&sides[i].thread, NULL,
						side_run, &sides[i]), 0);
	}
	for (int i = 0; i < 20; i++)
		harness_publish(&srv, i % 2 ?
			"/mem *(rw,insecure,no_root_squash)\n" :
			"/mem 127.0.0.1(rw,insecure,no_root_squash)\n"
			"/more *(ro)\n");
	for (int i = 0; i < NTHREADS; i++)
		pthread_join(sides[i].thread, NULL);
	ck_assert_int_eq(nfs_exists(top, "shared"), NFS3_OK);
	ck_assert_int_eq(nfs_exists(top, "own0"), NFS3ERR_NOENT);
}
