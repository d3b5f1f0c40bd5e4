/* SPDX-License-Identifier: BSD-2-Clause */
/* nlm_raw - LOCKs that are sent without a wait for their answers. */
#include "tests/server/nlm_raw.h"

#include <sys/socket.h>

#include "tests/server/daemon_run.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"

struct nlmr nlmr;

void nlmr_start(const struct harness_config *config)
{
	nlmc_start(config);
	nlmr.file = nfs_make_file(top, "file", "");
	nlmr.fd = daemon_connect(srv.port);
}

/* The call @xid of version 4, up to its arguments. */
static void begin_call(struct xdr_out *x, uint8_t bytes[512], uint32_t xid,
		       uint32_t proc)
{
	const struct rpc_header h = { .xid = xid, .prog = NLM_PROGRAM,
				      .vers = 4, .proc = proc };

	record_call(x, bytes, 512, &h);
	xdr_put_opaque(x, "abc", 3);
}

static void put_owner(struct xdr_out *x, uint32_t host)
{
	char name[16];

	snprintf(name, sizeof(name), "new%u", host);
	xdr_put_string(x, name);
	xdr_put_opaque(x, nlmr.file.data.data_val, nlmr.file.data.data_len);
	xdr_put_string(x, "an owner");
}

void nlmr_lock(uint32_t host, uint32_t number)
{
	uint8_t bytes[512];
	struct xdr_out x;

	begin_call(&x, bytes, number, NLM_LOCK);
	xdr_put_bool(&x, nlmr.blocks);
	xdr_put_bool(&x, true);
	put_owner(&x, host);
	xdr_put_u32(&x, number);
	xdr_put_u64(&x, number);
	xdr_put_u64(&x, 1);
	xdr_put_bool(&x, false);
	xdr_put_u32(&x, 1);
	ck_assert(record_post(nlmr.fd, &x));
}

void nlmr_unlock(uint32_t host, uint32_t number)
{
	uint8_t bytes[512];
	struct xdr_out x;

	begin_call(&x, bytes, number + 100, NLM_UNLOCK);
	put_owner(&x, host);
	xdr_put_u32(&x, number);
	xdr_put_u64(&x, number);
	xdr_put_u64(&x, 1);
	ck_assert(record_post(nlmr.fd, &x));
}

void nlmr_share(uint32_t host)
{
	uint8_t bytes[512];
	struct xdr_out x;

	begin_call(&x, bytes, host, NLM_SHARE);
	put_owner(&x, host);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 1);
	xdr_put_bool(&x, false);
	ck_assert(record_post(nlmr.fd, &x));
}

uint32_t nlmr_status_of(uint32_t xid, unsigned n)
{
	uint32_t reply[10], status = ~0u;

	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(recv(nlmr.fd, reply, sizeof(reply),
				      MSG_WAITALL), sizeof(reply));
		if (xid == NLMR_ANY || ntohl(reply[1]) == xid)
			status = ntohl(reply[9]);
	}
	return status;
}

uint32_t nlmr_status(void)
{
	return nlmr_status_of(NLMR_ANY, 1);
}
