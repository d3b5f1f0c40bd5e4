/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nlm - arguments and results of the lock manager's protocol, versions 1, 3
 * and 4, as XNFS (X/Open C702) has them.  Pure.
 *
 * Versions 1 and 3 have ranges of 32 bits and fewer statuses ("1"); version 4
 * is @wide ("4").
 */
#pragma once

#include "lib/xdr.h"

#define NLM_PROGRAM	100021
#define NLM_OBJ_MAX	256	/* of cookies and owners' handles */
#define NLM_FH_MAX	64	/* of filehandles */

enum nlm_procnum {
	NLM_NULL		= 0,
	NLM_TEST		= 1,
	NLM_LOCK		= 2,
	NLM_CANCEL		= 3,
	NLM_UNLOCK		= 4,
	NLM_GRANTED		= 5,
	NLM_TEST_MSG		= 6,
	NLM_LOCK_MSG		= 7,
	NLM_CANCEL_MSG		= 8,
	NLM_UNLOCK_MSG		= 9,
	NLM_GRANTED_MSG		= 10,
	NLM_TEST_RES		= 11,
	NLM_LOCK_RES		= 12,
	NLM_CANCEL_RES		= 13,
	NLM_UNLOCK_RES		= 14,
	NLM_GRANTED_RES		= 15,
	NLM_SM_NOTIFY		= 16,	/* of the machine's own rpc.statd */
	NLM_SHARE		= 20,
	NLM_UNSHARE		= 21,
	NLM_NM_LOCK		= 22,
	NLM_FREE_ALL		= 23,
};

/* The answer to procedure p_MSG is the call of p_RES. */
#define NLM_MSG_TO_RES	(NLM_TEST_RES - NLM_TEST_MSG)

/* nlm4_stats; versions 1 and 3 have the first five. */
enum nlm_status {
	NLM4_GRANTED			= 0,
	NLM4_DENIED			= 1,
	NLM4_DENIED_NOLOCKS		= 2,
	NLM4_BLOCKED			= 3,
	NLM4_DENIED_GRACE_PERIOD	= 4,
	NLM4_DEADLCK			= 5,
	NLM4_ROFS			= 6,
	NLM4_STALE_FH			= 7,
	NLM4_FBIG			= 8,
	NLM4_FAILED			= 9,
};

#define NLM_SHARE_MODES		4u	/* fsh_mode, fsh_access: two bits */
#define NLM_NOTIFY_PRIV		16u

/* Views lie in the message, and are valid while that lives. */

struct nlm_args {	/* TEST LOCK CANCEL UNLOCK GRANTED SHARE UNSHARE */
	struct xdr_view	 cookie;
	struct xdr_view	 name;
	struct xdr_view	 fh;
	struct xdr_view	 oh;
	uint32_t	 svid;
	uint64_t	 off;
	uint64_t	 len;		/* 0: to the end */
	bool		 block;
	bool		 exclusive;
	bool		 reclaim;
	uint32_t	 state;
	uint32_t	 mode;		/* SHARE, UNSHARE */
	uint32_t	 access;
};

struct nlm_res_args {			/* p_RES, and all results */
	struct xdr_view	 cookie;
	uint32_t	 status;
};

struct nlm_notify_args {		/* SM_NOTIFY, FREE_ALL */
	struct xdr_view	 name;
	uint32_t	 state;
};

/* Results. */
struct nlm_res {
	enum nlm_status	 status;
	struct xdr_view	 cookie;	/* as it came */
	/* TEST that is denied: the holder. */
	bool		 exclusive;
	uint32_t	 svid;
	uint64_t	 off;
	uint64_t	 len;
	uint32_t	 oh_len;
	uint8_t		 oh[NLM_OBJ_MAX];
};

#define NLM_GET(name) \
	bool nlm_get_##name##1(struct xdr_in *x, void *args); \
	bool nlm_get_##name##4(struct xdr_in *x, void *args)
NLM_GET(test);				/* and GRANTED */
NLM_GET(lock);
NLM_GET(cancel);
NLM_GET(unlock);
bool nlm_get_share(struct xdr_in *x, void *args);
/* Up to the status; the sequence of a share does not matter. */
bool nlm_get_res(struct xdr_in *x, void *args);
/* Behind the status of a TEST that is denied: exclusive, svid, oh, off, len. */
bool nlm_get_holder(struct xdr_in *x, struct nlm_args *holder, bool wide);
bool nlm_get_notify(struct xdr_in *x, void *args);
bool nlm_get_free_all(struct xdr_in *x, void *args);
void nlm_put_test1(struct xdr_out *x, const void *res);
void nlm_put_test4(struct xdr_out *x, const void *res);
void nlm_put_res1(struct xdr_out *x, const void *res);
void nlm_put_res4(struct xdr_out *x, const void *res);
void nlm_put_share1(struct xdr_out *x, const void *res);
void nlm_put_share4(struct xdr_out *x, const void *res);
/* The arguments of @proc, or of the procedure whose p_MSG it is. */
void nlm_put_args(struct xdr_out *x, const struct nlm_args *a, uint32_t proc,
		  bool wide);
/* The status that versions 1 and 3 have for it. */
enum nlm_status nlm_status1(enum nlm_status s);
