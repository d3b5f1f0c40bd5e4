/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp - shared by the files of TCP.  Private to transport/stream/.
 *
 * listener (one) -> poller (one for each loop) -> connection -> message.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <urcu/list.h>

#include "lib/loop.h"
#include "lib/util.h"
#include "lib/watchdog.h"
#include "transport/gate.h"
#include "transport/socket/accept.h"
#include "transport/socket/outbox.h"
#include "transport/stream/stream.h"
#include "transport/xprt.h"
#include "wire/record.h"

/* Calls up to this size are copied next to their message. */
#define TCP_CALL_SMALL		1024
/* Most that is received at once into the poller's chunk. */
#define TCP_RECV_MAX		(64u << 10)
#define TCP_CHUNK_SIZE		(256u << 10)
/* An incomplete record smaller than this lies in malloc'ed memory. */
#define TCP_PART_SMALL		(64u << 10)

struct tcp_conn;
struct tcp_listener;

/*
 * A call and its reply.  The record mark stands right before the head: a reply
 * without a body is one piece.  Comes from a poller's list; any thread gives it
 * back there.
 */
struct tcp_msg {
	struct msg	 msg;
	struct tcp_msg	*next;		/* in the one list that it is in */
	struct buf	*call_buf;	/* counted: where the call lies, or */
	void		*call_mem;	/* where it lies, or NULL twice */
	uint32_t	 len;		/* of the reply with its mark */
	uint8_t		 small[TCP_CALL_SMALL];
	uint32_t	 mark;
	uint8_t		 head[MSG_HEAD_SIZE];	/* right behind the mark */
	/* xprt_sink.msg_upper bytes follow. */
	max_align_t	 upper[];
};

static_assert(offsetof(struct tcp_msg, head) ==
	      offsetof(struct tcp_msg, mark) + RECORD_MARK_SIZE,
	      "the mark and the head are sent as one");

struct tcp_list {
	struct tcp_msg	*first;
	struct tcp_msg	*last;
};

/* The state that the connections of one loop share.  The loop's thread only. */
struct tcp_poller {
	struct tcp_listener	*listener;	/* borrowed: contains us */
	struct loop		*loop;		/* borrowed */
	struct cds_list_head	 conns;
	struct loop_timer	 sweep;
	bool			 stopped;	/* accepts no connections */
	atomic_uint		 nconns;	/* any thread reads */

	/* Bytes are received here, from @chunk_used on; counted.  Calls still
	 * use the bytes before that. */
	struct buf		*chunk;
	uint32_t		 chunk_used;
	bool			 chunk_idle;	/* not used since last sweep */

	struct tcp_msg		*free;
	unsigned		 nfree;
	_Atomic(struct tcp_msg *) returned;	/* any thread pushes */
};

struct tcp_listener {
	struct xprt_listener	 base;
	struct xprt_env		 env;		/* its pointers are borrowed */
	struct tcp_options	 o;
	struct tcp_tls		 tls;		/* where o.tls points to */
	struct acceptor		 accept;	/* on the first loop */
	uint32_t		 sweep_ms;
	struct xprt_gate	 gate;
	struct xprt_gate	 shaking;	/* of connections on their way
						 * to TLS */

	struct tcp_poller	 pollers[];
};

/*
 * A connection goes through these states in order, on its loop's thread; it can
 * skip some.
 */
enum tcp_state {
	TCP_LIVE,
	TCP_ENDING,	/* takes no new calls; answers those in progress */
	TCP_LINGER,	/* everything and our FIN are sent, or the FIN waits for
			 * room for TLS's end: waits for the peer's FIN */
	TCP_UNREAD,	/* the peer's FIN came soon after a reply.  Ours would
			 * keep its system from telling us, by a reset, that
			 * its program closed without reading that reply */
	TCP_CLOSED,	/* waits for calls and senders that refer to it */
};

