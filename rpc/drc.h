/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drc - the duplicate request cache.
 *
 * A client that lost its connection sends again, on a new one, what was not
 * answered.  A procedure that is not idempotent must not run twice for that:
 * a call that still runs is not started again, and one that is done gets its
 * first reply, byte for byte.  A duplicate of a call that runs waits for its
 * end, and is answered with it: the connection of the first is gone, and a
 * client would else send for the third time only after a minute.  Of those
 * that came on one connection the newest waits; of those whose connections
 * have ended none needs to.
 *
 * The key of a call is its client's address (without the port: connections
 * come and go), xid, program, version, procedure, length, its user with the
 * flavour of its credentials, and a checksum of its arguments.  An equal key
 * may still be that of a new call: drc_rule.h says how that is told.
 *
 * An idempotent call that must not run *beside* its duplicate (keep = false)
 * is known here only while it runs; its duplicate waits, and then runs, too.
 * This is for WRITE.  Run again at once, it writes the same data over them:
 * its client, which has no answer yet, has sent no later WRITE of the same
 * place.  But if the first one ran after the second, it would put old data
 * over what the client has written since the second's answer.  So WRITEs
 * take no memory from those that need it, and none is ever answered with the
 * reply of another whose checksum is the same.
 *
 * Memory: a reply is kept until its client is known to have it.  A connection
 * that lives holds about what was answered in its last seconds; what it never
 * acknowledged stays for as long after its end as drc_rule.h says, an hour at
 * most.  When the memory is used up, the address that has most of it gives up its oldest reply (a hash of the
 * address: DRC_SHARES of them).  What is lost like that although it was
 * needed, within DRC_AGE, is counted and logged.  Calls that run have their
 * memory themselves, so that there is always room for them.
 *
 * Any thread, everything.
 */
#ifndef GANNET_RPC_DRC_H
#define GANNET_RPC_DRC_H

#include "lib/xdr.h"
#include "transport/xprt.h"

/* Bytes of the arguments that the checksum covers: all of them, but for the
 * data of a long SYMLINK. */
#define DRC_SUM_MAX	1024
/* Milliseconds for which a reply is promised to be remembered if it is needed,
 * and for which one that went out as a datagram is. */
#define DRC_AGE_MS	120000
#define DRC_SHARES	256

struct drc;

struct drc_key {
	uint8_t	 addr[16];		/* IPv4 as ::ffff:a.b.c.d */
	uint32_t scope;			/* of a link-local address */
	uint32_t port;			/* of a datagram, else 0 */
	uint32_t xid;
	uint32_t prog;
	uint32_t vers;
	uint32_t proc;
	uint32_t len;
	uint32_t flavor;
	uint32_t uid;			/* of AUTH_SYS, as it was sent */
	uint32_t gid;
	uint64_t sum;
};

/* A call while it runs or waits: a part of the caller's. */
struct drc_call {
	/* The caller's to fill in. */
	struct drc_key	  key;
	struct xprt_fate *fate;		/* borrowed while it runs; NULL: it was
					 * a datagram */
	bool		  may_resend;	/* see struct xprt */
	bool		  keep;		/* remember the reply */

	/* The cache's. */
	uint8_t		  share;
	uint32_t	  hash;
	struct drc_call	 *chain;
	struct drc_call	 *waiting;	/* its newest duplicate; of that one
					 * the next older, and so on */
};

enum drc_verdict {
	DRC_NEW,		/* run it, then drc_done() or drc_forget() */
	DRC_IN_PROGRESS,	/* it waits: drc_done() or drc_forget() says */
	DRC_REPLAY,		/* the reply was copied out */
	DRC_DROP,		/* nobody waits for it, we think */
};

/* What a call that asks is told. */
struct drc_ask {
	void		 *reply;	/* in: MSG_HEAD_SIZE bytes */
	uint32_t	  len;		/* DRC_REPLAY: of the reply */
	_Atomic uint64_t *sent;		/* DRC_REPLAY: for msg->sent */
	struct drc_call	 *older;	/* DRC_IN_PROGRESS: a call that waited
					 * before, or NULL: drop it */
};

/* 0 or -ENOMEM.  With @bytes 0 no reply is remembered. */
int drc_create(size_t bytes, struct drc **out);
void drc_destroy(struct drc *drc);

/* Sets addr, scope and port. */
void drc_key_addr(struct drc_key *key, const struct sockaddr *peer,
		  bool datagram);
/* The checksum of the arguments that @args stands before, of no more than
 * @max <= DRC_SUM_MAX bytes; @args is left as it is.  It does not depend on
 * how the message is cut into segments. */
uint64_t drc_sum(const struct xdr_in *args, uint32_t max);

/* What to do with @call, which is the cache's until drc_done() or
 * drc_forget() if it is DRC_NEW or DRC_IN_PROGRESS. */
enum drc_verdict drc_lookup(struct drc *drc, struct drc_call *call,
			    struct drc_ask *ask);

/*
 * The call was answered with these @len <= MSG_HEAD_SIZE bytes.  Returns the
 * newest that waited, if any: it and all behind it (->waiting) get the same.
 * *@sent is for the msg->sent of the newest's reply, or of the call's own if
 * none waited.
 */
struct drc_call *drc_done(struct drc *drc, struct drc_call *call,
			  const void *reply, uint32_t len,
			  _Atomic uint64_t **sent);
/*
 * The call had no effect, or none that could be repeated, or it is not to be
 * kept.  If calls waited the newest is returned, and is now the one that runs,
 * for which the others wait.
 */
struct drc_call *drc_forget(struct drc *drc, struct drc_call *call);

/* Replies remembered, with calls that run, and memory in use. */
void drc_usage(struct drc *drc, size_t *entries, size_t *bytes);

#endif
