/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of RPC programs. */
#include "daemon/serve/serve.h"

#include "daemon/serve/locks.h"
#include "mountd/mountd.h"
#include "nfs3/nfs3.h"
#include "portmap/portmap.h"
#include "rquota/rquota.h"
#include "rpc/rdma_config.h"

const struct program_row *const program_rows[PROGRAMS_MAX] = {
	&nfs3_row,
	&nfs3_acl_row,
	&mountd_row,
	&rquota_row,
	&nsm_row,
	&nlm_row,
	&portmap_row,
	&rdma_config_row,
};
