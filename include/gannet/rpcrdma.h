/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet/rpcrdma.h - call ONC RPC programs over RPC-over-RDMA version 1
 * (RFC 8166, RFC 8797).
 *
 * A client is a connection to one responder; it reconnects when the connection
 * is lost.  Calls go out asynchronously, as many at a time as the responder
 * grants credits; the others wait in a queue.  The library transfers whole RPC
 * messages: their contents, and the choice of data that may go in chunks (the
 * upper-layer binding, for NFS RFC 8267), are the caller's business.
 *
 * Versions: each struct of the caller begins with its size, which the caller
 * sets: `struct gannet_rpcrdma_call call = { .size = sizeof(call) };`. Members
 * are only ever added, at the end, and zero is the default of each.  So a
 * program that was built for an older library runs with a newer one.  It also
 * runs with an older one, unless it uses a member that the older one does not
 * know.
 *
 * Threads: any thread can call the functions.  The library calls done() and
 * event() on its thread, one at a time; they must not block, but can make
 * calls.  With POLLED they are called on the caller's thread.
 *
 * gannet-rpcrdma(3) has the details.
 */
#ifndef GANNET_RPCRDMA_H
#define GANNET_RPCRDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#pragma GCC visibility push(default)

struct gannet_rpcrdma;

/* The provider of RDMA. */
enum gannet_rpcrdma_fabric {
	GANNET_RPCRDMA_ANY = 0,		/* verbs if the machine has a device,
					 * else iwarp */
	GANNET_RPCRDMA_VERBS = 1,	/* a device: libibverbs, librdmacm */
	GANNET_RPCRDMA_IWARP = 2,	/* none: iWARP over a TCP socket */
};

/*
 * The events of event(), each with an err.  LOST: the cause, -ETIMEDOUT when
 * reply_ms ran out, -ECONNRESET when the responder closed it, or another error.
 * RECONNECTED: 0.  DEAD: the error of the last attempt to connect; -ECONNRESET
 * when they succeeded but no reply came; -ENOTCONN with NO_RECONNECT.
 */
enum gannet_rpcrdma_event {
	GANNET_RPCRDMA_LOST = 1,	/* the connection; it is made again when
					 * a call needs it */
	GANNET_RPCRDMA_RECONNECTED,
	GANNET_RPCRDMA_DEAD,		/* given up: every call fails */
};

enum {
	GANNET_RPCRDMA_NO_RECONNECT = 1,	/* the first loss is the end */
	GANNET_RPCRDMA_NO_PRIVATE = 2,		/* don't speak RFC 8797 */
	GANNET_RPCRDMA_NO_INVALIDATE = 4,	/* no Send With Invalidate */
	GANNET_RPCRDMA_RESERVED_PORT = 8,	/* iWARP: from a port below 1024
						 * if the process has the right,
						 * as servers require of TCP
						 * clients */
	/* Query the responder's limits before the first call of each connection
	 * (RFC 5666 section 6, program 100417).  Without that program the
	 * limits stay as they are. */
	GANNET_RPCRDMA_CONFIGURE = 16,
	/* The Read-Read transfer model (RFC 5666 section 3.8): no call offers
	 * its reply_mem as a Reply chunk; a reply that is too long for a Send
	 * stays with the responder, and the library reads it into reply_mem.  A
	 * responder that does not support this model refuses such calls. */
	GANNET_RPCRDMA_READ_READ = 32,
	/* Calls go on, and done(), event() and answer() are called, in
	 * gannet_rpcrdma_dispatch() and close() alone: see there. */
	GANNET_RPCRDMA_POLLED = 64,
};

/*
 * How the memory of a call is registered if it names no region, on a device
 * that pins memory.  (iWARP without a device does not pin memory and ignores
 * this: a registration is cheap there, and each call makes one.)
 */
enum gannet_rpcrdma_registration {
	/* For each call, and until its end: when done() is called the responder
	 * can't reach the memory. */
	GANNET_RPCRDMA_EACH_CALL = 0,
	/*
	 * Registrations are kept and used again by calls with the same memory
	 * or a part of it.  The responder can reach that memory until the
	 * connection ends or gannet_rpcrdma_forget() was called: for responders
	 * that are trusted (RFC 8166 section 8.1.2).  The library can't see
	 * that memory was unmapped: see gannet_rpcrdma_forget().
	 */
	GANNET_RPCRDMA_CACHE = 1,
	/*
	 * Only the device sees the registrations of the cache and of regions:
	 * the responder gets a memory window (type 2) of one, for the call and
	 * the connection, which ends as with EACH_CALL.  A call has a few
	 * windows; further segments, and all segments on a device without
	 * windows, are registered for each call.  gannet_rpcrdma_forget() is
	 * needed as with CACHE.
	 */
	GANNET_RPCRDMA_WINDOWS = 2,
};

