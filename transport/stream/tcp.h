/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp - what the files of TCP share.  Private to transport/stream/.
 *
 * listener (one) -> poller (one for each loop) -> connection -> message.
 */
#ifndef GANNET_TRANSPORT_STREAM_TCP_H
#define GANNET_TRANSPORT_STREAM_TCP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <urcu/list.h>

#include "lib/loop.h"
#include "lib/util.h"
#include "transport/gate.h"
#include "transport/stream/accept.h"
#include "transport/stream/record.h"
#include "transport/stream/stream.h"
#include "transport/xprt.h"

/* Calls up to this size are copied next to their message. */
#define TCP_CALL_SMALL		1024
/* Most that is received at once into the poller's chunk. */
#define TCP_RECV_MAX		(64u << 10)
#define TCP_CHUNK_SIZE		(256u << 10)
/* A record in the making that is smaller lies in malloc'ed memory. */
#define TCP_PART_SMALL		(64u << 10)

struct tcp_conn;
struct tcp_listener;

/*
 * A call and its reply.  The record mark stands right before the head, so
 * that a reply without a body is one piece.  From a poller's list, to which
 * it goes back from any thread.
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

static inline void tcp_list_add(struct tcp_list *list, struct tcp_msg *m)
{
	m->next = NULL;
	if (list->first)
		list->last->next = m;
	else
		list->first = m;
	list->last = m;
}

/* Moves all of @from to the end of @to. */
static inline void tcp_list_splice(struct tcp_list *to, struct tcp_list *from)
{
	if (!from->first)
		return;
	if (to->first)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	from->first = NULL;
}

/* What the connections of one loop have in common.  Its loop's thread. */
struct tcp_poller {
	struct tcp_listener	*listener;	/* borrowed: we are in it */
	struct loop		*loop;		/* borrowed */
	struct cds_list_head	 conns;
	struct loop_timer	 sweep;
	bool			 stopped;	/* takes no connection more */
	atomic_uint		 nconns;	/* any thread reads */

	/* Where bytes are received, from @chunk_used on; counted.  What calls
	 * still use lies before that. */
	struct buf		*chunk;
	uint32_t		 chunk_used;
	bool			 chunk_idle;	/* not used since last sweep */

	struct tcp_msg		*free;
	unsigned		 nfree;
	_Atomic(struct tcp_msg *) returned;	/* any thread pushes */
};

struct tcp_listener {
	struct xprt_listener	 base;
	struct xprt_env		 env;		/* what it names is borrowed */
	struct tcp_options	 o;
	struct acceptor		 accept;	/* on the first loop */
	uint32_t		 sweep_ms;

	struct xprt_gate	 gate;

	struct tcp_poller	 pollers[];
};

/*
 * A connection goes through these in order, on its loop's thread, perhaps
 * leaving some out.
 */
enum tcp_state {
	TCP_LIVE,
	TCP_ENDING,	/* no new calls; those taken are answered */
	TCP_LINGER,	/* all sent, our FIN too: waits for the peer's */
	TCP_CLOSED,	/* waits for calls and senders that know it */
};

struct tcp_conn {
	struct xprt		 xprt;		/* one reference is the loop's:
						 * dropped when all is over */
	struct tcp_poller	*poller;	/* borrowed */
	struct loop_task	 task;
	struct pool_waiter	 waiter;

	/* The loop's thread only. */
	struct cds_list_head	 link;
	struct loop_fd		 fd;
	enum tcp_state		 state;
	bool			 eof;		/* the peer sent its FIN */
	bool			 paused;	/* reads nothing; if it is for a
						 * buffer, one of @pool_want */
	size_t			 pool_want;
	bool			 bulk;		/* the last record was large */
	bool			 rejected;	/* a record was no call */
	uint64_t		 taken;		/* calls given to the sink */
	uint64_t		 active;	/* when bytes came last */
	uint64_t		 since;		/* when the record began, or the
						 * state LINGER */
	uint64_t		 sweep_sent;	/* @sent as of ... */
	uint64_t		 sweep_time;	/* when it had changed */
	uint64_t		 received;	/* bytes */
	uint64_t		 short_moved;	/* bytes in and out as of ... */
	uint64_t		 short_time;	/* when they were enough, or memory
						 * was not short */

