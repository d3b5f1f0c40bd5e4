/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet-nfs and the whole server in one process, over TCP, the loop fabric and
 * iWARP: copies that fail half-way, and how they end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/tool.h"
#include "lib/log.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/harness.h"
#include "tests/unit/runner.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/rpcrdma.h"

enum way { WAY_TCP, WAY_LOOP, WAY_IWARP, WAYS };

static struct harness srv;
static struct fabric fabric;
static struct xprt_listener *listener;
static struct tool_options o;
static char dir[64], local[96], back[96], base[128];

static void start(int way)
{
	struct harness_config hc = {
		.exports = "/mem 127.0.0.1(rw,insecure,no_root_squash)\n",
		.backend = &fault_vfs_ops,
	};
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct loop_fabric_options lo = { .seed = 3 };

	log_threshold = LOG_LEVEL_ERR;
	fault_init();
	/* The backend's memory is stable at once; ours is not to be. */
	fault_committed(VFS_UNSTABLE, VFS_UNSTABLE);
	harness_start(&srv, &hc);
	memset(&o, 0, sizeof(o));
	o.config.depth = 4;
	o.block = 4096;
	o.out = stdout;
	snprintf(base, sizeof(base), "tcp://127.0.0.1:%u/mem", srv.port);
	if (way != WAY_TCP) {
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		ck_assert_int_eq(way == WAY_LOOP ?
				 loop_fabric_create(&lo, &fabric) :
				 iwarp_fabric_create(NULL, &fabric), 0);
		ck_assert_int_eq(rpcrdma_listen(&fabric, &srv.env,
				(struct sockaddr *)&addr, NULL, &listener), 0);
		memcpy(&addr, &listener->local, sizeof(addr));
		o.config.on = &fabric;
		snprintf(base, sizeof(base), "rdma://127.0.0.1:%u/mem",
			 ntohs(addr.sin_port));
	}
	strcpy(dir, "/tmp/gannet-copy.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(local, sizeof(local), "%s/local", dir);
	snprintf(back, sizeof(back), "%s/back", dir);
}

static void stop(int way)
{
	unlink(local);
	unlink(back);
	rmdir(dir);
	if (way != WAY_TCP) {
		listener->ops->stop(listener);
		listener->ops->free(listener);
	}
	harness_stop(&srv);
	if (way == WAY_LOOP)
		loop_fabric_destroy(&fabric);
	else if (way == WAY_IWARP)
		iwarp_fabric_destroy(&fabric);
}

static const char *remote(const char *name)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s/%s?mountport=%u", base, name,
		 srv.port);
	return text;
}

static uint8_t byte_of(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

static void make_local(size_t size)
{
	uint8_t *mem = malloc(size + 1);
	int fd = open(local, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	for (size_t i = 0; i < size; i++)
		mem[i] = byte_of(i);
	ck_assert_int_eq(write(fd, mem, size), (ssize_t)size);
	close(fd);
	free(mem);
}

static void check_back(size_t size)
{
	uint8_t *mem = malloc(size + 1);
	int fd = open(back, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, mem, size + 1), (ssize_t)size);
	for (size_t i = 0; i < size; i++)
		if (mem[i] != byte_of(i))
			ck_abort_msg("byte %zu of %zu is wrong", i, size);
	close(fd);
	free(mem);
}

static void round_trip(size_t size)
{
	make_local(size);
	ck_assert_int_eq(tool_put(local, remote("f"), &o), TOOL_OK);
	ck_assert_int_eq(tool_get(remote("f"), back, &o), TOOL_OK);
	check_back(size);
}

TEST_CASE(.timeout = 30);

TEST_LOOP(a_file_put_is_got_back_unchanged, 0, WAYS)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 16384, 16385,
					100003, 1 };

	start(_i);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		round_trip(sizes[i]);
	o.block = 0;
	round_trip((3 << 20) + 5);
	o.config.depth = 1;
	round_trip((2 << 20) + 5);
	stop(_i);
}

