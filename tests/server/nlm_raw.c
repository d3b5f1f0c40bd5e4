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

/* Sends the call @xid of version 4. */
static void send_call(uint32_t xid, uint32_t proc, uint32_t host,
		      struct nlm_args a)
{
	const struct rpc_header h = { .xid = xid, .prog = NLM_PROGRAM,
				      .vers = 4, .proc = proc };
	uint8_t bytes[512];
	struct xdr_out x;
	char name[16];

	snprintf(name, sizeof(name), "new%u", host);
	a.cookie = xdr_text("abc");
	a.name = xdr_text(name);
	a.fh = (struct xdr_view){ (const uint8_t *)nlmr.file.data.data_val,
				  nlmr.file.data.data_len };
	a.oh = xdr_text("an owner");
	xdr_out_init(&x, bytes, sizeof(bytes));
	xdr_reserve(&x, RECORD_MARK_SIZE);
	rpc_header_call(&x, &h, &(struct rpc_auth_sys){ .machine = "",
							.uid = nlmr.uid });
	nlm_put_args(&x, &a, proc, true);
	ck_assert(record_post(nlmr.fd, &x));
}

void nlmr_lock(uint32_t host, uint32_t number)
{
	send_call(number, NLM_LOCK, host, (struct nlm_args){
		.block = nlmr.blocks, .exclusive = true, .svid = number,
		.off = number, .len = 1, .state = 1 });
}

void nlmr_reclaim(uint32_t host, uint32_t number)
{
	send_call(number, NLM_LOCK, host, (struct nlm_args){
		.exclusive = true, .svid = number, .off = number, .len = 1,
		.reclaim = true, .state = 1 });
}

void nlmr_unlock(uint32_t host, uint32_t number)
{
	send_call(number + 100, NLM_UNLOCK, host, (struct nlm_args){
		.svid = number, .off = number, .len = 1 });
}

void nlmr_share(uint32_t host)
{
	send_call(host, NLM_SHARE, host,
		  (struct nlm_args){ .mode = 1, .access = 1 });
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
