/* SPDX-License-Identifier: BSD-2-Clause */
/* Which ports and programs each transport lets callers use. */
#include <stdio.h>

#include "lib/stats.h"
#include "mountd/mountd.h"
#include "wire/nfs3.h"
#include "tests/server/doors.h"
#include "tests/unit/runner.h"

#define MNT3_OK		0
#define MNT3ERR_ACCES	13

static const struct caller_cred somebody = { .uid = 1000, .gid = 100 };
static struct doors d;

static void open_with(const char *exports)
{
	const struct harness_config hc = { .exports = exports };

	doors_open(&d, &hc);
}

/* The status of GETATTR of /mem's root. */
static uint32_t getattr(enum door door, bool reserved)
{
	static struct caller c;
	struct nfs3_fh top;
	uint32_t status;

	harness_root(&d.srv, "/mem", &top);
	caller_open(&c, &d, door, reserved);
	caller_begin(&c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_GETATTR,
		     &somebody);
	xdr_put_opaque(&c.out, top.data, top.len);
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	status = xdr_get_u32(&c.in);
	caller_close(&c);
	return status;
}

static uint32_t mnt(enum door door, bool reserved, uint32_t *status)
{
	static struct caller c;
	uint32_t accepted;

	caller_open(&c, &d, door, reserved);
	caller_begin(&c, MOUNT_PROGRAM, 3, 1, &somebody);
	xdr_put_opaque(&c.out, "/mem", 4);
	accepted = caller_send(&c);
	*status = accepted == RPC_SUCCESS ? xdr_get_u32(&c.in) : UINT32_MAX;
	caller_close(&c);
	return accepted;
}

TEST_LOOP(secure_holds_wherever_the_port_is_that_of_a_tcp_socket,
	  DOOR_TCP, DOOR_IWARP + 1)
{
	enum door door = (enum door)_i;
	uint64_t refused;

	open_with("/mem 127.0.0.1(rw,secure)\n");
	ck_assert_uint_eq(getattr(door, true), NFS3_OK);
	refused = stats_sum_by_name("export_bad_port");
	ck_assert_uint_eq(getattr(door, false), NFS3ERR_ACCES);
	ck_assert_uint_eq(stats_sum_by_name("export_bad_port"), refused + 1);
	harness_publish(&d.srv, "/mem 127.0.0.1(rw,insecure)\n");
	ck_assert_uint_eq(getattr(door, false), NFS3_OK);
	doors_close(&d);
}

/* They bind none, so "secure" can't ask for one. */
TEST(clients_of_rdma_devices_need_no_reserved_port)
{
	open_with("/mem 127.0.0.1(rw,secure)\n");
	ck_assert_uint_eq(getattr(DOOR_LOOP, false), NFS3_OK);
	doors_close(&d);
}

TEST(mount_is_not_served_over_rdma)
{
	uint32_t status;
	uint64_t refused;

	open_with("/mem 127.0.0.1(rw,insecure)\n");
	ck_assert_uint_eq(mnt(DOOR_TCP, false, &status), RPC_SUCCESS);
	ck_assert_uint_eq(status, MNT3_OK);
	for (int door = DOOR_IWARP; door < NDOORS; door++) {
		refused = stats_sum_by_name("rpc_no_rdma");
		ck_assert_uint_eq(mnt((enum door)door, true, &status),
				  RPC_PROG_UNAVAIL);
		ck_assert_uint_eq(stats_sum_by_name("rpc_no_rdma"),
				  refused + 1);
	}
	doors_close(&d);
}

TEST(mount_is_served_over_rdma_where_it_was_asked_for)
{
	const struct harness_config hc = {
		.exports = "/mem 127.0.0.1(rw,secure)\n", .rdma_mount = true,
	};
	uint32_t status;

	doors_open(&d, &hc);
	ck_assert_uint_eq(mnt(DOOR_IWARP, true, &status), RPC_SUCCESS);
	ck_assert_uint_eq(status, MNT3_OK);
	ck_assert_uint_eq(mnt(DOOR_IWARP, false, &status), RPC_SUCCESS);
	ck_assert_uint_eq(status, MNT3ERR_ACCES);
	ck_assert_uint_eq(mnt(DOOR_LOOP, false, &status), RPC_SUCCESS);
	ck_assert_uint_eq(status, MNT3_OK);
	doors_close(&d);
}

int main(void)
{
	if (!doors_may_bind_reserved()) {
		printf("SKIP: may not bind ports below 1024, nor make a "
		       "namespace where it may\n");
		return 77;
	}
	return run_tests();
}
