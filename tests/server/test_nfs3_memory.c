/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call without memory gets an error or loses its connection; the server
 * lives, and serves the next.
 *
 * Every allocation of the server's own code on the way of each procedure fails,
 * one after the other.  (A build with the address sanitizer reports leaks.)
 */
#include "tests/server/nfs_client.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/rcu.h"
#include "lib/stats.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"
#include "wire/record.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *s);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *s);

/* The test's own thread finds memory always. */
static _Thread_local bool ours;
/* Allocations to succeed before one fails; < 0: all succeed. */
static atomic_int left = -1;
static atomic_bool failed;

static bool fails(void)
{
	int n = atomic_load(&left);

	if (ours || n < 0)
		return false;
	n = atomic_fetch_sub(&left, 1);
	if (n == 0)
		atomic_store(&failed, true);
	return n == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(align, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

#define ROUNDS	60		/* more than any call allocates */

static char dir[] = "/tmp/gannet-memory-XXXXXX";
static unsigned round_no;
static nfs_fh3 file, sub;
static char this_name[32], other[32];
static char data[100000];

static void setup_mem(void)
{
	struct harness_config config = { .backend = &fault_vfs_ops };

	ours = true;
	ck_assert_int_eq(rcu_later_start(), 0);	/* as gannetd does */
	fault_init();
	nfs_setup_with(&config);
}

/* The posix backend, as the user of the test. */
static void setup_posix(void)
{
	static char exports[128];
	struct harness_config config = {
		.backend = &posix_vfs_ops, .exports = exports,
	};
	struct nfs3_fh fh;

	ours = true;
	ck_assert_int_eq(rcu_later_start(), 0);	/* as gannetd does */
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(exports, sizeof(exports), "%s *(rw,insecure,no_root_squash)\n"
		 "mem:/mem *(rw,insecure,no_root_squash)\n", dir);
	fault_init();
	nfs_setup_with(&config);
	harness_root(&srv, dir, &fh);
	memcpy(top.data.data_val, fh.data, fh.len);
	top.data.data_len = fh.len;
}

static void teardown(void)
{
	char cmd[64];

	atomic_store(&left, -1);
	nfs_teardown();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	ck_assert_int_eq(system(cmd), 0);
}

#define TRY(client, fn, a, type) do { \
		static type r; \
		return nfs_try(client, fn, a, &r); \
	} while (0)

#define NFS(proc, PROC, ...) \
	static int try_##proc(struct nfs_client *c) \
	{ \
		PROC##3args a = { __VA_ARGS__ }; \
		TRY(c, rpc_nfs3_##proc##_async, &a, PROC##3res); \
	}

#define WHERE	{ top, this_name }

NFS(getattr, GETATTR, .object = file)
NFS(setattr, SETATTR, .object = file)
NFS(lookup, LOOKUP, .what = WHERE)
NFS(access, ACCESS, .object = file, .access = 0x3f)
NFS(read, READ, .file = file, .count = sizeof(data))
NFS(write, WRITE, .file = file, .count = sizeof(data), .stable = FILE_SYNC,
    .data = { sizeof(data), data })
NFS(create, CREATE, .where = WHERE)
NFS(mkdir, MKDIR, .where = WHERE)
NFS(symlink, SYMLINK, .where = WHERE, .symlink = { .symlink_data = other })
NFS(remove, REMOVE, .object = WHERE)
NFS(rmdir, RMDIR, .object = WHERE)
NFS(rename, RENAME, .from = WHERE, .to = { top, other })
NFS(link, LINK, .file = file, .link = WHERE)
NFS(readdir, READDIR, .dir = top, .count = 4096)
NFS(readdirplus, READDIRPLUS, .dir = top, .dircount = 4096, .maxcount = 65536)
NFS(fsstat, FSSTAT, .fsroot = top)
NFS(fsinfo, FSINFO, .fsroot = top)
NFS(pathconf, PATHCONF, .object = top)
NFS(commit, COMMIT, .file = file)

static int try_readlink(struct nfs_client *c)
{
	READLINK3args a = { .symlink = sub };

	TRY(c, rpc_nfs3_readlink_async, &a, READLINK3res);
}

/* The procedure's objects are made before, while memory is left. */
static void make_nothing(void)
{
}

static void make_file(void)
{
	nfs_make_file(top, this_name, "data");
}

static void make_dir(void)
{
	nfs_make_dir(top, this_name);
}

static void make_link(void)
{
	sub = nfs_make_link(top, this_name, "target");
}

static const struct {
	const char *what;
	int  (*try)(struct nfs_client *c);
	void (*make)(void);
} procs[] = {
	{ "GETATTR", try_getattr, make_nothing },
	{ "SETATTR", try_setattr, make_nothing },
	{ "LOOKUP", try_lookup, make_file },
	{ "ACCESS", try_access, make_nothing },
	{ "READLINK", try_readlink, make_link },
	{ "READ", try_read, make_nothing },
	{ "WRITE", try_write, make_nothing },
	{ "CREATE", try_create, make_nothing },
	{ "MKDIR", try_mkdir, make_nothing },
	{ "SYMLINK", try_symlink, make_nothing },
	{ "REMOVE", try_remove, make_file },
	{ "RMDIR", try_rmdir, make_dir },
	{ "RENAME", try_rename, make_file },
	{ "LINK", try_link, make_nothing },
	{ "READDIR", try_readdir, make_nothing },
	{ "READDIRPLUS", try_readdirplus, make_nothing },
	{ "FSSTAT", try_fsstat, make_nothing },
	{ "FSINFO", try_fsinfo, make_nothing },
	{ "PATHCONF", try_pathconf, make_nothing },
	{ "COMMIT", try_commit, make_nothing },
};

static void next_names(void)
{
	round_no++;
	snprintf(this_name, sizeof(this_name), "n%u", round_no);
	snprintf(other, sizeof(other), "o%u", round_no);
	root.used = user.used = 0;
}

/* The nth allocation of a call fails. */
static bool try_failing(unsigned i, int nth)
{
	struct nfs_client c;

	next_names();
	file = nfs_make_file(top, "file", "data");
	procs[i].make();
	nfs_client_open(&c, srv.port, NFS_PROGRAM, NFS_V3, 0);
	atomic_store(&failed, false);
	atomic_store(&left, nth);
	procs[i].try(&c);
	atomic_store(&left, -1);
	nfs_client_close(&c);
	/* It is still there. */
	ck_assert_msg(nfs_attr(file).type == NF3REG, "%s", procs[i].what);
	return atomic_load(&failed);
}

TEST_CASE(.teardown = teardown);

TEST_LOOP(a_call_without_memory_fails_and_the_server_lives, 0, 2)
{
	unsigned all = 0;
	int n;

	if (_i)
		setup_posix();
	else
		setup_mem();
	for (unsigned i = 0; i < sizeof(procs) / sizeof(procs[0]); i++) {
		for (n = 0; n < ROUNDS && try_failing(i, n); n++)
			all++;
		ck_assert_int_lt(n, ROUNDS);
	}
	printf("%u failed allocations\n", all);
}

/* A new connection, and a NULL call on it. */
static bool connect_failing(int nth)
{
	static const uint32_t words[] = { 0, 1, 0, 2, NFS_PROGRAM, 3, 0, 0, 0,
					  0, 0 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	uint32_t call[11], reply[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(srv.port);
	for (unsigned i = 0; i < 11; i++)
		call[i] = htonl(words[i]);
	record_put_mark(call, 40);
	atomic_store(&failed, false);
	atomic_store(&left, nth);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	if (send(fd, call, sizeof(call), MSG_NOSIGNAL) > 0)
		(void)!recv(fd, reply, sizeof(reply), 0);
	atomic_store(&left, -1);
	close(fd);
	ck_assert_int_eq(nfs_attr(file).type, NF3REG);
	return atomic_load(&failed);
}

TEST_CASE(.setup = setup_mem, .teardown = teardown);

TEST(a_connection_without_memory_is_closed_and_the_server_lives)
{
	int n;

	file = nfs_make_file(top, "file", "data");
	for (n = 0; n < ROUNDS && connect_failing(n); n++)
		root.used = 0;
	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, ROUNDS);
}

STAT(test_first_counts, "counts of the test");

static void count_first(void *arg)
{
	atomic_store(&failed, false);
	atomic_store(&left, 0);
	stat_inc(test_first_counts);
	stat_inc(test_first_counts);
	atomic_store(&left, -1);
}

TEST(a_thread_with_no_memory_for_its_counters_lives)
{
	pthread_t thread;

	ck_assert_int_eq(thread_start(&thread, "count", count_first, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert(atomic_load(&failed));
	ck_assert_uint_eq(stats_sum_by_name("test_first_counts"), 2);
}
