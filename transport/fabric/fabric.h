/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric - the RDMA operations of RFC 4296 behind one small interface.
 *
 * It has the shape of verbs, which the field knows.  RPC-over-RDMA is written
 * once, on this interface; a provider is libibverbs (verbs/), iWARP in user
 * space (iwarp/), or, for tests, a pair of ends in one process (tests/loop/).
 *
 * Life of a passive connection, in order:
 *
 * 	listener's request()	the peer asked; conn->info is filled in
 * 	fabric_setup()		queues exist; Receives can be posted
 * 	fabric_start()		accepts, with our private data
 * 	conn->established()	Sends can be posted
 * 	...			Receives can complete even before that
 * 	fabric_close()		or the peer did: posted work is flushed
 * 	conn->closed()		after the last completion, exactly once
 * 	fabric_free()		at last
 *
 * An active one: fabric_connect() makes and connects; then the same.
 *
 * Threads: call-backs of a connection run on its loop, one at a time.  Any
 * thread can call fabric_post() and fabric_close(); the caller serialises the
 * posts of one connection.  Everything else on the connection's loop.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/loop.h"
#include "transport/fate.h"

struct fabric_conn;
struct fabric_device;
struct fabric_listener;

/*
 * A completion calls done().  @status is 0 or -errno: -ECANCELED flushed by the
 * end of the connection, -EREMOTEIO the peer refused access, -EMSGSIZE too
 * long, -EIO anything else; on failure the connection is closing.  @len is the
 * bytes received, for a Receive.
 */
struct fabric_op {
	void (*done)(struct fabric_op *op, int status, uint32_t len);
};

/* Registered memory. */
struct fabric_sge {
	void		*addr;
	uint32_t	 len;
	uint32_t	 lkey;
};

enum fabric_access {
	FABRIC_LOCAL	    = 0,	/* source and Receive buffers */
	FABRIC_READ_SINK    = 1,	/* the local side of an RDMA Read; see
					 * limits.open_sinks */
	FABRIC_REMOTE_READ  = 2,
	FABRIC_REMOTE_WRITE = 4,
	FABRIC_BINDABLE	    = 8,	/* windows can be made of it */
};

/*
 * @len bytes of the dma-buf @fd, from @offset on: memory of another device.
 * Peers name it as memory at @addr, where nothing need be mapped; @addr has the
 * place in its page that @offset has.
 */
struct fabric_dmabuf {
	int		 fd;
	uint64_t	 offset;
	void		*addr;
	size_t		 len;
};

struct fabric_mr {
	uint32_t	 lkey;
	uint32_t	 rkey;		/* valid with a REMOTE access */
	void		*addr;
	size_t		 len;
	struct fabric_device *dev;	/* borrowed */
};

/* One Receive.  In the caller's memory, which must stay until done(). */
struct fabric_recv {
	struct fabric_recv *next;
	struct fabric_op   *op;
	struct fabric_sge   sge;
	/* Set before a successful done(): whether it was a SEND_INV, and the
	 * handle of ours that it invalidated. */
	bool		    has_invalidated;
	uint32_t	    invalidated;
};

enum fabric_opcode { FABRIC_SEND, FABRIC_SEND_INV, FABRIC_WRITE, FABRIC_READ };

/*
 * One step of a chain.  In the caller's memory, which must stay until the
 * chain's last op is done.  Steps are begun in order; a Send arrives after the
 * Writes before it were placed, but perhaps before a Read ends.  Only the op of
 * a later step reports that a step without an op completed, so the last step of
 * a chain always has an op.  When a chain fails, each of its ops is done
 * exactly once, with an error.  Ops of one connection's Sends, Writes and Reads
 * are done in the order of posting; so are its Receives.
 */
struct fabric_wr {
	struct fabric_wr   *next;	/* NULL ends the chain */
	enum fabric_opcode  opcode;
	struct fabric_op   *op;
	struct fabric_sge  *sge;
	unsigned	    nsge;	/* <= limits.max_sge; 1 of a Read */
	uint32_t	    handle;	/* WRITE, READ: remote handle */
	uint64_t	    offset;	/*	       and offset there */
	uint32_t	    invalidate;	/* SEND_INV: peer's handle */
};