/* Zero is the default, everywhere. */
struct gannet_rpcrdma_options {
	size_t	 size;		/* of this struct */
	unsigned fabric;	/* GANNET_RPCRDMA_ANY */
	unsigned flags;
	unsigned credits;	/* calls in flight, at most: 128 */
	unsigned inline_size;	/* longest Send made or taken: 4096 */
	unsigned segment_size;	/* chunks are cut into segments of at most
				 * this many bytes; zero: not cut */
	unsigned read_depth;	/* RDMA Reads that the responder can have in
				 * flight: 16 */
	unsigned connect_ms;	/* for one attempt to connect: 10000 */
	unsigned reply_ms;	/* a call that waits longer for its reply,
				 * once it was sent, ends the connection:
				 * 60000 */
	unsigned reconnects;	/* attempts in a row before giving up: 10 */
	unsigned resends;	/* of one call: 10 */
	void (*event)(void *arg, enum gannet_rpcrdma_event event, int err);
	void	*arg;
	/*
	 * Answers a call of the responder's (RFC 8167): returns the length of
	 * the RPC reply that it wrote to @reply, which has @room bytes; 0: the
	 * call gets no reply.  Called like event().  NULL: the responder can't
	 * call.  Messages come and go without chunks.  The client reconnects
	 * only when it has a call to send: a client that has to be reachable
	 * makes a call when event() reports the loss.
	 */
	uint32_t (*answer)(void *arg, const void *call, uint32_t len,
			   void *reply, uint32_t room);
	unsigned back_credits;	/* such calls at a time: 16 */
	/*
	 * Not 0: use RDMA_MSGP (RFC 5666 section 3.9).  A call whose only
	 * source ends it goes out whole, if it fits in a Send and the opaque
	 * has at least pad_threshold bytes; its data lies at a multiple of
	 * pad_align from the start of the Send, for the responder's Receive.
	 * pad_align is a multiple of 4.  Other calls are not affected.
	 *
	 * RFC 8166 section 4.6.1 forbids this, and lets a responder answer with
	 * ERR_CHUNK: that ends the call (-EREMOTEIO), and later ones of the
	 * connection are not padded.
	 */
	unsigned pad_align;
	unsigned pad_threshold;
	unsigned registration;	/* GANNET_RPCRDMA_EACH_CALL */
	unsigned cache_pieces;	/* registrations in the cache: 1024, */
	size_t	 cache_bytes;	/* and of how much memory: 256 MiB */
};

struct gannet_rpcrdma_region;

/*
 * Memory of a call: @len bytes at @addr; or if @niov is not 0, the pieces of
 * @iov, in their order, and @addr and @len are ignored.  The responder sees a
 * piece as one segment, or more with segment_size.  @iov is lent until done(),
 * as the memory is.
 */
struct gannet_rpcrdma_memory {
	void	*addr;
	uint32_t len;
	unsigned niov;
	const struct iovec *iov;
	/* The memory lies in this region (gannet_rpcrdma_register()); NULL: it
	 * is registered as the options say. */
	struct gannet_rpcrdma_region *region;
};

/* Segments of all chunks of a call, at most. */
#define GANNET_RPCRDMA_SEGMENTS	64
#define GANNET_RPCRDMA_SOURCES	4
#define GANNET_RPCRDMA_SINKS	4

/*
 * One call.  It and all memory that it names are lent to the library until
 * done().  When done() is called, the responder can no longer reach the memory
 * by the handles of this call, unless the caller requested a longer
 * registration: see gannet_rpcrdma_registration and gannet_rpcrdma_register().
 */
struct gannet_rpcrdma_call {
	size_t		 size;	/* of this struct */
	/* The RPC message, from its xid on, without the sources' data.  Its xid
	 * is unique among calls in progress: see gannet_rpcrdma_xid(). */
	const void	*msg;
	uint32_t	 msg_len;

	/* Data that the responder reads: each a Read chunk that belongs
	 * @position bytes into @msg; no position is before the last one. */
	unsigned	 nsources;
	struct {
		uint32_t position;
		struct gannet_rpcrdma_memory mem;
	} source[GANNET_RPCRDMA_SOURCES];

	/* Where the responder puts data of the reply: Write chunks, one for
	 * each DDP-eligible result. */
	unsigned	 nsinks;
	struct gannet_rpcrdma_memory sink[GANNET_RPCRDMA_SINKS];

	/* Where the responder puts a reply too long for a Send: a Reply chunk,
	 * in one piece.  Optional.  With READ_READ the library reads such a
	 * reply into this memory, if the call has no sinks. */
	struct gannet_rpcrdma_memory reply_mem;

