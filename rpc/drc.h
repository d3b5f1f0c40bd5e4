/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drc - the duplicate request cache.
 *
 * A client that lost its connection sends its unanswered calls again on a new
 * one.  A procedure that is not idempotent must not run twice for that: a call
 * that still runs is not started again, and a finished one is answered with its
 * first reply, byte for byte.  The connection of the first call is gone, and a
 * client sends for the third time only after a minute.  So the duplicate of a
 * running call waits for its end, and gets its answer.  Of the duplicates that
 * came on one connection only the newest waits, and a duplicate whose
 * connection has ended does not wait.  The reply is remembered for each
 * connection whose client waits there itself (it was heard after the next one
 * came), and each acknowledges for itself.
 *
 * The key of a call is its client's address (without the port: connections come
 * and go), whether it came over TLS, xid, program, version, procedure, length,
 * its user with the flavour of its credentials, and a checksum of its
 * arguments.  A new call can have an equal key: drc_rule.h says how the cache
 * distinguishes it.
 *
 * An idempotent call that must not run *at the same time as* its duplicate
 * (keep = false) is in the cache only while it runs; its duplicate waits, and
 * then also runs.  This is for WRITE.  The duplicate writes the same data over
 * the first's, which is harmless while the client has no answer: it has sent no
 * later WRITE of the same place.  But if the first one ran after the duplicate,
 * it would put old data over the client's writes since the duplicate's answer.
 * So WRITEs use no memory that other calls need, and a WRITE is never answered
 * with the reply to another one with the same checksum.
 *
 * A call that lay unread on a connection which its peer has ended does not run
 * once its like has come on a newer connection from the same address: its
 * client can have sent it again there, received the answer, and continued.  So
 * a client that closes its side and waits for the answer must not send the call
 * on a newer connection; else the older one is closed, and the client learns
 * it.  What remains: a client whose end has not reached us, as the network was
 * cut, or did so between two calls on its old connection, and that called on no
 * newer one since.  What it sent before, and was not read, runs when it is
 * read, unless a duplicate is in the cache; on an RDMA adapter also what came
 * between the end and the adapter's word of it.
 *
 * Memory: a reply is kept until its client is known to have it.  A live
 * connection holds about the replies of its last seconds; replies that it never
 * acknowledged stay for as long after its end as drc_rule.h says, an hour at
 * most.  When the memory is used up, the network that has most of it gives up
 * the oldest reply of its address that has most.  (Known by hashes: of
 * DRC_NETWORKS networks, with DRC_HOSTS addresses each.  A network is all of an
 * IPv4 address, and the /64 of an IPv6 address: a host can have any number of
 * addresses there, together with other hosts of its LAN.)  A reply that is lost
 * like that within DRC_AGE, although it was needed, is counted and logged.  A
 * running call brings its own memory, so it always fits.
 *
 * Any thread, everything.
 */
#pragma once

#include "lib/xdr.h"
#include "transport/xprt.h"

/* Bytes of the arguments that the checksum covers.  Only the data of a long
 * SYMLINK have more. */
#define DRC_SUM_MAX	1024
/* The cache promises to remember a needed reply for so many milliseconds, and
 * remembers a datagram's for just as long. */
#define DRC_AGE_MS	120000
#define DRC_NETWORKS	256u
#define DRC_HOSTS	16u

/* In the place of a port: the connection's rpc_protection.  A call in clear,
 * which can be anybody's on the way, is never the repetition of one that came
 * over TLS; nor is one without a client's certificate that of one with it. */
#define DRC_OVER_TLS	(1u << 16)

struct drc;

struct drc_key {
	uint8_t	 addr[16];		/* IPv4 as ::ffff:a.b.c.d */
	uint32_t scope;			/* of a link-local address */
	uint32_t port;			/* of a datagram, or a multiple of
					 * DRC_OVER_TLS */
	uint32_t xid;
	uint32_t prog;
	uint32_t vers;
	uint32_t proc;
	uint32_t len;			/* of a call with a guard: of its bare
					 * arguments */
	uint32_t flavor;
	uint32_t uid;			/* as the flavor says, not squashed */
	uint32_t gid;
	uint64_t sum;
};

/* A call while it runs or waits.  Embedded in the caller's struct. */
struct drc_call {
	/* The caller fills these in. */
	struct drc_key	  key;
	struct xprt_fate *fate;		/* borrowed while it runs; NULL: it was
					 * a datagram */
	bool		  may_resend;	/* see struct xprt */
	bool		  keep;		/* remember the reply */

	/* The cache's. */
	uint16_t	  share;
	uint32_t	  hash;
	struct drc_call	 *chain;
	struct drc_call	 *waiting;	/* its newest duplicate; the duplicate's
					 * is the next older one, and so on */
	_Atomic uint64_t *sent;		/* set by drc_done(); NULL: not
					 * wanted */
};

enum drc_verdict {
	DRC_NEW,		/* run it, then drc_done() or drc_forget() */
	DRC_IN_PROGRESS,	/* it waits: drc_done() or drc_forget() says */
	DRC_REPLAY,		/* the reply was copied out */
	DRC_DROP,		/* no client seems to wait for it */
};

/* Answer to drc_begin(). */
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

/* Sets addr, scope and port, as without TLS. */
void drc_key_addr(struct drc_key *key, const struct sockaddr *peer,
		  bool datagram);
/* The checksum of the arguments that @args stands before, of at most @max <=
 * DRC_SUM_MAX bytes; @args is left as it is.  It does not depend on how the
 * message is cut into segments. */
uint64_t drc_sum(const struct xdr_in *args, uint32_t max);

/* Looks @call up and says what to do with it.  If that is DRC_NEW or
 * DRC_IN_PROGRESS, @call is the cache's until drc_done() or drc_forget(). */
enum drc_verdict drc_lookup(struct drc *drc, struct drc_call *call,
			    struct drc_ask *ask);

/*
 * The caller answered @call with these @len <= MSG_HEAD_SIZE bytes.  Returns
 * the newest duplicate that waited, or NULL: it and all behind it (->waiting)
 * get the same reply.  The ->sent of each, and of @call, is for the msg->sent
 * of its reply.
 */
struct drc_call *drc_done(struct drc *drc, struct drc_call *call,
			  const void *reply, uint32_t len);
/*
 * Forgets @call: it had no effect, or a harmless one, or its reply is not to be
 * kept.  If duplicates waited, returns the newest, which runs now, and the
 * others wait for it.
 */
struct drc_call *drc_forget(struct drc *drc, struct drc_call *call);

/* Counts the remembered replies and running calls, and their memory. */
void drc_usage(struct drc *drc, size_t *entries, size_t *bytes);
