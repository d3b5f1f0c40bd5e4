/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drc - the duplicate request cache.
 *
 * A client that lost its connection sends again, on a new one, what was not
 * answered.  A procedure that is not idempotent must not run twice for that:
 * a call that still runs is not started again, and one that is done gets its
 * first reply, byte for byte.  The newest duplicate of a call that runs waits
 * for its end, and is answered with it: the connection of the first is gone,
 * and a client would else send for the third time only after a minute.
 *
 * A call is known by its client's address (without the port: connections
 * come and go), xid, program, version, procedure, length, its user, and a
 * checksum of the first DRC_SUM_MAX bytes of its arguments.  XIDs repeat: each
 * of the connections of one client counts its own (nconnect), and clients may
 * share an address.  It is the arguments that tell such calls apart, and
 * DRC_SUM_MAX covers them entirely, but for the data of a WRITE or a long
 * SYMLINK.
 *
 * Memory is bounded: the entry that was used least recently makes room, but
 * never one whose call still runs.  DRC_AGE seconds after it was used last an
 * entry is no longer believed.
 *
 * Any thread, everything.
 */
#ifndef GANNET_RPC_DRC_H
#define GANNET_RPC_DRC_H

#include "lib/xdr.h"
#include "transport/xprt.h"

#define DRC_SUM_MAX	1024
#define DRC_AGE		120

struct drc;
struct drc_entry;

struct drc_key {
	uint8_t	 addr[16];		/* IPv4 as ::ffff:a.b.c.d */
	uint32_t scope;
	uint32_t xid;
	uint32_t prog;
	uint32_t vers;
	uint32_t proc;
	uint32_t len;
	uint32_t uid;			/* of AUTH_SYS, as it was sent */
	uint32_t gid;
	uint64_t sum;
};

enum drc_verdict {
	DRC_NEW,		/* run it, then drc_done() or drc_forget() */
	DRC_UNCACHED,		/* run it; there is no room to remember it */
	DRC_IN_PROGRESS,	/* it waits: drc_done() or drc_forget() says */
	DRC_REPLAY,		/* the reply was copied out */
};

/* A call that asks, and what it is told. */
struct drc_ask {
	void		 *call;		/* what is known of it outside */
	void		 *reply;	/* MSG_HEAD_SIZE bytes */
	uint32_t	  len;		/* DRC_REPLAY: of the reply */
	struct drc_entry *entry;	/* DRC_NEW: the call's own now */
	void		 *older;	/* DRC_IN_PROGRESS: the call that waited
					 * before, or NULL: drop it */
};

/* 0 or -ENOMEM.  With @bytes 0 every call is DRC_UNCACHED. */
int drc_create(size_t bytes, struct drc **out);
void drc_destroy(struct drc *drc);

/* Sets addr and scope. */
void drc_key_addr(struct drc_key *key, const struct sockaddr *peer);
/* The checksum of the arguments that @args stands before; @args is left as
 * it is.  It does not depend on how the message is cut into segments. */
uint64_t drc_sum(const struct xdr_in *args);

/* What to do with a call. */
enum drc_verdict drc_lookup(struct drc *drc, const struct drc_key *key,
			    struct drc_ask *ask);

/* Takes @entry: the call was answered with these @len <= MSG_HEAD_SIZE
 * bytes.  Returns the call that waited, if any: it gets the same. */
void *drc_done(struct drc *drc, struct drc_entry *entry, const void *reply,
	       uint32_t len);
/*
 * The call had no effect, or none that could be repeated.  Takes @entry; but
 * if a call waited it is returned, and the entry is now its own: run it.
 */
void *drc_forget(struct drc *drc, struct drc_entry *entry);

/* Calls remembered or running, and memory in use. */
void drc_usage(struct drc *drc, size_t *entries, size_t *bytes);

/* For tests: as if @seconds had gone by. */
void drc_age(struct drc *drc, unsigned seconds);

#endif