/* One file, over RDMA and TCP by turns. */
TEST_LOOP(a_file_put_over_one_transport_is_got_over_another, WAY_LOOP, WAYS)
{
	char by_rdma[sizeof(base)], by_tcp[sizeof(base)];

	start(_i);
	strcpy(by_rdma, base);
	snprintf(by_tcp, sizeof(by_tcp), "tcp://127.0.0.1:%u/mem", srv.port);
	for (size_t size = 400007; size > 0; size /= 3) {
		make_local(size);
		ck_assert_int_eq(tool_put(local, remote("f"), &o), TOOL_OK);
		strcpy(base, strcmp(base, by_tcp) ? by_tcp : by_rdma);
		ck_assert_int_eq(tool_get(remote("f"), back, &o), TOOL_OK);
		check_back(size);
	}
	stop(_i);
}

TEST_LOOP(a_put_is_committed_and_no_more_is_sent_than_needed, 0, WAYS)
{
	start(_i);
	o.commit_every = 64 << 10;
	round_trip(300000);
	ck_assert_uint_eq(fault_calls(FAULT_WRITE), (300000 + 4095) / 4096);
	ck_assert_uint_ge(fault_calls(FAULT_COMMIT), 300000 / (64 << 10));
	stop(_i);
}

TEST_LOOP(data_that_the_server_may_have_lost_is_sent_again, 0, WAYS)
{
	unsigned once = (200000 + 4095) / 4096, calls;

	start(_i);
	o.commit_every = 64 << 10;
	fault_bump_verf();
	round_trip(200000);
	calls = fault_calls(FAULT_WRITE);
	/* Only one stretch. */
	ck_assert_uint_gt(calls, once);
	ck_assert_uint_le(calls, once + 16);
	stop(_i);
}

TEST_LOOP(short_writes_are_completed, 0, WAYS)
{
	start(_i);
	fault_write(1000, 0, 0);
	round_trip(50000);
	stop(_i);
}

TEST_LOOP(a_full_server_ends_a_put, 0, WAYS)
{
	start(_i);
	make_local(100000);
	fault_write(0, 5, ENOSPC);
	ck_assert_int_eq(tool_put(local, remote("f"), &o), TOOL_FAILED);
	fault_write(0, 0, 0);
	fault_set(FAULT_COMMIT, EIO);
	ck_assert_int_eq(tool_put(local, remote("f"), &o), TOOL_FAILED);
	fault_set(FAULT_COMMIT, 0);
	round_trip(10000);
	fault_set(FAULT_READ, EIO);
	ck_assert_int_eq(tool_get(remote("f"), back, &o), TOOL_FAILED);
	fault_set(FAULT_READ, 0);
	stop(_i);
}

static atomic_bool over;

/* Pulls the cable whenever some more calls of a kind were executed. */
static void *cut_often(void *arg)
{
	enum fault_op op = *(enum fault_op *)arg;
	unsigned next = fault_calls(op) + 20;

	for (;; next += 60) {
		WAIT_WHILE(!atomic_load(&over) && fault_calls(op) < next);
		if (atomic_load(&over))
			break;
		loop_fabric_break(&fabric);
	}
	return NULL;
}

static int with_cuts(enum fault_op op)
{
	pthread_t thread;
	int err;

	atomic_store(&over, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, cut_often, &op), 0);
	err = op == FAULT_WRITE ? tool_put(local, remote("f"), &o) :
				  tool_get(remote("f"), back, &o);
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	return err;
}

TEST(connections_that_break_lose_nothing)
{
	unsigned rounds = 0;

	start(WAY_LOOP);
	o.config.retries = 1000;
	make_local(1 << 20);
	/* Until some were done twice: which call a cut catches is chance. */
	do {
		ck_assert_int_eq(with_cuts(FAULT_WRITE), TOOL_OK);
		ck_assert_int_eq(with_cuts(FAULT_READ), TOOL_OK);
		check_back(1 << 20);
		ck_assert_uint_lt(++rounds, 50);
	} while (fault_calls(FAULT_WRITE) + fault_calls(FAULT_READ) <=
		 512 * rounds);
	stop(WAY_LOOP);
}
