/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of rquota/. */
#pragma once

#include "exports/walk.h"
#include "rquota/rquota.h"

enum rquota_procnum {
	RQUOTAPROC_NULL			= 0,
	RQUOTAPROC_GETQUOTA		= 1,
	RQUOTAPROC_GETACTIVEQUOTA	= 2,
	RQUOTAPROC_SETQUOTA		= 3,
	RQUOTAPROC_SETACTIVEQUOTA	= 4,
};

/* gqr_status. */
enum rquota_status { Q_OK = 1, Q_NOQUOTA = 2, Q_EPERM = 3 };

/* gqa_type of version 2. */
enum rquota_type { RQUOTA_USER = 0, RQUOTA_GROUP = 1 };

struct rquota_args {			/* GETQUOTA GETACTIVEQUOTA */
	struct xdr_view path;
	uint32_t type;			/* any number */
	uint32_t id;
};

struct rquota_res {
	enum rquota_status status;
	struct vfs_quota   quota;
	int64_t		   now;		/* CLOCK_REALTIME seconds */
};

/* codec.c: pure */
bool rquota_get1(struct xdr_in *x, void *args);
bool rquota_get2(struct xdr_in *x, void *args);
/* The arguments of SETQUOTA, which are not used. */
bool rquota_get_set1(struct xdr_in *x, void *args);
bool rquota_get_set2(struct xdr_in *x, void *args);
void rquota_put(struct xdr_out *x, const void *res);
enum rquota_status rquota_status(int err);
