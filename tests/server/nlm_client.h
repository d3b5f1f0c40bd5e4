/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nlm_client - a lock manager's client, of any version, with a lock manager
 * that is called back.
 */
#pragma once

#include "rpc/client.h"
#include "tests/server/nfs_client.h"
#include "wire/nlm.h"

/* A process of a client that locks one file. */
struct nlm_process {
	const char *host;		/* caller_name */
	uint32_t    svid;
	uint32_t    vers;
	int	    proto;		/* IPPROTO_TCP or IPPROTO_UDP */
	nfs_fh3	    fh;
};

struct nlm_bytes {
	uint64_t off;
	uint64_t len;
	bool	 exclusive;
};

/* The answer to TEST. */
struct nlm_holder {
	struct nlm_bytes bytes;
	uint32_t svid;
};

/* The call-backs and answers that came to this machine's lock manager. */
struct nlm_came {
	uint32_t vers, proc;
	uint32_t svid;
	uint64_t off, len;
	uint32_t status;		/* of a p_RES */
	uint8_t	 from;			/* the last byte of the server's
					 * address */
	uint64_t cookie;		/* of GRANTED and GRANTED_MSG */
};
#define NLM_CAME_MAX	128u

/*
 * Starts the server, with @config or NULL, and a lock manager which answers
 * @nlmc_answer to call-backs, or is nowhere to be found while that is NLM_DEAF
 * or NLM_SILENT.
 */
#define NLM_DEAF	(~0u)
/* The call-back comes, and its answer is lost. */
#define NLM_SILENT	(~1u)
extern _Atomic uint32_t nlmc_answer;
/* Calls come from this address; NULL: from 127.0.0.1. */
extern const char *nlmc_from;
/* Calls by UDP go to this address of the server: 127.0.0.1 or NLMC_SECOND. */
extern const char *nlmc_to;
#define NLMC_SECOND	"127.0.0.2"
/* Calls by UDP without an answer are sent again after that time; 0: never. */
extern uint32_t nlmc_resend_ms;
/* The state of the hosts' monitors, in LOCK; 7 at the start. */
extern uint32_t nlmc_state;
/* The next lock manager of nlmc_start() answers PROC_UNAVAIL to call-backs. */
extern bool nlmc_is_bare;
/* Only the first NLM_CAME_MAX are noted; otherwise more fail the test. */
extern bool nlmc_notes_first;
void nlmc_start(const struct harness_config *config);
void nlmc_end(void);
/* The port where hosts' rpcbinds are asked. */
uint16_t nlmc_rpcbind(void);
/* For a server elsewhere, over TCP only, without a lock manager. */
void nlmc_open(uint16_t tcp_port);
void nlmc_close(void);
/* The filehandle, at @handle, of "file" in the export @dir of the server
 * there. */
nfs_fh3 nlmc_file(uint16_t tcp_port, int uid, char *dir, char handle[64]);
/* Copies the call-backs that came so far; returns how many. */
unsigned nlmc_came(struct nlm_came *out);
/* Returns the number of those calls, of @proc. */
unsigned nlmc_count(uint32_t proc);

/* Each returns the status. */
uint32_t nlmc_lock(const struct nlm_process *p, struct nlm_bytes b, bool block);
uint32_t nlmc_reclaim(const struct nlm_process *p, struct nlm_bytes b);
uint32_t nlmc_unlock(const struct nlm_process *p, struct nlm_bytes b);
uint32_t nlmc_cancel(const struct nlm_process *p, struct nlm_bytes b);
uint32_t nlmc_test(const struct nlm_process *p, struct nlm_bytes b,
		   struct nlm_holder *out);
/* NM_LOCK. */
uint32_t nlmc_lock_unwatched(const struct nlm_process *p, struct nlm_bytes b);
uint32_t nlmc_share(const struct nlm_process *p, uint32_t mode,
		    uint32_t access);
uint32_t nlmc_unshare(const struct nlm_process *p);
/* GRANTED, to the server. */
uint32_t nlmc_granted(const struct nlm_process *p, struct nlm_bytes b);
void nlmc_free_all(const struct nlm_process *p);
/* p_MSG: the answer comes to the lock manager. */
void nlmc_message(const struct nlm_process *p, uint32_t proc,
		  struct nlm_bytes b, bool block);
/* Answers the call-back with @cookie. */
void nlmc_granted_res_to(const struct nlm_process *p, uint64_t cookie,
			 uint32_t status);
/* Answers the last call-back with @status, as a client that got GRANTED_MSG. */
void nlmc_granted_res(const struct nlm_process *p, uint32_t status);
/* The host at 127.0.0.1 has restarted. */
void nlmc_restarted(const char *host, uint32_t state);
/* Sends SM_NOTIFY for @host; false: the test can't have a reserved port. */
bool nlmc_notify(const char *host, bool reserved);