struct fabric_limits {
	unsigned max_sge;		/* of a Send or Write */
	unsigned max_wr;		/* deepest send queue */
	unsigned max_recv;		/* deepest Receive queue */
	unsigned max_read_depth;	/* Reads in flight (ORD), */
	unsigned max_resp_depth;	/* and the peer's to us (IRD) */
	unsigned max_private;		/* bytes of private data we can send */
	/*
	 * Each Read sends the peer the handle of its sink, and the peer can
	 * write there while the sink is registered.  So register a sink for its
	 * Read alone.
	 */
	bool	 open_sinks;
	/* A handle is valid on all connections of the device without a separate
	 * protection domain, see fabric_isolate(). */
	bool	 domains;
	bool	 pins;			/* registered pages stay where they
					 * are, and in memory */
	/*
	 * iWARP: peers acknowledge no operation.  A completed Send or Write has
	 * not necessarily arrived (RFC 5040 section 5.5), the operation that
	 * ends with -EREMOTEIO need not be the refused one, and a frame that
	 * was damaged on its way also causes a refusal.
	 */
	bool	 unacknowledged;
	bool	 windows;		/* see fabric_mr_window() */
	bool	 invalidates;		/* a peer's SEND_INV can invalidate the
					 * handles of our registrations (iWARP
					 * in user space: of registrations that
					 * are bound to its connection) */
};

/* The facts about the other side when it connects (or has accepted). */
struct fabric_info {
	struct sockaddr_storage peer;
	struct sockaddr_storage local;
	uint8_t		private_data[256];
	unsigned	private_len;	/* can be longer than the peer's, with
					 * zeros: InfiniBand pads */
	/* The peer's port is the fabric's number and proves no privilege.
	 * False: it is a TCP socket's port. */
	bool		any_port;
	unsigned	read_depth;	/* Reads it lets us have in flight */
	/* We can send SEND_INV.  A device that turns out not to support it gets
	 * a SEND, and later connections know. */
	bool		remote_inv;
};

/* The depth of a connection's queues. */
struct fabric_queues {
	unsigned send_wr;		/* steps posted and not completed */
	unsigned recv_wr;
	unsigned send_sge;		/* most in one step */
};

struct fabric_conn {
	const struct fabric_ops	*ops;
	struct fabric_device	*dev;	/* borrowed; set from request on */
	struct loop		*loop;	/* borrowed; set by setup */
	struct fabric_info	 info;
	void			*upper;	/* the caller's */

	/* Set by the caller before fabric_setup(). */
	void (*established)(struct fabric_conn *c);
	/* On the loop: true if messages are awaited; then our end must not look
	 * to the peer as if all had been received.  NULL: no. */
	bool (*owed)(struct fabric_conn *c);
	/* Called when all posted work is done; no call-back follows.  @err is
	 * the cause: 0 fabric_close(), -ECONNRESET the peer closed, -EREMOTEIO
	 * it refused an access (a Write, if no op said so), -EPROTO one side
	 * broke another rule, else the system's error. */
	void (*closed)(struct fabric_conn *c, int err);
};

struct fabric_listener {
	const struct fabric_ops *ops;
	struct loop		*loop;	/* borrowed */
	struct sockaddr_storage  local;	/* with the port in use */
	void			*upper;
	/*
	 * On the listener's loop.  Takes @c: answer with fabric_setup() and
	 * fabric_start(), or fabric_reject(), now or later.
	 */
	void (*request)(struct fabric_listener *l, struct fabric_conn *c);
};

/* A device, shared by its connections, never freed before the provider. */
struct fabric_device {
	const struct fabric_ops *ops;
	char			 name[64];
	struct fabric_limits	 limits;
	/* It was unplugged: no connection will use it again. */
	atomic_bool		 gone;
	pthread_mutex_t		 lock;	/* guards upper; the provider inits */
	void			*upper;	/* rpcrdma keeps its registrations */
};

