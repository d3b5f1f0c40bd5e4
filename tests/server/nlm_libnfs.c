/* SPDX-License-Identifier: BSD-2-Clause */
/* nlm_libnfs - libnfs as a lock manager's client. */
#include "tests/server/nfs_client.h"

#include <nfsc/libnfs-raw-nlm.h>

#define LOCK_MANAGER	100021

uint32_t nlmc_libnfs_lock(uint16_t port, nfs_fh3 fh);

uint32_t nlmc_libnfs_lock(uint16_t port, nfs_fh3 fh)
{
	struct NLM4_LOCKargs args = {
		.exclusive = 1,
		.lock = { .caller_name = (char *)"libnfs",
			  .fh = { { fh.data.data_len, fh.data.data_val } },
			  .oh = (char *)"me", .svid = 5, .l_len = 3 },
	};
	struct nfs_client c;
	NLM4_LOCKres res;

	nfs_client_open(&c, port, LOCK_MANAGER, 4, 0);
	ck_assert_int_eq(nfs_try(&c, rpc_nlm4_lock_async, &args, &res),
			 RPC_STATUS_SUCCESS);
	nfs_client_close(&c);
	return res.status;
}