/* An incomplete record: in @buf, or in @mem. */
struct tcp_part {
	struct buf		*buf;
	uint8_t			*mem;
	uint32_t		 len;
	uint32_t		 room;
	uint32_t		 cut;		/* bytes beyond, dropped */
};

/* Bytes received but not parsed, because reading was paused. */
struct tcp_rest {
	uint8_t			*mem;
	uint32_t		 off;
	uint32_t		 len;
};

/* The times that limits are about. */
struct tcp_times {
	uint64_t		 active;	/* of the last bytes */
	uint64_t		 since;		/* start of the record, or of
						 * the state LINGER */
	struct watchdog		 stalled;	/* of bytes out */
	struct watchdog		 slow;		/* of bytes in and out, while
						 * memory is short */
};

/* Calls on their way in. */
struct tcp_in {
	bool			 paused;	/* not reading */
	bool			 short_of;	/* ... for want of a buffer: of
						 * @part_want bytes for the
						 * record, 0: of a chunk */
	uint32_t		 part_want;
	struct pool_request	 room;		/* for that buffer */
	bool			 bulk;		/* the last record was large */
	bool			 rejected;	/* a record was no call */
	uint32_t		 trusted;	/* believed length of a
						 * record */
	uint64_t		 received;	/* bytes */
	uint64_t		 taken;		/* calls given to the sink */
	struct record_in	 rec;
	struct tcp_part		 part;
	struct tcp_rest		 rest;
};

/* Replies that the loop's thread gives while it handles a batch of calls:
 * flushed at the batch's end. */
struct tcp_batch {
	struct tcp_list		 list;
	unsigned		 calls;		/* with dropped ones */
	size_t			 bytes;
	bool			 asked;		/* a reply has msg->sent */
};

/* The limits of a batch. */
struct tcp_pace {
	unsigned		 max;		/* calls, at most */
	unsigned		 at_once;	/* came with the last receive */
	uint64_t		 seen_finished;	/* at the last flush */
	size_t			 seen_queued;
};

/* Replies on their way out, on any thread. */
struct tcp_out {
	/* Its lock guards the fields up to the sender's. */
	struct outbox		 box;
	bool			 waiting;	/* in.room is in the pool */
	bool			 ending;	/* a thread asked for the end */
	struct buf		*granted;	/* by the pool; not used yet */
	struct tcp_list		 queue;		/* to be sent after @sendq */
	size_t			 queued;	/* unsent bytes of both lists */
	uint64_t		 position;	/* of the end of both */
	uint64_t		 finished;	/* calls answered or dropped */
	struct {		/* kicks the outbox when both are true: */
		bool		 on;
		uint64_t	 finished;	/* this many or more */
		size_t		 queued;	/* this many or fewer */
	} watch;

	/* The sender's. */
	struct tcp_list		 sendq;
	uint32_t		 send_off;	/* sent of its first */

	/* The loop's thread: bytes that it encrypted in this turn. */
	size_t			 encrypted;
};

struct tcp_secure;

struct tcp_conn {
	struct xprt		 xprt;		/* the loop has one reference,
						 * until the end */
	struct tcp_poller	*poller;	/* borrowed */
	struct loop_task	 start;

	/* The loop's thread only. */
	struct cds_list_head	 link;
	struct loop_fd		 fd;
	enum tcp_state		 state;
	bool			 eof;		/* the peer sent its FIN */
	struct tcp_times	 times;
	struct loop_timer	 unread;	/* in the state UNREAD */
	bool			 parted;	/* of the gate */
	struct tcp_in		 in;
	struct tcp_batch	 batch;
	struct tcp_pace		 pace;
	struct tcp_secure	*secure;	/* from AUTH_TLS on */

	/* Any thread reads: TLS has begun. */
	_Atomic(struct tls_conn *) tls;		/* owned by @secure */
	struct tcp_out		 out;
};

static_assert(sizeof(struct tcp_conn) <= 2048,
	      "an idle connection has nothing else");

