/* SPDX-License-Identifier: BSD-2-Clause */
/* dup_fixture - a server on IPv4 and IPv6 whose operations can be held, and a
 * client that can send anything twice. */
#pragma once

#include "tests/server/harness.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "tests/server/dup_client.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

#define EXPORTS	"/mem 127.0.0.0/8(rw,insecure,no_root_squash) " \
		"::1(rw,insecure,no_root_squash)\n"

static struct harness srv;
static struct xprt_listener *tcp6;
static int family;
static int ctl;			/* a connection that looks */
static struct dup_call c, c2;

static uint16_t port(void)
{
	struct sockaddr_in6 a;

	if (family == AF_INET)
		return srv.port;
	memcpy(&a, &tcp6->local, sizeof(a));
	return ntohs(a.sin6_port);
}

static int open_one(void)
{
	return dup_connect(family, port(), NULL);
}

static void setup(void)
{
	struct harness_config config = { .exports = EXPORTS,
					 .backend = &fault_vfs_ops };
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	log_threshold = LOG_LEVEL_ERR;
	fault_init();
	harness_start(&srv, &config);
	harness_root(&srv, "/mem", &dup_dir);
	ck_assert_int_eq(tcp_listen(&srv.env, (struct sockaddr *)&a, NULL,
				    &tcp6), 0);
	ctl = dup_connect(AF_INET, srv.port, NULL);
}

static void teardown(void)
{
	close(ctl);
	tcp6->ops->stop(tcp6);
	tcp6->ops->free(tcp6);
	harness_stop(&srv);
}

static void pick_family(int i)
{
	family = i ? AF_INET6 : AF_INET;
}

static uint64_t counted(const char *name)
{
	return stats_sum_by_name(name);
}

static uint8_t first_byte_behind(uint32_t offset, const struct nfs3_fh *fh)
{
	struct dup_call read_call;
	struct dup_reply r;

	dup_read(&read_call, 3, fh, offset + 1);
	dup_send(ctl, &read_call);
	dup_take(ctl, &r);
	ck_assert_uint_eq(r.status, NFS3_OK);
	/* Attributes, count, eof, the data's length. */
	return r.in.p[4 + 84 + 4 + 4 + 4 + offset];
}
