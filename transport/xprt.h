/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xprt - the contract between transports and the layers above them.
 *
 * A transport turns wire traffic into struct msg and hands each one to the sink
 * it was given, on the connection's poller, which must not block.  The sink
 * later gives it back with xprt_reply(), xprt_drop() or xprt_reject(), exactly
 * once, from any thread, perhaps before it returns.  Chunks have been pulled by
 * then: a message is whole, over every transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <urcu/list.h>

#include "lib/loop.h"
#include "lib/thread.h"
#include "lib/xdr.h"
#include "transport/addr.h"
#include "transport/fate.h"
#include "transport/gate.h"
#include "transport/life.h"
#include "transport/pipe.h"
#include "transport/pool.h"
#include "wire/header.h"

/* The most pieces of a call: inline bytes and chunks in turn. */
#define MSG_MAX_SEGS	9
/* Room for the encoded part of a reply: header, results, tail. */
#define MSG_HEAD_SIZE	1024
/* The largest RPC message that is sent, and the most that is kept of a call. */
#define MSG_MAX_LEN	POOL_BUF_MAX
/*
 * A call can be longer, up to this, over any transport except UDP: a client may
 * WRITE more than wtmax, and gets a short write (RFC 1813 section 3.3.19).
 * Bytes beyond MSG_MAX_LEN are not kept; zeros stand for them, and no procedure
 * looks at those.  A longer call is refused: over TCP by closing the
 * connection, over RDMA by ERR_CHUNK.
 */
#define MSG_MAX_TAKEN	(4 * POOL_PAYLOAD_MAX + (64u << 10))

struct xprt;
struct xprt_client;
struct xprt_clients;
struct xprt_facts;
struct xprt_sink;

/*
 * One call, then its reply.
 *
 * The reply is head | body | tail.  The head is encoded into @head, and the
 * tail right behind it in the same memory; the body is memory that is sent
 * without a copy.  XDR pad after the body belongs to the tail.
 *
 * Owner: the transport until it calls the sink; the sink until it gives the
 * message back.
 */
struct msg {
	struct xprt	*xprt;		/* counted */

	/* The call, set by the transport.  Borrowed until reply or drop. */
	struct xdr_seg	 call[MSG_MAX_SEGS];
	uint32_t	 ncall;
	uint32_t	 call_len;
	/* The call keeps buffers of the pool until then, so it must not wait
	 * for another one. */
	bool		 in_pool;

	/* The reply, set by the sink. */
	uint8_t		*head;		/* MSG_HEAD_SIZE bytes, given */
	uint32_t	 head_len;
	uint32_t	 tail_len;	/* at head + head_len */
	struct buf	*body;		/* owned; can be NULL */
	/* ... or the body is in this pipe; owned.  Only if the transport can
	 * send from pipes. */
	struct pipe	*pipe;
	uint32_t	 body_len;
	/*
	 * The body is the data of a DDP-eligible result (RFC 8166 section 6.1):
	 * an opaque or string whose length word ends the head.  Its pad begins
	 * the tail and is not sent with a Write chunk.
	 */
	bool		 body_ddp;
	/*
	 * The place for the position of the reply's end (transport/fate.h),
	 * which the transport records with xprt_note_sent() as soon as it knows
	 * it, if possible before the peer can have all of the reply.  NULL: no
	 * note is needed.  The transport sets it to NULL in a new call.
	 */
	_Atomic uint64_t *sent;

	void		*upper;		/* sink->msg_upper zeroed-once bytes */
};

/* Adds @len zeros to the end of the call, for bytes that were not kept. */
void msg_add_cut(struct msg *m, uint32_t len);

/* The receiver of calls.  Must outlive all transports that have it. */
struct xprt_sink {
	/* Takes @m.  On the poller of the connection: must not block. */
	void	(*recv)(struct xprt_sink *sink, struct msg *m);
	/* Bytes at msg->upper: zeroed when the msg is made, then left alone
	 * from one use to the next. */
	size_t	 msg_upper;
	/*
	 * True if a Read chunk is allowed at @position of this call (RFC 8166
	 * section 6.1).  @head is the inline bytes, or a Position-Zero chunk's,
	 * from the RPC header on.  Pure.  NULL: anywhere.
	 */
	bool	(*read_chunk_ok)(struct xprt_sink *sink, const void *head,
				 uint32_t len, uint32_t position);
};