/* tcp_msg.c */
struct tcp_msg *tcp_msg_alloc(struct tcp_poller *p);
/* Takes @m without a call.  Any thread, while the poller has connections. */
void tcp_msg_free(struct tcp_poller *p, struct tcp_msg *m);
void tcp_msg_fini(struct tcp_poller *p);

/* tcp_recv.c: the loop's thread */
/* Receives a bounded number of bytes, and hands over the calls in them. */
void tcp_recv(struct tcp_conn *conn);
/* Takes the buffer that the pool gave, if it did.  None is on its way. */
void tcp_recv_take(struct tcp_conn *conn);
/* Ends a pause: parses the bytes received before it. */
void tcp_recv_resume(struct tcp_conn *conn);
/* Drops all bytes that were received and not handed over. */
void tcp_recv_drop(struct tcp_conn *conn);

/* tcp_send.c */
extern const struct outbox_ops tcp_outbox_ops;
/* ... by tcp_conn.tls */
extern const struct outbox_ops tcp_secure_outbox_ops;
int tcp_reply(struct msg *msg);
void tcp_drop(struct msg *msg);
/* The loop's thread: sends the gathered replies, and stops gathering. */
void tcp_send_flush(struct tcp_conn *conn);
/* The loop's thread: kicks the outbox when at most @calls are in progress and
 * at most @queued bytes unsent. */
void tcp_send_watch(struct tcp_conn *conn, uint64_t calls, size_t queued);
/* The loop's thread, after the last thread stopped sending: frees unsent
 * replies. */
void tcp_send_drop(struct tcp_conn *conn);

/* tcp_secure.c: the loop's thread; is_shaking(), pending() and is_held() only
 * with conn->secure */
/* xprt_ops.start_tls */
int tcp_secure_ask(struct xprt *x);
/* True from there to the end of the handshake: the connection is not read. */
bool tcp_secure_is_shaking(const struct tcp_conn *conn);
/* In state LIVE, while that is true: goes on, with @calls in progress and
 * @queued bytes unsent.  Returns the events to wait for. */
uint32_t tcp_secure_go_on(struct tcp_conn *conn, uint64_t calls, size_t queued);
/* ... when such an event has come. */
void tcp_secure_ready(struct tcp_conn *conn);
/* ... and it is @now: closes the connection if that lasts too long. */
void tcp_secure_sweep(struct tcp_conn *conn, uint64_t now);
/* True if its key has sent as much as one can. */
bool tcp_secure_is_worn(const struct tcp_conn *conn);
/* As readv(2), but returns -errno. */
ssize_t tcp_secure_recv(struct tcp_conn *conn, const struct iovec *iov,
			int niov);
/* True if it has bytes that the socket does not tell of. */
bool tcp_secure_pending(const struct tcp_conn *conn);
/* True if the last receive found that the peer has to take bytes first: to be
 * tried again when the socket has room. */
bool tcp_secure_is_held(const struct tcp_conn *conn);
/* No more is sent: tells the peer so.  False: the socket has no room yet. */
bool tcp_secure_close(struct tcp_conn *conn);
/* Another thread has the handshake, and the socket; tcp_conn_kicked() will
 * be called. */
bool tcp_secure_is_away(const struct tcp_conn *conn);
/* The last reference is gone. */
void tcp_secure_free(struct tcp_conn *conn);

/* tcp_conn.c */
/* Takes @fd.  @peer is counted at the gate.  0 or -errno. */
int tcp_conn_create(struct tcp_poller *p, int fd, struct sockaddr_storage *peer,
		    struct tcp_conn **out);
/* Hands the connection to its loop.  Takes @conn. */
void tcp_conn_start(struct tcp_conn *conn);
/* The loop's thread: refuses new calls.  May free @conn. */
void tcp_conn_end(struct tcp_conn *conn);
/* The loop's thread: closes the connection if it is past a time limit. */
void tcp_conn_sweep(struct tcp_conn *conn, uint64_t now);