/* A provider.  The wrappers below document its functions. */
struct fabric_ops {
	const char *name;		/* "verbs", "iwarp", "loop" */
	int  (*listen)(void *provider, const struct sockaddr *addr,
		       struct loop *loop,
		       void (*request)(struct fabric_listener *,
				       struct fabric_conn *),
		       void *upper, struct fabric_listener **out);
	void (*unlisten)(struct fabric_listener *l);
	int  (*connect)(void *provider, const struct sockaddr *addr,
			struct fabric_conn **out);
	int  (*setup)(struct fabric_conn *c, struct loop *loop,
		      const struct fabric_queues *q);
	/* NULL: it takes none worth counting. */
	size_t (*conn_bytes)(const struct fabric_conn *c,
			     const struct fabric_queues *q);
	int  (*start)(struct fabric_conn *c, const void *private_data,
		      unsigned private_len, unsigned read_depth);
	void (*reject)(struct fabric_conn *c);
	int  (*post)(struct fabric_conn *c, struct fabric_wr *chain);
	int  (*post_recv)(struct fabric_conn *c, struct fabric_recv *chain);
	void (*close)(struct fabric_conn *c);
	void (*free)(struct fabric_conn *c);
	/* Both or neither; see fabric_look(). */
	uint64_t (*sent)(struct fabric_conn *c);
	void (*look)(struct fabric_conn *c, struct xprt_view *v);
	/* Both where limits.domains, or neither. */
	int  (*isolate)(struct fabric_conn *c);
	int  (*mr_create_for)(struct fabric_conn *c, void *addr, size_t len,
			      unsigned access, struct fabric_mr **out);
	int  (*mr_create)(struct fabric_device *dev, void *addr, size_t len,
			  unsigned access, struct fabric_mr **out);
	/* NULL: its memory is moved by the CPU. */
	int  (*mr_create_dmabuf)(struct fabric_conn *c,
				 const struct fabric_dmabuf *mem,
				 unsigned access, struct fabric_mr **out);
	int  (*mr_destroy)(struct fabric_mr *mr);
	void (*mr_bind)(struct fabric_mr *mr, struct fabric_conn *c);
	int  (*mr_window)(struct fabric_mr *mr, struct fabric_conn *c,
			  void *addr, size_t len, unsigned access,
			  struct fabric_mr **out);
};

/* A provider and its state: verbs_fabric_create(), ... */
struct fabric {
	const struct fabric_ops *ops;
	void			*provider;
};

/*
 * Listens at @addr; request() is called on @loop for each peer that asks.  A
 * listener at [::] takes IPv4 peers as well, and shows their IPv4 addresses. 0
 * or -errno (-EADDRINUSE, -ENODEV: no device can).
 */
static inline int fabric_listen(const struct fabric *f,
	const struct sockaddr *addr, struct loop *loop,
	void (*request)(struct fabric_listener *, struct fabric_conn *),
	void *upper, struct fabric_listener **out)
{
	return f->ops->listen(f->provider, addr, loop, request, upper, out);
}

/* Ends the listener and frees @l: no request follows, connections stay.  Any
 * thread, but not in a call-back of @l. */
static inline void fabric_unlisten(struct fabric_listener *l)
{
	l->ops->unlisten(l);
}

/*
 * Makes a connection to @addr, resolved and ready for fabric_setup().  May wait
 * for the network: don't call it on a loop.  fabric_start() then asks the peer;
 * established() or closed() follows.  0 or -errno.
 */
static inline int fabric_connect(const struct fabric *f,
	const struct sockaddr *addr, struct fabric_conn **out)
{
	return f->ops->connect(f->provider, addr, out);
}

/* Makes the queues and binds the connection to @loop.  0 or -errno; after
 * an error the connection can only be rejected (or freed, if active). */
static inline int fabric_setup(struct fabric_conn *c, struct loop *loop,
			       const struct fabric_queues *q)
{
	return c->ops->setup(c, loop, q);
}

/* The process's memory that the provider takes for the connection with such
 * queues, at most.  From request() on, before or after fabric_setup(). */
static inline size_t fabric_conn_bytes(const struct fabric_conn *c,
				       const struct fabric_queues *q)
{
	return c->ops->conn_bytes ? c->ops->conn_bytes(c, q) : 0;
}

/*
 * Accepts a peer, or asks it when the connection is an active one.
 * @read_depth: Reads that the peer can have in flight to us.  Our own are
 * bounded by c->info.read_depth, negotiated down here.  0, or -errno and
 * closed() comes.
 */
static inline int fabric_start(struct fabric_conn *c, const void *private_data,
			       unsigned private_len, unsigned read_depth)
{
	return c->ops->start(c, private_data, private_len, read_depth);
}

/*
 * Refuses a peer and closes its transport connection.  Takes @c: it is freed,
 * closed() is not called.  No op of it is called; the memory of posted work is
 * the caller's again on return.
 */
static inline void fabric_reject(struct fabric_conn *c)
{
	c->ops->reject(c);
}

/*
 * Posts a chain, all of it or nothing.  The caller keeps within
 * queues.send_wr and the read depth.  0, or -errno and no op is called:
 * -ENOTCONN closing, -ENOMEM the queue is full (a bug of the caller's).
 */
static inline int fabric_post(struct fabric_conn *c, struct fabric_wr *chain)
{
	return c->ops->post(c, chain);
}

/*
 * Posts Receives, all of @chain or none, from fabric_setup() on.  The caller
 * keeps within queues.recv_wr.  0, or -errno and no op is called, as above.
 */
