/* SPDX-License-Identifier: BSD-2-Clause */
/* nsm - the status monitor's protocol (XNFS), in both directions.  Pure. */
#pragma once

#include "lib/xdr.h"

#define SM_MAXSTRLEN	1024
#define SM_PRIV_SIZE	16

enum sm_proc {
	SM_NULL = 0, SM_STAT = 1, SM_MON = 2, SM_UNMON = 3, SM_UNMON_ALL = 4,
	SM_SIMU_CRASH = 5, SM_NOTIFY = 6,
};

enum sm_res { SM_SUCC = 0, SM_FAIL = 1 };

/* A name, and for SM_MON and the others the one to call back.  Views lie in the
 * message. */
struct sm_args {
	struct xdr_view	name;		/* of the host */
	struct xdr_view	my_name;	/* of the caller; it is not used */
	uint32_t	prog, vers, proc;
	struct xdr_view	priv;
	uint32_t	state;		/* SM_NOTIFY */
};

bool sm_get_name(struct xdr_in *x, void *args);		/* STAT */
bool sm_get_mon(struct xdr_in *x, void *args);		/* MON */
bool sm_get_mon_id(struct xdr_in *x, void *args);	/* UNMON */
bool sm_get_my_id(struct xdr_in *x, void *args);	/* UNMON_ALL */
bool sm_get_notify(struct xdr_in *x, void *args);	/* NOTIFY */

struct sm_stat_res {
	enum sm_res	res;
	uint32_t	state;
};

void sm_put_stat_res(struct xdr_out *x, const void *res);
void sm_put_state(struct xdr_out *x, const void *res);

/* Our calls: the arguments of SM_MON (of SM_UNMON without @priv), of SM_NOTIFY,
 * and of a call-back. */
struct sm_call {
	const char	*name;
	const char	*my_name;
	uint32_t	 prog, vers, proc;
	const uint8_t	*priv;
	uint32_t	 state;
};

void sm_put_mon(struct xdr_out *x, const struct sm_call *c);
void sm_put_notify(struct xdr_out *x, const struct sm_call *c);
void sm_put_status(struct xdr_out *x, const struct sm_call *c);
/* SM_MON's answer; false: malformed. */
bool sm_get_stat_res(struct xdr_in *x, struct sm_stat_res *res);