	/* Called last: the library no longer uses the call, so the function can
	 * free it. */
	void (*done)(struct gannet_rpcrdma_call *self);
	void	*arg;			/* yours */

	/*
	 * The result, from done() on; @reply only while done() runs.
	 * @status: 0; -EREMOTEIO, the responder refused the call with
	 * RDMA_ERROR and @errcode; -EIO, a reply that breaks the protocol;
	 * -EMSGSIZE, too many chunks for one message, or with READ_READ a
	 * reply longer than reply_mem; -ENOMEM; -EOPNOTSUPP, the device knows
	 * no dma-bufs (gannet_rpcrdma_register_dmabuf());
	 * -ENOTCONN, the connection is lost for good; -ECANCELED, cancelled
	 * or closed.
	 */
	int		 status;
	uint32_t	 errcode;
	const void	*reply;		/* the RPC message, from the xid on */
	uint32_t	 reply_len;
	uint32_t	 written[GANNET_RPCRDMA_SINKS];	/* bytes in sinks */
	unsigned	 sends;		/* 1, and more if it was sent again */

	/*
	 * Set by the caller: a call that was sent and got no reply ends with
	 * -ENOTCONN, as if it were the last attempt.  The caller can change it
	 * and call again, even in done(): a call with RPCSEC_GSS needs another
	 * sequence number then (RFC 2203 section 5.3.3.1).
	 */
	bool		 once;
};

/*
 * Connects to the responder at @addr and waits until it is connected.  A
 * NULL @options means all defaults.  0 or -errno: -ECONNREFUSED, -ENODEV (no
 * RDMA device), -ETIMEDOUT, -EINVAL (also if options->size is not the size of
 * the struct), -E2BIG (an option that this library does not know)...
 */
int gannet_rpcrdma_connect(const struct sockaddr *addr,
			   const struct gannet_rpcrdma_options *options,
			   struct gannet_rpcrdma **out);

/* An xid that is unique for this client.  The first is random: otherwise a
 * server could mistake a call for one of an earlier client (RFC 5531 section
 * 9). */
uint32_t gannet_rpcrdma_xid(struct gannet_rpcrdma *c);

/*
 * Starts a call.  0, and its done() follows, never from in here; or -errno and
 * it does not: -EINVAL, also if memory is longer than 4 GiB, or not in its
 * region, or the region is not for such use, or is a dma-buf's and reply_mem's,
 * or sources are out of order;
 * -E2BIG, as above; -EMSGSIZE, more pieces than GANNET_RPCRDMA_SEGMENTS;
 * -ENOMEM; -ENOTCONN.
 */
int gannet_rpcrdma_call(struct gannet_rpcrdma *c,
			struct gannet_rpcrdma_call *call);

/*
 * Ends a call early; @call is not dereferenced.  0, and its done() follows, but
 * never from in here; or -ENOENT: it is not in progress, done() was called or
 * is about to be.
 *
 * A call that was not sent never is, and a call that was sent is not sent
 * again.  done() is called with -ECANCELED when the responder can no longer
 * reach the call's memory (RFC 8166 section 4.4.1).  This is soon, unless the
 * memory lies in a region or the cache on a device that pins memory, without
 * windows, or a reply is being read into it: such a call has its result if the
 * reply comes, and -ECANCELED if the connection ends before, after reply_ms at
 * the latest.
 *
 * The late reply is dropped, and counted in discarded; until then the call has
 * its credit, and its xid is in use.  A responder that uses a handle that was
 * ended so, to write or read or invalidate, loses the connection, and the other
 * calls on it are sent again (RFC 8166 section 8.1.4): a program that often
 * cancels calls with sources, sinks or reply_mem slows itself down.
 */
int gannet_rpcrdma_cancel(struct gannet_rpcrdma *c,
			  const struct gannet_rpcrdma_call *call);

/* The use of a region's memory. */
enum {
	GANNET_RPCRDMA_SOURCE = 1,	/* sources: the responder reads it */
	GANNET_RPCRDMA_SINK = 2,	/* sinks and reply_mem: it writes */
};

/*
 * Registers @len bytes at @addr once for all calls that name the region (RFC
 * 5666 section 7).  @use: one or both of the above.  On a device that pins
 * memory the responder can reach it, for this use, until it is deregistered:
 * RFC 8166 section 8.1.2 asks for care, and windows avoid it.  Elsewhere each
 * call still registers its memory, and the region is only a bound.  A new
 * connection has a new registration.  0 or -errno: -EINVAL; -ENOMEM, for
 * instance the limit of locked memory.
 */
int gannet_rpcrdma_register(struct gannet_rpcrdma *c, void *addr, size_t len,
			    unsigned use, struct gannet_rpcrdma_region **out);

/*
 * Memory of another device, of a GPU for instance, which exports it as a
 * dma-buf.  The library hands it to the RDMA device and touches no byte of it.
 */