static inline int fabric_post_recv(struct fabric_conn *c,
				   struct fabric_recv *chain)
{
	return c->ops->post_recv(c, chain);
}

/* Starts the end; closed() follows.  May be called any number of times. */
static inline void fabric_close(struct fabric_conn *c)
{
	c->ops->close(c);
}

/*
 * Only for providers that see the peer's acknowledgements beneath RDMA.
 * fabric_sent() returns the position of the end of the last Send that is done;
 * fabric_look() fills in @v as xprt_ops.look() does, and after the connection's
 * end as it was then.  Any thread, from established() to fabric_free().
 */
static inline uint64_t fabric_sent(struct fabric_conn *c)
{
	return c->ops->sent(c);
}

static inline void fabric_look(struct fabric_conn *c, struct xprt_view *v)
{
	c->ops->look(c, v);
}

/* Frees @c, after closed() or inside it; or if it was never started. */
static inline void fabric_free(struct fabric_conn *c)
{
	c->ops->free(c);
}

/*
 * Registers memory with a device.  @access: fabric_access bits; LOCAL
 * memory can't be reached by any peer.  Any thread.  0 or -errno.
 */
static inline int fabric_mr_create(struct fabric_device *dev, void *addr,
	size_t len, unsigned access, struct fabric_mr **out)
{
	return dev->ops->mr_create(dev, addr, len, access, out);
}

/*
 * Creates a protection domain for the connection, before fabric_setup(): the
 * connection can use only memory that is registered for it, and no other
 * connection can use that memory.  Where limits.domains; elsewhere
 * fabric_mr_bind() does as much.  0 or -errno.
 */
static inline int fabric_isolate(struct fabric_conn *c)
{
	return c->ops->isolate ? c->ops->isolate(c) : 0;
}

/*
 * Lets the peer of @c alone reach the memory (RFC 8166 section 8.1.1) and
 * invalidate its handle, before the handle leaves this process.  Where the
 * provider can't, all connections of the same domain still do.
 */
static inline void fabric_mr_bind(struct fabric_mr *mr, struct fabric_conn *c)
{
	if (mr->dev->ops->mr_bind)
		mr->dev->ops->mr_bind(mr, c);
}

/*
 * Registers memory for the connection alone: in its domain, and bound to it if
 * its peer may reach the memory.  The registration can outlive the connection.
 * Any thread.  0 or -errno.
 */
static inline int fabric_mr_create_for(struct fabric_conn *c, void *addr,
	size_t len, unsigned access, struct fabric_mr **out)
{
	const struct fabric_ops *ops = c->dev->ops;
	int err;

	if (ops->mr_create_for)
		return ops->mr_create_for(c, addr, len, access, out);
	err = ops->mr_create(c->dev, addr, len, access, out);
	if (err == 0 && access & (FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE))
		fabric_mr_bind(*out, c);
	return err;
}

/*
 * Registers memory of another device, which the CPU never touches.  @access: as
 * above, but not BINDABLE: no window can be made of it (ibv_reg_mr(3)).  @mem
 * and its descriptor are the caller's again on return.  Any thread.  0 or
 * -errno: -EOPNOTSUPP, the provider, its device or the kernel can't.
 */
static inline int fabric_mr_create_dmabuf(struct fabric_conn *c,
	const struct fabric_dmabuf *mem, unsigned access,
	struct fabric_mr **out)
{
	if (!c->ops->mr_create_dmabuf)
		return -EOPNOTSUPP;
	return c->ops->mr_create_dmabuf(c, mem, access, out);
}

/*
 * Makes a memory window, as verbs have them (type 2): a handle, as of a
 * registration, of @len bytes at @addr of @mr, which is FABRIC_BINDABLE;
 * @access, REMOTE bits, is for the peer of @c alone, from the next post on.  It
 * pins nothing, and ends by fabric_mr_destroy(), before @mr does.  It takes a
 * step of queues.send_wr, as long as a Send does.  Where limits.windows; on the
 * loop.  0 or -errno: -EOPNOTSUPP, the device turned out to make none.
 */
static inline int fabric_mr_window(struct fabric_mr *mr, struct fabric_conn *c,
	void *addr, size_t len, unsigned access, struct fabric_mr **out)
{
	return mr->dev->ops->mr_window(mr, c, addr, len, access, out);
}

/*
 * Ends the registration and frees @mr.  0 or -errno: the device did not end it,
 * so a peer that has its handle can reach the memory forever.
 */
static inline int fabric_mr_destroy(struct fabric_mr *mr)
{
	return mr->dev->ops->mr_destroy(mr);
}
