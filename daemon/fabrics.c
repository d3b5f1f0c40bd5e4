/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of fabrics. */
#include "daemon/fabrics.h"

#include "daemon/options.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "transport/fabric/verbs/verbs.h"

/* The largest possible FPDU that is a multiple of four. */
#define IWARP_FPDU_LARGE 65528

static int create_verbs(const struct options *o, struct fabric *out)
{
	return verbs_fabric_create(out);
}

static int create_iwarp(const struct options *o, struct fabric *out)
{
	const struct iwarp_options options = {
		.require_crc = o->iwarp_crc,
		.fpdu_size = o->iwarp_large ? IWARP_FPDU_LARGE : 0,
		.v4_too = true,
	};

	return iwarp_fabric_create(&options, out);
}

static bool always(void)
{
	return true;
}

const struct fabric_row fabric_rows[FABRICS] = {
	{
		.name = "verbs", .title = "NFS/RDMA on devices",
		.listener = "rdma",
		.available = verbs_available,
		.absent = "there is no RDMA device that this process may use",
		.has_own_pollers = true,
		.create = create_verbs, .destroy = verbs_fabric_destroy,
	}, {
		.name = "iwarp", .title = "iWARP in user space",
		.listener = "iwarp",
		.available = always,
		.create = create_iwarp, .destroy = iwarp_fabric_destroy,
	},
};