	struct record_in	 rec;
	/* The record in the making: in @part_buf, or in @part_mem. */
	struct buf		*part_buf;
	uint8_t			*part_mem;
	uint32_t		 part_len;
	uint32_t		 part_room;
	uint32_t		 part_cut;	/* bytes behind, not kept */
	uint32_t		 trusted;	/* a claim up to this is believed */
	/* Bytes received but not looked at, because reading was paused. */
	uint8_t			*rest;
	uint32_t		 rest_off;
	uint32_t		 rest_len;

	/* Replies given on the loop's thread while it handles what it has
	 * received: flushed at its end. */
	struct tcp_list		 batch;
	unsigned		 batch_calls;	/* dropped ones too */
	unsigned		 batch_max;	/* that many at most */
	unsigned		 at_once;	/* came with the last receive */
	size_t			 batch_bytes;
	bool			 batch_asked;	/* one's position is asked for */
	uint64_t		 seen_finished;	/* as of the last flush */
	size_t			 seen_queued;

	/* Guards all below; nested in nothing, nothing nests in it but the
	 * posting of a task. */
	pthread_mutex_t		 lock;
	int			 err;		/* why to close; 0: don't */
	bool			 dead;		/* nothing is sent any more */
	bool			 posted;	/* the task is on its way */
	bool			 waiting;	/* the waiter is in the pool */
	bool			 blocked;	/* the socket takes no more */
	bool			 sending;	/* somebody has what is below */
	struct tcp_list		 queue;		/* to be sent after @sendq */
	size_t			 queued;	/* bytes not sent, of both */
	uint64_t		 position;	/* of the end of both */
	uint64_t		 finished;	/* calls replied to or dropped */
	uint64_t		 sent;		/* bytes */
	/* Post the task when both are true: */
	bool			 watch;
	uint64_t		 watch_finished; /* this many or more */
	size_t			 watch_queued;	/* this many or fewer */

	/* Owned by who set @sending. */
	struct tcp_list		 sendq;
	uint32_t		 send_off;	/* sent of its first */
};

static_assert(sizeof(struct tcp_conn) <= 2048,
	      "an idle connection has nothing else");

/* tcp_msg.c */
struct tcp_msg *tcp_msg_alloc(struct tcp_poller *p);
/* The call is not needed any more. */
void tcp_msg_forget_call(struct tcp_msg *m);
/* Takes @m.  Any thread, while a connection of the poller's lives. */
void tcp_msg_free(struct tcp_poller *p, struct tcp_msg *m);
void tcp_list_free(struct tcp_poller *p, struct tcp_list *list);
void tcp_msg_fini(struct tcp_poller *p);

/* tcp_recv.c: the loop's thread */
/* Receives what there is, within reason, and hands over the calls. */
void tcp_recv(struct tcp_conn *conn);
/* Reading was paused: goes on with what was received before. */
void tcp_recv_resume(struct tcp_conn *conn);
/* Forgets all that was received and not handed over. */
void tcp_recv_drop(struct tcp_conn *conn);
/* Part of a record came. */
bool tcp_recv_midway(const struct tcp_conn *conn);

/* tcp_send.c */
int tcp_reply(struct msg *msg);
void tcp_drop(struct msg *msg);
/* The loop's thread: replies are gathered for @conn from now on. */
void tcp_send_gather(struct tcp_conn *conn);
/* The loop's thread: sends what was gathered, and gathers no more. */
void tcp_send_flush(struct tcp_conn *conn);
/* The loop's thread: the socket has room again. */
void tcp_send_resume(struct tcp_conn *conn);
/* The loop's thread: sends nothing from now on. */
void tcp_send_kill(struct tcp_conn *conn);

/* tcp_conn.c */
/* Takes @fd.  @peer is counted at the gate.  0 or -errno. */
int tcp_conn_create(struct tcp_poller *p, int fd, struct sockaddr_storage *peer,
		    struct tcp_conn **out);
/* Hands it to its loop.  Takes @conn. */
void tcp_conn_start(struct tcp_conn *conn);
/* The loop's thread: brings everything in line with what has happened.  May
 * free @conn. */
void tcp_conn_update(struct tcp_conn *conn);
/* The loop's thread: takes no new calls. */
void tcp_conn_end(struct tcp_conn *conn);
/* The loop's thread: closes it if something takes too long. */
void tcp_conn_sweep(struct tcp_conn *conn, uint64_t now);
/* Any thread that keeps @conn from being freed: closes it. */
void tcp_conn_fail(struct tcp_conn *conn, int err);
/* With the lock held: has tcp_conn_update() called. */
void tcp_conn_kick(struct tcp_conn *conn);
/* With the lock held: does so when what is watched for is there. */
void tcp_conn_check(struct tcp_conn *conn);

#endif
