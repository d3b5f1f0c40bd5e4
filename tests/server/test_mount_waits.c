/* SPDX-License-Identifier: BSD-2-Clause */
/* MNT calls whose file system does not answer. */
#include "tests/server/nfs_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/stats.h"
#include "mountd/mountd.h"
#include "rpc/limit.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

static struct harness_config config;

static void setup(void)
{
	fault_init();
	config.backend = &fault_vfs_ops;
	nfs_setup_with(&config);
	nfs_make_dir(top, "dir");
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown, .timeout = 120);

struct waiting {
	struct nfs_client c;
	struct nfs_wait	  w;
};

static void start_waiting(struct waiting *mount)
{
	nfs_client_open(&mount->c, srv.port, MOUNT_PROGRAM, MOUNT_V3, 0);
	mount->w = (struct nfs_wait){ .c = &mount->c };
	fault_set(FAULT_LOOKUP, ETIMEDOUT);
	ck_assert_int_eq(rpc_mount3_mnt_async(mount->c.rpc, nfs_done,
					      (char *)(uintptr_t)"/mem/dir",
					      &mount->w), 0);
}

/* Waits until a counter has come to @n; no reply may come before. */
static void wait_until(struct waiting *mount, const char *counter, uint64_t n)
{
	while (stats_sum_by_name(counter) < n) {
		struct pollfd p = {
			.fd = rpc_get_fd(mount->c.rpc),
			.events = (short)rpc_which_events(mount->c.rpc),
		};

		poll(&p, 1, 10);
		ck_assert_int_eq(rpc_service(mount->c.rpc, p.revents), 0);
		ck_assert(!mount->w.done);
	}
}

TEST(a_mount_waits_for_a_file_system_that_is_away)
{
	uint64_t suspended = stats_sum_by_name("rpc_suspended");
	uint64_t refused = stats_sum_by_name("mount_refused");
	struct waiting mount;

	start_waiting(&mount);
	/* It asked at least twice. */
	wait_until(&mount, "rpc_suspended", suspended + 2);
	fault_set(FAULT_LOOKUP, 0);
	ck_assert_int_eq(nfs_wait(&mount.w), RPC_STATUS_SUCCESS);
	ck_assert_uint_eq(stats_sum_by_name("mount_refused"), refused);
	nfs_client_close(&mount.c);
}

TEST(mounts_that_wait_go_on_together_when_the_first_one_does)
{
	uint64_t suspended = stats_sum_by_name("rpc_suspended"), start;
	struct waiting mounts[12];

	for (unsigned i = 0; i < ARRAY_SIZE(mounts); i++) {
		start_waiting(&mounts[i]);
		wait_until(&mounts[i], "rpc_suspended", suspended + i + 1);
	}
	fault_set(FAULT_LOOKUP, 0);
	start = runner_now_ms();
	for (unsigned i = 0; i < ARRAY_SIZE(mounts); i++) {
		ck_assert_int_eq(nfs_wait(&mounts[i].w), RPC_STATUS_SUCCESS);
		nfs_client_close(&mounts[i].c);
	}
	/* Not two a second. */
	ck_assert_uint_lt(runner_now_ms() - start, 4500);
}

/* ---- UMNT behind a MNT that waits */

static unsigned noted;

static void note(void *arg, const char *host, const char *path)
{
	noted++;
}

static unsigned count_noted(void)
{
	noted = 0;
	mountd_row.mounts(srv.mount, note, NULL);
	return noted;
}

/* MNT of /mem/dir waits while UMNT of @path comes, or with NULL UMNTALL. */
static void unmount_meanwhile(const char *path)
{
	uint64_t suspended = stats_sum_by_name("rpc_suspended");
	struct waiting mount, other;
	int err;

	start_waiting(&mount);
	wait_until(&mount, "rpc_suspended", suspended + 1);
	nfs_client_open(&other.c, srv.port, MOUNT_PROGRAM, MOUNT_V3, 0);
	other.w = (struct nfs_wait){ .c = &other.c };
	err = path ? rpc_mount3_umnt_async(other.c.rpc, nfs_done,
					   (char *)(uintptr_t)path, &other.w) :
		     rpc_mount3_umntall_async(other.c.rpc, nfs_done, &other.w);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(nfs_wait(&other.w), RPC_STATUS_SUCCESS);
	nfs_client_close(&other.c);
	fault_set(FAULT_LOOKUP, 0);
	ck_assert_int_eq(nfs_wait(&mount.w), RPC_STATUS_SUCCESS);
	nfs_client_close(&mount.c);
}

TEST(a_mount_that_was_unmounted_while_it_waited_is_not_listed)
{
	unmount_meanwhile("/mem/dir/");
	ck_assert_uint_eq(count_noted(), 0);
	unmount_meanwhile(NULL);
	ck_assert_uint_eq(count_noted(), 0);
	unmount_meanwhile("/mem");
	ck_assert_uint_eq(count_noted(), 1);
}

TEST(a_drain_does_not_wait_for_mounts_that_wait)
{
	uint64_t suspended = stats_sum_by_name("rpc_suspended");
	uint64_t put_off = stats_sum_by_name("mount_put_off");
	struct waiting mount;

	start_waiting(&mount);
	wait_until(&mount, "rpc_suspended", suspended + 1);
	rpc_limits_off(srv.server, true);
	wait_until(&mount, "mount_put_off", put_off + 1);
	rpc_limits_off(srv.server, false);
	fault_set(FAULT_LOOKUP, 0);
	nfs_client_close(&mount.c);
}

static int connect_udp(const struct xprt_listener *l)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&l->local,
				 sizeof(struct sockaddr_in)), 0);
	return fd;
}

/* Over UDP clients ask again soon, and over TCP after a minute. */
TEST(a_mount_over_udp_does_not_wait_and_has_no_reply)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct rpc_header mnt = { .xid = 7, .prog = MOUNT_PROGRAM,
					.vers = 3, .proc = MOUNT3_MNT };
	uint64_t put_off = stats_sum_by_name("mount_put_off");
	struct xprt_listener *udp;
	struct pollfd p = { .events = POLLIN };
	uint8_t call[64];
	struct xdr_out x;
	ssize_t len;

	xdr_out_init(&x, call, sizeof(call));
	rpc_header_call(&x, &mnt, NULL);
	xdr_put_string(&x, "/mem/dir");
	len = (ssize_t)xdr_out_len(&x);
	ck_assert_int_eq(udp_listen(&srv.env, (const struct sockaddr *)&at,
				    NULL, &udp), 0);
	p.fd = connect_udp(udp);
	fault_set(FAULT_LOOKUP, ETIMEDOUT);
	ck_assert_int_eq(send(p.fd, call, (size_t)len, 0), len);
	EVENTUALLY(stats_sum_by_name("mount_put_off") == put_off + 1);
	ck_assert_int_eq(poll(&p, 1, 100), 0);
	fault_set(FAULT_LOOKUP, 0);
	ck_assert_int_eq(send(p.fd, call, (size_t)len, 0), len);
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	close(p.fd);
	udp->ops->stop(udp);
	udp->ops->free(udp);
}
