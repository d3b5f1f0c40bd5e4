/* SPDX-License-Identifier: BSD-2-Clause */
/* fsid - what fsid= says of an export's identity.  Pure. */
#include "exports/export_priv.h"

#include <string.h>

void fsid_take(struct export *e, const struct fsid_option *fsid)
{
	e->has_fsid = true;
	e->id = fsid->id;
	e->fsid = fsid->fsid;
	memcpy(e->uuid, fsid->uuid, sizeof(e->uuid));
}

void fsid_prefer(struct export *e, uint32_t id)
{
	for (unsigned i = 0; i < e->nclients; i++)
		if (e->clients[i].opts.has_id && e->clients[i].opts.id == id)
			fsid_take(e, &e->clients[i].fsid);
}
