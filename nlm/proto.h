/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of the lock manager's protocol, as XNFS (X/Open C702) has
 * them. */
#ifndef GANNET_NLM_PROTO_H
#define GANNET_NLM_PROTO_H

#define NLM_PROGRAM	100021

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

#endif