struct gannet_rpcrdma_dmabuf {
	size_t	 size;		/* of this struct */
	/* The dma-buf.  The library duplicates it, so the caller can close it
	 * after the call. */
	int	 fd;
	uint64_t offset;	/* where in it the region begins, */
	size_t	 len;		/* and how many bytes it has */
	/* The address by which calls name the region's first byte: the one that
	 * its device uses, or any other, since nothing has to be mapped there.
	 * It has the place in its page that @offset has. */
	void	*addr;
	unsigned use;		/* as of gannet_rpcrdma_register() */
};

/*
 * Registers memory of another device, as gannet_rpcrdma_register() registers
 * that of the program.  Sources and sinks of calls can name the region, but
 * reply_mem can't.  With WINDOWS each call registers its part, since windows of
 * a dma-buf don't exist.
 *
 * 0 or -errno: -EOPNOTSUPP, the fabric (iWARP without a device), the RDMA
 * device, its library or the kernel can't; -EINVAL; -EBADF; -E2BIG, as above;
 * -ENOMEM; or an error of the device.  While the connection is lost the library
 * can't tell: then, or if the next connection uses another device, calls end
 * with such a status instead.
 */
int gannet_rpcrdma_register_dmabuf(struct gannet_rpcrdma *c,
				   const struct gannet_rpcrdma_dmabuf *dmabuf,
				   struct gannet_rpcrdma_region **out);

/*
 * Ends the registration and frees @region; the memory is the caller's again. 0;
 * -EBUSY, a call that names it is not done, or -EINVAL, it is another client's,
 * and nothing happens; or -EIO, the device did not end it, so the connection
 * ends.  gannet_rpcrdma_close() does this for the regions that are left.
 */
int gannet_rpcrdma_deregister(struct gannet_rpcrdma *c,
			      struct gannet_rpcrdma_region *region);

/*
 * Drops registrations of this memory from the cache, or when calls in progress
 * that use them are done.  Calls that start later are not affected.  Call it
 * before the memory is unmapped, or returned to the system by free(): otherwise
 * the responder would keep reading and writing the old pages after another
 * mapping takes the address.
 */
void gannet_rpcrdma_forget(struct gannet_rpcrdma *c, const void *addr,
			   size_t len);

/* The caller sets its size; the rest is filled in. */
struct gannet_rpcrdma_info {
	size_t	 size;			/* of this struct */
	char	 fabric[16];		/* "verbs", ... */
	char	 device[64];
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	bool	 connected;
	bool	 private_data;		/* the responder speaks RFC 8797 */
	bool	 invalidates;		/* and Send With Invalidate */
	uint32_t send_inline;		/* longest messages on this */
	uint32_t recv_inline;		/* connection, both ways */
	unsigned read_depth;		/* RDMA Reads that the responder can
					 * have in flight, as offered to it */
	unsigned credits;		/* granted with the last reply; 0: no
					 * reply yet */
	unsigned in_flight;
	/* Since the client was made. */
	uint64_t reconnects;
	uint64_t resends;
	uint64_t invalidated;		/* handles, by the responder */
	uint64_t discarded;		/* messages that answered nothing */
	uint64_t registered;		/* registrations of calls' memory, */
	uint64_t reused;		/* and segments that needed none */
};

void gannet_rpcrdma_info(struct gannet_rpcrdma *c,
			 struct gannet_rpcrdma_info *info);

/*
 * For a program that has an event loop.  It makes the client with POLLED, polls
 * the descriptor of gannet_rpcrdma_fd() for input (the library owns it; it can
 * be in an epoll set), and calls gannet_rpcrdma_dispatch() when it is readable.
 * Dispatch does all pending work without waiting.  A thread of the library
 * still makes connections, which can wait for the network, and watches
 * timeouts; it calls no function of the caller.
 *
 * Even so, any thread can call gannet_rpcrdma_xid(), call() and cancel().  The
 * other functions on the client, dispatch included: one thread at a time.  Fd
 * and dispatch -EINVAL: the client is not POLLED.  Dispatch -EDEADLK: it is
 * called in done(), event() or answer().
 */
int gannet_rpcrdma_fd(struct gannet_rpcrdma *c);
int gannet_rpcrdma_dispatch(struct gannet_rpcrdma *c);

/* Ends the calls in progress with -ECANCELED, waits until every done() has
 * returned, and frees @c.  Not in done() or event(). */
void gannet_rpcrdma_close(struct gannet_rpcrdma *c);

/* Sets the level of the library's messages on standard error: "err" (the
 * default), "warn", "info", "debug". 0 or -EINVAL. */
int gannet_rpcrdma_log_level(const char *level);

#pragma GCC visibility pop

#endif