struct xprt_ops {
	const char *name;		/* "tcp", "udp", "rdma" */
	/* Takes @m.  0, or the reply was lost and @m is already freed. */
	int  (*reply)(struct msg *m);
	/* Takes @m: no reply will be sent. */
	void (*drop)(struct msg *m);
	/*
	 * Takes @m, which is not a call and can't be answered.  Closes the
	 * connection: otherwise the peer would wait for an answer.  NULL if the
	 * transport has no connections: drop instead.
	 */
	void (*reject)(struct msg *m);
	/*
	 * Adds the transport's knowledge to @v, which comes as ALIVE with
	 * nothing acknowledged and nothing heard.  Any thread; must not block.
	 * Never called without @x->fate, nor after xprt_fate_end().
	 */
	void (*look)(struct xprt *x, struct xprt_view *v);
	/* True while the peer can't be served another call before one of
	 * those in progress is over.  Any thread; must not block.  NULL:
	 * never. */
	bool (*is_full)(struct xprt *x);
	/* Adds the transport's details of the connection to @f
	 * (transport/clients.h).  Any thread, with the clients' lock: must take
	 * no other.  NULL: nothing is. */
	void (*tell)(struct xprt *x, struct xprt_facts *f);
	/*
	 * The call that is being received asks for TLS (RFC 9289 section 4.1).
	 * 0: TLS begins behind its reply.  -EOPNOTSUPP: no TLS here; -EALREADY:
	 * the connection has it, or is past that; -EUSERS: too many are at it,
	 * and the connection closes.  For the sink's recv(), on the poller.
	 * NULL: never TLS.
	 */
	int  (*start_tls)(struct xprt *x);
	/* Begins an orderly close: the connection accepts no further calls, and
	 * closes when the calls in progress are answered.  Any thread, with a
	 * reference; must not block.  NULL: the transport has no
	 * connections. */
	void (*end)(struct xprt *x);
	/* The last reference is gone. */
	void (*free)(struct xprt *x);
};

/* The part of a connection that is common to all transports. */
struct xprt {
	/* "tcp 192.0.2.7:801".  First: a tracer that gets the connection's
	 * address finds its name there. */
	char			 name[80];
	const struct xprt_ops	*ops;
	struct ref		 ref;
	struct xprt_sink	*sink;		/* borrowed: outlives us */
	struct loop		*loop;		/* borrowed: its poller */
	struct pool		*pool;		/* borrowed */
	struct sockaddr_storage	 peer;
	struct sockaddr_storage	 local;
	/* The peer's port proves no privilege: clients of RDMA devices don't
	 * bind a reserved one. */
	bool			 any_port;
	bool			 rdma;		/* RPC-over-RDMA */
	bool			 takes_pipes;
	/* Set before the first call that it protects. */
	enum rpc_protection	 protection;
	bool			 datagram;	/* the peer's address can be
						 * forged */
	/* Clients send calls again on the same connection. */
	bool			 may_resend;
	uint8_t			 flow;		/* the peer's flow in the
						 * pool */
	struct xprt_fate	*fate;		/* counted; NULL: no
						 * connection */
	struct xprt_client	*client;	/* held; NULL: not counted */
	struct cds_list_head	 of_client;	/* in its connections; the lock
						 * of transport/clients.h */
	/* The transport for people: "tcp", "udp"; of RPC-over-RDMA, the
	 * fabric's name.  A literal. */
	const char		*via;
	struct xprt_life	 life;
};

static inline int xprt_reply(struct msg *m)
{
	return m->xprt->ops->reply(m);
}

static inline void xprt_drop(struct msg *m)
{
	m->xprt->ops->drop(m);
}

/* For the sink's recv(), on the connection's poller. */
static inline void xprt_reject(struct msg *m)
{
	if (m->xprt->ops->reject)
		m->xprt->ops->reject(m);
	else
		m->xprt->ops->drop(m);
}

/* Notes the position of the reply's end; @m->sent can be gone afterwards. */
static inline void xprt_note_sent(struct msg *m, uint64_t position)
{
	_Atomic uint64_t *sent = m->sent;

	if (likely(!sent))
		return;
	m->sent = NULL;
	atomic_store_explicit(sent, position, memory_order_release);
}

static inline void xprt_get(struct xprt *x)
{
	ref_get(&x->ref);
}

static inline void xprt_put(struct xprt *x)
{
	if (ref_put(&x->ref))
		x->ops->free(x);
}

/* Fills in the common part, and the name. */
void xprt_init(struct xprt *x, const struct xprt_ops *ops,
	       struct xprt_sink *sink, struct loop *loop, struct pool *pool,
	       const struct sockaddr *peer, const struct sockaddr *local);

/*
 * A listener, of any transport: made by tcp_listen(), udp_listen(),
 * rpcrdma_listen().  stop refuses new connections and new calls, and closes
 * each connection when its calls in progress are answered (drain). free waits
 * for the rest.
 */
struct xprt_listener {
	const struct xprt_listener_ops *ops;
	struct sockaddr_storage local;	/* with the port in use */
	struct xprt_gate *gate;		/* NULL: it has no connections */
};

struct xprt_listener_ops {
	void (*stop)(struct xprt_listener *l);
	/* After stop, listens again at l->local.  Connections that are ending
	 * go on with that.  0, or -errno: it is stopped still.  Not at the same
	 * time as stop. */
	int  (*start)(struct xprt_listener *l);
	/* Counts the connections that are left.  Any thread. */
	unsigned (*count)(struct xprt_listener *l);
	/* Closes the connections that are left, waits for them, and frees. */
	void (*free)(struct xprt_listener *l);
};

/* Every listener's needs.  Borrowed while the listener lives. */
struct xprt_env {
	struct xprt_sink	*sink;
	struct pool		*pool;
	struct loop		**loops;	/* the pollers */
	unsigned		 nloops;
	unsigned		 max_conns;	/* per listener; refuses more */
	unsigned		 max_peer_conns; /* per address; 0: no bound */
	struct xprt_clients	*clients;	/* NULL: they are not counted */
};
